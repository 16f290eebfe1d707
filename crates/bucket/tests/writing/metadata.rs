//! Metadata of objects: preserved, shown and changed.

use super::*;
use ogive_bucket::{
    Bucket as _, Chmod, Condition, ObjectMetadata, Operation, Promises, WriteMetadata,
};
use ogive_origin::{FileKind, SetTime, Time};

fn kept(notes: &[(&str, &str)]) -> ObjectMetadata {
    let notes = notes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let words = [("content-type", "text/html".to_owned())];
    ObjectMetadata { user: notes.collect(), headers: words.into_iter().collect() }
}

fn put(bucket: &MemoryBucket, key: &str, body: &'static str, kept: &ObjectMetadata) {
    let beside = WriteMetadata { mark: None, kept: Some(kept) };
    bucket.put(key, body.into(), &Condition::None, beside).unwrap();
}

fn beside(bucket: &MemoryBucket, key: &str) -> ObjectMetadata {
    (*bucket.head(key).unwrap().kept.unwrap()).clone()
}

fn write_at(m: &Mounted, path: &str, offset: u64, bytes: &[u8]) {
    let file = m.open(path, OFlags::RDWR).unwrap();
    m.origin.write_at(&file, offset, bytes).unwrap();
    m.origin.flush(&file).unwrap();
}

fn mount_as(bucket: &MemoryBucket, convention: Convention) -> Mounted {
    let directory = tempfile::tempdir().unwrap();
    let options = OriginOptions { convention, ..options(LONG) };
    let opened = journal(directory.path());
    let origin = BucketOrigin::open_writable(bucket.clone(), options, opened, write_options());
    Mounted { origin: origin.unwrap(), directory }
}

#[test]
fn metadata_stay_when_an_object_is_changed_and_renamed() {
    let bucket = MemoryBucket::new();
    let theirs = kept(&[("mode", "33152"), ("theirs", "x")]);
    put(&bucket, "f", "hello", &theirs);
    put(&bucket, "d/g", "hello", &theirs);
    let m = mount(&bucket, LONG);
    write_at(&m, "f", 5, b" more");
    assert_eq!(
        (bucket.bytes("f").unwrap(), beside(&bucket, "f")),
        ("hello more".into(), theirs.clone())
    );
    m.rename("f", "h").unwrap();
    m.rename("d", "e").unwrap();
    for key in ["h", "e/g"] {
        assert_eq!(beside(&bucket, key), theirs, "{key}");
    }
}

/// Azure's type of an append blob, for which neither bytes nor mode can be written.
#[test]
fn an_append_blob_keeps_its_mode() {
    let bucket = MemoryBucket::new();
    let mut theirs = kept(&[]);
    theirs.headers.insert("x-ms-blob-type", "AppendBlob".to_owned());
    put(&bucket, "log", "hello", &theirs);
    let m = mount_as(&bucket, Convention::S3fs);
    let node = m.find("log").unwrap().node;
    let changes = Changes { permissions: Some(0o600), ..Changes::default() };
    assert_eq!(m.origin.set_attributes(&node, None, &changes).unwrap_err(), Errno::PERM);
    assert_eq!(bucket.requests(Operation::Copy) + bucket.requests(Operation::Begin), 0);
    assert_eq!(m.find("log").unwrap().attributes.permissions, 0o640);
}

#[test]
fn metadata_stay_when_the_next_mount_uploads_the_file() {
    let bucket = MemoryBucket::new();
    let theirs = kept(&[("theirs", "x")]);
    put(&bucket, "f", "hello", &theirs);
    let m = mount(&bucket, LONG);
    let file = m.open("f", OFlags::RDWR).unwrap();
    m.origin.write_at(&file, 0, b"j").unwrap();
    std::mem::forget(file);
    let _next = m.killed(&bucket, LONG);
    assert_eq!(bucket.bytes("f").unwrap(), "jello");
    assert_eq!(beside(&bucket, "f"), theirs);
}

#[test]
fn attributes_are_shown_and_set_by_the_convention() {
    let bucket = MemoryBucket::new();
    let theirs = kept(&[("mode", "33152"), ("uid", "5"), ("mtime", "77.5"), ("theirs", "x")]);
    put(&bucket, "f", "hello", &theirs);
    put(&bucket, "l", "f", &kept(&[("mode", "41471")]));
    let m = mount_as(&bucket, Convention::S3fs);
    let shown = m.find("f").unwrap().attributes;
    assert_eq!((shown.permissions, shown.user, shown.kind), (0o600, 5, FileKind::Regular));
    assert_eq!(shown.modified, Time { seconds: 77, nanoseconds: 500_000_000 });
    let link = m.find("l").unwrap();
    assert_eq!(link.attributes.kind, FileKind::Symlink);
    assert_eq!(m.origin.read_link(&link.node).unwrap(), "f");
    let changes = Changes {
        permissions: Some(0o100_640),
        modified: Some(SetTime::To(Time { seconds: 5, nanoseconds: 0 })),
        ..Changes::default()
    };
    let node = m.find("f").unwrap().node;
    let after = m.origin.set_attributes(&node, None, &changes).unwrap();
    assert_eq!((after.permissions, after.user, after.modified.seconds), (0o640, 5, 5));
    let now = beside(&bucket, "f");
    assert_eq!(
        (now.get("mode"), now.get("uid"), now.get("mtime")),
        (Some("33184"), Some("5"), Some("5"))
    );
    assert_eq!((now.get("theirs"), &now.headers), (Some("x"), &theirs.headers));
    assert_eq!(bucket.bytes("f").unwrap(), "hello");
    // A write changes only the time.
    write_at(&m, "f", 0, b"j");
    let now = beside(&bucket, "f");
    assert_eq!(now.get("mode"), Some("33184"));
    assert!(now.get("mtime").unwrap().len() > 9, "{now:?}");
}

#[test]
fn a_mode_for_an_object_with_a_foreign_change_is_refused() {
    let bucket = MemoryBucket::new();
    put(&bucket, "f", "hello", &kept(&[("mode", "33152")]));
    let m = mount_as(&bucket, Convention::S3fs);
    let file = m.open("f", OFlags::RDWR).unwrap();
    bucket.foreign_put("f", "theirs");
    let node = m.find("f").unwrap().node;
    let changes = Changes { permissions: Some(0o100_600 | 0o77), ..Changes::default() };
    let refused = m.origin.set_attributes(&node, Some(&file), &changes);
    assert_eq!(refused.unwrap_err(), Errno::STALE);
    assert_eq!(bucket.bytes("f").unwrap(), "theirs");
}

#[test]
fn attributes_that_cannot_be_stored_are_refused_or_ignored() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "hello");
    let changes = Changes { permissions: Some(0o100_600), ..Changes::default() };
    let m = mount(&bucket, LONG);
    let node = m.find("f").unwrap().node;
    assert_eq!(m.origin.set_attributes(&node, None, &changes).unwrap_err(), Errno::PERM);
    drop(m);
    let stage = tempfile::tempdir().unwrap();
    let opened = journal(stage.path());
    let write = WriteOptions { chmod: Chmod::Ignore, ..write_options() };
    let origin = BucketOrigin::open_writable(bucket.clone(), options(LONG), opened, write).unwrap();
    let before = bucket.requests(Operation::Copy);
    let m = Mounted { origin, directory: stage };
    let node = m.find("f").unwrap().node;
    let shown = m.origin.set_attributes(&node, None, &changes).unwrap();
    assert_eq!((shown.permissions, bucket.requests(Operation::Copy)), (0o640, before));
}

/// Nothing was written, so there is no time of a write.
#[test]
fn a_refused_write_keeps_the_time_that_a_program_set() {
    let bucket = MemoryBucket::new();
    // A file larger than one request is refused.
    bucket.honour(Promises { upload_create: false, ..Promises::ALL });
    let m = mount_as(&bucket, Convention::S3fs);
    let (found, file) = m.create("f", OFlags::RDWR).unwrap();
    m.origin.write_at(&file, 0, b"bytes").unwrap();
    let given = Time { seconds: 5, nanoseconds: 7 };
    let changes = Changes { modified: Some(SetTime::To(given)), ..Changes::default() };
    m.origin.set_attributes(&found.node, Some(&file), &changes).unwrap();
    assert_eq!(refused(m.origin.write_at(&file, 6000, b"more")), Errno::FBIG);
    assert_eq!(refused(m.origin.append(&file, &[1; 6000])), Errno::FBIG);
    let longer = Changes { size_bytes: Some(6000), ..Changes::default() };
    let resized = m.origin.set_attributes(&found.node, Some(&file), &longer);
    assert_eq!(resized.unwrap_err(), Errno::FBIG);
    m.origin.flush(&file).unwrap();
    assert_eq!(beside(&bucket, "f").get("mtime"), Some("5.000000007"));
    assert_eq!(m.find("f").unwrap().attributes.modified, given);
}
