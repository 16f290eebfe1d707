//! Words in lines that no format claims, and in the kernel's log.
//!
//! The words of a rule are only a hint for its cause: no figure, no answer and no remedy depends on
//! them (`diagnose::weigh`). `words.txt` lists the ways to say a thing once, and patterns name the
//! list: `<slow>` is "crawls", "takes hours" and the like.

use std::sync::LazyLock;

use regex::Regex;

use super::{Facts, Known, absent};
use crate::evidence::Statement;

/// Names and their patterns, in which earlier names are already expanded.
static WORDS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut known: Vec<(String, String)> = Vec::new();
    let lines = include_str!("../../words.txt").lines().filter(|line| !line.starts_with('#'));
    for (name, pattern) in lines.filter_map(|line| line.split_once(": ")) {
        let whole = written_out(pattern, &known);
        known.push((format!("<{name}>"), format!("(?:{whole})")));
    }
    known
});

fn written_out(text: &str, known: &[(String, String)]) -> String {
    known.iter().fold(text.to_owned(), |text, (name, pattern)| text.replace(name, pattern))
}

/// A pattern for words, with its names expanded.
pub(crate) fn pattern_of(text: &str) -> String {
    if text.contains('<') { written_out(text, &WORDS) } else { text.to_owned() }
}

/// The parts of a wording that must match in one sentence; `true` for a part that must not match.
pub(crate) fn parts(wording: &str) -> impl Iterator<Item = (bool, &str)> {
    wording.split(" & ").map(|part| match part.strip_prefix('!') {
        Some(not) => (true, not),
        None => (false, part),
    })
}

/// Whether the match is a name of a thread, function or parameter, which have an underscore.
fn matches_a_name(pattern: &Regex, text: &str) -> bool {
    pattern.find_iter(text).any(|found| found.as_str().trim_matches('_').contains('_'))
}

/// The sentences of a line. The point in a figure ends none.
pub(crate) fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let ends = |at: usize, letter: char| {
        matches!(letter, '.' | '?' | '!') && line[at + 1..].starts_with(char::is_whitespace)
    };
    let mut from = 0;
    let cuts = line.char_indices().filter(move |(at, letter)| ends(*at, *letter));
    let cuts = cuts.map(|(at, _)| at + 1).chain([line.len()]);
    cuts.map(move |to| line.get(std::mem::replace(&mut from, to)..to).unwrap_or_default().trim())
        .filter(|sentence| !sentence.is_empty())
}

/// Whether a line is text: at least three words, half of which are letters alone. Names and figures
/// of tools are not text.
fn is_text(line: &str) -> bool {
    let is_word = |word: &&str| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '_'))
    };
    let all = line.split_whitespace().count();
    all >= 3 && 2 * line.split_whitespace().filter(is_word).count() >= all
}

impl Facts {
    /// Whether one sentence of a line that no format claims matches the whole wording. Its patterns
    /// are divided by ` & `; a `!` marks a pattern that must not match.
    pub fn tells(&self, wording: &str) -> Known<bool> {
        let mut required = Vec::new();
        for (not, pattern) in parts(wording) {
            required.push((not, self.words_pattern(pattern)?));
        }
        self.some_sentence(|text| {
            let all = required.iter().all(|(not, pattern)| pattern.is_match(text) != *not);
            let mut present = required.iter().filter(|(not, _)| !not);
            all.then(|| present.any(|(_, pattern)| matches_a_name(pattern, text)))
        })
    }

    /// Whether a sentence of a line that no format claims matches; letter case is ignored.
    pub fn says(&self, text: &str) -> Known<bool> {
        let pattern = self.words_pattern(text)?;
        self.some_sentence(|text| pattern.is_match(text).then(|| matches_a_name(&pattern, text)))
    }

    /// Whether an unread sentence matches. Records the line of the first one, and whether its match
    /// is a name.
    fn some_sentence(&self, is_it: impl Fn(&str) -> Option<bool>) -> Known<bool> {
        let mut any = false;
        for line in &self.evidence().not_understood {
            for sentence in sentences(&line.value).filter(|one| is_text(one)) {
                any = true;
                if let Some(is_name) = is_it(sentence) {
                    self.used(&line.source);
                    self.trace.lock().is_name |= is_name;
                    return Ok(true);
                }
            }
        }
        if any { Ok(false) } else { absent("a description of what happens") }
    }

    /// The number of matching lines in the kernel's or ZFS's log.
    pub fn log_count(&self, text: &str) -> Known<f64> {
        let pattern = self.words_pattern(text)?;
        let log = &self.evidence().log;
        if log.is_empty() {
            return absent("the kernel log (dmesg)");
        }
        let mut count = 0_u32;
        for line in log.iter().filter(|line: &&Statement<String>| pattern.is_match(&line.value)) {
            if count == 0 {
                self.used(&line.source);
            }
            count += 1;
        }
        Ok(f64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Source};

    fn tells(text: &str, wording: &str) -> bool {
        let source = Source { input: "report.txt".into(), line: Some(1) };
        let lines = text.split(". ");
        let line = |text: &str| Statement { value: text.to_owned(), source: source.clone() };
        let not_understood = lines.map(line).collect();
        let evidence = Evidence { not_understood, ..Evidence::default() };
        Facts::new(evidence).tells(wording).expect("it is a pattern")
    }

    #[test]
    fn all_patterns_match_within_one_sentence() {
        let wording = "scrub & <slow> & !memory";
        for text in ["A scrub crawls", "The SCRUB has been running for three days"] {
            assert!(tells(text, wording), "{text}");
        }
        for text in ["A scrub runs. The disks are slow", "A scrub hangs for lack of memory"] {
            assert!(!tells(text, wording), "{text}");
        }
        assert!(Facts::new(Evidence::default()).tells(wording).is_err());
    }

    #[test]
    fn a_paragraph_has_one_line_for_each_sentence() {
        let text = "A scrub of 1.5 TB ended. Is it slow? zfs 2.1.5 runs...  Yes!";
        let all: Vec<&str> = sentences(text).collect();
        assert_eq!(all, ["A scrub of 1.5 TB ended.", "Is it slow?", "zfs 2.1.5 runs...", "Yes!"]);
        assert_eq!(sentences(" ").count(), 0);
    }

    #[test]
    fn names_and_figures_of_tools_are_not_text() {
        for line in ["z_unlinked_drain 0 64 0", "kfpu_allowed  1", r#""scrub": "none","#] {
            assert!(!is_text(line), "{line}");
        }
        assert!(is_text("A scrub crawls."));
        assert!(is_text("z_unlinked_drain is at 100% here"));
    }

    #[test]
    fn words_inside_words_are_expanded_to_patterns() {
        for (name, pattern) in WORDS.iter() {
            assert!(!pattern.contains('<') && pattern.len() < 1900, "{name}: {}", pattern.len());
            assert!(regex::Regex::new(pattern).is_ok(), "{name}");
        }
        assert_eq!(pattern_of("a<no such>b"), "a<no such>b");
    }
}
