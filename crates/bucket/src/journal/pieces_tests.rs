//! The pieces of all files are bounded, and a program that writes line by line does not reach the
//! bound.

use super::staged_log::{BESIDE_MAX, EXTENT_BYTES_MAX, PIECES_MAX};
use super::{Base, Journal, JournalError, OpenOptions, Opened, StagedLog};
use ogive_l2::MasterKey;

fn open(path: &std::path::Path) -> Opened {
    let master = MasterKey::from_material(&[7; 32]).unwrap();
    Journal::open(path, "source", &master, OpenOptions::default()).unwrap()
}

fn contents(file: &StagedLog) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize];
    let base = &mut |_, _: &mut [u8]| Ok::<_, JournalError>(());
    assert_eq!(file.view().read(0, &mut bytes, base).unwrap(), bytes.len());
    bytes
}

#[test]
fn pieces_of_all_files_are_bounded_and_released() {
    let directory = tempfile::tempdir().unwrap();
    let Opened { journal, .. } = open(directory.path());
    let [one, other] = ["one", "other"].map(|key| journal.stage(key, Base::New).unwrap());
    let mut count = 0;
    let refused = loop {
        let file = if count % 2 == 0 { &one } else { &other };
        match file.write(count * EXTENT_BYTES_MAX as u64, b"x") {
            Ok(()) => count += 1,
            Err((written, error)) => break (written, error.errno()),
        }
        assert_eq!(journal.pieces(), count);
    };
    assert_eq!((refused, count), ((0, rustix::io::Errno::NOSPC), PIECES_MAX));
    assert!(one.append(b"x").is_err() && other.write(0, b"x").is_err());
    one.resize(1).unwrap();
    // The size counts as a piece.
    assert_eq!(journal.pieces(), PIECES_MAX / 2 + 2);
    assert!(other.write(0, b"x").is_ok());
    drop(other);
    assert_eq!(journal.pieces(), 2);
    drop(one);
    assert_eq!(journal.pieces(), 0);
}

#[test]
fn lines_written_one_by_one_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path());
    let file = opened.journal.stage("k", Base::New).unwrap();
    let mut expected = Vec::new();
    for number in 0..2 * EXTENT_BYTES_MAX / 100 {
        let line = format!("{number:099}\n");
        file.append(line.as_bytes()).unwrap();
        expected.extend_from_slice(line.as_bytes());
        assert!(opened.journal.pieces() <= 2 * 2 * BESIDE_MAX as u64);
    }
    assert!(contents(&file) == expected);
    // A file with a hole, and truncated bytes before it.
    file.write(200, b"!").unwrap();
    file.resize(1000).unwrap();
    file.write(5000, b"end").unwrap();
    for offset in (2000..3000).chain(2500..2600) {
        file.write(offset, b"?").unwrap();
    }
    expected[200] = b'!';
    expected.resize(5003, 0);
    expected[1000..].fill(0);
    expected[2000..3000].fill(b'?');
    expected[5000..5003].copy_from_slice(b"end");
    assert!(contents(&file) == expected);
    let pieces = opened.journal.pieces();
    assert!(pieces <= 2 * BESIDE_MAX as u64, "{pieces} pieces");
    drop((file, opened));
    let opened = open(directory.path());
    assert!(contents(&opened.staged[0]) == expected, "a replay restores the same bytes");
    assert_eq!(opened.journal.pieces(), pieces);
}

/// Small adjacent writes, truncations, and uploads of earlier snapshots.
#[test]
fn files_of_small_pieces_read_as_written_whatever_was_uploaded() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path());
    let file = opened.journal.stage("k", Base::New).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut now, mut base) = (Vec::<u8>::new(), Vec::<u8>::new());
    let mut taken: Option<(u64, Vec<u8>)> = None;
    for step in 0..20_000_u32 {
        match random.u32(0..200) {
            0 => {
                let size = random.usize(0..2000);
                file.resize(size as u64).unwrap();
                now.resize(size, 0);
            }
            1 => taken = Some((file.snapshot().unwrap().id().through, now.clone())),
            2 => {
                let Some((through, bytes)) = taken.take() else { continue };
                let object = Base::Object { etag: format!("\"{step}\""), size: bytes.len() as u64 };
                file.uploaded(through, object).unwrap();
                base = bytes;
            }
            _ => {
                let (at, bytes) = (random.usize(0..2000), [step as u8; 3]);
                file.write(at as u64, &bytes).unwrap();
                now.resize(now.len().max(at + 3), 0);
                now[at..at + 3].copy_from_slice(&bytes);
            }
        }
        if step % 64 == 0 {
            let mut bytes = vec![0; now.len()];
            let read = &mut |at: u64, part: &mut [u8]| {
                let at = at as usize;
                part.copy_from_slice(&base[at..at + part.len()]);
                Ok::<_, JournalError>(())
            };
            assert_eq!(file.view().read(0, &mut bytes, read).unwrap(), now.len());
            assert!(bytes == now, "step {step}");
        }
    }
}
