//! No two records are ever sealed with one nonce under one key, whatever crashes, reopenings,
//! clones and rollbacks come between them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{CrashDevice, Device};
use ogive_l2::format::{
    NUMBER_OF_SUMMARY, RecordHeader, SEGMENTS_START, SegmentHeader, SegmentTrailer,
};
use ogive_l2::nonce;
use proptest::prelude::*;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Everything that was ever sealed: salt of the segment's key, nonce, and the tag it got.
type Sealed = Arc<Mutex<HashMap<([u8; 32], [u8; 12]), [u8; 16]>>>;

/// Bytes of a segment on the devices here.
const SEGMENT_BYTES: u64 = 1 << 20;

/// A device that looks at what is written to it.
#[derive(Debug)]
struct Recorder {
    inner: CrashDevice,
    sealed: Sealed,
    /// Salt of the segment that was begun last in each place.
    salts: Mutex<HashMap<u64, [u8; 32]>>,
    repeated: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn note(&self, offset: u64, nonce: [u8; 12], tag: [u8; 16]) {
        let segment = (offset - SEGMENTS_START) / SEGMENT_BYTES;
        let Some(salt) = self.salts.lock().unwrap().get(&segment).copied() else { return };
        let before = self.sealed.lock().unwrap().insert((salt, nonce), tag);
        // The same bytes once more are no second message.
        if before.is_some_and(|before| before != tag) {
            self.repeated.lock().unwrap().push(format!("segment {segment}, nonce {nonce:?}"));
        }
    }
}

impl Device for Recorder {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(header) = SegmentHeader::parse(bytes) {
            let segment = (offset - SEGMENTS_START) / SEGMENT_BYTES;
            assert!(
                self.salts.lock().unwrap().values().all(|salt| *salt != header.salt),
                "each segment has a salt of its own"
            );
            self.salts.lock().unwrap().insert(segment, header.salt);
        }
        for (at, unit) in (offset..).step_by(512).zip(bytes.chunks(512)) {
            if let Some(record) = RecordHeader::parse(unit) {
                self.note(at, nonce(record.salt, record.number), record.tag);
            }
        }
        for (at, block) in (offset..).step_by(4096).zip(bytes.chunks(4096)) {
            if let Some(trailer) = SegmentTrailer::parse(block, SEGMENT_BYTES) {
                self.note(at, nonce(trailer.salt, NUMBER_OF_SUMMARY), trailer.tag);
            }
        }
        self.inner.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.inner.len_bytes()
    }

    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.set_len_bytes(len_bytes)
    }

    fn engine(&self) -> &'static str {
        "recorder"
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Offer so many records, some under names that were used before.
    Write(u8),
    /// End cleanly and open again.
    Reopen,
    /// Cut the power; this share of the sectors survives.
    Crash(u16),
    /// Go back to an earlier image of the device.
    RollBack(u8),
    /// Let writes fail in the middle for a while.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..60_u8).prop_map(Step::Write),
        1 => Just(Step::Reopen),
        2 => (0..=1000_u16).prop_map(Step::Crash),
        1 => any::<u8>().prop_map(Step::RollBack),
        1 => Just(Step::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn never_two_records_with_one_nonce(steps in prop::collection::vec(step(), 1..12)) {
        let sealed = Sealed::default();
        let repeated = Arc::new(Mutex::new(Vec::new()));
        let device = |bytes: Vec<u8>| Arc::new(Recorder {
            inner: CrashDevice::from_bytes(bytes, 5),
            sealed: sealed.clone(),
            salts: Mutex::default(),
            repeated: repeated.clone(),
        });
        let mut now = device(vec![0; 6 << 20]);
        let mut tier = open(&now);
        let mut images = vec![now.inner.contents()];
        let mut object = 0;
        for step in steps {
            let image = match step {
                Step::Write(count) => {
                    for _ in 0..count {
                        put(&tier, object % 97, object / 97, 20_000);
                        object += 1;
                    }
                    tier.settle();
                    continue;
                }
                Step::Fail => {
                    let faults = ogive_l2::device::Faults { write_error: 500, ..Default::default() };
                    now.inner.set_faults(faults);
                    for _ in 0..80 {
                        put(&tier, object % 97, object / 97, 20_000);
                        object += 1;
                    }
                    tier.settle();
                    now.inner.set_faults(Default::default());
                    continue;
                }
                Step::Crash(kept) => now.inner.power_cut(kept.into()),
                Step::RollBack(which) => images[which as usize % images.len()].clone(),
                Step::Reopen => {
                    tier.close();
                    now.inner.contents()
                }
            };
            drop(tier);
            images.push(now.inner.contents());
            now = device(image);
            tier = open(&now);
        }
        drop(tier);
        prop_assert!(repeated.lock().unwrap().is_empty(), "{:?}", repeated.lock().unwrap());
        prop_assert!(object == 0 || !sealed.lock().unwrap().is_empty());
    }
}
