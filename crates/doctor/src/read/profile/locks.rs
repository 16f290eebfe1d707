//! Lock profilers: illumos and FreeBSD `lockstat`, `plockstat`, `perf lock contention`,
//! `/proc/lock_stat`.
//!
//! A table is ranked by lost time, not by count: a lock taken rarely but held long is the worse
//! one.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{Frame, LockUse, Profile, Stack};
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static LOCKSTAT_ROW: LazyLock<Regex> = LazyLock::new(|| {
    // FreeBSD's lock names may hold blanks, so the caller is taken from the right.
    Regex::new(r"^\s*(\d+)\s+(\d+)%\s+(\d+)%\s+(\d+\.\d+)\s+(\d+)\s+(\S.*?)\s+(\S+)\s*$")
        .expect("a constant pattern")
});
static EVENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Za-z][A-Za-z /_-]+):\s+(\d+) events in ([\d.]+) seconds")
        .expect("a constant pattern")
});
static PLOCKSTAT_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s*$").expect("a constant pattern")
});

/// Whether a line is a row of lockstat.
pub(crate) fn is_lockstat_row(text: &str) -> bool {
    LOCKSTAT_ROW.is_match(text)
}

/// Reads lockstat: one table a kind of event.
pub(crate) fn read_lockstat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut kind = String::from("lock");
    let begun = reading.evidence.locks.len();
    let mut sampled: Vec<Stack> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty()
            || text.starts_with("Count ")
            || text.bytes().all(|byte| byte == b'-' || byte == b' ')
        {
            continue;
        }
        if let Some(found) = EVENT.captures(text) {
            kind = found[1].trim().to_lowercase();
            let mut table = reading.table("lockstat").scope(kind.clone());
            table.gauge("events", number::plain(&found[2]), line);
            table.gauge("seconds", number::plain(&found[3]), line);
            let rate = number::plain(&found[2])
                .zip(number::plain(&found[3]))
                .filter(|(_, seconds)| *seconds > 0.0);
            table.rate("events_per_s", rate.map(|(events, seconds)| events / seconds), line);
            reading.push(table);
            continue;
        }
        if let Some(found) = LOCKSTAT_ROW.captures(&line.text) {
            let count = found[1].parse::<u64>().ok();
            let mean_ns = number::plain(&found[5]);
            let source = reading.at(line);
            // With -I each CPU was interrupted: these are samples of functions, and no locks.
            if let (true, Some(count)) = (found[6].starts_with("cpu["), count) {
                sampled.push(Stack {
                    thread: None,
                    process: None,
                    frames: vec![frame::frame(&found[7], None)],
                    weight: count as f64,
                    source,
                });
                continue;
            }
            reading.evidence.locks.push(LockUse {
                lock: found[6].to_owned(),
                callers: vec![frame::frame(&found[7], None)],
                count,
                wait_ns: count.zip(mean_ns).map(|(count, mean)| count as f64 * mean),
                percent: number::percent(&found[2]),
                kind: kind.clone(),
                source,
            });
            continue;
        }
        // With -s frames of the stack stand alone below their row.
        let frame_only = line.text.starts_with(' ')
            && !text.contains(' ')
            && (text.contains('`') || text.contains("+0x"));
        match reading.evidence.locks[begun..].last_mut() {
            Some(row) if frame_only && row.callers.len() < 64 => {
                row.callers.push(frame::frame(text, None))
            }
            _ if text.contains("Time Distribution") || text.contains('@') => {}
            _ => reading.leave(line),
        }
    }
    if !sampled.is_empty() {
        let samples = sampled.iter().map(|stack| stack.weight as u64).sum();
        reading.evidence.profiles.push(Profile {
            stacks: sampled,
            rows: Vec::new(),
            samples: Some(samples),
            weighted: true,
            off_cpu: false,
        });
    }
}

/// Reads plockstat: `Count nsec Lock Caller` below a heading such as `Mutex block`.
pub(crate) fn read_plockstat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut kind = String::from("mutex");
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("Count ") || text.starts_with("---") {
            continue;
        }
        if let Some(found) = PLOCKSTAT_ROW.captures(text) {
            let (count, mean_ns) = (found[1].parse::<u64>().ok(), number::plain(&found[2]));
            let source = reading.at(line);
            reading.evidence.locks.push(LockUse {
                lock: found[3].to_owned(),
                callers: vec![frame::frame(&found[4], None)],
                count,
                wait_ns: count.zip(mean_ns).map(|(count, mean)| count as f64 * mean),
                percent: None,
                kind: kind.clone(),
                source,
            });
        } else if text.len() < 40 && text.split_whitespace().count() <= 4 {
            kind = text.to_lowercase();
        } else {
            reading.leave(line);
        }
    }
}

static PERF_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(\d+)\s+([\d.]+ [nuµm]?[smh])\s+([\d.]+ [nuµm]?[smh])\s+([\d.]+ [nuµm]?[smh])\s+(.+)$",
    )
    .expect("a constant pattern")
});
static PERF_STACK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^0x[0-9a-f]+\s+(\S+)(?:\s+\[(\S+)\])?\s*$").expect("a constant pattern")
});

/// Reads `perf lock contention` (by caller, with `-t` by thread, with `-l` by lock, with `-v`
/// stacks) and `perf lock report`.
pub(crate) fn read_perf(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut by_lock = false;
    let mut by_thread = false;
    let begun = reading.evidence.locks.len();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("===") {
            continue;
        }
        if text.contains("contended") && text.contains("total wait") {
            by_lock = text.contains("address") || text.ends_with("symbol");
            by_thread = text.contains("pid") || text.contains("comm");
            continue;
        }
        if let Some(found) = PERF_ROW.captures(text) {
            let words: Vec<&str> = found[5].split_whitespace().collect();
            let last = words.last().copied().unwrap_or_default();
            let known = matches!(
                words[0],
                "spinlock"
                    | "mutex"
                    | "rwlock"
                    | "rwsem"
                    | "rwlock:R"
                    | "rwlock:W"
                    | "rwsem:R"
                    | "rwsem:W"
                    | "pcpu-sem:R"
                    | "pcpu-sem:W"
                    | "rt-mutex"
                    | "semaphore"
                    | "optmutex"
            );
            let kind = if known { words[0] } else { "lock" };
            let source = reading.at(line);
            let name =
                if by_lock || by_thread { words.get(1).copied().unwrap_or(last) } else { last };
            reading.evidence.locks.push(LockUse {
                lock: name.to_owned(),
                callers: if by_lock || by_thread {
                    Vec::new()
                } else {
                    vec![frame::frame(last, None)]
                },
                count: found[1].parse().ok(),
                wait_ns: number::seconds(&found[2]).map(|seconds| seconds * 1e9),
                percent: None,
                kind: kind.to_owned(),
                source,
            });
            continue;
        }
        let stack = PERF_STACK
            .captures(text)
            .map(|found| frame::frame(&found[1], found.get(2).map(|module| module.as_str())));
        match (reading.evidence.locks[begun..].last_mut(), stack) {
            (Some(row), Some(frame)) if row.callers.len() < 64 => row.callers.push(frame),
            _ => reading.leave(line),
        }
    }
    percents(&mut reading.evidence.locks[begun..]);
}

/// Shares of the table's lost time where the tool prints none.
fn percents(rows: &mut [LockUse]) {
    let total: f64 = rows.iter().filter_map(|row| row.wait_ns).sum();
    if total > 0.0 {
        for row in rows {
            row.percent = row.wait_ns.map(|wait| wait * 100.0 / total);
        }
    }
}

static LOCK_STAT_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(\S[^:]*(?:-[RW])?):\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)(?:\s+[\d.]+)+$",
    )
    .expect("a constant pattern")
});
static LOCK_STAT_CALLER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\S.*?)\s+(\d+)\s+\[<[0-9a-fx]+>\]\s+(\S+)$").expect("a constant pattern")
});

/// Reads `/proc/lock_stat`: class, bounces, contentions, least, most and all wait (µs); callers
/// below.
pub(crate) fn read_lock_stat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let begun = reading.evidence.locks.len();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty()
            || text.starts_with("lock_stat version")
            || text.starts_with("class name")
            || text.bytes().all(|byte| b"-.: ".contains(&byte))
        {
            continue;
        }
        if let Some(found) = LOCK_STAT_ROW.captures(text) {
            let source = reading.at(line);
            reading.evidence.locks.push(LockUse {
                lock: found[1].to_owned(),
                callers: Vec::new(),
                count: found[3].parse().ok(),
                wait_ns: number::plain(&found[6]).map(|micros| micros * 1e3),
                percent: None,
                kind: "lock".to_owned(),
                source,
            });
            continue;
        }
        let caller: Option<Frame> =
            LOCK_STAT_CALLER.captures(text).map(|found| frame::frame(&found[3], None));
        match (reading.evidence.locks[begun..].last_mut(), caller) {
            (Some(row), Some(frame)) if row.callers.len() < 64 => row.callers.push(frame),
            (Some(_), Some(_)) => {}
            _ => reading.leave(line),
        }
    }
    percents(&mut reading.evidence.locks[begun..]);
}
