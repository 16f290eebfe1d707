//! A store that fails, and one that does not say whether it did what it was asked.

use super::*;
use ogive_bucket::{BucketError, Fault, Gate, Operation};
use std::time::Instant;

fn busy() -> BucketError {
    BucketError::Busy { key: "k".into(), message: "no".into() }
}

fn silent() -> BucketError {
    BucketError::TimedOut { key: "k".into(), seconds: 1 }
}

/// Waits for what another thread is going to do.
fn until(what: &str, is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_close_that_failed_says_so_and_the_file_goes_up_all_the_same() {
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
fn changes_after_the_close_go_up_as_well() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
    m.flush(&file).unwrap();
    // As a mapping that outlives the descriptor writes.
    m.write_at(&file, 0, b"late").unwrap();
    drop(file);
    until("it is uploaded", || stored(&bucket, "f").is_some_and(|bytes| bytes == b"late"));
    // And at the latest when the mount ends.
    let (_, file) = m.create("g", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"last").unwrap();
    drop(file);
    drop(m);
    assert_eq!(stored(&bucket, "g").unwrap(), b"last");
}

#[test]
fn an_upload_that_panics_is_counted_and_tried_again_and_others_go_up_meanwhile() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    bucket.doom(Operation::Put, Fault::Panics);
    for name in ["f", "g"] {
        let (_, file) = m.create(name, OFlags::WRONLY).unwrap();
        m.write_at(&file, 0, name.as_bytes()).unwrap();
        // Nobody closes it as a program does: its upload is pending.
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
fn a_lost_answer_is_no_conflict() {
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
fn a_rename_whose_answer_was_lost_is_ended_and_one_that_failed_has_not_happened() {
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
    assert_eq!(m.names(""), ["b", "c"], "it is there twice, and nothing is lost");
    assert_eq!((m.read("b").unwrap(), m.read("c").unwrap()), (b"bytes".into(), b"bytes".into()));
}

/// The store keeps the old name; then the copy is taken away, or stays where it is all there is, or
/// where it cannot be taken away either.
#[test]
fn a_rename_of_a_name_that_the_store_keeps_loses_nothing() {
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
fn a_store_that_is_away_when_a_mount_begins_gets_the_rest_later() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    let (_, file) = m.create("f", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"bytes").unwrap();
    std::mem::forget(file);
    bucket.doom(Operation::Head, Fault::Fails(busy()));
    let m = m.killed(&bucket, LONG);
    assert_eq!(m.read("f").unwrap(), b"bytes", "it is there before it is in the store");
    assert_eq!(m.names(""), ["f"]);
    until("it is uploaded", || stored(&bucket, "f").is_some());
}

/// A thread has uploaded a file and asks the store for its time, which takes long. Others, who find
/// the upload done, let go of its log, go on from there and upload again. What the thread knows is
/// old by then: were it believed, the next change would be made of an object that is no more.
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
    // The thread has its answer, and is done with it when it comes to the next file.
    gate.open();
    let (_, next) = m.create("g", OFlags::WRONLY).unwrap();
    m.write_at(&next, 0, b"next").unwrap();
    drop(next);
    until("the thread goes on", || stored(&bucket, "g").is_some_and(|bytes| bytes == b"next"));
    change(&last, b"3");
    assert_eq!((stored(&bucket, "f").unwrap(), m.conflicts()), (b"3".to_vec(), 0));
}
