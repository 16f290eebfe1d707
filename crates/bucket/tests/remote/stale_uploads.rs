//! Multipart uploads whose id was never received: ours is aborted, and no other.

use super::bucket;
use super::store::{Answer, Fault, Step, Store, now};
use ogive_bucket::journal::{Journal, OpenOptions, Opened};
use ogive_bucket::{Bucket as _, Condition, CopyRequest, RemoteBucket};
use ogive_l2::MasterKey;
use std::path::Path;

/// Longer than the time in which our upload may have begun.
const LONG_AGO: u64 = 3 * 24 * 3600;

fn journal(path: &Path) -> Opened {
    let master = MasterKey::from_material(&[7; 32]).unwrap();
    Journal::open(path, "source", &master, OpenOptions::default()).unwrap()
}

/// Notes of uploads to a key that were about to begin at these times, left by a killed mount.
fn noted(directory: &Path, store: &Store, key: &str, began: &[u64]) -> Opened {
    let opened = journal(directory);
    for began in began {
        let address = format!("{}/bucket/{key}", store.endpoint);
        drop(opened.journal.note_upload(&address, *began).unwrap());
    }
    drop(opened);
    journal(directory)
}

fn abort_stale(bucket: &RemoteBucket, opened: &mut Opened) -> usize {
    bucket.abort_stale(std::mem::take(&mut opened.uploads))
}

#[test]
fn an_upload_of_another_client_goes_on() {
    let (store, directory) = (Store::new(), tempfile::tempdir().unwrap());
    let began = now() - LONG_AGO;
    let mut opened = noted(directory.path(), &store, "k", &[began]);
    store.begin_upload("k", "before", began - 3600);
    store.begin_upload("k", "ours", began + 1);
    store.begin_upload("k", "since", now());
    store.begin_upload("k2", "another key", began + 1);
    assert_eq!(abort_stale(&bucket(&store), &mut opened), 1);
    assert_eq!(store.uploads(), ["another key", "before", "since"]);
    drop(opened);
    assert!(journal(directory.path()).uploads.is_empty(), "the note is deleted");
}

#[test]
fn an_upload_is_found_on_a_later_page() {
    let (store, directory) = (Store::new(), tempfile::tempdir().unwrap());
    store.list_on_pages_of(2);
    let began = now() - LONG_AGO;
    let mut opened = noted(directory.path(), &store, "k", &[began]);
    for number in 0..5 {
        store.begin_upload("k", &format!("a{number}"), now());
    }
    store.begin_upload("k", "ours", began);
    assert_eq!(abort_stale(&bucket(&store), &mut opened), 1);
    assert_eq!(store.uploads(), ["a0", "a1", "a2", "a3", "a4"]);
    assert_eq!(store.asked(Step::Uploads), 3);
}

#[test]
fn uploads_stay_with_their_note_where_ours_cannot_be_identified() {
    let (store, directory) = (Store::new(), tempfile::tempdir().unwrap());
    let began = now() - LONG_AGO;
    let mut opened = noted(directory.path(), &store, "k", &[began]);
    store.begin_upload("k", "one", began);
    store.begin_upload("k", "other", began + 1);
    assert_eq!(abort_stale(&bucket(&store), &mut opened), 0);
    assert_eq!(store.uploads(), ["one", "other"]);
    drop(opened);
    let mut opened = journal(directory.path());
    assert_eq!(opened.uploads.len(), 1);
    // Now there are two notes and two uploads.
    drop(opened.journal.note_upload(&format!("{}/bucket/k", store.endpoint), began).unwrap());
    drop(opened);
    opened = journal(directory.path());
    assert_eq!(abort_stale(&bucket(&store), &mut opened), 2);
    assert!(store.uploads().is_empty());
}

/// The store reports the start of an upload by its clock, so the note uses that clock.
#[test]
fn our_upload_is_found_on_a_store_with_another_clock() {
    let (store, directory) = (Store::new(), tempfile::tempdir().unwrap());
    store.be_ahead(LONG_AGO);
    let opened = journal(directory.path());
    let bucket = bucket(&store);
    bucket.note_uploads(&opened.journal);
    store.put("source", &[7; 6 << 20]);
    let source = bucket.head("source").unwrap();
    // Each attempt begins an upload, and loses the answer.
    for answer in [Answer::Reset, Answer::Error(500, "InternalError")].into_iter().cycle().take(5) {
        store.doom(Step::Begin, Fault { answer, is_done: true });
    }
    bucket.copy(CopyRequest::new(&source, "k", &Condition::Absent)).unwrap_err();
    drop((bucket, opened));
    assert_eq!(store.uploads().len(), 5);
    let mut opened = journal(directory.path());
    assert_eq!(opened.uploads.len(), 5);
    assert_eq!(abort_stale(&super::bucket(&store), &mut opened), 5);
    assert!(store.uploads().is_empty());
}
