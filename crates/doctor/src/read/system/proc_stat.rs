//! `/proc/stat`, and what two readings of it show.
//!
//! It counts since boot, so it says nothing alone: [`finish`] takes the difference of two readings
//! of one host. The ticks of `/proc/stat` sum to the time that passed on all CPUs, so no clock is
//! needed for shares; threads need one (a timestamp, `/proc/uptime`), or the ticks.

use crate::evidence::{CpuUse, Evidence, Number, Table};
use crate::read::host::tasks::{Interval, TICKS_PER_SECOND};
use crate::read::host::{self, tasks};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

const CPU_FIGURES: [&str; 8] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Reads `/proc/stat`.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("proc_stat").taken(section.hint.time_s);
    let mut cpus = 0;
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words.as_slice() {
            ["cpu", ticks @ ..] => {
                for (name, ticks) in CPU_FIGURES.iter().zip(ticks) {
                    table.counter(&format!("{name}_ticks"), number::plain(ticks), line);
                }
            }
            [cpu, ..] if cpu.starts_with("cpu") => {
                cpus += 1;
                reading.evidence.host.cpus = Some(reading.said(cpus, line));
            }
            [name @ ("ctxt" | "processes"), value, ..] => {
                table.counter(name, number::plain(value), line)
            }
            [name @ ("procs_running" | "procs_blocked"), value, ..] => {
                table.gauge(name, number::plain(value), line)
            }
            [name @ ("intr" | "softirq"), value, ..] => {
                table.counter(name, number::plain(value), line)
            }
            ["btime", ..] | [] => {}
            _ => reading.leave(line),
        }
    }
    reading.push(table);
}

/// Whether a line is that of `/proc/uptime`, or of a time of capture.
pub(crate) fn is_uptime(text: &str) -> bool {
    let is_exact = |word: &str| {
        let fraction = word.split_once('.').map(|(_, fraction)| fraction.len());
        fraction == Some(2) && number::plain(word).is_some()
    };
    match text.split(' ').collect::<Vec<_>>()[..] {
        [up, idle] => is_exact(up) && is_exact(idle),
        ["begin", from, "end", to] => number::plain(from).and(number::plain(to)).is_some(),
        _ => false,
    }
}

/// Reads `/proc/uptime` and files that hold a time of capture.
pub(crate) fn read_uptime(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words.as_slice() {
            [up, _idle] => {
                if let Some(up) = number::plain(up) {
                    reading.evidence.host.uptime_s = Some(reading.said(up, line));
                }
            }
            ["begin", from, "end", _to] => {
                let mut table = reading.table("captured").taken(number::plain(from));
                table.gauge("begin_s", number::plain(from), line);
                reading.push(table);
            }
            _ => reading.leave(line),
        }
    }
}

fn figure(table: &Table, name: &str) -> Option<f64> {
    let figure = table.figures.iter().find(|figure| figure.name == name)?;
    match figure.value {
        Number::Counter(value) | Number::Gauge(value) | Number::Rate(value) => Some(value),
        Number::Text(_) => None,
    }
}

/// Adds what only two readings show: use of the CPUs, and CPU of each thread.
pub(crate) fn finish(evidence: &mut Evidence) {
    let readings: Vec<&Table> =
        evidence.tables.iter().filter(|table| table.name == "proc_stat").collect();
    let ticks = |table: &Table| -> Vec<f64> {
        CPU_FIGURES.iter().filter_map(|name| figure(table, &format!("{name}_ticks"))).collect()
    };
    let look = tasks::look(evidence);
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
            // What looking took is nobody's use of the machine.
            for (at, seconds) in [(0, look.0), (2, look.1)] {
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
                since_boot: false,
                source: figure.source.clone(),
            });
        }
    }
    evidence.cpu.extend(found);
    let seconds = captured_interval(evidence).or(interval_s).filter(|seconds| *seconds > 0.0);
    host::finish(evidence, seconds.map(|seconds| Interval { seconds, busy_percent }));
}

/// Seconds between the times of capture that were given.
fn captured_interval(evidence: &Evidence) -> Option<f64> {
    let times: Vec<f64> = evidence
        .tables
        .iter()
        .filter(|table| table.name == "captured")
        .filter_map(|table| figure(table, "begin_s"))
        .collect();
    match times[..] {
        [first, .., last] => Some((last - first).abs()),
        _ => None,
    }
}

/// Claims lines of files of `/proc` that carry nothing the evidence asks for.
pub(crate) fn read_nothing(_: &Section<'_>, _: &mut Reading<'_>) {}
