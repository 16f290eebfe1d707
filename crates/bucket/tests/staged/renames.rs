//! Renames of directories: complete or without effect, whenever they are interrupted.

use super::{Place, open, pattern};
use ogive_bucket::staged::{RENAME_MAX, RenameError, Renamed, rename_directory, resume_rename};
use ogive_bucket::{
    Bucket, BucketError, Condition, Entry, Fault, Listing, ObjectMetadata, Operation, Promises,
    WriteMetadata,
};
use ogive_origin::Errno;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

fn timeout() -> BucketError {
    BucketError::TimedOut { key: "k".to_owned(), seconds: 1 }
}

/// All objects of a bucket.
fn objects(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let all = Listing { prefix: "", delimited: false, page: 1000 };
    place
        .bucket
        .list(&all, &mut |entry| {
            if let Entry::Object(object) = entry {
                let bytes = place.bytes(&object.key).unwrap();
                found.insert(object.key, bytes);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// A directory with a marker, files and a subdirectory, and objects outside of it.
fn tree() -> Place {
    let place = Place::new();
    for key in ["old/", "old/a", "old/b", "old/deep/c", "oldest", "other/x"] {
        place.bucket.foreign_put(key, pattern(100, key.len() as u8));
    }
    place
}

/// The objects before and after the rename.
fn both(place: &Place) -> [BTreeMap<String, Vec<u8>>; 2] {
    let before = objects(place);
    let moved = |(key, bytes): (&String, &Vec<u8>)| {
        let key = key.strip_prefix("old/").map_or(key.clone(), |rest| format!("new/{rest}"));
        (key, bytes.clone())
    };
    let after = before.iter().map(moved).collect();
    [before, after]
}

fn rename(place: &Place) -> Result<Renamed, RenameError> {
    rename_directory(&place.bucket, &place.opened.journal, ("old/", "new/"), RENAME_MAX)
}

#[test]
fn a_directory_is_renamed_with_all_that_is_below_it() {
    for promises in [Promises::ALL, Promises { delete: false, ..Promises::ALL }] {
        let place = tree();
        place.bucket.honour(promises);
        let [_, after] = both(&place);
        assert_eq!(rename(&place).unwrap(), Renamed { moved: 4, left: Vec::new() });
        assert_eq!(objects(&place), after);
        assert!(place.killed().1.renames.is_empty(), "the journal has no log of it");
    }
}

#[test]
fn an_error_about_the_new_name_does_not_count_as_an_existing_object() {
    let place = tree();
    let before = objects(&place);
    for error in [timeout(), BucketError::Denied { key: "new/".into(), message: "no".into() }] {
        // The first listing is of the old name.
        place.bucket.doom(Operation::List, Fault::Slow(std::time::Duration::ZERO));
        place.bucket.doom(Operation::List, Fault::Fails(error.clone()));
        let errno = rename(&place).unwrap_err().errno();
        assert_eq!(errno, error.errno());
    }
    assert_eq!(objects(&place), before);
    assert_eq!(place.bucket.requests(Operation::Copy), 0);
    // Any key other than the marker makes the target non-empty, wherever the marker is listed.
    place.bucket.foreign_put("new/", "");
    place.bucket.foreign_put("new/x", "theirs");
    assert_eq!(rename(&place).unwrap_err().errno(), Errno::NOTEMPTY);
}

#[test]
fn a_rename_that_is_refused_changes_nothing() {
    let place = tree();
    let [before, _] = both(&place);
    let journal = &place.opened.journal;
    let attempt = |from, to, max| {
        rename_directory(&place.bucket, journal, (from, to), max).unwrap_err().errno()
    };
    assert_eq!(attempt("old/", "new/", 3), Errno::XDEV);
    assert_eq!(attempt("old/", "other/", 10), Errno::NOTEMPTY);
    assert_eq!(attempt("old/", "old/deep/", 10), Errno::INVAL);
    assert_eq!(objects(&place), before);
    assert_eq!(place.bucket.requests(Operation::Copy), 0);
    // An existing empty directory is replaced.
    place.bucket.foreign_put("new/", Vec::new());
    assert_eq!(rename_directory(&place.bucket, journal, ("old/", "new/"), 4).unwrap().moved, 4);
}

#[test]
fn a_failed_copy_undoes_the_rename() {
    for number in 0..4 {
        for is_lost in [false, true] {
            let place = tree();
            let [before, after] = both(&place);
            (0..number).for_each(|_| {
                let slow = std::time::Duration::ZERO;
                place.bucket.doom(Operation::Copy, Fault::Slow(slow));
            });
            let denied = BucketError::Denied { key: "k".to_owned(), message: "no".to_owned() };
            let fault = match is_lost {
                true => Fault::AnswerLost(timeout()),
                false => Fault::Fails(denied),
            };
            place.bucket.doom(Operation::Copy, fault);
            match rename(&place) {
                Ok(_) => assert!(
                    is_lost && objects(&place) == after,
                    "the mark shows that the copy was made"
                ),
                Err(error) => {
                    assert_eq!(error.errno(), Errno::ACCESS);
                    assert_eq!(objects(&place), before);
                }
            }
            assert!(place.killed().1.renames.is_empty());
        }
    }
}

#[test]
fn a_killed_rename_is_finished_or_undone_by_the_next_mount() {
    let (mut finished, mut undone) = (0, 0);
    for operation in [Operation::Copy, Operation::Delete] {
        for number in 0..4 {
            let place = tree();
            let [before, after] = both(&place);
            for _ in 0..number {
                place.bucket.doom(operation, Fault::Slow(std::time::Duration::ZERO));
            }
            // All objects are requested before the first copy.
            for _ in 0..4 {
                place.bucket.doom(Operation::Head, Fault::Slow(std::time::Duration::ZERO));
            }
            // From here on no request succeeds, as if the process had been killed.
            for doomed in [operation, Operation::Head, Operation::Delete] {
                for _ in 0..10 {
                    place.bucket.doom(doomed, Fault::Fails(timeout()));
                }
            }
            rename(&place).unwrap_err();
            let between = objects(&place);
            // The next mount meets a working store with the same objects.
            for doomed in [Operation::Head, Operation::Delete] {
                while place.bucket.requests(doomed) < 30 {
                    let _ = match doomed {
                        Operation::Head => place.bucket.head("nothing").map(drop),
                        _ => place.bucket.delete("nothing", None),
                    };
                }
            }
            let directory = place.directory;
            drop(place.opened);
            let mut opened = open(directory.path());
            assert_eq!(opened.renames.len(), 1);
            let log = opened.renames.remove(0);
            let renamed = resume_rename(&place.bucket, log).unwrap();
            let place = Place { bucket: place.bucket, directory, opened };
            if operation == Operation::Copy {
                assert_eq!(objects(&place), before, "{between:?}");
                assert_eq!(renamed, Renamed::default());
                undone += 1;
            } else {
                assert_eq!(objects(&place), after, "{between:?}");
                finished += 1;
            }
            assert!(place.killed().1.renames.is_empty());
        }
    }
    assert_eq!((finished, undone), (4, 4));
}

#[test]
fn foreign_writes_below_the_old_name_are_not_deleted() {
    for promises in [Promises::ALL, Promises { delete: false, ..Promises::ALL }] {
        let place = tree();
        place.bucket.honour(promises);
        // All keys are copied; then no request succeeds any more.
        for _ in 0..4 {
            place.bucket.doom(Operation::Head, Fault::Slow(std::time::Duration::ZERO));
        }
        for doomed in [Operation::Delete, Operation::Head] {
            place.bucket.doom(doomed, Fault::Fails(timeout()));
        }
        rename(&place).unwrap_err();
        place.bucket.foreign_put("old/b", &b"theirs"[..]);
        let directory = place.directory;
        drop(place.opened);
        let mut opened = open(directory.path());
        // The remaining faults.
        let _ = (place.bucket.head("nothing"), place.bucket.delete("nothing", None));
        let renamed = resume_rename(&place.bucket, opened.renames.remove(0)).unwrap();
        assert_eq!(renamed.left, ["old/b"]);
        assert_eq!(place.bucket.bytes("old/b").unwrap(), &b"theirs"[..]);
        assert_eq!(place.bucket.bytes("new/b").unwrap(), pattern(100, 5));
        assert!(place.bucket.bytes("old/a").is_none());
    }
}

/// The objects below both names after a rename, if the store refuses to delete one key.
fn kept(number: usize, promises: Promises) -> (Place, [BTreeMap<String, Vec<u8>>; 2], RenameError) {
    let place = tree();
    place.bucket.honour(promises);
    let both = both(&place);
    for _ in 0..number {
        place.bucket.doom(Operation::Delete, Fault::Slow(std::time::Duration::ZERO));
    }
    let held = BucketError::Held { key: "k".to_owned(), message: "SnapshotsPresent".to_owned() };
    place.bucket.doom(Operation::Delete, Fault::Fails(held));
    let error = rename(&place).unwrap_err();
    (place, both, error)
}

#[test]
fn an_object_that_the_store_keeps_has_no_copy_afterwards() {
    for promises in [Promises::ALL, Promises { delete: false, ..Promises::ALL }] {
        for number in 0..4 {
            let (place, [before, after], error) = kept(number, promises);
            assert_eq!(error.errno(), Errno::BUSY);
            let all: Vec<_> = before.keys().filter(|key| key.starts_with("old/")).collect();
            let mut expected = if number == 0 { before.clone() } else { after };
            if number > 0 {
                let key = all[number];
                expected.remove(&key.replacen("old/", "new/", 1));
                expected.insert(key.clone(), before[key].clone());
            }
            assert_eq!(objects(&place), expected, "{number}");
            assert!(place.killed().1.renames.is_empty(), "the journal has no log of it");
            let staying = if number == 0 { 4 } else { 1 };
            assert!(error.to_string().contains(&format!("{staying} of 4")), "{error}");
        }
    }
}

#[test]
fn objects_that_cannot_be_renamed_are_found_before_the_first_copy() {
    let place = tree();
    let [before, _] = both(&place);
    let mut kept = ObjectMetadata::default();
    kept.headers.insert("x-ms-blob-type", "AppendBlob".to_owned());
    let beside = WriteMetadata::NONE.with(Some(&kept));
    let bytes = before["old/b"].clone().into();
    place.bucket.put("old/b", bytes, &Condition::None, beside).unwrap();
    assert_eq!(rename(&place).unwrap_err().errno(), Errno::PERM);
    assert_eq!((objects(&place), place.bucket.requests(Operation::Copy)), (before, 0));
}
