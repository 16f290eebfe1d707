//! Each kind of state that programs make a mount keep in memory has a bound, is counted, and is
//! released.

use super::tests::{LONG, origin};
use super::*;
use crate::MemoryBucket;
use ogive_origin::Origin as _;

fn count(origin: &BucketOrigin<MemoryBucket>, name: &str) -> u64 {
    let mut found = None;
    origin.counters(&mut |told, value| {
        if told == name {
            found = Some(value);
        }
    });
    found.unwrap()
}

#[test]
fn names_that_open_directories_hold_are_counted_until_they_are_closed() {
    let bucket = MemoryBucket::new();
    (0..1500).for_each(|number| drop(bucket.foreign_put(&format!("{number:04}"), "x")));
    let origin = origin(&bucket, Duration::ZERO);
    let open = || {
        let directory = origin.open_directory(&origin.root().unwrap().node).unwrap();
        origin.read_directory(&directory, 0, &mut |_| true).unwrap();
        directory
    };
    let directories = [open(), open(), open()];
    assert_eq!(count(&origin, "origin_names_held"), 3 * 1501);
    drop(directories);
    assert_eq!(count(&origin, "origin_names_held"), 0);
}

#[test]
fn hidden_keys_are_remembered_up_to_a_bound() {
    let bucket = MemoryBucket::new();
    for directory in 0..=NAMELESS_MAX / 1000 {
        (0..1001).for_each(|number| {
            drop(bucket.foreign_put(&format!("{directory}/{number:0300}"), "x"));
        });
    }
    let origin = origin(&bucket, LONG);
    for directory in 0..=NAMELESS_MAX / 1000 {
        origin.whole_listing(&format!("{directory}/")).unwrap();
    }
    let mut remembered = 0;
    origin.hidden(&mut |_, _| remembered += 1);
    assert_eq!(remembered, NAMELESS_MAX);
    assert_eq!(count(&origin, "keys_hidden"), 11 * 1001);
}
