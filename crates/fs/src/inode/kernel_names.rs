//! The names by which the kernel may come to an inode.
//!
//! The kernel believes a name for a while after it was told. It may come to an inode by any of
//! several names, or by one from before a rename behind the mount, and does not say by which. So
//! all names that it was told recently are kept, and an open checks each of them. A name from
//! longer ago does not matter: the kernel looks it up again before it follows it.
//!
//! Nearly all inodes have one name, so further ones are in a box of their own. The lock is a leaf.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Most names kept besides the last one. Of a file with more it is not known which names lead to
/// it, as long as they may be believed in.
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

    /// Whether it is this name in this directory.
    pub(crate) fn is(&self, parent: u64, name: &OsStr) -> bool {
        self.parent == parent && *self.name == *name
    }
}

/// A name, and when the kernel was last told that it leads here.
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
    /// When the kernel was last told a name that is not kept.
    left_out: Option<Instant>,
}

impl KernelNames {
    /// The kernel is told, at `now`, that this name leads here. It may believe in earlier names for
    /// up to `memory`.
    pub(crate) fn tell(&self, parent: u64, name: &OsStr, now: Instant, memory: Duration) {
        let mut known = self.0.lock();
        if let Some(last) = known.last.as_mut().filter(|last| last.name.is(parent, name)) {
            last.at = now;
            return;
        }
        drop(known);
        let told = KernelName { name: Name::of(parent, name), at: now };
        let mut known = self.0.lock();
        let replaced = known.last.replace(told);
        let mut gone = Vec::new();
        if let Some(before) = replaced {
            let others = known.others.get_or_insert_default();
            others.add(before, now, memory, &mut gone);
            gone.extend(others.names.extract_if(.., |other| other.name.is(parent, name)));
        }
        drop(known);
        drop(gone);
    }

    /// The name that the kernel was told last; the root's is empty.
    pub(crate) fn last(&self) -> Name {
        self.0.lock().last.as_ref().map(|told| told.name.clone()).unwrap_or_default()
    }

    /// The names that the kernel may believe in at `now`; `None` if not all of them are known.
    pub(crate) fn believed(&self, now: Instant, memory: Duration) -> Option<Vec<KernelName>> {
        let is_believed = |at: Instant| now.saturating_duration_since(at) <= memory;
        let known = self.0.lock();
        let mut believed: Vec<_> = known.last.iter().cloned().collect();
        if let Some(others) = &known.others {
            if others.left_out.is_some_and(is_believed) {
                return None;
            }
            believed.extend_from_slice(&others.names);
        }
        drop(known);
        believed.retain(|told| is_believed(told.at));
        Some(believed)
    }

    /// The kernel knows the inode by another name instead, or, with `None`, not by this one any
    /// more.
    pub(crate) fn changed(&self, told: &KernelName, to: Option<KernelName>) {
        let mut known = self.0.lock();
        let is_last = known.last.as_ref() == Some(told);
        let mut gone = Vec::new();
        match (is_last, to) {
            (true, Some(to)) => gone.extend(known.last.replace(to)),
            // Its path is still the best there is.
            (true, None) => {}
            (false, to) => {
                if let Some(others) = &mut known.others {
                    gone.extend(others.names.extract_if(.., |other| other == told));
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
    /// Adds a name, and drops those that are not believed any more.
    fn add(
        &mut self,
        told: KernelName,
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
        self.names.push(told);
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

    fn tell(names: &KernelNames, name: &str, at: u64) {
        names.tell(1, name.as_ref(), second(at), MEMORY);
    }

    fn believed(names: &KernelNames, at: u64) -> Option<Vec<String>> {
        let told = names.believed(second(at), MEMORY)?;
        Some(told.iter().map(|told| told.name.name.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn recently_told_names_are_believed_and_old_ones_are_not() {
        let names = KernelNames::default();
        assert_eq!(believed(&names, 0).unwrap(), [""; 0]);
        assert_eq!(names.last(), Name::default());
        tell(&names, "a", 0);
        tell(&names, "b", 1);
        tell(&names, "a", 2);
        assert_eq!(believed(&names, 2).unwrap(), ["a", "b"]);
        assert_eq!(believed(&names, 4).unwrap(), ["a", "b"], "for so long exactly");
        assert_eq!(believed(&names, 5).unwrap(), ["a"]);
        tell(&names, "a", 9);
        assert_eq!(believed(&names, 12).unwrap(), ["a"], "it was told again");
        assert_eq!(believed(&names, 13).unwrap(), [""; 0]);
        assert_eq!(names.last(), Name::of(1, "a".as_ref()));
        names.tell(2, "a".as_ref(), second(13), MEMORY);
        assert_eq!(believed(&names, 13).unwrap(), ["a"], "in another directory");
    }

    #[test]
    fn with_too_many_names_the_list_is_known_to_be_incomplete() {
        let names = KernelNames::default();
        for name in 0..=OTHERS_MAX {
            tell(&names, &name.to_string(), 0);
        }
        assert_eq!(believed(&names, 0).unwrap().len(), OTHERS_MAX + 1);
        tell(&names, "one more", 1);
        assert_eq!(believed(&names, 3), None);
        assert_eq!(believed(&names, 4).unwrap(), ["one more"], "the others are old by now");
        tell(&names, "late", 4);
        assert_eq!(names.0.lock().others.as_ref().unwrap().names.len(), 1);
    }

    #[test]
    fn a_name_that_was_changed_is_another_or_none() {
        let names = KernelNames::default();
        tell(&names, "a", 0);
        tell(&names, "b", 1);
        let told = names.believed(second(1), MEMORY).unwrap();
        let to = |name: &str| Some(KernelName { name: Name::of(1, name.as_ref()), at: second(2) });
        names.changed(&told[1], to("c"));
        assert_eq!(believed(&names, 3).unwrap(), ["b", "c"]);
        names.changed(&told[1], to("d"));
        assert_eq!(believed(&names, 3).unwrap(), ["b", "c"], "it is known by another already");
        names.changed(&told[0], to("e"));
        assert_eq!(names.last(), Name::of(1, "e".as_ref()));
        let told = names.believed(second(3), MEMORY).unwrap();
        told.iter().for_each(|told| names.changed(told, None));
        assert_eq!(believed(&names, 3).unwrap(), ["e"]);
    }
}
