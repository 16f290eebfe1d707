//! Finding out what is on a device: headers and trailers first, then the summaries, eldest first.
//!
//! A segment without a summary was open when the power went, or the process. It is read through,
//! and every record whose seal is right is kept.

use super::Store;
use super::segments::Segment;
use super::writer::{publish, start_of};
use crate::cipher::nonce;
use crate::counters::add;
use crate::device::{AlignedBuffer, ReadRequest};
use crate::format::{
    NUMBER_OF_HEADER, NUMBER_OF_SUMMARY, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_BLOCK_BYTES,
    SUMMARY_ENTRY_BYTES, SegmentHeader, SegmentTrailer, SummaryEntry, UNIT_BYTES, parse_summary,
    summary_bytes,
};

/// Headers that are asked for at once.
const DEPTH: usize = 64;

/// Fills index and table; returns the largest sequence on the device.
pub(super) fn recover(store: &Store) -> u64 {
    let mut found = read_headers(store);
    found.sort_unstable_by_key(|header| header.sequence);
    let last = found.last().map_or(0, |header| header.sequence);
    for header in &found {
        let segment = Segment {
            sequence: header.sequence,
            key: Some(store.keys.epoch(&header.epoch_salt)),
            ..Segment::default()
        };
        store.segments.set(header.segment, segment);
    }
    for header in &found {
        if store.queue.is_stopped() {
            return last;
        }
        let summary = match read_summary(store, header.segment) {
            Some(summary) => {
                add(&store.counters.l2_rebuild_log_blks, 1);
                let bytes = summary_bytes(summary.len() as u64) + SEGMENT_BLOCK_BYTES as u64;
                store.segments.update(header.segment, |contents| contents.summary_bytes = bytes);
                summary
            }
            None => walk(store, header.segment),
        };
        publish(store, header.segment, &summary);
        add(&store.counters.l2_rebuild_bufs, summary.len() as u64);
        for entry in &summary {
            add(&store.counters.l2_rebuild_size, u64::from(entry.plain_bytes));
            add(&store.counters.l2_rebuild_asize, entry.units() * UNIT_BYTES);
        }
    }
    add(&store.counters.l2_rebuild_success, 1);
    last
}

/// Headers whose seal is right.
fn read_headers(store: &Store) -> Vec<SegmentHeader> {
    let mut found = Vec::new();
    let mut buffer = AlignedBuffer::zeroed(DEPTH * SEGMENT_BLOCK_BYTES);
    let segments = store.superblock.segments as u32;
    for first in (0..segments).step_by(DEPTH) {
        if store.queue.is_stopped() {
            break;
        }
        let numbers = first..segments.min(first + DEPTH as u32);
        let blocks = buffer.bytes_mut().chunks_mut(SEGMENT_BLOCK_BYTES);
        let mut reads: Vec<ReadRequest<'_>> = numbers
            .clone()
            .zip(blocks)
            .map(|(number, buffer)| ReadRequest {
                offset: start_of(store, number),
                buffer,
                result: Ok(()),
            })
            .collect();
        store.device.read_many(&mut reads);
        for (number, read) in numbers.zip(reads) {
            match read.result {
                Ok(()) => found.extend(check_header(store, number, read.buffer)),
                Err(_) => {
                    add(&store.counters.l2_rebuild_io_errors, 1);
                    store.note_failure();
                }
            }
        }
    }
    found
}

fn check_header(store: &Store, number: u32, bytes: &[u8]) -> Option<SegmentHeader> {
    let header = SegmentHeader::parse(bytes)?;
    if header.segment != number || header.device != store.superblock.device {
        return None;
    }
    let key = store.keys.epoch(&header.epoch_salt);
    let nonce = nonce(header.sequence, NUMBER_OF_HEADER);
    key.open(nonce, &header.additional_data(), header.tag, &[], &mut []).then_some(header)
}

/// The summary of a segment, if it has one of the sequence that is expected there.
pub(super) fn read_summary(store: &Store, number: u32) -> Option<Vec<SummaryEntry>> {
    let (sequence, key) = store.segments.seal_of(number)?;
    let segment_bytes = store.superblock.segment_bytes;
    let end = start_of(store, number) + segment_bytes;
    let mut block = AlignedBuffer::zeroed(SEGMENT_BLOCK_BYTES);
    store.device.read_at(end - SEGMENT_BLOCK_BYTES as u64, block.bytes_mut()).ok()?;
    let trailer = SegmentTrailer::parse(block.bytes(), segment_bytes)?;
    if trailer.segment != number
        || trailer.sequence != sequence
        || trailer.device != store.superblock.device
    {
        return None;
    }
    let length = summary_bytes(u64::from(trailer.records));
    let mut buffer = AlignedBuffer::zeroed(length as usize);
    let at = end - SEGMENT_BLOCK_BYTES as u64 - length;
    store.device.read_at(at, buffer.first(length as usize)).ok()?;
    let sealed = &buffer.bytes()[..trailer.records as usize * SUMMARY_ENTRY_BYTES];
    let mut plain = vec![0; sealed.len()];
    let nonce = nonce(sequence, NUMBER_OF_SUMMARY);
    if !key.open(nonce, &trailer.additional_data(), trailer.tag, sealed, &mut plain) {
        add(&store.counters.l2_rebuild_cksum_lb_errors, 1);
        return None;
    }
    Some(parse_summary(&plain, segment_bytes).collect())
}

/// Reads a segment through and returns the records whose seals are right.
pub(super) fn walk(store: &Store, number: u32) -> Vec<SummaryEntry> {
    let mut found = Vec::new();
    let segment_bytes = store.superblock.segment_bytes as usize;
    let mut buffer = AlignedBuffer::zeroed(segment_bytes);
    if store.device.read_at(start_of(store, number), buffer.first(segment_bytes)).is_err() {
        add(&store.counters.l2_rebuild_io_errors, 1);
        return found;
    }
    let bytes = &buffer.bytes()[..segment_bytes];
    let base = start_of(store, number) / UNIT_BYTES;
    let mut at = SEGMENT_BLOCK_BYTES;
    while at + RECORD_HEADER_BYTES <= segment_bytes {
        let entry = RecordHeader::parse(&bytes[at..]).map(|header| SummaryEntry {
            key: header.key,
            place: (at as u64 / UNIT_BYTES) as u32,
            provenance: header.provenance,
            plain_bytes: header.plain_bytes,
            stored_bytes: header.stored_bytes,
        });
        let whole = entry.filter(|entry| {
            let length = entry.units() * UNIT_BYTES;
            let Some(record) = bytes.get(at..at + length as usize) else { return false };
            let plan = store.plan_at(base + u64::from(entry.place), length);
            // The bytes are in hand already: the plan only says what seal they must have.
            plan.is_some_and(|plan| store.open_stored(&plan.at_start(), record).is_some())
        });
        match whole {
            Some(entry) => {
                at += (entry.units() * UNIT_BYTES) as usize;
                found.push(entry);
            }
            // A lost sector ends a record, not the segment.
            None => at += UNIT_BYTES as usize,
        }
    }
    found
}
