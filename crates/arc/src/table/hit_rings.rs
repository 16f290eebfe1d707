//! Notes of hits for the lists: small rings, one for each processor. A thread that has the
//! sublist's lock empties them into the lists.
//!
//! A hit that has to move its entry notes the entry's number here. Rings are hints: an entry whose
//! note is lost has its *touched* flag, and the eviction that meets it moves it then. So a note may
//! be lost when threads share a ring, or when the ring is full and the lock is taken.
//!
//! A hit on an MFU entry notes nothing. It writes the current age into the entry, unless it is
//! there already (see [`mfu_order`](super::mfu_order)). It also counts that, by thread, so that
//! ages advance.
//!
//! A ring also has the credit of its thread: how many hits of watched entries may be shown to the
//! referee of their kind. Arrivals give credit, so the referee's work is in proportion to misses,
//! not to hits. A run of hits uses what was saved up.

use super::meta::Word;
use crate::policy::Kind;
use crate::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use crate::threads;

/// Notes a ring holds.
const NOTES: usize = 14;

/// Hits that may be shown to a referee for each arrival.
const CREDIT_PER_ARRIVAL: u64 = 64;

/// The most credit that is saved up: the entries of the largest shadow. In a loop that turns round,
/// a cacheful of hits follows a cacheful of misses.
const CREDIT_MAX: u16 = 2048;

/// Uses that a thread gathers at most.
const BATCH_MAX: u64 = 256;

const EXACT: u64 = 1 << 16;

const PROMOTE: u64 = 1 << 63;

/// A hit, as noted: which slot, which generation of it, whether it goes to MFU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: u32,
    pub(crate) generation: u64,
    pub(crate) promote: bool,
}

impl Note {
    const fn pack(self) -> u64 {
        let promote = if self.promote { PROMOTE } else { 0 };
        // Plus 1, so that no note is 0.
        promote | (self.generation << 33) | (self.id as u64 + 1)
    }

    const fn unpack(note: u64) -> Self {
        let id = (note & 0x1_FFFF_FFFF) as u32;
        Self {
            id: id.wrapping_sub(1),
            generation: (note >> 33) & 0x1_FFFF,
            promote: note & PROMOTE != 0,
        }
    }
}

#[repr(align(128))]
struct Ring {
    len: AtomicU16,
    /// Hits that may be shown to the referee, by kind.
    credit: [AtomicU16; 2],
    /// Arrivals for which credit has been given, modulo 2^16.
    credited: AtomicU16,
    /// First uses of MFU entries in an age, by kind, that are not counted yet.
    uses: [AtomicU32; 2],
    notes: [AtomicU64; NOTES],
}

/// The age of a sublist's MFU list, and how many uses a thread gathers before it has them counted.
#[derive(Clone, Copy)]
pub(crate) struct Now(u64);

impl Now {
    /// The current age.
    pub(crate) const fn age(self) -> u16 {
        self.0 as u16
    }

    /// Whether every hit has to be noted.
    pub(crate) const fn is_exact(self) -> bool {
        self.0 & EXACT != 0
    }

    const fn batch(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The rings of one sublist, and the ages of its MFU lists.
#[repr(C)]
pub(crate) struct HitRings {
    now: [AtomicU64; 2],
    exact: bool,
    rings: Box<[Ring]>,
}

impl HitRings {
    /// With `exact`, every hit is noted. So many `rings`: a power of two.
    pub(crate) fn new(exact: bool, rings: usize) -> Self {
        let ring = |_| Ring {
            len: AtomicU16::new(0),
            credit: [0; 2].map(AtomicU16::new),
            credited: AtomicU16::new(0),
            uses: [0; 2].map(AtomicU32::new),
            notes: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Self {
            now: [(1 << 32) | if exact { EXACT } else { 0 }; 2].map(AtomicU64::new),
            exact,
            rings: (0..rings).map(ring).collect(),
        }
    }

    pub(crate) const fn is_exact(&self) -> bool {
        self.exact
    }

    /// The age to note when an MFU entry of a kind is hit.
    #[inline]
    pub(crate) fn now(&self, kind: Kind) -> Now {
        Now(self.now[kind as usize].load(Ordering::Relaxed))
    }

    /// Sets the age of a kind; it lasts for `width` uses. Only under the lock.
    pub(crate) fn set_now(&self, kind: Kind, age: u16, width: u64) {
        let batch = (width / self.rings.len() as u64).clamp(1, BATCH_MAX);
        let exact = if self.exact { EXACT } else { 0 };
        self.now[kind as usize].store((batch << 32) | u64::from(age) | exact, Ordering::Relaxed);
    }

    /// Counts a use of an MFU entry if it is the first in this age. Returns whether this thread has
    /// gathered so many that they should be taken over, under the lock.
    ///
    /// `thread` is the number of this thread. The outcome cannot be predicted, so there is no
    /// branch for it.
    #[inline(always)]
    pub(crate) fn count_use(&self, kind: Kind, now: Now, first: bool, thread: usize) -> bool {
        // Threads that share a ring may lose some counts to each other.
        let uses = &self.ring(thread).uses[kind as usize];
        let count = uses.load(Ordering::Relaxed) + u32::from(first);
        uses.store(count, Ordering::Relaxed);
        count >= now.batch() && first && count.is_multiple_of(now.batch())
    }

    /// Takes over what this thread has counted, or with `all` every one. Only under the lock.
    pub(crate) fn take_uses(&self, all: bool, kind: Kind) -> u64 {
        let own = std::slice::from_ref(self.own());
        let mut sum = 0;
        for ring in if all { &self.rings } else { own } {
            let uses = &ring.uses[kind as usize];
            let count = uses.load(Ordering::Relaxed);
            if count > 0 {
                uses.store(0, Ordering::Relaxed);
                sum += u64::from(count);
            }
        }
        sum
    }

    /// Whether this thread has no credit left to show a hit to the referee of a kind, and no
    /// arrival has given new credit. `arrivals` is how many there have been.
    #[inline(always)]
    pub(crate) fn is_spent(&self, kind: Kind, thread: usize, arrivals: u64) -> bool {
        let ring = self.ring(thread);
        ring.credit[kind as usize].load(Ordering::Relaxed) == 0
            && ring.credited.load(Ordering::Relaxed) == arrivals as u16
    }

    /// Takes the credit for a hit. If there is none, first adds what arrivals have given. Returns
    /// whether the hit may be shown. Threads that share a ring may spend some twice.
    pub(crate) fn spend(&self, kind: Kind, thread: usize, arrivals: u64) -> bool {
        let ring = self.ring(thread);
        let own = &ring.credit[kind as usize];
        if own.load(Ordering::Relaxed) == 0 {
            let arrived = (arrivals as u16).wrapping_sub(ring.credited.load(Ordering::Relaxed));
            let given = u64::from(arrived) * CREDIT_PER_ARRIVAL;
            for credit in &ring.credit {
                let sum = u64::from(credit.load(Ordering::Relaxed)) + given;
                credit.store(sum.min(u64::from(CREDIT_MAX)) as u16, Ordering::Relaxed);
            }
            ring.credited.store(arrivals as u16, Ordering::Relaxed);
        }
        let credit = own.load(Ordering::Relaxed);
        own.store(credit.saturating_sub(1), Ordering::Relaxed);
        credit > 0
    }

    #[inline(always)]
    fn ring(&self, thread: usize) -> &Ring {
        &self.rings[thread & (self.rings.len() - 1)]
    }

    fn own(&self) -> &Ring {
        self.ring(threads::number())
    }

    /// Notes a hit. Returns false, without noting it, if the ring is full.
    #[inline]
    pub(crate) fn note(&self, id: u32, word: Word, promote: bool) -> bool {
        let ring = self.own();
        let len = ring.len.load(Ordering::Relaxed);
        let Some(slot) = ring.notes.get(len as usize) else {
            return false;
        };
        slot.store(Note { id, generation: word.generation(), promote }.pack(), Ordering::Release);
        ring.len.store(len + 1, Ordering::Release);
        true
    }

    /// Empties the ring of this thread, or with `all` every ring. Only under the lock.
    pub(crate) fn drain(&self, all: bool, mut each: impl FnMut(Note)) {
        let own = std::slice::from_ref(self.own());
        for ring in if all { &self.rings } else { own } {
            let len = ring.len.load(Ordering::Acquire).min(NOTES as u16);
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_in_order_and_once() {
        let hit_rings = HitRings::new(false, 2);
        let word =
            super::super::meta::Meta::new().load().vacated().with_state(super::super::meta::MFU);
        let mut noted = 0;
        while hit_rings.note(u32::MAX - noted - 1, word, noted % 2 == 1) {
            noted += 1;
        }
        assert_eq!(noted as usize, NOTES);
        let mut seen = 0;
        hit_rings.drain(false, |note| {
            let expected = Note {
                id: u32::MAX - seen - 1,
                generation: word.generation(),
                promote: seen % 2 == 1,
            };
            assert_eq!(note, expected);
            seen += 1;
        });
        assert_eq!(seen, noted);
        hit_rings.drain(true, |note| panic!("{note:?} twice"));
        assert!(hit_rings.note(1, word, false));
    }

    #[test]
    fn uses_are_taken_over_in_batches() {
        let hit_rings = HitRings::new(false, 4);
        hit_rings.set_now(Kind::Metadata, 107, 3 * 4);
        let now = hit_rings.now(Kind::Metadata);
        assert_eq!((now.age(), hit_rings.now(Kind::Data).age()), (107, 0));
        let count = |first| hit_rings.count_use(Kind::Metadata, now, first, threads::number());
        let due: Vec<_> = (0..6).map(|_| count(true)).collect();
        assert!(!count(false), "only once for each");
        assert_eq!(due, [false, false, true, false, false, true]);
        assert_eq!(hit_rings.take_uses(false, Kind::Data), 0);
        assert_eq!(hit_rings.take_uses(false, Kind::Metadata), 6);
        assert_eq!(hit_rings.take_uses(true, Kind::Metadata), 0);
    }
}
