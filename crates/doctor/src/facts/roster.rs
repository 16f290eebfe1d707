//! Lists of threads by their inputs, and which of their names a rule means.
//!
//! A machine may list 60,000 threads, and several hundred signs ask about them. So the lists are
//! taken apart once, and each name is held against each pattern once: names repeat, and so do
//! patterns. Idle threads are in no list.
//!
//! One lock guards the matches known so far; names are matched outside it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::owner::Owners;
use super::selector::Selector;
use super::{Facts, is_idle_thread};
use crate::evidence::{Evidence, Thread};

/// The threads of the evidence, in order.
#[derive(Debug)]
pub(super) struct Roster {
    /// Places of the threads of each list.
    lists: Vec<Vec<usize>>,
    /// Number of the name of each thread, by its place.
    name: Vec<usize>,
    /// By the number of a name, the place of a thread that has it, and whether it is a program that
    /// is called like a thread of the kernel.
    named: Vec<(usize, bool)>,
    /// By the text of a selector, whether each name is meant.
    matches: Mutex<HashMap<String, Arc<[bool]>>>,
}

/// A thread of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) thread: &'a Thread,
    /// Number of its name, by which [`Facts::names_matching`] answers.
    pub(super) name: usize,
}

impl Roster {
    pub(super) fn new(evidence: &Evidence, owners: &Owners) -> Self {
        let mut numbers: HashMap<(&str, bool), usize> = HashMap::new();
        let mut lists: BTreeMap<(&Arc<str>, u32), Vec<usize>> = BTreeMap::new();
        let mut name = Vec::with_capacity(evidence.threads.len());
        let mut named = Vec::new();
        for (place, thread) in evidence.threads.iter().enumerate() {
            let is_disguised = thread.kernel != Some(true) && owners.is_disguised(&thread.name);
            let number = *numbers.entry((&thread.name, is_disguised)).or_insert_with(|| {
                named.push((place, is_disguised));
                named.len() - 1
            });
            name.push(number);
            if !is_idle_thread(&thread.name) {
                lists.entry((&thread.source.input, thread.list)).or_default().push(place);
            }
        }
        let lists = lists.into_values().collect();
        Self { lists, name, named, matches: Mutex::default() }
    }
}

impl Facts {
    /// The lists of all inputs, of each the threads that have the figure; none is empty.
    pub(super) fn thread_lists(
        &self,
        figure: impl Fn(&Thread) -> Option<f64>,
    ) -> Vec<Vec<Row<'_>>> {
        let threads = &self.evidence().threads;
        let row = |place: usize| Row { thread: &threads[place], name: self.roster.name[place] };
        let lists = self.roster.lists.iter().map(|places| {
            let rows = places.iter().map(|place| row(*place));
            rows.filter(|row| figure(row.thread).is_some()).collect::<Vec<_>>()
        });
        lists.filter(|list| !list.is_empty()).collect()
    }

    /// Whether each name of a thread is meant, by the number of the name.
    pub(super) fn names_matching(&self, selector: &Selector) -> Arc<[bool]> {
        if let Some(known) = self.roster.matches.lock().get(selector.as_str()) {
            return Arc::clone(known);
        }
        let threads = &self.evidence().threads;
        let names = self.roster.named.iter();
        let names = names.map(|(place, disguised)| (threads[*place].name.as_str(), *disguised));
        let matches: Arc<[bool]> =
            names.map(|(name, disguised)| selector.means(name, disguised)).collect();
        let text = selector.as_str().to_owned();
        self.roster.matches.lock().insert(text, Arc::clone(&matches));
        matches
    }
}
