//! Sentences that speak of no machine that anybody looked at.
//!
//! "It can use 100% of a CPU", "2.1.5 fixes a loop of txg_sync", "a colleague's server was at 90%":
//! true, perhaps, and no evidence. Such a sentence tells neither how busy the machine is nor who
//! uses it. What it knows of causes is another matter, which rules judge.

use std::sync::LazyLock;

use regex::Regex;

/// What is possible, what was changed in a release, what a setting is for, whose machine it is.
static GENERIC: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i)\b(?:can|could|may|might|would|should|will|shall)(?: (?:also|then|even|often|easily))?",
        r" (?:be|use|take|eat|consume|cause|lead|keep|spin|burn|run|reach|go)\b",
        r"|\b(?:release notes|changelog|man page|documentation|the docs|in theory|for example|e\.g\.)",
        r"|\b(?:this|the|that|a) (?:release|commit|patch|pull request|parameter|tunable|option)\b",
        r"|\bv?\d+(?:\.\d+){1,3} (?:fixes|adds|improves|solves|changes)",
        r"|^(?:fix(?:es|ed)?|adds?|added|improves?|improved|reduces?|avoids?|prevents?|supports?)\b",
        r"|\bdefaults? (?:is|to|value)\b|\b(?:specifies|determines|controls) (?:how|the|whether)\b",
        r"|\b(?:another|other|different|colleague'?s?|friend'?s?|customer'?s?|somebody else'?s?",
        r"|someone else'?s?) (?:host|machine|server|box|system|user|person|people|pc|nas)\b",
        r"|\b(?:wrote|says|writes):|\bin (?:issue|bug|pr) #?\d+|\b(?:other|some|many) (?:people|users)\b",
        r"|\byears? ago\b|\blast year\b",
    );
    Regex::new(pattern).expect("a constant pattern")
});

/// A line of code, or of a configuration.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[;{}]\s*$|^\s*(?://|/\*|#\w)|\w\(\);|\w->\w|==|&&|\|\|")
        .expect("a constant pattern")
});

/// Whether a sentence may be of the machine that is asked about.
pub(super) fn is_of_a_machine(text: &str) -> bool {
    !GENERIC.is_match(text) && !CODE.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_is_not_what_is() {
        for text in [
            "txg_sync can use 100% of a CPU when the pool is full.",
            "Release 2.1.5 fixes txg_sync using 100% CPU.",
            "Fixes a loop in which arc_prune is at 100%.",
            "The server of another user is at 100% CPU.",
            "A colleague's box has java at 700% CPU.",
            "This tunable keeps all CPUs busy.",
            "if (cpu == 100) return busy();",
        ] {
            assert!(!is_of_a_machine(text), "{text}");
        }
        for text in [
            "java is eating 780%, 8 cores",
            "All cores are busy and I can not log in.",
            "The CPU goes to 100% whenever a scrub runs.",
        ] {
            assert!(is_of_a_machine(text), "{text}");
        }
    }
}
