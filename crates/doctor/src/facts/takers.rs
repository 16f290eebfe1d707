//! Programs to which a sentence gives a part of the CPU: "mysqld uses 310% CPU", "java eating
//! 780%", "mysqld uses 3 of 4 cores", a typed row "nginx: 45%".
//!
//! A name and a figure are not enough: a pool is at 90%, too. Where the sentence does not speak of
//! the CPU, the name is one of a program that people know, or the figure one that only CPUs have.

use std::sync::LazyLock;

use regex::Regex;

use super::threads::looks_like_kernel;
use super::{is_known_program, is_zfs_thread};
use crate::evidence::Remark;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// A program that has a part of the CPU: who it is, and what it has.
static HAS_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[\s(`'*])(?:(?:process(?:es)?|programs?|daemon|service|command|thread)\s)?",
        r"(?P<name>[a-z][\w./+-]*)[)`'*]*(?: (?:process|program|daemon|service|command|thread)s?)?",
        r" (?:constantly |always |alone |now |then |permanently )?",
        r"(?:is|was|are|sits|stays|runs|uses?|used|using|takes?|took|taking|has|had|eats?|eating",
        r"|consumes?|consuming|burns?|burning)",
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
        r"|consuming|hogs?|hogging|fills?|occupies|pegs?|pegging|maxes|maxing)(?: up| out)?",
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
const NO_PROGRAM: [&str; 90] = [
    "gpu",
    "laptop",
    "desktop",
    "pc",
    "worker",
    "workers",
    "main",
    "nas",
    "queue",
    "mode",
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

/// What stands between who has the CPU and what he has, and says neither.
static ASIDE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i) \([^()]{0,80}\)",
        r"| (?:[a-z]{3,}ly|always|still|now|then|just|even|again|often|sometimes)\b",
        r"| keeps?\b| kept\b| continues to\b| (?:starts?|begins?|started|began)(?: to)?\b",
    ))
});
/// A tool's row in a sentence: "`top` shows _vnlru_ with 20% CPU".
static SHOWN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:shows?|sees?|seeing|lists?|reports?|reported|has) [`'*_(]{0,2}",
        r"(?P<name>[a-z][\w./+-]*?)[`'*_)]{0,2} (?:process |thread )?(?:is |was )?",
        r"(?:with|at|using|taking|eating|consuming) ~?(?P<percent>\d+(?:[.,]\d+)?) ?%",
        r"(?: of)?(?: the| a| one)? (?:cpu|core)",
    ))
});
/// The word before a name, where names are of two: "The Paseo Supervisor".
static WORD_BEFORE: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?:^|\s)([A-Z][\w.+-]*) $"));

/// A name with the one before it, where both begin with a capital and the first is no article.
fn whole_name(before: &str, name: &str) -> String {
    let is_name = |word: &str| word.starts_with(|c: char| c.is_uppercase());
    match WORD_BEFORE.captures(before) {
        Some(found) if is_name(name) && !ARTICLES.contains(&&found[1]) => {
            format!("{} {name}", &found[1])
        }
        _ => name.to_owned(),
    }
}

/// Whether a subject may begin behind these words: behind "Processes" the word "begin" is none.
fn may_begin(before: &str) -> bool {
    let Some(last) = before.split_whitespace().next_back() else { return true };
    let word = last.trim_matches(|c: char| !c.is_alphanumeric());
    word.len() < last.len()
        || word.parse::<f64>().is_ok()
        || BEFORE_SUBJECT.contains(&word.to_ascii_lowercase().as_str())
}

/// What only CPU is eaten by, where more than a whole is.
static EATS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(?:us(?:es|ed|ing)|eat(?:s|ing)|burn(?:s|ing)|consum(?:es|ing)|hogs|hogging|at)\b",
    )
});
/// "300% more", "45% mem", "98% of the memory": no use of CPU.
static NO_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^ ?(?:of )?(?:the |its |my |our )?(?:more|less|faster|slower|longer|time|mem(?:ory)?|ram",
        r"|vram|swap|disks?|gpu|space|quota|full|free|idle|done|complete|hit|miss|wait|iowait|busy|only at|at night|once|for (?:a|one) (?:second|minute))\b",
    ))
});

/// Words that stand before a subject.
const BEFORE_SUBJECT: [&str; 42] = [
    "x",
    "×",
    "the",
    "a",
    "an",
    "my",
    "our",
    "this",
    "that",
    "and",
    "but",
    "or",
    "when",
    "while",
    "where",
    "because",
    "if",
    "so",
    "since",
    "then",
    "only",
    "one",
    "two",
    "process",
    "program",
    "daemon",
    "service",
    "thread",
    "command",
    "container",
    "task",
    "by",
    "with",
    "of",
    "top",
    "htop",
    "ps",
    "shows",
    "show",
    "see",
    "is",
    "as",
];

const ARTICLES: [&str; 10] =
    ["The", "A", "An", "My", "Our", "This", "That", "When", "While", "Process"];

/// Programs with their percent of one CPU.
pub(super) fn programs(remark: &Remark, text: &str) -> Vec<(String, f64)> {
    if let Some(key) = &remark.key {
        return row(key, &remark.text).into_iter().collect();
    }
    let text = &*ASIDE.replace_all(text, "");
    let mut found: Vec<(String, f64)> = Vec::new();
    let of_cpu = CPU.is_match(text);
    for (pattern, is_short) in [(&HAS_CPU, false), (&SHORT, true)] {
        for one in pattern.captures_iter(text) {
            let Some(percent) = figure(&one["percent"]) else { continue };
            let name = one["name"].trim_end_matches(['.', '-', '/']);
            // "5 x java at 170%": each of them.
            let count = one.name("count").and_then(|count| number(count.as_str())).unwrap_or(1.0);
            let named = is_known_program(name);
            let behind = &text[one.get(0).map_or(0, |found| found.end())..];
            let eats = EATS.is_match(&one[0]);
            let sure = named || percent > MORE_THAN_WHOLE && (of_cpu || eats);
            if NO_CPU.is_match(behind) {
                continue;
            }
            let known = named || looks_like_kernel(name) || is_zfs_thread(name);
            let start = one.name("name").map_or(0, |found| found.start());
            let whole = whole_name(&text[..start], name);
            let before = &text[..start - (whole.len() - name.len())];
            let is_subject = known || may_begin(before);
            if is_name(name) && is_subject && (sure || of_cpu && !is_short) {
                add(&mut found, &whole, percent * count);
            }
        }
    }
    for one in SHOWN.captures_iter(text) {
        if let Some(percent) = figure(&one["percent"]).filter(|_| is_name(&one["name"])) {
            add(&mut found, &one["name"], percent);
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
