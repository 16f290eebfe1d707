//! Unusual names, and directories with many entries, through real mounts.
//!
//! These tests need root and /dev/fuse, and say so when they are skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use common::{OGIVE, Place, assert_code, can_mount, mount_ogive, ogive, stderr};
use ogive_origin::mount_table::{self, MountEntry};
use rustix::fs::{RawDir, SeekFrom};

/// Names with commas, blanks and line ends, for code that splits lines there.
const NAMES: [&[u8]; 12] = [
    b"plain",
    b"a,b",
    b"x,ro",
    b"x,noexec,",
    b"a,x-b,allow_other",
    b"ends\\",
    b"back\\,slash",
    b"line\nfeed,ro\ttab ",
    b"user_id=0,fsname=else,subtype=sshfs",
    b"no \xff text\xc3",
    b"'quotes' \"and\" $(id) #",
    b"-o",
];

/// A mount must have exactly this source, by its bytes; no part of its name may act as an option.
fn check(mount: &MountEntry, source: &Path) {
    assert_eq!(mount.source, source.as_os_str(), "its name is there to the byte");
    assert_eq!(mount.options, "rw,nosuid,nodev,relatime", "{source:?}");
    assert!(mount.is_ogive(), "{source:?}");
}

#[test]
fn with_any_name_of_the_source_a_user_gets_the_requested_mount_and_no_other() {
    if !can_mount() {
        return;
    }
    if Command::new("fusermount3").arg("-V").output().is_err() {
        common::skipped("fusermount3 is not installed");
        return;
    }
    let place = Place::new();
    fs::copy(OGIVE, place.path("ogive")).unwrap();
    let directory = fs::canonicalize(place.source().parent().unwrap()).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let script = r#"set -u
        cd "$1" && shift
        mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || exit 77
        user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
        for name; do
            mkdir -- "source/$name"
            chown -R 65534:65534 source "mount point"
            user ./ogive mount "source/$name" "mount point" || exit 1
            user sh -c 'echo x > "mount point/new"' || exit 2
            grep -a "mount.040point " /proc/self/mountinfo
            user ./ogive unmount "mount point" || exit 3
        done"#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&directory)
        .args(NAMES.map(OsStr::from_bytes))
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        common::skipped(format!("no device can be made here: {}", stderr(&output)));
        return;
    }
    assert_code(&output, 0);
    let lines: Vec<&[u8]> = output.stdout.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), NAMES.len());
    for (line, name) in lines.into_iter().zip(NAMES) {
        let source = directory.join("source").join(OsStr::from_bytes(name));
        check(&mount_table::parse(line)[0], &source);
    }
}

#[test]
fn with_any_name_of_the_source_root_finds_its_bytes_in_the_table_of_mounts() {
    let Some(place) = Place::mountable() else { return };
    let point = place.mount_point();
    let parent = fs::canonicalize(place.source()).unwrap();
    for name in NAMES {
        let source = parent.join(OsStr::from_bytes(name));
        fs::create_dir(&source).unwrap();
        assert_code(&ogive([OsStr::new("mount"), source.as_os_str(), point.as_os_str()]), 0);
        // Other tests may have mounts.
        let table = fs::read("/proc/self/mountinfo").unwrap();
        let ours = fs::canonicalize(&point).unwrap();
        let mounts = mount_table::parse(&table);
        let mount = mount_table::topmost_at(&mounts, &ours).expect("it is in the table");
        check(mount, &source);
        assert_code(&ogive([OsStr::new("unmount"), point.as_os_str()]), 0);
    }
}

#[test]
fn a_name_with_commas_between_quotes_reaches_the_table_of_mounts_by_way_of_mount_8() {
    let Some(place) = Place::mountable() else { return };
    let paths = [place.source().into_os_string(), place.mount_point().into_os_string()];
    let with = |options: &str| {
        let more = ["-o", options].map(OsString::from);
        mount_ogive(paths.iter().cloned().chain(more))
    };
    assert_code(&with("name=\"a,ro\",noexec"), 0);
    let line = place.mount_line().unwrap();
    assert!(line.contains(" rw,nosuid,nodev,noexec,") && line.contains(" a,ro "), "{line}");
    assert_code(&ogive(["unmount".into(), place.mount_point()]), 0);
    assert_code(&with("name=\"a,ro"), 1);
    assert_code(&with("name="), 1);
}

/// The names behind an offset with the offsets behind them, as many as one call gives or all.
fn entries(directory: &File, from: u64, all: bool) -> Vec<(OsString, u64)> {
    rustix::fs::seek(directory, SeekFrom::Start(from)).unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut raw = RawDir::new(directory, &mut buffer);
    let mut entries = Vec::new();
    while let Some(entry) = raw.next() {
        let entry = entry.unwrap();
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        entries.push((name, entry.next_entry_cookie()));
        if !all && raw.is_buffer_empty() {
            break;
        }
    }
    entries
}

#[test]
fn programs_of_32_bits_read_any_directory_and_offsets_keep_their_place() {
    const COUNT: usize = 40_000;
    let Some(place) = Place::mountable() else { return };
    for number in 0..COUNT {
        File::create(place.source().join(format!("n{number}"))).unwrap();
    }
    for transport in ["device", "uring"] {
        let paths = [place.source(), place.mount_point()];
        let line = ["mount", "--transport", transport].map(OsString::from);
        let output = ogive(line.into_iter().chain(paths.map(OsString::from)));
        if transport == "uring" && !output.status.success() {
            common::skipped(format!("no io_uring: {}", stderr(&output)));
            continue;
        }
        assert_code(&output, 0);
        let directory = File::open(place.mount_point()).unwrap();
        let all = entries(&directory, 0, true);
        assert!(all.iter().all(|(_, offset)| (1..1 << 31).contains(offset)), "31 bits");
        // The file that every source here has, and the two entries of a directory.
        let names: HashMap<&OsString, usize> =
            all.iter().enumerate().map(|(at, (name, _))| (name, at)).collect();
        assert_eq!((all.len(), names.len()), (COUNT + 3, COUNT + 3));
        // Names come and go, through the mount and behind it.
        let gone = format!("n{}", if transport == "device" { 11 } else { 12 });
        fs::remove_file(place.source().join(&gone)).unwrap();
        File::create(place.source().join(&gone)).unwrap();
        fs::write(place.mount_point().join(format!("new-{transport}")), "").unwrap();
        fs::remove_file(place.mount_point().join(format!("new-{transport}"))).unwrap();
        for at in (0..all.len() - 1).step_by(1999) {
            let behind = entries(&directory, all[at].1, false);
            let first = behind.iter().find(|(name, _)| names.contains_key(name)).unwrap();
            let expected = all[at + 1..].iter().find(|(name, _)| *name != *gone).unwrap();
            assert!(first.0 == expected.0 || first.0 == *gone, "{at}: {first:?}");
        }
        drop(directory);
        assert_code(&ogive(["unmount".into(), place.mount_point()]), 0);
    }
}
