//! `top` of busybox, as small systems and containers have it.
//!
//! Its percents are of all CPUs together, unlike those of procps. What its memory line calls used
//! and free is all there is.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::list::{List, Percent};
use crate::evidence::{CpuUse, OneCpu};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

static MEMORY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Mem:\s+(\d+)K used,\s+(\d+)K free(.*)$").expect("a constant pattern")
});
static MEMORY_PART: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d+)K (buff|cached)").expect("a constant pattern"));
static CPU: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^CPU(\d*):\s*([\d.]+% ?usr.*)$").expect("a constant pattern"));
static CPU_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d+(?:\.\d+)?)% ?(usr|sys|nic|idle|io|irq|sirq)").expect("a constant pattern")
});
static RUN_TOGETHER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d+\s+\d+\s+\S+\s+[A-Z]\S*\s+)(\d{4,})(\d\.\d)(\s+\d+\s+[\d.]+\s.*)$")
        .expect("a constant pattern")
});
static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Load average: (\d+\.\d+) (\d+\.\d+) (\d+\.\d+)(?: (\d+)/(\d+) (\d+))?$")
        .expect("a constant pattern")
});

/// The parts of a summary add up to about this; those of a broken one do not.
const ALL: std::ops::Range<f64> = 90.0..110.0;

/// Whether a line begins a page.
pub(crate) fn begins(text: &str) -> bool {
    MEMORY.is_match(text) || CPU.is_match(text) || text.contains("%VSZ") && is_heading(text)
}

/// Whether a line names the columns of the list.
pub(crate) fn is_heading(text: &str) -> bool {
    let has = |name: &str| text.split_whitespace().any(|word| word == name);
    has("PID") && has("PPID") && has("STAT") && has("%CPU") && has("COMMAND") && !has("TTY")
}

/// Reads one page or several.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut list: Option<List<'_>> = None;
    let mut memory = reading.table("meminfo");
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(found) = MEMORY.captures(text) {
            memory_line(&found, line, &mut memory);
        } else if let Some(found) = CPU.captures(text) {
            match cpu_use(&found[2], line, reading) {
                Some(used) if found[1].is_empty() => reading.evidence.cpu.push(used),
                Some(used) => {
                    reading.evidence.single_cpus.push(OneCpu { name: found[1].to_owned(), used });
                }
                None => reading.leave(line),
            }
        } else if let Some(found) = LOAD.captures(text) {
            load(&found, line, reading);
        } else if is_heading(text) {
            list = List::under(text, Percent::AllCpus);
            reading.list += 1;
        } else if let Some(thread) =
            list.as_ref().and_then(|list| list.row(&divided(&one_state(text)), line, reading))
        {
            reading.evidence.threads.push(thread);
        } else {
            reading.leave(line);
        }
    }
    crate::read::system::memory::ram(&memory, reading);
    reading.push(memory);
}

/// A state and its mark of priority (`S <`) as one word.
fn one_state(text: &str) -> String {
    text.replacen(" < ", "< ", 1).replacen(" N ", "N ", 1)
}

/// Sizes that are wider than their column run into the percents behind them: `S 70204114.8 0 53.5`.
/// Which digits are whose does not matter: neither is read.
fn divided(text: &str) -> Cow<'_, str> {
    match RUN_TOGETHER.captures(text) {
        Some(found) => Cow::Owned(format!("{}{} {}{}", &found[1], &found[2], &found[3], &found[4])),
        None => Cow::Borrowed(text),
    }
}

fn memory_line(found: &regex::Captures<'_>, line: &Line<'_>, memory: &mut Rows) {
    let bytes = |text: &str| number::plain(text).map(|kib| kib * 1024.0);
    let (used, free) = (bytes(&found[1]), bytes(&found[2]));
    memory.gauge("MemTotal_bytes", used.zip(free).map(|(used, free)| used + free), line);
    memory.gauge("MemFree_bytes", free, line);
    for part in MEMORY_PART.captures_iter(&found[3]) {
        let name = if &part[2] == "buff" { "Buffers_bytes" } else { "Cached_bytes" };
        memory.gauge(name, bytes(&part[1]), line);
    }
}

fn cpu_use(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<CpuUse> {
    let mut used = CpuUse::none(reading.at(line));
    let mut sum = 0.0;
    for found in CPU_PART.captures_iter(text) {
        let value = number::plain(&found[1])?;
        sum += value;
        match &found[2] {
            "usr" | "nic" => used.user += value,
            "sys" => used.system += value,
            "idle" => used.idle += value,
            "io" => used.iowait += value,
            _ => used.interrupt += value,
        }
    }
    ALL.contains(&sum).then_some(used)
}

fn load(found: &regex::Captures<'_>, line: &Line<'_>, reading: &mut Reading<'_>) {
    let part = |at: usize| found.get(at).and_then(|part| number::plain(part.as_str()));
    if let (Some(one), Some(five), Some(fifteen)) = (part(1), part(2), part(3)) {
        reading.evidence.host.load = Some(reading.said([one, five, fifteen], line));
    }
    let mut table = reading.table("loadavg");
    table.gauge("running", part(4), line);
    table.gauge("threads", part(5), line);
    table.gauge("last_pid", part(6), line);
    reading.push(table);
}
