//! A bucket that is changed through its origin, over a store inside the process.

#![allow(clippy::unwrap_used, reason = "a test")]

mod faults;
mod metadata;
mod model;
mod namespace;
mod promises;

use ogive_bucket::journal::{Journal, OpenOptions, Opened};
use ogive_bucket::staged::{Limits, Options, Uploads};
use ogive_bucket::{
    BucketOrigin, Convention, File, MemoryBucket, Node, OriginOptions, WriteOptions,
};
use ogive_l2::MasterKey;
use ogive_origin::{Caller, Changes, Errno, Found, Make, OFlags, Origin, RenameFlags, Result};
use std::ffi::OsStr;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

/// A TTL longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);
const CALLER: Caller = Caller { user: 7, group: 8, umask: 0 };

/// A store with small parts, so that small files behave like large ones.
fn write_options() -> WriteOptions {
    let limits = Limits {
        part_min_bytes: 500,
        part_max_bytes: 20_000,
        parts_max: 200,
        part_bytes: 800,
        sent_max_bytes: 10_000,
        put_max_bytes: 1000,
        copies: true,
        are_even: false,
    };
    let staged = Options {
        limits,
        is_only_writer: false,
        put_instead_max_bytes: 5000,
        uploads: Uploads::default(),
    };
    WriteOptions { staged, rename_max: 20, ..WriteOptions::default() }
}

fn journal(path: &Path) -> Opened {
    let master = MasterKey::from_material(&[7; 32]).unwrap();
    Journal::open(path, "memory:", &master, OpenOptions::default()).unwrap()
}

/// A mount, reduced to its origin.
struct Mounted {
    origin: BucketOrigin<MemoryBucket>,
    directory: tempfile::TempDir,
}

impl Deref for Mounted {
    type Target = BucketOrigin<MemoryBucket>;
    fn deref(&self) -> &Self::Target {
        &self.origin
    }
}

fn mount(bucket: &MemoryBucket, ttl: Duration) -> Mounted {
    mount_with(bucket, ttl, tempfile::tempdir().unwrap())
}

fn options(metadata_ttl: Duration) -> OriginOptions {
    OriginOptions {
        prefix: String::new(),
        metadata_ttl,
        user: 7,
        group: 8,
        file_mode: 0o640,
        directory_mode: 0o750,
        convention: Convention::Off,
    }
}

fn mount_with(bucket: &MemoryBucket, metadata_ttl: Duration, stage: tempfile::TempDir) -> Mounted {
    let opened = journal(stage.path());
    let options = options(metadata_ttl);
    let origin = BucketOrigin::open_writable(bucket.clone(), options, opened, write_options());
    Mounted { origin: origin.unwrap(), directory: stage }
}

impl Mounted {
    fn find(&self, path: &str) -> Result<Found<Node>> {
        let root = Origin::root(&self.origin)?;
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(root, |found, name| self.origin.lookup(&found.node, OsStr::new(name)))
    }

    /// The directory and the name of a path.
    fn at<'a>(&self, path: &'a str) -> (Node, &'a OsStr) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.find(directory).unwrap().node, OsStr::new(name))
    }

    fn create(&self, path: &str, flags: OFlags) -> Result<(Found<Node>, File)> {
        let (parent, name) = self.at(path);
        Origin::create(&self.origin, &parent, name, flags | OFlags::CREATE, 0o644, CALLER)
    }

    fn open(&self, path: &str, flags: OFlags) -> Result<File> {
        Origin::open(&self.origin, &self.find(path)?.node, flags)
    }

    /// All bytes of a file, read through a new handle.
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let file = self.open(path, OFlags::RDONLY)?;
        self.read_file(&file)
    }

    fn read_file(&self, file: &File) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let before = bytes.len();
            self.origin.read_at(file, before as u64, 777, &mut bytes)?;
            if bytes.len() < before + 777 {
                return Ok(bytes);
            }
        }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let (_, file) = self.create(path, OFlags::WRONLY | OFlags::TRUNC)?;
        assert_eq!(self.origin.write_at(&file, 0, bytes)?, bytes.len());
        self.origin.flush(&file)
    }

    fn truncate(&self, path: &str, size: u64) -> Result<()> {
        let node = self.find(path)?.node;
        let changes = Changes { size_bytes: Some(size), ..Changes::default() };
        let attributes = self.origin.set_attributes(&node, None, &changes)?;
        assert_eq!(attributes.size_bytes, size);
        Ok(())
    }

    fn make_directory(&self, path: &str) -> Result<Found<Node>> {
        let (parent, name) = self.at(path);
        self.origin.make(&parent, name, Make::Directory { mode: 0o755 }, CALLER)
    }

    fn unlink(&self, path: &str) -> Result<()> {
        let (parent, name) = self.at(path);
        self.origin.unlink(&parent, name)
    }

    fn remove_directory(&self, path: &str) -> Result<()> {
        let (parent, name) = self.at(path);
        self.origin.remove_directory(&parent, name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.rename_with(from, to, RenameFlags::empty())
    }

    fn rename_with(&self, from: &str, to: &str, flags: RenameFlags) -> Result<()> {
        let (from, to) = (self.at(from), self.at(to));
        self.origin.rename((&from.0, from.1), (&to.0, to.1), flags)
    }

    fn names(&self, path: &str) -> Vec<String> {
        let node = self.find(path).unwrap().node;
        let directory = self.origin.open_directory(&node).unwrap();
        let mut names = Vec::new();
        let visit = &mut |entry: ogive_origin::DirectoryEntry<'_>| {
            names.push(entry.name.to_str().unwrap().to_owned());
            true
        };
        self.origin.read_directory(&directory, 0, visit).unwrap();
        names.retain(|name| name != "." && name != "..");
        names
    }

    /// The mount after a kill of this one, with a copy of its journal.
    fn killed(self, bucket: &MemoryBucket, ttl: Duration) -> Mounted {
        let copy = tempfile::tempdir().unwrap();
        copy_files(self.directory.path(), copy.path());
        // Skip the orderly end.
        std::mem::forget(self.origin);
        mount_with(bucket, ttl, copy)
    }

    /// How many logs of files are in the journal.
    fn logs(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
        entries.filter(|entry| is_log(&entry.as_ref().unwrap().path())).count()
    }

    /// How many files are in the journal's conflicts.
    fn conflicts(&self) -> usize {
        std::fs::read_dir(self.directory.path().join("conflicts")).unwrap().count()
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

/// The bytes that the store has.
fn stored(bucket: &MemoryBucket, key: &str) -> Option<Vec<u8>> {
    bucket.bytes(key).map(|bytes| bytes.to_vec())
}

/// Bytes without zeroes that differ by offset.
fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 7 + usize::from(seed)) % 251) as u8 + 1).collect()
}

fn refused<T>(result: Result<T>) -> Errno {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(errno) => errno,
    }
}
