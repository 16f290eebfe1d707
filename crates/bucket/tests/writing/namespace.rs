//! The namespace: creation, removal and renames, and their effect on open files.

use super::*;
use ogive_bucket::{Bucket as _, KeyRules, Promises};
use ogive_origin::{SetTime, Time};

#[test]
fn directories_are_markers_and_do_not_vanish_with_their_last_file() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("implicit/only", "x");
    let m = mount(&bucket, LONG);
    m.make_directory("d").unwrap();
    assert_eq!(stored(&bucket, "d/").unwrap(), b"");
    assert_eq!(refused(m.make_directory("d")), Errno::EXIST);
    assert_eq!(refused(m.make_directory("implicit/only")), Errno::EXIST);
    assert_eq!(refused(m.create("d", OFlags::WRONLY | OFlags::EXCL)), Errno::EXIST);
    assert_eq!(refused(m.unlink("d")), Errno::ISDIR);
    let (_, file) = m.create("d/f", OFlags::WRONLY).unwrap();
    assert_eq!(
        refused(m.remove_directory("d")),
        Errno::NOTEMPTY,
        "a file that only this mount has"
    );
    assert_eq!(refused(m.remove_directory("d/f")), Errno::NOTDIR);
    m.flush(&file).unwrap();
    drop(file);
    assert_eq!(refused(m.remove_directory("d")), Errno::NOTEMPTY);
    m.unlink("d/f").unwrap();
    m.remove_directory("d").unwrap();
    assert_eq!(refused(m.find("d")), Errno::NOENT);
    assert_eq!(refused(m.remove_directory("d")), Errno::NOENT);
    m.unlink("implicit/only").unwrap();
    assert_eq!(m.names("implicit"), Vec::<String>::new());
    assert_eq!(refused(m.unlink("implicit/only")), Errno::NOENT);
}

#[test]
fn a_renamed_file_has_only_its_new_name() {
    for ttl in [LONG, Duration::ZERO] {
        let bucket = MemoryBucket::new();
        bucket.foreign_put("d/a", pattern(3000, 1));
        bucket.foreign_put("d/b", "target");
        let m = mount(&bucket, ttl);
        let (reader, target) = (m.open("d/a", OFlags::RDONLY), m.open("d/b", OFlags::RDONLY));
        let (reader, target) = (reader.unwrap(), target.unwrap());
        let writer = m.open("d/a", OFlags::RDWR).unwrap();
        m.write_at(&writer, 0, b"AB").unwrap();
        let no_replace = RenameFlags::NOREPLACE;
        assert_eq!(refused(m.rename_with("d/a", "d/b", no_replace)), Errno::EXIST);
        assert_eq!(refused(m.rename_with("d/a", "d/b", RenameFlags::EXCHANGE)), Errno::INVAL);
        m.rename("d/a", "d/b").unwrap();
        let mut expected = pattern(3000, 1);
        expected[..2].copy_from_slice(b"AB");
        assert_eq!(stored(&bucket, "d/b").unwrap(), expected, "staged changes came along");
        assert_eq!(stored(&bucket, "d/a"), None);
        assert_eq!(m.names("d"), ["b"]);
        assert_eq!(m.read("d/b").unwrap(), expected);
        // Open handles of the renamed file continue; those of the replaced one do not.
        assert_eq!(m.read_file(&reader).unwrap(), expected);
        assert_eq!(refused(m.read_file(&target)), Errno::STALE);
        m.write_at(&writer, 2, b"CD").unwrap();
        assert_eq!(m.read("d/b").unwrap()[..4], *b"ABCD");
        m.flush(&writer).unwrap();
        assert_eq!(stored(&bucket, "d/b").unwrap()[..4], *b"ABCD");
        m.rename_with("d/b", "c", no_replace).unwrap();
        assert_eq!(m.names(""), ["c", "d"], "the directory has a marker now");
        assert_eq!(refused(m.rename("none", "x")), Errno::NOENT);
        assert_eq!(refused(m.rename("c", "d")), Errno::ISDIR);
        assert_eq!(refused(m.rename("d", "c")), Errno::NOTDIR);
        drop((reader, target, writer));
        assert_eq!(m.logs(), 0);
    }
}

#[test]
fn a_node_that_lost_its_name_never_leads_to_another_object() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("log", "old");
    let m = mount(&bucket, LONG);
    let (root, before) = (m.find("").unwrap().node, m.find("log").unwrap());
    let name = OsStr::new("log");
    assert!(m.leads_to(&root, name, &before.node).unwrap());
    m.rename("log", "log.1").unwrap();
    let (after, file) = m.create("log", OFlags::WRONLY).unwrap();
    m.write_at(&file, 0, b"new").unwrap();
    m.flush(&file).unwrap();
    // The kernel's node of the old file is stale, whatever has its name now.
    assert!(before.node != after.node && before.generation != after.generation);
    assert!(!m.leads_to(&root, name, &before.node).unwrap());
    assert_eq!(refused(Origin::open(&m.origin, &before.node, OFlags::RDONLY)), Errno::STALE);
    assert_eq!(refused(m.attributes(&before.node, None)), Errno::STALE);
    let again = m.find("log").unwrap();
    assert!(again.node == after.node && again.generation == after.generation);
    assert_eq!(m.read("log.1").unwrap(), b"old");
}

#[test]
fn directories_are_renamed_completely_or_not_at_all() {
    let bucket = MemoryBucket::new();
    for key in 0..10 {
        bucket.foreign_put(&format!("d/{key}"), pattern(key, 1));
    }
    let m = mount(&bucket, LONG);
    let below = m.find("d/3").unwrap().node;
    let open = m.open("d/4", OFlags::RDWR).unwrap();
    assert_eq!(refused(m.rename("d", "e")), Errno::BUSY, "a file in it has a writer");
    drop(open);
    assert_eq!(refused(m.rename("d", "d/x")), Errno::INVAL);
    m.rename("d", "e").unwrap();
    assert_eq!(m.names(""), ["e"]);
    assert_eq!(m.names("e").len(), 10);
    assert_eq!(m.read("e/7").unwrap(), pattern(7, 1));
    assert_eq!(refused(m.attributes(&below, None)), Errno::STALE);
    for key in 10..30 {
        bucket.foreign_put(&format!("e/{key}"), "");
    }
    assert_eq!(refused(m.rename("e", "f")), Errno::XDEV, "mv(1) copies it then");
    bucket.foreign_put("g/x", "");
    bucket.foreign_put("h/x", "");
    assert_eq!(refused(mount(&bucket, LONG).rename("g", "h")), Errno::NOTEMPTY);
}

#[test]
fn files_that_a_store_cannot_hold_are_refused_at_once() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "x");
    let m = mount(&bucket, LONG);
    let (root, found) = (m.find("").unwrap().node, m.find("f").unwrap());
    let name = OsStr::new("n");
    let symlink = Make::Symlink { target: name };
    assert_eq!(refused(m.make(&root, name, symlink, CALLER)), Errno::PERM);
    let pipe = Make::Special { mode: 0o010_644, device: 0 };
    assert_eq!(refused(m.make(&root, name, pipe, CALLER)), Errno::PERM);
    assert_eq!(refused(m.link(&found.node, None, &root, name)), Errno::PERM);
    let change = |changes: Changes| m.set_attributes(&found.node, None, &changes);
    let none = Changes::default();
    // With the file type, as the kernel sends it.
    let same = Changes { permissions: Some(0o100_640), user: Some(7), group: Some(8), ..none };
    assert_eq!(change(same).unwrap(), found.attributes);
    let now = Changes { modified: Some(SetTime::Now), ..none };
    let then = SetTime::To(Time { seconds: 1, nanoseconds: 0 });
    for changes in [
        Changes { permissions: Some(0o600), ..none },
        Changes { user: Some(0), ..none },
        Changes { group: Some(0), ..none },
        Changes { modified: Some(then), ..none },
        now,
    ] {
        assert_eq!(refused(change(changes)), Errno::PERM, "{changes:?}");
    }
    // A file that waits for its upload has the current time.
    let (created, file) = m.create("n", OFlags::WRONLY).unwrap();
    assert!(m.set_attributes(&created.node, Some(&file), &now).is_ok());
    let long = "x".repeat(256);
    assert_eq!(refused(m.create(&long, OFlags::WRONLY)), Errno::NAMETOOLONG);
    assert_eq!(refused(m.create("bad ", OFlags::WRONLY)), Errno::INVAL);
    assert_eq!(stored(&bucket, "f").unwrap(), b"x");
}

#[test]
fn a_foreign_change_is_not_removed_with_ours() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "one");
    let m = mount(&bucket, LONG);
    let file = m.open("f", OFlags::RDWR).unwrap();
    m.write_at(&file, 0, b"ONE").unwrap();
    bucket.foreign_put("f", "theirs");
    assert_eq!(refused(m.unlink("f")), Errno::STALE);
    assert_eq!(stored(&bucket, "f").unwrap(), b"theirs");
    // The same if the store ignores the condition of a deletion.
    bucket.honour(Promises { delete: false, ..Promises::ALL });
    assert_eq!(refused(m.flush(&file)), Errno::STALE);
    drop(file);
    m.unlink("f").unwrap();
    assert_eq!(stored(&bucket, "f"), None);
}

#[test]
fn an_interrupted_rename_of_a_directory_is_finished_by_the_next_mount() {
    let bucket = MemoryBucket::new();
    for key in 0..5 {
        bucket.foreign_put(&format!("d/{key}"), "x");
    }
    let m = mount(&bucket, LONG);
    // All keys are copied, and none can be deleted.
    let busy = ogive_bucket::BucketError::Busy { key: "d/0".into(), message: "no".into() };
    bucket.doom(ogive_bucket::Operation::Delete, ogive_bucket::Fault::Fails(busy));
    assert_eq!(refused(m.rename("d", "e")), Errno::IO);
    assert!(bucket.head("d/0").is_ok() && bucket.head("e/4").is_ok());
    let m = m.killed(&bucket, LONG);
    assert_eq!(m.names(""), ["e"]);
    assert_eq!(m.names("e").len(), 5);
}

#[test]
fn a_name_that_the_store_would_change_is_refused_at_its_creation() {
    let bucket = MemoryBucket::new();
    bucket.set_key_rules(&KeyRules::AZURE);
    bucket.foreign_put("tree/x", "precious");
    bucket.foreign_put("d\\e", "hidden");
    bucket.foreign_put("new\nline", "shown");
    for ttl in [LONG, Duration::ZERO] {
        let stage = tempfile::tempdir().unwrap();
        let opened = journal(stage.path());
        let options = OriginOptions { convention: Convention::S3fs, ..options(ttl) };
        let origin = BucketOrigin::open_writable(bucket.clone(), options, opened, write_options());
        let m = Mounted { origin: origin.unwrap(), directory: stage };
        m.write("f", b"bytes").unwrap();
        m.make_directory("dir").unwrap();
        let root = m.find("").unwrap().node;
        for name in ["tree\\x", "dot.", "dots..", "a\\", "tab\t", "\u{7f}", "\u{fffe}"] {
            assert_eq!(refused(m.create(name, OFlags::WRONLY)), Errno::INVAL, "{name:?}");
            assert_eq!(refused(m.make_directory(name)), Errno::INVAL, "{name:?}");
            assert_eq!(refused(m.rename("f", name)), Errno::INVAL, "{name:?}");
            assert_eq!(refused(m.rename("dir", name)), Errno::INVAL, "{name:?}");
            let link = Make::Symlink { target: OsStr::new("f") };
            let made = m.make(&root, OsStr::new(name), link, CALLER);
            assert_eq!(refused(made), Errno::INVAL, "{name:?}");
            assert_eq!(refused(m.find(name)), Errno::NOENT, "{name:?}");
            assert_eq!(refused(m.unlink(name)), Errno::NOENT, "{name:?}");
            assert_eq!(refused(m.remove_directory(name)), Errno::NOENT, "{name:?}");
        }
        // An existing key that reaches the store unchanged is shown, even if it could not be
        // created.
        assert_eq!(m.names(""), ["dir", "f", "new\nline", "tree"]);
        assert_eq!(m.read("new\nline").unwrap(), b"shown");
        let mut hidden = Vec::new();
        m.hidden(&mut |key, why| hidden.push(format!("{key}: {why}")));
        assert_eq!(hidden, ["d\\e: Azure treats a backslash as a slash"]);
        assert_eq!(stored(&bucket, "tree/x").unwrap(), b"precious");
        assert_eq!(stored(&bucket, "f").unwrap(), b"bytes");
        m.unlink("f").unwrap();
        m.remove_directory("dir").unwrap();
    }
}

#[test]
fn a_key_of_the_maximal_length_can_be_created_read_renamed_and_removed() {
    let bucket = MemoryBucket::new();
    let directory = vec!["d".repeat(200); 5].join("/");
    let key = format!("{directory}/{}", "f".repeat(1024 - 1005));
    assert_eq!(key.len(), 1024);
    bucket.foreign_put(&format!("{directory}/there"), "x");
    for ttl in [LONG, Duration::ZERO] {
        let m = mount(&bucket, ttl);
        m.write(&key, b"one").unwrap();
        m.write(&key, b"two").unwrap();
        assert_eq!(m.read(&key).unwrap(), b"two");
        m.rename(&key, "short").unwrap();
        m.rename("short", &key).unwrap();
        assert_eq!(stored(&bucket, &key).unwrap(), b"two");
        m.unlink(&key).unwrap();
        assert_eq!(stored(&bucket, &key), None);
        let longer = format!("{key}g");
        assert_eq!(refused(m.create(&longer, OFlags::WRONLY)), Errno::NAMETOOLONG);
        assert_eq!(refused(m.find(&longer)), Errno::NAMETOOLONG);
        // With its slash, a directory of that name would be too long.
        assert_eq!(refused(m.make_directory(&key)), Errno::NAMETOOLONG);
        m.make_directory(&key[..1023]).unwrap();
        m.remove_directory(&key[..1023]).unwrap();
        // A key below the directory would become too long, so nothing is renamed.
        let longer = format!("{}x", "d".repeat(200));
        m.write(&key, b"deep").unwrap();
        assert_eq!(refused(m.rename(&"d".repeat(200), &longer)), Errno::NAMETOOLONG);
        assert_eq!(refused(m.find(&longer)), Errno::NOENT);
        assert_eq!(stored(&bucket, &key).unwrap(), b"deep");
    }
}

#[test]
fn names_that_end_in_white_space_are_for_directories_only() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d /f", "x");
    let m = mount(&bucket, Duration::ZERO);
    assert_eq!(m.names(""), ["d "]);
    assert_eq!(m.read("d /f").unwrap(), b"x");
    m.make_directory("e ").unwrap();
    m.write("e /g", b"y").unwrap();
    assert_eq!(m.names("e "), ["g"]);
    assert_eq!(refused(m.create("g ", OFlags::WRONLY)), Errno::INVAL);
    assert_eq!(refused(m.find("g ")), Errno::NOENT);
}
