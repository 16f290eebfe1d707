//! The staging journal from outside: comparison with a model, cuts, damage, kills and full disks.

#![allow(clippy::unwrap_used, reason = "a test")]

mod damage;
mod full;
mod killed;
mod model;
mod refusals;
#[path = "../../../../tests/seed.rs"]
mod seed;
#[path = "../../../../tests/skipped.rs"]
mod skipped;

use ogive_bucket::journal::{Base, Journal, JournalError, OpenOptions, Opened, StagedLog};
use ogive_l2::MasterKey;
use std::path::{Path, PathBuf};

const SOURCE: &str = "s3://bucket/prefix at http://127.0.0.1";

fn master() -> MasterKey {
    MasterKey::from_material(&[7; 32]).unwrap()
}

fn open(path: &Path) -> Result<Opened, JournalError> {
    Journal::open(path, SOURCE, &master(), OpenOptions::default())
}

/// An object of this size, without zero bytes.
fn object(size: u64) -> Base {
    Base::Object { etag: format!("\"{size}\""), size }
}

fn object_bytes(size: u64) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8 + 1).collect()
}

/// All bytes of a staged file over the bytes of its base.
fn contents(file: &StagedLog, base: &[u8]) -> Vec<u8> {
    let view = file.view();
    let mut bytes = vec![0xee; view.state().size() as usize];
    let read = view
        .read::<Trouble>(0, &mut bytes, &mut |at, part| {
            part.copy_from_slice(&base[at as usize..at as usize + part.len()]);
            Ok(())
        })
        .unwrap();
    assert_eq!(read, bytes.len());
    bytes
}

/// Fails the test with the journal's error message.
#[derive(Debug)]
struct Trouble(#[expect(dead_code, reason = "shown by unwrap")] JournalError);

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self(error)
    }
}

/// The only log in a journal.
fn only_log(directory: &Path) -> PathBuf {
    let mut logs: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "log"))
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}
