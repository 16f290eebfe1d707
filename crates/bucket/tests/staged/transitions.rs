//! The table of states: what each state guarantees, and the effect of a kill or of another client's
//! change.

use super::{Place, copy_files, open, options, pattern};
use ogive_bucket::journal::{Base, Journal, JournalError, OpenOptions};
use ogive_bucket::staged::{Durable, Limits, Options, StagedError, StagedFile, Standing, Uploads};
use ogive_bucket::{BucketError, Fault, MemoryBucket, Operation, Promises};
use ogive_origin::Errno;
use std::sync::Arc;

fn timeout() -> BucketError {
    BucketError::TimedOut { key: "k".to_owned(), seconds: 1 }
}

#[test]
fn a_new_file_streams_while_it_is_written_in_order() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    assert_eq!(file.standing(), Standing::Staged);
    let bytes = pattern(5000, 1);
    for part in bytes.chunks(100) {
        file.append(part).unwrap();
    }
    assert_eq!(file.standing(), Standing::Streaming);
    assert!(place.bucket.requests(Operation::Part) >= 5, "parts were uploaded meanwhile");
    assert_eq!(place.bytes("k"), None, "but nothing is visible");
    assert_eq!(file.read(0..10_000).unwrap(), bytes, "except to us");
    file.sync().unwrap();
    assert_eq!(file.standing(), Standing::Clean);
    assert_eq!(place.bytes("k").unwrap(), bytes);
    assert_eq!(place.bucket.requests(Operation::Begin), 1, "nothing was uploaded twice");
    // Later writes change that object.
    file.append(b"more").unwrap();
    assert_eq!(file.standing(), Standing::Staged);
    assert!(file.close(Durable::Store).unwrap().is_none());
    assert_eq!(place.bytes("k").unwrap(), [&bytes[..], b"more"].concat());
    assert_eq!(place.bucket.open_uploads(), 0);
}

#[test]
fn overwriting_sent_bytes_aborts_the_stream_and_uploads_the_whole_file() {
    for truncates in [false, true] {
        let place = Place::new();
        let file = place.begin("k", Base::New);
        let mut bytes = pattern(5000, 1);
        file.write(0, &bytes).unwrap();
        assert_eq!(file.standing(), Standing::Streaming);
        if truncates {
            file.resize(100).unwrap();
            bytes.truncate(100);
        } else {
            file.write(10, b"over it").unwrap();
            bytes[10..17].copy_from_slice(b"over it");
        }
        assert_eq!(file.standing(), Standing::Staged);
        assert_eq!(place.bucket.open_uploads(), 0, "its parts are discarded");
        file.sync().unwrap();
        assert_eq!(place.bytes("k").unwrap(), bytes);
    }
}

#[test]
fn a_truncated_and_rewritten_object_keeps_its_old_bytes_until_the_sync() {
    let place = Place::new();
    let old = pattern(3000, 9);
    let file = place.change("k", old.clone());
    file.resize(0).unwrap();
    let bytes = pattern(4000, 2);
    file.write(0, &bytes).unwrap();
    assert_eq!(file.standing(), Standing::Streaming);
    assert_eq!(place.bytes("k").unwrap(), old);
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap(), bytes);
}

#[test]
fn a_small_change_of_a_large_object_sends_one_part_and_copies_the_rest() {
    let place = Place::new();
    let mut bytes = pattern(60_000, 4);
    let file = place.change("k", bytes.clone());
    file.write(30_000, b"tiny").unwrap();
    bytes[30_000..30_004].copy_from_slice(b"tiny");
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap(), bytes);
    assert_eq!(place.bucket.requests(Operation::Part), 1);
    assert_eq!(place.bucket.requests(Operation::CopyPart), 4);
    assert_eq!(place.bucket.requests(Operation::Get), 1, "the bytes around the change");
}

#[test]
fn a_kill_in_any_state_keeps_the_writes_and_the_old_object() {
    for state in 0..4 {
        let place = Place::new();
        let old = pattern(3000, 9);
        let file = place.change("k", old.clone());
        let mut bytes = old.clone();
        match state {
            // Staged.
            0 => {
                file.write(100, b"changed").unwrap();
                bytes[100..107].copy_from_slice(b"changed");
            }
            // Streaming.
            1 => {
                file.resize(0).unwrap();
                bytes = pattern(5000, 5);
                file.write(0, &bytes).unwrap();
                assert_eq!(file.standing(), Standing::Streaming);
            }
            // Closed with the journal's promise.
            2 => {
                file.write(100, b"changed").unwrap();
                bytes[100..107].copy_from_slice(b"changed");
                let open = file.close(Durable::Journal).unwrap();
                let (_directory, mut opened) = place.killed();
                let resumed = place.resume(&mut opened);
                assert_eq!(place.bytes("k").unwrap(), old);
                resumed.sync().unwrap();
                assert_eq!(place.bytes("k").unwrap(), bytes);
                drop(open);
                continue;
            }
            // Clean.
            _ => {
                file.write(0, b"clean").unwrap();
                bytes[..5].copy_from_slice(b"clean");
                file.sync().unwrap();
                assert!(file.close(Durable::Store).unwrap().is_none());
                assert!(place.killed().1.staged.is_empty());
                assert_eq!(place.bytes("k").unwrap(), bytes);
                continue;
            }
        }
        let (_directory, mut opened) = place.killed();
        drop(file);
        assert_eq!(place.bytes("k").unwrap(), old, "state {state}");
        let resumed = place.resume(&mut opened);
        assert_eq!(resumed.read(0..u64::MAX).unwrap(), bytes);
        assert!(resumed.close(Durable::Store).unwrap().is_none());
        assert_eq!(place.bytes("k").unwrap(), bytes, "state {state}");
        assert_eq!(place.bucket.open_uploads(), 0);
    }
}

#[test]
fn a_kill_between_an_upload_and_its_record_is_not_a_conflict() {
    for size in [500, 5000] {
        let place = Place::new();
        let file = place.change("k", pattern(300, 1));
        let bytes = pattern(size, 2);
        file.write(0, &bytes).unwrap();
        // The journal as of the arrival of the upload, before that was recorded.
        let before = tempfile::tempdir().unwrap();
        file.log().sync().unwrap();
        copy_files(place.directory.path(), before.path());
        file.sync().unwrap();
        let puts = place.bucket.requests(Operation::Put);
        let mut opened = open(before.path());
        let resumed = place.resume(&mut opened);
        resumed.write(0, b"and more").unwrap();
        resumed.sync().unwrap();
        let expected = [b"and more", &bytes[8..]].concat();
        assert_eq!(place.bytes("k").unwrap(), expected);
        assert!(place.bucket.requests(Operation::Put) <= puts + 1);
        assert_eq!(resumed.standing(), Standing::Clean);
    }
}

#[test]
fn a_lost_answer_is_not_a_conflict() {
    for size in [500, 5000] {
        for operation in [Operation::Put, Operation::Complete] {
            let place = Place::new();
            let file = place.begin("k", Base::New);
            file.write(0, &pattern(size, 2)).unwrap();
            file.write(0, &pattern(10, 9)).unwrap();
            place.bucket.doom(operation, Fault::AnswerLost(timeout()));
            file.sync().unwrap();
            assert_eq!(file.standing(), Standing::Clean);
            assert_eq!(place.bytes("k").unwrap(), file.read(0..u64::MAX).unwrap());
        }
    }
}

#[test]
fn an_upload_that_arrived_unnoticed_is_not_a_conflict() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    file.write(0, b"first").unwrap();
    place.bucket.doom(Operation::Put, Fault::AnswerLost(timeout()));
    place.bucket.doom(Operation::Head, Fault::Fails(timeout()));
    assert_eq!(file.sync().unwrap_err().errno(), Errno::IO);
    assert_eq!(file.standing(), Standing::Staged, "the outcome is unknown");
    file.write(0, b"other bytes").unwrap();
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap(), b"other bytes");
}

#[test]
fn a_foreign_change_stays_and_ours_becomes_a_conflict() {
    for streams in [false, true] {
        for is_deleted in [false, true] {
            let mut place = Place::new();
            let file = place.change("k", pattern(300, 1));
            let bytes = pattern(if streams { 5000 } else { 400 }, 2);
            file.resize(0).unwrap();
            file.write(0, &bytes).unwrap();
            if is_deleted {
                place.bucket.foreign_delete("k");
            } else {
                place.bucket.foreign_put("k", &b"theirs"[..]);
            }
            let error = file.sync().unwrap_err();
            assert!(matches!(error, StagedError::Conflict { .. }), "{error}");
            assert_eq!(error.errno(), Errno::STALE);
            assert_eq!(file.standing(), Standing::Conflict);
            assert_eq!(place.bytes("k"), (!is_deleted).then(|| b"theirs".to_vec()));
            for refused in [file.sync(), file.write(0, b"x"), file.resize(0)] {
                assert_eq!(refused.unwrap_err().errno(), Errno::STALE);
            }
            let path = file.path();
            assert!(path.starts_with(place.directory.path().join("conflicts")));
            let (file, _) = file.close(Durable::Store).unwrap_err();
            drop(file);
            let (_directory, opened) = place.killed();
            assert_eq!((opened.staged.len(), opened.conflicts.len()), (0, 1));
            let kept = opened.conflicts.into_iter().next().unwrap();
            let kept = StagedFile::resume(Arc::new(MemoryBucket::new()), kept, options());
            assert_eq!(kept.read(0..u64::MAX).unwrap(), bytes, "our changes are not lost");
            // The conflict does not affect later changes of their object.
            if !is_deleted {
                let base = place.base("k");
                let next = place.begin("k", base);
                next.append(b" and ours").unwrap();
                next.sync().unwrap();
                assert_eq!(place.bytes("k").unwrap(), b"theirs and ours");
            }
            place.opened.staged.clear();
            assert_eq!(place.bucket.open_uploads(), 0);
        }
    }
}

#[test]
fn an_error_of_the_store_leaves_the_file_in_the_journal() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    file.write(0, b"kept").unwrap();
    let denied = BucketError::Denied { key: "k".to_owned(), message: "expired".to_owned() };
    place.bucket.doom(Operation::Put, Fault::Fails(denied));
    let (file, error) = file.close(Durable::Store).unwrap_err();
    assert_eq!(error.errno(), Errno::ACCESS);
    assert_eq!(file.standing(), Standing::Staged);
    assert_eq!(file.read(0..100).unwrap(), &b"kept"[..]);
    assert!(file.close(Durable::Store).unwrap().is_none());
    assert_eq!(place.bytes("k").unwrap(), b"kept");
}

#[test]
fn a_stream_whose_parts_fail_is_uploaded_by_a_later_sync() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    place.bucket.doom(Operation::Begin, Fault::Fails(timeout()));
    place.bucket.doom(Operation::Part, Fault::Fails(timeout()));
    let bytes = pattern(5000, 1);
    bytes.chunks(500).for_each(|part| _ = file.append(part).unwrap());
    assert_eq!(file.standing(), Standing::Staged);
    // This sync fails with the failing part; the next one succeeds.
    let _ = file.sync();
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap(), bytes);
    assert_eq!(place.bucket.open_uploads(), 0);
}

#[test]
fn writes_that_could_lose_an_object_are_refused_if_conditions_are_ignored() {
    let place = Place::new();
    let bucket = || Arc::new(place.bucket.clone());
    let journal = &place.opened.journal;
    place.bucket.foreign_put("k", pattern(6000, 1));
    let base = place.base("k");
    place.bucket.honour(Promises::NONE);
    for base in [base.clone(), Base::New] {
        let error = StagedFile::begin(bucket(), journal, "k", base, options()).unwrap_err();
        assert_eq!(error.errno(), Errno::OPNOTSUPP, "{error}");
    }
    // Like moto: conditions hold for single requests, but not for multipart uploads.
    let promises = Promises { upload_overwrite: false, upload_create: false, ..Promises::ALL };
    place.bucket.honour(promises);
    let file = place.begin("k", base.clone());
    file.resize(3000).unwrap();
    file.sync().unwrap();
    assert_eq!(place.bucket.requests(Operation::Begin), 0);
    assert_eq!(place.bytes("k").unwrap(), pattern(3000, 1));
    file.write(9000, b"too large for one request").unwrap();
    let error = file.sync().unwrap_err();
    assert_eq!(error.errno(), Errno::OPNOTSUPP, "{error}");
    assert_eq!(place.bytes("k").unwrap(), pattern(3000, 1));
    drop(file);
    // Allowed if no other client writes.
    place.bucket.honour(Promises::NONE);
    let alone = Options { is_only_writer: true, ..options() };
    let base = place.base("k");
    let file = StagedFile::begin(bucket(), journal, "k", base, alone).unwrap();
    file.write(9000, b"end").unwrap();
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap().len(), 9003);
}

#[test]
fn a_store_without_copies_gets_the_whole_file() {
    let place = Place::new();
    let mut bytes = pattern(9000, 1);
    place.bucket.foreign_put("k", bytes.clone());
    let limits = Limits { copies: false, ..super::LIMITS };
    let file = StagedFile::begin(
        Arc::new(place.bucket.clone()),
        &place.opened.journal,
        "k",
        place.base("k"),
        Options { limits, ..options() },
    )
    .unwrap();
    file.write(10, b"x").unwrap();
    bytes[10] = b'x';
    file.sync().unwrap();
    assert_eq!(place.bytes("k").unwrap(), bytes);
    assert_eq!(place.bucket.requests(Operation::CopyPart), 0);
}

#[test]
fn even_parts_are_learned_from_one_error() {
    let place = Place::new();
    place.bucket.take_even_parts_only();
    let shared = options();
    for (key, tried) in [("first", 2), ("second", 1)] {
        let mut bytes = pattern(20_000, 3);
        place.bucket.foreign_put(key, bytes.clone());
        let before = place.bucket.requests(Operation::Complete);
        let file = StagedFile::begin(
            Arc::new(place.bucket.clone()),
            &place.opened.journal,
            key,
            place.base(key),
            shared.clone(),
        )
        .unwrap();
        file.write(9_000, b"a change in the middle").unwrap();
        bytes[9_000..9_022].copy_from_slice(b"a change in the middle");
        file.sync().unwrap();
        assert_eq!(place.bytes(key).unwrap(), bytes);
        assert_eq!(place.bucket.requests(Operation::Complete) - before, tried, "{key}");
    }
    assert!(place.bucket.requests(Operation::CopyPart) > 0, "unchanged ranges are copied");
    assert_eq!(place.bucket.open_uploads(), 0);
}

#[test]
fn files_without_memory_for_a_stream_are_uploaded_by_their_sync() {
    let place = Place::new();
    // Six parts of 800 bytes are 4,800: the half for streams has memory for one stream.
    let uploads = Uploads::new(10_000);
    let begin = |key: &str| {
        let options = Options { uploads: uploads.clone(), ..options() };
        let bucket = Arc::new(place.bucket.clone());
        StagedFile::begin(bucket, &place.opened.journal, key, Base::New, options).unwrap()
    };
    let files: Vec<_> = (0..20).map(|number| begin(&format!("k{number}"))).collect();
    for _ in 0..10 {
        for file in &files {
            file.append(&pattern(500, 1)).unwrap();
        }
    }
    assert_eq!(place.bucket.open_uploads(), 1, "one file streams");
    assert_eq!(uploads.held_bytes(), 4_800);
    std::thread::scope(|scope| {
        files.iter().for_each(|file| drop(scope.spawn(|| file.sync().unwrap())));
    });
    assert_eq!(uploads.held_bytes(), 0, "all memory was released");
    for number in 0..20 {
        assert_eq!(place.bytes(&format!("k{number}")).unwrap(), pattern(500, 1).repeat(10));
    }
}

#[test]
fn a_stream_with_too_many_parts_is_uploaded_in_longer_ones() {
    for are_even in [false, true] {
        let place = Place::new();
        let limits = Limits { parts_max: 20, are_even, ..super::LIMITS };
        let options = Options { limits, ..options() };
        let bucket = Arc::new(place.bucket.clone());
        let file =
            StagedFile::begin(bucket, &place.opened.journal, "k", Base::New, options).unwrap();
        let bytes = pattern(180_000, 2);
        for part in bytes.chunks(700) {
            file.append(part).unwrap();
        }
        file.sync().unwrap();
        assert_eq!(place.bytes("k").unwrap(), bytes);
        assert_eq!(place.bucket.open_uploads(), 0);
    }
}

#[test]
fn a_discarded_file_leaves_nothing() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    file.write(0, &pattern(5000, 1)).unwrap();
    file.discard().unwrap();
    assert_eq!(place.bytes("k"), None);
    assert_eq!(place.bucket.open_uploads(), 0);
    assert!(place.killed().1.staged.is_empty());
}

#[test]
fn the_second_of_two_creations_of_a_name_fails() {
    for size in [400, 5000] {
        for streams in [false, true] {
            let place = Place::new();
            let (first, second) = (place.begin("k", Base::New), place.begin("k", Base::New));
            for (file, seed) in [(&first, 1), (&second, 2)] {
                file.write(0, &pattern(size, seed)).unwrap();
                if !streams {
                    file.write(0, &pattern(size, seed)[..1]).unwrap();
                }
            }
            first.sync().unwrap();
            assert_eq!(second.sync().unwrap_err().errno(), Errno::STALE);
            assert_eq!(place.bytes("k").unwrap(), pattern(size, 1));
            assert_eq!(second.read(0..u64::MAX).unwrap(), pattern(size, 2));
        }
    }
}

#[test]
fn only_changes_that_survive_a_power_cut_are_uploaded() {
    let place = Place::new();
    let file = place.begin("k", Base::New);
    file.write(0, &pattern(500, 1)).unwrap();
    let denied = BucketError::Denied { key: "k".to_owned(), message: "no".to_owned() };
    place.bucket.doom(Operation::Put, Fault::Fails(denied));
    file.sync().unwrap_err();
    // The log says that its writes are durable, so their damage is not a torn tail.
    let copy = tempfile::tempdir().unwrap();
    copy_files(place.directory.path(), copy.path());
    let log = copy.path().join(file.path().file_name().unwrap());
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[400] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let master = ogive_l2::MasterKey::from_material(&[7; 32]).unwrap();
    let opened = Journal::open(copy.path(), "memory:", &master, OpenOptions::default());
    assert!(matches!(opened, Err(JournalError::Damaged { .. })));
}
