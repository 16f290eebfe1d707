//! A full disk is reported to the writer, and nothing is lost.

use super::{contents, object, open};
use ogive_bucket::journal::{Base, JournalError};
use std::path::Path;
use std::process::Command;

/// A file system of 2 MiB, unmounted when it is dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "none"])
            .arg(directory.path())
            .output();
        match done {
            Ok(output) if output.status.success() => Some(Self(directory)),
            _ => {
                crate::skipped::skipped("a file system of 2 MiB cannot be mounted here");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_writer_gets_the_error_of_a_full_disk_and_an_upload_empties_it() {
    let Some(small) = Small::new() else { return };
    let opened = open(small.path()).unwrap();
    let file = opened.journal.stage("k", Base::New).unwrap();
    let mut expected = Vec::new();
    let part = |round: usize| vec![round as u8 + 1; 300_000];
    let error = loop {
        let bytes = part(expected.len() % 7);
        match file.write(expected.len() as u64, &bytes) {
            Ok(()) => expected.extend_from_slice(&bytes),
            Err((written, error)) => {
                assert!(written < bytes.len());
                expected.extend_from_slice(&bytes[..written]);
                break error;
            }
        }
        assert!(expected.len() < 2 << 20, "more than the disk holds");
    };
    assert!(matches!(error, JournalError::Full(_)), "{error}");
    assert_eq!(error.errno(), rustix::io::Errno::NOSPC);
    assert!(expected.len() > 1_500_000, "only {} bytes fitted", expected.len());
    assert!(contents(&file, &[]) == expected, "earlier writes are intact");
    // Repeated failures leave the log unchanged.
    for _ in 0..5 {
        assert!(file.write(0, &part(1)).is_err());
    }
    assert!(file.compact(true).is_err(), "the disk has no space for a copy");
    assert!(!file.wants_compaction(), "the next attempt has to wait");
    file.sync().unwrap();
    drop((opened, file));

    let opened = open(small.path()).unwrap();
    let file = &opened.staged[0];
    let replayed = contents(file, &[]);
    // A failed write may have written some of its bytes, from the first. No other bytes change.
    assert_eq!(replayed.len(), expected.len());
    assert!(replayed[300_000..] == expected[300_000..]);
    // The reserve has space for the records of an upload.
    let snapshot = file.snapshot().unwrap();
    file.uploaded(snapshot.id().through, object(expected.len() as u64)).unwrap();
    assert!(file.retire().unwrap());
    let next = opened.journal.stage("next", Base::New).unwrap();
    drop((opened, snapshot));
    next.write(0, &part(3)).unwrap();
}
