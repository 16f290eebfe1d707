//! A machine that is saved while it runs, and restored twice. Both copies have the device, the keys
//! and the state of the random generator.

use super::*;
use crate::cipher::MasterKey;
use crate::device::MemoryDevice;
use crate::format::{
    NUMBER_OF_SUMMARY, RecordHeader, SEGMENT_BLOCK_BYTES, SEGMENTS_START, SegmentHeader,
    SegmentTrailer,
};
use std::collections::HashMap;
use std::sync::atomic::AtomicU8;

const SEGMENT_BYTES: usize = 1 << 20;

/// Every message on a device: salt of its segment, salt and number of its nonce, and its tag.
type Messages = HashMap<([u8; 32], [u8; 8], u32), [u8; 16]>;

fn messages(image: &[u8]) -> Messages {
    let mut all = Messages::new();
    for segment in image[SEGMENTS_START as usize..].chunks_exact(SEGMENT_BYTES) {
        let Some(header) = SegmentHeader::parse(segment) else { continue };
        for unit in segment.chunks(512) {
            if let Some(record) = RecordHeader::parse(unit) {
                all.insert((header.salt, record.salt, record.number), record.tag);
            }
        }
        let end = &segment[SEGMENT_BYTES - SEGMENT_BLOCK_BYTES..];
        if let Some(trailer) = SegmentTrailer::parse(end, SEGMENT_BYTES as u64) {
            all.insert((header.salt, trailer.salt, NUMBER_OF_SUMMARY), trailer.tag);
        }
    }
    all
}

/// Continues from an image with the random bytes of an earlier draw, and writes records.
fn go_on(image: &[u8], records: &[(u8, u8)]) -> Vec<u8> {
    let memory = Arc::new(MemoryDevice::from_bytes(image.to_vec()));
    let device: Arc<dyn Device> = memory.clone();
    let key = KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap());
    let mut opened = open(&device, &OpenOptions { key, ..OpenOptions::default() }).unwrap();
    opened.keys.restored = Some(AtomicU8::new(7));
    // They are written together, or timing would separate the two copies.
    let options = StoreOptions {
        admission: crate::Admission::All,
        linger: Duration::from_secs(3600),
        close_patience: Duration::from_secs(60),
        clock: Clock::played(),
        ..StoreOptions::default()
    };
    let store = Store::start(device, opened, options, Arc::default(), None).unwrap();
    for (name, content) in records {
        let bytes = vec![*content; 20_000];
        assert!(store.admit(&[*name, *content], Arc::new(bytes), Offered::default()));
    }
    assert!(store.wait_taken(Instant::now() + Duration::from_secs(60)) && store.is_recovered());
    store.close();
    assert!(store.is_quiet(), "closing writes what there is");
    memory.contents()
}

/// Both copies go on from one state, and part at the record of this number.
fn part(image: &[u8], at: usize) {
    let both = [(3, 3), (4, 4), (5, 5), (6, 6), (7, 7)];
    let mut differ = both;
    differ[at..].iter_mut().for_each(|(_, content)| *content *= 10);
    let one = messages(&go_on(image, &both));
    let other = messages(&go_on(image, &differ));
    let shared = |all: &Messages, other: &Messages| {
        all.keys().filter(|(salt, ..)| other.keys().any(|(theirs, ..)| theirs == salt)).count()
    };
    assert!(shared(&one, &other) >= both.len(), "both have segments with one key");
    let alike: Vec<_> = one.keys().filter(|message| other.contains_key(*message)).collect();
    for message in &alike {
        assert_eq!(one[*message], other[*message], "one nonce, so one message: {message:?}");
    }
    let mine: Vec<_> = alike.iter().filter(|(salt, ..)| *salt == [7; 32]).collect();
    // Two records and a summary were on the device before.
    assert_eq!(mine.len(), 3 + at, "what is the same is sealed the same, and only that");
    let same_number = |(salt, _, number): &&([u8; 32], [u8; 8], u32)| {
        other.keys().any(|theirs| (theirs.0, theirs.2) == (*salt, *number))
    };
    let apart = one.keys().filter(|message| !other.contains_key(*message)).filter(same_number);
    assert_eq!(
        apart.count(),
        both.len() - at + 1,
        "the rest has nonces of its own, summary included"
    );
}

#[test]
fn a_running_machine_restored_twice_never_seals_two_messages_with_one_nonce() {
    let image = go_on(&vec![0; 8 << 20], &[(1, 1), (2, 2)]);
    (0..5).for_each(|at| part(&image, at));
}
