//! Torn tails are cut off; damage before them is an error.

use super::{SOURCE, contents, master, object, object_bytes, only_log, open};
use ogive_bucket::journal::{Base, Journal, JournalError, OpenOptions};
use std::path::Path;

/// A journal with one file, partly synced. Returns the length of the log after each change, with
/// the file's contents; the first entry is the sync.
fn fill(directory: &Path) -> Vec<(u64, Vec<u8>)> {
    let opened = open(directory).unwrap();
    let base = object_bytes(500);
    let file = opened.journal.stage("dir/file", object(500)).unwrap();
    file.write(10, b"some bytes that are durable").unwrap();
    file.resize(300).unwrap();
    file.write(290, &[9; 40]).unwrap();
    file.sync().unwrap();
    let mut states = vec![(file.log_bytes(), contents(&file, &base))];
    let mut remember = || states.push((file.log_bytes(), contents(&file, &base)));
    file.write(0, b"a tail").unwrap();
    remember();
    file.resize(100).unwrap();
    remember();
    file.append(&[3; 200]).unwrap();
    remember();
    states
}

#[test]
fn a_log_cut_at_any_byte_of_its_tail_keeps_the_earlier_changes() {
    let directory = tempfile::tempdir().unwrap();
    let states = fill(directory.path());
    let base = object_bytes(500);
    let log = only_log(directory.path());
    let whole = std::fs::read(&log).unwrap();
    assert_eq!(whole.len() as u64, states.last().unwrap().0);
    for cut in states[0].0..=whole.len() as u64 {
        // Cut the log; in the other rounds overwrite the rest with zeroes, or with other bytes.
        for damage in 0..3 {
            let mut bytes = whole[..cut as usize].to_vec();
            match damage {
                0 => {}
                1 => bytes.resize(whole.len(), 0),
                _ => bytes.extend((cut..whole.len() as u64).map(|at| (at * 31 % 255) as u8 + 1)),
            }
            if damage > 0 && cut % 8 != 0 {
                continue;
            }
            std::fs::write(&log, &bytes).unwrap();
            let opened = open(directory.path()).unwrap();
            // A record is complete even without the zeroes after its payload.
            let found = contents(&opened.staged[0], &base);
            let at = states.iter().rposition(|(_, state)| *state == found).unwrap();
            let end = states[at].0;
            assert!(end <= cut.next_multiple_of(64), "cut at {cut}: {end}");
            let next = states.get(at + 1).map_or(u64::MAX, |(end, _)| *end);
            assert!(next > cut, "cut at {cut}, but the change that ends at {next} is lost");
            // The log can be continued.
            opened.staged[0].write(1, b"goes on").unwrap();
            let expected = contents(&opened.staged[0], &base);
            drop(opened);
            let opened = open(directory.path()).unwrap();
            assert!(opened.torn.is_empty(), "the tail was cut off before");
            assert!(contents(&opened.staged[0], &base) == expected);
        }
    }
}

#[test]
fn damage_to_durable_records_is_an_error_and_deletes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let states = fill(directory.path());
    let base = object_bytes(500);
    let log = only_log(directory.path());
    let whole = std::fs::read(&log).unwrap();
    let mut refused = 0;
    for at in (0..states[0].0 as usize).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&log, &bytes).unwrap();
        match open(directory.path()) {
            Ok(opened) => {
                // The byte was padding, or the count of durable records.
                let found = contents(&opened.staged[0], &base);
                assert!(states.iter().any(|(_, state)| *state == found), "at {at}");
            }
            Err(error @ JournalError::Damaged { .. }) => {
                let words = error.to_string();
                assert!(words.contains(log.to_str().unwrap()), "{words}");
                assert!(words.contains("Nothing was deleted"), "{words}");
                assert_eq!(std::fs::read(&log).unwrap(), bytes);
                refused += 1;
            }
            Err(error) => panic!("at {at}: {error}"),
        }
    }
    assert!(refused > 80, "only {refused} were refused");
}

#[test]
fn a_damaged_log_can_be_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let log = only_log(directory.path());
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[300] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let options = OpenOptions { sets_damaged_aside: true, ..OpenOptions::default() };
    let opened = Journal::open(directory.path(), SOURCE, &master(), options).unwrap();
    assert!(opened.staged.is_empty());
    assert_eq!(opened.damaged.len(), 1);
    let aside = directory.path().join("damaged").join(log.file_name().unwrap());
    assert_eq!(std::fs::read(aside).unwrap(), bytes);
    drop(opened);
    assert!(open(directory.path()).unwrap().damaged.is_empty(), "it was moved away");
}

/// Each may be the only copy of a program's writes, so none may replace another.
#[test]
fn all_damaged_logs_are_kept_even_with_equal_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions { sets_damaged_aside: true, ..OpenOptions::default() };
    let mut damaged = Vec::new();
    for round in 0..3 {
        fill(directory.path());
        let log = only_log(directory.path());
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[300] ^= 1 << round;
        std::fs::write(&log, &bytes).unwrap();
        if round == 1 {
            // Numbered like in an earlier version.
            let first = std::fs::read_dir(directory.path().join("damaged")).unwrap().next();
            let name = first.unwrap().unwrap().file_name();
            std::fs::rename(log, directory.path().join(name)).unwrap();
        }
        drop(Journal::open(directory.path(), SOURCE, &master(), options).unwrap());
        damaged.push(bytes);
    }
    let aside = std::fs::read_dir(directory.path().join("damaged")).unwrap();
    let mut aside: Vec<_> =
        aside.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    damaged.sort();
    aside.sort();
    assert!(aside == damaged, "{} of {} are kept", aside.len(), damaged.len());
}

#[test]
fn damaged_bytes_are_an_error_for_the_reader_and_never_returned() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("k", Base::New).unwrap();
    file.write(0, &[5; 4000]).unwrap();
    let log = only_log(directory.path());
    let mut bytes = std::fs::read(&log).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let mut read = [0; 10];
    let no_base = &mut |_, _: &mut [u8]| -> Result<(), JournalError> { unreachable!() };
    let error = file.view().read(0, &mut read, no_base).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert_eq!(read, [0; 10]);
    assert!(file.compact(true).is_err(), "damaged bytes are not sealed again");
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

#[test]
fn an_incomplete_new_log_does_not_stop_a_mount() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("k", Base::New).unwrap();
    let log = only_log(directory.path());
    let whole = std::fs::read(&log).unwrap();
    drop((opened, file));
    // The first record holds the key: 4 + 1 + 1 bytes and its header.
    for length in 0..whole.len() - 64 + 6 {
        for zeroes in [false, true] {
            let mut bytes = whole[..length].to_vec();
            if zeroes {
                bytes = vec![0; 128 + length];
            }
            std::fs::write(&log, bytes).unwrap();
            let opened = open(directory.path()).unwrap();
            assert!(opened.staged.is_empty(), "{length}");
            assert!(!log.exists());
        }
    }
}

#[test]
fn an_unfinished_copy_of_a_compaction_does_not_replace_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let states = fill(directory.path());
    let log = only_log(directory.path());
    let copy = log.with_extension("new");
    std::fs::write(&copy, &std::fs::read(&log).unwrap()[..200]).unwrap();
    let opened = open(directory.path()).unwrap();
    assert!(!copy.exists());
    assert_eq!(contents(&opened.staged[0], &object_bytes(500)), states.last().unwrap().1);
}
