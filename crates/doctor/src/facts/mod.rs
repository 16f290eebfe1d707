//! Questions that can be put to evidence, and honest answers: a value, or "that was not shown".
//!
//! Every answer leaves a trace of the sources it stands on, so that a rule never has to say where
//! its figures come from. Nothing here knows a cause.
//!
//! Locks: the trace and the caches are leaves, held for one insertion each.

mod figures;
mod host;
mod locks;
mod names;
mod profile;
mod profile_index;
mod settings;
mod threads;
mod version;
mod words;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

use crate::evidence::{Evidence, Source};

pub use self::names::{
    Leaf, is_idle_symbol, is_idle_thread, is_spin_symbol, is_zfs_module, is_zfs_thread,
};
use self::profile_index::ProfileIndex;
pub use self::threads::Consumer;
pub use self::version::{Version, parse_versions};

/// A longer pattern than this is no pattern of a rule.
const MAX_REGEX_BYTES: usize = 2000;
/// How many sources one answer cites.
const MAX_SOURCES: usize = 6;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The fact was not among the evidence; the text names it.
    Absent(String),
    /// The question itself is wrong: a pattern that is none, a name of the wrong kind.
    Wrong(String),
}

/// An answer.
pub type Known<T> = Result<T, Missing>;

/// Shorthand for a fact that was not shown.
fn absent<T>(what: impl Into<String>) -> Known<T> {
    Err(Missing::Absent(what.into()))
}

/// What an evaluation looked at.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Sources of the facts used, in order of use.
    pub sources: Vec<Source>,
    /// Facts asked for and not there.
    pub absent: Vec<String>,
}

/// Evidence, indexed for questions.
#[derive(Debug)]
pub struct Facts {
    evidence: Evidence,
    profiles: Vec<ProfileIndex>,
    trace: Mutex<Trace>,
    patterns: Mutex<HashMap<String, Arc<Regex>>>,
}

impl Facts {
    /// Indexes evidence.
    pub fn new(evidence: Evidence) -> Self {
        let mut profiles: Vec<ProfileIndex> = evidence
            .profiles
            .iter()
            .filter(|profile| !profile.off_cpu)
            .map(ProfileIndex::new)
            .collect();
        profiles.sort_by(|a, b| b.quality().total_cmp(&a.quality()));
        Self { evidence, profiles, trace: Mutex::default(), patterns: Mutex::default() }
    }

    /// The evidence itself.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Forgets what was looked at so far.
    pub fn start_trace(&self) {
        *self.trace.lock() = Trace::default();
    }

    /// What was looked at since [`Facts::start_trace`].
    pub fn take_trace(&self) -> Trace {
        std::mem::take(&mut *self.trace.lock())
    }

    /// Notes that a fact was used.
    fn used(&self, source: &Source) {
        let mut trace = self.trace.lock();
        if trace.sources.len() < MAX_SOURCES && !trace.sources.contains(source) {
            trace.sources.push(source.clone());
        }
    }

    /// Notes that a fact was missing.
    pub(crate) fn missed(&self, what: &str) {
        let mut trace = self.trace.lock();
        if !trace.absent.iter().any(|known| known == what) {
            trace.absent.push(what.to_owned());
        }
    }

    /// A compiled pattern.
    fn pattern(&self, text: &str) -> Known<Arc<Regex>> {
        self.compiled(text, false)
    }

    /// A compiled pattern for prose: letter case does not count.
    fn prose_pattern(&self, text: &str) -> Known<Arc<Regex>> {
        self.compiled(text, true)
    }

    fn compiled(&self, text: &str, any_case: bool) -> Known<Arc<Regex>> {
        if text.len() > MAX_REGEX_BYTES {
            return Err(Missing::Wrong(format!("a pattern of {} bytes", text.len())));
        }
        let key = if any_case { format!("(?i){text}") } else { text.to_owned() };
        if let Some(known) = self.patterns.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let built = RegexBuilder::new(text)
            .case_insensitive(any_case)
            .size_limit(1 << 20)
            .build()
            .map_err(|error| Missing::Wrong(error.to_string()))?;
        let built = Arc::new(built);
        self.patterns.lock().insert(key, Arc::clone(&built));
        Ok(built)
    }
}
