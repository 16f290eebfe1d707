//! Perf recordings of any length are read whole: the limit for one input does not cut them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ogive_doctor::bundle::Loader;

/// Bytes of one input that this test holds at most: less than any of the recordings has.
const ROOM_BYTES: u64 = 256;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/data").join(name)
}

fn samples(path: &Path) -> u64 {
    let mut loader = Loader::limited(ROOM_BYTES);
    loader.add_path(path).unwrap();
    let loaded = loader.read();
    let troubles: Vec<_> = loaded.evidence.inputs.iter().collect();
    let profile = loaded.profile.unwrap_or_else(|| panic!("not read: {troubles:?}"));
    assert!(!format!("{troubles:?}").contains("MiB were read"), "{troubles:?}");
    profile.meta.samples
}

#[test]
fn a_recording_larger_than_the_limit_is_read_whole() {
    let whole = samples(&recording("file.perf.data"));
    assert!(whole > 10, "{whole}");
    assert!(samples(&recording("pipe.perf.data")) > 10);
    assert!(samples(&recording("zstd.perf.data")) > 10);
    // In a directory, and with another layer of compression.
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(recording("file.perf.data")).unwrap();
    std::fs::write(directory.path().join("a"), &bytes).unwrap();
    assert_eq!(samples(directory.path()), whole);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&bytes).unwrap();
    let path = directory.path().join("b.gz");
    std::fs::write(&path, packed.finish().unwrap()).unwrap();
    assert_eq!(samples(&path), whole);
}

#[test]
fn other_inputs_are_cut_at_the_limit_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.txt");
    std::fs::write(&path, "It is slow.\n".repeat(1000)).unwrap();
    let mut loader = Loader::limited(ROOM_BYTES);
    loader.add_path(&path).unwrap();
    let inputs = loader.read().evidence.inputs;
    assert!(format!("{inputs:?}").contains("only its first"), "{inputs:?}");
}
