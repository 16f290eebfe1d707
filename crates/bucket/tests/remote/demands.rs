//! Requirements of some stores that others do not have.

use super::bucket;
use super::errors::staged;
use super::store::{Step, Store};
use ogive_bucket::journal::Base;
use ogive_bucket::{Bucket as _, Promises, probe};
use std::sync::Arc;

#[test]
fn a_store_that_requires_checksums_of_bodies_gets_them_after_its_first_error() {
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
fn a_store_that_requires_no_checksums_gets_none() {
    let store = Store::new();
    let bucket = Arc::new(bucket(&store));
    probe(&*bucket, "").unwrap();
    bucket.believe(Promises::ALL);
    staged(Arc::clone(&bucket), Base::New, |file| file.write(0, b"bytes").unwrap()).unwrap();
    assert_eq!((store.body("k").as_deref(), store.summed()), (Some(&b"bytes"[..]), 0));
}

#[test]
fn a_store_that_requires_even_parts_gets_them_after_its_first_error() {
    let store = Store::new();
    store.demand_even_parts();
    let bucket = Arc::new(bucket(&store));
    bucket.believe(Promises::ALL);
    let mut content = vec![7; 21 << 20];
    staged(Arc::clone(&bucket), Base::New, |file| file.write(0, &content).unwrap()).unwrap();
    assert_eq!(store.body("k"), Some(content.clone()));
    assert_eq!(store.asked(Step::Complete), 1, "a new file always has even parts");
    let etag = bucket.head("k").unwrap().etag.unwrap().as_str().to_owned();
    let base = Base::Object { etag, size: content.len() as u64 };
    content[8 << 20] = 1;
    staged(Arc::clone(&bucket), base, |file| file.write(8 << 20, &[1]).unwrap()).unwrap();
    assert_eq!(store.body("k"), Some(content));
    assert_eq!(store.asked(Step::Complete), 3);
    assert!(store.uploads().is_empty());
}
