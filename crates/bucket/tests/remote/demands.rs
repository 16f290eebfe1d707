//! What a store demands of a request that others take without it.

use super::answers::staged;
use super::bucket;
use super::store::{Step, Store};
use ogive_bucket::journal::Base;
use ogive_bucket::{Bucket as _, Promises, probe};
use std::sync::Arc;

#[test]
fn a_store_that_demands_checksums_of_bodies_gets_them_once_it_has_said_so() {
    let store = Store::new();
    store.demand_checksums();
    let bucket = Arc::new(bucket(&store));
    let promises = probe(&*bucket, "").unwrap();
    assert_eq!(promises, Promises::ALL);
    bucket.believe(promises);
    for bytes in [100, 11 << 20] {
        let content = vec![7; bytes];
        staged(Arc::clone(&bucket), Base::New, |file| file.write(0, &content).unwrap()).unwrap();
        assert_eq!(store.body("k"), Some(content));
        bucket.delete("k", None).unwrap();
    }
    assert!(store.asked(Step::Part) > 1);
    assert_eq!(store.unsummed(), 1);
}

#[test]
fn a_store_that_demands_none_gets_none() {
    let store = Store::new();
    let bucket = Arc::new(bucket(&store));
    probe(&*bucket, "").unwrap();
    bucket.believe(Promises::ALL);
    staged(Arc::clone(&bucket), Base::New, |file| file.write(0, b"bytes").unwrap()).unwrap();
    assert_eq!((store.body("k").as_deref(), store.summed()), (Some(&b"bytes"[..]), 0));
}
