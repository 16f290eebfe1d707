//! Questions to the evidence. An answer is a value, or "not shown".
//!
//! Each answer records its sources, so a rule never has to state where its figures come from. No
//! file here knows a cause.
//!
//! Locks: the trace and the caches are leaves, held for one insertion each (`pattern_cache` has its
//! own lock).

mod blocked_threads;
mod consumption;
mod cpu_states;
mod datasets;
mod fallback;
mod figures;
mod host;
mod known_names;
mod known_programs;
mod locks;
mod lockup;
mod owner;
mod pattern_cache;
mod phrases;
mod profile;
mod profile_index;
mod requirements;
mod selector;
mod settings;
mod subsystems;
mod thread_lists;
mod threads;
mod timings;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use regex::Regex;

use crate::evidence::{Evidence, Source};

pub use self::consumption::{Basis, Consumption, ListedUser};
pub use self::fallback::Fallback;
pub use self::known_names::{
    Leaf, is_idle_symbol, is_idle_thread, is_spin_symbol, is_zfs_module, is_zfs_program,
    is_zfs_thread,
};
pub(crate) use self::known_programs::is_known_program;
pub use self::lockup::Lockup;
pub use self::owner::Owner;
use self::owner::Owners;
pub(crate) use self::owner::looks_like_kernel;
pub(crate) use self::pattern_cache::Patterns;
pub(crate) use self::phrases::{parts, pattern_of, sentences};
pub(crate) use self::profile::{ENOUGH_SAMPLES, FEWEST_SAMPLES};
use self::profile_index::ProfileIndex;
pub use self::requirements::{PROCESSORS, Requires, SYSTEMS};
use self::selector::Selector;
pub(crate) use self::selector::{role, subsystem};
pub use self::subsystems::{Standing, SubsystemUse};
use self::thread_lists::ThreadLists;
pub use self::threads::Consumer;
pub(crate) use self::threads::without_number;
pub use crate::atlas::{Version, parse_versions};

/// The most sources that one answer cites.
const MAX_SOURCES: usize = 6;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The evidence does not have the fact; the text names it.
    Absent(String),
    /// The question itself is wrong: an invalid pattern, or a name of the wrong kind.
    Wrong(String),
}

/// An answer.
pub type Known<T> = Result<T, Missing>;

/// A fact that was not shown.
fn absent<T>(what: impl Into<String>) -> Known<T> {
    Err(Missing::Absent(what.into()))
}

/// The facts that an evaluation used.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Sources of the facts used, in order of use.
    pub sources: Vec<Source>,
    /// Facts that were missing.
    pub absent: Vec<String>,
    /// Whether the matched words are a name of a thread, a function or a parameter.
    pub is_name: bool,
}

/// Evidence, indexed for questions.
#[derive(Debug)]
pub struct Facts {
    evidence: Evidence,
    profiles: Vec<ProfileIndex>,
    /// The source of answers without a measurement, and the functions and threads found by it.
    fallback: Mutex<(Fallback, Vec<String>)>,
    trace: Mutex<Trace>,
    patterns: Arc<Patterns>,
    selectors: Mutex<HashMap<String, Arc<Selector>>>,
    /// The I/O of programs, by data set.
    dataset_uses: OnceLock<Vec<datasets::DatasetUse>>,
    owners: Owners,
    thread_lists: ThreadLists,
    listed: OnceLock<threads::Listed>,
    /// The users of the busy samples.
    profiled: OnceLock<Vec<Consumer>>,
}

impl Facts {
    /// Indexes evidence.
    pub fn new(evidence: Evidence) -> Self {
        Self::with_patterns(evidence, Arc::default())
    }

    /// Indexes evidence, and shares compiled patterns with other hosts.
    pub(crate) fn with_patterns(evidence: Evidence, patterns: Arc<Patterns>) -> Self {
        let owners = Owners::new(&evidence);
        let mut profiles: Vec<ProfileIndex> = evidence
            .profiles
            .iter()
            .filter(|profile| !profile.off_cpu)
            .map(|profile| ProfileIndex::new(profile, &owners))
            .collect();
        profiles.sort_by(|a, b| b.quality().total_cmp(&a.quality()));
        let thread_lists = ThreadLists::new(&evidence, &owners);
        Self {
            owners,
            thread_lists,
            listed: OnceLock::new(),
            profiled: OnceLock::new(),
            evidence,
            profiles,
            fallback: Mutex::default(),
            trace: Mutex::default(),
            patterns,
            selectors: Mutex::default(),
            dataset_uses: OnceLock::new(),
        }
    }

    /// The evidence itself.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Starts an empty trace.
    pub fn start_trace(&self) {
        *self.trace.lock() = Trace::default();
    }

    /// The trace since [`Facts::start_trace`].
    pub fn take_trace(&self) -> Trace {
        std::mem::take(&mut *self.trace.lock())
    }

    /// Records that a fact was used.
    fn used(&self, source: &Source) {
        let mut trace = self.trace.lock();
        if trace.sources.len() < MAX_SOURCES && !trace.sources.contains(source) {
            trace.sources.push(source.clone());
        }
    }

    /// Records that a fact was missing.
    pub(crate) fn missed(&self, what: &str) {
        let mut trace = self.trace.lock();
        if !trace.absent.iter().any(|known| known == what) {
            trace.absent.push(what.to_owned());
        }
    }

    /// A selector of functions or threads.
    fn selector(&self, text: &str) -> Known<Arc<Selector>> {
        if let Some(known) = self.selectors.lock().get(text) {
            return Ok(Arc::clone(known));
        }
        let parsed = match Selector::parse(text) {
            Some(selector) => selector,
            None => Selector::Pattern((*self.pattern(text)?).clone()),
        };
        let parsed = Arc::new(parsed);
        self.selectors.lock().insert(text.to_owned(), Arc::clone(&parsed));
        Ok(parsed)
    }

    /// A compiled pattern.
    fn pattern(&self, text: &str) -> Known<Arc<Regex>> {
        self.patterns.get(text, false)
    }

    /// A compiled pattern for words, which ignores letter case.
    fn words_pattern(&self, text: &str) -> Known<Arc<Regex>> {
        self.patterns.get(&phrases::pattern_of(text), true)
    }
}
