//! Files that commands create contain data of users, so no other user may read them, with any umask.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ogive_demo_store::DemoStore;

use common::{OGIVE, Place, assert_code, ogive};

/// Runs a command with a umask of 0, which permits everything to all users.
#[track_caller]
fn openly(directory: &Path, arguments: &[&str]) {
    openly_with(directory, arguments, &[]);
}

/// The same with these variables.
#[track_caller]
fn openly_with(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) {
    let output = Command::new("sh")
        .args(["-c", "umask 0; exec \"$0\" \"$@\"", OGIVE])
        .args(arguments)
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("state"))
        .env("STATE_DIRECTORY", directory.join("state"))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    // The doctor's exit code is its finding.
    let code = output.status.code().unwrap();
    assert!(code == 0 || code >= 7, "{output:?}");
}

/// The files below a directory, with the permissions of other users.
fn below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let metadata = entry.path().symlink_metadata().unwrap();
        found.push((entry.path(), metadata.mode() & 0o077));
        if metadata.is_dir() {
            found.extend(below(&entry.path()));
        }
    }
    found
}

#[track_caller]
fn assert_private(directory: &Path, expected: &[&str]) {
    let found = below(directory);
    for name in expected {
        assert!(found.iter().any(|(path, _)| path.ends_with(name)), "{name} in {found:?}");
    }
    let open: Vec<_> = found.iter().filter(|(_, others)| *others != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn reports_are_for_the_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let input = tempfile::tempdir().unwrap();
    let paste = input.path().join("top.txt");
    fs::write(&paste, "%Cpu(s): 90.0 us, 5.0 sy, 0.0 ni, 5.0 id, 0.0 wa, 0.0 hi, 0.0 si\n")
        .unwrap();
    let trace = input.path().join("trace.txt");
    fs::write(&trace, "1\n2\n1\n3\n").unwrap();
    let kstat = ogive_kstat::arcstats::file(1, 2_000_000_000, [("hits", 1), ("size", 2)]).unwrap();
    fs::write(input.path().join("arcstats"), kstat).unwrap();
    let (paste, trace) = (paste.to_str().unwrap(), trace.to_str().unwrap());
    openly(directory.path(), &["doctor", "--html", "one.html", paste]);
    openly(directory.path(), &["doctor", "--fleet", "--html", "many.html", paste, paste]);
    let sizes = ["--curve", "--svg", "curve.svg", "--html", "curve.html"];
    openly(directory.path(), &[&["sim"], &sizes[..], &["--size", "2", trace]].concat());
    let from = input.path().to_str().unwrap();
    openly(directory.path(), &["stat", "-o", "lines.txt", "--kstat", from]);
    openly(directory.path(), &["capture", "--for", "1s", "-o", "host.ogive"]);
    let made = ["one.html", "many.html", "curve.svg", "curve.html", "lines.txt", "host.ogive"];
    assert_private(directory.path(), &made);
}

#[test]
fn files_of_a_mount_are_for_the_user_alone() {
    let Some(place) = Place::mountable() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mount_point = place.mount_point();
    let point = mount_point.to_str().unwrap();
    let store = DemoStore::start(&directory.path().join("bucket")).unwrap();
    let kept = ["--stage", "stage", "--l2", "l2", "--l2-size", "64MiB"];
    let line = [&["mount", "--log-file", "log"], &kept[..], &["s3://demo", point]].concat();
    openly_with(directory.path(), &line, &store.variables());
    fs::write(mount_point.join("letter"), "dear").unwrap();
    openly(directory.path(), &["stat", "--objects", "-o", "objects", point, "1", "1"]);
    openly(directory.path(), &["sim", "--record", point, "-o", "trace", "--for", "1s"]);
    assert_private(directory.path(), &["log", "objects", "parts", "l2", "stage", "trace"]);
    assert_code(&ogive([std::ffi::OsStr::new("unmount"), mount_point.as_os_str()]), 0);
    assert_private(directory.path(), &["log"]);
}
