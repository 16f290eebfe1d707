//! Promise: an entry, or a ghost, costs what the crate's documentation says.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used)]

use ogive_arc::policy::node_bytes;
use ogive_arc::{Access, Cache, Kind};
use std::sync::Arc;

#[test]
fn a_node_is_48_bytes_and_its_key() {
    assert_eq!(node_bytes::<u64, Arc<()>>(), 64);
    assert_eq!(node_bytes::<std::num::NonZeroU64, Arc<()>>(), 56);
    assert_eq!(node_bytes::<(u64, u64, u64), Arc<()>>(), 80);
}

#[test]
fn what_the_cache_says_it_costs_is_what_its_entries_cost() {
    let count = 1 << 16;
    let cache = Cache::builder(count).sublists(1).build();
    (0..count).for_each(|key| drop(cache.insert(key, (), 1, Kind::Data, Access::Demand)));
    let stats = cache.stats();
    let each = stats.hdr_size as f64 / stats.entries as f64;
    // A slab that has just doubled may be half empty.
    assert!((69.0..=2.0 * 64.0 + 10.0).contains(&each), "{each} bytes an entry");
}
