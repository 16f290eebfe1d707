//! The lists of live entries: for each kind MRU, MFU and the window.

use crate::policy::{Kind, LISTS, List, is_ghost_list, list_index, window_index};

/// Lists of live entries: two kinds, MRU, MFU and the window.
pub(super) const LIVE_LISTS: usize = 6;

/// A list of live entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveList {
    pub(crate) kind: Kind,
    pub(crate) list: List,
    /// Of MRU, the window.
    pub(crate) waits: bool,
}

impl LiveList {
    pub(crate) const fn mru(kind: Kind) -> Self {
        Self { kind, list: List::Mru, waits: false }
    }

    pub(crate) const fn mfu(kind: Kind) -> Self {
        Self { kind, list: List::Mfu, waits: false }
    }

    pub(crate) const fn window(kind: Kind) -> Self {
        Self { kind, list: List::Mru, waits: true }
    }

    /// The list with this number, if it is one of live entries.
    pub(crate) const fn of(index: usize) -> Option<Self> {
        if index >= LISTS {
            return Some(Self::window(Kind::ALL[index - LISTS]));
        }
        if is_ghost_list(index) {
            return None;
        }
        let kind = Kind::ALL[index / 4];
        Some(if index.is_multiple_of(2) { Self::mru(kind) } else { Self::mfu(kind) })
    }

    /// Its number among the engine's lists.
    pub(crate) const fn index(self) -> usize {
        if self.waits { window_index(self.kind) } else { list_index(self.kind, self.list, false) }
    }

    /// Its number among the lists of live entries.
    pub(super) const fn live(self) -> usize {
        let place = if self.waits { 2 } else { self.list as usize };
        self.kind as usize * 3 + place
    }

    /// All of them, in the order of [`LiveList::live`].
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Kind::ALL
            .into_iter()
            .flat_map(|kind| [Self::mru(kind), Self::mfu(kind), Self::window(kind)])
    }
}
