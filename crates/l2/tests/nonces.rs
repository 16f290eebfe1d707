//! No two records are ever sealed with one nonce under one key, whatever crashes, reopenings,
//! clones and rollbacks come between them. The steps decide all that is written: the writer is kept
//! in step, and the power goes after so many writes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{Device, Faults, FaultyDevice};
use ogive_l2::format::{
    NUMBER_OF_SUMMARY, RecordHeader, SEGMENTS_START, SegmentHeader, SegmentTrailer,
};
use ogive_l2::{Cipher, Tier, nonce};
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
    inner: FaultyDevice,
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

fn open_by_its_clock(device: &Arc<Recorder>) -> Tier {
    let all = vec![ready(device.clone(), 0, how(Cipher::Gcm)).unwrap()];
    open_with(all, options_at(device.inner.clock())).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    /// Offer so many records, some under names that were used before.
    Write(u8),
    /// End cleanly and open again.
    Reopen,
    /// Offer so many records, and cut the power after so many writes, all of them or fewer; this
    /// share of the sectors survives.
    Crash { count: u8, writes: u64, kept: u32 },
    /// Go back to an earlier image of the device.
    RollBack(u8),
    /// Let writes fail in the middle for a while.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..60_u8).prop_map(Step::Write),
        1 => Just(Step::Reopen),
        2 => (0..60_u8, 0..6_u64, 0..=1000_u32)
            .prop_map(|(count, writes, kept)| Step::Crash { count, writes, kept }),
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
            inner: FaultyDevice::from_bytes(bytes, 5),
            sealed: sealed.clone(),
            salts: Mutex::default(),
            repeated: repeated.clone(),
        });
        let mut now = device(vec![0; 6 << 20]);
        let mut tier = open_by_its_clock(&now);
        let mut images = vec![now.inner.contents()];
        let mut object = 0;
        let mut put_more = |tier: &Tier, count| {
            for _ in 0..count {
                put(tier, object % 97, object / 97, 20_000);
                assert!(tier.keep_step());
                object += 1;
            }
            assert!(tier.settle());
        };
        for step in steps {
            let image = match step {
                Step::Write(count) => {
                    put_more(&tier, count);
                    continue;
                }
                Step::Fail => {
                    now.inner.set_faults(Faults { write_error: 500, ..Faults::default() });
                    put_more(&tier, 80);
                    now.inner.set_faults(Faults::default());
                    // It is asked again.
                    now.inner.clock().advance(LONG);
                    continue;
                }
                Step::Crash { count, writes, kept } => {
                    now.inner.cut_after(writes);
                    put_more(&tier, count);
                    now.inner.power_cut(kept)
                }
                Step::RollBack(which) => images[which as usize % images.len()].clone(),
                Step::Reopen => {
                    tier.close();
                    now.inner.contents()
                }
            };
            drop(tier);
            images.push(now.inner.contents());
            now = device(image);
            tier = open_by_its_clock(&now);
        }
        drop(tier);
        prop_assert!(repeated.lock().unwrap().is_empty(), "{:?}", repeated.lock().unwrap());
        prop_assert!(object == 0 || !sealed.lock().unwrap().is_empty());
    }
}
