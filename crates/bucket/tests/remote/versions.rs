//! Buckets that keep versions of deleted objects, and stores that list directories of such
//! versions.

use super::bucket;
use super::store::{Step, Store};
use bytes::Bytes;
use ogive_bucket::{
    Bucket as _, Condition, Entry, Listing, Promises, RemoteBucket, WriteMetadata, probe,
};
use std::ops::ControlFlow;

fn put(bucket: &RemoteBucket, key: &str) {
    let body = Bytes::from_static(b"bytes");
    bucket.put(key, body, &Condition::None, WriteMetadata::NONE).unwrap();
}

/// The entries of the root.
fn listed(bucket: &RemoteBucket) -> Vec<Entry> {
    let mut found = Vec::new();
    let visit = &mut |entry| {
        found.push(entry);
        ControlFlow::Continue(())
    };
    bucket.list(&Listing { prefix: "", delimited: true, page: 1000 }, visit).unwrap();
    found
}

#[test]
fn a_probe_leaves_no_version_behind() {
    let store = Store::new();
    for lists_deleted in [false, true] {
        store.forget_all();
        store.keep_versions(lists_deleted);
        store.put("p/x", b"theirs");
        assert_eq!(probe(&bucket(&store), "p/"), Ok(Promises::ALL));
        assert_eq!(store.versions(), ["p/x"]);
    }
    store.forget_all();
    assert_eq!(probe(&bucket(&store), "p/"), Ok(Promises::ALL));
    assert_eq!(store.asked(Step::Versions), 0, "the bucket keeps no versions");
}

#[test]
fn a_directory_with_only_deleted_objects_does_not_exist() {
    for lists_deleted in [false, true] {
        let store = Store::new();
        store.keep_versions(lists_deleted);
        let bucket = bucket(&store);
        probe(&bucket, "").unwrap();
        for key in ["gone/x", "gone/too/x", "there/x"] {
            put(&bucket, key);
        }
        for key in ["gone/x", "gone/too/x"] {
            bucket.delete(key, None).unwrap();
        }
        let before = store.asked(Step::List);
        assert_eq!(listed(&bucket), [Entry::Prefix("there/".to_owned())]);
        let asked = store.asked(Step::List) - before;
        assert_eq!(asked, if lists_deleted { 3 } else { 1 });
    }
}
