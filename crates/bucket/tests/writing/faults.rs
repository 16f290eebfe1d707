//! A store that fails, and one whose answers are lost.

use super::*;
use ogive_bucket::{BucketError, Fault, Gate, Operation};
use std::time::Instant;

fn busy() -> BucketError {
    BucketError::Busy { key: "k".into(), message: "no".into() }
}

fn silent() -> BucketError {
    BucketError::TimedOut { key: "k".into(), seconds: 1 }
}

/// Waits for the effect of another thread.
fn until(what: &str, is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_failed_close_returns_the_error_and_the_file_is_uploaded_later() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"bytes").unwrap();
    bucket.doom(Operation::Put, Fault::Fails(busy()));
    assert_eq!(refused(m.flush(&file)), Errno::IO);
    assert_eq!(stored(&bucket, "f"), None);
    assert_eq!(m.read("f").unwrap(), b"bytes");
    drop(file);
    until("it is uploaded", || stored(&bucket, "f").is_some());
    until("its log is deleted", || m.logs() == 0);
    assert_eq!(m.read("f").unwrap(), b"bytes");
}

#[test]
fn changes_after_the_close_are_uploaded_too() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
    m.flush(&file).unwrap();
    // Written through a mapping that outlives the descriptor.
    m.write_at(&file, 0, b"late").unwrap();
    drop(file);
    until("it is uploaded", || stored(&bucket, "f").is_some_and(|bytes| bytes == b"late"));
    // The end of the mount uploads it at the latest.
    let (_, file) = m.create("g", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"last").unwrap();
    drop(file);
    drop(m);
    assert_eq!(stored(&bucket, "g").unwrap(), b"last");
}

#[test]
fn an_upload_that_panics_is_counted_and_retried_while_others_continue() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    bucket.doom(Operation::Put, Fault::Panics);
    for name in ["f", "g"] {
        let (_, file) = m.create(name, OFlags::WRONLY).unwrap();
        m.write_at(&file, 0, name.as_bytes()).unwrap();
        // Dropped without a close, so its upload is pending.
        drop(file);
        until("one of them panics, the other is uploaded", || {
            let mut panics = 0;
            m.origin.counters(&mut |counter, value| {
                if counter == "upload_panics" {
                    panics = value;
                }
            });
            panics == 1 && (name == "f" || stored(&bucket, "g").is_some())
        });
    }
    until("it is uploaded after all", || stored(&bucket, "f").is_some_and(|bytes| bytes == b"f"));
    until("its log is deleted", || m.logs() == 0);
}

#[test]
fn a_lost_answer_is_not_a_conflict() {
    for lost in [Operation::Put, Operation::Complete] {
        let bucket = MemoryBucket::new();
        let m = mount(&bucket, LONG);
        let bytes = pattern(if lost == Operation::Put { 500 } else { 3000 }, 1);
        let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
        m.write_at(&file, 0, &bytes).unwrap();
        bucket.doom(lost, Fault::AnswerLost(silent()));
        m.flush(&file).unwrap();
        assert_eq!(stored(&bucket, "f").unwrap(), bytes);
        m.write_at(&file, 10, b"more").unwrap();
        m.flush(&file).unwrap();
        assert_eq!(&stored(&bucket, "f").unwrap()[10..14], b"more");
        assert_eq!(m.conflicts(), 0);
    }
}

#[test]
fn a_rename_with_a_lost_answer_succeeds_and_a_failed_one_has_no_effect() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("a", "bytes");
    let m = mount(&bucket, LONG);
    bucket.doom(Operation::Copy, Fault::Fails(busy()));
    assert_eq!(refused(m.rename("a", "b")), Errno::IO);
    assert_eq!(m.names(""), ["a"]);
    bucket.doom(Operation::Copy, Fault::AnswerLost(silent()));
    m.rename("a", "b").unwrap();
    assert_eq!(m.names(""), ["b"]);
    bucket.doom(Operation::Delete, Fault::Fails(busy()));
    assert_eq!(refused(m.rename("b", "c")), Errno::IO);
    assert_eq!(m.names(""), ["b", "c"], "it has both names, and nothing is lost");
    assert_eq!((m.read("b").unwrap(), m.read("c").unwrap()), (b"bytes".into(), b"bytes".into()));
}

/// The store refuses to delete the old name. Then the copy is removed, unless it is all that is
/// left or cannot be removed either.
#[test]
fn a_rename_loses_nothing_if_the_store_keeps_the_old_name() {
    let denied = || BucketError::Denied { key: "k".into(), message: "no".into() };
    for is_kept_too in [false, true] {
        let bucket = MemoryBucket::new();
        bucket.foreign_put("a", "bytes");
        let m = mount(&bucket, LONG);
        for _ in 0..=usize::from(is_kept_too) {
            bucket.doom(Operation::Delete, Fault::Fails(denied()));
        }
        assert_eq!(refused(m.rename("a", "b")), Errno::ACCESS);
        let names: &[&str] = if is_kept_too { &["a", "b"] } else { &["a"] };
        assert_eq!(
            (m.names(""), stored(&bucket, "a")),
            (names.iter().map(ToString::to_string).collect(), Some(b"bytes".to_vec()))
        );
    }
    let bucket = MemoryBucket::new();
    bucket.foreign_put("a", "bytes");
    bucket.foreign_put("b", "before");
    let m = mount(&bucket, LONG);
    bucket.doom(Operation::Delete, Fault::Fails(denied()));
    assert_eq!(refused(m.rename("a", "b")), Errno::ACCESS);
    assert_eq!((m.read("a").unwrap(), m.read("b").unwrap()), (b"bytes".into(), b"bytes".into()));
}

#[test]
fn pending_changes_are_uploaded_later_if_the_store_is_offline_at_mount_time() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"bytes").unwrap();
    std::mem::forget(file);
    bucket.doom(Operation::Head, Fault::Fails(busy()));
    let m = m.killed(&bucket, LONG);
    assert_eq!(m.read("f").unwrap(), b"bytes", "it is readable before its upload");
    assert_eq!(m.names(""), ["f"]);
    until("it is uploaded", || stored(&bucket, "f").is_some());
}

/// A thread has uploaded a file and requests its time from the store, which takes long. Another
/// handle finds the upload done, drops the log, changes the file and uploads again. If the late
/// answer counted, the next change would be based on an object that no longer exists.
#[test]
fn a_late_answer_of_an_upload_does_not_undo_a_later_upload() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "0");
    let m = mount(&bucket, LONG);
    let change = |file: &File, bytes: &[u8]| {
        m.write_at(file, 0, bytes).unwrap();
        m.flush(file).unwrap();
    };
    let file = m.open("f", OFlags::RDWR).unwrap();
    m.write_at(&file, 0, b"1").unwrap();
    let heads = bucket.requests(Operation::Head);
    let gate = Gate::default();
    bucket.doom(Operation::Head, Fault::Held(gate.clone()));
    drop(file);
    until("the thread asks", || bucket.requests(Operation::Head) > heads);
    assert_eq!(stored(&bucket, "f").unwrap(), b"1");
    m.flush(&m.open("f", OFlags::RDWR).unwrap()).unwrap();
    until("the log is let go of", || m.logs() == 0);
    change(&m.open("f", OFlags::RDWR).unwrap(), b"2");
    let last = m.open("f", OFlags::RDWR).unwrap();
    // The thread has handled its answer when it comes to the next file.
    gate.open();
    let (_, next) = m.create("g", OFlags::WRONLY).unwrap();
    m.write_at(&next, 0, b"next").unwrap();
    drop(next);
    until("the thread goes on", || stored(&bucket, "g").is_some_and(|bytes| bytes == b"next"));
    change(&last, b"3");
    assert_eq!((stored(&bucket, "f").unwrap(), m.conflicts()), (b"3".to_vec(), 0));
}
