//! What a sentence denies: "no scrub was running" tells of no scrub.
//!
//! A pattern that looks for a word must not find it where the sentence says that it is not so. The
//! word that is denied is taken out, and the rest of the sentence stays; patterns that look for a
//! denial themselves ("the CPU is not", "without a log device") see the whole of it.

use std::sync::LazyLock;

use regex::Regex;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// What denies the words behind it: "no scrub", "without dedup", "does not shrink", "is not busy".
/// "Cannot be freed" and "does not end" are what happens, and no denial of it.
static DENIAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:no|without|nor|neither)\s+(?:any\s+)?[\w-]+(?:\s+(?:was|were|is|are)\b)?",
        r"|\b(?:does|do|did|is|are|was|were|has|have|had)(?:\s+not|n't)\s+[\w-]+",
    ))
});

/// "No longer", "not only", "no end": these deny nothing of the kind.
static NO_DENIAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^(?:no|without|\w+ not|\w+n't)\s+(?:longer|more|less|matter|ends?|stop|finish|return",
        r"|answer|help|only|just|enough|free|progress|fit|respond|complete|release|given?|back",
        r"|terminate)\b",
    ))
});

/// A pattern that looks for a denial.
static LOOKS_FOR_DENIAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)\b(?:no|not|without|nor|never|nobody|nothing|none|cannot|hardly|n't|nt)\b")
});

/// The sentence without what it denies; `None` if it denies nothing.
pub(super) fn without_denied(text: &str) -> Option<String> {
    let changed = DENIAL.replace_all(text, |found: &regex::Captures<'_>| {
        if NO_DENIAL.is_match(&found[0]) { found[0].to_owned() } else { "-".to_owned() }
    });
    (changed != text).then(|| changed.into_owned())
}

/// Whether a pattern is to see the whole sentence.
pub(super) fn looks_for_denial(pattern: &str) -> bool {
    // `\b` before a word is no letter of it.
    LOOKS_FOR_DENIAL.is_match(&pattern.replace("\\b", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_denied_is_taken_out_and_what_happens_stays() {
        for (text, left) in [
            ("No scrub was running.", "- running."),
            ("The ARC does not shrink under load.", "The ARC - under load."),
            ("It is slow without dedup or compression.", "It is slow - or compression."),
            ("The disks are not busy at all.", "The disks - at all."),
        ] {
            assert_eq!(without_denied(text).as_deref(), Some(left));
        }
        for text in [
            "A scrub is running.",
            "The import does not end.",
            "Metadata cannot be evicted.",
            "It no longer answers.",
        ] {
            assert_eq!(without_denied(text), None, "{text}");
        }
    }

    #[test]
    fn a_pattern_that_looks_for_a_denial_sees_the_whole_sentence() {
        for pattern in
            [r"\bno\b.{0,20}slog", "(no|without).{0,20}log device", "does not (end|stop)"]
        {
            assert!(looks_for_denial(pattern), "{pattern}");
        }
        for pattern in [r"\bscrub\b", "notable|nose", r"\bnode\b"] {
            assert!(!looks_for_denial(pattern), "{pattern}");
        }
    }
}
