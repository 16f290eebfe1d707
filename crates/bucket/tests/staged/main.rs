//! Staged files over a store inside the process, which can fail on demand.

#![allow(clippy::unwrap_used, reason = "a test")]

mod fight;
mod model;
mod renames;
mod transitions;

use ogive_bucket::journal::{Base, Journal, OpenOptions, Opened};
use ogive_bucket::staged::{Limits, Options, StagedFile, Uploads};
use ogive_bucket::{Bucket, MemoryBucket};
use ogive_l2::MasterKey;
use std::path::Path;
use std::sync::Arc;

/// A store with small parts, so that small files behave like large ones.
const LIMITS: Limits = Limits {
    part_min_bytes: 500,
    part_max_bytes: 20_000,
    parts_max: 200,
    part_bytes: 800,
    sent_max_bytes: 10_000,
    put_max_bytes: 1000,
    copies: true,
    are_even: false,
};

fn options() -> Options {
    Options {
        limits: LIMITS,
        is_only_writer: false,
        put_instead_max_bytes: 5000,
        uploads: Uploads::default(),
    }
}

fn open(path: &Path) -> Opened {
    let master = MasterKey::from_material(&[7; 32]).unwrap();
    Journal::open(path, "memory:", &master, OpenOptions::default()).unwrap()
}

/// A bucket and an empty journal.
struct Place {
    bucket: MemoryBucket,
    directory: tempfile::TempDir,
    opened: Opened,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let opened = open(directory.path());
        Self { bucket: MemoryBucket::new(), directory, opened }
    }

    fn begin(&self, key: &str, base: Base) -> StagedFile {
        let bucket = Arc::new(self.bucket.clone());
        StagedFile::begin(bucket, &self.opened.journal, key, base, options()).unwrap()
    }

    /// An object of these bytes, and a staged file that changes it.
    fn change(&self, key: &str, bytes: Vec<u8>) -> StagedFile {
        self.bucket.foreign_put(key, bytes);
        let base = self.base(key);
        self.begin(key, base)
    }

    fn base(&self, key: &str) -> Base {
        let object = self.bucket.head(key).unwrap();
        Base::Object { etag: object.etag.unwrap().as_str().to_owned(), size: object.size_bytes }
    }

    fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        self.bucket.bytes(key).map(|bytes| bytes.to_vec())
    }

    /// The journal after a kill now, as the next mount would open it: a copy of the directory.
    fn killed(&self) -> (tempfile::TempDir, Opened) {
        let copy = tempfile::tempdir().unwrap();
        copy_files(self.directory.path(), copy.path());
        let opened = open(copy.path());
        assert!(opened.damaged.is_empty() && opened.torn.is_empty());
        (copy, opened)
    }

    fn resume(&self, opened: &mut Opened) -> StagedFile {
        assert_eq!(opened.staged.len(), 1);
        StagedFile::resume(Arc::new(self.bucket.clone()), opened.staged.remove(0), options())
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy_files(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Bytes without zeroes that differ by offset.
fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 7 + usize::from(seed)) % 251) as u8 + 1).collect()
}
