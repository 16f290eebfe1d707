//! Lengths on a device, with padding and without.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{Device, MemoryDevice};
use ogive_l2::format::{
    RecordHeader, SEGMENT_BLOCK_BYTES, SEGMENTS_START, SegmentHeader, SegmentTrailer,
};
use ogive_l2::{Cipher, Offered, Padding, Tier, TierOptions, verify};
use std::collections::BTreeSet;
use std::sync::Arc;

const COUNT: u64 = 60;

fn tier(device: &Arc<MemoryDevice>, padding: Padding) -> Tier {
    let mut options: TierOptions = options();
    options.store.padding = padding;
    open_with(vec![ready(device.clone(), 0, how(Cipher::Gcm)).unwrap()], options).unwrap()
}

/// Records of all lengths, half of each compresses.
fn length_of(object: u64) -> usize {
    1 + (object as usize * 7919) % 40_000
}

fn fill_with(tier: &Tier, objects: std::ops::Range<u64>) {
    for object in objects {
        assert!(put(tier, object, 1, length_of(object)));
    }
    assert!(tier.settle());
}

fn all_there(tier: &Tier, objects: std::ops::Range<u64>) -> bool {
    objects.clone().all(|object| holds(tier, object, 1, length_of(object)))
}

/// The lengths of records, as a holder of the device sees them.
fn lengths(device: &MemoryDevice) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let image = device.contents();
    let headers = image[SEGMENTS_START as usize..].chunks(512).filter_map(RecordHeader::parse);
    headers.map(|header| (header.stored_bytes, header.plain_bytes)).unzip()
}

#[test]
fn padded_records_have_few_lengths_and_every_byte_comes_back() {
    for padding in [Padding::Step(4096), Padding::PowerOfTwo, Padding::Off] {
        let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
        let level = tier(&device, padding);
        fill_with(&level, 0..COUNT);
        assert!(all_there(&level, 0..COUNT), "{padding}");
        let added = level.counts().l2_padding_bytes;
        drop(level);
        let (stored, plain) = lengths(&device);
        let all: BTreeSet<u32> = stored.union(&plain).copied().collect();
        match padding {
            Padding::Step(step) => assert!(all.iter().all(|it| it.is_multiple_of(step)), "{all:?}"),
            Padding::PowerOfTwo => assert!(all.iter().all(|it| it.is_power_of_two()), "{all:?}"),
            Padding::Off => assert!(all.len() > COUNT as usize && added == 0),
        }
        // All of it is found again, also by a recovery, and is counted with the key.
        let dynamic: Arc<dyn Device> = device.clone();
        let found = verify(&dynamic, &how(Cipher::Gcm), |_, _| true).unwrap();
        assert_eq!((found.records, found.bad_records), (COUNT, 0), "{padding}");
        assert_eq!(found.padding_bytes, added, "{padding}");
    }
}

#[test]
fn devices_are_read_whatever_the_padding_is_now() {
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let settings = [Padding::Off, Padding::Step(512), Padding::PowerOfTwo, Padding::Off];
    for (round, padding) in settings.into_iter().enumerate() {
        let round = round as u64;
        let level = tier(&device, padding);
        assert!(all_there(&level, 0..round * 20), "{padding} reads what the others wrote");
        fill_with(&level, round * 20..(round + 1) * 20);
        assert!(all_there(&level, 0..(round + 1) * 20));
    }
}

#[test]
fn a_padded_record_is_carried_over_as_it_is() {
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let level = tier(&device, Padding::Step(4096));
    fill_with(&level, 0..30);
    for object in 1000..3000 {
        put(&level, object, 1, 20_000);
        if object % 40 == 0 {
            assert!(level.settle());
            // They are of use, so they outlive their segment.
            (0..30).for_each(|object| _ = holds(&level, object, 1, length_of(object)));
        }
    }
    assert!(level.settle());
    assert!(level.counts().l2_reinserted > 0, "something was carried over");
    let left = (0..30).filter(|object| holds(&level, *object, 1, length_of(*object))).count();
    assert!(left > 0, "and is right");
}

#[test]
fn a_record_that_has_no_room_with_its_padding_is_refused() {
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let level = tier(&device, Padding::Step(1 << 20));
    // Segments are of 1 MiB here, and a record is a quarter of one at most.
    let taken = level.offer(b"short", Arc::new(vec![1; 100]), Offered::default());
    assert!(!taken && level.counts().l2_refused_size == 1);
}

/// The bytes on the device at which the segment of this number begins.
fn segment(number: usize) -> usize {
    SEGMENTS_START as usize + (number << 20)
}

#[test]
fn discarding_frees_segments_of_no_use_and_nothing_else() {
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let level = tier(&device, Padding::Off);
    // Two segments or so, of seven.
    fill_with(&level, 0..100);
    drop(level);
    // Foreign bytes where nothing of ours is, and another installation's header.
    device.tamper(|image| {
        image[segment(6)..segment(7)].fill(0xaa);
        let mut foreign = SegmentHeader::parse(&image[segment(0)..]).unwrap();
        foreign.device = [9; 16];
        image[segment(5)..][..SEGMENT_BLOCK_BYTES].copy_from_slice(&foreign.to_bytes());
    });
    let before = device.contents();
    let dynamic: Arc<dyn Device> = device.clone();
    let wrong = ogive_l2::OpenOptions { key: key(2), ..how(Cipher::Gcm) };
    ogive_l2::discard(&dynamic, &wrong).unwrap_err();
    assert!(device.contents() == before, "without the key nothing is freed");

    let done = ogive_l2::discard(&dynamic, &how(Cipher::Gcm)).unwrap();
    let image = device.contents();
    let used = |image: &[u8], number| SegmentHeader::parse(&image[segment(number)..]).is_some();
    let unchanged = (0..5).filter(|number| used(&before, *number)).count() as u64;
    assert_eq!(
        (done.kept, done.segments, done.bytes),
        (unchanged, 7 - unchanged, (7 - unchanged) << 20)
    );
    assert!(image[segment(5)..].iter().all(|byte| *byte == 0));
    for number in 0..unchanged as usize {
        let range = segment(number)..segment(number + 1);
        assert!(image[range.clone()] == before[range], "segment {number} is as it was");
    }
    let level = tier(&device, Padding::Off);
    assert!(all_there(&level, 0..100), "and all is found");
}

#[test]
fn a_segment_whose_records_were_all_written_again_is_free_and_the_account_stays() {
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let level = tier(&device, Padding::Off);
    fill_with(&level, 0..20);
    drop(level);
    let old = device.contents();
    // The index of this mount does not find them, for their segment cannot be read at first.
    device.tamper(|image| image[segment(0)..segment(1)].fill(0));
    let level = tier(&device, Padding::Off);
    fill_with(&level, 0..20);
    drop(level);
    let again = device.contents();
    let trailer = &again[segment(1) - SEGMENT_BLOCK_BYTES..];
    assert!(SegmentTrailer::parse(trailer, 1 << 20).is_some(), "a whole segment");
    // The older copy is put into another place, as in a log that has gone round. It is not believed
    // there, and so it is free. The only segment of use, the youngest, is kept.
    device.tamper(|image| {
        image[segment(3)..segment(4)].copy_from_slice(&old[segment(0)..segment(1)])
    });
    let dynamic: Arc<dyn Device> = device.clone();
    let done = ogive_l2::discard(&dynamic, &how(Cipher::Gcm)).unwrap();
    assert_eq!((done.kept, done.segments), (1, 6));
    assert!(all_there(&tier(&device, Padding::Off), 0..20));
}
