//! The store in the process behaves like real ones, so tests can rely on it.

use super::*;

fn list(bucket: &MemoryBucket, prefix: &str, delimited: bool, page: usize) -> Vec<String> {
    let mut keys = Vec::new();
    let listing = Listing { prefix, delimited, page };
    bucket
        .list(&listing, &mut |entry| {
            keys.push(entry.key().to_owned());
            ControlFlow::Continue(())
        })
        .unwrap();
    keys
}

fn read(bucket: &MemoryBucket, key: &str, range: Range<u64>, etag: Option<&ETag>) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    bucket.get(key, range, etag, &mut |piece| {
        bytes.extend_from_slice(&piece);
        ControlFlow::Continue(())
    })?;
    Ok(bytes.freeze())
}

fn failed(key: &str) -> BucketError {
    BucketError::ConditionFailed { key: key.to_owned() }
}

#[test]
fn a_write_whose_condition_does_not_hold_changes_nothing() {
    let bucket = MemoryBucket::new();
    let first = bucket.put("k", "one".into(), &Condition::Absent, WriteMetadata::NONE).unwrap();
    let again = bucket.put("k", "two".into(), &Condition::Absent, WriteMetadata::NONE);
    assert_eq!(again.unwrap_err(), failed("k"));
    let etag = first.etag.unwrap();
    bucket
        .put("k", "three".into(), &Condition::Matches(etag.clone()), WriteMetadata::marked("mark"))
        .unwrap();
    let stale =
        bucket.put("k", "four".into(), &Condition::Matches(etag.clone()), WriteMetadata::NONE);
    assert_eq!(stale.unwrap_err(), failed("k"));
    assert_eq!(bucket.delete("k", Some(&etag)).unwrap_err(), failed("k"));
    assert_eq!(bucket.bytes("k").unwrap(), "three");
    assert_eq!(bucket.head("k").unwrap().mark.as_deref(), Some("mark"));
    let mut upload = bucket.upload("k", &Condition::Matches(etag), WriteMetadata::NONE).unwrap();
    upload.part("five".into()).unwrap();
    assert_eq!(upload.complete().unwrap_err(), failed("k"));
    assert_eq!((bucket.bytes("k").unwrap(), bucket.open_uploads()), ("three".into(), 0));
}

#[test]
fn a_store_that_ignores_conditions_overwrites() {
    let bucket = MemoryBucket::new();
    bucket.honour(Promises::NONE);
    let stale = ETag::new("\"other\"");
    for condition in [Condition::Absent, Condition::Matches(stale.clone())] {
        bucket.put("k", "one".into(), &condition, WriteMetadata::NONE).unwrap();
        let mut upload = bucket.upload("k", &condition, WriteMetadata::NONE).unwrap();
        upload.part("two".into()).unwrap();
        upload.complete().unwrap();
        assert_eq!(bucket.bytes("k").unwrap(), "two");
    }
    bucket.delete("k", Some(&stale)).unwrap();
    assert_eq!(bucket.bytes("k"), None);
}

#[test]
fn ranges_are_of_one_object_and_end_with_it() {
    let bucket = MemoryBucket::new();
    let body = Bytes::from((0..100_000_u32).map(|byte| byte as u8).collect::<Vec<_>>());
    let etag = bucket.foreign_put("k", body.clone());
    assert_eq!(read(&bucket, "k", 10..70_000, Some(&etag)).unwrap(), body.slice(10..70_000));
    assert_eq!(read(&bucket, "k", 99_999..200_000, None).unwrap(), body.slice(99_999..));
    let after = read(&bucket, "k", 100_000..100_001, None);
    assert_eq!(after.unwrap_err(), BucketError::OutOfRange { key: "k".into() });
    bucket.foreign_put("k", body);
    assert_eq!(read(&bucket, "k", 0..1, Some(&etag)).unwrap_err(), failed("k"));
    let missing = read(&bucket, "none", 0..1, None);
    assert_eq!(missing.unwrap_err(), BucketError::NotFound { key: "none".into() });
}

#[test]
fn a_listing_has_each_prefix_once_and_one_request_a_page() {
    let bucket = MemoryBucket::new();
    for key in ["a", "a/1", "a/2", "b", "c/x/1", "c/y", "d/", "e"] {
        bucket.foreign_put(key, key.to_owned());
    }
    assert_eq!(list(&bucket, "", true, 1000), ["a", "a/", "b", "c/", "d/", "e"]);
    assert_eq!(bucket.requests(Operation::List), 1);
    assert_eq!(list(&bucket, "", true, 2), ["a", "a/", "b", "c/", "d/", "e"]);
    assert_eq!(bucket.requests(Operation::List), 4);
    assert_eq!(list(&bucket, "c/", true, 1000), ["c/x/", "c/y"]);
    assert_eq!(list(&bucket, "c/", false, 1), ["c/x/1", "c/y"]);
    assert_eq!(list(&bucket, "d/", true, 1000), ["d/"]);
    assert!(list(&bucket, "none/", true, 1000).is_empty());
}

#[test]
fn faults_apply_in_order_and_a_lost_answer_was_a_write() {
    let bucket = MemoryBucket::new();
    let lost = BucketError::TimedOut { key: "k".into(), seconds: 1 };
    assert!(lost.is_in_doubt());
    bucket.doom(Operation::Put, Fault::Fails(failed("k")));
    bucket.doom(Operation::Put, Fault::AnswerLost(lost.clone()));
    let put = || bucket.put("k", "one".into(), &Condition::Absent, WriteMetadata::marked("ours"));
    assert_eq!((put().unwrap_err(), bucket.bytes("k")), (failed("k"), None));
    assert_eq!(put().unwrap_err(), lost);
    assert_eq!(bucket.head("k").unwrap().mark.as_deref(), Some("ours"));
    bucket.doom(Operation::Get, Fault::BreaksOff(2, lost.clone()));
    assert_eq!(read(&bucket, "k", 0..3, None).unwrap_err(), lost);
    assert_eq!(read(&bucket, "k", 0..3, None).unwrap(), "one");
}

#[test]
fn an_upload_is_its_parts_in_order_and_visible_when_complete() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("source", "0123456789");
    let source = bucket.head("source").unwrap();
    let mut upload = bucket.upload("k", &Condition::Absent, WriteMetadata::NONE).unwrap();
    upload.part("one ".into()).unwrap();
    upload.copy_part(&source, 2..5).unwrap();
    upload.part(" two".into()).unwrap();
    assert_eq!((bucket.bytes("k"), bucket.open_uploads()), (None, 1));
    assert_eq!(upload.complete().unwrap().size_bytes, 11);
    assert_eq!((bucket.bytes("k").unwrap(), bucket.open_uploads()), ("one 234 two".into(), 0));
    bucket.foreign_put("source", "other");
    let mut upload = bucket.upload("k", &Condition::None, WriteMetadata::NONE).unwrap();
    assert_eq!(upload.copy_part(&source, 2..5).unwrap_err(), failed("source"));
    upload.abort().unwrap();
    let copied = bucket.copy(CopyRequest::new(&source, "copy", &Condition::Absent));
    assert_eq!((copied.unwrap_err(), bucket.open_uploads()), (failed("source"), 0));
}
