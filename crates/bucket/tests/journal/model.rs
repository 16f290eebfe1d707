//! Random changes to a staged file and to a vector of bytes: both stay equal after replays,
//! compactions and uploads.

use super::{contents, object, object_bytes, open};
use ogive_bucket::journal::{Base, StagedLog, WriteId};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Change {
    Write {
        offset: u64,
        bytes: usize,
        with: u8,
    },
    Append {
        bytes: usize,
        with: u8,
    },
    /// Many small writes, each after the previous one.
    Lines {
        offset: u64,
        lines: usize,
        bytes: usize,
        with: u8,
    },
    Resize(u64),
    Sync,
    Reopen,
    Compact,
    /// An upload begins with the current contents.
    Snapshot,
    /// The upload ends.
    Uploaded,
}

const OFFSET_MAX: u64 = 300 << 10;

fn change() -> impl Strategy<Value = Change> {
    let small = 1..5000_usize;
    let large = 1..300_000_usize;
    let bytes = prop_oneof![4 => small, 1 => large];
    let with = any::<u8>();
    prop_oneof![
        6 => (0..OFFSET_MAX, bytes.clone(), with)
            .prop_map(|(offset, bytes, with)| Change::Write { offset, bytes, with }),
        2 => (bytes, any::<u8>()).prop_map(|(bytes, with)| Change::Append { bytes, with }),
        3 => (0..OFFSET_MAX).prop_map(Change::Resize),
        1 => Just(Change::Sync),
        2 => Just(Change::Reopen),
        1 => Just(Change::Compact),
        1 => Just(Change::Snapshot),
        1 => Just(Change::Uploaded),
    ]
}

/// Many lines, among other changes.
fn change_with_lines() -> impl Strategy<Value = Change> {
    let lines = (0..OFFSET_MAX, 300..500_usize, 1..300_usize, any::<u8>())
        .prop_map(|(offset, lines, bytes, with)| Change::Lines { offset, lines, bytes, with });
    prop_oneof![1 => lines, 4 => change()]
}

/// The file as a vector.
#[derive(Default)]
struct Model {
    base: Vec<u8>,
    file: Vec<u8>,
    uploading: Option<(WriteId, Vec<u8>)>,
}

impl Model {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        self.file.resize(self.file.len().max(end), 0);
        self.file[offset..end].copy_from_slice(bytes);
    }

    fn apply(&mut self, file: &StagedLog, change: &Change) {
        match *change {
            Change::Write { offset, bytes, with } => {
                let bytes: Vec<u8> = (0..bytes).map(|at| with.wrapping_add(at as u8)).collect();
                file.write(offset, &bytes).unwrap();
                self.write(offset as usize, &bytes);
            }
            Change::Append { bytes, with } => {
                let bytes = vec![with; bytes];
                assert_eq!(file.append(&bytes).unwrap(), self.file.len() as u64);
                self.write(self.file.len(), &bytes);
            }
            Change::Lines { offset, lines, bytes, with } => {
                for line in 0..lines {
                    let offset = offset + (line * bytes) as u64;
                    let bytes = vec![with.wrapping_add(line as u8); bytes];
                    file.write(offset, &bytes).unwrap();
                    self.write(offset as usize, &bytes);
                }
            }
            Change::Resize(size) => {
                file.resize(size).unwrap();
                self.file.resize(size as usize, 0);
            }
            Change::Sync => _ = file.sync().unwrap(),
            Change::Compact => file.compact(self.uploading.is_none()).unwrap(),
            Change::Snapshot => {
                let snapshot = file.snapshot().unwrap();
                assert_eq!(WriteId::parse(&snapshot.id().to_string()), Some(snapshot.id()));
                self.uploading = Some((snapshot.id(), self.file.clone()));
            }
            Change::Uploaded => {
                if let Some((id, bytes)) = self.uploading.take() {
                    file.uploaded(id.through, object(bytes.len() as u64)).unwrap();
                    let is_all = id.through == file.view().id().through;
                    assert_eq!(file.with_state(|state| state.is_changed()), !is_all);
                    self.base = bytes;
                }
            }
            Change::Reopen => unreachable!("done by the caller"),
        }
    }
}

/// Applies changes to a file and to its model, and compares them after each.
fn check(size: Option<u64>, changes: &[Change]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let mut opened = open(directory.path()).unwrap();
    let base = size.map_or(Base::New, object);
    let bytes = object_bytes(size.unwrap_or(0));
    let mut model = Model { file: bytes.clone(), base: bytes, uploading: None };
    let mut file = opened.journal.stage("a/key", base).unwrap();
    for change in changes {
        if matches!(change, Change::Reopen) {
            let before = file.with_state(|state| (state.base().clone(), state.revision()));
            drop((opened, file));
            opened = open(directory.path()).unwrap();
            prop_assert!(opened.torn.is_empty() && opened.damaged.is_empty());
            prop_assert_eq!(opened.staged.len(), 1);
            file = opened.staged.remove(0);
            let after = file.with_state(|state| (state.base().clone(), state.revision()));
            prop_assert_eq!(before, after);
            prop_assert_eq!(file.with_state(|state| state.key().to_owned()), "a/key");
        } else {
            model.apply(&file, change);
        }
        prop_assert_eq!(file.size(), model.file.len() as u64);
        prop_assert!(contents(&file, &model.base) == model.file, "after {:?}", change);
    }
    Ok(())
}

fn size() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..OFFSET_MAX).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_gives_back_what_was_written(
        size in size(),
        changes in prop::collection::vec(change(), 1..40),
    ) {
        check(size, &changes)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn merged_lines_read_as_written(
        size in size(),
        changes in prop::collection::vec(change_with_lines(), 1..20),
    ) {
        check(size, &changes)?;
    }
}

#[test]
fn a_view_of_a_part_reads_like_the_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let base = object_bytes(1000);
    let file = opened.journal.stage("k", object(1000)).unwrap();
    file.write(100, &[0xaa; 50]).unwrap();
    file.write(120, &[0xbb; 10]).unwrap();
    file.resize(600).unwrap();
    file.write(700, &[0xcc; 100]).unwrap();
    let whole = contents(&file, &base);
    for start in (0..820).step_by(7) {
        for length in [1, 5, 33, 400, 2000] {
            let mut bytes = vec![0; length];
            let read = file
                .view_of(start..start + length as u64)
                .read::<super::Trouble>(start, &mut bytes, &mut |at, part| {
                    part.copy_from_slice(&base[at as usize..][..part.len()]);
                    Ok(())
                })
                .unwrap();
            let from = whole.len().min(start as usize);
            assert_eq!(bytes[..read], whole[from..whole.len().min(from + length)], "{start}");
        }
    }
}

#[test]
fn the_log_of_an_overwritten_file_stays_small_and_keeps_its_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("k", Base::New).unwrap();
    let mut longest = 0;
    for round in 0..300_u32 {
        file.write(0, &vec![round as u8; 128 << 10]).unwrap();
        file.write(1 << 20, &round.to_le_bytes()).unwrap();
        if file.wants_compaction() {
            file.compact(true).unwrap();
        }
        longest = longest.max(file.log_bytes());
    }
    assert!(longest < 12 << 20, "{longest} bytes for 128 KiB");
    file.sync().unwrap();
    let (before, name) = (contents(&file, &[]), file.path());
    assert_eq!(name.extension().unwrap(), "log");
    drop((opened, file));
    let opened = open(directory.path()).unwrap();
    assert!(contents(&opened.staged[0], &[]) == before);
    assert_eq!(before.len(), (1 << 20) + 4);
}

#[test]
fn a_snapshot_does_not_see_later_changes() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("k", Base::New).unwrap();
    file.write(0, b"before").unwrap();
    let snapshot = file.snapshot().unwrap();
    file.write(0, b"after!").unwrap();
    file.resize(3).unwrap();
    file.compact(false).unwrap();
    let mut bytes = [0; 10];
    let no_base = &mut |_, _: &mut [u8]| -> Result<(), super::Trouble> { unreachable!() };
    assert_eq!(snapshot.read(0, &mut bytes, no_base).unwrap(), 6);
    assert_eq!(&bytes[..6], b"before");
    assert_eq!(contents(&file, &[]), b"aft");
    // The upload of the snapshot ends: later changes are changes of its object.
    file.uploaded(snapshot.id().through, object(6)).unwrap();
    assert_eq!(contents(&file, b"before"), b"aft");
    assert!(file.with_state(|state| state.is_changed()));
    assert!(!file.retire().unwrap(), "a file with changes is not deleted");
    let snapshot = file.snapshot().unwrap();
    file.uploaded(snapshot.id().through, object(3)).unwrap();
    assert!(file.retire().unwrap());
    drop((opened, file));
    assert!(open(directory.path()).unwrap().staged.is_empty());
}

#[test]
fn a_conflict_is_kept_apart_from_the_staged_files() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("k", object(10)).unwrap();
    file.write(2, b"ours").unwrap();
    let path = file.set_aside().unwrap();
    assert!(path.starts_with(directory.path().join("conflicts")) && path.exists());
    let other = opened.journal.stage("other", Base::New).unwrap();
    drop((opened, file, other));
    let opened = open(directory.path()).unwrap();
    assert_eq!((opened.staged.len(), opened.conflicts.len()), (1, 1));
    assert_eq!(opened.conflicts[0].with_state(|state| state.key().to_owned()), "k");
    assert_eq!(contents(&opened.conflicts[0], b"0123456789"), b"01ours6789");
    let next = opened.journal.stage("third", Base::New).unwrap();
    assert_ne!(next.path().file_name(), path.file_name(), "no name is used twice");
}

#[test]
fn a_rename_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path()).unwrap();
    let file = opened.journal.stage("old", Base::New).unwrap();
    file.write(0, b"bytes").unwrap();
    file.rename("new").unwrap();
    drop((opened, file));
    let opened = open(directory.path()).unwrap();
    assert_eq!(opened.staged[0].with_state(|state| state.key().to_owned()), "new");
    assert_eq!(contents(&opened.staged[0], &[]), b"bytes");
}
