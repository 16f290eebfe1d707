//! Compiled patterns, shared by all evidence that meets the same rules.
//!
//! A pattern is compiled at its first use. Compiling costs far more than matching, so a set of
//! rules keeps its patterns, and a fleet of a thousand hosts compiles each once.
//!
//! Lock: one for the table, a leaf, never held while a pattern is compiled. Two threads may compile
//! the same pattern; the first to finish is kept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use regex::{Regex, RegexBuilder};

use super::{Known, Missing};

/// No pattern of a rule is longer.
const MAX_REGEX_BYTES: usize = 4000;
/// Rules have some hundreds. Further patterns are compiled and not kept, because a rule can build
/// patterns from the evidence.
const MAX_KEPT: usize = 10_000;

/// Patterns of rules by their text.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    compiled: RwLock<HashMap<String, Arc<Regex>>>,
}

impl Patterns {
    /// The compiled pattern; `any_case` ignores letter case.
    pub(super) fn get(&self, text: &str, any_case: bool) -> Known<Arc<Regex>> {
        if text.len() > MAX_REGEX_BYTES {
            return Err(Missing::Wrong(format!("a pattern of {} bytes", text.len())));
        }
        let key = if any_case { format!("(?i){text}") } else { text.to_owned() };
        if let Some(known) = self.compiled.read().get(&key) {
            return Ok(Arc::clone(known));
        }
        let built = RegexBuilder::new(text)
            .case_insensitive(any_case)
            .size_limit(1 << 20)
            .build()
            .map_err(|error| Missing::Wrong(error.to_string()))?;
        let built = Arc::new(built);
        let mut compiled = self.compiled.write();
        if compiled.len() >= MAX_KEPT {
            return Ok(built);
        }
        Ok(Arc::clone(compiled.entry(key).or_insert(built)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_once_for_each_treatment_of_letter_case() {
        let patterns = Patterns::default();
        let first = patterns.get("arc_(prune|evict)", false).unwrap();
        assert!(Arc::ptr_eq(&first, &patterns.get("arc_(prune|evict)", false).unwrap()));
        let any = patterns.get("arc_(prune|evict)", true).unwrap();
        assert!(any.is_match("ARC_EVICT") && !first.is_match("ARC_EVICT"));
        assert_eq!(patterns.compiled.read().len(), 2);
    }

    #[test]
    fn a_wrong_pattern_is_reported_and_not_cached() {
        let patterns = Patterns::default();
        assert!(matches!(patterns.get("(", false), Err(Missing::Wrong(_))));
        assert!(matches!(patterns.get(&"a".repeat(4001), false), Err(Missing::Wrong(_))));
        assert!(patterns.compiled.read().is_empty());
    }

    #[test]
    fn the_cache_keeps_no_more_than_its_bound() {
        let patterns = Patterns::default();
        let one = Arc::new(Regex::new("x").unwrap());
        let many = (0..MAX_KEPT).map(|number| (format!("p{number}"), Arc::clone(&one)));
        patterns.compiled.write().extend(many);
        assert!(patterns.get("another", false).unwrap().is_match("another"));
        assert_eq!(patterns.compiled.read().len(), MAX_KEPT);
    }
}
