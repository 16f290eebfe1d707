//! Lists of macOS: `top -l`, Activity Monitor's list copied as text.
//!
//! Names of programs hold blanks there, so what is a name is told by what stands around it. The
//! percents are of one CPU. `kernel_task` is the kernel with all its threads.

use std::sync::LazyLock;

use regex::Regex;

use super::list::{List, Percent};
use super::wide;
use crate::evidence::{CpuUse, Thread};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static CPU: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"CPU usage: ([\d.,]+)% user, ([\d.,]+)% sys, ([\d.,]+)% idle")
        .expect("a constant pattern")
});
static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Load Avg: (\d+[.,]\d+), (\d+[.,]\d+), (\d+[.,]\d+)").expect("a constant pattern")
});
static TASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d+) (total|running|stuck|sleeping|threads)").expect("a constant pattern")
});
/// `PID COMMAND %CPU TIME`, and whatever columns the terminal had room for.
static ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d+)[-*+]?\s+(\S.*?)\s+(\d+[.,]\d+)\s+(\d+:\d\d(?:[:.]\d\d)?(?:\.\d\d)?|\d+ hrs)[+-]?(?:\s+(.*))?$")
        .expect("a constant pattern")
});
static STATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(running|sleeping|stuck|idle|stopped|zombie)\b").expect("a constant pattern")
});
/// Lines of top that say nothing of CPU.
const OTHERS: [&str; 8] =
    ["SharedLibs:", "MemRegions:", "PhysMem:", "VM:", "Networks:", "Disks:", "Swap:", "Purgeable:"];

/// Whether a line begins top of macOS.
pub(crate) fn begins_top(text: &str) -> bool {
    text.starts_with("Processes: ") && text.contains(" total, ")
        || text.starts_with("CPU usage: ") && CPU.is_match(text)
        || text.starts_with("Load Avg: ") && LOAD.is_match(text)
        || is_top_heading(text)
}

fn is_top_heading(text: &str) -> bool {
    text.starts_with("PID ") && text.contains(" COMMAND ") && text.contains("%CPU") && {
        text.contains(" #TH") || text.contains(" CMPRS") || text.contains(" #WQ")
    }
}

/// Reads top.
pub(crate) fn read_top(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut list: Option<List<'_>> = None;
    let mut tasks = reading.table("top");
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty()
            || OTHERS.iter().any(|other| text.starts_with(other))
            || text.len() == 19 && number::time_of_day(&text[text.len().min(11)..]).is_some()
        {
            continue;
        }
        let load = LOAD.captures(text);
        let used = CPU.captures(text);
        if text.starts_with("Processes: ") {
            for found in TASKS.captures_iter(text) {
                tasks.gauge(&format!("tasks_{}", &found[2]), number::plain(&found[1]), line);
            }
        } else if load.is_some() || used.is_some() {
            let part = |found: &regex::Captures<'_>, at: usize| {
                number::plain(&found[at].replace(',', ".")).unwrap_or_default()
            };
            if let Some(found) = load {
                let load = [part(&found, 1), part(&found, 2), part(&found, 3)];
                reading.evidence.host.load = Some(reading.said(load, line));
            }
            if let Some(found) = used {
                let none = CpuUse::none(reading.at(line));
                let (user, system, idle) = (part(&found, 1), part(&found, 2), part(&found, 3));
                reading.evidence.cpu.push(CpuUse { user, system, idle, ..none });
            }
        } else if is_top_heading(text) {
            list = List::under(text, Percent::OneCpu).map(List::of_names);
            reading.list += 1;
        } else if let Some(thread) = row(text, line, reading) {
            reading.evidence.threads.push(thread);
        } else if let Some(thread) = list.as_ref().and_then(|list| list.row(text, line, reading)) {
            reading.evidence.threads.push(kernel(thread));
        } else {
            reading.leave(line);
        }
    }
    reading.push(tasks);
}

fn row(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    let found = ROW.captures(text)?;
    let rest = found.get(5).map_or("", |rest| rest.as_str());
    let state = STATE.find(rest).map(|state| match state.as_str() {
        "running" => 'R',
        "stuck" => 'D',
        "stopped" => 'T',
        "zombie" => 'Z',
        _ => 'S',
    });
    Some(kernel(Thread {
        id: found[1].parse().ok(),
        state,
        cpu_percent: number::percent(&found[3]),
        cpu_time_s: number::cpu_seconds(&found[4]),
        ..reading.thread(found[2].to_owned(), line)
    }))
}

/// The kernel is one task there.
fn kernel(thread: Thread) -> Thread {
    let is_kernel = thread.name == "kernel_task";
    Thread { kernel: is_kernel.then_some(true).or(thread.kernel), ..thread }
}

/// Names of columns of Activity Monitor that hold blanks.
const MONITOR: [&str; 9] = [
    "Process Name",
    "% CPU",
    "CPU Time",
    "Idle Wake Ups",
    "% GPU",
    "GPU Time",
    "Real Mem",
    "Energy Impact",
    "App Nap",
];

/// Whether a line names the columns of Activity Monitor.
pub(crate) fn is_monitor_heading(text: &str) -> bool {
    text.contains("Process Name") && text.contains("% CPU")
}

/// Reads Activity Monitor's list.
pub(crate) fn read_monitor(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<wide::Wide<'_>> = None;
    for line in section.lines {
        let text = line.text.trim();
        if is_monitor_heading(text) {
            columns = wide::Wide::under(text, &MONITOR, &["Process Name"]);
            reading.list += 1;
            continue;
        }
        let thread = columns.as_ref().and_then(|columns| {
            let cells = columns.cells(&line.text)?;
            let cell = |names: &[&str]| columns.cell(&cells, names);
            let name = cell(&["Process Name"])?;
            let percent = number::percent(cell(&["% CPU"])?)?;
            Some(kernel(Thread {
                id: cell(&["PID"]).and_then(|id| id.parse().ok()),
                cpu_percent: Some(percent),
                cpu_time_s: cell(&["CPU Time"]).and_then(time),
                ..reading.thread(name.to_owned(), line)
            }))
        });
        match thread {
            Some(thread) => reading.evidence.threads.push(thread),
            None => reading.leave(line),
        }
    }
}

/// `1:02:33.45`, or seconds alone.
fn time(text: &str) -> Option<f64> {
    number::cpu_seconds(text).or_else(|| number::plain(text))
}
