//! Counters of Windows: `typeperf`, `Get-Counter`, `wmic cpu get loadpercentage`.
//!
//! A processor's counter is in percent of one CPU, and the counter `_Total` in percent of all CPUs.
//! A process's counter is in percent of one CPU.

use std::collections::HashMap;

use regex::Captures;

use crate::evidence::{CpuUse, OneCpu, Thread};
use crate::pattern::Pattern;
use crate::read::table::{is_idle, program};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static COUNTER: Pattern = Pattern::new(concat!(
    r"(?i)\\(process|processor|processor information)\(([^)]*)\)",
    r"\\% (processor|user|privileged|idle) time",
));

/// A processor or a process at one moment: its name, the line of its first counter, and its shares.
struct Instance<'l> {
    is_process: bool,
    name: String,
    line: &'l Line<'l>,
    shares: HashMap<String, f64>,
}

#[derive(Default)]
struct Moment<'l>(Vec<Instance<'l>>);

impl<'l> Moment<'l> {
    fn add(&mut self, counter: &Captures<'_>, value: f64, line: &'l Line<'l>) {
        let is_process = counter[1].eq_ignore_ascii_case("process");
        // `Processor Information` puts the group before the number: `0,3`.
        let group = counter[2].rfind(',').filter(|_| !is_process);
        let name = &counter[2][group.map_or(0, |at| at + 1)..];
        let is_own = |one: &Instance<'_>| one.is_process == is_process && one.name == name;
        let at = self.0.iter().position(is_own).unwrap_or_else(|| {
            let (name, shares) = (name.to_owned(), HashMap::new());
            self.0.push(Instance { is_process, name, line, shares });
            self.0.len() - 1
        });
        self.0[at].shares.insert(counter[3].to_lowercase(), value);
    }

    /// Adds the moment to the evidence.
    fn close(self, reading: &mut Reading<'_>) {
        reading.list += u32::from(self.0.iter().any(|one| one.is_process));
        for Instance { is_process, name, line, shares } in self.0 {
            let share = |what: &str| shares.get(what).copied();
            if is_process {
                let thread = program(&name, line, reading);
                let cpu_percent = share("processor");
                if !is_idle(&thread.name) && cpu_percent.is_some() {
                    reading.evidence.threads.push(Thread { cpu_percent, ..thread });
                }
                continue;
            }
            let system = share("privileged");
            let all = share("processor").or(share("idle").map(|idle| 100.0 - idle));
            let parts = share("user").zip(system).map(|(user, system)| user + system);
            let Some(all) = all.or(parts) else { continue };
            let used = reading.busy(all, line);
            let is_split = system.is_some();
            let system = system.unwrap_or_default();
            let used = CpuUse { system, user: (used.user - system).max(0.0), is_split, ..used };
            if is_idle(&name) {
                reading.evidence.cpu.push(used);
            } else {
                reading.evidence.single_cpus.push(OneCpu { name, used });
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

/// Lines around counters without information.
const SILENT: [&str; 4] =
    ["Timestamp ", "---", "Exiting, please wait", "The command completed successfully."];

/// Reads counters.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut headings: Vec<Option<Captures<'_>>> = Vec::new();
    let mut waiting: Option<Captures<'_>> = None;
    let mut moment = Moment::default();
    let mut loads: Option<Vec<(f64, &Line<'_>)>> = None;
    let figure = |text: &str| number::plain(&text.trim_matches('"').replace(',', "."));
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || SILENT.iter().any(|begin| text.starts_with(begin)) {
            continue;
        }
        if let Some(rest) = text.strip_prefix("LoadPercentage") {
            let loads = loads.get_or_insert_default();
            loads.extend(figure(rest.trim_start_matches('=')).map(|share| (share, line)));
        } else if text.starts_with("\"(PDH-CSV") {
            headings = text.split("\",\"").map(|name| COUNTER.captures(name)).collect();
        } else if text.starts_with('"') && !headings.is_empty() {
            let mut row = Moment::default();
            for (heading, cell) in headings.iter().zip(text.split("\",\"")) {
                if let Some((counter, value)) = heading.as_ref().zip(figure(cell)) {
                    row.add(counter, value, line);
                }
            }
            row.close(reading);
        } else if let Some(counter) = COUNTER.captures(text) {
            // A time of day before the first counter begins the next moment.
            if !text.starts_with('\\') {
                std::mem::take(&mut moment).close(reading);
            }
            waiting = Some(counter);
        } else if let Some(value) = figure(text) {
            match (waiting.take(), &mut loads) {
                (Some(counter), _) => moment.add(&counter, value, line),
                (None, Some(loads)) if value <= 100.0 => loads.push((value, line)),
                _ => reading.leave(line),
            }
        } else {
            reading.leave(line);
        }
    }
    moment.close(reading);
    // There is one figure per socket.
    let loads = loads.unwrap_or_default();
    if let Some((_, line)) = loads.last() {
        let mean = loads.iter().map(|(share, _)| share).sum::<f64>() / loads.len() as f64;
        let used = reading.busy(mean, line);
        reading.evidence.cpu.push(used);
    }
}
