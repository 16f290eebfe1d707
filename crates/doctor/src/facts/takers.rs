//! Programs to which a sentence gives a part of the CPU: "mysqld uses 310% CPU", "java eating
//! 780%", "mysqld uses 3 of 4 cores", a typed row "nginx: 45%".
//!
//! A name and a figure are not enough: a pool is at 90%, too. Where the sentence does not speak of
//! the CPU, the name is one of a program that people know, or the figure one that only CPUs have.

use std::sync::LazyLock;

use regex::Regex;

use super::is_known_program;
use super::threads::looks_like_kernel;
use crate::evidence::Remark;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// A program that has a part of the CPU: who it is, and what it has.
static HAS_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[\s(`'*])(?:process(?:es)?|programs?|daemon|service|command|thread)?\s?",
        r"(?P<name>[a-z][\w./+-]*)[)`'*]*(?: (?:process|program|daemon|service|command|thread)s?)?",
        r" (?:constantly |always |alone |now |then |permanently )?",
        r"(?:is|was|are|sits|stays|runs|uses?|used|takes?|took|has|had|eats?|consumes?|burns?)",
        r"(?: (?:at|up|to|about|around|over|nearly|almost|more|than|between|a|the|full|constantly",
        r"|pegged|pinned|maxed|out|stuck|using|eating|taking|burning|consuming|hogging|sitting",
        r"|hovering|running))*",
        r" ~?(?P<percent>\d+(?:[.,]\d+)?)(?:\s*(?:to|-)\s*\d+)?\s*(?:%|percent)",
    ))
});
/// The same in few words, which need a better name: "java eating 780%", "mysqld at 340%".
static SHORT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[\s(`'*,;])(?:(?P<count>\d{1,4}) ?[x×] )?(?P<name>[a-z][\w./+-]*)[`'*]?(?: (?:process|daemon|service|thread)(?:es|s)?)?",
        r"(?: is| was| are|:)?(?: (?:eating|using|taking|burning|consuming|hogging|chewing|sitting",
        r"|hovering|running|pegged|pinned|maxed|stuck|spinning|up|out|at|to|with|around|about|over",
        r"|nearly|almost))*[ (]+~?(?P<percent>\d+(?:[.,]\d+)?)(?:\s*(?:to|-|–)\s*\d+)?\s*(?:%|percent)",
    ))
});
/// Whole CPUs: "uses 3 of 4 cores", "eats two cores".
static CORES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[\s(`'*])([a-z][\w./+-]*)[`'*]?(?: (?:process|daemon|service|thread)(?:es|s)?)?",
        r"(?: is| was| are)? (?:uses?|using|takes?|taking|eats?|eating|burns?|burning|consumes?",
        r"|consuming|hogs?|hogging|has|fills?|occupies|pegs?|pegging|maxes|maxing)(?: up| out)?",
        r"(?: (?:about|around|nearly|almost|all))? (\d{1,4}|two|three|four|six|eight)",
        r"(?: (?:out )?of (?:the |its |my |our )?\d{1,4})? (?:whole |full )?(?:v?cpus?|cores?)\b",
    ))
});
static CPU: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?i)\b(cpus?|cores?|processors?)\b"));
/// A typed row: nothing but the figure.
static ROW: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)^~?(\d+(?:[.,]\d+)?)\s*%(?: (?:of (?:a |one )?)?(?:cpu|core))?$")
});

/// From here on a percentage is none of a whole.
const MORE_THAN_WHOLE: f64 = 100.5;

/// Words that stand before such a figure and are no program's name.
const NO_PROGRAM: [&str; 80] = [
    "it",
    "this",
    "that",
    "which",
    "who",
    "they",
    "one",
    "each",
    "all",
    "both",
    "none",
    "everything",
    "nothing",
    "something",
    "else",
    "system",
    "kernel",
    "user",
    "idle",
    "iowait",
    "wait",
    "time",
    "load",
    "usage",
    "use",
    "utilization",
    "utilisation",
    "cpu",
    "cpus",
    "core",
    "cores",
    "processor",
    "processors",
    "machine",
    "host",
    "server",
    "node",
    "memory",
    "disk",
    "disks",
    "drive",
    "pool",
    "zfs",
    "arc",
    "interrupts",
    "interrupt",
    "process",
    "processes",
    "program",
    "programs",
    "thread",
    "threads",
    "daemon",
    "service",
    "command",
    "rest",
    "swap",
    "ram",
    "mem",
    "box",
    "vm",
    "vms",
    "guest",
    "space",
    "quota",
    "is",
    "at",
    "sys",
    "usr",
    "average",
    "total",
    "overall",
    "utilized",
    "now",
    "performance",
    "speed",
    "throughput",
    "network",
    "and",
    "with",
];

/// Programs with their percent of one CPU.
pub(super) fn programs(remark: &Remark, text: &str) -> Vec<(String, f64)> {
    if let Some(key) = &remark.key {
        return row(key, &remark.text).into_iter().collect();
    }
    let mut found: Vec<(String, f64)> = Vec::new();
    let of_cpu = CPU.is_match(text);
    for (pattern, is_short) in [(&HAS_CPU, false), (&SHORT, true)] {
        for one in pattern.captures_iter(text) {
            let Some(percent) = figure(&one["percent"]) else { continue };
            let name = one["name"].trim_end_matches(['.', '-', '/']);
            // "5 x java at 170%": each of them.
            let count = one.name("count").and_then(|count| number(count.as_str())).unwrap_or(1.0);
            let named = is_known_program(name);
            let sure = named || percent > MORE_THAN_WHOLE;
            if is_name(name) && (sure || of_cpu && !is_short) {
                add(&mut found, name, percent * count);
            }
        }
    }
    for one in CORES.captures_iter(text) {
        if let Some(count) = number(&one[2]).filter(|_| is_name(&one[1])) {
            add(&mut found, &one[1], count * 100.0);
        }
    }
    found
}

fn add(found: &mut Vec<(String, f64)>, name: &str, percent: f64) {
    if found.iter().all(|(known, _)| known != name) {
        found.push((name.to_owned(), percent));
    }
}

/// A typed row of a list: "nginx: 45%". Its key is in small letters.
fn row(key: &str, text: &str) -> Option<(String, f64)> {
    let percent = figure(&ROW.captures(text.trim())?[1])?;
    let known = is_known_program(key) || looks_like_kernel(key);
    (known && !key.contains(' ')).then(|| (key.to_owned(), percent))
}

fn is_name(name: &str) -> bool {
    !NO_PROGRAM.contains(&name.to_ascii_lowercase().as_str())
}

fn figure(digits: &str) -> Option<f64> {
    digits.replace(',', ".").parse().ok()
}

fn number(word: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 5] =
        [("two", 2.0), ("three", 3.0), ("four", 4.0), ("six", 6.0), ("eight", 8.0)];
    let lower = word.to_ascii_lowercase();
    let by_word = WORDS.iter().find(|(name, _)| *name == lower).map(|(_, count)| *count);
    by_word.or_else(|| lower.parse().ok())
}
