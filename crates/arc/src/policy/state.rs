//! The words of the policy: kinds of entries, lists, states, kinds of access.

/// The kind of an entry. Each kind has its own balance of MRU against MFU, and the two kinds have a
/// balance between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The bytes of an object.
    Data = 0,
    /// Descriptions of objects: attributes, directory entries, link targets.
    Metadata = 1,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Data, Self::Metadata];

    /// The other kind.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Data => Self::Metadata,
            Self::Metadata => Self::Data,
        }
    }
}

/// The reason for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A program needs it now.
    Demand,
    /// It will probably be needed. Never promotes an entry.
    Prefetch,
}

/// The two lists of ARC (T1 and T2 in the paper; with their ghosts B1 and B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Seen once lately: most recently used.
    Mru = 0,
    /// Seen more than once lately: most frequently used.
    Mfu = 1,
}

impl List {
    /// Both lists.
    pub const ALL: [Self; 2] = [Self::Mru, Self::Mfu];

    /// The other list.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Mru => Self::Mfu,
            Self::Mfu => Self::Mru,
        }
    }
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// An entry seen once.
    Mru,
    /// An entry seen more than once.
    Mfu,
    /// The key of an entry evicted from MRU.
    MruGhost,
    /// The key of an entry evicted from MFU.
    MfuGhost,
    /// Being loaded: no value yet.
    Loading,
    /// Not in use.
    Vacant,
}

impl State {
    /// The list of this state, and whether it is the ghosts' one.
    #[must_use]
    pub const fn list(self) -> Option<(List, bool)> {
        match self {
            Self::Mru => Some((List::Mru, false)),
            Self::Mfu => Some((List::Mfu, false)),
            Self::MruGhost => Some((List::Mru, true)),
            Self::MfuGhost => Some((List::Mfu, true)),
            Self::Loading | Self::Vacant => None,
        }
    }

    /// The state of entries on a list.
    #[must_use]
    pub const fn live(list: List) -> Self {
        match list {
            List::Mru => Self::Mru,
            List::Mfu => Self::Mfu,
        }
    }

    /// The state of ghosts of a list.
    #[must_use]
    pub const fn ghost(list: List) -> Self {
        match list {
            List::Mru => Self::MruGhost,
            List::Mfu => Self::MfuGhost,
        }
    }

    /// Whether there is a value to give out.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Mru | Self::Mfu)
    }

    /// Whether only the key is left.
    #[must_use]
    pub const fn is_ghost(self) -> bool {
        matches!(self, Self::MruGhost | Self::MfuGhost)
    }
}

/// Number of lists: two kinds, MRU and MFU, live and ghost.
pub const LISTS: usize = 8;

/// The number of a list: kind, then live or ghost, then MRU or MFU.
#[must_use]
pub const fn list_index(kind: Kind, list: List, ghost: bool) -> usize {
    kind as usize * 4 + (ghost as usize) * 2 + list as usize
}

/// Number of lists of the engine: those of ARC, and a window for each kind.
pub(crate) const ENGINE_LISTS: usize = LISTS + 2;

/// The number of a window: the part of a kind's MRU entries that waits (see
/// [`duel`](super::duel)).
pub(crate) const fn window_index(kind: Kind) -> usize {
    LISTS + kind as usize
}

/// Whether a list is one of ghosts.
#[must_use]
pub const fn is_ghost_list(list: usize) -> bool {
    list < LISTS && list & 2 != 0
}
