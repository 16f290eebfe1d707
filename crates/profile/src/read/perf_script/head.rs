//! Reads the head line of a sample: `comm  pid/tid [cpu] flags  time:  period event: rest`. `-F`
//! can leave out any of these fields.
//!
//! Names of threads contain blanks, colons, brackets and numbers. So reading starts from parts that
//! no name has: the time, or the CPU, and the numbers before it. If both are missing, the rest of
//! the text must show which fields its lines have ([`Fields`]).

use super::frame::{Frame, address_of};
use crate::model::{CPU_UNKNOWN, event_base};

/// Words of a line that are examined.
const WORDS_MAX: usize = 80;
/// Words of an event's name at most: `raw 0x1a8`.
const EVENT_WORDS_MAX: usize = 4;
/// `perf script` pads a period to at least 10 columns, and a thread's number to 7 or fewer.
const PERIOD_COLUMNS: usize = 10;

/// The head line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'t> {
    /// The thread's name; empty if it is missing.
    pub name: &'t str,
    /// The process; -1 if it is missing.
    pub pid: i32,
    /// The thread; -1 if it is missing.
    pub tid: i32,
    /// The CPU; [`CPU_UNKNOWN`] if it is missing.
    pub cpu: u32,
    /// The time; 0 if it is missing.
    pub time_ns: u64,
    /// The weight of the sample, if the line has it.
    pub period: Option<u64>,
    /// The event without its colon; empty if it is missing.
    pub event: &'t str,
    /// The text after the event.
    pub rest: &'t str,
}

/// The fields that the lines of a text have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fields {
    /// The thread's number, alone or after that of the process.
    pub(super) ids: bool,
    pub(super) period: bool,
    pub(super) event: bool,
    /// Whether the frame is in the same line, because the recording has no call graphs.
    pub(super) frame: bool,
}

/// A word of a line and its position.
#[derive(Debug, Clone, Copy)]
struct Word<'t> {
    at: usize,
    text: &'t str,
}

impl Word<'_> {
    fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

impl<'t> Head<'t> {
    /// A sample without any field.
    pub(super) const EMPTY: Self = Self {
        name: "",
        pid: -1,
        tid: -1,
        cpu: CPU_UNKNOWN,
        time_ns: 0,
        period: None,
        event: "",
        rest: "",
    };

    /// The frame at the end of the line, in a recording without call graphs.
    pub fn frame(&self) -> Option<Frame<'t>> {
        Frame::at_end(self.rest)
    }

    /// Whether it has a thread's number.
    pub(super) fn has_ids(&self) -> bool {
        self.tid != -1 || self.pid != -1 || self.name == ":-1"
    }

    /// Reads a line with a time or a CPU. `ids` is whether the lines of this text have the thread's
    /// number; if not, a number before the time is part of the name.
    pub(super) fn with_time_or_cpu(line: &'t str, ids: bool) -> Option<Self> {
        if !may_have_time_or_cpu(line) {
            return None;
        }
        let words = words(line);
        let words = without_guest(&words);
        let has_time = words.iter().any(|word| time_ns(word.text).is_some());
        let mut without_ids = None;
        for (at, word) in words.iter().enumerate() {
            let (time, before) = if has_time {
                let Some(time) = time_ns(word.text) else { continue };
                (time, at)
            } else {
                // The CPU marks the position instead of the time, and stays in front.
                if cpu(word.text).is_none() {
                    continue;
                }
                (0, at + 1)
            };
            let mut after = &words[at + 1..];
            if let [mode, rest @ ..] = after
                && !has_time
                && !rest.is_empty()
                && is_mode(mode.text)
            {
                after = rest;
            }
            let Some(tail) = Tail::parse(line, after, true) else { continue };
            match Self::task(line, &words[..before], ids) {
                Some(task) => return Some(tail.of(Self { time_ns: time, ..task })),
                None if has_time && !tail.event.is_empty() && (at > 0 || tail.ends_there()) => {
                    let task = Self::task(line, &words[..before], false);
                    without_ids =
                        without_ids.or(task.map(|task| tail.of(Self { time_ns: time, ..task })));
                }
                None => {}
            }
        }
        without_ids
    }

    /// Name, numbers and CPU; with `ids`, only if the numbers are there.
    fn task(line: &'t str, words: &[Word<'t>], ids: bool) -> Option<Self> {
        let words = without_time_of_day(words);
        for skipped in 0..=1 {
            let end = words.len().checked_sub(skipped)?;
            if skipped == 1 && !is_misc(words[end].text) {
                break;
            }
            let (mut rest, mut on) = (&words[..end], CPU_UNKNOWN);
            if let Some((last, before)) = rest.split_last()
                && let Some(number) = cpu(last.text)
            {
                (rest, on) = (before, number);
            }
            if !ids {
                let name = rest.last().map_or("", |last| line[..last.end()].trim());
                return Some(Self { name, cpu: on, ..Self::EMPTY });
            }
            if let Some((last, _)) = rest.split_last()
                && let Some((pid, tid)) = numbers(last.text)
            {
                let first = rest.first().map_or(last.at, |first| first.at);
                let name = line[first..last.at].trim();
                return Some(Self { name, pid, tid, cpu: on, ..Self::EMPTY });
            }
        }
        None
    }

    /// Reads a line with neither time nor CPU.
    pub(super) fn with_fields(line: &'t str, fields: Fields) -> Option<Self> {
        let words = words(line);
        let words = without_guest(&words);
        let (mut before, tail) = if fields.event {
            let (at, tail) = last_event(line, words)?;
            (&words[..at], tail)
        } else if fields.frame {
            let at = address_at(line, words)?;
            (&words[..at], Tail { period: None, event: "", rest: &line[words[at].at..] })
        } else {
            (words, Tail { period: None, event: "", rest: "" })
        };
        let mut task = Self::EMPTY;
        let mut period = None;
        if fields.period
            && let Some((last, rest)) = before.split_last()
            && let Ok(number) = last.text.parse()
            && (!fields.ids || is_period(rest.last(), last))
        {
            (before, period) = (rest, Some(number));
        }
        if fields.ids
            && let Some((last, rest)) = before.split_last()
            && let Some((pid, tid)) = numbers(last.text)
        {
            (before, task.pid, task.tid) = (rest, pid, tid);
        }
        if let (Some(first), Some(last)) = (before.first(), before.last()) {
            task.name = &line[first.at..last.end()];
        }
        let nothing = task.name.is_empty() && !task.has_ids();
        (!nothing || fields.event).then(|| Tail { period, ..tail }.of(task))
    }

    /// The fields of a line with neither time nor CPU.
    pub(super) fn fields_of(line: &'t str, with_frame: bool) -> Option<Fields> {
        let words = words(line);
        let words = without_guest(&words);
        let (mut before, event) = match last_event(line, words) {
            Some((at, _)) => (&words[..at], true),
            None if with_frame => (&words[..address_at(line, words)?], false),
            None => (words, false),
        };
        let mut fields = Fields { event, frame: with_frame, ..Fields::default() };
        if let Some((last, rest)) = before.split_last()
            && last.text.bytes().all(|byte| byte.is_ascii_digit())
            && is_period(rest.last(), last)
        {
            (before, fields.period) = (rest, true);
        }
        fields.ids = before.last().is_some_and(|last| numbers(last.text).is_some());
        Some(fields)
    }
}

/// The end of a head line: period, event and the text after it.
#[derive(Debug, Clone, Copy)]
struct Tail<'t> {
    period: Option<u64>,
    event: &'t str,
    rest: &'t str,
}

impl<'t> Tail<'t> {
    /// Reads the words after the thread and the time; `None` if they cannot follow them.
    fn parse(line: &'t str, words: &[Word<'t>], with_period: bool) -> Option<Self> {
        let Some(first) = words.first() else {
            return Some(Self { period: None, event: "", rest: "" });
        };
        if with_period
            && let Ok(period) = first.text.parse()
            && let Some(tail) = Self::parse(line, &words[1..], false)
            && (!tail.event.is_empty() || tail.rest.is_empty() || starts_with_address(tail.rest))
        {
            return Some(Self { period: Some(period), ..tail });
        }
        if is_record(first.text) {
            return Some(Self { period: None, event: first.text, rest: &line[first.end()..] });
        }
        if !(first.text.len() >= 6 && address_of(first.text).is_some()) {
            for word in words.iter().take(EVENT_WORDS_MAX) {
                if is_no_event(word.text) {
                    break;
                }
                if let Some(event) = ends_event(word.text) {
                    let event = &line[first.at..word.at + event.len()];
                    return Some(Self { period: None, event, rest: &line[word.end()..] });
                }
                // A field of a tracepoint instead of a word of an event's name.
                if word.text.contains('=') && !word.text.contains('/') {
                    break;
                }
            }
        }
        let rest = &line[first.at..];
        Frame::at_end(rest)?.is_certain().then_some(Self { period: None, event: "", rest })
    }

    /// Whether only a frame follows the event.
    fn ends_there(&self) -> bool {
        self.rest.trim().is_empty() || Frame::at_end(self.rest).is_some()
    }

    fn of(self, task: Head<'t>) -> Head<'t> {
        let Self { period, event, rest } = self;
        Head { period, event, rest, ..task }
    }
}

/// The word that ends the event of a line without time and CPU, and the event. The last possible
/// word is used, because colons in names precede it.
fn last_event<'t>(line: &'t str, words: &[Word<'t>]) -> Option<(usize, Tail<'t>)> {
    let tail = |word: &Word<'t>, event| Tail { period: None, event, rest: &line[word.end()..] };
    let mut tracepoint = None;
    for (at, word) in words.iter().enumerate().rev() {
        let Some(event) = ends_event(word.text).filter(|_| !is_no_event(word.text)) else {
            continue;
        };
        if at + 1 == words.len() || Frame::at_end(&line[word.end()..]).is_some() {
            return Some((at, tail(word, event)));
        }
        if event_base(event).contains(':') {
            tracepoint = Some((at, tail(word, event)));
        }
    }
    tracepoint
}

/// The word that begins the frame of a line without an event.
fn address_at(line: &str, words: &[Word<'_>]) -> Option<usize> {
    let certain = |at: &usize| {
        let rest = &line[words[*at].at..];
        starts_with_address(rest) && Frame::at_end(rest).is_some_and(|frame| frame.is_certain())
    };
    (0..words.len()).find(certain)
}

fn starts_with_address(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    first.len() >= 5 && address_of(first).is_some()
}

/// Whether a number is a period, by its padding.
fn is_period(before: Option<&Word<'_>>, word: &Word<'_>) -> bool {
    let begins = before.map_or(0, |before| before.end() + 1);
    word.end().saturating_sub(begins) >= PERIOD_COLUMNS
}

/// Whether a word names a record that is not a sample, such as `PERF_RECORD_COMM`.
pub(super) fn is_record(word: &str) -> bool {
    word.starts_with("PERF_RECORD_")
}

fn ends_event(word: &str) -> Option<&str> {
    word.strip_suffix(':').filter(|event| !event.is_empty())
}

/// Whether a word cannot be part of an event's name.
fn is_no_event(word: &str) -> bool {
    cpu(word).is_some() || numbers(word).is_some() || time_ns(word).is_some()
}

/// A cheap test before the full one, because most lines are frames.
fn may_have_time_or_cpu(line: &str) -> bool {
    [": ", "] "].iter().any(|mark| line.contains(mark)) || line.trim_end().ends_with([':', ']'])
}

/// Words with their positions.
fn words(line: &str) -> Vec<Word<'_>> {
    line.split_ascii_whitespace()
        .map(|text| Word { at: text.as_ptr() as usize - line.as_ptr() as usize, text })
        .take(WORDS_MAX)
        .collect()
}

/// Removes the name of the virtual machine.
fn without_guest<'w, 't>(words: &'w [Word<'t>]) -> &'w [Word<'t>] {
    let mut words = words;
    if let [mark, number, rest @ ..] = words
        && mark.text == "VM:"
        && numbers(number.text).is_some()
    {
        words = rest;
    }
    match words {
        [first, rest @ ..] if is_virtual_cpu(first.text) => rest,
        _ => words,
    }
}

fn is_virtual_cpu(word: &str) -> bool {
    word.strip_prefix("VCPU:").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Removes the output of `-F tod`: `2026-01-31 12:00:00.123456`.
fn without_time_of_day<'w, 't>(words: &'w [Word<'t>]) -> &'w [Word<'t>] {
    match words {
        [rest @ .., date, time]
            if date.text.split('-').count() == 3
                && date.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
                && time.text.split(':').count() == 3 =>
        {
            rest
        }
        _ => words,
    }
}

/// Whether a word is the mode of `-F misc` (`K`, `Up`) or the flags of a tracepoint (`d..1.`).
fn is_misc(word: &str) -> bool {
    let flags = matches!(word.len(), 4..=6)
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
        && !word.bytes().all(|byte| byte.is_ascii_digit());
    flags || is_mode(word)
}

fn is_mode(word: &str) -> bool {
    word.len() <= 3 && word.bytes().all(|byte| b"KUHGgMESp".contains(&byte))
}

/// `[003]`.
fn cpu(word: &str) -> Option<u32> {
    word.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Process and thread, or the thread alone.
fn numbers(word: &str) -> Option<(i32, i32)> {
    match word.split_once('/') {
        Some((pid, tid)) => Some((pid.parse().ok()?, tid.parse().ok()?)),
        None => {
            let tid = word.parse().ok()?;
            Some((tid, tid))
        }
    }
}

/// `986.005328:`; some locales write a comma for the point.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once(['.', ','])?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()? * scale;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'t> = (&'t str, i32, i32, u32, u64, Option<u64>, &'t str);

    fn parts(head: Option<Head<'_>>) -> Option<Parts<'_>> {
        head.map(|h| (h.name, h.pid, h.tid, h.cpu, h.time_ns, h.period, h.event))
    }

    const NONE: u32 = CPU_UNKNOWN;

    #[test]
    fn heads_are_read_in_all_forms() {
        let head = |line| parts(Head::with_time_or_cpu(line, true));
        for (line, expected) in [
            (
                "cat  5774 [000]   986.005328:   10101010 cpu-clock:ppp: ",
                ("cat", 5774, 5774, 0, 986_005_328_000, Some(10_101_010), "cpu-clock:ppp"),
            ),
            (
                "   tmux: server 12 7/8 [011] d..1. 1.5: cycles: ",
                ("tmux: server 12", 7, 8, 11, 1_500_000_000, None, "cycles"),
            ),
            (
                ":-1    -1 [001]   910.107090:     250000 cpu-clock: ",
                (":-1", -1, -1, 1, 910_107_090_000, Some(250_000), "cpu-clock"),
            ),
            (
                "java 31 12,000001: 1 cycles:u: ffff0 main (/usr/bin/java)",
                ("java", 31, 31, NONE, 12_000_001_000, Some(1), "cycles:u"),
            ),
            (
                "  dd  7 [001] 5.5: 9 e:  7f1000 f (/x)",
                ("dd", 7, 7, 1, 5_500_000_000, Some(9), "e"),
            ),
            ("pool 12   7 5.5: e:", ("pool 12", 7, 7, NONE, 5_500_000_000, None, "e")),
            ("x [3] 5 7/8 [001] 5.5: e:", ("x [3] 5", 7, 8, 1, 5_500_000_000, None, "e")),
            ("a 1 [2]  7 [001] cpu-clock:", ("a 1 [2]", 7, 7, 1, 0, None, "cpu-clock")),
            ("dd  7/7 [001] K  250000 e:", ("dd", 7, 7, 1, 0, Some(250_000), "e")),
            ("#worker 7 [001] 5.5: e:", ("#worker", 7, 7, 1, 5_500_000_000, None, "e")),
            ("  7/8  [001] 5.5: e:", ("", 7, 8, 1, 5_500_000_000, None, "e")),
            ("dd 7 K 2026-01-31 12:00:00.5 5.5: e:", ("dd", 7, 7, NONE, 5_500_000_000, None, "e")),
            ("VM:  4 VCPU:001 dd 7 5.5: e:", ("dd", 7, 7, NONE, 5_500_000_000, None, "e")),
            ("f 7 [1] 5.5: raw 0x1a8: ", ("f", 7, 7, 1, 5_500_000_000, None, "raw 0x1a8")),
            ("dd 7 5.5:  ffff8000 f ([k])", ("dd", 7, 7, NONE, 5_500_000_000, None, "")),
            (
                "dd 7 5.5:  250000  ffff8000 f ([k])",
                ("dd", 7, 7, NONE, 5_500_000_000, Some(250_000), ""),
            ),
            ("dd 7 5.5: ", ("dd", 7, 7, NONE, 5_500_000_000, None, "")),
            ("dd 5.5: cpu-clock: ", ("dd", -1, -1, NONE, 5_500_000_000, None, "cpu-clock")),
            (
                "f 9566 [001] 1.5: kmem:kfree: call_site=ffffffff81092295 ptr=(nil)",
                ("f", 9566, 9566, 1, 1_500_000_000, None, "kmem:kfree"),
            ),
            (
                "dd 7/7 5.5: PERF_RECORD_COMM exec: dd:7/7",
                ("dd", 7, 7, NONE, 5_500_000_000, None, "PERF_RECORD_COMM"),
            ),
        ] {
            assert_eq!(head(line), Some(expected), "{line}");
        }
        for line in
            ["", "z_rd_int", "[  12.3] dmesg 5 6.5: line", "a;b;c 42", "x 99999999999 [0] 1.0: e:x"]
        {
            assert_eq!(head(line), None, "{line}");
        }
        let without = parts(Head::with_time_or_cpu("worker 12 5.5: e:", false));
        assert_eq!(without, Some(("worker 12", -1, -1, NONE, 5_500_000_000, None, "e")));
    }

    #[test]
    fn heads_without_time_and_cpu_are_read_by_the_fields_of_the_text() {
        let parse = |line, ids, period, event, frame| {
            let fields = Fields { ids, period, event, frame };
            parts(Head::with_fields(line, fields)).map(|h| (h.0, h.2, h.5, h.6))
        };
        for (line, (ids, period, event, frame), expected) in [
            ("java 19983 cycles:", (true, false, true, false), ("java", 19983, None, "cycles")),
            ("f [w] 21332 cycles:", (true, false, true, false), ("f [w]", 21332, None, "cycles")),
            (
                "dd     250000 cpu-clock: ",
                (false, true, true, false),
                ("dd", -1, Some(250_000), "cpu-clock"),
            ),
            ("dd  7     250000 e: ", (true, true, true, false), ("dd", 7, Some(250_000), "e")),
            (
                "worker 12 cpu-clock: ",
                (false, false, true, false),
                ("worker 12", -1, None, "cpu-clock"),
            ),
            ("tmux: server  7 e: ", (true, false, true, false), ("tmux: server", 7, None, "e")),
            ("  dd e:  ffffffff81 f ([k])", (false, false, true, true), ("dd", -1, None, "e")),
            ("  bc  ffffffff81 f ([k])", (false, false, false, true), ("bc", -1, None, "")),
            ("dd", (false, false, false, false), ("dd", -1, None, "")),
            ("dd 7/8 ", (true, false, false, false), ("dd", 8, None, "")),
            (
                "  250000 cpu-clock: ",
                (false, true, true, false),
                ("", -1, Some(250_000), "cpu-clock"),
            ),
        ] {
            assert_eq!(parse(line, ids, period, event, frame), Some(expected), "{line}");
        }
    }
}
