//! Lock profilers: illumos and FreeBSD `lockstat`, `plockstat`, `perf lock contention`,
//! `/proc/lock_stat`. `ogive_profile` parses their tables.
//!
//! Rows are ranked by lost time, not by count: a lock that is taken rarely but held long costs
//! more.

use ogive_profile::locks::{self, LockRow, LockTable};

use crate::evidence::{Frame, LockUse, Profile, Source, Stack};
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// The heading of lockstat, for rows without one.
const LOCKSTAT: &str = "Count indv cuml rcnt nsec Lock Caller";

/// Whether a line is a row of lockstat.
pub(crate) fn is_lockstat_row(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [count, part, sum, rest, mean, _, _, ..] = words[..] else { return false };
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_percent = |text: &str| text.strip_suffix('%').is_some_and(is_whole);
    is_whole(count)
        && is_percent(part)
        && is_percent(sum)
        && rest.contains('.')
        && rest.parse::<f64>().is_ok()
        && is_whole(mean)
}

/// Whether a line begins lockstat: a heading, or a number of events of one kind.
pub(crate) fn begins_lockstat(text: &str) -> bool {
    word_lists::begin_words("Count indv cuml rcnt|Count indv cuml genr", text)
        || text.split_once(": ").is_some_and(|(kind, rest)| {
            kind.starts_with(|c: char| c.is_ascii_uppercase())
                && word_lists::begin_words("* events in * seconds", rest)
        })
}

/// Whether a line begins plockstat: a heading, or the kind of event that it counts.
pub(crate) fn begins_plockstat(text: &str) -> bool {
    const LOCKS: [&str; 3] = ["Mutex ", "R/W reader ", "R/W writer "];
    const EVENTS: [&str; 4] = ["block", "hold", "spin", "unsuccessful spin"];
    let mut events = LOCKS.iter().filter_map(|lock| text.strip_prefix(lock));
    word_lists::begin_words("Count nsec Lock Caller", text)
        || events.any(|event| EVENTS.contains(&event))
}

/// Reads a table of any of these tools.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let bare = section.lines.first().is_some_and(|line| is_lockstat_row(&line.text));
    let heading = bare.then_some(LOCKSTAT);
    let lines = section.lines.iter().map(|line| line.text.trim());
    let text: Vec<&str> = heading.into_iter().chain(lines).collect();
    let Ok(table) = locks::read(&text.join("\n")) else {
        section.lines.iter().for_each(|line| reading.leave(line));
        return;
    };
    let line_of = |number: usize| section.lines.get(number.checked_sub(1 + usize::from(bare))?);
    let mut sampled: Vec<Stack> = Vec::new();
    for row in &table.rows {
        let Some(line) = line_of(row.line) else { continue };
        let source = reading.at(line);
        // With -I, lockstat interrupts each CPU: these rows are samples of functions, not locks.
        if row.lock.starts_with("cpu[") {
            let (frames, weight) = (callers(row), row.waits as f64);
            sampled.push(Stack { thread: None, process: None, frames, weight, source });
        } else {
            reading.evidence.locks.push(lock_use(&table, row, source));
        }
    }
    for line in table.unread.iter().filter_map(|number| line_of(*number)) {
        reading.leave(line);
    }
    if !sampled.is_empty() {
        let samples = sampled.iter().map(|stack| stack.weight as u64).sum();
        reading.evidence.profiles.push(Profile {
            stacks: sampled,
            samples: Some(samples),
            weighted: true,
            ..Profile::default()
        });
    }
}

/// The callers of a row, nearest first.
fn callers(row: &LockRow) -> Vec<Frame> {
    let own = (!row.caller.is_empty()).then_some(&row.caller);
    let frames = own.into_iter().chain(&row.stack);
    frames.map(|function| frame::frame(function, None)).collect()
}

/// A row, with its share of the table's lost time.
fn lock_use(table: &LockTable, row: &LockRow, source: Source) -> LockUse {
    // A row without a kind has a thread here, not a caller.
    let is_thread = row.lock.is_empty() && row.kind.is_empty();
    let lock = if row.lock.is_empty() { &row.caller } else { &row.lock };
    LockUse {
        lock: lock.clone(),
        callers: if is_thread { Vec::new() } else { callers(row) },
        count: Some(row.waits),
        wait_ns: row.total_wait_ns.map(|nanoseconds| nanoseconds as f64),
        percent: row.total_wait_ns.map(|_| table.share(row) * 100.0),
        kind: if row.kind.is_empty() { "lock".to_owned() } else { row.kind.to_lowercase() },
        source,
    }
}
