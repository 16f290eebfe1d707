//! The demo store: it supports everything that a mount needs.

use super::child::{again_at, demo_options, is_child};
use bytes::Bytes;
use ogive_bucket::{
    Bucket as _, BucketError, Condition, Promises, RemoteBucket, RemoteOptions, Result,
    WriteMetadata, probe,
};
use ogive_demo_store::DemoStore;
use std::ops::{ControlFlow, Range};

fn bucket() -> RemoteBucket {
    RemoteBucket::new(&demo_options()).unwrap()
}

/// Runs a test again as a client of a new store.
fn at_a_store(test: &str, with: &[(&str, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let store = DemoStore::start(&directory.path().join("new")).unwrap();
    again_at(test, &store, with);
}

fn read(bucket: &RemoteBucket, key: &str, range: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bucket.get(key, range, None, &mut |piece| {
        bytes.extend_from_slice(&piece);
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}

#[test]
fn it_honours_every_condition_that_a_mount_uses() {
    if !is_child() {
        return at_a_store("demo::it_honours_every_condition_that_a_mount_uses", &[]);
    }
    assert_eq!(probe(&bucket(), ""), Ok(Promises::ALL));
}

#[test]
fn an_open_object_is_that_object_or_nothing() {
    if !is_child() {
        return at_a_store("demo::an_open_object_is_that_object_or_nothing", &[]);
    }
    let bucket = bucket();
    let put = |text: &'static str| {
        let body = Bytes::from_static(text.as_bytes());
        bucket.put("k", body, &Condition::None, WriteMetadata::NONE).unwrap()
    };
    let old = put("old").etag;
    put("new");
    let answer = bucket.get("k", 0..3, old.as_ref(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(answer, Err(BucketError::ConditionFailed { .. })), "{answer:?}");
}

#[test]
fn objects_stay_over_a_restart() {
    if !is_child() {
        let directory = tempfile::tempdir().unwrap();
        for step in ["put", "read"] {
            let store = DemoStore::start(directory.path()).unwrap();
            let test = "demo::objects_stay_over_a_restart";
            again_at(test, &store, &[("STEP", step)]);
        }
        return;
    }
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number >> 8) as u8).collect();
    let bucket = bucket();
    if std::env::var("STEP").unwrap() == "put" {
        let body = Bytes::from(bytes);
        bucket.put("d/big", body, &Condition::Absent, WriteMetadata::marked("mark")).unwrap();
        return;
    }
    assert_eq!(read(&bucket, "d/big", 0..3_000_000).unwrap(), bytes);
    assert_eq!(read(&bucket, "d/big", 1_000_000..1_000_010).unwrap(), bytes[1_000_000..][..10]);
    assert_eq!(bucket.head("d/big").unwrap().mark.as_deref(), Some("mark"));
}

#[test]
fn requests_without_the_credentials_of_this_run_are_refused() {
    if !is_child() {
        let test = "demo::requests_without_the_credentials_of_this_run_are_refused";
        return at_a_store(test, &[("AWS_SECRET_ACCESS_KEY", "guessed")]);
    }
    for no_sign_request in [true, false] {
        let options = RemoteOptions { no_sign_request, ..demo_options() };
        let answer = RemoteBucket::new(&options).unwrap().head("k");
        assert!(matches!(answer, Err(BucketError::Denied { .. })), "{answer:?}");
    }
}
