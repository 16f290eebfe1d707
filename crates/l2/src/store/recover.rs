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
use std::sync::atomic::Ordering;

/// Headers, or summaries, that are asked for at once.
const DEPTH: usize = 64;
/// Bytes of summaries that are asked for at once, beyond the first.
const SUMMARIES_BYTES_MAX: u64 = 8 << 20;
/// A trailer and the header behind it.
const BORDER_BYTES: usize = 2 * SEGMENT_BLOCK_BYTES;

/// A segment whose header is right.
struct Found {
    header: SegmentHeader,
    /// If it has one of the header's sequence.
    trailer: Option<SegmentTrailer>,
}

/// Fills index and table; returns the largest sequence on the device.
pub(super) fn recover(store: &Store) -> u64 {
    let mut found = read_borders(store);
    found.sort_unstable_by_key(|found| found.header.sequence);
    let last = found.last().map_or(0, |found| found.header.sequence);
    for Found { header, .. } in &found {
        let segment = Segment {
            sequence: header.sequence,
            key: Some(store.keys.epoch(&header.epoch_salt)),
            ..Segment::default()
        };
        store.segments.set(header.segment, segment);
        store.head.store(start_of(store, header.segment) / UNIT_BYTES, Ordering::Relaxed);
    }
    let mut rest = &found[..];
    let mut buffers = Vec::new();
    while !rest.is_empty() && !store.queue.is_stopped() {
        let (group, others) = rest.split_at(group_of(rest));
        recover_group(store, group, &mut buffers);
        rest = others;
    }
    if rest.is_empty() {
        add(&store.counters.l2_rebuild_success, 1);
    }
    store.gate.found(found.len() as u64 * store.superblock.segment_bytes);
    last
}

/// How many segments to go on with: as many summaries as are worth asking for at once.
fn group_of(rest: &[Found]) -> usize {
    let mut sum = 0;
    let fit = rest.iter().take(DEPTH).take_while(|found| {
        sum += found.trailer.map_or(0, |trailer| summary_bytes(trailer.records.into()));
        sum <= SUMMARIES_BYTES_MAX
    });
    fit.count().max(1)
}

fn recover_group(store: &Store, group: &[Found], buffers: &mut Vec<AlignedBuffer>) {
    buffers.resize_with(group.len().max(buffers.len()), AlignedBuffer::default);
    let mut reads = Vec::with_capacity(group.len());
    for (found, buffer) in group.iter().zip(&mut *buffers) {
        let Some(trailer) = &found.trailer else { continue };
        let length = summary_bytes(trailer.records.into());
        reads.push(ReadRequest {
            offset: end_of(store, trailer.segment) - SEGMENT_BLOCK_BYTES as u64 - length,
            buffer: buffer.first(length as usize),
            result: Ok(()),
        });
    }
    store.device.read_many(&mut reads);
    let mut reads = reads.into_iter();
    for found in group {
        let number = found.header.segment;
        let read = found.trailer.and_then(|trailer| Some((trailer, reads.next()?)));
        let summary = read.and_then(|(trailer, read)| match read.result {
            Ok(()) => unseal_summary(store, &trailer, read.buffer),
            Err(_) => {
                add(&store.counters.l2_rebuild_io_errors, 1);
                store.note_failure();
                None
            }
        });
        let summary = match summary {
            Some(summary) => {
                add(&store.counters.l2_rebuild_log_blks, 1);
                let bytes = summary_bytes(summary.len() as u64) + SEGMENT_BLOCK_BYTES as u64;
                store.segments.update(number, |contents| contents.summary_bytes = bytes);
                summary
            }
            None => walk(store, number),
        };
        publish(store, number, &summary);
        add(&store.counters.l2_rebuild_bufs, summary.len() as u64);
        for entry in &summary {
            add(&store.counters.l2_rebuild_size, u64::from(entry.plain_bytes));
            add(&store.counters.l2_rebuild_asize, entry.units() * UNIT_BYTES);
        }
    }
}

/// Headers whose seal is right, with the trailers that belong to them. The trailer of one segment
/// and the header of the next are read at once.
fn read_borders(store: &Store) -> Vec<Found> {
    let segments = store.superblock.segments as u32;
    let mut headers = Vec::new();
    let mut trailers = vec![None; segments as usize];
    let mut buffer = AlignedBuffer::zeroed(DEPTH * BORDER_BYTES);
    for first in (0..=segments).step_by(DEPTH) {
        if store.queue.is_stopped() {
            break;
        }
        let borders = first..segments.saturating_add(1).min(first + DEPTH as u32);
        let blocks = buffer.bytes_mut().chunks_mut(BORDER_BYTES);
        let mut reads: Vec<ReadRequest<'_>> = borders
            .clone()
            .zip(blocks)
            .map(|(border, buffer)| ReadRequest {
                offset: start_of(store, border) - SEGMENT_BLOCK_BYTES as u64,
                // Behind the last segment there is no header.
                buffer: if border == segments {
                    &mut buffer[..SEGMENT_BLOCK_BYTES]
                } else {
                    buffer
                },
                result: Ok(()),
            })
            .collect();
        store.device.read_many(&mut reads);
        for (border, read) in borders.zip(reads) {
            if read.result.is_err() {
                add(&store.counters.l2_rebuild_io_errors, 1);
                store.note_failure();
                continue;
            }
            let (trailer, header) = read.buffer.split_at(SEGMENT_BLOCK_BYTES);
            headers.extend(check_header(store, border, header));
            if let Some(before) = border.checked_sub(1) {
                trailers[before as usize] = check_trailer(store, before, trailer);
            }
        }
    }
    let with_trailer = |header: SegmentHeader| {
        let trailer = trailers[header.segment as usize]
            .filter(|trailer: &SegmentTrailer| trailer.sequence == header.sequence);
        Found { header, trailer }
    };
    headers.into_iter().map(with_trailer).collect()
}

/// First byte behind a segment.
fn end_of(store: &Store, number: u32) -> u64 {
    start_of(store, number) + store.superblock.segment_bytes
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

/// A trailer that stands where it says; its seal is the summary's.
fn check_trailer(store: &Store, number: u32, bytes: &[u8]) -> Option<SegmentTrailer> {
    let trailer = SegmentTrailer::parse(bytes, store.superblock.segment_bytes)?;
    let ours = trailer.segment == number && trailer.device == store.superblock.device;
    ours.then_some(trailer)
}

/// The summary of a segment, if it has one of the sequence that is expected there.
pub(super) fn read_summary(store: &Store, number: u32) -> Option<Vec<SummaryEntry>> {
    let (sequence, _) = store.segments.seal_of(number)?;
    let trailer_at = end_of(store, number) - SEGMENT_BLOCK_BYTES as u64;
    let mut block = AlignedBuffer::zeroed(SEGMENT_BLOCK_BYTES);
    store.device.read_at(trailer_at, block.bytes_mut()).ok()?;
    let trailer = check_trailer(store, number, block.bytes())
        .filter(|trailer| trailer.sequence == sequence)?;
    let length = summary_bytes(u64::from(trailer.records));
    let mut buffer = AlignedBuffer::zeroed(length as usize);
    store.device.read_at(trailer_at - length, buffer.first(length as usize)).ok()?;
    unseal_summary(store, &trailer, buffer.bytes())
}

fn unseal_summary(
    store: &Store,
    trailer: &SegmentTrailer,
    bytes: &[u8],
) -> Option<Vec<SummaryEntry>> {
    let (sequence, key) = store.segments.seal_of(trailer.segment)?;
    let sealed = bytes.get(..trailer.records as usize * SUMMARY_ENTRY_BYTES)?;
    let mut plain = vec![0; sealed.len()];
    let nonce = nonce(sequence, NUMBER_OF_SUMMARY);
    if !key.open(nonce, &trailer.additional_data(), trailer.tag, sealed, &mut plain) {
        add(&store.counters.l2_rebuild_cksum_lb_errors, 1);
        return None;
    }
    Some(parse_summary(&plain, store.superblock.segment_bytes).collect())
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
