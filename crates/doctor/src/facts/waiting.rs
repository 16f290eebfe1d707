//! How many threads sleep uninterruptibly: each adds one to the load average and uses no CPU.
//!
//! A list of threads has their state, `vmstat` (column b) and /proc/stat (`procs_blocked`) count
//! those that wait for a disk, and a sentence may tell the number: "46 processes are in state D".
//! A list may be rows that somebody picked, so the largest number counts.

use std::sync::LazyLock;

use regex::Regex;

use super::{Facts, Known, absent};

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// What a sentence calls the sleep that counts.
static SLEEP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?:\b[Ss]tate |\b[Ii]nto |\b[Ii]n |\b[Ii]n the )D\b|\bD[- ][Ss]tate\b",
        r"|(?i)\buninterruptibl[ey]\b|\bdisk[- ]sleep\b",
    ))
});

/// Who sleeps: a number, and not far behind it what is counted.
static SLEEPERS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(an?|the|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,5})",
        r"(?: [\w.'/-]+){0,4}? (process|thread|task|job|worker|program)(e?s)?\b",
    ))
});

const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// The number of sleepers that a sentence tells.
fn told(text: &str) -> Option<f64> {
    let sleep = SLEEP.find(text)?;
    // Who is named last before the sleep is who sleeps.
    let found = SLEEPERS.captures_iter(&text[..sleep.start()]).last()?;
    let number = found[1].to_ascii_lowercase();
    let several = found.get(3).is_some();
    match number.as_str() {
        "a" | "an" | "the" => (!several).then_some(1.0),
        word => match (1_u8..).zip(NUMBERS).find(|(_, name)| *name == word) {
            Some((value, _)) => Some(f64::from(value)),
            None => word.parse().ok(),
        },
    }
}

impl Facts {
    /// Threads in uninterruptible sleep.
    pub fn waiting(&self) -> Known<f64> {
        let shown = [
            self.thread_in_state(".", "D"),
            self.gauge("vmstat.b"),
            self.gauge("stat.procs_blocked"),
        ];
        let most = shown.into_iter().flatten().reduce(f64::max);
        if let Some(most) = most.filter(|most| *most > 0.0) {
            return Ok(most);
        }
        for remark in &self.evidence().remarks {
            if let Some(number) = told(&remark.text) {
                self.used(&remark.source);
                return Ok(number);
            }
        }
        most.map_or_else(|| absent("states of threads (ps -eLo stat,comm)"), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_how_many_sleep() {
        for (text, number) in [
            ("46 processes are in uninterruptible sleep.", Some(46.0)),
            ("Six worker threads of a driver stay in state D.", Some(6.0)),
            ("The thread of the camera is in D state all day.", Some(1.0)),
            ("There are 12 tasks stuck in D.", Some(12.0)),
            ("The processes are in state D.", None),
            ("Of 90 tasks none runs.", None),
            ("Two processes use the CPU.", None),
            ("A disk in slot D failed under 3 jobs.", None),
        ] {
            assert_eq!(told(text), number, "{text}");
        }
    }
}
