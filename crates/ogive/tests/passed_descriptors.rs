//! Descriptors that are passed to another user, as `sudo head x > file` does.
//!
//! That user may do with the file what a file system allows. Attributes, a new size and copies in
//! the kernel are different: the kernel itself refuses them before it asks the mount.
//!
//! The other user is a thread of the test, which needs root and /dev/fuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Place, assert_code};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use rustix::process::Uid;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A user other than that of the mount.
const ANOTHER: u32 = 65534;

/// Does some work as another user, on a thread that ends with it.
fn as_another<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let work = || {
            let another = Uid::from_raw(ANOTHER);
            rustix::thread::set_thread_res_uid(Some(another), Some(another), Some(another))
                .unwrap();
            work()
        };
        scope.spawn(work).join().unwrap()
    })
}

/// A mount that only root may use, with these options.
fn mounted(options: &[&str]) -> Option<Place> {
    let place = Place::mountable()?;
    place.mount(options);
    let way = place.source().parent().unwrap().to_owned();
    fs::set_permissions(way, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = as_another(|| File::open(place.mount_point().join("hello")).unwrap_err());
    assert_eq!(refused.raw_os_error(), Some(Errno::ACCESS.raw_os_error()), "by its name");
    Some(place)
}

const WAYS: [&[&str]; 3] = [&[], &["--direct-io"], &["--metadata-ttl", "0"]];

#[test]
fn a_file_opened_for_another_user_is_read_by_that_user() {
    for options in WAYS {
        let Some(place) = mounted(options) else { return };
        let mut file = File::open(place.mount_point().join("hello")).unwrap();
        let directory = File::open(place.mount_point()).unwrap();
        // The kernel's size is old.
        fs::write(place.source().join("hello"), "hello again\nand again\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        as_another(|| {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello again\nand again\n", "{options:?}");
            assert_eq!(file.seek(std::io::SeekFrom::End(0)).unwrap(), 22, "{options:?}");
            assert_eq!(rustix::fs::seek(&file, SeekFrom::Hole(0)), Ok(22), "{options:?}");
            assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(3)), Ok(3), "{options:?}");
            assert_eq!(rustix::fs::fsync(&file), Ok(()), "{options:?}");
            assert_eq!(rustix::fs::fsync(&directory), Ok(()), "{options:?}");
            let names = rustix::fs::Dir::new(directory).unwrap();
            let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().to_owned()).collect();
            assert!(names.iter().any(|name| name.as_c_str() == c"hello"), "{options:?}");
        });
    }
}

#[test]
fn a_file_opened_for_another_user_is_written_and_closed_by_that_user() {
    for options in WAYS {
        let Some(place) = mounted(options) else { return };
        let open = |name: &str| {
            let path = place.mount_point().join(name);
            File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap()
        };
        let mut file = open("new");
        as_another(|| {
            file.write_all(b"written").unwrap();
            let allocated = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 8192);
            assert_eq!(allocated, Ok(()), "{options:?}");
            assert_eq!(rustix::fs::fdatasync(&file), Ok(()), "{options:?}");
        });
        // It also reports a failure of close(2).
        let mut head = Command::new("head");
        let head = head.arg(place.source().join("hello")).uid(ANOTHER).stdout(open("by head"));
        assert_code(&head.output().unwrap(), 0);
        assert_eq!(fs::read(place.source().join("by head")).unwrap(), b"hello world\n");
        let written = fs::read(place.source().join("new")).unwrap();
        assert_eq!((&written[..8], written.len()), (&b"written\0"[..], 8192), "{options:?}");
    }
}
