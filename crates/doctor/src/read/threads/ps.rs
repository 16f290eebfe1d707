//! `ps` in any choice of columns, of Linux, FreeBSD, macOS and busybox, and rows of `ps aux`,
//! `ps -ef` and `ps -e` without their heading.
//!
//! On Linux `%CPU` of ps is an average over the life of the process, so it goes to `life_percent`;
//! a process that began to spin an hour ago hardly shows there. FreeBSD and macOS show what it uses
//! now. Sorted output has its heading anywhere: rows are read under the heading that fits them,
//! whether it stands above or below.

use std::sync::LazyLock;

use regex::Regex;

use super::list::{COMMANDS, List, Percent};
use super::wait_channel;
use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::frame::{self, short_name};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static AUX_ROW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\s*(\S+)\s+(\d+)\s+(\d+(?:[.,]\d+)?)\s+(\d+(?:[.,]\d+)?)\s+(\d+)\s+(\d+)\s+(\S+)\s+([RSDZTtIWXLU][<>NLsl+WEJVXCc]*)\s+(\S+(?:\s+\d\d?)?)\s+(\d[\d:.-]*)\s+(\S.*)$";
    Regex::new(pattern).expect("a constant pattern")
});
/// A row of `ps -ef` or `ps -e`: perhaps owner, number, parent, use and start; terminal and time.
static LONG_TIME_ROW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\s*(?:\S+\s+(\d+)\s+(\d+)\s+(\d+)\s+\S+|(\d+))\s+(?:\?|pts/\d+|tty\w*)\s+((?:\d+-)?\d\d:\d\d:\d\d)\s+(\S.*)$";
    Regex::new(pattern).expect("a constant pattern")
});
/// A row that has a percent or a time among its first words.
static LIKE_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[\w.+-]+\s+){0,6}\d+(?:[.,]\d+|:\d\d\S*)\s+\S").expect("a constant pattern")
});

/// How far below its first row the heading of sorted output is looked for.
const LINES_BEFORE_HEADING: usize = 40;

/// What ps calls its columns; top and others have names beside these.
const NAMES: [&str; 62] = [
    "%CPU", "%MEM", "ADDR", "ARGS", "C", "CLS", "CMD", "COMM", "COMMAND", "CP", "CPU", "EGID",
    "EGROUP", "ELAPSED", "EUID", "EUSER", "F", "FLAGS", "GID", "GROUP", "JID", "LWP", "MAJFL",
    "MAJFLT", "MINFL", "MINFLT", "MWCHAN", "NI", "NLWP", "PCPU", "PGID", "PGRP", "PID", "PMEM",
    "POL", "PPID", "PRI", "PSR", "RSS", "RSZ", "RTPRIO", "RUSER", "S", "SESS", "SID", "SPID",
    "STACKP", "START", "STARTED", "STAT", "STIME", "SZ", "TGID", "THCNT", "TID", "TIME", "TPGID",
    "TT", "TTY", "UID", "USER", "VSZ",
];

/// Whether a line is a row of `ps aux`, `ps -ef` or `ps -e`.
pub(crate) fn is_row(text: &str) -> bool {
    AUX_ROW.is_match(text) || LONG_TIME_ROW.is_match(text)
}

/// Whether a line names the columns of ps.
pub(crate) fn is_heading(text: &str) -> bool {
    let named = || ["COMM", "CMD", "ARGS"].iter().any(|name| text.contains(name));
    if text.len() > 400 || !named() {
        return false;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let known = |word: &&str| NAMES.contains(word) || matches!(*word, "WCHAN" | "UCMD" | "UCOMM");
    let ids = ["PID", "TID", "LWP", "SPID"];
    let figures = ["%CPU", "PCPU", "C", "TIME", "STAT", "S", "WCHAN", "MWCHAN"];
    if words.len() >= 2 && words.iter().all(known) {
        return has(&COMMANDS) && (has(&ids) || has(&figures));
    }
    let foreign = |word: &&str| {
        word.starts_with('#')
            || matches!(*word, "TIME+" | "WCPU" | "VIRT" | "KSTACK" | "%VSZ" | "SYSCPU" | "DSK")
    };
    has(&ids)
        && has(&COMMANDS)
        && has(&["STAT", "S", "TTY", "TT", "STARTED", "ELAPSED", "VSZ", "TIME", "PPID", "WCHAN"])
        && !words.iter().any(foreign)
}

/// Whether the first of `lines` is of ps: a heading, a row of `ps aux`, or a row of sorted output
/// whose heading comes soon.
pub(crate) fn begins(lines: &[Line<'_>]) -> bool {
    let Some(first) = lines.first().map(|line| line.text.trim()) else { return false };
    if is_heading(first) || is_row(first) {
        return true;
    }
    if !LIKE_ROW.is_match(first) {
        return false;
    }
    let near = lines.iter().take(LINES_BEFORE_HEADING).map(|line| line.text.trim());
    let heading = near.take_while(|text| !text.is_empty()).find(|text| is_heading(text));
    heading.and_then(|text| List::under(text, Percent::Life)).is_some_and(|list| list.fits(first))
}

/// Reads the list.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut lists: Vec<(List<'_>, u32)> = Vec::new();
    let mut waiting: Vec<&Line<'_>> = Vec::new();
    // Rows that stand before a heading are of its list.
    reading.list += 1;
    let mut headless = true;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_heading(text) {
            if !std::mem::take(&mut headless) {
                reading.list += 1;
            }
            if let Some(list) = List::under(text, percent_of(text, reading)) {
                waiting.retain(|line| !take(&list, line, reading));
                lists.push((list, reading.list));
            }
            continue;
        }
        let taken = lists.last().is_some_and(|(list, _)| take(list, line, reading));
        if taken {
            continue;
        }
        let thread = by_pattern(text, line, reading).or_else(|| with_time(text, line, reading));
        match thread {
            Some(thread) => reading.evidence.threads.push(thread),
            None => waiting.push(line),
        }
    }
    let last = reading.list;
    for line in waiting {
        let taken = lists.iter().rev().any(|(list, number)| {
            reading.list = *number;
            take(list, line, reading)
        });
        if !taken {
            reading.leave(line);
        }
    }
    reading.list = last;
}

fn take(list: &List<'_>, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let thread = list.row(line.text.trim(), line, reading);
    let taken = thread.is_some();
    if let Some(thread) = &thread {
        wait_channel::note(list, line.text.trim(), thread, reading);
    }
    reading.evidence.threads.extend(thread);
    taken
}

/// What the percent under a heading is of.
fn percent_of(heading: &str, reading: &Reading<'_>) -> Percent {
    const BSD: [&str; 11] =
        ["USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TT", "STAT", "STARTED", "TIME", "COMMAND"];
    let bsd_names =
        heading.split_whitespace().any(|word| matches!(word, "COMM" | "ARGS" | "UCOMM"));
    let seen = &reading.evidence.host.os_seen;
    let is_bsd = |name: &str| matches!(name, "macos" | "freebsd");
    let bsd_seen = !seen.is_empty() && seen.iter().all(|system| is_bsd(&system.value));
    if bsd_names || bsd_seen || heading.split_whitespace().eq(BSD) {
        Percent::OneCpu
    } else {
        Percent::Life
    }
}

/// A row of `ps aux` without its heading.
fn by_pattern(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    let found = AUX_ROW.captures(text)?;
    let percent = number::percent(&found[3]);
    // Linux has `?` for no terminal, macOS `??`, FreeBSD `-`.
    let (now, life) =
        if matches!(&found[7], "??" | "-") { (percent, None) } else { (None, percent) };
    // `ps f` draws a tree in front of the command.
    let raw = found[11].trim_start_matches(['\\', '_', '|', ' ', '`', '-']);
    let (name, dressed) = frame::thread(raw);
    let state = found[8].chars().next();
    let kernel = dressed.or((&found[5] == "0").then_some(true)).filter(|_| state != Some('Z'));
    Some(Thread {
        command: name.contains(' ').then(|| name.clone()),
        id: found[2].parse().ok(),
        kernel,
        state,
        cpu_percent: now,
        life_percent: life,
        cpu_time_s: number::cpu_seconds(&found[10]),
        ..reading.thread(short_name(&name), line)
    })
}

/// A row of `ps -ef` or `ps -e` without its heading.
fn with_time(text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
    let found = LONG_TIME_ROW.captures(text)?;
    let figure = |at: usize| found.get(at).map(|figure| figure.as_str());
    let (name, dressed) = frame::thread(&found[6]);
    Some(Thread {
        command: name.contains(' ').then(|| name.clone()),
        id: figure(1).or(figure(4)).and_then(|id| id.parse().ok()),
        kernel: dressed.or((figure(2) == Some("2")).then_some(true)),
        life_percent: figure(3).and_then(number::percent),
        cpu_time_s: number::cpu_seconds(&found[5]),
        ..reading.thread(short_name(&name), line)
    })
}
