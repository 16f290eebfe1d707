//! The promises of the tier, one test each.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{Device, Faults, FaultyDevice, MemoryDevice};
use ogive_l2::{Cipher, DeviceError, FormatPolicy, Offered, OpenOptions, Tier, TierOptions};
use std::sync::Arc;
use std::time::Duration;

const RECORD: usize = 8 << 10;

fn memory() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(DEVICE_BYTES))
}

/// A tier that judges a device by the device's clock.
fn open_by_its_clock(device: &Arc<FaultyDevice>, change: impl FnOnce(&mut TierOptions)) -> Tier {
    let mut options = options_at(device.clock());
    change(&mut options);
    open_with(vec![ready(device.clone(), 0, how(Cipher::Gcm)).unwrap()], options).unwrap()
}

#[test]
fn an_offered_record_is_found_at_once_and_after_it_was_written() {
    for cipher in Cipher::ALL {
        let device = memory();
        let tier = open_as(&device, how(cipher)).unwrap();
        assert!(put(&tier, 1007, 1, RECORD));
        assert!(holds(&tier, 1007, 1, RECORD), "readable while in flight");
        fill(&tier, 100, RECORD);
        assert_eq!(found(&tier, 100, RECORD), 100, "{cipher}");
        let counts = tier.counts();
        assert!(counts.l2_cksum_bad == 0 && counts.l2_stale == 0 && counts.l2_hits == 101);
        assert!(counts.l2_stored_bytes_written < counts.l2_plain_bytes_written * 6 / 10);
    }
}

#[test]
fn reopen_finds_everything_sealed() {
    for cipher in Cipher::ALL {
        let device = memory();
        fill(&open_as(&device, how(cipher)).unwrap(), 300, RECORD);
        let tier = open_as(&device, how(cipher)).unwrap();
        assert_eq!(found(&tier, 300, RECORD), 300, "{cipher}");
        assert_eq!(tier.counts().l2_rebuild_bufs, 300);
        assert!(tier.counts().l2_rebuild_log_blks >= 1);
    }
}

#[test]
fn a_stale_version_is_a_miss() {
    let device = memory();
    let tier = open(&device);
    fill(&tier, 20, RECORD);
    assert!((0..20).all(|object| !holds(&tier, object, 2, RECORD)));
    assert!(put(&tier, 3, 2, RECORD) && tier.settle());
    assert!(holds(&tier, 3, 2, RECORD) && holds(&tier, 3, 1, RECORD));
}

#[test]
fn the_log_wraps_around_and_drops_the_oldest() {
    let device = memory();
    let tier = open(&device);
    // Twenty times round.
    for object in 0..20_000 {
        if !put(&tier, object, 1, RECORD) || object % 100 == 0 {
            assert!(tier.settle());
        }
    }
    assert!(tier.settle());
    let young = (18_900..20_000).filter(|object| holds(&tier, *object, 1, RECORD)).count();
    assert!(young > 1000, "{young} of the youngest 1,100");
    assert!((0..10_000).all(|object| !holds(&tier, object, 1, RECORD)));
    let usage = tier.usage()[0];
    assert!(usage.stored_bytes <= DEVICE_BYTES && usage.records < 1700, "{usage:?}");
}

#[test]
fn a_record_with_hits_outlives_its_segment() {
    const LARGE: usize = 128 << 10;
    let device = Arc::new(MemoryDevice::new(64 << 20));
    let tier = open(&device);
    let loved = |tier: &Tier| (0..20).filter(|object| holds(tier, *object, 1, LARGE)).count();
    // One in each segment, or they would exceed what one segment may hand on.
    for object in 0..20 {
        assert!(put(&tier, object, 1, LARGE));
        (0..20).for_each(|other| _ = put(&tier, 500 + object * 20 + other, 1, LARGE));
        assert!(tier.settle());
    }
    for object in 1000..4000 {
        put(&tier, object, 1, LARGE);
        if object % 50 == 0 {
            assert!(tier.settle());
            loved(&tier);
        }
    }
    let left = loved(&tier);
    assert!(left >= 18, "{left}: a lost slot is a lost hit, but not many");
    let counts = tier.counts();
    assert!(counts.l2_reinserted >= 20, "{counts:?}");
    let amplification = counts.l2_write_bytes as f64 / counts.l2_stored_bytes_written as f64;
    assert!(amplification < 1.15, "{amplification}");
}

#[test]
fn nothing_is_written_twice() {
    let device = memory();
    let tier = open(&device);
    fill(&tier, 50, RECORD);
    let before = tier.counts();
    assert!((0..50).all(|object| !put(&tier, object, 1, RECORD)));
    assert!(tier.settle());
    let after = tier.counts();
    assert_eq!(after.l2_records_written, before.l2_records_written);
    assert_eq!(after.evict_l2_cached - before.evict_l2_cached, 50 * RECORD as u64);
}

/// Changes one byte at a time of a device with one record and expects a miss.
#[test]
fn a_flipped_bit_is_a_miss() {
    for cipher in Cipher::ALL {
        let device = memory();
        fill(&open_as(&device, how(cipher)).unwrap(), 1, 600);
        let clean = device.contents();
        let at = clean.windows(4).position(|bytes| bytes == b"OGrc").unwrap();
        // Header and sealed bytes; what pads them means nothing.
        let stored = u32::from_le_bytes(clean[at + 40..at + 44].try_into().unwrap()) as usize;
        // A fresh opening for each byte, so that the index points at the changed record.
        for byte in (at..at + 64 + stored).step_by(3) {
            let device = Arc::new(MemoryDevice::from_bytes(clean.clone()));
            let tier = open_as(&device, how(cipher)).unwrap();
            device.tamper(|bytes| bytes[byte] ^= 1 << (byte % 8));
            assert!(!holds(&tier, 0, 1, 600), "{cipher}, byte {}", byte - at);
            let counts = tier.counts();
            assert_eq!(counts.l2_cksum_bad + counts.l2_stale, 1, "{cipher}, byte {}", byte - at);
        }
    }
}

#[test]
fn a_moved_record_is_a_miss() {
    let device = memory();
    let tier = open(&device);
    fill(&tier, 40, RECORD);
    device.tamper(|bytes| {
        // Records of equal length change places, two by two.
        let places: Vec<usize> = (0..bytes.len() / 512)
            .map(|unit| unit * 512)
            .filter(|at| bytes[*at..*at + 4] == *b"OGrc")
            .collect();
        assert_eq!(places.len(), 40);
        for pair in places.chunks(2) {
            let length = (places[1] - places[0]).min(bytes.len() - pair[1]);
            let first = bytes[pair[0]..pair[0] + length].to_vec();
            bytes.copy_within(pair[1]..pair[1] + length, pair[0]);
            bytes[pair[1]..pair[1] + length].copy_from_slice(&first);
        }
    });
    assert_eq!(found(&tier, 40, RECORD), 0);
}

#[test]
fn an_older_segment_replayed_is_a_miss() {
    let device = memory();
    let tier = open(&device);
    fill(&tier, 900, RECORD);
    let old = device.contents();
    for object in 0..2000 {
        put(&tier, object, 2, RECORD);
        if object % 100 == 0 {
            assert!(tier.settle());
        }
    }
    assert!(tier.settle());
    device.tamper(|bytes| bytes.copy_from_slice(&old));
    // Whatever the index says of version 2 leads to a record of version 1, or to an older seal.
    assert!((0..2000).all(|object| !holds(&tier, object, 2, RECORD)));
    found(&tier, 900, RECORD);
}

#[test]
fn another_device_is_empty() {
    let (one, other) = (memory(), memory());
    let tier = open(&one);
    fill(&tier, 50, RECORD);
    let other_tier = vec![ready(other.clone(), 1, how(Cipher::Gcm)).unwrap()];
    fill(&open_with(other_tier, options()).unwrap(), 50, RECORD);
    // The same key, the same records, another device under the same index.
    one.tamper(|bytes| bytes.copy_from_slice(&other.contents()));
    assert_eq!(found(&tier, 50, RECORD), 0);
}

#[test]
fn a_wrong_key_is_refused_and_formats_nothing() {
    let device = memory();
    fill(&open(&device), 50, RECORD);
    let before = device.contents();
    let wrong = OpenOptions { key: key(2), ..how(Cipher::Gcm) };
    assert!(matches!(open_as(&device, wrong), Err(DeviceError::WrongKey)));
    let other = open_as(&device, how(Cipher::Off));
    assert!(matches!(other, Err(DeviceError::WrongCipher { .. })));
    assert!(device.contents() == before);
    assert_eq!(found(&open(&device), 50, RECORD), 50);
}

#[test]
fn foreign_contents_are_never_formatted_unasked() {
    for (place, bytes) in [(0x438, &[0x53, 0xef][..]), (0, b"XFSB"), (777, b"something")] {
        let device = memory();
        device.tamper(|all| all[place..place + bytes.len()].copy_from_slice(bytes));
        let before = device.contents();
        assert!(matches!(open_as(&device, how(Cipher::Gcm)), Err(DeviceError::Foreign(_))));
        assert!(device.contents() == before);
        let forced = OpenOptions { format: FormatPolicy::Force, ..how(Cipher::Gcm) };
        let tier = open_as(&device, forced).unwrap();
        assert!(put(&tier, 1, 1, RECORD) && tier.settle() && holds(&tier, 1, 1, RECORD));
    }
}

#[test]
fn names_and_contents_are_not_on_the_device() {
    let device = memory();
    let tier = open(&device);
    let secret = b"a sentence that nobody else may read".repeat(100);
    assert!(tier.offer(b"/home/me/secret", Arc::new(secret), Offered::default()));
    drop(tier);
    let bytes = device.contents();
    for clear in [&b"nobody else"[..], b"/home/me"] {
        assert!(!bytes.windows(clear.len()).any(|window| window == clear));
    }
}

#[test]
fn growing_and_shrinking_keep_the_remaining_slots() {
    let device = memory();
    fill(&open(&device), 300, RECORD);
    let sized = |size_bytes| OpenOptions { size_bytes: Some(size_bytes), ..how(Cipher::Gcm) };
    let tier = open_as(&device, sized(16 << 20)).unwrap();
    assert_eq!(found(&tier, 300, RECORD), 300);
    assert_eq!(tier.usage()[0].segments.1, 15);
    drop(tier);
    let tier = open_as(&device, sized(5 << 20)).unwrap();
    assert_eq!(device.len_bytes().unwrap(), 5 << 20);
    let left = found(&tier, 300, RECORD);
    assert!(left > 0, "the first segments stay");
    drop(tier);
    let tier = open_as(&device, sized(12 << 20)).unwrap();
    assert_eq!(found(&tier, 300, RECORD), left);
}

#[test]
fn a_truncated_device_loses_only_its_end() {
    let device = memory();
    let tier = open(&device);
    fill(&tier, 900, RECORD);
    device.set_len_bytes(4 << 20).unwrap();
    let left = found(&tier, 900, RECORD);
    assert!(left > 0 && left < 900, "{left}");
    put(&tier, 5000, 1, RECORD);
    drop(tier);
    let tier = open(&device);
    assert!(found(&tier, 900, RECORD) > 0);
    assert_eq!(device.len_bytes().unwrap(), DEVICE_BYTES);
}

#[test]
fn a_device_that_fails_is_bypassed_and_tried_again() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 1));
    let tier = open_by_its_clock(&device, |_| ());
    fill(&tier, 100, RECORD);
    device.set_faults(Faults { read_error: 1000, write_error: 1000, ..Faults::default() });
    assert_eq!(found(&tier, 100, RECORD), 0, "errors are misses");
    let counts = tier.counts();
    assert_eq!((counts.l2_io_error, counts.l2_bypasses), (8, 1), "a bypassed device is not asked");
    device.set_faults(Faults::default());
    assert_eq!(found(&tier, 100, RECORD), 0, "nor before its time, whatever has become of it");
    device.clock().advance(PAUSE);
    assert_eq!(found(&tier, 100, RECORD), 100, "nothing was forgotten");
    assert!(!tier.usage()[0].bypassed);
}

#[test]
fn a_full_disk_and_failing_writes_are_dropped_records() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 2));
    let tier = open_by_its_clock(&device, |_| ());
    for faults in [
        Faults { no_space: 1000, ..Faults::default() },
        Faults { write_error: 500, ..Faults::default() },
    ] {
        let before = tier.counts();
        device.set_faults(faults);
        for object in 0..2000 {
            put(&tier, object, 1, RECORD);
            assert!(tier.keep_step());
        }
        assert!(tier.settle());
        found(&tier, 2000, RECORD);
        let counts = tier.counts();
        assert!(counts.l2_writes_error > before.l2_writes_error, "{faults:?}: {counts:?}");
        assert!(counts.l2_dropped_device > before.l2_dropped_device, "{faults:?}: {counts:?}");
        device.clock().advance(PAUSE);
    }
}

#[test]
fn flipping_bits_never_give_wrong_bytes() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 3));
    let tier = open(&device);
    fill(&tier, 200, RECORD);
    device.set_faults(Faults { flip: 300, ..Faults::default() });
    let left = found(&tier, 200, RECORD);
    assert!(left < 200 && left > 50 && tier.counts().l2_cksum_bad > 0, "{left}");
}

#[test]
fn a_full_queue_drops_and_does_not_wait() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 4));
    let tier = open_by_its_clock(&device, |options| {
        options.store.queue_bytes_max = 10 * RECORD as u64;
    });
    // The writer hangs in its device, and everybody else goes on.
    device.set_faults(Faults { hangs: true, ..Faults::default() });
    let taken = (0..100).filter(|object| put(&tier, *object, 1, RECORD)).count();
    let dropped = tier.counts().l2_dropped_queue;
    device.set_faults(Faults::default());
    assert_eq!((taken, dropped), (10, 90));
}

#[test]
fn a_lone_record_is_written_after_a_while() {
    let device = memory();
    let mut hasty = options();
    hasty.store.linger = Duration::from_millis(1);
    let tier = open_with(vec![ready(device, 0, how(Cipher::Gcm)).unwrap()], hasty).unwrap();
    for object in 0..3 {
        assert!(put(&tier, object, 1, RECORD));
        eventually("a record alone is written", || tier.counts().l2_records_written == object + 1);
    }
    assert_eq!(found(&tier, 3, RECORD), 3);
}

#[test]
fn a_device_that_hangs_makes_no_reader_hang() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 5));
    let tier = open_by_its_clock(&device, |options| {
        options.read_patience = Duration::from_millis(30);
    });
    fill(&tier, 30, RECORD);
    device.set_faults(Faults { hangs: true, ..Faults::default() });
    let served = found(&tier, 30, RECORD);
    let counts = tier.counts();
    device.set_faults(Faults::default());
    assert_eq!(served, 0);
    assert_eq!((counts.l2_timeouts, counts.l2_bypasses), (8, 1), "{counts:?}");
}

#[test]
fn a_device_that_is_slow_but_sure_is_bypassed_and_tried_again() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 6));
    let tier = open_by_its_clock(&device, |options| {
        options.store.slow = Duration::from_millis(10);
    });
    fill(&tier, 60, RECORD);
    device.set_faults(Faults { delay: Duration::from_millis(10), ..Faults::default() });
    assert_eq!(found(&tier, 60, RECORD), 60, "it may take so long");
    device.set_faults(Faults { delay: Duration::from_millis(11), ..Faults::default() });
    assert_eq!(found(&tier, 60, RECORD), 8, "what was read late is used all the same");
    let counts = tier.counts();
    assert_eq!((counts.l2_slow, counts.l2_bypasses, counts.l2_timeouts), (8, 1, 0));
    device.set_faults(Faults::default());
    device.clock().advance(PAUSE);
    assert_eq!(found(&tier, 60, RECORD), 60);
}

#[test]
fn a_device_that_hangs_holds_up_no_other() {
    let (hanging, other) = (Arc::new(FaultyDevice::new(DEVICE_BYTES, 7)), memory());
    let both = || {
        let hanging = ready(hanging.clone(), 0, how(Cipher::Gcm)).unwrap();
        let other = ready(other.clone(), 1, how(Cipher::Gcm)).unwrap();
        open_with(vec![hanging, other], options()).unwrap()
    };
    fill(&both(), 100, RECORD);
    let alone = open(&other);
    let is_there = |object: &u64| holds(&alone, *object, 1, RECORD);
    let (there, here): (Vec<u64>, Vec<u64>) = (0..100).partition(is_there);
    drop(alone);
    let tier = both();
    hanging.set_faults(Faults { hangs: true, ..Faults::default() });
    std::thread::scope(|scope| {
        // More reads by the tier's threads than it has threads for a device.
        let of_others = here.iter().filter(|object| *object % 2 == 0).take(6);
        let own = here.iter().filter(|object| *object % 2 == 1).take(3);
        let readers: Vec<_> = of_others
            .chain(own)
            .map(|object| scope.spawn(|| holds(&tier, *object, 1, RECORD)))
            .collect();
        eventually("its two threads and three readers hang", || hanging.hanging() == 5);
        let served = there.iter().filter(|object| holds(&tier, **object, 1, RECORD)).count();
        hanging.set_faults(Faults::default());
        assert_eq!(served, there.len(), "all of the other");
        assert!(readers.into_iter().all(|reader| reader.join().unwrap()), "and at last of it");
    });
    let counts = tier.counts();
    assert_eq!((counts.l2_timeouts, counts.l2_bypasses), (0, 0));
}

#[test]
fn the_index_gives_memory_back_and_takes_it_again() {
    let device = Arc::new(MemoryDevice::new(65 << 20));
    let mut options = options();
    options.store.expected_record_bytes = 512;
    let all = vec![ready(device.clone(), 0, how(Cipher::Gcm)).unwrap()];
    let tier = open_with(all, options).unwrap();
    fill(&tier, 2000, RECORD);
    let before = tier.usage()[0];
    let given = tier.shrink_index(before.index_bytes / 2);
    let after = tier.usage()[0];
    assert!(given.bytes * 5 >= before.index_bytes * 2, "{given:?} of {before:?}");
    assert_eq!(after.index_bytes, before.index_bytes - given.bytes);
    assert_eq!(after.records, before.records - given.records);
    assert_eq!(tier.counts().l2_index_reclaimed_bytes, given.bytes);
    assert_eq!(tier.counts().l2_index_reclaimed, given.records);
    assert_eq!(found(&tier, 2000, RECORD), after.records);
    // Down to the least, and then it has no more to give.
    tier.shrink_index(u64::MAX);
    assert_eq!(tier.shrink_index(u64::MAX).bytes, 0);
    let least = tier.usage()[0];
    assert!(least.index_bytes * 8 < before.index_bytes && least.records > 0, "{least:?}");
    assert_eq!(found(&tier, 2000, RECORD), least.records);
    // Forgotten records are still on the device.
    drop(tier);
    assert_eq!(found(&open(&device), 2000, RECORD), 2000);
}

#[test]
fn carried_over_records_keep_writes_within_their_bound() {
    // Half of each compresses. Headers and padding of the smallest are more than may be written in
    // addition. So none of them is carried over.
    for (length, may_be_carried) in [(6000, false), (16 << 10, true), (64 << 10, true)] {
        let device = Arc::new(MemoryDevice::new(65 << 20));
        let tier = open(&device);
        let mut random = fastrand::Rng::with_seed(3);
        for access in 0..300_000_000 / length as u64 {
            // Four times what fits, and some much more often than others.
            let object = (random.f64() * random.f64() * (500 << 20) as f64 / length as f64) as u64;
            if !holds(&tier, object, 1, length) {
                put(&tier, object, 1, length);
                assert!(tier.keep_step());
            }
            if access % 200 == 0 {
                assert!(tier.settle());
            }
        }
        assert!(tier.settle());
        let counts = tier.counts();
        let amplification = counts.l2_write_bytes as f64 / counts.l2_stored_bytes_written as f64;
        println!("{length}: {amplification}, {} carried over", counts.l2_reinserted);
        assert_eq!(counts.l2_reinserted > 0, may_be_carried, "{length}: {counts:?}");
        assert!(amplification <= 1.15 || !may_be_carried, "{length}: {amplification}");
        assert!(counts.l2_write_bytes < counts.l2_plain_bytes_written, "{length}: {counts:?}");
    }
}

#[test]
fn several_devices_share_the_records() {
    let devices: Vec<Arc<MemoryDevice>> = (0..3).map(|_| memory()).collect();
    let open = || {
        let all = (0..).zip(&devices);
        let all = all.map(|(number, d)| ready(d.clone(), number, how(Cipher::Gcm)).unwrap());
        open_with(all.collect(), options()).unwrap()
    };
    let tier = open();
    fill(&tier, 600, RECORD);
    assert!(tier.usage().iter().all(|usage| (150..250).contains(&usage.records)));
    drop(tier);
    assert_eq!(found(&open(), 600, RECORD), 600);
}
