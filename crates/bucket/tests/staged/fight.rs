//! Two writers of one object: each increments the number in it, and no increment is lost.

use super::{open, options};
use ogive_bucket::journal::{Base, Journal};
use ogive_bucket::staged::{Durable, StagedError, StagedFile};
use ogive_bucket::{Bucket, MemoryBucket};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Increments of both together. A debug build makes fewer, to be quick.
const ROUNDS: u64 = if cfg!(debug_assertions) { 1_000 } else { 100_000 };

/// Increments `times` times; returns how often another writer was first.
fn add(bucket: &MemoryBucket, journal: &Journal, times: u64, conflicts: &Path) -> u64 {
    let mut lost = 0;
    let mut done = 0;
    while done < times {
        let object = bucket.head("k").unwrap();
        let etag = object.etag.unwrap();
        let mut number = Vec::new();
        let got = bucket.get("k", 0..8, Some(&etag), &mut |bytes| {
            number.extend_from_slice(&bytes);
            ControlFlow::Continue(())
        });
        if got.is_err() {
            lost += 1;
            continue;
        }
        let number = u64::from_le_bytes(number.try_into().unwrap());
        let base = Base::Object { etag: etag.as_str().to_owned(), size: object.size_bytes };
        let file =
            StagedFile::begin(Arc::new(bucket.clone()), journal, "k", base, options()).unwrap();
        file.write(0, &(number + 1).to_le_bytes()).unwrap();
        match file.close(Durable::Store) {
            Ok(left) => {
                assert!(left.is_none());
                done += 1;
            }
            Err((file, StagedError::Conflict { .. })) => {
                lost += 1;
                // A user would read the conflict first.
                let path = file.path();
                assert!(path.starts_with(conflicts));
                std::fs::remove_file(path).unwrap();
            }
            Err((_, error)) => panic!("{error}"),
        }
    }
    lost
}

#[test]
fn two_writers_of_one_object_lose_no_update() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("k", 0_u64.to_le_bytes().to_vec());
    // Keep the journals in memory if possible, because each round syncs them.
    let memory = Path::new("/dev/shm");
    let directory = || match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let directories = [directory(), directory()];
    let lost: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = directories
            .iter()
            .map(|directory| {
                let opened = open(directory.path());
                let (bucket, conflicts) = (bucket.clone(), directory.path().join("conflicts"));
                scope.spawn(move || add(&bucket, &opened.journal, ROUNDS / 2, &conflicts))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let number = u64::from_le_bytes(bucket.bytes("k").unwrap()[..8].try_into().unwrap());
    assert_eq!(number, ROUNDS, "{lost} conflicts");
    assert_eq!(bucket.open_uploads(), 0);
}

#[test]
fn threads_that_append_to_one_file_and_sync_it_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = MemoryBucket::new();
    let opened = open(directory.path());
    let file =
        StagedFile::begin(Arc::new(bucket.clone()), &opened.journal, "k", Base::New, options())
            .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (file, bucket) = (&file, &bucket);
            scope.spawn(move || {
                for number in 0..60_u8 {
                    let line = [thread; 50].iter().copied().chain([number; 50]).collect::<Vec<_>>();
                    let at = file.append(&line).unwrap() as usize;
                    if number % 7 == 0 {
                        file.sync().unwrap();
                        let stored = bucket.bytes("k").unwrap();
                        assert_eq!(stored[at..at + 100], line, "a synced line is in the store");
                    }
                }
            });
        }
    });
    assert!(file.close(Durable::Store).unwrap().is_none());
    let stored = bucket.bytes("k").unwrap();
    assert_eq!(stored.len(), 4 * 60 * 100);
    let mut lines: Vec<_> = stored.chunks(100).map(|line| (line[0], line[99])).collect();
    lines.sort_unstable();
    let all: Vec<_> = (0..4).flat_map(|thread| (0..60).map(move |line| (thread, line))).collect();
    assert_eq!(lines, all);
}
