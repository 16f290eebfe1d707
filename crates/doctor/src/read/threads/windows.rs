//! Lists of processes of Windows: Task Manager, Resource Monitor and Process Explorer copied as
//! text, `tasklist`, `Get-Process`.
//!
//! Percents are of all CPUs together. What the idle process has is what nobody uses: it tells how
//! busy the CPUs are, and is no consumer. `System` is the kernel with its threads.

use std::sync::LazyLock;

use regex::Regex;

use super::htop::busy;
use super::wide::Wide;
use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// What follows the sizes in a row of `Get-Process`: time if it may be seen, number, session, name.
/// Times have two places in all languages, and any mark between thousands.
static PROCESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:(\d+(?:[ .,'\u{2019}]\d{3})*[.,]\d\d)\s+)?(\d+)\s+(?:(\d+)\s+)?(\S.*)$")
        .expect("a constant pattern")
});
static RULER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^={3,}(?: ={3,}){4,}$").expect("a constant pattern"));
static COUNTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(.+) \(\d+\)$").expect("a constant pattern"));
static GROUP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:Apps|Background processes|Windows processes)\s*\(\d+\)$")
        .expect("a constant pattern")
});

/// Names of columns that hold blanks.
const NAMES: [&str; 14] = [
    "User name",
    "CPU time",
    "Private Bytes",
    "Working Set",
    "Company Name",
    "Average CPU",
    "Memory (active private working set)",
    "Memory (private working set)",
    "Session ID",
    "Command line",
    "UAC virtualization",
    "Power usage trend",
    "Power usage",
    "Base priority",
];
/// The column with the program.
const PROGRAMS: [&str; 3] = ["Name", "Process", "Image"];
/// Columns of which one is beside name and CPU.
const BESIDE: [&str; 9] = [
    "PID",
    "Status",
    "Memory",
    "Private Bytes",
    "Working Set",
    "User name",
    "Description",
    "Disk",
    "Network",
];

/// Further columns of these lists.
const OTHERS: [&str; 8] =
    ["CPU", "Threads", "Handles", "GPU", "Type", "Publisher", "Architecture", "Platform"];

fn is_idle(name: &str) -> bool {
    matches!(name, "Idle" | "System Idle Process" | "_Total" | "_total" | "idle")
}

/// A process of which a row tells.
pub(crate) fn process(name: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    // Task Manager counts those of one program: `Google Chrome (12)`.
    let name = COUNTED
        .captures(name.trim())
        .and_then(|found| found.get(1))
        .map_or(name, |name| name.as_str());
    let name = name.trim();
    if is_idle(name) || name.is_empty() {
        return None;
    }
    let is_kernel = matches!(name, "System" | "System interrupts" | "Interrupts" | "system");
    Some(Thread { kernel: is_kernel.then_some(true), ..reading.thread(name.to_owned(), line) })
}

/// Whether a line consists of dashes below names.
fn is_dashes(text: &str) -> bool {
    text.starts_with("--") && text.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'\t'))
}

/// Whether the first of `lines` names the columns of `Get-Process`, or of what was selected of it.
pub(crate) fn begins_processes(lines: &[Line<'_>]) -> bool {
    let text = lines.first().map_or("", |line| line.text.trim());
    is_processes_heading(text)
        && (text.contains("NPM(K)")
            || text.contains("PercentProcessorTime")
            || lines.get(1).is_some_and(|line| is_dashes(line.text.trim())))
}

fn is_processes_heading(text: &str) -> bool {
    let has = |names: &[&str]| text.split_whitespace().any(|word| names.contains(&word));
    has(&["ProcessName", "Name"])
        && has(&["CPU(s)", "CPU", "TotalProcessorTime", "PercentProcessorTime"])
}

/// Reads `Get-Process`.
pub(crate) fn read_processes(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut found: Option<Columns<'_>> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || is_dashes(text) {
            continue;
        }
        if is_processes_heading(text) {
            found = Some(Columns::of(text));
            reading.list += 1;
            continue;
        }
        let row = found
            .as_ref()
            .and_then(|columns| default_row(columns, text).or_else(|| selected_row(columns, text)));
        let Some(row) = row else {
            reading.leave(line);
            continue;
        };
        // Several of one program are numbered in counters: `chrome#3`.
        let name = row.name.split('#').next().unwrap_or(row.name);
        if let Some(thread) = process(name, line, reading) {
            reading.evidence.threads.push(Thread {
                id: row.id,
                cpu_percent: row.percent,
                cpu_time_s: row.seconds,
                ..thread
            });
        }
    }
}

struct Row<'t> {
    name: &'t str,
    id: Option<u64>,
    seconds: Option<f64>,
    percent: Option<f64>,
}

/// A row under the columns that `Get-Process` shows unless told otherwise.
fn default_row<'t>(columns: &Columns<'_>, text: &'t str) -> Option<Row<'t>> {
    let before = columns.position(&["CPU(s)"])?;
    let mut rest = text;
    for _ in 0..before {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        number::plain(word)?;
        rest = behind.trim_start();
    }
    let found = PROCESS.captures(rest)?;
    if found.get(3).is_some() != columns.position(&["SI"]).is_some() {
        return None;
    }
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let seconds = found.get(1).and_then(|time| digits(time.as_str()).parse::<f64>().ok());
    Some(Row {
        name: found.get(4)?.as_str(),
        id: found[2].parse().ok(),
        seconds: seconds.map(|hundredths| hundredths / 100.0),
        percent: None,
    })
}

/// A row under columns that were selected.
fn selected_row<'t>(columns: &Columns<'_>, text: &'t str) -> Option<Row<'t>> {
    let name = columns.position(&["ProcessName", "Name"])?;
    let cells = columns.cells_around(text, name)?;
    let cell = |names: &[&str]| columns::cell(columns, &cells, names);
    let figure = |text: &str| number::plain(&text.replace(',', "."));
    let seconds = match cell(&["CPU(s)", "CPU"]) {
        Some(cell) => Some(figure(cell)?),
        None => cell(&["TotalProcessorTime"]).and_then(number::cpu_seconds),
    };
    let percent = match cell(&["PercentProcessorTime"]) {
        Some(cell) => Some(figure(cell)?),
        None => None,
    };
    let id = cell(&["Id", "PID", "IDProcess", "ProcessId"]).and_then(|id| id.parse().ok());
    Some(Row { name: cells.get(name)?, id, seconds, percent })
}

/// Whether the first of `lines` is the heading of `tasklist`, which a ruler follows.
pub(crate) fn begins_tasks(lines: &[Line<'_>]) -> bool {
    lines.first().is_some_and(|line| line.text.contains(" PID "))
        && lines.get(1).is_some_and(|line| RULER.is_match(line.text.trim()))
}

/// Reads `tasklist`, in any language: the ruler tells the columns, their order is the same.
pub(crate) fn read_tasks(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut widths: Vec<usize> = Vec::new();
    let rulers: Vec<bool> =
        section.lines.iter().map(|line| RULER.is_match(line.text.trim())).collect();
    for (at, line) in section.lines.iter().enumerate() {
        let text = line.text.trim_end();
        let below = rulers.get(at + 1).copied().unwrap_or(false);
        if text.trim().is_empty() || below {
            continue;
        }
        if rulers.get(at).copied().unwrap_or(false) {
            widths = text.trim().split(' ').map(str::len).collect();
            reading.list += 1;
            continue;
        }
        let mut cells = Vec::new();
        let mut rest: Vec<char> = text.chars().collect();
        for width in &widths {
            let behind = rest.split_off((*width).min(rest.len()));
            cells.push(rest.iter().collect::<String>().trim().to_owned());
            rest = behind.into_iter().skip(1).collect();
        }
        let Some(id) = cells.get(1).and_then(|cell| cell.parse().ok()) else {
            reading.leave(line);
            continue;
        };
        if let Some(thread) = process(&cells[0], line, reading) {
            let seconds = cells.get(7).and_then(|cell| number::cpu_seconds(cell));
            reading.evidence.threads.push(Thread { id: Some(id), cpu_time_s: seconds, ..thread });
        }
    }
}

/// Whether a line names the columns of a list of Task Manager, Resource Monitor or Process
/// Explorer.
pub(crate) fn is_list_heading(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    if !PROGRAMS.contains(&first) || !text.contains("CPU") || text.len() > 400 {
        return false;
    }
    let Some(columns) = Wide::under(text, &NAMES, &PROGRAMS) else { return false };
    let names = columns.names();
    let beside = |name: &&str| BESIDE.iter().any(|known| name.ends_with(known));
    let known = |name: &&str| {
        beside(name) || PROGRAMS.contains(name) || NAMES.contains(name) || OTHERS.contains(name)
    };
    // A sentence that begins with one of the words has neither.
    let apart = text.contains('\t') || text.contains("  ") || names.iter().all(known);
    apart && cpu_column(&columns).is_some() && names.iter().any(beside)
}

/// The name of the column with the percent, which may begin with that of all.
fn cpu_column<'h>(columns: &Wide<'h>) -> Option<&'h str> {
    let named = |name: &&&str| **name == "CPU" || name.ends_with("% CPU");
    columns.names().iter().find(named).copied()
}

/// Reads a list that was copied from a window.
pub(crate) fn read_list(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Wide<'_>> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || GROUP.is_match(text) {
            continue;
        }
        if is_list_heading(text) {
            columns = Wide::under(text, &NAMES, &PROGRAMS);
            reading.list += 1;
            let all = columns.as_ref().and_then(cpu_column);
            if let Some(percent) = all.and_then(|name| percent(name.trim_end_matches("CPU"))) {
                let used = busy(percent, line, reading);
                reading.evidence.cpu.push(used);
            }
            continue;
        }
        let Some((name, id, percent, seconds)) =
            columns.as_ref().and_then(|columns| list_row(columns, &line.text))
        else {
            reading.leave(line);
            continue;
        };
        match process(name, line, reading) {
            Some(thread) => {
                let figures = Thread { machine_percent: percent, cpu_time_s: seconds, ..thread };
                reading.evidence.threads.push(Thread { id, ..figures });
            }
            None => {
                let used = percent.map(|idle| busy(100.0 - idle, line, reading));
                reading.evidence.cpu.extend(used);
            }
        }
    }
}

type ListRow<'t> = (&'t str, Option<u64>, Option<f64>, Option<f64>);

fn list_row<'t>(columns: &Wide<'_>, text: &'t str) -> Option<ListRow<'t>> {
    let cells = columns.cells(text)?;
    let id = columns.cell(&cells, &["PID"]).map(|id| id.parse::<u64>());
    // Process Explorer leaves the cell of who uses nothing empty.
    let share = match columns.cell(&cells, &[cpu_column(columns)?]) {
        Some(cell) => Some(percent(cell)?),
        None => None,
    };
    if id.as_ref().is_none_or(Result::is_err) && share.is_none() {
        return None;
    }
    let seconds = columns.cell(&cells, &["CPU time", "CPU Time"]).and_then(number::cpu_seconds);
    let name = columns.cell(&cells, &PROGRAMS)?;
    Some((name, id.and_then(Result::ok), share, seconds))
}

/// `25.3%`, `05`, `< 0.01`.
fn percent(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches('<').trim_start();
    number::percent(text).filter(|percent| (0.0..=100.0).contains(percent))
}
