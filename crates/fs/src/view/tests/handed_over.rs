//! Records that a page cache above has taken over are kept while memory is free, and evicted first
//! when it is not. Records that the page cache asks for again are kept. The tests count reads of
//! the source in five passes, and the page cache is dropped between passes.

use super::*;

const RECORDS: u64 = 512;
/// The limit of copies while memory is free.
const FREE: u64 = u64::MAX;
const NONE: u64 = 0;

/// How a program reads a file, as the requests below an empty page cache: offset and length.
type Way = fn(u64) -> Vec<(u64, u64)>;

/// `cat`, and any program that reads a whole file. The kernel reads ahead in growing pieces, up to
/// its limit, here of eight records.
fn readahead(size: u64) -> Vec<(u64, u64)> {
    let (mut requests, mut at, mut length) = (Vec::new(), 0, RECORD / 2);
    while at < size {
        requests.push((at, length.min(size - at)));
        at += length;
        length = (length * 2).min(8 * RECORD);
    }
    requests
}

/// Whole records, at random.
fn random_records(size: u64) -> Vec<(u64, u64)> {
    shuffled(size / RECORD).into_iter().map(|index| (index * RECORD, RECORD)).collect()
}

/// A sixteenth of each record, at random.
fn random_pieces(size: u64) -> Vec<(u64, u64)> {
    let piece = |index| (index * RECORD + RECORD / 4, RECORD / 16);
    shuffled(size / RECORD).into_iter().map(piece).collect()
}

/// A map that is touched at random: the kernel reads around each fault, across records.
fn faults(size: u64) -> Vec<(u64, u64)> {
    let around = |index: u64| ((index * RECORD).saturating_sub(RECORD / 2), RECORD);
    shuffled(size / RECORD).into_iter().map(around).collect()
}

/// One program reads whole records, another pieces of them.
fn mixed(size: u64) -> Vec<(u64, u64)> {
    random_records(size).into_iter().zip(random_pieces(size)).flat_map(|(a, b)| [a, b]).collect()
}

/// All numbers below a power of two, in an order without a pattern.
fn shuffled(count: u64) -> Vec<u64> {
    assert!(count.is_power_of_two());
    (0..count).map(|number| (number * 2_654_435_761 + 7) % count).collect()
}

/// Reads of the source in each of five passes, with memory for this many records.
fn reads(way: Way, capacity_records: u64, handed_limit_bytes: u64) -> Vec<u64> {
    let mut fixture = fixture_with(Duration::ZERO, |settings| {
        (settings.direct_io, settings.exclusive) = (false, true);
    });
    let size = RECORDS * RECORD;
    // Room for the weight of a record beyond its bytes.
    let capacity = capacity_records * (RECORD + RECORD / 16);
    let cache = Cache::builder(capacity).start_bytes(capacity / 8).min_bytes(capacity / 8);
    Arc::get_mut(&mut fixture.view).unwrap().cache = cache.sublists(4).build();
    fixture.view.cache.limit_handed(handed_limit_bytes);
    let contents = pattern(size as usize, 3);
    fs::write(fixture.path("a"), &contents).unwrap();
    let pass = |_| {
        let before = fixture.origin_reads();
        let opened = fixture.open("a", OFlags::RDONLY);
        for (offset, length) in way(size) {
            let expected = &contents[offset as usize..(offset + length).min(size) as usize];
            assert_eq!(fixture.read(opened.handle, offset, length), expected);
        }
        fixture.view.release(opened.handle);
        fixture.origin_reads() - before
    };
    let reads = (0..5).map(pass).collect();
    fixture.view.cache.validate().unwrap();
    reads
}

/// The last field is how often, apart, a pass asks for a record.
const WAYS: [(&str, Way, u64); 5] = [
    ("readahead", readahead, 1),
    ("whole records at random", random_records, 1),
    ("pieces at random", random_pieces, 1),
    ("faults of a map", faults, 2),
    ("records and pieces", mixed, 2),
];

#[test]
fn a_set_that_fits_is_read_once_while_memory_is_free() {
    for (name, way, _) in WAYS {
        for capacity in [RECORDS, 4 * RECORDS] {
            assert_eq!(reads(way, capacity, FREE), [RECORDS, 0, 0, 0, 0], "{name}, {capacity}");
        }
    }
}

#[test]
fn a_set_that_fits_is_read_at_most_twice_while_no_memory_is_free() {
    for (name, way, asked) in WAYS {
        for capacity in [RECORDS, 4 * RECORDS] {
            let reads = reads(way, capacity, NONE);
            // A record that is requested twice in one pass may be loaded twice in that pass.
            assert!(reads[0] <= asked * RECORDS, "{name}, {capacity}: {reads:?}");
            assert!(reads[0] + reads[1] <= 2 * RECORDS, "{name}, {capacity}: {reads:?}");
            assert_eq!(reads[2..], [0, 0, 0], "{name}, {capacity}: {reads:?}");
        }
    }
}

#[test]
fn in_a_set_of_twice_the_memory_no_pass_reads_a_record_twice() {
    for (name, way, asked) in WAYS {
        for limit in [FREE, RECORDS * RECORD / 4, NONE] {
            let reads = reads(way, RECORDS / 2, limit);
            let most = asked * RECORDS;
            assert!(reads.iter().all(|&reads| reads <= most), "{name}: {reads:?}");
            assert!(reads[4] < most, "{name}, a part of it is kept: {reads:?}");
        }
    }
}

#[test]
fn a_copy_that_the_next_open_could_not_use_is_not_kept() {
    let fixture = fixture_with(LONG, |settings| {
        (settings.direct_io, settings.exclusive) = (false, true);
    });
    let size = 8 * RECORD;
    fs::write(fixture.path("a"), pattern(size as usize, 1)).unwrap();
    let read = |handle| {
        let before = fixture.origin_reads();
        for index in 0..8 {
            fixture.read(handle, index * RECORD, RECORD);
        }
        fixture.origin_reads() - before
    };
    for _ in 0..3 {
        let opened = fixture.open("a", OFlags::RDONLY);
        assert_eq!(read(opened.handle), 8);
        let version = fixture.view.files.get(opened.handle).unwrap().version;
        let is_there = |index| fixture.view.cache.contains(&Key::record(version, index));
        assert!((0..8).all(|index| !is_there(index)));
        fixture.view.release(opened.handle);
    }
    // Records that are requested again while the file is open stay cached for as long.
    let opened = fixture.open("a", OFlags::RDONLY);
    assert_eq!([read(opened.handle), read(opened.handle), read(opened.handle)], [8, 8, 0]);
}

#[test]
fn reads_past_the_page_cache_are_not_handed_over() {
    let fixture = fixture_with(Duration::ZERO, |settings| {
        (settings.direct_io, settings.exclusive) = (false, true);
    });
    fixture.view.cache.limit_handed(NONE);
    fs::write(fixture.path("a"), pattern(4 * RECORD as usize, 1)).unwrap();
    let opened = fixture.open("a", OFlags::RDONLY);
    for past_pages in [true, false] {
        let read = fixture.view.begin_read(opened.handle, 0, RECORD, past_pages).unwrap().unwrap();
        let read = fixture.view.complete_read(read).unwrap();
        fixture.view.finish_read(&read, |_| ());
        drop(read);
        let handed_over = u64::from(!past_pages);
        assert_eq!(fixture.view.counters.counts().handed_over, handed_over);
        assert_eq!(fixture.view.cache.stats().data_size == 0, !past_pages);
    }
}
