//! What hits leave behind for the lists: small rings, one for each processor, that whoever has
//! the sublist's lock empties into the lists.
//!
//! A hit that has to move its entry notes the entry's number here and goes on. Rings are hints:
//! an entry whose note is lost has its *touched* flag, and the eviction that meets it gives it
//! its move then. So notes may be lost when threads share a ring, or when it is full and the
//! lock is taken.
//!
//! A hit on an MFU entry that was moved lately notes nothing and writes nothing: fewer than an
//! eighth of the list have come before it since ([`Clock`]).

use super::meta::Word;
use crate::policy::Kind;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::threads;

/// Notes a ring holds.
const NOTES: usize = 15;

/// An MFU entry may fall back by an eighth of its list before a hit writes anything.
const TOLERANCE_DIVISOR: u64 = 8;

const PROMOTE: u64 = 1 << 63;

/// A hit, as noted: which slot, which use of it, whether it goes to MFU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: u32,
    pub(crate) uses: u64,
    pub(crate) promote: bool,
}

impl Note {
    const fn pack(self) -> u64 {
        let promote = if self.promote { PROMOTE } else { 0 };
        // Plus 1, so that no note is 0.
        promote | (self.uses << 33) | (self.id as u64 + 1)
    }

    const fn unpack(note: u64) -> Self {
        let id = (note & 0x1_FFFF_FFFF) as u32;
        Self { id: id.wrapping_sub(1), uses: (note >> 33) & 0x7_FFFF, promote: note & PROMOTE != 0 }
    }
}

#[repr(align(128))]
struct Ring {
    len: AtomicU64,
    notes: [AtomicU64; NOTES],
}

/// Moves to the head of the MFU list of a kind, and how many of them an entry may sit out.
#[repr(align(16))]
struct Clock(AtomicU64);

/// The rings and clocks of one sublist.
pub(crate) struct Recency {
    clocks: [Clock; 2],
    exact: bool,
    rings: Box<[Ring]>,
}

impl Recency {
    /// With `exact`, every hit is noted.
    pub(crate) fn new(exact: bool) -> Self {
        let ring =
            |_| Ring { len: AtomicU64::new(0), notes: std::array::from_fn(|_| AtomicU64::new(0)) };
        Self {
            clocks: [0; 2].map(|zero| Clock(AtomicU64::new(zero))),
            exact,
            rings: (0..threads::stripes()).map(ring).collect(),
        }
    }

    pub(crate) const fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether a hit on an MFU entry that was moved at `moved_at` is worth a move.
    #[inline]
    pub(crate) fn is_due(&self, kind: Kind, moved_at: u32) -> bool {
        let clock = self.clocks[kind as usize].0.load(Ordering::Relaxed);
        let (now, tolerance) = ((clock >> 32) as u32, clock as u32);
        self.exact || now.wrapping_sub(moved_at) >= tolerance
    }

    /// Sets the clock of a kind: moves so far, entries on its MFU list. Only under the lock.
    pub(crate) fn set_clock(&self, kind: Kind, moves: u32, len: u64) {
        let tolerance = (len / TOLERANCE_DIVISOR).min(u64::from(u32::MAX / 4));
        let clock = (u64::from(moves) << 32) | tolerance;
        self.clocks[kind as usize].0.store(clock, Ordering::Relaxed);
    }

    fn own(&self) -> &Ring {
        &self.rings[threads::number() & (self.rings.len() - 1)]
    }

    /// Notes a hit. Returns false, without noting it, if the ring is full.
    #[inline]
    pub(crate) fn note(&self, id: u32, word: Word, promote: bool) -> bool {
        let ring = self.own();
        let len = ring.len.load(Ordering::Relaxed);
        let Some(slot) = ring.notes.get(len as usize) else {
            return false;
        };
        slot.store(Note { id, uses: word.uses(), promote }.pack(), Ordering::Release);
        ring.len.store(len + 1, Ordering::Release);
        true
    }

    /// Empties the ring of this thread, or with `all` every ring. Only under the lock.
    pub(crate) fn drain(&self, all: bool, mut each: impl FnMut(Note)) {
        let own = std::slice::from_ref(self.own());
        for ring in if all { &self.rings } else { own } {
            let len = ring.len.load(Ordering::Acquire).min(NOTES as u64);
            if len == 0 {
                continue;
            }
            for slot in &ring.notes[..len as usize] {
                let note = slot.load(Ordering::Acquire);
                if note != 0 {
                    slot.store(0, Ordering::Relaxed);
                    each(Note::unpack(note));
                }
            }
            ring.len.store(0, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(shuttle), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_in_order_and_once() {
        let recency = Recency::new(false);
        let word =
            super::super::meta::Meta::new().load().vacated().with_state(super::super::meta::MFU);
        let mut noted = 0;
        while recency.note(u32::MAX - noted - 1, word, noted % 2 == 1) {
            noted += 1;
        }
        assert_eq!(noted as usize, NOTES);
        let mut seen = 0;
        recency.drain(false, |note| {
            let expected =
                Note { id: u32::MAX - seen - 1, uses: word.uses(), promote: seen % 2 == 1 };
            assert_eq!(note, expected);
            seen += 1;
        });
        assert_eq!(seen, noted);
        recency.drain(true, |note| panic!("{note:?} twice"));
        assert!(recency.note(1, word, false));
    }

    #[test]
    fn an_entry_is_due_after_an_eighth_of_its_list() {
        let recency = Recency::new(false);
        recency.set_clock(Kind::Metadata, 107, 64);
        let due = |moved_at| recency.is_due(Kind::Metadata, moved_at);
        assert_eq!((due(100), due(99)), (false, true));
        assert!(recency.is_due(Kind::Data, 0), "an empty list tolerates nothing");
        assert!(Recency::new(true).is_due(Kind::Metadata, 107));
    }
}
