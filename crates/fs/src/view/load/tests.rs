//! Loads from an origin that reads in the background. The tests of the view have the other kinds.

use super::super::Settings;
use super::*;
use crate::inode_limit::InodeLimit;
use crate::testing::{FakeOrigin, Going, RECORD, SIZE, attributes, contents};
use crate::version::Versions;
use crate::view::Read;
use crate::workers::Workers;
use ogive_arc::Cache;
use ogive_origin::{OFlags, Time, VersionSecret};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A view with that file open.
struct Fixture {
    view: Arc<View<FakeOrigin>>,
    handle: u64,
}

/// The result of a read.
type Answer = Arc<Mutex<Option<Result<Vec<u8>>>>>;

fn fixture(prefetch_max_bytes: u64) -> Fixture {
    let settings = Settings {
        record_size_bytes: RECORD,
        direct_io: false,
        exclusive: false,
        metadata_ttl: Duration::from_secs(3600),
        negative_ttl: Duration::from_secs(3600),
        prefetch_max_bytes,
        read_only: false,
        immutable: false,
        permissions: crate::view::Permissions::Kernel,
    };
    let versions = Versions::new(Duration::ZERO, false, 1, VersionSecret::new([1; 32]));
    let limit = InodeLimit::new(1 << 20, || {});
    let (cache, workers) = (Cache::new(64 << 20), Workers::new(4));
    let view = View::new(FakeOrigin::default(), settings, cache, versions, workers, limit, None);
    let view = Arc::new(view.unwrap());
    let known = view.lookup(crate::inode_number::ROOT, OsStr::new("file"), 1).unwrap();
    let handle = view.open(known.number, OFlags::RDONLY, 1).unwrap().handle;
    Fixture { view, handle }
}

impl Fixture {
    fn read(&self, first: u64, records: u64) -> Answer {
        self.read_by(self.handle, first, records).unwrap()
    }

    fn read_by(&self, handle: u64, first: u64, records: u64) -> Result<Answer> {
        let answer = Answer::default();
        let (offset, length) = (first * RECORD, records * RECORD);
        let read = self.view.begin_read(handle, offset, length, false)?.unwrap();
        let done = |view: &Arc<View<FakeOrigin>>, read: Result<Read<_>>, answer: Answer| {
            let mut bytes = Vec::new();
            let result = read.map(|read| view.finish_read(&read, |read| bytes = read.concat()));
            assert!(answer.lock().replace(result.map(|()| bytes)).is_none());
        };
        if read.is_complete() {
            done(&self.view, Ok(read), answer.clone());
        } else {
            assert!(self.view.complete_elsewhere(read, answer.clone(), done).is_none());
        }
        Ok(answer)
    }

    fn open(&self) -> u64 {
        let known = self.view.lookup(crate::inode_number::ROOT, OsStr::new("file"), 1).unwrap();
        self.view.open(known.number, OFlags::RDONLY, 1).unwrap().handle
    }

    fn runs(&self) -> Vec<Going> {
        std::mem::take(&mut *self.view.origin.runs.lock())
    }

    /// The only run in flight.
    fn run(&self) -> Going {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    fn threads(&self) -> u64 {
        self.view.workers.statistics().threads
    }
}

fn bytes(first: u64, records: u64) -> Option<Result<Vec<u8>>> {
    Some(Ok((first..first + records).flat_map(contents).collect()))
}

#[test]
fn a_read_is_one_run_that_no_thread_waits_for() {
    let fixture = fixture(0);
    let answer = fixture.read(2, 3);
    let mut going = fixture.run();
    assert_eq!((going.run.first, going.run.records, going.run.size_bytes), (2, 3, SIZE));
    for _ in 0..3 {
        assert!(answer.lock().is_none());
        going.record();
    }
    assert!(answer.lock().take() == bytes(2, 3), "before the run has ended");
    going.end(Ok(()));
    assert_eq!(fixture.threads(), 0);
    assert!(fixture.read(2, 3).lock().take() == bytes(2, 3));
    assert!(fixture.runs().is_empty(), "the cache has it");
    // The last record is short, and the records behind it are not requested.
    let answer = fixture.read(9, 9);
    let mut going = fixture.run();
    assert_eq!((going.run.first, going.run.records), (9, 2));
    going.record();
    going.record();
    going.end(Ok(()));
    assert!(answer.lock().take() == bytes(9, 2));
}

#[test]
fn a_reader_of_a_record_in_flight_waits_for_that_record_alone_and_on_no_thread() {
    let fixture = fixture(0);
    let first = fixture.read(0, 4);
    let mut going = fixture.run();
    let (second, others) = (fixture.read(1, 1), fixture.read(3, 3));
    let mut rest = fixture.run();
    assert_eq!(
        (rest.run.first, rest.run.records),
        (4, 2),
        "only the records that are not in flight"
    );
    going.record();
    assert!(second.lock().is_none());
    going.record();
    assert!(second.lock().take() == bytes(1, 1));
    going.record();
    going.record();
    going.end(Ok(()));
    assert!(first.lock().take() == bytes(0, 4));
    assert!(others.lock().is_none());
    rest.record();
    rest.record();
    rest.end(Ok(()));
    assert!(others.lock().take() == bytes(3, 3));
    assert_eq!((fixture.threads(), fixture.view.counters.counts().origin_reads), (0, 6));
}

#[test]
fn an_error_within_a_run_fails_only_the_records_that_are_missing() {
    let fixture = fixture(0);
    let answer = fixture.read(0, 3);
    let mut going = fixture.run();
    let waiting = fixture.read(2, 1);
    going.record();
    going.end(Err(Errno::STALE));
    assert_eq!(answer.lock().take(), Some(Err(Errno::STALE)));
    assert_eq!(waiting.lock().take(), Some(Err(Errno::STALE)));
    assert!(fixture.read(0, 1).lock().take() == bytes(0, 1), "this record had arrived");
    let again = fixture.read(1, 2);
    let mut going = fixture.run();
    assert_eq!((going.run.first, going.run.records), (1, 2), "an error is not cached");
    going.record();
    going.record();
    assert!(again.lock().take() == bytes(1, 2));
}

#[test]
fn an_error_of_an_origin_that_is_waited_for_belongs_to_one_record() {
    let fixture = fixture(0);
    *fixture.view.origin.gives_all_but.lock() = Some(2);
    fixture.view.origin_latency.note_record(Duration::from_micros(1));
    let read = |first, records| {
        let handle = fixture.handle;
        let read =
            fixture.view.begin_read(handle, first * RECORD, records * RECORD, false)?.unwrap();
        let read = fixture.view.complete_read(read)?;
        let mut bytes = Vec::new();
        fixture.view.finish_read(&read, |pieces| bytes = pieces.concat());
        Ok(bytes)
    };
    assert_eq!(read(0, 5), Err(Errno::IO));
    assert!(Some(read(0, 2)) == bytes(0, 2), "these records had arrived");
    assert!(Some(read(3, 2)) == bytes(3, 2));
    assert_eq!(read(1, 2), Err(Errno::IO), "requested again");
    *fixture.view.origin.gives_all_but.lock() = Some(u64::MAX);
    assert!(Some(read(0, 5)) == bytes(0, 5), "and no error is cached");
    assert_eq!(fixture.threads(), 0, "fast records are read by the asking thread");
}

#[test]
fn a_run_that_ends_too_early_or_is_given_up_leaves_no_reader_waiting() {
    let fixture = fixture(0);
    let answer = fixture.read(0, 2);
    let joined = fixture.read(1, 1);
    let mut going = fixture.run();
    going.record();
    going.end(Ok(()));
    // Each asks for the record itself now, one of them first.
    let mut again = fixture.run();
    assert_eq!((again.run.first, again.run.records), (1, 1));
    again.record();
    assert!(answer.lock().take() == bytes(0, 2) && joined.lock().take() == bytes(1, 1));
    // Without its own record a request cannot continue: its exchange answers when it is dropped.
    let answer = fixture.read(5, 1);
    drop(fixture.run());
    assert_eq!((answer.lock().take(), Arc::strong_count(&answer)), (None, 1));
    let again = fixture.read(5, 1);
    fixture.run().record();
    assert!(again.lock().take() == bytes(5, 1));
    assert_eq!(fixture.read(6, 1).lock().take(), None);
    fixture.run().end(Ok(()));
}

#[test]
fn a_read_whose_runs_are_given_up_claims_all_missing_records_in_one_run() {
    let fixture = fixture(0);
    let first = fixture.read(0, 2);
    let mut going = fixture.run();
    let failed = fixture.read(2, 2);
    let other = fixture.run();
    // All records of this read are in flight, so it starts no run.
    let answer = fixture.read(1, 3);
    assert!(fixture.runs().is_empty());
    other.end(Err(Errno::IO));
    assert_eq!(failed.lock().take(), Some(Err(Errno::IO)));
    going.record();
    going.end(Ok(()));
    let mut again = fixture.run();
    assert_eq!((again.run.first, again.run.records), (1, 3));
    (0..3).for_each(|_| again.record());
    again.end(Ok(()));
    assert!(answer.lock().take() == bytes(1, 3) && first.lock().take() == bytes(0, 2));
    assert!(fixture.runs().is_empty(), "no record is requested twice");
}

#[test]
fn a_prefetch_is_a_run_and_its_errors_reach_no_reader() {
    let fixture = fixture(8 * RECORD);
    for index in 0..4 {
        let answer = fixture.read(index, 1);
        // The prefetched record is requested first.
        let (own, ahead): (Vec<_>, Vec<_>) =
            fixture.runs().into_iter().partition(|going| going.run.first == index);
        for mut going in own {
            going.record();
            going.end(Ok(()));
        }
        assert!(answer.lock().take() == bytes(index, 1));
        let Some(going) = ahead.into_iter().next() else { continue };
        assert!(going.run.records > 1, "{:?}", going.run);
        assert_eq!(fixture.view.counters.counts().prefetch_active, going.run.records);
        let first = going.run.first;
        let waiting = fixture.read(first, 1);
        drop(fixture.runs());
        going.end(Err(Errno::IO));
        // A reader asks the origin for the record itself.
        let mut again = fixture.run();
        assert_eq!((again.run.first, again.run.records), (first, 1));
        again.record();
        assert!(waiting.lock().take() == bytes(first, 1));
        let counts = fixture.view.counters.counts();
        assert!(counts.prefetch_issued > 1 && counts.prefetch_active == 0);
        assert_eq!(fixture.threads(), 0);
        return;
    }
    panic!("a sequential reader was not prefetched");
}

#[test]
fn records_the_origin_vouches_for_are_their_versions() {
    let fixture = fixture(0);
    let open = fixture.view.file(fixture.handle).unwrap();
    let version = open.inode.contents().unwrap().version;
    let missing =
        |version| MissingRecord { open: open.clone(), version, index: 0, sequential: false };
    assert!(fixture.view.is_still(&missing(version)));
    assert!(!fixture.view.is_still(&missing(version ^ 1)), "another version's");
    let settled = attributes(2).identity().is_settled(Time::now(), Duration::ZERO);
    assert!(settled, "or the version would be unique");
}

#[test]
fn records_of_an_open_file_the_origin_vouches_for_never_mix_with_later_contents() {
    let fixture = fixture(0);
    let old = fixture.handle;
    let early = fixture.read_by(old, 0, 1).unwrap();
    let mut under_way = fixture.run();
    fixture.view.origin.overwritten.store(100, Ordering::SeqCst);
    let new = fixture.open();
    // The old file gets neither uncached records, nor records in flight for the new contents, nor
    // cached records of the new contents.
    assert_eq!(fixture.read_by(old, 1, 1).err(), Some(Errno::STALE));
    assert!(fixture.runs().is_empty(), "the origin was not asked for it");
    let answer = fixture.read_by(new, 1, 1).unwrap();
    assert_eq!(fixture.read_by(old, 1, 1).err(), Some(Errno::STALE));
    fixture.run().record();
    let expected: Vec<u8> = contents(1).iter().map(|byte| byte.wrapping_add(100)).collect();
    assert!(answer.lock().take() == Some(Ok(expected)));
    assert_eq!(fixture.read_by(old, 1, 1).err(), Some(Errno::STALE));
    // Records that were requested before belong to the old file, and are not cached for the new
    // one.
    under_way.record();
    assert!(early.lock().take() == bytes(0, 1));
    let answer = fixture.read_by(new, 0, 1).unwrap();
    assert!(answer.lock().is_none(), "not from the cache");
    fixture.run().record();
    let expected: Vec<u8> = contents(0).iter().map(|byte| byte.wrapping_add(100)).collect();
    assert!(answer.lock().take() == Some(Ok(expected)));
}

#[test]
fn attributes_of_an_open_file_the_origin_vouches_for_are_not_those_of_later_contents() {
    let fixture = fixture(0);
    let old = fixture.handle;
    let number = fixture.view.file(old).unwrap().inode.number;
    let modified = |handle| {
        let known = fixture.view.attributes(number, Some(handle));
        known.map(|known| known.attributes.modified.seconds)
    };
    assert_eq!(modified(old), Ok(0));
    fixture.view.origin.overwritten.store(100, Ordering::SeqCst);
    let new = fixture.open();
    assert_eq!(modified(old), Err(Errno::STALE));
    assert_eq!(modified(new), Ok(100));
}

#[test]
fn without_permission_to_read_ahead_the_demanded_request_is_longer() {
    let fixture = fixture(8 * RECORD);
    fixture.view.origin.is_sparing.store(true, Ordering::SeqCst);
    let mut requests = 0;
    for index in 0..=10 {
        let answer = fixture.read(index, 1);
        for mut going in fixture.runs() {
            assert_eq!(going.run.first, index, "only the record that a reader waits for");
            assert!(going.run.is_demanded && going.run.records <= 9);
            requests += 1;
            (0..going.run.records).for_each(|_| going.record());
            going.end(Ok(()));
        }
        assert!(answer.lock().take() == bytes(index, 1), "record {index}");
    }
    assert!(requests < 11, "not one for each record");
    assert_eq!(fixture.view.counters.counts().origin_reads, 11, "each record once");
}

#[test]
fn a_corrupt_file_is_not_read_though_it_is_cached() {
    let fixture = fixture(0);
    let answer = fixture.read(0, 1);
    fixture.run().record();
    assert!(answer.lock().take() == bytes(0, 1));
    fixture.view.origin.is_corrupt.store(true, Ordering::SeqCst);
    assert_eq!(fixture.read_by(fixture.handle, 0, 1).err(), Some(Errno::IO));
    assert!(fixture.runs().is_empty());
}

/// A network file system caches names, and leads a path walk to the same object again.
#[test]
fn a_thread_that_met_a_removed_object_revalidates_the_name() {
    let fixture = fixture(0);
    let (view, origin) = (&fixture.view, &fixture.view.origin);
    let (name, number) = (OsStr::new("file"), 2);
    let lookup = |thread| view.lookup(crate::inode_number::ROOT, name, thread).unwrap();
    let revalidations = || origin.revalidations.load(Ordering::SeqCst);
    assert_eq!(lookup(7).number, number);
    origin.is_stale.store(true, Ordering::SeqCst);
    assert_eq!(view.open(number, OFlags::RDONLY, 7).unwrap_err(), Errno::STALE);
    view.met_stale(7);
    lookup(8);
    assert_eq!(revalidations(), 0, "another thread met no removed object");
    lookup(7);
    assert_eq!(revalidations(), 1);
    let opened = view.open(number, OFlags::RDONLY, 7).unwrap();
    view.release(opened.handle);
}

#[test]
fn where_names_fold_case_the_kernel_caches_no_name_and_no_absence() {
    let fixture = fixture(0);
    let view = &fixture.view;
    let known = view.lookup(crate::inode_number::ROOT, OsStr::new("file"), 1).unwrap();
    let remembered =
        || (view.may_remember_name(&known), view.may_remember_absence(crate::inode_number::ROOT));
    assert_eq!(remembered(), (true, true));
    view.origin.folds_case.store(true, Ordering::SeqCst);
    assert_eq!(remembered(), (false, false));
}

#[test]
fn a_source_without_capabilities_is_not_asked_for_them_before_a_write() {
    let fixture = fixture(0);
    let view = &fixture.view;
    let number = view.lookup(crate::inode_number::ROOT, OsStr::new("file"), 1).unwrap().number;
    let capability = OsStr::new("security.capability");
    assert!(!view.is_known_to_lack(number, capability));
    // This source refuses every request.
    assert_eq!(view.get_xattr(number, capability, &mut []), Err(Errno::NOSYS));
    view.origin.lacks_capabilities.store(true, Ordering::SeqCst);
    assert!(view.is_known_to_lack(number, capability));
    assert_eq!(view.get_xattr(number, capability, &mut []), Err(Errno::NODATA));
    assert!(
        !view.is_known_to_lack(number, OsStr::new("user.capability")),
        "other attributes may exist"
    );
}
