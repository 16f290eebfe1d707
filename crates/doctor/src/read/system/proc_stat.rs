//! `/proc/stat`, and the difference of two readings.
//!
//! It counts since boot, so one reading shows nothing: [`finish`] subtracts two readings of one
//! host. The ticks of `/proc/stat` add up to the time that passed on all CPUs, so shares need no
//! clock. Threads need one: a timestamp, `/proc/uptime`, or these ticks.

use crate::evidence::{CpuUse, Evidence, Table};
use crate::read::host::tasks::{Interval, TICKS_PER_SECOND};
use crate::read::host::{self, tasks};
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

const CPU_FIGURES: [&str; 8] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Adds the facts that need two readings: the use of the CPUs, and the CPU of each thread.
pub(crate) fn finish(evidence: &mut Evidence) {
    let readings: Vec<&Table> =
        evidence.tables.iter().filter(|table| table.name == "proc_stat").collect();
    let ticks = |table: &Table| -> Vec<f64> {
        CPU_FIGURES.iter().filter_map(|name| table.value(&format!("{name}_ticks"))).collect()
    };
    let by_capture = tasks::used_by_capture(evidence);
    let mut interval_s = None;
    let mut busy_percent = None;
    let mut found = None;
    if let [first, .., last] = readings[..] {
        let (mut earlier, mut later) = (ticks(first), ticks(last));
        if earlier.iter().sum::<f64>() > later.iter().sum::<f64>() {
            std::mem::swap(&mut earlier, &mut later);
        }
        let mut passed: Vec<f64> =
            later.iter().zip(&earlier).map(|(later, earlier)| (later - earlier).max(0.0)).collect();
        let all: f64 = passed.iter().sum();
        if all > 0.0 && passed.len() >= 4 {
            let cpus = evidence.host.cpus.as_ref().map_or(1.0, |cpus| f64::from(cpus.value.max(1)));
            interval_s = Some(all / TICKS_PER_SECOND / cpus);
            // The CPU time of the capture itself is subtracted.
            for (at, seconds) in [(0, by_capture.0), (2, by_capture.1)] {
                passed[at] = (passed[at] - seconds * TICKS_PER_SECOND).max(0.0);
            }
            let all = passed.iter().sum::<f64>().max(1.0);
            let part = |at: usize| passed.get(at).copied().unwrap_or(0.0) * 100.0 / all;
            busy_percent = Some((100.0 - part(3) - part(4)) * cpus);
            found = last.figures.first().map(|figure| CpuUse {
                user: part(0) + part(1),
                system: part(2),
                idle: part(3),
                iowait: part(4),
                interrupt: part(5) + part(6),
                steal: part(7),
                is_split: true,
                since_boot: false,
                source: figure.source.clone(),
            });
        }
    }
    evidence.cpu.extend(found);
    let seconds = captured_interval(evidence).or(interval_s).filter(|seconds| *seconds > 0.0);
    host::finish(evidence, seconds.map(|seconds| Interval { seconds, busy_percent }));
}

/// Seconds between the recorded times of capture.
fn captured_interval(evidence: &Evidence) -> Option<f64> {
    let times: Vec<f64> = evidence
        .tables
        .iter()
        .filter(|table| table.name == "captured")
        .filter_map(|table| table.value("begin_s"))
        .collect();
    match times[..] {
        [first, .., last] => Some((last - first).abs()),
        _ => None,
    }
}

/// Claims lines of `/proc` files that the evidence does not need.
pub(crate) fn read_nothing(_: &Section<'_>, _: &mut Reading<'_>) {}
