//! Promise: an entry, or a ghost, costs what the crate's documentation says.

use ogive_arc::{Access, Cache, Hold, Kind, entry_bytes_max, ghost_bytes_max};

#[test]
fn an_entry_takes_at_most_64_bytes_without_its_key_and_value() {
    assert!(entry_bytes_max::<u64, ()>() <= 64, "{}", entry_bytes_max::<u64, ()>());
    assert!(entry_bytes_max::<(u64, u64, u64), ()>() <= 64);
    assert!(entry_bytes_max::<(u64, u64), ()>() <= 64);
}

#[test]
fn a_hold_is_two_words_and_so_is_an_absent_one() {
    assert_eq!(size_of::<Hold<u64, ()>>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Option<Hold<String, String>>>(), 2 * size_of::<usize>());
}

#[test]
fn a_ghost_takes_at_most_16_bytes() {
    assert!(ghost_bytes_max() <= 16.0);
}

#[test]
fn the_reported_overhead_is_that_of_the_entries() {
    let count = 1 << 16;
    let cache = Cache::builder(count).sublists(1).build();
    (0..count).for_each(|key| drop(cache.insert(key, (), 1, Kind::Data, Access::Demand)));
    let stats = cache.stats();
    let each = stats.hdr_size as f64 / stats.entries as f64;
    // Its own key of 8 bytes and the pointer to its value are counted in.
    assert!((64.0..=64.0 + 16.0).contains(&each), "{each} bytes an entry");
}
