//! The plain ARC of the engine's tests behind locks: the price of lists that a hit moves.
//!
//! Its entries are put in once and never leave, so it takes part where every request hits. One
//! lock guards everything, or one lock guards each of several parts.

use crate::caches::{Candidate, Page, page};
use ogive_arc::policy::{Balance, Sublist, transition};
use ogive_arc::{Access, Kind, List};
use std::sync::{Arc, Mutex, PoisonError};

/// The data behind one lock.
struct Part<const BYTES: usize> {
    sublist: Sublist<u64, Arc<Page<BYTES>>>,
    balance: Balance,
    /// The time of the last use, in uses.
    clock: u64,
}

impl<const BYTES: usize> Part<BYTES> {
    /// Puts an entry at the head of its list.
    fn link(&mut self, id: ogive_arc::policy::NodeId) {
        self.clock += 1;
        self.sublist.link(id, self.clock);
    }
}

/// ARC behind as many locks as it has parts.
pub struct LockedArc<const BYTES: usize> {
    name: &'static str,
    parts: Vec<Mutex<Part<BYTES>>>,
}

const fn hash(key: u64) -> u64 {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 29)
}

impl<const BYTES: usize> LockedArc<BYTES> {
    /// With every key below `entries` in it.
    pub fn new(name: &'static str, parts: usize, entries: usize) -> Self {
        let capacity = entries as u64;
        let part = |_| {
            let balance = Balance::new(0, capacity, capacity);
            Mutex::new(Part { sublist: Sublist::new(), balance, clock: 0 })
        };
        let locked = Self { name, parts: (0..parts).map(part).collect() };
        for key in 0..capacity {
            let mut part = locked.part(key).lock().unwrap_or_else(PoisonError::into_inner);
            let part = &mut *part;
            let id = part.sublist.add(hash(key), key, Kind::Data);
            part.balance.add_anon(Kind::Data, 1);
            let (sublist, balance) = (&mut part.sublist, &mut part.balance);
            transition::arrive(sublist, balance, id, List::Mru, 1, Arc::new(page()));
            part.link(id);
        }
        locked
    }

    fn part(&self, key: u64) -> &Mutex<Part<BYTES>> {
        &self.parts[(hash(key) >> 40) as usize % self.parts.len()]
    }

    fn find(&self, key: u64) -> Option<Arc<Page<BYTES>>> {
        let mut part = self.part(key).lock().unwrap_or_else(PoisonError::into_inner);
        let part = &mut *part;
        let id = part.sublist.find(hash(key), &key)?;
        let touch = transition::touch(&mut part.sublist, id, Access::Demand);
        part.sublist.unlink(id);
        if touch.promote {
            transition::promote(&mut part.sublist, &mut part.balance, id);
        }
        part.link(id);
        part.sublist.payload(id).map(Arc::clone)
    }
}

impl<const BYTES: usize> Candidate for LockedArc<BYTES> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn get(&self, key: u64, read: &mut dyn FnMut(&[u8])) -> bool {
        self.find(key).map(|value| read(&value[..])).is_some()
    }
    fn insert(&self, _: u64) {}
    fn evicts(&self) -> bool {
        false
    }
}
