//! Counters of Windows: `typeperf`, `Get-Counter`, `wmic cpu get loadpercentage`.
//!
//! Those of processors are percent of what they count (one CPU, or all as `_Total`); that of a
//! process is percent of one CPU.

use std::sync::LazyLock;

use regex::Regex;

use super::htop::busy;
use super::windows::process;
use crate::evidence::{CpuUse, OneCpu, Thread};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static COUNTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\\(process|processor|processor information)\(([^)]*)\)\\% (processor|user|privileged|idle) time")
        .expect("a constant pattern")
});

/// What counters of one moment tell.
#[derive(Default)]
struct Moment<'l> {
    /// The instance, what is counted, and how much.
    processors: Vec<(String, String, f64, &'l Line<'l>)>,
    processes: Vec<(String, f64, &'l Line<'l>)>,
}

impl<'l> Moment<'l> {
    fn add(&mut self, counter: &regex::Captures<'_>, value: f64, line: &'l Line<'l>) {
        let (object, instance) = (counter[1].to_lowercase(), counter[2].to_lowercase());
        let what = counter[3].to_lowercase();
        if object != "process" {
            // `Processor Information` puts the group before the number: `0,3`.
            let instance = instance.rsplit(',').next().unwrap_or(&instance).to_owned();
            self.processors.push((instance, what, value, line));
        } else if what == "processor" {
            let name = counter[2].split('#').next().unwrap_or_default();
            self.processes.push((name.to_owned(), value, line));
        }
    }

    /// Puts the moment into the evidence.
    fn close(self, reading: &mut Reading<'_>) {
        let mut instances: Vec<(&str, &Line<'_>)> = Vec::new();
        for (instance, _, _, line) in &self.processors {
            if instances.iter().all(|(known, _)| known != instance) {
                instances.push((instance, line));
            }
        }
        for (instance, line) in instances {
            let value = |wanted: &str| {
                let mut own = self.processors.iter().filter(|(name, ..)| name == instance);
                own.find(|(_, what, ..)| what == wanted).map(|(_, _, value, _)| *value)
            };
            let idle = value("idle");
            let all = value("processor").or(idle.map(|idle| 100.0 - idle));
            let parts = value("user").zip(value("privileged"));
            let Some(all) = all.or(parts.map(|(user, system)| user + system)) else { continue };
            let mut used: CpuUse = busy(all, line, reading);
            if let Some(system) = value("privileged") {
                used.system = system;
                used.user = (used.user - system).max(0.0);
            }
            if instance == "_total" {
                reading.evidence.cpu.push(used);
            } else {
                reading.evidence.single_cpus.push(OneCpu { name: instance.to_owned(), used });
            }
        }
        if !self.processes.is_empty() {
            reading.list += 1;
        }
        for (name, percent, line) in self.processes {
            if let Some(thread) = process(&name, line, reading) {
                let cpu_percent = Some(percent);
                reading.evidence.threads.push(Thread { cpu_percent, ..thread });
            }
        }
    }
}

/// Whether a line begins counters.
pub(crate) fn begins(text: &str) -> bool {
    text.starts_with("\"(PDH-CSV") && COUNTER.is_match(text)
        || text.starts_with("Timestamp ") && text.ends_with("CounterSamples")
        || text.starts_with("LoadPercentage")
        || text.contains(r"\\") && text.ends_with(':') && COUNTER.is_match(text)
}

/// Reads counters.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut headings: Vec<Option<regex::Captures<'_>>> = Vec::new();
    let mut waiting: Option<regex::Captures<'_>> = None;
    let mut moment = Moment::default();
    let mut loads: Vec<(f64, &Line<'_>)> = Vec::new();
    let mut load = false;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("Timestamp ") || text.starts_with("---") {
            continue;
        }
        if let Some(rest) = text.strip_prefix("LoadPercentage") {
            load = true;
            loads.extend(number::plain(rest.trim_start_matches('=')).map(|share| (share, line)));
        } else if text.starts_with("\"(PDH-CSV") {
            headings = text.split("\",\"").map(|name| COUNTER.captures(name)).collect();
        } else if text.starts_with('"') && !headings.is_empty() {
            let mut row = Moment::default();
            for (heading, cell) in headings.iter().zip(text.split("\",\"")) {
                let value = number::plain(&cell.trim_matches('"').replace(',', "."));
                if let (Some(counter), Some(value)) = (heading, value) {
                    row.add(counter, value, line);
                }
            }
            row.close(reading);
        } else if let Some(counter) = COUNTER.captures(text) {
            // A time of day before the first counter begins another moment.
            if !text.starts_with('\\') {
                std::mem::take(&mut moment).close(reading);
            }
            waiting = Some(counter);
        } else if let (Some(counter), Some(value)) =
            (waiting.as_ref(), number::plain(&text.replace(',', ".")))
        {
            moment.add(counter, value, line);
            waiting = None;
        } else if let Some(share) = number::plain(text).filter(|share| load && *share <= 100.0) {
            loads.push((share, line));
        } else if !is_end_of_typeperf(text) {
            reading.leave(line);
        }
    }
    moment.close(reading);
    // One figure a socket.
    if let Some((_, line)) = loads.last() {
        let mean = loads.iter().map(|(share, _)| share).sum::<f64>() / loads.len() as f64;
        let used = busy(mean, line, reading);
        reading.evidence.cpu.push(used);
    }
}

fn is_end_of_typeperf(text: &str) -> bool {
    text.starts_with("Exiting, please wait") || text == "The command completed successfully."
}
