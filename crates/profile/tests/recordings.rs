//! Small recordings by perf itself (`tests/data`): a file, a stream from a pipe and a compressed
//! file of `sha256sum` at 2,000 Hz. Any damage to them must be survived.

#![allow(clippy::unwrap_used, reason = "the recordings are part of the tree")]

#[path = "../../../tests/seed.rs"]
mod seed;

use ogive_profile::read::{self, Options};
use ogive_profile::{Format, Profile, Rate, WeightUnit};
use proptest::prelude::*;
use seed::seeded;

const FILE: &[u8] = include_bytes!("data/file.perf.data");
const PIPE: &[u8] = include_bytes!("data/pipe.perf.data");
const COMPRESSED: &[u8] = include_bytes!("data/zstd.perf.data");

fn read(bytes: &[u8]) -> Profile {
    read::bytes("recording", bytes, &Options::default()).unwrap()
}

#[test]
fn a_file_is_read_as_perf_reads_it() {
    let profile = read(FILE);
    // Counted with perf script -F comm,period.
    assert_eq!((profile.view().count(), profile.view().weight()), (66, 33_000_000));
    let meta = &profile.meta;
    assert_eq!((meta.format, meta.unit), (Format::PerfData, WeightUnit::Nanoseconds));
    assert_eq!(meta.rate, Rate::Hertz(2000.0));
    assert_eq!(meta.event.split(':').next(), Some("cpu-clock"));
    assert_eq!(meta.host.as_deref(), Some("sample"));
    assert!(meta.command.as_deref().unwrap().contains("sha256sum"));
    let threads = profile.view().by_thread_name();
    assert!(threads.iter().any(|share| share.name == "sha256sum" && share.share > 0.9));
    let modules = profile.view().by_module();
    assert!(modules.iter().any(|share| share.name == "sha256sum" && share.share > 0.5));
    assert!(profile.view().cpu_seconds().is_some_and(|seconds| (seconds - 0.033).abs() < 1e-9));
    assert!(meta.notes.is_empty(), "{:?}", meta.notes);
}

#[test]
fn streams_and_compressed_files_are_read() {
    for (bytes, format) in [(PIPE, Format::PerfPipe), (COMPRESSED, Format::PerfData)] {
        let profile = read(bytes);
        assert_eq!(profile.meta.format, format);
        assert!(profile.view().count() > 30, "{format:?}");
        assert_eq!(profile.view().weight(), profile.view().count() * 500_000);
        assert_eq!(profile.meta.event.split(':').next(), Some("cpu-clock"));
        assert!(profile.view().by_thread_name().iter().any(|share| share.name == "sha256sum"));
        assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
    }
}

#[test]
fn a_stream_of_a_file_is_read_too() {
    let packed = zstd::encode_all(FILE, 1).unwrap();
    let profile = read::stream("packed", &packed[..], &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(profile.view().weight(), 33_000_000);
}

/// The file with the program's mapping as `perf record --buildid-mmap` writes it: with a build-id
/// of this length instead of device and inode.
fn with_build_id(len: u8) -> Vec<u8> {
    const MMAP2: [u8; 6] = [10, 0, 0, 0, 2, 0];
    let path = FILE.windows(18).position(|at| at == b"/usr/bin/sha256sum").unwrap();
    let record = FILE[..path].windows(6).rposition(|at| at == MMAP2).unwrap();
    let mut bytes = FILE.to_vec();
    bytes[record + 5] |= 0x40;
    let id = record + 8 + 32;
    bytes[id..id + 4].copy_from_slice(&[len, 0, 0, 0]);
    bytes[id + 4..id + 24].fill(0xAB);
    bytes
}

#[test]
fn mappings_with_build_ids_are_read_and_too_long_ones_counted_as_damage() {
    let in_program = |profile: &Profile| {
        let modules = profile.view().by_module();
        modules.iter().find(|share| share.name == "sha256sum").map_or(0.0, |share| share.share)
    };
    for len in [0, 8, 20] {
        let profile = read(&with_build_id(len));
        assert!(in_program(&profile) > 0.5 && profile.meta.notes.is_empty(), "{len}");
    }
    for len in [21, 255] {
        let profile = read(&with_build_id(len));
        assert_eq!(profile.view().count(), 66);
        assert!(in_program(&profile) < 0.1, "the mapped file is unknown");
        let damaged = |note: &String| note.contains("1 record was damaged");
        assert!(profile.meta.notes.iter().any(damaged), "{:?}", profile.meta.notes);
    }
}

#[test]
fn empty_and_unknown_input_is_refused_with_a_reason() {
    for (bytes, word) in [
        (&b""[..], "empty"),
        (b"PERFILE2", "no samples"),
        (b"\0\0\0\0", "not recognised"),
        (b"the quick brown fox\n", "not recognised"),
        (&FILE[..200], "no samples"),
    ] {
        let error = read::bytes("it", bytes, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(word) && error.starts_with("it "), "{error}");
    }
    let missing = std::path::Path::new("/nonexistent/perf.data");
    let error = read::open(missing, &Options::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/perf.data"), "{error}");
}

/// Checks that sums hold and that every number refers to something.
fn check(profile: &Profile) {
    let mut weight = 0u64;
    for sample in profile.samples() {
        weight = weight.saturating_add(sample.weight);
        let _ = profile.thread(sample.thread).name.len();
        for frame in profile.stack(sample.stack) {
            let _ = profile.frame(frame).name().len();
        }
    }
    assert_eq!(weight, profile.view().weight());
}

/// Changes bytes at some places and truncates.
fn damaged(whole: &[u8], changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for (at, byte) in changes {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    bytes.truncate(bytes.len() - cut % bytes.len());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..seeded() })]

    #[test]
    fn damaged_recordings_are_survived(
        which in 0..3usize,
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..24),
        cut in prop_oneof![Just(0usize), any::<usize>()],
    ) {
        let whole = [FILE, PIPE, COMPRESSED][which];
        if let Ok(profile) = read::bytes("x", &damaged(whole, &changes, cut), &Options::default()) {
            check(&profile);
        }
    }

    #[test]
    fn damaged_heads_are_survived(
        changes in prop::collection::vec((0..400usize, any::<u8>()), 1..16),
    ) {
        if let Ok(profile) = read::bytes("x", &damaged(FILE, &changes, 0), &Options::default()) {
            check(&profile);
        }
    }

    #[test]
    fn any_bytes_are_survived(
        magic in prop_oneof![
            Just(&b""[..]), Just(&b"PERFILE2"[..]), Just(&b"2ELIFREP"[..]),
            Just(&b"PERFILE2\x10\0\0\0\0\0\0\0"[..]), Just(&b"\x0a\x04\x08\x01\x10\x02"[..]),
            Just(&b"\x1f\x8b\x08\0"[..]), Just(&b"\x28\xb5\x2f\xfd"[..]),
        ],
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let bytes = [magic, &bytes].concat();
        if let Ok(profile) = read::bytes("x", &bytes, &Options::default()) {
            check(&profile);
        }
    }

    #[test]
    fn any_text_is_survived(
        lines in prop::collection::vec(
            prop_oneof![
                "[a-z;]{1,20} [0-9]{1,22}(\\.[0-9])?",
                "[a-z ]{1,9} +-?[0-9]{1,11}(/[0-9]+)? \\[[0-9]{1,4}\\] [0-9]{1,20}\\.[0-9]{1,9}: +[0-9]{0,20} ?[a-z:-]{1,9}: ",
                "\t +[0-9a-f]{1,17} [a-z_+(\\[\\])0-9]{0,30}( \\(.{0,12}\\))?",
                ".{0,40}",
                "",
            ],
            0..60,
        ),
    ) {
        if let Ok(profile) = read::bytes("x", lines.join("\n").as_bytes(), &Options::default()) {
            check(&profile);
        }
    }

    #[test]
    fn folded_weights_are_kept(weights in prop::collection::vec(0..1u64 << 40, 1..50)) {
        let text: String = weights.iter().enumerate().map(|(n, w)| format!("t{};a;b{n} {w}\n", n % 5)).collect();
        let profile = read::bytes("x", text.as_bytes(), &Options::default()).unwrap();
        prop_assert_eq!(profile.view().weight(), weights.iter().sum::<u64>());
        let again: u64 = profile.view().by_stack().iter().map(|(_, weight)| weight).sum();
        prop_assert_eq!(again, weights.iter().sum::<u64>());
    }
}
