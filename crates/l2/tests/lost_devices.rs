//! Devices that come and go while the second level is in use.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{self, Device, Engine, Faults, FaultyDevice, MemoryDevice, OpenMode};
use ogive_l2::{Cipher, DeviceError, OpenOptions, Removed, Tier};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const COUNT: u64 = 200;
const LENGTH: usize = 20_000;

fn memory(segments: u64) -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new((1 + segments) << 20))
}

/// A device with the name that belongs to a number.
fn formatted(number: u64, segments: u64) -> Arc<MemoryDevice> {
    let device = memory(segments);
    ready(device.clone(), number, how(Cipher::Gcm)).unwrap();
    device
}

fn add(tier: &Tier, device: &Arc<impl Device + 'static>) -> [u8; 16] {
    let id = tier.add(device.clone(), &how(Cipher::Gcm)).unwrap();
    assert!(tier.settle());
    id
}

#[test]
fn an_added_device_takes_its_share_and_the_other_records_stay() {
    let first = formatted(0, 16);
    let tier = open(&first);
    fill(&tier, COUNT, LENGTH);
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT);

    let second = formatted(1, 16);
    let id = add(&tier, &second);
    // Half of the room is new, so about half of the records are looked for there, and missed.
    let stayed = found(&tier, COUNT, LENGTH);
    assert!((COUNT / 4..COUNT * 3 / 4).contains(&stayed), "{stayed} of {COUNT}");
    for object in 0..COUNT {
        put(&tier, object, 1, LENGTH);
    }
    assert!(tier.settle());
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT);
    let records: Vec<_> = tier.devices().iter().map(|device| device.usage.records).collect();
    assert_eq!(records[1], COUNT - stayed, "only its share has gone there: {records:?}");

    // It goes, and what had stayed is still where it was, with the old copies of the rest.
    assert_eq!(tier.remove(&id), Some(Removed::Closed));
    assert_eq!(tier.remove(&id), None, "it has gone");
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT);
    assert_eq!(tier.devices().len(), 1);
}

#[test]
fn records_of_a_removed_device_miss_and_come_back_with_it() {
    let devices = [formatted(0, 8), formatted(1, 8)];
    let tier = open(&devices[0]);
    let id = add(&tier, &devices[1]);
    fill(&tier, COUNT, LENGTH);
    assert_eq!(tier.remove(&id), Some(Removed::Closed));
    let left = found(&tier, COUNT, LENGTH);
    assert!(left > 0 && left < COUNT, "{left} of {COUNT}");
    assert_eq!(add(&tier, &devices[1]), id);
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT, "nothing was lost on the way");

    // The last may go, too: then nothing is kept, and nothing fails.
    for device in tier.devices() {
        assert_eq!(tier.remove(&device.device), Some(Removed::Closed));
    }
    assert_eq!(found(&tier, COUNT, LENGTH), 0);
    assert!(!put(&tier, 1, 2, LENGTH) && !tier.may_have(&name(1, 1)));
    devices.iter().for_each(|device| _ = add(&tier, device));
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT);
}

#[test]
fn queued_records_are_written_before_a_device_is_removed() {
    let devices = [formatted(0, 8), formatted(1, 8)];
    let tier = open(&devices[0]);
    let id = add(&tier, &devices[1]);
    (0..COUNT).for_each(|object| assert!(put(&tier, object, 1, LENGTH)));
    assert_eq!(tier.remove(&id), Some(Removed::Closed));
    add(&tier, &devices[1]);
    assert_eq!(found(&tier, COUNT, LENGTH), COUNT);
}

#[test]
fn an_added_device_makes_versions_with_the_secret_in_use() {
    let (first, second) = (formatted(0, 4), formatted(1, 4));
    drop(open(&second));
    let tier = open(&first);
    let secret = *tier.version_secret();
    assert_ne!(open(&second).version_secret(), &secret);
    add(&tier, &second);
    drop(tier);
    assert_eq!(open(&second).version_secret(), &secret);
}

#[test]
fn a_refused_device_changes_nothing() {
    let first = memory(8);
    let tier = open(&first);
    fill(&tier, 20, LENGTH);
    let copy = Arc::new(MemoryDevice::from_bytes(first.contents()));
    let refused = tier.add(copy, &how(Cipher::Gcm)).unwrap_err();
    assert!(matches!(refused, DeviceError::Twin), "{refused}");
    let other = memory(8);
    drop(open_as(&other, OpenOptions { key: key(2), ..how(Cipher::Gcm) }).unwrap());
    let before = other.contents();
    let refused = tier.add(other.clone(), &how(Cipher::Gcm)).unwrap_err();
    assert!(matches!(refused, DeviceError::WrongKey), "{refused}");
    assert!(other.contents() == before, "a refused device is written to");
    assert_eq!((tier.devices().len(), found(&tier, 20, LENGTH)), (1, 20));
    tier.close();
    let refused = tier.add(memory(8), &how(Cipher::Gcm)).unwrap_err();
    assert!(matches!(refused, DeviceError::Ended), "{refused}");
}

#[test]
fn a_copy_next_to_its_original_is_refused_from_the_start() {
    let original = memory(8);
    drop(open(&original));
    let copy = Arc::new(MemoryDevice::from_bytes(original.contents()));
    let list: Vec<(Arc<dyn Device>, _)> =
        vec![(original.clone(), how(Cipher::Gcm)), (copy, how(Cipher::Gcm))];
    let (position, refused) = Tier::open(list, options()).unwrap_err();
    assert!(position == 1 && matches!(refused, DeviceError::Twin), "{position}: {refused}");
    drop(open(&original));
}

#[test]
fn readers_and_writers_notice_nothing_but_misses() {
    /// Lets the others end, however this one does.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    // The second and the third are formatted by coming.
    let devices = [memory(16), memory(16), memory(8)];
    let tier = open(&devices[0]);
    fill(&tier, COUNT, LENGTH);
    let (is_over, turns) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for (thread, turns) in (0..).zip(&turns) {
            let (tier, is_over) = (&tier, &is_over);
            scope.spawn(move || {
                let mut object = thread;
                while !is_over.load(Ordering::Relaxed) {
                    object = (object + 7) % COUNT;
                    // Whatever is found is right: `holds` looks.
                    if !holds(tier, object, 1, LENGTH) {
                        put(tier, object, 1, LENGTH);
                    }
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..20 {
            let device = &devices[1 + round % 2];
            let id = tier.add(device.clone(), &how(Cipher::Gcm)).unwrap();
            let now = || turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
            let before = now();
            eventually("each thread had twenty turns", || {
                now().iter().zip(before).all(|(now, before)| *now >= before + 20)
            });
            assert_eq!(tier.remove(&id), Some(Removed::Closed), "round {round}");
        }
    });
    assert!(tier.settle());
    assert!(found(&tier, COUNT, LENGTH) > COUNT / 2);
    assert_eq!(tier.counts().l2_cksum_bad, 0);
}

#[test]
fn a_device_that_hangs_goes_as_far_as_it_can() {
    let (other, device) = (formatted(0, 8), Arc::new(FaultyDevice::new(9 << 20, 1)));
    let all = || {
        let hanging = ready(device.clone(), 1, how(Cipher::Gcm)).unwrap();
        vec![ready(other.clone(), 0, how(Cipher::Gcm)).unwrap(), hanging]
    };
    fill(&open_with(all(), options()).unwrap(), COUNT, LENGTH);
    let alone = open(&other);
    let is_there = |object: &u64| holds(&alone, *object, 1, LENGTH);
    let (there, here): (Vec<u64>, Vec<u64>) = (0..COUNT).partition(is_there);
    drop(alone);

    let mut hasty = options();
    hasty.read_patience = Duration::from_millis(50);
    hasty.store.close_patience = Duration::from_millis(50);
    let tier = open_with(all(), hasty).unwrap();
    let id = tier.devices()[1].device;
    device.set_faults(Faults { hangs: true, ..Faults::default() });
    assert_eq!(tier.read(&name(here[0], 1)), None);
    assert_eq!(tier.counts().l2_timeouts, 1);
    eventually("a thread is in the device", || device.hanging() == 1);
    let removed = tier.remove(&id);
    let left = tier.devices();
    // No reader has to wait for it any more. A read of memory itself needs no patience.
    let own: Vec<_> = there.into_iter().filter(|object| object % 2 == 1).collect();
    let served = own.iter().filter(|object| holds(&tier, **object, 1, LENGTH)).count();
    device.set_faults(Faults::default());
    assert_eq!(removed, Some(Removed::Hangs));
    assert!(!left.iter().any(|device| device.device == id));
    assert!(served == own.len() && served > 0, "the other serves");
    eventually("it is closed when it answers", || Arc::strong_count(&device) == 1);
}

fn file(path: &Path) -> Arc<dyn Device> {
    device::open(path, OpenMode::Create, Engine::Probe).unwrap()
}

#[test]
fn a_removed_file_is_free_for_others_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    let sized = OpenOptions { size_bytes: Some(DEVICE_BYTES), ..how(Cipher::Gcm) };
    let list = vec![ready(file(&one), 0, sized.clone()).unwrap()];
    let tier = open_with(list, options()).unwrap();
    let (device, sized) = ready(file(&other), 1, sized).unwrap();
    let id = tier.add(device, &sized).unwrap();
    fill(&tier, 40, LENGTH);
    let is_free = || device::open(&other, OpenMode::Write, Engine::Pread).is_ok();
    assert!(!is_free(), "it is locked while it is used");
    assert_eq!(tier.remove(&id), Some(Removed::Closed));
    assert!(is_free(), "it is closed everywhere");
}
