//! Recovery of the index from a device: headers and trailers first, then the summaries, oldest
//! first.
//!
//! A segment without a summary was open when the power went, or the process. It is read through,
//! and every record whose seal is right is kept.
//!
//! # What a hostile device can make of it
//! Nothing that takes long. No length is followed before its code has been checked under the
//! segment's key. Only the youngest segments without a trailer are read through, as many as crashes
//! leave behind ([`WALKS_MAX`]). A walk ends when too many bytes, as many as a segment has, were
//! not what their headers promised.

use super::segments::Segment;
use super::writer::{publish, start_of};
use super::{Plan, Store};
use crate::cipher::{Purpose, SharedKey};
use crate::counters::add;
use crate::device::{AlignedBuffer, ReadRequest};
use crate::format::{
    NUMBER_OF_SUMMARY, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_BLOCK_BYTES, SUMMARY_ENTRY_BYTES,
    SegmentHeader, SegmentTrailer, SummaryEntry, UNIT_BYTES, parse_summary, summary_bytes,
};
use std::sync::atomic::Ordering;

/// Headers, or summaries, that are asked for at once.
const DEPTH: usize = 64;
/// Bytes of summaries that are asked for at once, beyond the first.
const SUMMARIES_BYTES_MAX: u64 = 8 << 20;
/// A trailer and the header behind it.
const BORDER_BYTES: usize = 2 * SEGMENT_BLOCK_BYTES;

/// Segments without a trailer that are read through: each crash leaves one or two behind, and the
/// log goes over them in its time.
const WALKS_MAX: usize = 64;

/// A seal that is tried and found wrong costs at least as much as so many bytes.
const UNSEAL_COST_BYTES: usize = 4096;

/// A segment whose header is right.
struct Found {
    header: SegmentHeader,
    key: SharedKey,
    /// If it has one of the header's sequence that is right.
    trailer: Option<SegmentTrailer>,
}

/// Fills index and table; returns the largest sequence on the device.
pub(super) fn recover(store: &Store) -> u64 {
    let mut found = read_borders(store);
    found.sort_unstable_by_key(|found| found.header.sequence);
    let last = found.last().map_or(0, |found| found.header.sequence);
    for Found { header, key, .. } in &found {
        let segment =
            Segment { sequence: header.sequence, key: Some(key.clone()), ..Segment::default() };
        store.segments.set(header.segment, segment);
        store.head.store(start_of(store, header.segment) / UNIT_BYTES, Ordering::Relaxed);
    }
    settle_account(store, found.last());
    let open = found.iter().filter(|found| found.trailer.is_none()).count();
    let mut walks = Walks { skipped: open.saturating_sub(WALKS_MAX), left: 2 * WALKS_MAX };
    let mut rest = &found[..];
    let mut buffers = Vec::new();
    while !rest.is_empty() && !store.queue.is_stopped() {
        let (group, others) = rest.split_at(group_of(rest));
        recover_group(store, group, &mut buffers, &mut walks);
        rest = others;
    }
    if rest.is_empty() {
        add(&store.counters.l2_rebuild_success, 1);
    }
    last
}

/// Continues the account with which the youngest segment began. Since then its bytes were sent; if
/// their number is unknown, the segment counts as full.
fn settle_account(store: &Store, youngest: Option<&Found>) {
    let account = youngest.map(|found| {
        let full = store.superblock.segment_bytes;
        let since = found.trailer.map_or(full, |trailer| trailer.sent_bytes());
        (found.header.account, since)
    });
    store.gate.found(account, store.now(), store.options.clock.seconds());
}

/// Which segments are still to be read through.
struct Walks {
    /// So many without a trailer are not: they are the oldest.
    skipped: usize,
    left: usize,
}

impl Walks {
    fn may_walk(&mut self, has_trailer: bool) -> bool {
        if !has_trailer && self.skipped > 0 {
            self.skipped -= 1;
            return false;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
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

fn recover_group(
    store: &Store,
    group: &[Found],
    buffers: &mut Vec<AlignedBuffer>,
    walks: &mut Walks,
) {
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
            None if walks.may_walk(found.trailer.is_some()) => walk(store, number),
            None => Vec::new(),
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
    let mut found = Vec::<Found>::new();
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
            if let (Some(before), Some(last)) = (border.checked_sub(1), found.last_mut())
                && last.header.segment == before
            {
                let expected = (before, last.header.sequence);
                last.trailer = check_trailer(store, expected, &last.key, trailer);
            }
            found.extend(check_header(store, border, header));
        }
    }
    found
}
/// First byte behind a segment.
fn end_of(store: &Store, number: u32) -> u64 {
    start_of(store, number) + store.superblock.segment_bytes
}

fn check_header(store: &Store, number: u32, bytes: &[u8]) -> Option<Found> {
    let header = SegmentHeader::parse(bytes)?;
    if header.segment != number || header.device != store.superblock.device {
        return None;
    }
    let key = store.keys.segment(&header.salt);
    let right = key.is_code(Purpose::Header, &header.covered(), &header.tag);
    right.then_some(Found { header, key, trailer: None })
}

/// The trailer of a segment with this sequence, if its lengths are valid.
fn check_trailer(
    store: &Store,
    (segment, sequence): (u32, u64),
    key: &SharedKey,
    bytes: &[u8],
) -> Option<SegmentTrailer> {
    let trailer = SegmentTrailer::parse(bytes, store.superblock.segment_bytes)?;
    let ours = trailer.segment == segment
        && trailer.device == store.superblock.device
        && trailer.sequence == sequence;
    (ours && key.is_code(Purpose::Trailer, &trailer.covered(), &trailer.code)).then_some(trailer)
}

/// The summary of a segment, if it has one of the sequence that is expected there.
pub(super) fn read_summary(store: &Store, number: u32) -> Option<Vec<SummaryEntry>> {
    let (sequence, key) = store.segments.seal_of(number)?;
    let trailer_at = end_of(store, number) - SEGMENT_BLOCK_BYTES as u64;
    let mut block = AlignedBuffer::zeroed(SEGMENT_BLOCK_BYTES);
    store.device.read_at(trailer_at, block.bytes_mut()).ok()?;
    let trailer = check_trailer(store, (number, sequence), &key, block.bytes())?;
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
    let (_, key) = store.segments.seal_of(trailer.segment)?;
    let sealed = bytes.get(..trailer.records as usize * SUMMARY_ENTRY_BYTES)?;
    let mut plain = vec![0; sealed.len()];
    let nonce = (trailer.salt, NUMBER_OF_SUMMARY);
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
    // Bytes that may prove to differ from their header.
    let mut patience = segment_bytes;
    while at + RECORD_HEADER_BYTES <= segment_bytes {
        let unit = at + UNIT_BYTES as usize;
        let Some((header, plan)) = promised(store, base + at as u64 / UNIT_BYTES, &bytes[at..])
        else {
            // A lost sector ends a record, not the segment.
            at = unit;
            continue;
        };
        let entry = SummaryEntry {
            key: header.key,
            place: (at as u64 / UNIT_BYTES) as u32,
            provenance: header.provenance,
            plain_bytes: header.plain_bytes,
            stored_bytes: header.stored_bytes,
        };
        let length = (entry.units() * UNIT_BYTES) as usize;
        add(&store.counters.l2_rebuild_unseals, 1);
        let record = bytes.get(at..at + length);
        if record.is_some_and(|record| store.open_stored(&plan, record).is_some()) {
            at += length;
            found.push(entry);
            continue;
        }
        patience = patience.saturating_sub(length.max(UNSEAL_COST_BYTES));
        if patience == 0 {
            break;
        }
        at = unit;
    }
    found
}

/// The header at an address, if it was written for that place in that segment, and what seal the
/// record that begins there must have.
fn promised(store: &Store, address: u64, bytes: &[u8]) -> Option<(RecordHeader, Plan)> {
    let header = RecordHeader::parse(bytes)?;
    // The bytes are in hand already: the plan only gives the expected seal.
    let plan = store.plan_at(address, UNIT_BYTES)?.at_start();
    plan.vouches_for(&header).then_some((header, plan))
}
