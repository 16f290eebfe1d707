//! Assumptions of programs about a file system.
//!
//! A read continues to the end of the file, and a removed object answers as long as it is held.
//! These tests need root and /dev/fuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Place, assert_code, eventually, ogive, stdout};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn unmount(place: &Place) -> Output {
    ogive(["unmount", place.mount_point().to_str().unwrap()])
}

#[test]
fn a_file_is_read_to_its_end_whatever_its_size_says() {
    let Some(place) = Place::mountable() else { return };
    for options in [&[][..], &["--direct-io"]] {
        let mount_point = place.mount_point();
        let mut line = vec!["mount", "/proc"];
        line.extend(options);
        line.push(mount_point.to_str().unwrap());
        assert_code(&ogive(line), 0);
        for name in ["sys/kernel/pid_max", "sys/kernel/version", "version", "filesystems"] {
            let (real, shown) = (Path::new("/proc").join(name), mount_point.join(name));
            let text = fs::read(real).unwrap();
            assert!(!text.is_empty() && fs::metadata(&shown).unwrap().len() == 0, "{name}");
            assert_eq!(fs::read(&shown).unwrap(), text, "{name} {options:?}");
        }
        // The size at the read counts, not the size at the open.
        let mut file = fs::File::open(mount_point.join("uptime")).unwrap();
        let mut read = || {
            let mut text = String::new();
            file.seek(SeekFrom::Start(0)).unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        };
        let before = read();
        eventually("time goes on", || read() != before);
        drop(file);
        assert_code(&unmount(&place), 0);
    }
}

#[test]
fn a_removed_file_answers_as_long_as_a_program_holds_it() {
    let Some(place) = Place::mountable() else { return };
    let root = place.mount_point();
    place.mount(&[]);
    let held = |name: &str| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        rustix::fs::open(root.join(name), flags, Mode::empty()).unwrap()
    };
    fs::create_dir_all(root.join("directory/inner")).unwrap();
    for name in ["file", "replaced", "new", "twice"] {
        fs::write(root.join(name), name).unwrap();
    }
    fs::hard_link(root.join("twice"), root.join("again")).unwrap();
    std::os::unix::fs::symlink("target", root.join("link")).unwrap();
    let [file, replaced, twice, link, inner] =
        ["file", "replaced", "twice", "link", "directory/inner"].map(held);
    let mut visitor = Command::new("sh");
    let visitor = visitor.current_dir(root.join("directory/inner")).stdin(Stdio::piped());
    let script = "read x; stat -c %h . && ls -a && ! test -e y && ! touch y 2>&1";
    let visitor = visitor.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    for name in ["file", "link", "twice"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    fs::rename(root.join("new"), root.join("replaced")).unwrap();
    fs::remove_dir_all(root.join("directory")).unwrap();
    // Longer than the cache of descriptors keeps those of lookups.
    std::thread::sleep(Duration::from_millis(2500));
    let links = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_nlink;
    assert_eq!([&file, &replaced, &link, &inner].map(links), [0; 4]);
    assert_eq!(links(&twice), 1);
    let reopened = |fd: &OwnedFd| fs::read_to_string(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    assert_eq!(reopened(&file).unwrap(), "file");
    assert_eq!(reopened(&replaced).unwrap(), "replaced");
    assert_eq!(rustix::fs::readlinkat(&link, c"", Vec::new()).unwrap().as_c_str(), c"target");
    let output = visitor.wait_with_output().unwrap();
    assert_code(&output, 0);
    assert!(stdout(&output).starts_with("0\n"), "{}", stdout(&output));
    // Then the object is gone.
    let kept = || {
        let fds = fs::read_dir(format!("/proc/{}/fd", place.pid())).unwrap().flatten();
        fds.filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|path| path.to_string_lossy().ends_with("(deleted)"))
            .count()
    };
    assert!(kept() > 0);
    drop((file, replaced, twice, link, inner));
    eventually("nothing is kept of what was removed", || kept() == 0);
}
