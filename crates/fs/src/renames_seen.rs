//! Names that were changed through the mount, for as long as the kernel may come by the old ones.
//!
//! When a program renames or removes an object through the mount, the kernel follows: it has the
//! new name and has dropped the old one. The inode still has the old name. This table maps the old
//! name to the new one. A rename itself asks the origin nothing, and need not know the object that
//! it moves. The table is a hint: the origin is asked whether the new name leads to the inode.
//!
//! The lock is a leaf.

use crate::inode::{KernelName, Name};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Most names kept. Beyond it all are dropped, and a later question about one of them is answered
/// as after a change behind the mount.
const NAMES_MAX: usize = 1 << 13;

/// The new names of objects, by their old names.
#[derive(Debug, Default)]
pub(crate) struct RenamesSeen(Mutex<HashMap<Name, Change>>);

#[derive(Debug)]
struct Change {
    at: Instant,
    to: Option<Name>,
}

/// The state of a name since a reply gave it to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameState {
    /// It was not changed through the mount.
    Unchanged,
    /// Its object was removed, or replaced.
    Removed,
    /// Its object has this name since then.
    Moved(KernelName),
}

impl RenamesSeen {
    /// An object's name changed to `to` at `at`, or was removed. The kernel caches names for up to
    /// `memory`.
    pub(crate) fn note(&self, name: Name, to: Option<Name>, at: Instant, memory: Duration) {
        let mut changes = self.0.lock();
        let mut old = Vec::new();
        if changes.len() >= NAMES_MAX {
            let is_old = |change: &Change| at.saturating_duration_since(change.at) > memory;
            old.extend(changes.extract_if(|_, change| is_old(change)));
            if old.len() < NAMES_MAX / 2 {
                old.extend(changes.drain());
            }
        }
        let replaced = changes.insert(name, Change { at, to });
        drop(changes);
        drop((old, replaced));
    }

    /// The state of a name since a reply gave it to the kernel.
    pub(crate) fn since(&self, reported: &KernelName) -> NameState {
        match self.0.lock().get(&reported.name) {
            // At the very same time either may have been first, so nothing follows.
            Some(change) if change.at > reported.at => match &change.to {
                Some(name) => NameState::Moved(KernelName { name: name.clone(), at: change.at }),
                None => NameState::Removed,
            },
            _ => NameState::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(3600);

    fn name(name: &str) -> Name {
        Name::of(1, name.as_ref())
    }

    fn reported(text: &str, at: Instant) -> KernelName {
        KernelName { name: name(text), at }
    }

    #[test]
    fn changes_of_a_name_count_for_earlier_replies_only() {
        let start = Instant::now();
        let second = |seconds| start + Duration::from_secs(seconds);
        let renames = RenamesSeen::default();
        let (a, b) = (reported("a", second(1)), reported("b", second(1)));
        assert_eq!(renames.since(&a), NameState::Unchanged);
        renames.note(name("a"), Some(name("c")), second(2), MEMORY);
        renames.note(name("b"), None, second(2), MEMORY);
        assert_eq!(renames.since(&a), NameState::Moved(reported("c", second(2))));
        assert_eq!(renames.since(&b), NameState::Removed);
        assert_eq!(
            renames.since(&reported("a", second(2))),
            NameState::Unchanged,
            "it was reported again"
        );
        renames.note(name("a"), None, second(3), MEMORY);
        assert_eq!(renames.since(&a), NameState::Removed);
    }

    /// An object that replaces another is not mistaken for it.
    #[test]
    fn an_object_moved_to_a_name_is_not_the_one_removed_from_it() {
        let (renames, start) = (RenamesSeen::default(), Instant::now());
        let now = start + Duration::from_secs(1);
        renames.note(name("b"), None, now, MEMORY);
        renames.note(name("a"), Some(name("b")), now, MEMORY);
        let NameState::Moved(arrived) = renames.since(&reported("a", start)) else {
            panic!("it moved")
        };
        assert_eq!(renames.since(&arrived), NameState::Unchanged);
        assert_eq!(renames.since(&reported("b", start)), NameState::Removed);
    }

    #[test]
    fn names_are_bounded_and_the_latest_is_kept() {
        let (renames, start) = (RenamesSeen::default(), Instant::now());
        let now = start + Duration::from_secs(1);
        for number in 0..2 * NAMES_MAX {
            let latest = reported(&number.to_string(), start);
            renames.note(latest.name.clone(), None, now, MEMORY);
            assert_eq!(renames.since(&latest), NameState::Removed);
            assert!(renames.0.lock().len() <= NAMES_MAX);
        }
        assert_eq!(renames.since(&reported("0", start)), NameState::Unchanged);
    }
}
