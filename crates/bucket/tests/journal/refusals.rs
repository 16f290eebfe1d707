//! Which journals a mount refuses: every error has a message, and nothing changes.

use super::{SOURCE, master, only_log, open};
use ogive_bucket::journal::{Base, Journal, JournalError, OpenOptions, master_key};
use ogive_l2::{KdfParameters, KeySource, MasterKey};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// All files below a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// A journal with a file in it.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("secret-name", Base::New).unwrap();
    file.write(0, b"secret bytes, twice: secret bytes").unwrap();
    file.sync().unwrap();
    directory
}

#[test]
fn the_journal_of_another_source_is_refused() {
    let directory = filled();
    let before = files(directory.path());
    let error = Journal::open(directory.path(), "s3://other", &master(), OpenOptions::default())
        .unwrap_err();
    let words = error.to_string();
    assert!(words.contains(SOURCE) && words.contains("s3://other"), "{words}");
    assert_eq!(files(directory.path()), before);
}

#[test]
fn another_key_is_refused() {
    let directory = filled();
    let before = files(directory.path());
    let other = MasterKey::from_material(&[8; 32]).unwrap();
    let error =
        Journal::open(directory.path(), SOURCE, &other, OpenOptions::default()).unwrap_err();
    assert!(matches!(error, JournalError::WrongKey(_)), "{error}");
    assert_eq!(files(directory.path()), before);
    assert_eq!(open(directory.path()).unwrap().staged.len(), 1);
}

#[test]
fn two_mounts_do_not_share_a_directory() {
    let directory = filled();
    let first = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::InUse(_)), "{error}");
    // It is free when the last file of the first is done.
    let file = first.staged.into_iter().next().unwrap();
    drop(first.journal);
    assert!(matches!(open(directory.path()), Err(JournalError::InUse(_))));
    drop(file);
    assert_eq!(open(directory.path()).unwrap().staged.len(), 1);
}

#[test]
fn a_directory_with_other_files_is_left_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("thesis.txt"), "precious").unwrap();
    let before = files(directory.path());
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::NotAJournal(_)), "{error}");
    assert_eq!(files(directory.path()), before);
}

#[test]
fn a_damaged_identity_is_refused() {
    let directory = filled();
    let identity = directory.path().join("identity");
    let whole = std::fs::read(&identity).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&identity, &bytes).unwrap();
        if let Err(error) = open(directory.path()) {
            let words = error.to_string();
            assert!(words.contains(directory.path().to_str().unwrap()), "{words}");
        }
        // Not every bit is significant. In any case the writes survive.
        assert!(only_log(directory.path()).exists());
    }
    for length in 0..whole.len() - 64 {
        std::fs::write(&identity, &whole[..length]).unwrap();
        assert!(open(directory.path()).is_err(), "{length} bytes of it");
    }
    std::fs::write(&identity, &whole).unwrap();
    assert_eq!(open(directory.path()).unwrap().staged.len(), 1);
}

#[test]
fn an_unknown_version_is_refused() {
    let directory = filled();
    let log = only_log(directory.path());
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[8] = 2;
    let sum = blake3::hash(&bytes[..80]);
    bytes[80..88].copy_from_slice(&sum.as_bytes()[..8]);
    std::fs::write(&log, &bytes).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::Version { version: 2, .. }), "{error}");
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

#[test]
fn a_log_of_another_journal_is_refused() {
    let (directory, other) = (filled(), filled());
    let foreign = only_log(other.path());
    std::fs::copy(&foreign, directory.path().join("00000000000000ff.log")).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("another journal"), "{error}");
}

#[test]
fn nothing_of_a_file_can_be_read_without_the_key() {
    let directory = filled();
    for (path, bytes) in files(directory.path()) {
        for secret in [&b"secret"[..], b"bucket", b"prefix"] {
            let shows = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!shows, "{} shows {secret:?}", path.display());
        }
    }
}

#[test]
fn two_restored_copies_of_a_journal_never_use_a_nonce_for_two_messages() {
    let directory = filled();
    let clone = tempfile::tempdir().unwrap();
    for (path, bytes) in files(directory.path()) {
        std::fs::write(clone.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    let seal = |directory: &Path, bytes: &[u8]| {
        let opened = open(directory).unwrap();
        let start = opened.staged[0].log_bytes() as usize;
        opened.staged[0].write(0, bytes).unwrap();
        let log = std::fs::read(only_log(directory)).unwrap();
        // The record's number, the part of its nonce that depends on the message, and its tag.
        (log[start + 4..start + 8].to_vec(), log[start + 16..start + 24].to_vec())
    };
    let ours = seal(directory.path(), &[1; 100]);
    let theirs = seal(clone.path(), &[2; 100]);
    assert_eq!(ours.0, theirs.0, "the records have the same number under the same key");
    assert_ne!(ours.1, theirs.1, "their nonces differ");
}

#[test]
fn a_compaction_uses_its_own_key() {
    let directory = filled();
    let opened = open(directory.path()).unwrap();
    let header = |bytes: Vec<u8>| (bytes[32..48].to_vec(), bytes[48..80].to_vec());
    let before = header(std::fs::read(only_log(directory.path())).unwrap());
    opened.staged[0].compact(true).unwrap();
    let after = header(std::fs::read(only_log(directory.path())).unwrap());
    assert_eq!(before.0, after.0, "the log is the same");
    assert_ne!(before.1, after.1, "its key is another one");
}

#[test]
fn a_directory_without_writes_is_free_for_another_source() {
    let directory = tempfile::tempdir().unwrap();
    let key = |text: &str| {
        let quick = KdfParameters { memory_kib: 64, passes: 1, lanes: 1 };
        let phrase = Zeroizing::new(text.as_bytes().to_vec());
        master_key(directory.path(), &KeySource::Passphrase(phrase.into(), quick), 1 << 20)
    };
    let claim = |source, master: &MasterKey| {
        Journal::open(directory.path(), source, master, OpenOptions::default())
    };
    drop(claim("s3://one", &key("typed").unwrap()).unwrap());
    drop(claim("s3://two", &key("typed otherwise").unwrap()).unwrap());
    let kept = master();
    master_key(directory.path(), &KeySource::Master(kept.clone()), 0).unwrap();
    let opened = claim(SOURCE, &kept).unwrap();
    let note = opened.journal.note_upload("http://127.0.0.1/bucket/k", 1).unwrap();
    note.end().unwrap();
    drop(opened);
    // The journal was used, so it belongs to its source now.
    assert!(matches!(claim("s3://one", &kept), Err(JournalError::OtherSource { .. })));
    drop(claim(SOURCE, &kept).unwrap());
    assert!(matches!(claim("s3://one", &kept), Err(JournalError::OtherSource { .. })));
}
