//! The names by which the kernel may come to an inode.
//!
//! The kernel caches a name for a while after a reply gave it. It may come to an inode by any of
//! several names. One of them may date from before a rename behind the mount, and the kernel does
//! not say which name it used. So this module keeps all names that replies gave recently, and an
//! open checks each of them. An older name does not matter: the kernel looks it up again before it
//! follows it.
//!
//! Nearly all inodes have one name, so the others are in a box of their own. The lock is a leaf.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Most names kept in addition to the last one. If a file has more, its list of names is incomplete
/// for as long as the kernel may cache them.
const OTHERS_MAX: usize = 16;

/// A name under which the kernel knows an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// Number of the directory.
    pub(crate) parent: u64,
    /// Name in it; empty for the root.
    pub(crate) name: Box<OsStr>,
}

impl Name {
    pub(crate) fn of(parent: u64, name: &OsStr) -> Self {
        Self { parent, name: name.into() }
    }

    /// Whether this is the name of an entry of that directory.
    pub(crate) fn is(&self, parent: u64, name: &OsStr) -> bool {
        self.parent == parent && *self.name == *name
    }
}

/// A name, and when a reply last gave it to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelName {
    pub(crate) name: Name,
    pub(crate) at: Instant,
}

/// The names of one inode.
#[derive(Debug, Default)]
pub(crate) struct KernelNames(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    last: Option<KernelName>,
    others: Option<Box<Others>>,
}

#[derive(Debug, Default)]
struct Others {
    names: Vec<KernelName>,
    /// When a reply last gave a name that is not kept.
    left_out: Option<Instant>,
}

impl KernelNames {
    /// A reply gives the kernel this name at `now`. The kernel may cache earlier names for up to
    /// `memory`.
    pub(crate) fn report(&self, parent: u64, name: &OsStr, now: Instant, memory: Duration) {
        let mut known = self.0.lock();
        if let Some(last) = known.last.as_mut().filter(|last| last.name.is(parent, name)) {
            last.at = now;
            return;
        }
        drop(known);
        let reported = KernelName { name: Name::of(parent, name), at: now };
        let mut known = self.0.lock();
        let replaced = known.last.replace(reported);
        let mut gone = Vec::new();
        if let Some(before) = replaced {
            let others = known.others.get_or_insert_default();
            others.add(before, now, memory, &mut gone);
            gone.extend(others.names.extract_if(.., |other| other.name.is(parent, name)));
        }
        drop(known);
        drop(gone);
    }

    /// The name in the latest reply; empty for the root.
    pub(crate) fn last(&self) -> Name {
        self.0.lock().last.as_ref().map(|reported| reported.name.clone()).unwrap_or_default()
    }

    /// The names that the kernel may have cached at `now`; `None` if the list is incomplete.
    pub(crate) fn cached(&self, now: Instant, memory: Duration) -> Option<Vec<KernelName>> {
        let may_be_cached = |at: Instant| now.saturating_duration_since(at) <= memory;
        let known = self.0.lock();
        let mut cached: Vec<_> = known.last.iter().cloned().collect();
        if let Some(others) = &known.others {
            if others.left_out.is_some_and(may_be_cached) {
                return None;
            }
            cached.extend_from_slice(&others.names);
        }
        drop(known);
        cached.retain(|reported| may_be_cached(reported.at));
        Some(cached)
    }

    /// The kernel knows the inode by another name instead of this one, or, with `None`, not by this
    /// one any more.
    pub(crate) fn changed(&self, reported: &KernelName, to: Option<KernelName>) {
        let mut known = self.0.lock();
        let is_last = known.last.as_ref() == Some(reported);
        let mut gone = Vec::new();
        match (is_last, to) {
            (true, Some(to)) => gone.extend(known.last.replace(to)),
            // Its path is still the best one available.
            (true, None) => {}
            (false, to) => {
                if let Some(others) = &mut known.others {
                    gone.extend(others.names.extract_if(.., |other| other == reported));
                    if !gone.is_empty() {
                        others.names.extend(to);
                    }
                }
            }
        }
        drop(known);
        drop(gone);
    }
}

impl Others {
    /// Adds a name, and drops those that the kernel has not cached any more.
    fn add(
        &mut self,
        reported: KernelName,
        now: Instant,
        memory: Duration,
        gone: &mut Vec<KernelName>,
    ) {
        let is_old = |other: &mut KernelName| now.saturating_duration_since(other.at) > memory;
        gone.extend(self.names.extract_if(.., is_old));
        if self.names.len() == OTHERS_MAX {
            let oldest = (0..self.names.len()).min_by_key(|&place| self.names[place].at);
            if let Some(oldest) = oldest.map(|place| self.names.swap_remove(place)) {
                self.left_out = self.left_out.max(Some(oldest.at));
                gone.push(oldest);
            }
        }
        self.names.push(reported);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(3);

    fn second(seconds: u64) -> Instant {
        use std::sync::LazyLock;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        *START + Duration::from_secs(seconds)
    }

    fn report(names: &KernelNames, name: &str, at: u64) {
        names.report(1, name.as_ref(), second(at), MEMORY);
    }

    fn cached(names: &KernelNames, at: u64) -> Option<Vec<String>> {
        let reported = names.cached(second(at), MEMORY)?;
        Some(
            reported
                .iter()
                .map(|reported| reported.name.name.to_str().unwrap().to_owned())
                .collect(),
        )
    }

    #[test]
    fn recently_reported_names_may_be_cached_and_old_ones_are_not() {
        let names = KernelNames::default();
        assert_eq!(cached(&names, 0).unwrap(), [""; 0]);
        assert_eq!(names.last(), Name::default());
        report(&names, "a", 0);
        report(&names, "b", 1);
        report(&names, "a", 2);
        assert_eq!(cached(&names, 2).unwrap(), ["a", "b"]);
        assert_eq!(cached(&names, 4).unwrap(), ["a", "b"], "at the limit exactly");
        assert_eq!(cached(&names, 5).unwrap(), ["a"]);
        report(&names, "a", 9);
        assert_eq!(cached(&names, 12).unwrap(), ["a"], "it was reported again");
        assert_eq!(cached(&names, 13).unwrap(), [""; 0]);
        assert_eq!(names.last(), Name::of(1, "a".as_ref()));
        names.report(2, "a".as_ref(), second(13), MEMORY);
        assert_eq!(cached(&names, 13).unwrap(), ["a"], "in another directory");
    }

    #[test]
    fn with_too_many_names_the_list_is_known_to_be_incomplete() {
        let names = KernelNames::default();
        for name in 0..=OTHERS_MAX {
            report(&names, &name.to_string(), 0);
        }
        assert_eq!(cached(&names, 0).unwrap().len(), OTHERS_MAX + 1);
        report(&names, "one more", 1);
        assert_eq!(cached(&names, 3), None);
        assert_eq!(cached(&names, 4).unwrap(), ["one more"], "the others have expired");
        report(&names, "late", 4);
        assert_eq!(names.0.lock().others.as_ref().unwrap().names.len(), 1);
    }

    #[test]
    fn a_name_that_was_changed_is_another_or_none() {
        let names = KernelNames::default();
        report(&names, "a", 0);
        report(&names, "b", 1);
        let reported = names.cached(second(1), MEMORY).unwrap();
        let to = |name: &str| Some(KernelName { name: Name::of(1, name.as_ref()), at: second(2) });
        names.changed(&reported[1], to("c"));
        assert_eq!(cached(&names, 3).unwrap(), ["b", "c"]);
        names.changed(&reported[1], to("d"));
        assert_eq!(cached(&names, 3).unwrap(), ["b", "c"], "it has another name already");
        names.changed(&reported[0], to("e"));
        assert_eq!(names.last(), Name::of(1, "e".as_ref()));
        let reported = names.cached(second(3), MEMORY).unwrap();
        reported.iter().for_each(|reported| names.changed(reported, None));
        assert_eq!(cached(&names, 3).unwrap(), ["e"]);
    }
}
