//! The one word of an entry that threads without a lock may write: its pins, and its state.
//!
//! ```text
//! bits  0..32  pins      holds of the entry, and lookups that are about to become one
//! bits 32..35  state     vacant, loading, MRU, MFU, dead
//! bit  35      kind      data or metadata
//! bits 36..47  flags     see the constants below
//! bits 47..64  generation, how often the slot has been taken, modulo 2^17
//! ```
//!
//! The protocol:
//! - A reader may add a pin to a word whose state is live, and to no other word. So a reader never
//!   writes to a slot that is not an entry. A vacant slot may be given back to the system, whatever
//!   readers do.
//! - The state, and all flags but *touched* and *promoted*, are changed under the sublist's lock
//!   only. A hit may lower *prefetched*, *to be demoted*, *handed over* and *watched*, and raises
//!   *returned* for *handed over*. A live entry becomes vacant
//!   only from no pins, in one step.
//! - The store that makes an entry live is a release, a pin is an acquire. So a thread that has
//!   pinned a live entry sees its key and its value, and both stay until it lets go.
//! - The last pin of a *special* entry (parked, to be demoted, dead) is let go under the lock.

use super::live_list::LiveList;
use crate::policy::{Kind, List};
use crate::sync::atomic::{AtomicU64, Ordering};

const PINS: u64 = 0xFFFF_FFFF;
const STATE_SHIFT: u32 = 32;
const STATE: u64 = 7 << STATE_SHIFT;
const METADATA: u64 = 1 << 35;
const GENERATION_SHIFT: u32 = 47;

/// More pins than a machine can have holds of one entry: so many are only reached by forgetting
/// holds in a loop. It is half of what the bits can count. So threads that have not seen it yet
/// cannot carry into the state.
const PINS_MAX: u64 = 1 << 31;

/// Nothing.
pub(crate) const VACANT: u64 = 0;
/// A key on its way in.
pub(crate) const LOADING: u64 = 1 << STATE_SHIFT;
/// Seen once lately.
pub(crate) const MRU: u64 = 2 << STATE_SHIFT;
/// Seen more than once lately.
pub(crate) const MFU: u64 = 3 << STATE_SHIFT;
/// Removed while held: freed with the last hold.
pub(crate) const DEAD: u64 = 4 << STATE_SHIFT;

/// Brought in for a prefetch, and no demand has asked for it yet.
pub(crate) const PREFETCHED: u64 = 1 << 36;
/// To become a ghost with the last release.
pub(crate) const DEMOTE: u64 = 1 << 37;
/// Loading: not in the index any more, to be dead as soon as it is loaded.
pub(crate) const DOOMED: u64 = 1 << 38;
/// Dead: heavier than the cache, and so not counted against its target.
pub(crate) const OVERSIZE: u64 = 1 << 39;
/// Off its list, because an eviction has met it while it was held.
pub(crate) const PARKED: u64 = 1 << 40;
/// Used since it was put where it is on its list.
pub(crate) const TOUCHED: u64 = 1 << 41;
/// Used by a demand on MRU: it belongs on MFU.
pub(crate) const PROMOTED: u64 = 1 << 42;
/// One of MRU that waits in the window.
pub(crate) const WAITING: u64 = 1 << 43;
/// A referee samples its key: every hit has to be noted.
pub(crate) const WATCHED: u64 = 1 << 44;
/// A cache above has its bytes: it is the first to leave, unless a demand asks for it before.
pub(crate) const HANDED: u64 = 1 << 45;
/// It came back, as a ghost or after it was handed over: it is not handed over again.
pub(crate) const RETURNED: u64 = 1 << 46;

/// With any of these the last pin is let go under the lock.
const SPECIAL: u64 = DEAD | DEMOTE | PARKED;
const FLAGS: u64 = PREFETCHED
    | DEMOTE
    | DOOMED
    | OVERSIZE
    | PARKED
    | TOUCHED
    | PROMOTED
    | WAITING
    | WATCHED
    | HANDED
    | RETURNED;
/// A demand takes these away, each with something to do.
pub(crate) const ASKED_FOR: u64 = PREFETCHED | DEMOTE | HANDED;

/// A word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    pub(crate) const fn pins(self) -> u64 {
        self.0 & PINS
    }

    pub(crate) const fn state(self) -> u64 {
        self.0 & STATE
    }

    pub(crate) const fn is(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    pub(crate) const fn any(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    /// MRU or MFU.
    pub(crate) const fn is_live(self) -> bool {
        matches!(self.state(), MRU | MFU)
    }

    /// MFU, and with no flag that a hit has to look at.
    #[inline]
    pub(crate) const fn is_plain_mfu(self) -> bool {
        self.0 & (STATE | ASKED_FOR | WATCHED) == MFU
    }

    /// The same, but that a referee samples its key.
    #[inline]
    pub(crate) const fn is_watched_mfu(self) -> bool {
        self.0 & (STATE | ASKED_FOR | WATCHED) == MFU | WATCHED
    }

    /// The list of a live entry.
    pub(crate) const fn list(self) -> List {
        if self.state() == MFU { List::Mfu } else { List::Mru }
    }

    /// The list a live entry is or should be on.
    pub(crate) const fn list_due(self) -> List {
        if self.is(PROMOTED) { List::Mfu } else { self.list() }
    }

    pub(crate) const fn kind(self) -> Kind {
        if self.0 & METADATA == 0 { Kind::Data } else { Kind::Metadata }
    }

    /// Where a live entry belongs.
    pub(crate) const fn at(self) -> LiveList {
        LiveList { kind: self.kind(), list: self.list(), waits: self.is(WAITING) }
    }

    /// How often the slot has been taken, modulo 2^17.
    pub(crate) const fn generation(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }

    pub(crate) const fn with(self, bits: u64) -> Self {
        Self(self.0 | bits)
    }

    pub(crate) const fn without(self, bits: u64) -> Self {
        Self(self.0 & !bits)
    }

    pub(crate) const fn with_state(self, state: u64) -> Self {
        Self((self.0 & !STATE) | state)
    }

    pub(crate) const fn with_kind(self, kind: Kind) -> Self {
        Self((self.0 & !METADATA) | (kind as u64 * METADATA))
    }

    /// One pin more.
    pub(crate) const fn pinned(self) -> Self {
        Self(self.0 + 1)
    }

    /// One pin less.
    pub(crate) const fn unpinned(self) -> Self {
        Self(self.0 - 1)
    }

    /// Vacant, in the next generation.
    pub(crate) const fn vacated(self) -> Self {
        Self(((self.generation() + 1) << GENERATION_SHIFT) | VACANT)
    }

    /// Not parked any more, if that was the last pin.
    pub(crate) const fn put_back(self) -> Self {
        if self.pins() == 0 { self.without(PARKED) } else { self }
    }

    /// Some of the flags.
    pub(crate) const fn only(self, flags: u64) -> u64 {
        self.0 & flags
    }

    /// Without any flag.
    pub(crate) const fn plain(self) -> Self {
        Self(self.0 & !FLAGS)
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = (self.0 & FLAGS) >> 36;
        write!(f, "state {} pins {} flags {flags:#b}", self.state() >> STATE_SHIFT, self.pins())
    }
}

/// The word of an entry. All zero is a vacant one.
pub(crate) struct Meta(AtomicU64);

impl Meta {
    /// A vacant one.
    #[cfg(any(test, shuttle))]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(VACANT))
    }

    /// The word now.
    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Pins the entry if it is live; returns the word before. Ends the program with too many pins.
    #[inline(always)]
    pub(crate) fn pin_live(&self) -> Option<Word> {
        let mut word = Word(self.0.load(Ordering::Relaxed));
        while word.is_live() {
            if word.pins() >= PINS_MAX {
                too_many_pins();
            }
            let (old, new) = (word.0, word.pinned().0);
            match self.0.compare_exchange_weak(old, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(word),
                Err(now) => word = Word(now),
            }
        }
        None
    }

    /// Adds a pin; the caller has one, or the lock. Ends the program with too many pins.
    pub(crate) fn pin_again(&self) {
        let before = Word(self.0.fetch_add(1, Ordering::Relaxed));
        if before.pins() >= PINS_MAX {
            too_many_pins();
        }
    }

    /// Counts pins as if holds had been forgotten, until only `left` more are allowed. The entry
    /// has one hold.
    #[cfg(test)]
    pub(crate) fn forget_pins_but(&self, left: u64) {
        self.0.fetch_add(PINS_MAX - 1 - left, Ordering::Relaxed);
    }

    /// Lets a pin go and returns true. Returns false if the last pin has to go under the lock: the
    /// entry is special, or the caller wants it so.
    #[inline(always)]
    pub(crate) fn unpin(&self, last_under_lock: bool) -> bool {
        let mut word = Word(self.0.load(Ordering::Relaxed));
        loop {
            if word.pins() == 1 && (last_under_lock || word.any(SPECIAL)) {
                return false;
            }
            let (old, new) = (word.0, word.unpinned().0);
            match self.0.compare_exchange_weak(old, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = Word(now),
            }
        }
    }

    /// Changes the word; returns it as it was and as it is. Only under the lock. Gives up,
    /// with the word found, when `change` says so.
    pub(crate) fn change(
        &self,
        change: impl Fn(Word) -> Option<Word>,
    ) -> Result<(Word, Word), Word> {
        let mut word = self.load();
        loop {
            let Some(new) = change(word) else {
                return Err(word);
            };
            match self.0.compare_exchange_weak(word.0, new.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((word, new)),
                Err(now) => word = Word(now),
            }
        }
    }

    /// Raises flags; returns the word before. The caller has a pin, or the lock.
    pub(crate) fn raise(&self, flags: u64) -> Word {
        Word(self.0.fetch_or(flags, Ordering::AcqRel))
    }

    /// Lowers flags; returns the word before. The caller has a pin, or the lock.
    pub(crate) fn lower(&self, flags: u64) -> Word {
        Word(self.0.fetch_and(!flags, Ordering::AcqRel))
    }
}

/// Ends the program, as `Arc` does when its count would overflow. With more pins the count would
/// run over into the state, and a value could be dropped during a read.
#[cold]
#[inline(never)]
fn too_many_pins() -> ! {
    std::process::abort();
}

impl Word {
    /// A vacant slot's word with the state, kind and flags of a live entry's.
    pub(crate) const fn as_live(self, live: Self) -> Self {
        Self((self.generation() << GENERATION_SHIFT) | (live.0 & (STATE | METADATA | FLAGS)))
    }
}
