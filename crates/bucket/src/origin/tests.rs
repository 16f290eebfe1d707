//! The promises of a bucket as an origin, over a store inside the process. They are about names and
//! bytes, the requests for them, and a store that changes or fails.

use super::*;
use crate::{Algorithm, Budget, Checksum, Fault, MemoryBucket, Operation, Prices};
use ogive_origin::{Errno, Identity, OFlags, Origin, Run, RunSink, VersionSecret};
use parking_lot::{Condvar, MutexGuard};

fn options(prefix: &str, metadata_ttl: Duration) -> OriginOptions {
    OriginOptions {
        prefix: prefix.to_owned(),
        metadata_ttl,
        user: 7,
        group: 8,
        file_mode: 0o640,
        directory_mode: 0o750,
        convention: Convention::Off,
    }
}

/// A TTL longer than any test takes.
pub(super) const LONG: Duration = Duration::from_secs(3600);

pub(super) fn origin(bucket: &MemoryBucket, ttl: Duration) -> BucketOrigin<MemoryBucket> {
    BucketOrigin::open(bucket.clone(), options("", ttl)).unwrap()
}

fn find(origin: &BucketOrigin<MemoryBucket>, path: &str) -> Result<Found<Node>> {
    let root = Origin::root(origin)?;
    path.split('/').try_fold(root, |found, name| origin.lookup(&found.node, OsStr::new(name)))
}

pub(super) fn open(origin: &BucketOrigin<MemoryBucket>, path: &str) -> Result<File> {
    Origin::open(origin, &find(origin, path)?.node, OFlags::RDONLY)
}

fn read(origin: &BucketOrigin<MemoryBucket>, file: &File, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    origin.read_at(file, offset, 10, &mut bytes)?;
    Ok(bytes)
}

fn names(origin: &BucketOrigin<MemoryBucket>, path: &str) -> Vec<(String, FileKind)> {
    let node = match path {
        "" => Origin::root(origin).unwrap().node,
        path => find(origin, path).unwrap().node,
    };
    let directory = origin.open_directory(&node).unwrap();
    let mut names = Vec::new();
    let visit = &mut |entry: DirectoryEntry<'_>| {
        names.push((entry.name.to_str().unwrap().to_owned(), entry.kind.unwrap()));
        true
    };
    origin.read_directory(&directory, 0, visit).unwrap();
    names.retain(|(name, _)| name != "." && name != "..");
    names
}

#[test]
fn directories_are_prefixes_and_markers_and_hide_objects_of_their_name() {
    let bucket = MemoryBucket::new();
    let keys = ["a", "a/b", "marker/", "sub/", "sub/deep/x", "b", "bad//x", "./y", "c ", "ä/ö"];
    for key in keys {
        bucket.foreign_put(key, key.to_owned());
    }
    use FileKind::{Directory, Regular};
    for ttl in [LONG, Duration::ZERO] {
        let origin = origin(&bucket, ttl);
        let top: Vec<_> = names(&origin, "");
        let expected = [
            ("a", Directory),
            ("b", Regular),
            ("bad", Directory),
            ("marker", Directory),
            ("sub", Directory),
            ("ä", Directory),
        ];
        assert_eq!(top, expected.map(|(name, kind)| (name.to_owned(), kind)));
        assert!(names(&origin, "marker").is_empty() && names(&origin, "bad").is_empty());
        assert_eq!(names(&origin, "sub"), [("deep".to_owned(), Directory)]);
        let mut hidden = 0;
        origin.counters(&mut |name, value| {
            if name == "keys_hidden" {
                hidden = value;
            }
        });
        // The object `a`, `./`, `c ` and the keys below `bad/`.
        assert!(hidden >= 4, "{hidden}");
        for (path, kind) in [("a", Directory), ("a/b", Regular), ("sub/deep/x", Regular)] {
            assert_eq!(find(&origin, path).unwrap().attributes.kind, kind, "{path}");
        }
        for path in ["none", "a/none", "sub/deep/none", "c ", "marker/x", "bad/x"] {
            assert_eq!(find(&origin, path).unwrap_err(), Errno::NOENT, "{path}");
        }
        assert_eq!(find(&origin, "b/x").unwrap_err(), Errno::NOTDIR);
        assert_eq!(find(&origin, &"x".repeat(256)).unwrap_err(), Errno::NAMETOOLONG);
    }
}

#[test]
fn numbers_and_versions_are_equal_on_all_mounts_and_versions_change_with_the_contents() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/file", "one");
    let secret = VersionSecret::new([1; 32]);
    let identity = |ttl| -> Identity { find(&origin(&bucket, ttl), "d/file").unwrap().identity() };
    let first = identity(LONG);
    assert_eq!(first, identity(LONG));
    // From a listing and from the object itself.
    assert_eq!(first, identity(Duration::ZERO));
    assert!(first.is_settled(Time::now(), LONG), "however young it is");
    bucket.foreign_put("d/file", "two");
    let second = identity(LONG);
    assert_eq!((first.inode, first.generation), (second.inode, second.generation));
    assert_ne!(first.digest(&secret), second.digest(&secret));
    let directory = find(&origin(&bucket, LONG), "d").unwrap().identity();
    assert!(!directory.is_settled(Time::now().after(LONG), Duration::ZERO));
}

#[test]
fn ten_thousand_names_with_attributes_cost_ten_list_requests_and_no_others() {
    let bucket = MemoryBucket::new();
    for name in 0..10_000 {
        bucket.foreign_put(&format!("many/{name:05}"), "12345");
    }
    let origin = origin(&bucket, Duration::ZERO);
    let node = find(&origin, "many").unwrap().node;
    let directory = origin.open_directory(&node).unwrap();
    let before = bucket.requests(Operation::List);
    let mut names = Vec::new();
    let visit = &mut |entry: DirectoryEntry<'_>| {
        names.push((entry.name.to_owned(), entry.inode));
        true
    };
    origin.read_directory(&directory, 0, visit).unwrap();
    assert_eq!(names.len(), 10_002);
    for (name, inode) in &names[2..] {
        let found = origin.lookup_in(&directory, name).unwrap();
        assert_eq!((found.attributes.size_bytes, found.attributes.inode), (5, *inode));
    }
    assert_eq!(bucket.requests(Operation::List) - before, 10);
    assert_eq!((bucket.requests(Operation::Head), bucket.requests(Operation::Get)), (0, 0));
    // A reader that continues from any place makes no request.
    let mut rest = 0;
    let visit = &mut |_: DirectoryEntry<'_>| {
        rest += 1;
        true
    };
    origin.read_directory(&directory, 9_000, visit).unwrap();
    assert_eq!((rest, bucket.requests(Operation::List) - before), (1002, 10));
}

#[test]
fn a_cached_listing_answers_for_existing_and_for_missing_names() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/a", "1");
    let origin = origin(&bucket, LONG);
    let before = bucket.requests(Operation::List);
    for _ in 0..3 {
        assert!(find(&origin, "d/a").is_ok());
        assert_eq!(find(&origin, "d/none").unwrap_err(), Errno::NOENT);
        assert_eq!(names(&origin, "d").len(), 1);
    }
    assert_eq!(bucket.requests(Operation::List) - before, 2, "one for the top, one for d");
    assert_eq!(bucket.requests(Operation::Head), 0);
}

#[test]
fn opening_a_changed_object_invalidates_its_listing() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/f", "1");
    bucket.foreign_put("d/g", "1");
    let origin = origin(&bucket, LONG);
    let node = find(&origin, "d/f").unwrap().node;
    let before = bucket.requests(Operation::List);
    Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
    assert_eq!(origin.attributes(&node, None).unwrap().size_bytes, 1);
    assert_eq!(bucket.requests(Operation::List) - before, 0, "it is as it was listed");
    bucket.foreign_put("d/f", "123");
    assert_eq!(
        origin.attributes(&node, None).unwrap().size_bytes,
        1,
        "the listing has not expired"
    );
    Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
    assert_eq!(origin.attributes(&node, None).unwrap().size_bytes, 3);
    assert_eq!(find(&origin, "d/f").unwrap().attributes.size_bytes, 3);
}

#[test]
fn a_name_in_a_large_directory_is_looked_up_by_itself() {
    let bucket = MemoryBucket::new();
    for name in 0..1500 {
        bucket.foreign_put(&format!("{name:05}"), "12345");
    }
    bucket.foreign_put("z/x", "1");
    let origin = origin(&bucket, LONG);
    let before = bucket.requests(Operation::List);
    assert_eq!(find(&origin, "00001").unwrap().attributes.size_bytes, 5);
    assert_eq!(bucket.requests(Operation::List) - before, 1);
    assert_eq!(find(&origin, "01400").unwrap().attributes.size_bytes, 5);
    assert_eq!(find(&origin, "z").unwrap().attributes.kind, FileKind::Directory);
    assert_eq!(find(&origin, "zz").unwrap_err(), Errno::NOENT);
    assert_eq!(bucket.requests(Operation::Head), 2);
    // The first page, and one request each for keys below 01400, z and zz.
    assert_eq!(bucket.requests(Operation::List) - before, 1 + 3);
}

#[test]
fn an_open_makes_one_request_and_an_open_file_never_mixes_two_objects() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "0123456789abcdefghij");
    let origin = origin(&bucket, LONG);
    let found = find(&origin, "f").unwrap();
    let (identity, node) = (found.identity(), found.node);
    let before = bucket.request_counts();
    let file = Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
    let after = bucket.request_counts();
    assert_eq!((after.head - before.head, after.get - before.get, after.list), (1, 0, before.list));
    assert_eq!(read(&origin, &file, 5).unwrap(), b"56789abcde");
    assert_eq!(read(&origin, &file, 15).unwrap(), b"fghij");
    assert_eq!(read(&origin, &file, 20).unwrap(), b"");
    // The new object is longer, so that only the condition can fail the read.
    bucket.foreign_put("f", "another object, and a longer one");
    assert_eq!(read(&origin, &file, 0).unwrap_err(), Errno::STALE);
    assert_eq!(origin.pinned_identity(&file), Some(identity), "of the object that was opened");
    assert_eq!(origin.attributes(&node, Some(&file)).unwrap().size_bytes, 20);
    let file = Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
    let vouched = origin.pinned_identity(&file);
    assert_eq!(vouched, Some(find(&origin, "f").unwrap().identity()));
    assert_ne!(vouched, Some(identity));
    assert_eq!(read(&origin, &file, 0).unwrap(), b"another ob");
    bucket.foreign_delete("f");
    assert_eq!(read(&origin, &file, 0).unwrap_err(), Errno::STALE);
    assert_eq!(Origin::open(&origin, &node, OFlags::RDONLY).unwrap_err(), Errno::STALE);
}

/// Collects the records of a run.
#[derive(Clone, Default)]
struct Keep(Arc<(Mutex<Kept>, Condvar)>);

impl Keep {
    /// The collected records, once the run has ended.
    fn ended(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.0.lock();
        let is_under_way = |kept: &mut Kept| kept.end.is_none();
        let waited = self.0.1.wait_while_for(&mut kept, is_under_way, Duration::from_secs(60));
        assert!(!waited.timed_out(), "never came: the end of a run");
        kept
    }
}

#[derive(Default)]
struct Kept {
    records: Vec<(u64, Vec<u8>)>,
    end: Option<Result<()>>,
    wanted: usize,
}

impl RunSink for Keep {
    fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()> {
        let mut kept = self.0.0.lock();
        kept.records.push((index, bytes));
        match kept.records.len() == kept.wanted {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn end(self, result: Result<()>) {
        self.0.0.lock().end = Some(result);
        self.0.1.notify_all();
    }
}

/// Reads the first record of a file. Returns the number of requests.
fn first_record(
    (bucket, origin): (&MemoryBucket, &BucketOrigin<MemoryBucket>),
    file: &File,
) -> (Vec<u8>, Result<()>, u64) {
    let (keep, before) = (Keep::default(), bucket.requests(Operation::Get));
    let (record_size_bytes, size_bytes) = (131_072, u64::MAX);
    let run = Run { first: 0, records: 1, record_size_bytes, size_bytes, is_demanded: true };
    origin.read_run(file, run, keep.clone());
    let mut kept = keep.ended();
    let bytes = std::mem::take(&mut kept.records).into_iter().flat_map(|(_, bytes)| bytes);
    (bytes.collect(), kept.end.unwrap(), bucket.requests(Operation::Get) - before)
}

#[test]
fn opening_a_small_object_that_is_not_cached_fetches_its_bytes() {
    let bucket = MemoryBucket::new();
    for (key, size) in [("empty", 0), ("small", 1000), ("edge", 131_072), ("long", 131_073)] {
        bucket.foreign_put(key, vec![b'x'; size]);
    }
    let origin = origin(&bucket, LONG);
    let open = |key: &str, is_cached: bool| {
        let found = find(&origin, key).unwrap();
        let identity = found.identity();
        let is_cached = |asked: &Identity| {
            assert_eq!(*asked, identity);
            is_cached
        };
        let requests = || (bucket.requests(Operation::Head), bucket.requests(Operation::Get));
        let before = requests();
        let file = origin.open_unread(&found.node, OFlags::RDONLY, &is_cached).unwrap();
        let after = requests();
        (file, (after.0 - before.0, after.1 - before.1))
    };
    for (key, is_cached, requests) in [
        ("empty", false, (1, 0)),
        ("small", true, (1, 0)),
        ("small", false, (0, 1)),
        ("edge", false, (0, 1)),
        ("long", false, (1, 0)),
    ] {
        assert_eq!(open(key, is_cached).1, requests, "{key}, {is_cached}");
    }
    // The bytes belong to the opened object, whatever the key holds by now, and are returned once.
    let (file, _) = open("small", false);
    bucket.foreign_put("small", vec![b'y'; 200_000]);
    let (bytes, end, requests) = first_record((&bucket, &origin), &file);
    assert_eq!((bytes, end, requests), (vec![b'x'; 1000], Ok(()), 0));
    assert_eq!(first_record((&bucket, &origin), &file).1, Err(Errno::STALE));
    // The object has grown since it was listed: the open returns the current one.
    let (file, requests) = open("small", false);
    assert_eq!((requests, file.object.size_bytes), ((0, 1), 200_000));
    assert_eq!(first_record((&bucket, &origin), &file).0, vec![b'y'; 131_072]);
    // The store does not return the bytes, and the open succeeds all the same.
    let archived = BucketError::Archived { key: "edge".to_owned() };
    bucket.doom(Operation::Get, Fault::Fails(archived));
    assert_eq!(open("edge", false).1, (1, 1));
    // Unread bytes are bounded.
    let mut waiting = Vec::new();
    while let (file, (0, 1)) = open("edge", false) {
        waiting.push(file);
    }
    assert_eq!(waiting.len(), 128);
    waiting.pop();
    assert_eq!(open("edge", false).1, (0, 1));
}

#[test]
fn a_run_is_one_request_that_feeds_many_records() {
    let bucket = MemoryBucket::new();
    let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 7) as u8).collect();
    bucket.foreign_put("f", body.clone());
    let origin = origin(&bucket, LONG);
    let file = open(&origin, "f").unwrap();
    let run = |first, records, wanted, record_size_bytes: usize| {
        let keep = Keep::default();
        keep.0.0.lock().wanted = wanted;
        let before = bucket.requests(Operation::Get);
        let (size_bytes, is_demanded) = (u64::MAX, true);
        let run = Run { first, records, record_size_bytes, size_bytes, is_demanded };
        origin.read_run(&file, run, keep.clone());
        let mut kept = keep.ended();
        let records = std::mem::take(&mut kept.records);
        for (position, (index, bytes)) in records.iter().enumerate() {
            assert_eq!(*index, first + position as u64);
            let start = (*index as usize * record_size_bytes).min(body.len());
            let end = (start + record_size_bytes).min(body.len());
            assert_eq!(*bytes, body[start..end], "record {index}");
        }
        let end = kept.end.unwrap();
        (records.len(), end, bucket.requests(Operation::Get) - before)
    };
    assert_eq!(run(1, 5, 0, 131_072), (5, Ok(()), 1));
    assert_eq!(run(6, 5, 0, 131_072), (2, Ok(()), 1), "the last is short");
    assert_eq!(run(0, 9, 0, 500_000), (3, Ok(()), 1), "an empty record marks the end");
    assert_eq!(run(9, 5, 0, 131_072), (1, Ok(()), 0), "beyond the end");
    assert_eq!(run(0, 5, 2, 131_072), (2, Ok(()), 1), "no more is wanted");
    assert_eq!(run(0, 0, 0, 131_072), (0, Ok(()), 0));
    bucket.foreign_put("f", body.clone());
    assert_eq!(run(0, 5, 0, 131_072), (0, Err(Errno::STALE), 1));
}

#[test]
fn a_run_that_fails_midway_delivers_the_records_before_and_the_error() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", vec![7; 100_000]);
    let origin = origin(&bucket, LONG);
    let file = open(&origin, "f").unwrap();
    let error = BucketError::Failed { key: "f".into(), message: "reset".into() };
    bucket.doom(Operation::Get, Fault::BreaksOff(25_000, error));
    let keep = Keep::default();
    let run = Run {
        first: 0,
        records: 10,
        record_size_bytes: 10_000,
        size_bytes: 100_000,
        is_demanded: true,
    };
    origin.read_run(&file, run, keep.clone());
    let kept = keep.ended();
    assert_eq!((kept.records.len(), kept.end), (2, Some(Err(Errno::IO))));
}

#[test]
fn an_error_of_the_store_reaches_the_program_as_the_table_says() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "x");
    let origin = origin(&bucket, Duration::ZERO);
    let node = find(&origin, "f").unwrap().node;
    let denied = BucketError::Denied { key: "f".into(), message: "expired".into() };
    let busy = BucketError::Busy { key: "f".into(), message: "SlowDown".into() };
    for (error, errno) in [(denied, Errno::ACCESS), (busy, Errno::IO)] {
        bucket.doom(Operation::Head, Fault::Fails(error.clone()));
        assert_eq!(Origin::open(&origin, &node, OFlags::RDONLY).unwrap_err(), errno);
        bucket.doom(Operation::Head, Fault::Fails(error.clone()));
        assert_eq!(origin.attributes(&node, None).unwrap_err(), errno);
        bucket.doom(Operation::List, Fault::Fails(error.clone()));
        assert_eq!(find(&origin, "f").unwrap_err(), errno);
        bucket.doom(Operation::List, Fault::Fails(error.clone()));
        assert_eq!(origin.check_health().unwrap_err(), errno);
        let file = Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
        bucket.doom(Operation::Get, Fault::Fails(error));
        assert_eq!(read(&origin, &file, 0).unwrap_err(), errno);
        assert_eq!(read(&origin, &file, 0).unwrap(), b"x");
    }
}

#[test]
fn a_mount_shows_only_its_prefix_which_has_to_exist() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("p/q/f", "x");
    bucket.foreign_put("secret", "x");
    let at = |prefix: &str| BucketOrigin::open(bucket.clone(), options(prefix, LONG));
    let origin = at("p/q/").unwrap();
    assert_eq!(names(&origin, ""), [("f".to_owned(), FileKind::Regular)]);
    for path in ["secret", "..", "../secret", "q", ""] {
        assert!(find(&origin, path).is_err(), "{path}");
    }
    assert!(matches!(at("none/"), Err(BucketError::NotFound { .. })));
    assert!(matches!(at("p//"), Err(BucketError::BadKey { .. })));
    assert!(BucketOrigin::open(MemoryBucket::new(), options("", LONG)).is_ok(), "an empty bucket");
}

#[test]
fn a_name_leads_to_its_key_without_a_request() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/f", "x");
    let origin = origin(&bucket, LONG);
    let (d, f) = (find(&origin, "d").unwrap().node, find(&origin, "d/f").unwrap().node);
    let root = Origin::root(&origin).unwrap().node;
    let before = bucket.request_counts();
    let leads = |parent: &Node, name: &str, node: &Node| {
        origin.leads_to(parent, OsStr::new(name), node).unwrap()
    };
    assert!(leads(&d, "f", &f) && leads(&root, "d", &d));
    assert!(!leads(&root, "f", &f) && !leads(&d, "g", &f) && !leads(&d, "d", &d));
    assert_eq!(bucket.request_counts(), before);
}

#[test]
fn a_budget_holds_prefetch_back_and_reads_go_on() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", vec![7; 100_000]);
    let mut origin = origin(&bucket, LONG);
    assert!(origin.may_read_ahead());
    let counter = |origin: &BucketOrigin<MemoryBucket>, name: &str| {
        let mut found = None;
        origin.counters(&mut |told, value| found = (told == name).then_some(value).or(found));
        found.unwrap()
    };
    let file = open(&origin, "f").unwrap();
    let prices = Prices { get_nanodollars: 1_000_000, ..Prices::AMAZON };
    let budget = Budget { microdollars_a_day: Some(20_000), ..Budget::default() };
    origin.set_budget(Some(prices), budget);
    let mut reads = 0;
    while origin.may_read_ahead() {
        read(&origin, &file, 0).unwrap();
        reads += 1;
    }
    assert_eq!(reads, 10, "half of a day's money may be spent at any time");
    assert_eq!(counter(&origin, "origin_held_back_by_budget"), 1);
    assert!(counter(&origin, "origin_microdollars") >= 10_000);
    assert_eq!(read(&origin, &file, 0).unwrap().len(), 10, "demand reads are not held back");
    let budget = Budget { requests_a_second: Some(1), ..Budget::default() };
    origin.set_budget(Some(prices), budget);
    assert!(!origin.may_read_ahead(), "this second's requests exceed the limit");
    assert_eq!(counter(&origin, "origin_held_back_by_requests"), 1);
}

#[test]
fn stale_names_and_bytes_are_shown_while_the_store_is_offline() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("d/f", vec![7; 10]);
    bucket.foreign_put("d/never-seen/g", "x");
    let mut origin = origin(&bucket, Duration::ZERO);
    origin.show_stale();
    bucket.foreign_put("way/to/f", "x");
    open(&origin, "way/to/f").unwrap();
    assert_eq!(names(&origin, "d").len(), 2);
    let node = find(&origin, "d/f").unwrap().node;
    let before = open(&origin, "d/f").unwrap();
    let silent = || BucketError::TimedOut { key: "d/f".into(), seconds: 30 };
    // An error answer of the store is no reason to show stale answers.
    let denied = BucketError::Denied { key: "d/f".into(), message: "expired".into() };
    bucket.doom(Operation::Head, Fault::Fails(denied));
    assert_eq!(Origin::open(&origin, &node, OFlags::RDONLY).unwrap_err(), Errno::ACCESS);
    assert_eq!(origin.availability().gone, None);
    bucket.doom(Operation::Head, Fault::Fails(silent()));
    (0..1000).for_each(|_| bucket.doom(Operation::List, Fault::Fails(silent())));
    let heads = bucket.requests(Operation::Head);
    let stale = Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
    assert_eq!(
        origin.pinned_identity(&stale),
        origin.pinned_identity(&before),
        "the same contents"
    );
    assert!(origin.availability().gone.is_some() && origin.availability().shows_stale);
    // No read waits for the store now.
    open(&origin, "d/f").unwrap();
    assert_eq!(names(&origin, "d").len(), 2);
    assert_eq!(origin.attributes(&node, None).unwrap().size_bytes, 10);
    open(&origin, "way/to/f").unwrap();
    assert_eq!(find(&origin, "d/none").unwrap_err(), Errno::NOENT, "it was not listed");
    assert_eq!(find(&origin, "d/never-seen/g").unwrap_err(), Errno::IO, "it was never seen");
    let keep = Keep::default();
    let run =
        Run { first: 0, records: 1, record_size_bytes: 10, size_bytes: 10, is_demanded: true };
    origin.read_run(&stale, run, keep.clone());
    assert_eq!(keep.ended().end, Some(Err(Errno::IO)), "no bytes but those that are cached");
    assert_eq!(bucket.requests(Operation::Head), heads + 1);
    // Once the store answers, names and bytes are requested again.
    bucket.clear_faults();
    let late = std::time::Instant::now() + Duration::from_secs(60);
    while origin.availability().gone.is_some() {
        assert!(std::time::Instant::now() < late, "never came: the store answers again");
        let _ = find(&origin, "d/f");
        std::thread::sleep(Duration::from_millis(20));
    }
    bucket.foreign_put("d/f", vec![8; 20]);
    let file = open(&origin, "d/f").unwrap();
    assert_eq!(origin.attributes(&node, Some(&file)).unwrap().size_bytes, 20);
    assert_eq!(origin.availability().losses, 1);
}

#[test]
fn without_offline_stale_each_request_finds_out_for_itself() {
    let bucket = MemoryBucket::new();
    bucket.foreign_put("f", "x");
    let origin = origin(&bucket, Duration::ZERO);
    let node = find(&origin, "f").unwrap().node;
    let silent = BucketError::TimedOut { key: "f".into(), seconds: 30 };
    bucket.doom(Operation::Head, Fault::Fails(silent));
    assert_eq!(Origin::open(&origin, &node, OFlags::RDONLY).unwrap_err(), Errno::IO);
    assert_eq!(origin.availability(), ogive_origin::Availability::default());
    Origin::open(&origin, &node, OFlags::RDONLY).unwrap();
}

/// Reads records of a file, and waits for them.
fn run_of(
    origin: &BucketOrigin<MemoryBucket>,
    file: &File,
    first: u64,
    records: u64,
) -> Result<()> {
    let keep = Keep::default();
    let run =
        Run { first, records, record_size_bytes: 1000, size_bytes: u64::MAX, is_demanded: true };
    origin.read_run(file, run, keep.clone());
    keep.ended().end.unwrap()
}

#[test]
fn an_object_is_verified_in_any_order_of_reads() {
    let bucket = MemoryBucket::new();
    let body: Vec<u8> = (0..4500_u32).map(|at| (at / 3) as u8).collect();
    let algorithm = Algorithm::Crc64Nvme;
    let (good, bad) = (algorithm.of(&body), algorithm.of(&body) ^ 1);
    for (key, value) in [("good", good), ("bad", bad)] {
        bucket.foreign_put(key, body.clone());
        bucket.show_checksum(key, Checksum { algorithm, value });
    }
    let origin = origin(&bucket, LONG);
    let told = |name: &str| {
        let mut found = None;
        origin.counters(&mut |told, value| found = (told == name).then_some(value).or(found));
        found.unwrap()
    };
    for key in ["good", "bad"] {
        let file = open(&origin, key).unwrap();
        for (first, records) in [(3, 2), (0, 2), (0, 1)] {
            assert_eq!(run_of(&origin, &file, first, records), Ok(()));
        }
        assert!(!origin.is_corrupt(&file), "a record of {key} was not read yet");
        assert_eq!(run_of(&origin, &file, 2, 1), Ok(()));
        assert_eq!(origin.is_corrupt(&file), key == "bad");
    }
    assert_eq!((told("origin_checksums_matched"), told("origin_checksum_mismatches")), (1, 1));
    assert_eq!(open(&origin, "bad").unwrap_err(), Errno::IO);
    // A new object under the key is not spoilt.
    bucket.foreign_put("bad", body.clone());
    bucket.show_checksum("bad", Checksum { algorithm, value: good });
    let file = open(&origin, "bad").unwrap();
    assert_eq!(run_of(&origin, &file, 0, 5), Ok(()));
    assert!(!origin.is_corrupt(&file));
}
