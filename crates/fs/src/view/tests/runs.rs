//! Records that are read together: by the requesting thread, and ahead of a sequential reader.

use super::*;

#[test]
fn fast_records_are_read_by_the_requesting_thread_and_slow_ones_by_a_thread_each() {
    let contents = pattern(8 * RECORD as usize, 3);
    for (took, queued) in [(Duration::from_micros(1), 0), (Duration::from_secs(1), 7)] {
        let fixture = fixture();
        fs::write(fixture.path("a"), &contents).unwrap();
        let opened = fixture.open("a", OFlags::RDONLY);
        fixture.view.origin_latency.note_record(took);
        assert_eq!(fixture.read(opened.handle, 0, 8 * RECORD), contents);
        assert_eq!(fixture.view.workers.statistics().queued, queued);
        assert_eq!(fixture.origin_reads(), 8, "one read per record");
        // A record that another request is loading ends a run.
        let version = fixture.view.file(opened.handle).unwrap().version;
        for index in [2, 5] {
            fixture.view.cache.invalidate(&Key::record(version, index));
        }
        assert_eq!(fixture.read(opened.handle, 0, 8 * RECORD), contents);
        assert_eq!(fixture.origin_reads(), 10);
    }
}

#[test]
fn sequential_readers_are_prefetched_and_it_pays() {
    let fixture = fixture_with(Duration::ZERO, |settings| settings.prefetch_max_bytes = 64 << 10);
    let contents = pattern(200 * RECORD as usize, 9);
    fs::write(fixture.path("a"), &contents).unwrap();
    let opened = fixture.open("a", OFlags::RDONLY);
    for record in 0..200 {
        let bytes = fixture.read(opened.handle, record * RECORD, RECORD);
        assert_eq!(bytes, contents[(record * RECORD) as usize..][..RECORD as usize]);
    }
    let stats = fixture.view.cache.stats();
    assert!(stats.prefetch_data_misses > 100, "{} prefetched", stats.prefetch_data_misses);
    assert_eq!(fixture.origin_reads(), 200, "each record was read once");
}
