//! The promises of `docs/coherence.md` about the view, over a real directory and without a kernel.

mod cached_objects;
mod dir_cache;
mod dir_cookies;
mod handed_over;
mod namespace;
mod no_xattrs;
mod root;
mod runs;
mod slow;
mod write_target;

use super::*;
use crate::pruning;
use ogive_origin::{
    Allocation, Caller, Changes, DirectoryOrigin, Make, OFlags, RenameFlags, VersionSecret, Whence,
};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

const RECORD: u64 = 4096;

/// A timeout that only a test ends, however slow the machine is.
const LONG: Duration = Duration::from_secs(3600);

struct Fixture {
    directory: tempfile::TempDir,
    view: Arc<View<DirectoryOrigin>>,
}

/// Changes settle at once, so everything that may be cached is cached.
fn fixture() -> Fixture {
    fixture_with(Duration::ZERO, |_| {})
}

fn fixture_with(racy_window: Duration, change: impl FnOnce(&mut Settings)) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings {
        record_size_bytes: RECORD,
        direct_io: true,
        exclusive: false,
        metadata_ttl: LONG,
        negative_ttl: LONG,
        prefetch_max_bytes: 0,
        read_only: false,
        immutable: false,
        permissions: Permissions::Kernel,
    };
    change(&mut settings);
    let mut view = View::new(
        DirectoryOrigin::open(directory.path()).unwrap().keeping_lookups(LONG),
        settings,
        Cache::new(64 << 20),
        Versions::new(racy_window, false, 1, VersionSecret::new([1; 32])),
        Workers::new(4),
        InodeLimit::new(1 << 20, || {}),
        None,
    )
    .unwrap();
    view.estale_retries = EstaleRetries::with_patience(LONG);
    Fixture { directory, view: Arc::new(view) }
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn lookup(&self, name: &str) -> NodeAttributes {
        self.view.lookup(ROOT, OsStr::new(name), 1).unwrap()
    }

    fn open(&self, name: &str, flags: OFlags) -> OpenedFile {
        self.view.open(self.lookup(name).number, flags, 1).unwrap()
    }

    fn read(&self, handle: u64, offset: u64, length: u64) -> Vec<u8> {
        let mut read = self.view.begin_read(handle, offset, length, false).unwrap().unwrap();
        if !read.is_complete() {
            read = self.view.complete_read(read).unwrap();
        }
        let mut bytes = Vec::new();
        self.view.finish_read(&read, |answer| bytes = answer.concat());
        bytes
    }

    /// Opens, reads everything and closes, like a program that was notified of a change.
    fn read_file(&self, name: &str) -> Vec<u8> {
        let opened = self.open(name, OFlags::RDONLY);
        let bytes = self.read(opened.handle, 0, 1 << 20);
        self.view.release(opened.handle);
        bytes
    }

    fn origin_reads(&self) -> u64 {
        self.view.counters.counts().origin_reads
    }
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn a_cached_file_is_read_from_memory_at_every_offset() {
    let fixture = fixture();
    let contents = pattern(3 * RECORD as usize + 100, 1);
    fs::write(fixture.path("a"), &contents).unwrap();
    let opened = fixture.open("a", OFlags::RDONLY);
    assert_eq!(fixture.read(opened.handle, 0, 1 << 20), contents);
    let reads = fixture.origin_reads();
    assert_eq!(reads, 4, "one read per record");
    for offset in (0..contents.len() as u64 + 10).step_by(97) {
        for length in [1, 96, RECORD, 2 * RECORD + 7] {
            let expected: Vec<u8> =
                contents.iter().skip(offset as usize).take(length as usize).copied().collect();
            assert_eq!(fixture.read(opened.handle, offset, length), expected);
        }
    }
    assert_eq!(fixture.origin_reads(), reads);
}

#[test]
fn an_unchanged_file_stays_cached_across_opens_and_forgetting() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(5000, 1)).unwrap();
    fixture.read_file("a");
    let reads = fixture.origin_reads();
    let known = fixture.lookup("a");
    fixture.view.forget(known.number, 2);
    assert!(fixture.view.inode(known.number).is_err(), "all lookups were given back");
    assert_eq!(fixture.read_file("a"), pattern(5000, 1));
    assert_eq!(fixture.origin_reads(), reads);
}

#[test]
fn a_change_behind_the_mount_is_seen_by_the_next_open() {
    // With the default window, the changes below fall into one tick of the clock, and the times are
    // restored after each.
    let fixture = fixture_with(Duration::from_secs(2), |_| {});
    fs::write(fixture.path("a"), pattern(5000, 0)).unwrap();
    let times = fs::metadata(fixture.path("a")).unwrap().modified().unwrap();
    for seed in 1..200 {
        let file = fs::OpenOptions::new().write(true).open(fixture.path("a")).unwrap();
        file.write_all_at(&pattern(5000, seed), 0).unwrap();
        file.set_modified(times).unwrap();
        assert_eq!(fixture.read_file("a"), pattern(5000, seed));
    }
}

#[test]
fn a_write_is_read_back_at_once_and_is_in_the_origin() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(10 * RECORD as usize, 1)).unwrap();
    let mut expected = pattern(10 * RECORD as usize, 1);
    let opened = fixture.open("a", OFlags::RDWR);
    let reader = fixture.open("a", OFlags::RDONLY);
    fixture.read(opened.handle, 0, 1 << 20);
    for (offset, length) in [(0, 1), (4095, 2), (5000, 9000), (40_959, 1), (40_000, 3000)] {
        let bytes = pattern(length, offset as u8);
        assert_eq!(
            fixture.view.write(opened.handle, offset, &bytes, WriteMode::IN_PLACE).unwrap(),
            length
        );
        expected.resize(expected.len().max(offset as usize + length), 0);
        expected[offset as usize..][..length].copy_from_slice(&bytes);
        assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);
        assert_eq!(fixture.read(reader.handle, 0, 1 << 20), expected);
        assert_eq!(fs::read(fixture.path("a")).unwrap(), expected);
    }
}

#[test]
fn a_write_invalidates_only_the_records_it_touched() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(100 * RECORD as usize, 1)).unwrap();
    let opened = fixture.open("a", OFlags::RDWR);
    fixture.read(opened.handle, 0, 1 << 20);
    let before = fixture.origin_reads();
    fixture.view.write(opened.handle, 10 * RECORD + 5, b"x", WriteMode::IN_PLACE).unwrap();
    fixture.read(opened.handle, 0, 1 << 20);
    assert_eq!(fixture.origin_reads() - before, 1);
}

#[test]
fn a_record_loaded_during_a_change_is_not_kept() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(10 * RECORD as usize, 1)).unwrap();
    let opened = fixture.open("a", OFlags::RDWR);
    let reads_of = |record: u64| {
        let before = fixture.origin_reads();
        fixture.read(opened.handle, record * RECORD, 8);
        fixture.origin_reads() - before
    };
    let open = fixture.view.file(opened.handle).unwrap();
    let changing = open.inode.begin_change(3 * RECORD..5 * RECORD);
    let other = open.inode.begin_change(4 * RECORD..4 * RECORD + 1);
    assert_eq!([2, 3, 4, 5].map(reads_of), [1; 4]);
    assert_eq!([2, 3, 4, 5].map(reads_of), [0, 1, 1, 0]);
    drop(changing);
    assert_eq!([3, 4].map(reads_of), [1, 1]);
    assert_eq!([3, 4].map(reads_of), [0, 1]);
    drop(other);
    assert_eq!([4, 4].map(reads_of), [1, 0]);
}

#[test]
fn a_write_beyond_the_end_shows_zeroes_in_between() {
    let fixture = fixture();
    fs::write(fixture.path("a"), b"short").unwrap();
    let opened = fixture.open("a", OFlags::RDWR);
    assert_eq!(fixture.read(opened.handle, 0, 100), b"short");
    fixture.view.write(opened.handle, 3 * RECORD, b"far", WriteMode::IN_PLACE).unwrap();
    let all = fixture.read(opened.handle, 0, 1 << 20);
    assert_eq!(all.len() as u64, 3 * RECORD + 3);
    assert_eq!(&all[..5], b"short");
    assert!(all[5..3 * RECORD as usize].iter().all(|byte| *byte == 0));
    assert_eq!(&all[3 * RECORD as usize..], b"far");
}

#[test]
fn truncation_allocation_and_copies_are_seen_at_once() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(20_000, 1)).unwrap();
    let opened = fixture.open("a", OFlags::RDWR);
    let number = fixture.lookup("a").number;
    let resize = |size_bytes| {
        let changes = Changes { size_bytes: Some(size_bytes), ..Changes::default() };
        fixture.view.set_attributes(number, Some(opened.handle), &changes, 1).unwrap();
    };
    fixture.read(opened.handle, 0, 1 << 20);
    resize(100);
    assert_eq!(fixture.read(opened.handle, 0, 1 << 20), pattern(100, 1));
    resize(9000);
    let mut expected = pattern(100, 1);
    expected.resize(9000, 0);
    assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);
    fixture.view.write(opened.handle, 0, &pattern(9000, 3), WriteMode::IN_PLACE).unwrap();
    expected = pattern(9000, 3);
    assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);

    let punch = Allocation { mode: 3, offset: 4096, length_bytes: 4096 };
    if fixture.view.allocate(opened.handle, punch).is_ok() {
        expected[4096..8192].fill(0);
        assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);
        let data = fixture.view.seek(opened.handle, 4096, Whence::Data);
        assert_eq!(data, Ok(8192));
    }
    let copied = fixture.view.copy_range((opened.handle, 0), (opened.handle, 12_000), 100).unwrap();
    expected.resize(12_000, 0);
    expected.extend_from_within(..copied);
    assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);
}

#[test]
fn there_are_neither_data_nor_holes_before_the_beginning() {
    let fixture = fixture();
    fs::write(fixture.path("a"), "bytes").unwrap();
    let opened = fixture.open("a", OFlags::RDONLY);
    for whence in [Whence::Data, Whence::Hole] {
        for offset in [-1_i64, i64::MIN] {
            let found = fixture.view.seek(opened.handle, offset as u64, whence);
            assert_eq!(found, Err(Errno::NXIO));
        }
    }
}

#[test]
fn a_reader_follows_a_file_that_grows_behind_the_mount() {
    let fixture = fixture();
    fs::write(fixture.path("log"), b"one").unwrap();
    let opened = fixture.open("log", OFlags::RDONLY);
    assert_eq!(fixture.read(opened.handle, 0, 100), b"one");
    assert_eq!(fixture.read(opened.handle, 3, 100), b"");
    fs::write(fixture.path("log"), b"one two").unwrap();
    assert_eq!(fixture.read(opened.handle, 3, 100), b" two");
}

#[test]
fn concurrent_misses_of_one_record_make_one_origin_read() {
    let fixture = fixture();
    fs::write(fixture.path("a"), pattern(RECORD as usize, 1)).unwrap();
    let opened = fixture.open("a", OFlags::RDONLY);
    let barrier = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(fixture.read(opened.handle, 0, RECORD), pattern(RECORD as usize, 1));
            });
        }
    });
    assert_eq!(fixture.origin_reads(), 1);
}

#[test]
fn writers_and_readers_of_one_record_never_see_the_past() {
    let fixture = fixture();
    fs::write(fixture.path("a"), [0; 8]).unwrap();
    let opened = fixture.open("a", OFlags::RDWR);
    let latest = std::sync::atomic::AtomicU64::new(0);
    /// Ends the readers, even if writing fails.
    struct Last<'a>(&'a std::sync::atomic::AtomicU64);
    impl Drop for Last<'_> {
        fn drop(&mut self) {
            self.0.store(2000, std::sync::atomic::Ordering::SeqCst);
        }
    }
    std::thread::scope(|scope| {
        let _last = Last(&latest);
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = 0;
                while latest.load(std::sync::atomic::Ordering::SeqCst) < 2000 {
                    let before = latest.load(std::sync::atomic::Ordering::SeqCst);
                    let bytes = fixture.read(opened.handle, 0, 8);
                    let seen = u64::from_le_bytes(bytes.try_into().unwrap());
                    assert!(seen >= before, "read {seen} after {before} was written");
                    assert!(seen >= last, "read {seen} after {last} was read");
                    last = seen;
                }
            });
        }
        for number in 1..=2000u64 {
            fixture
                .view
                .write(opened.handle, 0, &number.to_le_bytes(), WriteMode::IN_PLACE)
                .unwrap();
            latest.store(number, std::sync::atomic::Ordering::SeqCst);
        }
    });
}

#[test]
fn an_unlinked_open_file_keeps_its_contents_and_attributes() {
    let fixture = fixture();
    fs::write(fixture.path("a"), b"still here").unwrap();
    let number = fixture.lookup("a").number;
    let opened = fixture.open("a", OFlags::RDWR);
    fixture.view.unlink(ROOT, OsStr::new("a")).unwrap();
    assert_eq!(fixture.view.lookup(ROOT, OsStr::new("a"), 1).unwrap_err(), Errno::NOENT);
    assert_eq!(fixture.read(opened.handle, 0, 100), b"still here");
    assert_eq!(fixture.view.attributes(number, None).unwrap().attributes.links, 0);
    fixture.view.release(opened.handle);
}

#[test]
fn a_mount_that_ends_with_files_open_leaves_nothing_behind() {
    let fixture = fixture();
    fs::write(fixture.path("a"), b"a").unwrap();
    let [first, second] = [(); 2].map(|()| fixture.open("a", OFlags::RDONLY));
    let inode = Arc::downgrade(&fixture.view.file(first.handle).unwrap().inode);
    let file = Arc::downgrade(&fixture.view.file(second.handle).unwrap());
    let Fixture { view, .. } = fixture;
    drop(view);
    assert!(inode.upgrade().is_none() && file.upgrade().is_none());
}

#[test]
fn directories_are_listed_whole_and_afresh() {
    let fixture = fixture();
    let names = |plus| {
        let number = fixture.lookup("d").number;
        let handle = fixture.view.open_directory(number, 1).unwrap().handle;
        let mut names: Vec<OsString> = Vec::new();
        let mut cookie = 0;
        loop {
            // Room for three entries per reply.
            let mut count = 0;
            fixture
                .view
                .read_directory(handle, cookie, plus, &mut |entry| {
                    if count == 3 {
                        return false;
                    }
                    count += 1;
                    cookie = entry.cookie;
                    names.push(entry.name.to_owned());
                    let dots = entry.name == "." || entry.name == "..";
                    assert_eq!(entry.known.is_some(), plus && !dots);
                    true
                })
                .unwrap();
            if count == 0 {
                break;
            }
        }
        fixture.view.release_directory(handle);
        names.sort();
        names
    };
    fs::create_dir(fixture.path("d")).unwrap();
    let mut expected: Vec<OsString> = vec![".".into(), "..".into()];
    for number in 0..40 {
        fixture.make_noticed("d", &format!("{number:02}"));
        expected.push(format!("{number:02}").into());
        if number % 10 == 0 {
            assert_eq!(names(false), expected);
            assert_eq!(names(true), expected);
        }
    }
    names(true);
    let known = fixture.view.inodes.len();
    names(true);
    assert_eq!(fixture.view.inodes.len(), known, "entries without room gave back their reference");
}

#[test]
fn links_are_made_followed_and_renamed() {
    let fixture = fixture();
    let caller = Caller { user: 0, group: 0, umask: 0o022 };
    let target = OsStr::new("somewhere/else");
    let link = Make::Symlink { target };
    let known = fixture.view.make(ROOT, OsStr::new("l"), link, caller).unwrap();
    for _ in 0..2 {
        assert_eq!(fixture.view.read_link(known.number).unwrap(), target);
    }
    let directory = Make::Directory { mode: 0o777 };
    let directory = fixture.view.make(ROOT, OsStr::new("d"), directory, caller).unwrap();
    assert_eq!(directory.attributes.permissions, 0o755);
    let flags = RenameFlags::empty();
    let (from, to) = ((ROOT, OsStr::new("l")), (directory.number, OsStr::new("m")));
    fixture.view.rename(from, to, flags).unwrap();
    assert_eq!(fs::read_link(fixture.path("d/m")).unwrap(), PathBuf::from(target));
    fs::write(fixture.path("f"), "x").unwrap();
    let file = fixture.lookup("f");
    let hard = fixture.view.link(file.number, directory.number, OsStr::new("g")).unwrap();
    assert_eq!((hard.number, hard.attributes.links), (file.number, 2));
}

#[test]
fn a_read_only_view_refuses_every_change() {
    let fixture = fixture_with(Duration::ZERO, |settings| settings.read_only = true);
    fs::write(fixture.path("a"), "x").unwrap();
    let (view, number) = (&fixture.view, fixture.lookup("a").number);
    let name = OsStr::new("b");
    let caller = Caller { user: 0, group: 0, umask: 0 };
    let changes = Changes { permissions: Some(0), ..Changes::default() };
    let special = Make::Special { mode: 0o100_644, device: 0 };
    assert_eq!(view.open(number, OFlags::RDWR, 1).unwrap_err(), Errno::ROFS);
    assert_eq!(view.open(number, OFlags::WRONLY, 1).unwrap_err(), Errno::ROFS);
    assert!(view.open(number, OFlags::RDONLY, 1).is_ok());
    assert_eq!(view.create(ROOT, name, OFlags::RDWR, 0o644, caller).unwrap_err(), Errno::ROFS);
    assert_eq!(view.make(ROOT, name, special, caller).unwrap_err(), Errno::ROFS);
    assert_eq!(view.link(number, ROOT, name).unwrap_err(), Errno::ROFS);
    assert_eq!(view.unlink(ROOT, OsStr::new("a")).unwrap_err(), Errno::ROFS);
    assert_eq!(view.remove_directory(ROOT, name).unwrap_err(), Errno::ROFS);
    let names = ((ROOT, OsStr::new("a")), (ROOT, name));
    assert_eq!(view.rename(names.0, names.1, RenameFlags::empty()).unwrap_err(), Errno::ROFS);
    assert_eq!(view.set_attributes(number, None, &changes, 1).unwrap_err(), Errno::ROFS);
    assert_eq!(fs::read(fixture.path("a")).unwrap(), b"x");
}

#[test]
fn extended_attributes_return_their_length_and_their_value() {
    let fixture = fixture();
    fs::write(fixture.path("a"), "x").unwrap();
    let (view, number) = (&fixture.view, fixture.lookup("a").number);
    let name = OsStr::new("user.colour");
    match view.set_xattr(number, name, b"green", ogive_origin::XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => return crate::skipped::skipped("no extended attributes here"),
        other => other.unwrap(),
    }
    assert_eq!(view.get_xattr(number, name, &mut []), Ok(5));
    let mut value = [0; 8];
    assert_eq!(view.get_xattr(number, name, &mut value), Ok(5));
    assert_eq!(&value[..5], b"green");
    let length = view.list_xattrs(number, &mut []).unwrap();
    let mut list = vec![0; length];
    assert_eq!(view.list_xattrs(number, &mut list), Ok(length));
    assert!(list.split(|byte| *byte == 0).any(|found| found == b"user.colour"));
    view.remove_xattr(number, name).unwrap();
    assert_eq!(view.get_xattr(number, name, &mut []), Err(Errno::NODATA));
}

#[test]
fn a_prune_that_reaches_no_kernel_frees_nothing_and_stops() {
    let fixture = fixture();
    for number in 0..100 {
        fs::write(fixture.path(&number.to_string()), "").unwrap();
        fixture.lookup(&number.to_string());
    }
    let result = pruning::prune(&fixture.view, usize::MAX);
    assert_eq!((result.examined, result.freed_objects, result.held), (100, 0, 100));
    let again = pruning::prune(&fixture.view, usize::MAX);
    assert_eq!(again.examined, 0, "nothing is examined twice");
}

#[test]
fn a_recording_has_every_record_that_was_read() {
    use ogive_kstat::trace::{Event, HEADER_BYTES, RECORD_BYTES};
    let fixture = fixture();
    fs::write(fixture.path("f"), vec![1; 10_000]).unwrap();
    fixture.read_file("f");
    fixture.view.observers.start_recording(RECORD).unwrap();
    fixture.read_file("f");
    let opened = fixture.open("f", OFlags::RDONLY);
    assert_eq!(fixture.read(opened.handle, 9000, 10).len(), 10);
    let bytes = fixture.view.observers.take_recorded(1 << 20);
    let events: Vec<Event> = bytes[HEADER_BYTES..]
        .chunks(RECORD_BYTES)
        .map(|record| Event::decode(record.try_into().unwrap()).unwrap())
        .collect();
    let read = |event: &Event| match *event {
        Event::Read { object, index, bytes, .. } => (object, (index, bytes)),
        Event::Dropped { .. } => panic!("nothing can be dropped: {events:?}"),
    };
    let (objects, records): (Vec<u64>, Vec<_>) = events.iter().map(read).unzip();
    assert_eq!(records, [(0, 4096), (1, 4096), (2, 1808), (2, 1808)]);
    assert!(objects.iter().all(|&object| object == objects[0]));
    fixture.view.observers.stop_recording();
    fixture.read_file("f");
    assert!(fixture.view.observers.take_recorded(1 << 20).is_empty());
}
