//! `htop` (and `glances`, whose list has the same names) as its screen was copied: meters and list.
//!
//! Meters are `name[|||| figure]`, several on a line. A CPU's meter does not tell user from system,
//! so what it shows counts as `user`. Only if the CPUs from 0 or 1 on stand there without a gap are
//! they all CPUs of the host, and their mean is its use. The list's percent is of one CPU, and it
//! shows a process with what its threads use, and the threads as well: those are left out.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::list::{List, Percent};
use crate::evidence::{CpuUse, OneCpu, Thread};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

static METER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"([A-Za-z]{2,5}|\d{1,4})\s{0,3}\[([^\]\[]*)\]").expect("a constant pattern")
});
static SHARE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d+(?:[.,]\d+)?)\s*%").expect("a constant pattern"));
static AMOUNTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d+(?:[.,]\d+)?)\s*([KMGT]?)B?\s*/\s*(\d+(?:[.,]\d+)?)\s*([KMGT]?)B?")
        .expect("a constant pattern")
});
static TASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Tasks: (\d+)(?:, (\d+) thr)?(?:, (\d+) kthr)?(?:; (\d+) running)?")
        .expect("a constant pattern")
});
static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Load average: (\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)")
        .expect("a constant pattern")
});
static UPTIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Uptime: (?:(\d+) days?(?:\(!\))?, )?(\d+):(\d\d):(\d\d)")
        .expect("a constant pattern")
});

/// Whether a line begins a screen of htop: a meter of a CPU or of memory, or the heading.
pub(crate) fn begins(text: &str) -> bool {
    if text.starts_with("Tasks: ") && text.contains(" thr") || is_heading(text) {
        return true;
    }
    text.contains('[')
        && METER.captures_iter(text).any(|found| {
            let bars = found[2].trim_start().starts_with(['|', '#', '*', '■']);
            let full = SHARE.is_match(&found[2]) && bars;
            let cpu = found[1].starts_with(|c: char| c.is_ascii_digit()) || &found[1] == "CPU";
            let memory = matches!(&found[1], "Mem" | "Swp");
            cpu && full || memory && AMOUNTS.is_match(&found[2])
        })
}

/// Whether a line names the columns of the list.
pub(crate) fn is_heading(text: &str) -> bool {
    text.contains("CPU%") && text.contains("MEM%") && text.contains("PID")
}

/// A screen so far.
#[derive(Default)]
struct Screen {
    cpus: Vec<OneCpu>,
    whole: Option<CpuUse>,
    /// Rows with what all threads of a process have in common: its owner and its memory.
    rows: Vec<(Option<String>, Thread)>,
}

impl Screen {
    /// Ends the list: of rows that share their memory, one that uses as much as the others together
    /// is the process, and they are its threads.
    fn close_list(&mut self, reading: &mut Reading<'_>) {
        let used = |thread: &Thread| thread.cpu_percent.unwrap_or_default();
        let mut sums: HashMap<String, (usize, f64, f64)> = HashMap::new();
        for (at, (memory, thread)) in self.rows.iter().enumerate() {
            let Some(memory) = memory else { continue };
            let sum = sums.entry(memory.clone()).or_insert((at, used(thread), 0.0));
            sum.2 += used(thread);
            if used(thread) > sum.1 {
                (sum.0, sum.1) = (at, used(thread));
            }
        }
        for (at, (memory, thread)) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            let of_all = memory.and_then(|memory| sums.get(&memory));
            let is_thread = of_all.is_some_and(|(process, most, sum)| {
                *process != at && *most >= (sum - most) * 0.9 - 1.0
            });
            if !is_thread {
                reading.evidence.threads.push(thread);
            }
        }
    }
}

/// Reads one screen or several.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut list: Option<List<'_>> = None;
    let mut screen = Screen::default();
    let mut memory = reading.table("meminfo");
    let mut tasks = reading.table("top");
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || is_furniture(text) {
            continue;
        }
        if is_heading(text) {
            screen.close_list(reading);
            list = List::under(text, Percent::OneCpu);
            reading.list += 1;
        } else if let Some(row) = list.as_ref().and_then(|list| row(list, text, line, reading)) {
            screen.rows.push(row);
        } else {
            let meters = meters(line, &mut screen, &mut memory, &mut tasks, reading);
            let words = words(line, &mut tasks, reading);
            if !meters && !words {
                reading.leave(line);
            }
        }
    }
    close(screen, reading);
    crate::read::system::memory::ram(&memory, reading);
    reading.push(memory);
    reading.push(tasks);
}

/// A row, with what the threads of its process have in common.
fn row(
    list: &List<'_>,
    text: &str,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Option<(Option<String>, Thread)> {
    let cells = list.cells(text)?;
    let thread = list.thread(&cells, line, reading)?;
    let cell = |name: &str| list.cell(&cells, &[name]);
    let memory = match (cell("USER"), cell("VIRT"), cell("RES"), cell("SHR")) {
        (Some(user), Some(size), Some(resident), Some(shared)) if size != "0" => {
            Some([user, size, resident, shared].join(" "))
        }
        _ => None,
    };
    Some((memory, thread))
}

/// The keys below the list, and the tabs above it.
fn is_furniture(text: &str) -> bool {
    text.starts_with("F1Help") || text.starts_with("[Main]") || text.starts_with("Main I/O")
}

/// Reads the meters of a line; whether there are any.
fn meters(
    line: &Line<'_>,
    screen: &mut Screen,
    memory: &mut Rows,
    tasks: &mut Rows,
    reading: &mut Reading<'_>,
) -> bool {
    let mut any = false;
    for found in METER.captures_iter(&line.text) {
        let (label, inner) = (&found[1], &found[2]);
        if let Some(share) = SHARE.captures(inner).and_then(|share| number::plain(&share[1])) {
            let used = busy(share, line, reading);
            if label.starts_with(|c: char| c.is_ascii_digit()) {
                if screen.cpus.iter().any(|cpu| cpu.name == *label) {
                    // The next screen has begun.
                    close(std::mem::take(screen), reading);
                }
                screen.cpus.push(OneCpu { name: label.to_owned(), used });
                any = true;
            } else if matches!(label, "CPU" | "Avg") {
                screen.whole = Some(used);
                any = true;
            }
        } else if let Some(amounts) = AMOUNTS.captures(inner) {
            let total = number::bytes(&format!("{}{}", &amounts[3], &amounts[4]));
            // `1234/7890MB`: one unit for both.
            let unit = if amounts[2].is_empty() { &amounts[4] } else { &amounts[2] };
            let used = number::bytes(&format!("{}{unit}", &amounts[1]));
            let (name, used_name) = match label {
                "Mem" => ("MemTotal_bytes", "mem_used_bytes"),
                "Swp" => ("SwapTotal_bytes", "swap_used_bytes"),
                _ => continue,
            };
            memory.gauge(name, total, line);
            tasks.gauge(used_name, used, line);
            any = true;
        }
    }
    any
}

/// Reads the meters that are words; whether there are any.
fn words(line: &Line<'_>, tasks: &mut Rows, reading: &mut Reading<'_>) -> bool {
    let text = &line.text;
    let mut any = false;
    if let Some(found) = TASKS.captures(text) {
        let names = ["tasks_total", "tasks_threads", "tasks_kernel_threads", "tasks_running"];
        for (at, name) in names.iter().enumerate() {
            let figure = found.get(at + 1).and_then(|figure| number::plain(figure.as_str()));
            tasks.gauge(name, figure, line);
        }
        any = true;
    }
    if let Some(found) = LOAD.captures(text) {
        let part = |at: usize| number::plain(&found[at].replace(',', "."));
        if let (Some(one), Some(five), Some(fifteen)) = (part(1), part(2), part(3)) {
            reading.evidence.host.load = Some(reading.said([one, five, fifteen], line));
        }
        any = true;
    }
    if let Some(found) = UPTIME.captures(text) {
        let part = |at: usize| {
            found.get(at).and_then(|part| number::plain(part.as_str())).unwrap_or_default()
        };
        let seconds = part(1) * 86_400.0 + part(2) * 3600.0 + part(3) * 60.0 + part(4);
        reading.evidence.host.uptime_s = Some(reading.said(seconds, line));
        any = true;
    }
    any
}

/// The use of which only the sum is known.
pub(crate) fn busy(percent: f64, line: &Line<'_>, reading: &Reading<'_>) -> CpuUse {
    let user = percent.clamp(0.0, 100.0);
    CpuUse { user, idle: 100.0 - user, ..CpuUse::none(reading.at(line)) }
}

/// Ends a screen: the use of all CPUs, where all stand there.
fn close(mut screen: Screen, reading: &mut Reading<'_>) {
    screen.close_list(reading);
    let mean = mean_of_all(&screen.cpus);
    if mean.is_some()
        && let Some(last) = screen.cpus.last()
        && reading.evidence.host.cpus.is_none()
    {
        let source = last.used.source.clone();
        let value = screen.cpus.len() as u32;
        reading.evidence.host.cpus = Some(crate::evidence::Statement { value, source });
    }
    reading.evidence.cpu.extend(screen.whole.or(mean));
    reading.evidence.single_cpus.extend(screen.cpus);
}

/// The mean of single CPUs, if they are all: numbers from 0 or 1 on without a gap. One alone may be
/// one that somebody picked.
pub(crate) fn mean_of_all(cpus: &[OneCpu]) -> Option<CpuUse> {
    let mut numbers: Vec<usize> = cpus.iter().filter_map(|cpu| cpu.name.parse().ok()).collect();
    numbers.sort_unstable();
    let first = *numbers.first().filter(|first| **first <= 1)?;
    if numbers.len() < 2
        || numbers.len() != cpus.len()
        || numbers.iter().enumerate().any(|(at, is)| first + at != *is)
    {
        return None;
    }
    let mut mean = CpuUse::none(cpus.last()?.used.source.clone());
    let count = cpus.len() as f64;
    for OneCpu { used, .. } in cpus {
        mean.user += used.user / count;
        mean.system += used.system / count;
        mean.idle += used.idle / count;
        mean.iowait += used.iowait / count;
        mean.interrupt += used.interrupt / count;
        mean.steal += used.steal / count;
    }
    Some(mean)
}
