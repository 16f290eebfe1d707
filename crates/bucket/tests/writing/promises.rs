//! The promises to programs: what is durable when, and that no other client's object is
//! overwritten.

use super::*;
use ogive_bucket::{Bucket as _, Operation, Promises};

#[test]
fn writes_are_readable_at_once_and_in_the_store_after_the_close() {
    for ttl in [LONG, Duration::ZERO] {
        let bucket = MemoryBucket::new();
        bucket.foreign_put("d/old", "0123456789");
        let m = mount(&bucket, ttl);
        assert_eq!(m.names("d"), ["old"]);
        let (found, file) = m.create("d/new", OFlags::RDWR).unwrap();
        assert_eq!(found.attributes.size_bytes, 0);
        m.write_at(&file, 0, b"hello").unwrap();
        let reader = m.open("d/new", OFlags::RDONLY).unwrap();
        m.write_at(&file, 5, b" world").unwrap();
        assert_eq!(m.read_file(&reader).unwrap(), b"hello world");
        assert_eq!(m.names("d"), ["new", "old"]);
        assert_eq!(m.find("d/new").unwrap().attributes.size_bytes, 11);
        assert_eq!(m.attributes(&found.node, None).unwrap().size_bytes, 11);
        assert!(m.pinned_identity(&reader).is_none() && m.pinned_identity(&file).is_none());
        assert_eq!(stored(&bucket, "d/new"), None, "no client sees half a file");
        m.flush(&file).unwrap();
        assert_eq!(stored(&bucket, "d/new").unwrap(), b"hello world");
        // A change of an existing object is visible to new handles and to earlier ones.
        let old = m.open("d/old", OFlags::RDONLY).unwrap();
        let writer = m.open("d/old", OFlags::WRONLY).unwrap();
        m.write_at(&writer, 3, b"XY").unwrap();
        assert_eq!(m.read_file(&old).unwrap(), b"012XY56789");
        assert_eq!(m.read("d/old").unwrap(), b"012XY56789");
        assert_eq!(stored(&bucket, "d/old").unwrap(), b"0123456789");
        m.sync(&writer, false).unwrap();
        assert_eq!(stored(&bucket, "d/old").unwrap(), b"012XY56789");
        assert_eq!(
            m.read_file(&old).unwrap(),
            b"012XY56789",
            "the handle continues with the new object"
        );
        drop((file, reader, old, writer));
        assert_eq!(m.logs(), 0, "uploaded files have no log");
    }
}

#[test]
fn an_unchanged_file_costs_no_more_requests_than_on_a_read_only_mount() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "x");
    let m = mount(&bucket, LONG);
    let node = m.find("f").unwrap().node;
    let before = bucket.request_counts();
    let file = Origin::open(&m.origin, &node, OFlags::RDONLY).unwrap();
    assert!(m.pinned_identity(&file).is_some());
    m.flush(&file).unwrap();
    let writer = Origin::open(&m.origin, &node, OFlags::RDWR).unwrap();
    assert!(m.pinned_identity(&file).is_none(), "this mount may change it now");
    m.flush(&writer).unwrap();
    assert_eq!(bucket.request_counts().head - before.head, 2);
    assert_eq!(bucket.request_counts().put, before.put);
    assert_eq!(m.logs(), 0);
}

#[test]
fn size_and_time_after_the_close_come_from_the_store() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    m.write("f", b"abc").unwrap();
    let object = ogive_bucket::Bucket::head(&bucket, "f").unwrap();
    let attributes = m.find("f").unwrap().attributes;
    assert_eq!((attributes.size_bytes, attributes.modified), (3, object.modified));
    let file = m.open("f", OFlags::RDONLY).unwrap();
    assert_eq!(m.attributes(&m.find("f").unwrap().node, Some(&file)).unwrap(), attributes);
}

#[test]
fn appends_go_to_the_end_and_truncation_by_name_is_in_the_store_at_once() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("log", pattern(3000, 1));
    let m = mount(&bucket, LONG);
    let (one, two) = (m.open("log", OFlags::WRONLY | OFlags::APPEND).unwrap(), "log");
    let two = m.open(two, OFlags::WRONLY | OFlags::APPEND).unwrap();
    m.append(&one, b"first").unwrap();
    m.append(&two, b"second").unwrap();
    let expected = [&pattern(3000, 1)[..], b"firstsecond"].concat();
    assert_eq!(m.read("log").unwrap(), expected);
    // An append goes to the end of the file, whatever the mode of the open.
    m.write_at(&one, 3000, b"F").unwrap();
    let expected = [&pattern(3000, 1)[..], b"Firstsecond"].concat();
    assert_eq!(m.read("log").unwrap(), expected);
    m.flush(&one).unwrap();
    assert_eq!(stored(&bucket, "log").unwrap(), expected);
    drop((one, two));
    m.truncate("log", 10).unwrap();
    assert_eq!(stored(&bucket, "log").unwrap(), pattern(10, 1));
    m.truncate("log", 12).unwrap();
    assert_eq!(m.read("log").unwrap(), [&pattern(10, 1)[..], &[0, 0]].concat());
    // Like open(2) with O_TRUNC: the size is set by name while the file is open.
    let file = m.open("log", OFlags::WRONLY).unwrap();
    m.truncate("log", 0).unwrap();
    assert_eq!(stored(&bucket, "log").unwrap().len(), 12, "the open handle uploads it");
    m.write_at(&file, 0, b"anew").unwrap();
    m.flush(&file).unwrap();
    assert_eq!(stored(&bucket, "log").unwrap(), b"anew");
}

#[test]
fn writes_survive_a_kill_and_are_uploaded_by_the_next_mount() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/old", pattern(4000, 1));
    let m = mount(&bucket, LONG);
    let (_, new) = m.create("d/new", OFlags::WRONLY).unwrap();
    m.write_at(&new, 0, &pattern(2500, 2)).unwrap();
    let old = m.open("d/old", OFlags::RDWR).unwrap();
    m.write_at(&old, 100, b"changed").unwrap();
    let (_, gone) = m.create("d/gone", OFlags::RDWR).unwrap();
    m.write_at(&gone, 0, b"gone").unwrap();
    m.unlink("d/gone").unwrap();
    assert_eq!(m.read_file(&gone).unwrap(), b"gone", "an open handle can still read it");
    m.write_at(&gone, 4, b"!").unwrap();
    m.flush(&gone).unwrap();
    assert_eq!(m.read_file(&gone).unwrap(), b"gone!");
    std::mem::forget((new, old, gone));
    let m = m.killed(&bucket, LONG);
    let mut expected = pattern(4000, 1);
    expected[100..107].copy_from_slice(b"changed");
    assert_eq!(stored(&bucket, "d/new").unwrap(), pattern(2500, 2));
    assert_eq!(stored(&bucket, "d/old").unwrap(), expected);
    assert_eq!(m.names("d"), ["new", "old"], "removed files stay removed");
    assert_eq!((m.logs(), m.conflicts()), (0, 0));
}

#[test]
fn a_foreign_object_stays_and_ours_becomes_a_conflict() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "mine");
    let m = mount(&bucket, LONG);
    let file = m.open("f", OFlags::RDWR).unwrap();
    m.write_at(&file, 0, b"MINE").unwrap();
    bucket.foreign_put("f", "theirs");
    assert_eq!(refused(m.sync(&file, false)), Errno::STALE);
    assert_eq!(refused(m.flush(&file)), Errno::STALE, "every time");
    assert_eq!(refused(m.write_at(&file, 0, b"more")), Errno::STALE);
    assert_eq!(stored(&bucket, "f").unwrap(), b"theirs");
    assert_eq!(m.conflicts(), 1);
    // A new handle belongs to the foreign lineage, and may write.
    let again = m.open("f", OFlags::RDWR).unwrap();
    assert_eq!(m.read_file(&again).unwrap(), b"theirs");
    m.write_at(&again, 6, b"+ours").unwrap();
    m.flush(&again).unwrap();
    assert_eq!(stored(&bucket, "f").unwrap(), b"theirs+ours");
    assert!(m.pinned_identity(&file).is_some(), "it has its own identity");
    drop(file);
    assert_eq!(refused(m.create("f", OFlags::WRONLY | OFlags::EXCL)), Errno::EXIST);
    // A new file that another client creates at the same time.
    let (_, new) = m.create("new", OFlags::WRONLY).unwrap();
    m.write_at(&new, 0, b"ours").unwrap();
    bucket.foreign_put("new", "theirs");
    assert_eq!(refused(m.flush(&new)), Errno::STALE);
    drop(new);
    assert_eq!(m.read("new").unwrap(), b"theirs");
    assert_eq!(m.conflicts(), 2);
    let m = m.killed(&bucket, LONG);
    assert_eq!((m.logs(), m.conflicts()), (0, 2), "they are kept");
}

#[test]
fn a_foreign_change_of_an_unchanged_file_is_not_a_conflict() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "one");
    let m = mount(&bucket, LONG);
    let early = m.open("f", OFlags::RDWR).unwrap();
    bucket.foreign_put("f", "two");
    let late = m.open("f", OFlags::RDWR).unwrap();
    assert_eq!(m.read_file(&late).unwrap(), b"two");
    assert_eq!(refused(m.read_file(&early)), Errno::STALE);
    m.write_at(&late, 3, b"!").unwrap();
    m.flush(&late).unwrap();
    assert_eq!(stored(&bucket, "f").unwrap(), b"two!");
    // The early handle has an object that no longer exists: its writes do not change this one.
    m.write_at(&early, 0, b"ONE").unwrap();
    assert_eq!(m.read("f").unwrap(), b"two!");
    assert_eq!(refused(m.flush(&early)), Errno::STALE);
    assert_eq!(stored(&bucket, "f").unwrap(), b"two!");
    assert_eq!(m.conflicts(), 1);
}

#[test]
fn a_change_that_an_earlier_mount_left_never_overwrites_a_later_one() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "mine");
    let m = mount(&bucket, LONG);
    let file = m.open("f", OFlags::RDWR).unwrap();
    m.write_at(&file, 0, b"MINE").unwrap();
    std::mem::forget(file);
    bucket.foreign_put("f", "theirs");
    let m = m.killed(&bucket, LONG);
    assert_eq!(stored(&bucket, "f").unwrap(), b"theirs");
    assert_eq!(m.read("f").unwrap(), b"theirs");
    assert_eq!((m.logs(), m.conflicts()), (0, 1));
}

#[test]
fn a_store_without_the_required_conditions_is_refused() {
    let options = OriginOptions {
        prefix: String::new(),
        metadata_ttl: LONG,
        user: 7,
        group: 8,
        file_mode: 0o640,
        directory_mode: 0o750,
        convention: Convention::Off,
    };
    for promises in [
        Promises { create: false, ..Promises::ALL },
        Promises { overwrite: false, ..Promises::ALL },
    ] {
        let (bucket, directory) = (MemoryBucket::new(), tempfile::tempdir().unwrap());
        bucket.honour(promises);
        let opened = journal(directory.path());
        let refused = BucketOrigin::open_writable(bucket, options.clone(), opened, write_options());
        let words = refused.err().unwrap().to_string();
        assert!(words.contains("could be overwritten unnoticed"), "{words}");
    }
}

#[test]
fn a_write_beyond_the_stores_largest_object_is_refused() {
    let bucket = MemoryBucket::new();
    let m = mount(&bucket, LONG);
    // 200 parts of 10,000 bytes.
    let largest = 2_000_000;
    m.write("new", b"").unwrap();
    let file = m.open("new", OFlags::WRONLY).unwrap();
    assert_eq!(refused(m.write_at(&file, largest - 1, b"ab")), Errno::FBIG);
    assert_eq!(refused(m.truncate("new", largest + 1)), Errno::FBIG);
    m.write_at(&file, largest - 1, b"a").unwrap();
    m.flush(&file).unwrap();
    assert_eq!(stored(&bucket, "new").unwrap().len() as u64, largest);
    drop(file);
    // Existing bytes are copied.
    m.truncate("new", largest + 1000).unwrap();
    assert_eq!(stored(&bucket, "new").unwrap().len() as u64, largest + 1000);
}

#[test]
fn without_multipart_conditions_files_are_limited_to_one_request() {
    let bucket = MemoryBucket::new();
    bucket.honour(Promises { upload_overwrite: false, ..Promises::ALL });
    let m = mount(&bucket, LONG);
    // A new file has its condition.
    m.write("new", &pattern(9000, 1)).unwrap();
    assert_eq!(stored(&bucket, "new").unwrap(), pattern(9000, 1));
    m.write("small", &pattern(4000, 1)).unwrap();
    let file = m.open("small", OFlags::WRONLY).unwrap();
    assert_eq!(refused(m.write_at(&file, 4990, &[1; 20])), Errno::FBIG);
    assert_eq!(refused(m.truncate("small", 5001)), Errno::FBIG);
    m.write_at(&file, 4000, &[1; 1000]).unwrap();
    m.flush(&file).unwrap();
    let puts = bucket.requests(Operation::Put);
    assert_eq!(stored(&bucket, "small").unwrap().len(), 5000);
    // A rename over an existing object, by a read and a write.
    m.write("other", b"x").unwrap();
    m.rename("small", "other").unwrap();
    assert!(bucket.requests(Operation::Put) > puts && bucket.requests(Operation::Copy) == 0);
    assert_eq!(stored(&bucket, "other").unwrap().len(), 5000);
    m.write("third", b"x").unwrap();
    assert_eq!(refused(m.rename("new", "third")), Errno::XDEV);
    assert_eq!(stored(&bucket, "third").unwrap(), b"x");
    assert_eq!(m.read("new").unwrap(), pattern(9000, 1));
}

#[test]
fn without_a_journal_every_change_is_refused_like_on_a_read_only_mount() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "x");
    let options = OriginOptions {
        prefix: String::new(),
        metadata_ttl: LONG,
        user: 7,
        group: 8,
        file_mode: 0o640,
        directory_mode: 0o750,
        convention: Convention::Off,
    };
    let origin = BucketOrigin::open(bucket.clone(), options).unwrap();
    let root = Origin::root(&origin).unwrap().node;
    let node = origin.lookup(&root, OsStr::new("f")).unwrap().node;
    let x = OsStr::new("x");
    let results = [
        Origin::open(&origin, &node, OFlags::WRONLY).err(),
        Origin::create(&origin, &root, x, OFlags::WRONLY, 0, CALLER).err(),
        origin.make(&root, x, Make::Directory { mode: 0 }, CALLER).err(),
        origin.unlink(&root, OsStr::new("f")).err(),
        origin.remove_directory(&root, x).err(),
        origin.rename((&root, OsStr::new("f")), (&root, x), RenameFlags::empty()).err(),
        origin.set_attributes(&node, None, &Changes::default()).err(),
        origin.link(&node, None, &root, x).err(),
    ];
    assert_eq!(results, [Some(Errno::ROFS); 8]);
    assert_eq!(bucket.request_counts().put + bucket.request_counts().delete, 0);
}
