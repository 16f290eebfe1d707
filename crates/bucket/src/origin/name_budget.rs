//! The budget of names in memory, for all listings of a bucket.
//!
//! A program that has a directory open holds its listing, and two programs may hold different
//! listings of one directory. So all listings share one budget, and return their share when they
//! are dropped. `origin_names_held` in `ogivestats` counts the names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many names may be in memory, of some 200 bytes each. Each listing may exceed it by one page.
const NAMES_MAX: u64 = 500_000;

/// How many names are in memory.
#[derive(Debug)]
pub(super) struct NameBudget {
    names: AtomicU64,
    most: u64,
}

impl Default for NameBudget {
    fn default() -> Self {
        Self::of(NAMES_MAX)
    }
}

impl NameBudget {
    /// A budget of `most` names.
    pub(super) fn of(most: u64) -> Self {
        Self { names: AtomicU64::new(0), most }
    }

    /// How many names are in memory.
    pub(super) fn names(&self) -> u64 {
        self.names.load(Relaxed)
    }
}

/// One listing's share; the listing itself counts as one name.
#[derive(Debug)]
pub(super) struct NameShare {
    held: Arc<NameBudget>,
    names: u64,
}

impl NameShare {
    /// The share of a listing without names.
    pub(super) fn of(held: &Arc<NameBudget>) -> Self {
        held.names.fetch_add(1, Relaxed);
        Self { held: Arc::clone(held), names: 1 }
    }

    /// A share for another listing.
    pub(super) fn beside(&self) -> Self {
        Self::of(&self.held)
    }

    /// Adds a name. Whether there was room for it.
    pub(super) fn grow(&mut self) -> bool {
        self.names += 1;
        self.held.names.fetch_add(1, Relaxed) < self.held.most
    }

    /// Sets the number of names.
    pub(super) fn set(&mut self, names: usize) {
        let before = std::mem::replace(&mut self.names, 1 + names as u64);
        self.held.names.fetch_add(self.names, Relaxed);
        self.held.names.fetch_sub(before, Relaxed);
    }
}

impl Drop for NameShare {
    fn drop(&mut self) {
        self.held.names.fetch_sub(self.names, Relaxed);
    }
}
