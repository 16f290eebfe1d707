//! Whether an input is about no machine: a manual, a list of changes, a licence, a configuration
//! with its comments, source code.
//!
//! Such texts speak of busy CPUs and of `txg_sync` as reports do, and tell of nobody's machine.
//! Somebody who reports says "I", "we" or "this server", or is brief; what goes on for a dozen
//! sentences and never does is a document. Its sentences are not taken, and of code nothing is that
//! may stand in it as an example; the input's entry says so.

use std::sync::LazyLock;

use regex::Regex;

use super::prose;
use super::text::clean::Line;
use crate::evidence::Evidence;

/// Sentences from which one who reports has said "I" once.
const SENTENCES: usize = 12;
/// Lines from which code is known by what its lines look like.
const LINES: usize = 12;
/// Part of the lines, in percent, that look like code or are comments.
const PART_PERCENT: usize = 30;
/// No more lines are looked at: a document is known by its beginning.
const MOST_LINES: usize = 2000;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// What only somebody writes who speaks of a machine of his own.
static PERSONAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\b(?:I|I'm|I've|I'd|[Mm]y|[Ww]e|[Oo]urs?|me)\b",
        r"|(?i)\bthis (?:machine|server|box|host|system|nas|laptop|vm|pool)\b",
    ))
});
static MANUAL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?:NAME|SYNOPSIS|DESCRIPTION|OPTIONS|SEE ALSO|EXAMPLES)$"));
static CHANGE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^\s*(?:[-*+•]|\d+\.)\s+(?:[\w/.()-]+: )?",
        r"(?i:fix(?:es|ed)?|add(?:s|ed)?|improve[sd]?|remove[sd]?|support|update[sd]?|change[sd]?)\b",
        r"|^\S+ \([^)]+\) [^;]+; urgency=|^#+ \[?v?\d+\.\d+",
    ))
});
static LICENCE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"Permission is hereby granted|Licensed under the|GNU (?:Lesser )?General Public Lic")
});
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"[;{}]$|^\s*(?://|/\*|\*/|#include\b|#define\b|#!\[|#\[|fn |pub |use |let |impl |def |class ",
        r"|import |from \S+ import|return\b|static |struct |if \(|for \(|\}|</?\w+>)",
    ))
});
/// A comment in a configuration: more than a name.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| compiled(r"^\s*#+\s*[A-Za-z]\S*(?: \S+){2,}"));

/// What kind of text an input is, if it is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A manual, a list of changes, a licence, a configuration.
    Document,
    /// Source code.
    Code,
}

impl Kind {
    /// The kind of an input by its lines; `None` if it may be a report.
    pub(crate) fn of(lines: &[Line<'_>]) -> Option<Self> {
        let texts = || {
            let lines = lines.iter().take(MOST_LINES);
            lines.map(|line| line.text.trim_end()).filter(|text| !text.trim().is_empty())
        };
        let count = |test: &dyn Fn(&str) -> bool| texts().filter(|text| test(text)).count();
        let all = texts().count();
        let much = |part: usize| all >= LINES && part * 100 >= all * PART_PERCENT;
        if much(count(&|text| CODE.is_match(text))) {
            return Some(Self::Code);
        }
        let is_sentence = |text: &str| text.len() < 4096 && prose::is_sentence(text.trim());
        let sentences = count(&is_sentence);
        let personal = count(&|text| text.len() < 4096 && PERSONAL.is_match(text));
        let is_document = sentences >= SENTENCES && personal * SENTENCES < sentences
            || count(&|text| MANUAL.is_match(text)) >= 2
            || count(&|text| CHANGE.is_match(text)) >= 3 && personal == 0
            || count(&|text| LICENCE.is_match(text)) >= 1
            || much(count(&|text| COMMENT.is_match(text))) && personal == 0;
        is_document.then_some(Self::Document)
    }

    /// What the input's entry says.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Document => {
                "it reads like a document and not like a report of a machine: its sentences were \
                 not taken"
            }
            Self::Code => "it reads like source code: what it says of machines was not taken",
        }
    }
}

/// How much of what a document may say was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    remarks: usize,
    log: usize,
    threads: usize,
    cpu: usize,
    kernel_stacks: usize,
    timings: usize,
}

impl Before {
    /// Now.
    pub(crate) fn of(evidence: &Evidence) -> Self {
        Self {
            remarks: evidence.remarks.len(),
            log: evidence.log.len(),
            threads: evidence.threads.len(),
            cpu: evidence.cpu.len(),
            kernel_stacks: evidence.kernel_stacks.len(),
            timings: evidence.timings.len(),
        }
    }

    /// Takes back what is told of nobody's machine.
    pub(crate) fn take_back(self, kind: Kind, evidence: &mut Evidence) {
        let mut at = 0;
        evidence.remarks.retain(|remark| {
            at += 1;
            // Notes such as `ZFS version: 2.1.5` may stand in any text.
            at <= self.remarks || kind == Kind::Document && remark.key.is_some()
        });
        if kind == Kind::Code {
            evidence.log.truncate(self.log);
            evidence.threads.truncate(self.threads);
            evidence.cpu.truncate(self.cpu);
            evidence.kernel_stacks.truncate(self.kernel_stacks);
            evidence.timings.truncate(self.timings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::text::clean;

    fn kind(text: &str) -> Option<Kind> {
        Kind::of(&clean::lines(text.as_bytes()))
    }

    #[test]
    fn documents_and_code_are_told_from_reports() {
        let manual =
            "The arc_prune thread is busy when the limit is reached, and it takes a CPU.\n";
        assert_eq!(kind(&manual.repeat(12)), Some(Kind::Document));
        let report = "We see arc_prune at 100% of a CPU, and it is the same on all of them.\n";
        assert_eq!(kind(&report.repeat(30)), None);
        assert_eq!(kind(&manual.repeat(4)), None);
        assert_eq!(kind("NAME\n  x\nSYNOPSIS\n  x\nDESCRIPTION\n"), Some(Kind::Document));
        let changes = "* Fix txg_sync using 100% CPU\n* Add a tunable\n* scrub: fixed a loop\n";
        assert_eq!(kind(changes), Some(Kind::Document));
        let code = "fn busy() {\n    let text = \"arc_prune is at 100% CPU\";\n}\n".repeat(5);
        assert_eq!(kind(&code), Some(Kind::Code));
        let settings = "# How often the CPU is looked at\ninterval=5\n".repeat(8);
        assert_eq!(kind(&settings), Some(Kind::Document));
        let prompt = "# zpool status\n  pool: tank\n state: ONLINE\n".repeat(8);
        assert_eq!(kind(&prompt), None);
    }
}
