//! The second level below a view: which records come back from it, and which must not.

use super::*;
use crate::inode_limit::InodeLimit;
use crate::inode_number::ROOT;
use crate::statistics::Statistics;
use crate::version::Versions;
use crate::view::{Permissions, Read, Settings, View, WriteMode};
use crate::workers::Workers;
use ogive_arc::Cache;
use ogive_l2::device::MemoryDevice;
use ogive_l2::{Admission, Clock, KeySource, MasterKey, OpenOptions};
use ogive_origin::{DirectoryOrigin, OFlags};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const RECORD: u64 = 4096;

/// The bound of a wait for an event; a late one proves nothing.
const LONG: Duration = Duration::from_secs(60);

struct Fixture {
    directory: tempfile::TempDir,
    device: Arc<MemoryDevice>,
    view: Arc<View<DirectoryOrigin>>,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let device = Arc::new(MemoryDevice::new(8 << 20));
    let view = view(&directory, &device);
    Fixture { directory, device, view }
}

/// Options for devices that are added later.
fn unused_options() -> SecondLevelOptions {
    SecondLevelOptions {
        devices: Vec::new(),
        size_bytes: Some(8 << 20),
        cipher: None,
        key: KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap()),
        kdf_work_max_kib: ogive_l2::KDF_WORK_MAX_KIB,
        compression: ogive_l2::Compression::default(),
        padding: ogive_l2::Padding::default(),
        admission: Admission::All,
        paths: PathRules::default(),
        limits: ogive_l2::WriteLimits::default(),
        engine: ogive_l2::device::Engine::Pread,
    }
}

fn view(directory: &tempfile::TempDir, device: &Arc<MemoryDevice>) -> Arc<View<DirectoryOrigin>> {
    view_with(directory, device, PathRules::default())
}

fn view_with(
    directory: &tempfile::TempDir,
    device: &Arc<MemoryDevice>,
    paths: PathRules,
) -> Arc<View<DirectoryOrigin>> {
    let how = OpenOptions {
        key: KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap()),
        ..OpenOptions::default()
    };
    // None of these tests is about slow devices, so the clock that judges them stands still.
    let mut options = TierOptions { read_patience: LONG, ..TierOptions::default() };
    options.store.admission = Admission::All;
    options.store.close_patience = LONG;
    options.store.clock = Clock::played();
    // Versions differ in every run. A large index makes it rare that names share a slot.
    options.store.expected_record_bytes = 512;
    let tier = Tier::open(vec![(device.clone(), how)], options).unwrap();
    assert!(tier.settle());
    let devices = Devices::new(
        SecondLevelOptions { paths, ..unused_options() },
        directory.path(),
        Path::new("/nowhere"),
    );
    let second_level = Arc::new(SecondLevel { tier, record_size_bytes: RECORD, devices });
    let secret = SecondLevel::version_secret(Some(&second_level)).unwrap();
    let hook = second_level.clone();
    let settings = Settings {
        record_size_bytes: RECORD,
        direct_io: true,
        exclusive: false,
        metadata_ttl: Duration::from_secs(1),
        negative_ttl: Duration::from_secs(1),
        prefetch_max_bytes: 0,
        read_only: false,
        immutable: false,
        permissions: Permissions::Kernel,
    };
    let view = View::new(
        DirectoryOrigin::open(directory.path()).unwrap(),
        settings,
        Cache::builder(64 << 20).on_evict(move |eviction| hook.on_evict(eviction)).build(),
        Versions::new(Duration::ZERO, false, 1, secret),
        Workers::new(4),
        InodeLimit::new(1 << 20, || {}),
        Some(second_level),
    );
    Arc::new(view.unwrap())
}

fn answer(view: &View<DirectoryOrigin>, read: &Read<DirectoryOrigin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    view.finish_read(read, |answer| bytes = answer.concat());
    bytes
}

impl Fixture {
    fn open(&self, name: &str) -> u64 {
        let known = self.view.lookup(ROOT, OsStr::new(name), 1).unwrap();
        self.view.open(known.number, OFlags::RDWR, 1).unwrap().handle
    }

    /// Reads as a session does: on a thread of the second level if that may have the record.
    fn read(&self, handle: u64) -> Vec<u8> {
        let mut read = self.view.begin_read(handle, 0, 1 << 20, false).unwrap().unwrap();
        let (send, receive) = mpsc::channel();
        if !read.is_complete() {
            let left = self.view.complete_elsewhere(read, send, |view, read, reply| {
                reply.send(answer(view, &read.unwrap())).unwrap();
            });
            match left {
                None => return receive.recv_timeout(LONG).expect("a thread answers"),
                Some((left, _)) => read = self.view.complete_read(left).unwrap(),
            }
        }
        answer(&self.view, &read)
    }

    /// Evicts everything, and waits until the second level has written it.
    fn forget(&self) {
        self.view.cache.reclaim(u64::MAX);
        assert!(self.tier().settle());
    }

    fn tier(&self) -> &Tier {
        &self.view.second_level.as_ref().unwrap().tier
    }

    fn origin_reads(&self) -> u64 {
        self.view.counters.counts().origin_reads
    }
}

fn contents(seed: u8) -> Vec<u8> {
    (0..RECORD * 3 + 100).map(|n| (n / 7) as u8 ^ seed).collect()
}

/// Changes a file of the origin. The origin's clock has to tick for the change to be noticed.
fn change_behind(path: &Path, contents: &[u8]) {
    let changed = || fs::metadata(path).map(|it| (it.ctime(), it.ctime_nsec())).unwrap();
    let (before, deadline) = (changed(), Instant::now() + LONG);
    while changed() == before {
        assert!(Instant::now() < deadline, "the clock of the origin does not tick");
        fs::write(path, contents).unwrap();
    }
}

#[test]
fn evicted_records_come_back_without_the_origin() {
    let fixture = fixture();
    fs::write(fixture.directory.path().join("a"), contents(1)).unwrap();
    let handle = fixture.open("a");
    assert_eq!(fixture.read(handle), contents(1));
    fixture.forget();
    let before = fixture.origin_reads();
    assert_eq!(fixture.read(handle), contents(1));
    assert_eq!(fixture.origin_reads(), before);
    assert_eq!(fixture.tier().counts().l2_hits, 4);
    let counts = fixture.view.counters.counts();
    assert_eq!(counts.second_level_bytes, RECORD * 3 + 100);

    // Another mount of the same directory finds it, too.
    fixture.tier().close();
    let view = view(&fixture.directory, &fixture.device);
    let again = Fixture { view, directory: fixture.directory, device: fixture.device };
    assert_eq!(again.read(again.open("a")), contents(1));
    assert_eq!(again.origin_reads(), 0);
}

#[test]
fn an_evicted_record_that_comes_back_counts_as_one_miss() {
    let fixture = fixture();
    fs::write(fixture.directory.path().join("a"), b"one record").unwrap();
    let handle = fixture.open("a");
    fixture.read(handle);
    fixture.forget();
    let before = fixture.view.cache.stats();
    assert_eq!(fixture.read(handle), b"one record");
    let after = fixture.view.cache.stats();
    assert_eq!(fixture.tier().counts().l2_hits, 1);
    assert_eq!((after.hits - before.hits, after.misses - before.misses), (0, 1));
    // A record that no device knows is also a miss there, once.
    let missed = fixture.tier().counts().l2_misses;
    fs::write(fixture.directory.path().join("b"), b"another").unwrap();
    fixture.read(fixture.open("b"));
    assert_eq!(fixture.tier().counts().l2_misses, missed + 1);
}

#[test]
fn a_write_through_the_mount_is_never_undone_by_the_second_level() {
    let fixture = fixture();
    fs::write(fixture.directory.path().join("a"), contents(1)).unwrap();
    let handle = fixture.open("a");
    fixture.read(handle);
    fixture.forget();
    fixture.view.write(handle, RECORD + 5, b"written", WriteMode::IN_PLACE).unwrap();
    let mut expected = contents(1);
    expected[RECORD as usize + 5..][..7].copy_from_slice(b"written");
    for _ in 0..3 {
        assert_eq!(fixture.read(handle), expected, "the handle keeps its version");
        fixture.forget();
    }
    let reopened = fixture.open("a");
    assert_eq!(fixture.read(reopened), expected);
    fixture.forget();
    assert_eq!(fixture.read(reopened), expected);
}

#[test]
fn a_change_behind_the_mount_is_seen_at_the_next_open() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a");
    fs::write(&path, contents(1)).unwrap();
    let first = fixture.open("a");
    fixture.read(first);
    fixture.forget();
    change_behind(&path, &contents(2));
    // Read under the old version with new bytes in the origin: none of it may be kept.
    fixture.view.cache.reclaim(u64::MAX);
    fixture.read(first);
    fixture.forget();
    let second = fixture.open("a");
    assert_eq!(fixture.read(second), contents(2));
    fixture.forget();
    assert_eq!(fixture.read(second), contents(2));
}

#[test]
fn bytes_that_the_origin_does_not_vouch_for_are_not_kept() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a");
    fs::write(&path, contents(1)).unwrap();
    let handle = fixture.open("a");
    // Changed between open and read: the version is the old one, the bytes are the new ones.
    change_behind(&path, &contents(3));
    fixture.read(handle);
    fixture.forget();
    assert_eq!(fixture.tier().counts().l2_records_written, 0);
    assert!(fixture.tier().counts().evict_l2_ineligible > 0);
}

#[test]
fn the_index_is_memory_that_the_engine_may_ask_for() {
    let fixture = fixture();
    fs::write(fixture.directory.path().join("a"), contents(1)).unwrap();
    let handle = fixture.open("a");
    fixture.read(handle);
    fixture.forget();
    let second_level = fixture.view.second_level.clone().unwrap();
    let _registration = fixture.view.cache.register_prune("l2_index", second_level);
    let before = fixture.tier().usage()[0].index_bytes;
    let result = fixture.view.cache.prune(before / 4);
    let after = fixture.tier().usage()[0].index_bytes;
    assert!(result.freed_bytes > 0 && after == before - result.freed_bytes, "{result:?}");
    // Records that the index has dropped come from the origin.
    assert_eq!(fixture.read(handle), contents(1));
}

#[test]
fn errors_of_a_second_level_are_named_and_several_devices_are_one_level() {
    let directory = tempfile::tempdir().unwrap();
    let options = |path: &std::path::Path| SecondLevelOptions {
        devices: vec![directory.path().join("good"), path.into()],
        size_bytes: Some(8 << 20),
        cipher: None,
        key: KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap()),
        kdf_work_max_kib: 0,
        compression: ogive_l2::Compression::Off,
        padding: ogive_l2::Padding::default(),
        admission: Admission::All,
        paths: PathRules::default(),
        limits: ogive_l2::WriteLimits::default(),
        engine: ogive_l2::device::Engine::Probe,
    };
    let source = directory.path().join("source");
    let open = |path: &std::path::Path| {
        let places = (source.as_path(), Path::new("/nowhere"));
        SecondLevel::open(Some(&options(path)), places, RECORD, 64 << 20)
    };
    let text = directory.path().join("text");
    fs::write(&text, "the text of an unrelated file".repeat(300_000)).unwrap();
    let refused = open(&text).unwrap_err().to_string();
    assert!(refused.contains("it holds"), "{refused}");
    assert!(open(&directory.path().join("no/such/directory")).is_err());
    let both = open(&directory.path().join("other")).unwrap().unwrap();
    assert_eq!(both.tier.usage().len(), 2);
}

/// Requests a change of the devices like the control file.
fn change(fixture: &Fixture, word: &str, path: &Path) -> Result<(), ogive_origin::Errno> {
    let level = fixture.view.second_level.as_ref().unwrap();
    let changed = level.change(format!("{word} {}\n", path.display()).as_bytes());
    assert!(fixture.tier().settle());
    changed
}

#[test]
fn devices_are_added_and_removed_while_mounted_and_every_byte_stays_right() {
    let fixture = fixture();
    let elsewhere = tempfile::tempdir().unwrap();
    let added = elsewhere.path().join("added");
    let make = |number: u8| {
        fs::write(fixture.directory.path().join(format!("file-{number}")), contents(number))
            .unwrap();
    };
    let read = |numbers: std::ops::Range<u8>| {
        for number in numbers {
            let handle = fixture.open(&format!("file-{number}"));
            assert_eq!(fixture.read(handle), contents(number));
            fixture.view.release(handle);
        }
        fixture.forget();
    };
    let read_all = || read(0..20);
    (0..20).for_each(make);
    let level = fixture.view.second_level.as_ref().unwrap();
    read_all();
    change(&fixture, "add", &added).unwrap();
    assert_eq!(fs::metadata(&added).unwrap().len(), 8 << 20, "it has the size of --l2-size");
    read_all();
    (20..30).for_each(make);
    read(20..30);
    let before = fixture.origin_reads();
    read(0..30);
    assert_eq!(fixture.origin_reads(), before, "both devices have their share");
    assert!(level.status().contains(added.to_str().unwrap()));
    let share = |level: &SecondLevel| level.tier.devices()[1].usage.records;
    assert!(share(level) > 10, "{} records are its share", share(level));

    change(&fixture, "remove", &added).unwrap();
    read_all();
    assert_eq!(fixture.origin_reads(), before, "the first device still has its records");
    read(20..30);
    assert!(fixture.origin_reads() > before, "records of the removed device are misses");
    assert!(!level.status().contains(added.to_str().unwrap()) || level.status().contains("remove"));
    change(&fixture, "add", &added).unwrap();
    assert!(share(level) > 10, "it is found again");
    read_all();
}

#[test]
fn an_impossible_device_is_refused_with_its_reason() {
    use ogive_origin::Errno;
    let fixture = fixture();
    let level = fixture.view.second_level.as_ref().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = |word: &str, path: &Path, errno, why: &str| {
        assert_eq!(change(&fixture, word, path), Err(errno), "{word} {}", path.display());
        assert!(level.status().contains(why), "{why}: {}", level.status());
        assert_eq!(level.tier.devices().len(), 1);
    };
    let (source, link) = (fixture.directory.path(), elsewhere.path().join("link"));
    fs::write(source.join("file"), b"of the source").unwrap();
    refused("add", &source.join("cache"), Errno::INVAL, "lies inside the source");
    std::os::unix::fs::symlink(source.join("file"), &link).unwrap();
    refused("add", &link, Errno::INVAL, "lies inside the source");
    // The resolved path decides, not its spelling.
    let around = source.join("..").join(elsewhere.path().file_name().unwrap()).join("new");
    assert!(!options::lies_below(&around, source) && options::lies_below(source, source));
    refused("add", Path::new("/nowhere/cache"), Errno::INVAL, "inside the mount itself");
    refused("add", Path::new("/dev/null"), Errno::INVAL, "neither a regular file");
    refused("remove", &elsewhere.path().join("x"), Errno::NOENT, "is not in use by this mount");
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, vec![7; 9 << 20]).unwrap();
    refused("add", &precious, Errno::INVAL, "to overwrite that");
    assert!(fs::read(&precious).unwrap() == vec![7; 9 << 20]);
    let busy = elsewhere.path().join("busy");
    change(&fixture, "add", &busy).unwrap();
    assert_eq!(change(&fixture, "add", &busy), Err(Errno::BUSY));
    assert!(level.status().contains("in use by this mount already"));
    assert_eq!(level.change(b"add relative"), Err(Errno::INVAL));
}

#[test]
fn an_excluded_path_is_read_and_never_kept() {
    let directory = tempfile::tempdir().unwrap();
    let device = Arc::new(MemoryDevice::new(8 << 20));
    let rules = PathRules::new(&[], &["*.key".to_owned(), "private/".to_owned()]).unwrap();
    let view = view_with(&directory, &device, rules);
    let fixture = Fixture { directory, device, view };
    let root = fixture.directory.path();
    fs::create_dir(root.join("private")).unwrap();
    for (number, name) in [(1, "open"), (2, "a.key"), (3, "private/file")] {
        fs::write(root.join(name), contents(number)).unwrap();
    }
    let open = |name: &str| {
        let looked_up = name.split('/').fold(ROOT, |parent, part| {
            fixture.view.lookup(parent, OsStr::new(part), 1).unwrap().number
        });
        fixture.view.open(looked_up, OFlags::RDONLY, 1)
    };
    let read = |name: &str, number| {
        // Like the kernel, which looks up a name again if it leads elsewhere now.
        let handle = open(name).or_else(|_| open(name)).unwrap().handle;
        assert_eq!(fixture.read(handle), contents(number), "{name}");
        fixture.forget();
        fixture.view.release(handle);
    };
    let records = || fixture.tier().usage()[0].records;
    read("open", 1);
    assert_eq!((records(), fixture.tier().counts().l2_refused_path), (4, 0));
    read("a.key", 2);
    read("private/file", 3);
    assert_eq!((records(), fixture.tier().counts().l2_refused_path), (4, 8));
    // The name at the open decides, so another name gives another result.
    fs::rename(root.join("a.key"), root.join("renamed")).unwrap();
    read("renamed", 2);
    assert_eq!(records(), 8);
    // A link to an existing file leads to the same file.
    fs::hard_link(root.join("renamed"), root.join("b.key")).unwrap();
    let before = fixture.tier().counts().l2_refused_path;
    read("b.key", 2);
    assert_eq!((records(), fixture.tier().counts().l2_refused_path), (8, before + 4));
}

/// Every row of `ogivestats` in its order, as monitoring reads it.
#[test]
fn ogivestats_has_these_rows_in_this_order() {
    let fixture = fixture();
    let text = Statistics::new(None).ogivestats(&fixture.view, 0);
    let rows = text.lines().skip(2).map(|line| line.split(' ').next().unwrap());
    let names: Vec<&str> = rows.collect();
    assert_eq!(names.join("\n"), include_str!("../../tests/data/ogivestats.names").trim_end());
}
