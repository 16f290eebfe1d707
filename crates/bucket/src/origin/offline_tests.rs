//! When a store counts as offline, and when it does not.

use super::tests::{LONG, open, origin};
use super::*;
use crate::{Fault, Gate, MemoryBucket, Operation};
use ogive_origin::Origin as _;
use std::time::Instant;

fn failed(key: &str) -> BucketError {
    BucketError::Failed { key: key.into(), message: "500".into() }
}

/// A bucket with some files, each opened once.
fn shown() -> (MemoryBucket, BucketOrigin<MemoryBucket>) {
    let bucket = MemoryBucket::new();
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| drop(bucket.foreign_put(name, "x")));
    let mut origin = origin(&bucket, LONG);
    origin.show_stale();
    names.iter().for_each(|name| drop(open(&origin, name).unwrap()));
    (bucket, origin)
}

fn until(origin: &BucketOrigin<MemoryBucket>, what: &str, is_so: impl Fn() -> bool) {
    let late = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < late, "never came: {what}");
        // Each use of the mount starts a probe.
        let _ = open(origin, "c");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_failing_object_does_not_take_the_store_offline() {
    let (bucket, origin) = shown();
    for _ in 0..3 {
        bucket.doom(Operation::Head, Fault::Fails(failed("a")));
        let heads = bucket.requests(Operation::Head);
        open(&origin, "a").unwrap();
        assert_eq!(origin.availability().gone, None);
        open(&origin, "b").unwrap();
        assert_eq!(bucket.requests(Operation::Head), heads + 2, "both were asked for");
    }
    // Neither does a read that got no turn.
    let no_turn = BucketError::NoTurn { key: "a".into(), seconds: 1 };
    bucket.doom(Operation::Head, Fault::Fails(no_turn));
    assert_eq!(open(&origin, "a").unwrap_err(), Errno::IO);
    assert_eq!(origin.availability().losses, 0);
}

#[test]
fn two_failing_objects_in_a_row_or_the_store_itself_take_it_offline() {
    let (bucket, origin) = shown();
    // The probe of the store is held: its answer would end the doubt.
    let gate = Gate::default();
    bucket.doom(Operation::List, Fault::Held(gate.clone()));
    for key in ["a", "b"] {
        bucket.doom(Operation::Head, Fault::Fails(failed(key)));
        open(&origin, key).unwrap();
    }
    assert!(origin.availability().gone.is_some());
    gate.open();
    let (bucket, origin) = shown();
    (0..2).for_each(|_| bucket.doom(Operation::List, Fault::Fails(failed(""))));
    bucket.doom(Operation::Head, Fault::Fails(failed("a")));
    open(&origin, "a").unwrap();
    assert_eq!(origin.availability().gone, None);
    // The answers of other requests must not come before that of the probe: they are held.
    (0..100_000).for_each(|_| bucket.doom(Operation::Head, Fault::Fails(failed("a"))));
    until(&origin, "the store is gone", || origin.availability().losses == 1);
    bucket.clear_faults();
    until(&origin, "it answers again", || origin.availability().gone.is_none());
}

#[test]
fn a_probe_that_panics_is_repeated() {
    let (bucket, origin) = shown();
    let silent = BucketError::TimedOut { key: "a".into(), seconds: 1 };
    bucket.doom(Operation::Head, Fault::Fails(silent));
    bucket.doom(Operation::List, Fault::Panics);
    open(&origin, "a").unwrap();
    assert!(origin.availability().gone.is_some());
    until(&origin, "it answers again", || origin.availability().gone.is_none());
}
