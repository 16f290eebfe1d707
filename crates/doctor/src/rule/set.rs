//! All rules: those compiled into the program, and those of a directory.

use std::path::Path;
use std::sync::Arc;

use super::{Rule, RuleError, weights};
use crate::facts::Patterns;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// The largest rule file.
const MAX_RULE_BYTES: u64 = 256 * 1024;

/// A set of rules.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Their patterns, compiled at the first evidence and kept for the next.
    patterns: Arc<Patterns>,
}

impl RuleSet {
    /// The rules of this crate.
    ///
    /// # Errors
    /// [`RuleError`] for a rule that does not compile; the crate's tests check that all do.
    pub fn bundled() -> Result<Self, RuleError> {
        let mut set = Self::default();
        for (file, content) in BUNDLED {
            set.add(Rule::parse(file, content)?);
        }
        Ok(set)
    }

    /// Takes over weights, one line for each sign: rule, key ([`sign_key`](super::sign_key)), and
    /// log-odds if it holds and if it is shown not to hold. Returns the lines without a sign here:
    /// their rule is not in the set, or the sign's condition has changed.
    pub fn take_weights(&mut self, text: &str) -> Vec<String> {
        let mut stale = Vec::new();
        for line in text.lines() {
            let Some((id, key, counted)) = weights::line(line) else { continue };
            let rule = self.rules.iter_mut().find(|rule| rule.text.id == id);
            if !rule.is_some_and(|rule| rule.take_weight(key, counted)) {
                stale.push(format!("{id} {key}"));
            }
        }
        stale
    }

    /// Adds a rule; it replaces one with the same id.
    pub fn add(&mut self, rule: Rule) {
        self.rules.retain(|known| known.text.id != rule.text.id);
        self.rules.push(rule);
    }

    /// Adds every `*.toml` of a directory.
    ///
    /// # Errors
    /// [`RuleError`] for the first file that cannot be read or compiled.
    pub fn add_directory(&mut self, directory: &Path) -> Result<(), RuleError> {
        let fault = |path: &Path, error: &dyn std::fmt::Display| RuleError::Read {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(|error| fault(directory, &error))? {
            let path = entry.map_err(|error| fault(directory, &error))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths {
            let size = std::fs::metadata(&path).map_err(|error| fault(&path, &error))?.len();
            if size > MAX_RULE_BYTES {
                return Err(fault(
                    &path,
                    &format!("is {size} bytes; a rule is at most {MAX_RULE_BYTES}"),
                ));
            }
            let content = std::fs::read_to_string(&path).map_err(|error| fault(&path, &error))?;
            self.add(Rule::parse(&path.display().to_string(), &content)?);
        }
        Ok(())
    }

    /// The patterns that all rules have used so far.
    pub(crate) fn patterns(&self) -> Arc<Patterns> {
        Arc::clone(&self.patterns)
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// A rule by its id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.text.id == id)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}
