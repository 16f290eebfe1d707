//! Logs of the staging journal: arbitrary headers and payloads, and correctly sealed logs of fuzzed
//! payloads that are then overwritten in places.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_bucket::journal::{
    LOG_HEADER_BYTES, LogHeader, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES, Record, RecordHeader,
    RenameState, Scanned, State, scan,
};
use ogive_l2::{Cipher, SegmentKey};

/// Appends a payload to a log as a record.
fn seal(log: &mut Vec<u8>, keys: &SegmentKey, number: u32, durable: u32, payload: &[u8]) {
    let payload_bytes = payload.len() as u32;
    let mut header = RecordHeader { number, payload_bytes, durable, salt: [0; 8], tag: [0; 16] };
    let mut sealed = payload.to_vec();
    header.tag = keys.seal(header.salt, number, &header.additional(), &mut sealed);
    log.extend_from_slice(&header.to_bytes(keys));
    log.extend_from_slice(&sealed);
    log.resize(log.len().next_multiple_of(RECORD_HEADER_BYTES), 0);
}

/// Scans a log, and applies its records.
fn replay(log: &[u8], keys: &SegmentKey) -> Option<Scanned> {
    let mut state: Option<State> = None;
    let mut rename = RenameState::default();
    let mut read = |at: u64, bytes: &mut [u8]| {
        bytes.copy_from_slice(&log[at as usize..at as usize + bytes.len()]);
        Ok(())
    };
    let scanned =
        scan(&mut read, log.len() as u64, keys, &mut |place, record| match (&mut state, record) {
            (Some(state), record) => state.apply(place, record),
            (None, Record::Begin { key, base }) => {
                state = Some(State::new(key, base));
                Ok(())
            }
            (None, record) => rename.apply(record),
        });
    if let Some(state) = state {
        let spans = state.spans(0..u64::MAX);
        let bytes: u64 = spans.iter().map(|span| span.bytes()).sum();
        assert_eq!(bytes, state.size());
        assert!(state.staged_bytes() <= state.size());
    }
    assert!(rename.is_listed || !rename.is_copied, "nothing is copied before all keys are listed");
    scanned.ok()
}

fuzz_target!(|bytes: &[u8]| {
    let keys = SegmentKey::derive(&[1; 32], Cipher::Off, &[2; 16], &[3; 32]);
    if let Some(record) = Record::parse(bytes) {
        let mut again = Vec::new();
        record.encode(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(header) = LogHeader::parse(bytes) {
        assert_eq!(header.to_bytes(&keys)[..88], bytes[..88]);
    }
    if let Some(header) = RecordHeader::parse(bytes) {
        assert!(header.record_bytes() <= (RECORD_HEADER_BYTES + PAYLOAD_BYTES_MAX) as u64);
        assert_eq!(header.to_bytes(&keys)[..40], bytes[..40]);
    }
    // Input: two bytes of length, one for the durable records, then the payload. A length of 65,535
    // ends the records. Then four bytes of offset, one of length, and the bytes to overwrite with.
    let mut log = vec![0; LOG_HEADER_BYTES];
    let mut rest = bytes;
    let mut number = 0;
    while let [low, high, durable, tail @ ..] = rest {
        let length = u16::from_le_bytes([*low, *high]);
        rest = tail;
        if length == u16::MAX {
            break;
        }
        let (payload, tail) = rest.split_at(usize::from(length).min(rest.len()));
        seal(&mut log, &keys, number, u32::from(*durable).min(number), payload);
        number += 1;
        rest = tail;
    }
    let whole = replay(&log, &keys);
    assert!(whole.is_none_or(|scanned| scanned.torn_bytes == 0 && scanned.next == number));
    while let [a, b, c, d, length, tail @ ..] = rest {
        let place = u32::from_le_bytes([*a, *b, *c, *d]) as usize % log.len();
        let length = usize::from(*length).min(tail.len()).min(log.len() - place);
        log[place..place + length].copy_from_slice(&tail[..length]);
        rest = &tail[length..];
    }
    if let Some(scanned) = replay(&log, &keys) {
        assert!(scanned.end + scanned.torn_bytes >= log.len() as u64 || scanned.torn_bytes == 0);
    }
});
