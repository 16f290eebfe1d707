//! Objects that are found by place, under all changes of their names.

use super::file_systems::{EXFAT, EXT, FAT, FUSE, Kind, NFS, SMB};
use super::node::Nodes;
use super::*;
use crate::{Attributes, Caller, FileKind, Found, Make, Origin, RenameFlags};
use std::ffi::OsStr;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

const NOBODY_MASKS: Caller = Caller { user: 0, group: 0, umask: 0 };

/// A directory whose objects are not opened by handle, and of which few are open at a time.
fn origin(path: &Path) -> DirectoryOrigin {
    let root = Root::open(path, false).unwrap();
    let nodes = Nodes::by_place(16);
    DirectoryOrigin { root, nodes, access_control_lists: false, spares_times: (false, false) }
}

fn node(origin: &DirectoryOrigin, path: &str) -> Node {
    let mut node = origin.root().unwrap().node;
    for name in path.split('/') {
        node = origin.lookup(&node, OsStr::new(name)).unwrap().node;
    }
    node
}

/// Closes all kept descriptors.
fn close_all(origin: &DirectoryOrigin) {
    let no_room = || Err::<(), _>(Errno::MFILE);
    assert_eq!(origin.nodes.with_room(no_room), Err(Errno::MFILE));
}

fn attributes(origin: &DirectoryOrigin, node: &Node) -> Result<Attributes> {
    close_all(origin);
    origin.attributes(node, None)
}

#[test]
fn an_object_is_found_at_its_place_and_after_a_rename_in_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::write(at("a/b/c/file"), "1234").unwrap();
    let origin = origin(directory.path());
    let file = node(&origin, "a/b/c/file");
    assert_eq!(attributes(&origin, &file).unwrap().size_bytes, 4);
    fs::rename(at("a/b"), at("a/other")).unwrap();
    fs::rename(at("a/other/c/file"), at("a/other/c/elsewhere")).unwrap();
    fs::write(at("a/other/c/file"), "another").unwrap();
    assert_eq!(attributes(&origin, &file).unwrap().size_bytes, 4, "renamed behind us");
    fs::remove_file(at("a/other/c/elsewhere")).unwrap();
    assert_eq!(attributes(&origin, &file), Err(Errno::STALE), "another object has its name");
}

#[test]
fn an_object_that_was_moved_to_another_directory_behind_us_is_found_again_after_a_lookup() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::create_dir_all(at("z")).unwrap();
    fs::write(at("a/b/file"), "1234").unwrap();
    let origin = origin(directory.path());
    let moved = node(&origin, "a/b");
    let file = origin.lookup(&moved, OsStr::new("file")).unwrap().node;
    fs::rename(at("a/b"), at("z/b")).unwrap();
    assert_eq!(attributes(&origin, &file), Err(Errno::STALE));
    let again = node(&origin, "z/b");
    assert!(again == moved);
    origin.met_again(&moved, &again);
    assert_eq!(attributes(&origin, &file).unwrap().size_bytes, 4);
}

#[test]
fn a_file_with_several_names_is_found_by_those_that_are_left() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir(at("a")).unwrap();
    fs::create_dir(at("b")).unwrap();
    fs::write(at("a/file"), "1234").unwrap();
    let origin = origin(directory.path());
    let file = node(&origin, "a/file");
    let b = node(&origin, "b");
    let linked = origin.link(&file, None, &b, OsStr::new("link")).unwrap().node;
    assert!(linked == file);
    origin.met_again(&file, &linked);
    fs::remove_dir_all(at("b")).unwrap();
    assert_eq!(attributes(&origin, &file).unwrap().links, 1);
    fs::hard_link(at("a/file"), at("left")).unwrap();
    origin.met_again(&file, &node(&origin, "left"));
    fs::remove_dir_all(at("a")).unwrap();
    assert_eq!(attributes(&origin, &file).unwrap().links, 1);
}

#[test]
fn a_file_that_is_open_is_reached_without_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let origin = origin(directory.path());
    let root = origin.root().unwrap().node;
    let name = OsStr::new("file");
    let (Found { node, .. }, file) =
        origin.create(&root, name, OFlags::RDWR, 0o600, NOBODY_MASKS).unwrap();
    origin.write_at(&file, 0, b"12345").unwrap();
    origin.unlink(&root, name).unwrap();
    fs::write(directory.path().join("file"), "another").unwrap();
    let known = attributes(&origin, &node).unwrap();
    assert_eq!((known.links, known.size_bytes), (0, 5));
    drop(file);
    assert_eq!(attributes(&origin, &node).unwrap().links, 0, "a program may hold it");
    origin.forgotten(&node);
    assert_eq!(attributes(&origin, &node), Err(Errno::STALE), "no program holds it any more");
}

/// The lookups of a walk are more than may be open, and each object gets a request later.
#[test]
fn more_objects_are_known_than_may_be_open() {
    let directory = tempfile::tempdir().unwrap();
    let origin = origin(directory.path());
    let mut known = Vec::new();
    for d in 0..10 {
        let path = directory.path().join(d.to_string());
        fs::create_dir(&path).unwrap();
        for f in 0..30 {
            fs::write(path.join(f.to_string()), vec![0; d * 30 + f]).unwrap();
        }
        let parent = node(&origin, &d.to_string());
        let open = origin.open_directory(&parent).unwrap();
        for f in 0..30 {
            let (name, size) = (f.to_string(), (d * 30 + f) as u64);
            let by_listing = origin.lookup_in(&open, OsStr::new(&name)).unwrap();
            let by_name = origin.lookup(&parent, OsStr::new(&name)).unwrap();
            assert!(by_listing.node == by_name.node);
            known.push((if f % 2 == 0 { by_listing.node } else { by_name.node }, size));
        }
    }
    for (node, size_bytes) in known.iter().rev() {
        assert_eq!(origin.attributes(node, None).unwrap().size_bytes, *size_bytes);
        let file = origin.open(node, OFlags::RDONLY).unwrap();
        assert_eq!(origin.attributes(node, Some(&file)).unwrap().size_bytes, *size_bytes);
    }
}

/// A request for an object succeeds while its directories are renamed through the mount.
#[test]
fn renames_through_the_mount_hide_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("a/moving/deep")).unwrap();
    fs::create_dir_all(at("b")).unwrap();
    fs::write(at("a/moving/deep/file"), "1234").unwrap();
    let origin = origin(directory.path());
    let (a, b) = (node(&origin, "a"), node(&origin, "b"));
    let moving = origin.lookup(&a, OsStr::new("moving")).unwrap().node;
    let deep = origin.lookup(&moving, OsStr::new("deep")).unwrap().node;
    let file = origin.lookup(&deep, OsStr::new("file")).unwrap().node;
    let done = AtomicBool::new(false);
    let renames = |node: &Node, one: (&Node, &str), other: (&Node, &str)| {
        let (mut from, mut to) = ((one.0, OsStr::new(one.1)), (other.0, OsStr::new(other.1)));
        for _ in 0..2000 {
            origin.expect_at(node, to);
            origin.rename(from, to, RenameFlags::empty()).unwrap();
            origin.has_moved(node, from, to);
            std::mem::swap(&mut from, &mut to);
        }
    };
    std::thread::scope(|scope| {
        let asks = || {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(attributes(&origin, &file).unwrap().size_bytes, 4);
            }
        };
        let asking = [scope.spawn(asks), scope.spawn(asks)];
        let renaming = [
            scope.spawn(|| renames(&moving, (&a, "moving"), (&b, "moved"))),
            scope.spawn(|| renames(&file, (&deep, "file"), (&moving, "other"))),
        ];
        let renamed = renaming.map(|thread| thread.join());
        done.store(true, Ordering::Relaxed);
        asking.into_iter().for_each(|thread| thread.join().unwrap());
        renamed.into_iter().for_each(|renamed| renamed.unwrap());
    });
}

#[test]
fn a_root_that_has_gone_is_closed_with_everything_below() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "1234").unwrap();
    let origin = origin(directory.path());
    let file = node(&origin, "file");
    let below = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(directory.path()))
    };
    let held = || fs::read_dir("/proc/self/fd").unwrap().flatten().filter(below).count();
    assert_eq!(held(), 3, "the root, the top's copy and the file");
    origin.nodes.root_replaced(None);
    assert_eq!(held(), 1);
    assert_eq!(origin.attributes(&file, None), Err(Errno::IO));
    let again = fs::File::open(directory.path()).unwrap();
    origin.nodes.root_replaced(Some(again.as_fd()));
    assert_eq!(origin.attributes(&file, None).unwrap().size_bytes, 4);
}

#[test]
fn the_last_bytes_that_a_file_can_have_are_read_and_its_end_follows() {
    let directory = tempfile::tempdir().unwrap();
    let origin = origin(directory.path());
    let last = i64::MAX as u64;
    let fd = rustix::fs::memfd_create("long", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&fd, last).unwrap();
    let node = origin.root().unwrap().node;
    let file = OpenFile::new(&node, fd.try_clone().unwrap(), OFlags::RDWR);
    assert_eq!(origin.write_at(&file, last - 3, b"end").unwrap(), 3);
    for (record_bytes, room) in [(4096, 0), (131_072, 1), (131_072, 131_072), (1 << 20, 2 << 20)] {
        let start = last / record_bytes * record_bytes;
        let mut bytes = Vec::with_capacity(room);
        origin.read_at(&file, start, record_bytes as usize, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, record_bytes - 1, "all but the byte that no file has");
        assert!(bytes.ends_with(b"\0end"));
        for beyond in [last, last + 1, u64::MAX - 1] {
            bytes.clear();
            origin.read_at(&file, beyond, record_bytes as usize, &mut bytes).unwrap();
            assert!(bytes.is_empty(), "{beyond}");
        }
    }
    rustix::fs::ftruncate(&fd, 10).unwrap();
    let mut bytes = Vec::with_capacity(131_072);
    origin.read_at(&file, last - 1, 1, &mut bytes).unwrap();
    assert!(bytes.is_empty(), "the file ends long before");
}

#[test]
fn a_directory_that_was_removed_is_stale_though_it_is_open_and_one_that_was_renamed_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir(at("a")).unwrap();
    fs::create_dir(at("b")).unwrap();
    let origin = DirectoryOrigin::open(directory.path()).unwrap();
    let origin = origin.keeping_lookups(Duration::from_secs(3600));
    if !origin.keeps_handles() {
        crate::skipped::skipped("objects here cannot be opened by handle");
        return;
    }
    let (a, b) = (node(&origin, "a"), node(&origin, "b"));
    let name = OsStr::new("file");
    let lookup = |at: &Node| origin.lookup(at, name).map(|found| found.attributes.size_bytes);
    for _ in 0..2 {
        assert_eq!((lookup(&a), lookup(&b)), (Err(Errno::NOENT), Err(Errno::NOENT)));
    }
    // A new file behind the mount is found at once, wherever the directory is by now.
    fs::rename(at("a"), at("c")).unwrap();
    fs::write(at("c/file"), "1234").unwrap();
    assert_eq!(lookup(&a), Ok(4));
    let file = origin.lookup(&a, name).unwrap().node;
    assert_eq!(origin.leads_to(&a, name, &file), Ok(true));
    // The kernel has to learn that the directory is another one, not that it lacks the name.
    fs::remove_dir(at("b")).unwrap();
    fs::create_dir(at("b")).unwrap();
    fs::write(at("b/file"), "12").unwrap();
    let stale = Err(Errno::STALE);
    assert_eq!(lookup(&b), stale);
    assert_eq!(origin.leads_to(&b, name, &file), Err(Errno::STALE));
    let what = Make::Directory { mode: 0o755 };
    let made = origin.make(&b, OsStr::new("made"), what, NOBODY_MASKS);
    assert_eq!(made.map(|_| ()), Err(Errno::STALE));
    let flags = OFlags::RDWR | OFlags::CREATE;
    let created = origin.create(&b, OsStr::new("new"), flags, 0o644, NOBODY_MASKS);
    assert_eq!(created.map(|_| ()), Err(Errno::STALE));
    assert_eq!(origin.unlink(&b, name), Err(Errno::STALE));
    for (from, to) in [(&a, &b), (&b, &a)] {
        let renamed = origin.rename((from, name), (to, name), RenameFlags::empty());
        assert_eq!(renamed, Err(Errno::STALE));
    }
    assert_eq!(lookup(&node(&origin, "b")), Ok(2));
}

/// A file system that has dropped an object from memory gives it another number next time, like
/// another object with the same name.
#[test]
fn an_object_is_found_at_its_place_where_its_number_was_invented() {
    for (kind, is_told) in [(EXFAT, false), (FAT, true), (EXT, true)] {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        let origin = origin(directory.path());
        origin.root().unwrap();
        origin.nodes.inspector.pretend(Kind::of(kind), false);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "1234").unwrap();
        let (b, file) = (node(&origin, "a/b"), node(&origin, "a/b/file"));
        close_all(&origin);
        // The old ones keep their numbers, outside of the origin.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::rename(at("a"), elsewhere.path().join("a")).unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "another").unwrap();
        let found = attributes(&origin, &b);
        match is_told {
            false => {
                assert_eq!(found.unwrap().kind, FileKind::Directory, "nothing distinguishes them")
            }
            true => assert_eq!(found, Err(Errno::STALE), "its birth or its number differs"),
        }
        assert_eq!(attributes(&origin, &file), Err(Errno::STALE), "it was born later");
    }
}

/// A FUSE file system may forget a directory with the kernel, and then identify it by its path
/// again. A directory that is a working directory must still be found.
#[test]
fn a_directory_known_only_by_its_path_is_the_one_at_its_place() {
    for is_fuse in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "1234").unwrap();
        let origin = origin(directory.path());
        node(&origin, "a");
        if is_fuse {
            origin.nodes.inspector.pretend(Kind::of(FUSE), false);
        }
        let (b, file) = (node(&origin, "a/b"), node(&origin, "a/b/file"));
        // Forgotten objects get other numbers.
        fs::rename(at("a"), at("old")).unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "another").unwrap();
        fs::rename(at("old"), directory.path().join("a/old")).unwrap();
        let found = attributes(&origin, &b).map(|found| found.kind);
        assert_eq!(found, if is_fuse { Ok(FileKind::Directory) } else { Err(Errno::STALE) });
        assert_eq!(attributes(&origin, &file), Err(Errno::STALE), "a file is opened by its name");
    }
}

#[test]
fn objects_are_not_found_by_handles_that_are_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    let origin = DirectoryOrigin::open(directory.path()).unwrap();
    if !origin.keeps_handles() {
        return crate::skipped::skipped("objects cannot be opened by handle here");
    }
    node(&origin, "d");
    assert!(!origin.keeps_places());
    origin.nodes.inspector.pretend(Kind::of(FUSE), true);
    let (one, again) = (node(&origin, "d"), node(&origin, "d"));
    assert!(origin.keeps_places() && one == again);
    fs::remove_dir(directory.path().join("d")).unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    assert!(origin.attributes(&one, None).is_ok_and(|found| found.links == 0), "it is kept open");
    close_all(&origin);
    assert!(origin.attributes(&one, None).is_ok(), "the directory at its place is accepted");
    assert!(one != node(&origin, "d"), "and its handle is another");
}

#[test]
fn a_rename_in_a_directory_is_no_birth_of_it_on_exfat() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    let origin = origin(directory.path());
    let root = origin.root().unwrap().node;
    let generation = || origin.lookup(&root, OsStr::new("d")).unwrap().generation;
    origin.nodes.inspector.pretend(Kind::of(EXT), false);
    assert_ne!(generation(), 0, "the file system of these tests has births");
    origin.nodes.inspector.pretend(Kind::of(EXFAT), false);
    assert_eq!(generation(), 0);
}

/// A descriptor of a file's name makes an NFS client keep the removed file in its directory. Then
/// the directory cannot be removed.
#[test]
fn no_file_is_kept_open_where_it_would_stay_in_its_directory() {
    for (kind, is_kept) in [(EXT, true), (FUSE, true), (NFS, false), (SMB[1], false)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        fs::create_dir(path.join("d")).unwrap();
        fs::write(path.join("d/file"), "1234").unwrap();
        let by_place = origin(&path);
        let by_handle = DirectoryOrigin::open(&path).unwrap();
        for origin in [&by_place, &by_handle] {
            node(origin, "d");
            origin.nodes.inspector.pretend(Kind::of(kind), origin.nodes.by_handle());
            let known = node(origin, "d/file");
            origin.attributes(&known, None).unwrap();
            let open = descriptors_below(&path);
            assert_eq!(open.contains(&path.join("d/file")), is_kept, "{open:?}");
            assert!(open.contains(&path.join("d")), "directories do no harm");
            close_all(origin);
        }
    }
}

/// The files open below a directory in this process.
fn descriptors_below(directory: &Path) -> Vec<PathBuf> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    paths.filter(|path| path.starts_with(directory)).collect()
}

#[test]
fn a_directory_of_only_hidden_files_is_recognized() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    for name in ["hidden", "other", "empty"] {
        fs::create_dir(at(name)).unwrap();
    }
    let names = ["hidden/.nfs0001", "hidden/.fuse_hidden0001", "other/.nfs0001", "other/name"];
    for name in names {
        fs::write(at(name), "").unwrap();
    }
    for origin in [origin(directory.path()), DirectoryOrigin::open(directory.path()).unwrap()] {
        let root = origin.root().unwrap().node;
        let is_so = |name: &str| origin.has_only_hidden_files(&root, OsStr::new(name));
        assert!(!is_so("hidden"), "on this file system they are ordinary files");
        for kind in [NFS, FUSE] {
            origin.nodes.inspector.pretend(Kind::of(kind), origin.nodes.by_handle());
            assert!(is_so("hidden") && is_so("empty"), "hidden files may have gone");
            assert!(!is_so("other") && !is_so("missing"));
        }
    }
}
