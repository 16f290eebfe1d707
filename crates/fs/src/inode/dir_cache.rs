//! The kernel's cache of a directory's names (`FOPEN_CACHE_DIR`), and which handles may use it.
//!
//! A handle that *shares* reads the kernel's cached names, and adds those that it reads. FUSE has
//! no way to assign names to handles. So only handles of one version of a directory share at a
//! time. The cached names stay for later opens of the same version.
//!
//! A handle that must not read old names makes the kernel drop them while it is being opened. The
//! drop is certain once the first request by that handle arrives. Until then no other open may use
//! the cache, because the replies to two opens can overtake each other.
//!
//! Names are cached no longer than attributes, which come with them. Otherwise a program that needs
//! attributes would have to ask for each file separately.
//!
//! In a directory too large for a listing, offsets are entries of a table ([`crate::dir_cookies`]),
//! including the offsets that the kernel caches. Handles that share use one table. When the last of
//! them closes, the table is dropped, and the kernel's cache with it.
//!
//! The lock is a leaf.

use crate::dir_cookies::DirCookies;
use crate::held_names::HeldNames;
use crate::record::Version;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kernel's cache of one directory.
#[derive(Default)]
pub(crate) struct DirCache(Mutex<Option<Box<State>>>);

struct State {
    /// The version of the cached names, while it is certain.
    version: Option<Version>,
    /// The device that the directory is on.
    device: u64,
    since: Instant,
    /// The kernel has dropped all names that it cached before.
    has_dropped: bool,
    /// How many handles share.
    open: usize,
    /// The kernel may have handles of an earlier object under this inode.
    is_never_shared: bool,
    /// When attributes came with the names from the source itself.
    attributes_came: Option<Instant>,
    /// The table of those handles' offsets, if the directory is too large for a listing.
    dir_cookies: Option<Arc<DirCookies>>,
}

/// A handle that shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The version that was opened.
    version: Version,
    /// The kernel may keep its cached names; otherwise it drops them.
    pub(crate) keeps: bool,
}

impl DirCache {
    /// For an object whose number belonged to another object in the kernel.
    pub(super) fn never() -> Self {
        let state = State { is_never_shared: true, ..State::new() };
        Self(Mutex::new(Some(Box::new(state))))
    }

    /// Decides whether a handle that is being opened at this version shares. Names that were cached
    /// for longer than `memory` are dropped.
    pub(crate) fn open(
        &self,
        (version, device): (Version, u64),
        memory: Duration,
    ) -> Option<Sharing> {
        if memory.is_zero() {
            return None;
        }
        let mut state = self.0.lock();
        let state = state.get_or_insert_with(|| Box::new(State::new()));
        if state.is_never_shared || (state.version != Some(version) && state.open > 0) {
            return None;
        }
        if state.version != Some(version) {
            let attributes_came = state.attributes_came;
            let fresh = State { version: Some(version), device, ..State::new() };
            **state = State { attributes_came, ..fresh };
        }
        state.open += 1;
        let keeps = state.has_dropped && state.since.elapsed() < memory;
        if !keeps {
            state.since = Instant::now();
        }
        Some(Sharing { version, keeps })
    }

    /// The version and the device of the cached names, while they are certain.
    pub(crate) fn known(&self) -> Option<(Version, u64)> {
        let state = self.0.lock();
        let state = state.as_ref()?;
        state.version.map(|version| (version, state.device))
    }

    /// A request by this handle has come, so the kernel has opened it.
    pub(crate) fn is_opened(&self, sharing: Sharing) {
        if sharing.keeps {
            return;
        }
        if let Some(state) = self.0.lock().as_mut()
            && state.version == Some(sharing.version)
        {
            state.has_dropped = true;
        }
    }

    /// The table of offsets for a handle that shares.
    pub(crate) fn dir_cookies(&self, held: &Arc<HeldNames>) -> Arc<DirCookies> {
        let mut state = self.0.lock();
        let state = state.get_or_insert_with(|| Box::new(State::new()));
        state.dir_cookies.get_or_insert_with(|| Arc::new(DirCookies::new(held))).clone()
    }

    /// A handle that shares was closed.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        let Some(state) = state.as_mut() else { return };
        state.open = state.open.saturating_sub(1);
        if state.open == 0 && state.dir_cookies.take().is_some() {
            // The kernel has cached offsets whose table is gone.
            state.has_dropped = false;
        }
    }

    /// Whether the attributes that came with the names are stale. If so, the next read brings new
    /// ones, so this returns true once.
    pub(crate) fn are_attributes_old(&self, age: Duration) -> bool {
        let mut state = self.0.lock();
        let came = &mut state.get_or_insert_with(|| Box::new(State::new())).attributes_came;
        let are_old = came.is_none_or(|came| came.elapsed() >= age);
        if are_old {
            *came = Some(Instant::now());
        }
        are_old
    }

    /// The kernel's cached names are not certain any more.
    pub(crate) fn forget(&self) {
        if let Some(state) = self.0.lock().as_mut() {
            (state.version, state.has_dropped) = (None, false);
        }
    }
}

impl State {
    fn new() -> Self {
        let since = Instant::now();
        Self {
            version: None,
            device: 0,
            since,
            has_dropped: false,
            open: 0,
            is_never_shared: false,
            attributes_came: None,
            dir_cookies: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);
    const ONE: Version = 1;
    const TWO: Version = 2;

    #[test]
    fn names_are_cached_for_the_same_version_only() {
        let kept = DirCache::default();
        let first = kept.open((ONE, 0), LONG).unwrap();
        assert!(!first.keeps, "the kernel may have other names cached");
        kept.is_opened(first);
        assert!(kept.open((ONE, 0), LONG).unwrap().keeps);
        assert_eq!(kept.open((TWO, 0), LONG), None, "the kernel would mix them");
        kept.close();
        kept.close();
        assert!(!kept.open((TWO, 0), LONG).unwrap().keeps);
        kept.close();
        assert!(
            !kept.open((ONE, 0), LONG).unwrap().keeps,
            "the cached names are of the second version"
        );
    }

    #[test]
    fn no_names_are_shown_before_the_kernel_has_dropped_the_earlier_ones() {
        let kept = DirCache::default();
        let first = kept.open((ONE, 0), LONG).unwrap();
        let overtakes = kept.open((ONE, 0), LONG).unwrap();
        assert!(!overtakes.keeps);
        kept.is_opened(first);
        assert!(kept.open((ONE, 0), LONG).unwrap().keeps);
    }

    #[test]
    fn names_are_dropped_with_the_attributes_that_came_with_them() {
        let kept = DirCache::default();
        kept.is_opened(kept.open((ONE, 0), LONG).unwrap());
        assert!(!kept.open((ONE, 0), Duration::from_nanos(1)).unwrap().keeps);
        assert_eq!(kept.open((ONE, 0), Duration::ZERO), None);
        assert!(kept.open((ONE, 0), LONG).unwrap().keeps);
    }

    #[test]
    fn handles_that_share_have_the_same_offsets_which_go_with_the_names() {
        let held = Arc::default();
        let kept = DirCache::default();
        kept.is_opened(kept.open((ONE, 0), LONG).unwrap());
        let offset = kept.dir_cookies(&held).of(1 << 40);
        assert!(kept.open((ONE, 0), LONG).unwrap().keeps);
        assert_eq!(kept.dir_cookies(&held).cookie(offset), Some(1 << 40));
        kept.close();
        assert_eq!(
            kept.dir_cookies(&held).cookie(offset),
            Some(1 << 40),
            "one handle is still open"
        );
        kept.close();
        assert!(!kept.open((ONE, 0), LONG).unwrap().keeps, "the kernel keeps lost offsets");
        assert_eq!(kept.dir_cookies(&held).cookie(offset), None);
    }

    #[test]
    fn dropped_names_and_another_objects_are_never_shown() {
        let kept = DirCache::default();
        let first = kept.open((ONE, 0), LONG).unwrap();
        kept.is_opened(first);
        kept.forget();
        kept.is_opened(first);
        assert_eq!(kept.open((ONE, 0), LONG), None, "a handle with unknown names is open");
        kept.close();
        assert!(!kept.open((ONE, 0), LONG).unwrap().keeps);
        assert_eq!(DirCache::never().open((ONE, 0), LONG), None);
    }

    #[test]
    fn attributes_are_read_again_when_they_are_stale_whatever_the_version() {
        let kept = DirCache::default();
        assert!(kept.are_attributes_old(LONG), "they never came");
        assert!(!kept.are_attributes_old(LONG));
        kept.open((ONE, 0), LONG).unwrap();
        assert!(!kept.are_attributes_old(LONG));
        assert!(kept.are_attributes_old(Duration::ZERO));
    }
}
