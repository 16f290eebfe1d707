//! `/proc/stat`, `/proc/PID/stat` of all threads, and what two readings of them show.
//!
//! These files count since boot, so they say nothing alone: [`finish`] takes the difference of two
//! readings of one host. The ticks of `/proc/stat` sum to the time that passed on all CPUs, so no
//! clock is needed for shares; threads need one (a timestamp, `/proc/uptime`), or the ticks.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::evidence::{CpuUse, Evidence, Number, Table, Thread};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Ticks a second in what Linux shows to programs, on all architectures it shows ZFS on.
const TICKS_PER_SECOND: f64 = 100.0;

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

static TASK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:(\d+) )?(\d+) \((.*)\) ([A-Za-z]) ((?:-?\d+ ?){20,})$")
        .expect("a constant pattern")
});

/// Whether a line is the `stat` of a thread.
pub(crate) fn is_task(text: &str) -> bool {
    TASK.is_match(text.trim())
}

/// Reads lines of `/proc/PID/stat`, with the process before the thread where both are listed.
pub(crate) fn read_tasks(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        let Some(found) = TASK.captures(text) else {
            if !text.starts_with('#') {
                reading.leave(line);
            }
            continue;
        };
        let fields: Vec<&str> = found[5].split_whitespace().collect();
        let ticks =
            |at: usize| fields.get(at).and_then(|field| number::plain(field)).unwrap_or(0.0);
        let parent = fields.first().copied().unwrap_or("0");
        let row = reading.thread(found[3].to_owned(), line);
        reading.evidence.threads.push(Thread {
            id: found[2].parse().ok(),
            kernel: Some(parent == "2" || &found[2] == "2"),
            state: found[4].chars().next(),
            // utime and stime are fields 14 and 15, the parent is field 4.
            cpu_time_s: Some((ticks(10) + ticks(11)) / TICKS_PER_SECOND),
            process: found.get(1).and_then(|process| process.as_str().parse().ok()),
            ..row
        });
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

/// The folder and file of an input's name: pairs are files of one name in `start` and `end`.
fn pair_key(input: &str) -> (&str, &str) {
    for (mark, side) in [("start/", "start"), ("end/", "end")] {
        if let Some(at) = input.find(mark).filter(|&at| at == 0 || input.as_bytes()[at - 1] == b'/')
        {
            return (side, &input[at + mark.len()..]);
        }
    }
    ("", input)
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
    let mut interval_s = None;
    let mut found = None;
    if let [first, .., last] = readings[..] {
        let (mut earlier, mut later) = (ticks(first), ticks(last));
        if earlier.iter().sum::<f64>() > later.iter().sum::<f64>() {
            std::mem::swap(&mut earlier, &mut later);
        }
        let passed: Vec<f64> =
            later.iter().zip(&earlier).map(|(later, earlier)| (later - earlier).max(0.0)).collect();
        let all: f64 = passed.iter().sum();
        if all > 0.0 && passed.len() >= 4 {
            let part = |at: usize| passed.get(at).copied().unwrap_or(0.0) * 100.0 / all;
            let cpus = evidence.host.cpus.as_ref().map_or(1.0, |cpus| f64::from(cpus.value.max(1)));
            interval_s = Some(all / TICKS_PER_SECOND / cpus);
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
    let clock = captured_interval(evidence);
    if let Some(interval_s) = clock.or(interval_s).filter(|interval| *interval > 0.0) {
        pair_threads(evidence, interval_s);
    }
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

/// One list of threads read twice becomes one list with CPU over the interval.
fn pair_threads(evidence: &mut Evidence, interval_s: f64) {
    let mut earlier: HashMap<(String, u64), f64> = HashMap::new();
    let mut later_files: Vec<Arc<str>> = Vec::new();
    for thread in &evidence.threads {
        let (side, file) = pair_key(&thread.source.input);
        match (side, thread.id, thread.cpu_time_s) {
            ("start", Some(id), Some(time_s)) => {
                earlier.insert((format!("{file} {}", thread.name), id), time_s);
            }
            ("end", ..) if !later_files.contains(&thread.source.input) => {
                later_files.push(Arc::clone(&thread.source.input))
            }
            _ => {}
        }
    }
    if earlier.is_empty() || later_files.is_empty() {
        return;
    }
    for thread in &mut evidence.threads {
        let (side, file) = pair_key(&thread.source.input);
        let (Some(id), Some(time_s)) = (thread.id, thread.cpu_time_s) else { continue };
        if side == "end" {
            // A thread that was not there before has used all its time in between.
            let before =
                earlier.get(&(format!("{file} {}", thread.name), id)).copied().unwrap_or(0.0);
            thread.cpu_percent = Some(((time_s - before).max(0.0) * 100.0 / interval_s).min(100.0));
        }
    }
    // The earlier reading of each thread has served; processes that are also listed by thread would
    // count twice.
    let by_thread = later_files.iter().any(|file| file.contains("thread"));
    evidence.threads.retain(|thread| {
        let (side, file) = pair_key(&thread.source.input);
        side != "start" && !(side == "end" && by_thread && file.contains("process"))
    });
}

/// Reads `/proc/diskstats`.
pub(crate) fn read_disks(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [_, _, device, reads, _, read, _, writes, _, written, _, _, busy_ms, ..] = words[..]
        else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("diskstats").scope(device).taken(section.hint.time_s);
        let bytes = |sectors: &str| number::plain(sectors).map(|sectors| sectors * 512.0);
        table.counter("reads", number::plain(reads), line);
        table.counter("read_bytes", bytes(read), line);
        table.counter("writes", number::plain(writes), line);
        table.counter("written_bytes", bytes(written), line);
        table.counter("busy_ms", number::plain(busy_ms), line);
        reading.push(table);
    }
}

/// Claims lines of files of `/proc` that carry nothing the evidence asks for.
pub(crate) fn read_nothing(_: &Section<'_>, _: &mut Reading<'_>) {}
