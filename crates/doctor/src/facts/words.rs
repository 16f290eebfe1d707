//! What people and logs say.
//!
//! People say the same in many ways. The ways are written down once, in `words.txt`, and patterns
//! of rules for prose name them: `<slow>` is "crawls", "takes hours" and the like.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::{Facts, Known, absent, denied};
use crate::evidence::{Remark, Statement};

/// Names and patterns; a pattern that holds names is already written out.
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

/// A pattern for prose with what its names stand for.
pub(crate) fn pattern_of(text: &str) -> String {
    if text.contains('<') { written_out(text, &WORDS) } else { text.to_owned() }
}

/// The parts of what is to be told together: patterns, and whether they must not be there.
pub(crate) fn parts(wording: &str) -> impl Iterator<Item = (bool, &str)> {
    wording.split(" & ").map(|part| match part.strip_prefix('!') {
        Some(not) => (true, not),
        None => (false, part),
    })
}

impl Facts {
    /// Whether a person tells of all of this in one sentence: patterns divided by ` & `, of which
    /// those with a `!` match none of it. What the sentence denies is not told.
    pub fn tells(&self, wording: &str) -> Known<bool> {
        let mut wanted = Vec::new();
        for (not, pattern) in parts(wording) {
            let whole = not || denied::looks_for_denial(&pattern_of(pattern));
            wanted.push((not, whole, self.prose_pattern(pattern)?));
        }
        self.some_remark(|facts, at, remark| {
            wanted.iter().all(|(not, whole, pattern)| {
                let text = facts.sentence(at, remark, *whole);
                let text = match &remark.key {
                    Some(key) => Cow::Owned(format!("{key}: {text}")),
                    None => Cow::Borrowed(text),
                };
                pattern.is_match(&text) != *not
            })
        })
    }

    /// Whether a person wrote something that matches; letter case does not count, nor does what a
    /// sentence denies.
    pub fn says(&self, text: &str) -> Known<bool> {
        let pattern = self.prose_pattern(text)?;
        let whole = denied::looks_for_denial(&pattern_of(text));
        self.some_remark(|facts, at, remark| {
            let text = facts.sentence(at, remark, whole);
            pattern.is_match(text)
                || remark
                    .key
                    .as_deref()
                    .is_some_and(|key| pattern.is_match(&format!("{key}: {text}")))
        })
    }

    /// The words of a remark, whole or without what they deny.
    fn sentence<'t>(&'t self, at: usize, remark: &'t Remark, whole: bool) -> &'t str {
        let affirmed = if whole { None } else { self.affirmed.get(&at) };
        affirmed.map_or(remark.text.as_str(), String::as_str)
    }

    /// Whether there is a remark of which something is true; notes the first.
    fn some_remark(&self, is_it: impl Fn(&Self, usize, &Remark) -> bool) -> Known<bool> {
        let remarks = &self.evidence().remarks;
        if remarks.is_empty() {
            return absent("a description of what happens");
        }
        let hit = remarks.iter().enumerate().find(|(at, remark)| is_it(self, *at, remark));
        if let Some((_, remark)) = hit {
            self.used(&remark.source);
        }
        Ok(hit.is_some())
    }

    /// What a person wrote under a key.
    pub fn note(&self, key: &str) -> Known<String> {
        let hit = self.evidence().remarks.iter().find(|remark| remark.key.as_deref() == Some(key));
        match hit {
            Some(remark) => {
                self.used(&remark.source);
                Ok(remark.text.clone())
            }
            None => absent(format!("a note \"{key}: ...\"")),
        }
    }

    /// A number out of what a person wrote: the first group of the pattern; `1,5` and `3 million`
    /// are understood.
    pub fn said_number(&self, text: &str) -> Known<f64> {
        let pattern = self.prose_pattern(text)?;
        for remark in &self.evidence().remarks {
            let group = pattern
                .captures(&remark.text)
                .and_then(|groups| groups.get(1).map(|group| group.as_str().to_owned()));
            if let Some(number) = group.and_then(|group| super::settings::quantity(&group)) {
                self.used(&remark.source);
                return Ok(number);
            }
        }
        absent("such a figure in the description")
    }

    /// How many lines of the kernel's or ZFS's log match.
    pub fn log_count(&self, text: &str) -> Known<f64> {
        let pattern = self.prose_pattern(text)?;
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
        let remarks = text.split(". ").map(|sentence| Remark {
            key: None,
            text: sentence.to_owned(),
            source: source.clone(),
        });
        let evidence = Evidence { remarks: remarks.collect(), ..Evidence::default() };
        Facts::new(evidence).tells(wording).expect("it is a pattern")
    }

    #[test]
    fn all_of_it_is_told_in_one_sentence_in_whatever_words() {
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
    fn what_a_sentence_denies_is_not_told() {
        assert!(tells("A scrub is running", r"\bscrub\b"));
        assert!(!tells("No scrub was running", r"\bscrub\b"));
        assert!(!tells("The pool is slow without dedup", "dedup & <slow>"));
        assert!(tells("The pool is slow without dedup", "without dedup & <slow>"));
        assert!(!tells("The pool is slow without dedup", "<slow> & !dedup"));
    }

    #[test]
    fn words_that_hold_others_are_written_out_and_are_patterns() {
        for (name, pattern) in WORDS.iter() {
            assert!(!pattern.contains('<') && pattern.len() < 1900, "{name}: {}", pattern.len());
            assert!(regex::Regex::new(pattern).is_ok(), "{name}");
        }
        assert_eq!(pattern_of("a<no such>b"), "a<no such>b");
    }
}
