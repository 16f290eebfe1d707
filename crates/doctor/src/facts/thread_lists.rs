//! Lists of threads by their inputs, and the names in them that a rule selects.
//!
//! A machine may list 60,000 threads, and several hundred signs ask about them. The lists are
//! therefore indexed once, and each distinct name meets each distinct pattern once. A question
//! visits only the rows with a matching name. Idle threads are in no list.
//!
//! One lock guards the cached matches; names are matched outside it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::owner::{Owner, Owners};
use super::selector::Selector;
use super::{Facts, is_idle_thread};
use crate::evidence::{Evidence, Thread};

/// The threads of the evidence by their lists.
#[derive(Debug)]
pub(super) struct ThreadLists {
    lists: Vec<List>,
    /// By the number of a name, the place of one of its threads, and whether that is a program with
    /// a name of the kernel's.
    named: Vec<(usize, bool)>,
    /// Whether one of them belongs to ZFS.
    has_zfs: bool,
    /// By the text of a selector, whether it selects each name.
    matches: Mutex<HashMap<String, Arc<[bool]>>>,
    /// Rows and names visited so far.
    work: AtomicU64,
}

/// A list by its input and its number in it.
type ListName<'a> = (&'a Arc<str>, u32);

/// One list.
#[derive(Debug)]
pub(super) struct List {
    /// Places of its threads in the evidence, grouped by name.
    places: Vec<usize>,
    /// Each name with the range of its places.
    names: Vec<(usize, Range<usize>)>,
}

impl List {
    /// Rows by the number of their name and their place.
    fn new(mut rows: Vec<(usize, usize)>) -> Self {
        rows.sort_unstable();
        let mut names: Vec<(usize, Range<usize>)> = Vec::new();
        for (at, (name, _)) in rows.iter().enumerate() {
            match names.last_mut() {
                Some((last, range)) if last == name => range.end = at + 1,
                _ => names.push((*name, at..at + 1)),
            }
        }
        Self { places: rows.into_iter().map(|(_, place)| place).collect(), names }
    }

    /// Places of the threads whose name is selected.
    fn meant<'a>(&'a self, matches: &'a [bool]) -> impl Iterator<Item = usize> + 'a {
        let meant = self.names.iter().filter(|(name, _)| matches[*name]);
        meant.flat_map(|(_, range)| self.places[range.clone()].iter().copied())
    }
}

impl ThreadLists {
    pub(super) fn new(evidence: &Evidence, owners: &Owners) -> Self {
        let mut numbers: HashMap<(&str, bool), usize> = HashMap::new();
        let mut lists: BTreeMap<ListName<'_>, Vec<(usize, usize)>> = BTreeMap::new();
        let (mut named, mut has_zfs) = (Vec::new(), false);
        for (place, thread) in evidence.threads.iter().enumerate() {
            if is_idle_thread(&thread.name) {
                continue;
            }
            let is_disguised = thread.kernel != Some(true) && owners.is_disguised(&thread.name);
            let number = *numbers.entry((&thread.name, is_disguised)).or_insert_with(|| {
                let owner = if is_disguised { Owner::Program } else { owners.of(&thread.name) };
                has_zfs |= owner == Owner::Zfs;
                named.push((place, is_disguised));
                named.len() - 1
            });
            let list = lists.entry((&thread.source.input, thread.list)).or_default();
            list.push((number, place));
        }
        let lists = lists.into_values().map(List::new).collect();
        Self { lists, named, has_zfs, matches: Mutex::default(), work: AtomicU64::new(0) }
    }
}

impl Facts {
    /// Whether a list has a thread of ZFS.
    pub fn lists_zfs(&self) -> bool {
        self.thread_lists.has_zfs
    }

    /// The lists of all inputs.
    pub(super) fn lists(&self) -> &[List] {
        &self.thread_lists.lists
    }

    /// The threads of a list that have a figure, in their order.
    pub(super) fn rows(
        &self,
        list: &List,
        figure: impl Fn(&Thread) -> Option<f64>,
    ) -> Vec<&Thread> {
        self.worked(list.places.len());
        let threads = &self.evidence().threads;
        let mut places: Vec<usize> = list.places.clone();
        places.retain(|place| figure(&threads[*place]).is_some());
        places.sort_unstable();
        places.into_iter().map(|place| &threads[place]).collect()
    }

    /// The selected threads of a list, with their places.
    pub(super) fn meant<'a>(
        &'a self,
        list: &'a List,
        matches: &'a [bool],
    ) -> impl Iterator<Item = (usize, &'a Thread)> + 'a {
        let threads = &self.evidence().threads;
        list.meant(matches).inspect(|_| self.worked(1)).map(|place| (place, &threads[place]))
    }

    /// Whether a selector selects each name of a thread, by the number of the name.
    pub(super) fn names_matching(&self, selector: &Selector) -> Arc<[bool]> {
        if let Some(known) = self.thread_lists.matches.lock().get(selector.as_str()) {
            return Arc::clone(known);
        }
        let threads = &self.evidence().threads;
        self.worked(self.thread_lists.named.len());
        let names = self.thread_lists.named.iter();
        let names = names.map(|(place, disguised)| (threads[*place].name.as_str(), *disguised));
        let matches: Arc<[bool]> =
            names.map(|(name, disguised)| selector.means(name, disguised)).collect();
        let text = selector.as_str().to_owned();
        self.thread_lists.matches.lock().insert(text, Arc::clone(&matches));
        matches
    }

    /// Counts rows or names that were visited.
    fn worked(&self, count: usize) {
        self.thread_lists.work.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Rows and names of threads visited so far: a measure that no clock disturbs.
    #[cfg(test)]
    pub(crate) fn work(&self) -> u64 {
        self.thread_lists.work.load(Ordering::Relaxed)
    }
}
