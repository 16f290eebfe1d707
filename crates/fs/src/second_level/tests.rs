//! The second level below a view: what comes back from it, and what must not.

use super::*;
use crate::number::ROOT;
use crate::pruning::InodeLimit;
use crate::version::Versions;
use crate::view::{Read, Settings, View};
use crate::workers::Workers;
use ogive_arc::Cache;
use ogive_l2::device::MemoryDevice;
use ogive_l2::{Admission, FormatPolicy, KeySource, MasterKey, OpenOptions};
use ogive_origin::{DirectoryOrigin, OFlags};
use std::ffi::OsStr;
use std::fs;
use std::sync::mpsc;
use std::time::Duration;

const RECORD: u64 = 4096;

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

fn view(directory: &tempfile::TempDir, device: &Arc<MemoryDevice>) -> Arc<View<DirectoryOrigin>> {
    let how = OpenOptions {
        size_bytes: None,
        cipher: None,
        key: KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap()),
        format: FormatPolicy::IfEmpty,
    };
    let mut options = TierOptions::default();
    options.store.admission = Admission::All;
    let tier = Tier::open(vec![(device.clone(), how)], options).unwrap();
    assert!(tier.settle());
    let second_level = Arc::new(SecondLevel { tier, record_size_bytes: RECORD });
    let hook = second_level.clone();
    let settings = Settings {
        record_size_bytes: RECORD,
        direct_io: true,
        exclusive: false,
        metadata_ttl: Duration::from_secs(1),
        negative_ttl: Duration::from_secs(1),
        prefetch_max_bytes: 0,
        read_only: false,
    };
    let view = View::new(
        DirectoryOrigin::open(directory.path()).unwrap(),
        settings,
        Cache::builder(64 << 20).on_evict(move |eviction| hook.offer(eviction)).build(),
        Versions::new(Duration::ZERO, false, 1),
        Workers::new(4),
        InodeLimit::new(1 << 20, || {}),
        Some(second_level),
    );
    Arc::new(view.unwrap())
}

fn answer(view: &View<DirectoryOrigin>, read: &Read<DirectoryOrigin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    view.finish_read(read, |answer| bytes.extend_from_slice(answer));
    bytes
}

impl Fixture {
    fn open(&self, name: &str) -> u64 {
        let told = self.view.lookup(ROOT, OsStr::new(name), 1).unwrap();
        self.view.open(told.number, OFlags::RDWR, 1).unwrap().handle
    }

    /// Reads as a session does: by a thread of the second level if that may have it.
    fn read(&self, handle: u64) -> Vec<u8> {
        let mut read = self.view.begin_read(handle, 0, 1 << 20).unwrap();
        let (send, receive) = mpsc::channel();
        if !read.is_complete() {
            let left =
                self.view.complete_from_second_level(read, send, |view, read, result, reply| {
                    result.unwrap();
                    reply.send(answer(view, read)).unwrap();
                });
            match left {
                None => return receive.recv().unwrap(),
                Some((left, _)) => read = left,
            }
            self.view.complete_read(&mut read).unwrap();
        }
        answer(&self.view, &read)
    }

    /// Memory lets go of everything, and the second level has written what it took.
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

#[test]
fn what_memory_lets_go_of_comes_back_without_the_origin() {
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
fn what_comes_back_is_counted_as_missed_and_not_as_asked_for_twice() {
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
    // And what no device knows is missed there, too, once.
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
    fixture.view.write(handle, RECORD + 5, b"written").unwrap();
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
    // The clock of the origin has to tick.
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&path, contents(2)).unwrap();
    // Read under the old version with new bytes in the origin: nothing of it may be kept.
    fixture.view.cache.reclaim(u64::MAX);
    fixture.read(first);
    fixture.forget();
    let second = fixture.open("a");
    assert_eq!(fixture.read(second), contents(2));
    fixture.forget();
    assert_eq!(fixture.read(second), contents(2));
}

#[test]
fn bytes_that_nothing_vouches_for_are_not_kept() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a");
    fs::write(&path, contents(1)).unwrap();
    let handle = fixture.open("a");
    std::thread::sleep(Duration::from_millis(20));
    // Changed between open and read: the version is the old one, the bytes are the new.
    fs::write(&path, contents(3)).unwrap();
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
    // Whatever it has forgotten comes from the origin.
    assert_eq!(fixture.read(handle), contents(1));
}

#[test]
fn what_is_wrong_with_a_second_level_is_said_and_several_are_one() {
    let directory = tempfile::tempdir().unwrap();
    let options = |path: &std::path::Path| SecondLevelOptions {
        devices: vec![directory.path().join("good"), path.into()],
        size_bytes: Some(8 << 20),
        cipher: None,
        key: KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap()),
        compression: ogive_l2::Compression::Off,
        admission: Admission::All,
        limits: ogive_l2::WriteLimits::default(),
        engine: ogive_l2::device::Engine::Probe,
    };
    let source = directory.path().join("source");
    let open =
        |path: &std::path::Path| SecondLevel::open(Some(&options(path)), &source, RECORD, 64 << 20);
    let text = directory.path().join("text");
    fs::write(&text, "something that is nobody's cache".repeat(300_000)).unwrap();
    let refused = open(&text).unwrap_err().to_string();
    assert!(refused.contains("it holds"), "{refused}");
    assert!(open(&directory.path().join("no/such/directory")).is_err());
    let both = open(&directory.path().join("other")).unwrap().unwrap();
    assert_eq!(both.tier.usage().len(), 2);
}
