//! The thread that writes, and the segment it has open.
//!
//! Records are sealed into a buffer. It is written when it has a MiB, or when nothing more came for
//! a second. Only then the index gets the records. Until then they are found in the queue. A
//! segment ends with its summary, and the next is the oldest of the log.

use super::recover::recover;
use super::segments::Segment;
use super::{Popped, Store};
use crate::cipher::{Purpose, SharedKey};
use crate::compression::{Compressor, Stored};
use crate::counters::{Stopwatch, add};
use crate::device::AlignedBuffer;
use crate::format::{
    Location, NUMBER_OF_SUMMARY, RECORD_HEADER_BYTES, RECORD_NUMBER_MAX, RecordHeader,
    SEGMENT_BLOCK_BYTES, SEGMENTS_START, SegmentHeader, SegmentTrailer, SummaryEntry, UNIT_BYTES,
    provenance, record_units, summary_bytes,
};
use crate::index::{Inserted, Place};
use crate::padding::{Padded, Padder};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

/// Bytes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Writes are multiples of this, whatever the device reports today.
const BLOCK_BYTES: u64 = SEGMENT_BLOCK_BYTES as u64;

/// A write of a chunk may take so many times the patience of a read before it counts as a failure.
/// No reader waits for it.
const SLOW_WRITE_FACTOR: u32 = 4;

/// Starts the thread, which begins with the recovery.
pub(super) fn spawn(store: Arc<Store>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("l2_write".into()).spawn(move || {
        // Closing must not wait for a thread that has gone.
        struct End(Arc<Store>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.queue.end();
            }
        }
        let end = End(store);
        let started = Instant::now();
        let last = recover(&end.0);
        let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        end.0.recovery_ns.store(took, Ordering::Relaxed);
        end.0.recovered.store(true, Ordering::Release);
        match Writer::new(&end.0, last) {
            Ok(mut writer) => writer.run(),
            Err(error) => log::warn!("nothing is written to the second level: {error}"),
        }
    })
}

/// The writer's state; no other thread sees it.
pub(super) struct Writer<'a> {
    pub(super) store: &'a Store,
    compressor: Compressor,
    padder: Padder,
    /// The sequence given out last.
    sequence: u64,
    open: Option<Open>,
    chunk: AlignedBuffer,
    account: Account,
}

/// The account of bytes written and of bytes admitted.
#[derive(Default)]
struct Account {
    /// Records that were admitted, as stored.
    admitted_bytes: u64,
    /// Everything that was sent to the device.
    sent_bytes: u64,
}

impl Account {
    /// The most bytes sent per admitted byte, in thousandths. A little less than the promised 1.15,
    /// because the next segment's header and padding are still to come.
    const SENT_MAX: u64 = 1140;

    /// Bytes that may still be carried over.
    fn spare_bytes(&self) -> u64 {
        (self.admitted_bytes / 1000 * Self::SENT_MAX).saturating_sub(self.sent_bytes)
    }
}

/// A segment that is being written.
struct Open {
    number: u32,
    sequence: u64,
    key: SharedKey,
    /// Start of the chunk in the segment, and its filled bytes.
    chunk_start: u64,
    chunk_filled: usize,
    next_record: u32,
    summary: Vec<SummaryEntry>,
    /// How many entries of the summary are on the device.
    published: usize,
    /// Uncompressed bytes of the entries that are not.
    unpublished_bytes: u64,
}

/// A record ready to be sealed.
pub(super) struct Ready<'a> {
    pub(super) key: [u8; 16],
    pub(super) stored: Stored,
    pub(super) is_padded: bool,
    pub(super) plain_bytes: u32,
    pub(super) bytes: &'a [u8],
    pub(super) provenance: u8,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Store, sequence: u64) -> std::io::Result<Self> {
        Ok(Self {
            store,
            compressor: Compressor::new(store.options.compression)?,
            padder: Padder::new(store.options.padding),
            sequence,
            open: None,
            chunk: AlignedBuffer::zeroed(CHUNK_BYTES),
            account: Account::default(),
        })
    }

    fn run(&mut self) {
        loop {
            let waiting = self.open.as_ref().is_some_and(|open| open.chunk_filled > 0);
            let linger = self.store.options.linger;
            match self.store.queue.pop(waiting.then_some(linger)) {
                Popped::Record(record) => {
                    let bytes: &[u8] = (*record.bytes).as_ref();
                    self.write(record.key, bytes, record.provenance);
                }
                Popped::Idle => self.flush(),
                Popped::Stop => break,
            }
        }
        self.finish_segment();
        if let Err(error) = self.store.device.flush() {
            log::warn!("the second level's last writes may be lost: {error}");
        }
    }

    /// Compresses and seals one record of the queue; failing that, gives it up.
    fn write(&mut self, key: [u8; 16], plain: &[u8], provenance: u8) {
        let mut watch = Stopwatch::start();
        // Their buffers are borrowed while the segment is filled.
        let mut compressor = std::mem::replace(&mut self.compressor, Compressor::none());
        let mut padder = std::mem::take(&mut self.padder);
        let compressed = compressor.compress(plain);
        let Padded { stored, bytes, plain_bytes, padding_bytes } = padder.pad(plain, compressed);
        watch.lap(&self.store.counters.l2_compress_cpu_ns);
        let plain_bytes = u32::try_from(plain_bytes).unwrap_or(u32::MAX);
        let is_padded = padding_bytes > 0;
        let taken = self.append(&Ready { key, stored, is_padded, plain_bytes, bytes, provenance });
        self.compressor = compressor;
        self.padder = padder;
        if taken {
            add(&self.store.counters.l2_padding_bytes, padding_bytes as u64);
        }
        if !taken {
            add(&self.store.counters.l2_dropped_device, 1);
            self.store.queue.done(std::iter::once(key));
        }
    }

    /// Puts a record into the open segment, or the next; false if there is none to be had.
    fn append(&mut self, ready: &Ready<'_>) -> bool {
        let units = record_units(ready.bytes.len());
        if self.store.is_bypassed() {
            // No caller was promised the bytes in the buffer.
            self.abandon();
            return false;
        }
        if self.open.as_ref().is_some_and(|open| !open.has_room(self.store, units)) {
            self.finish_segment();
        }
        if self.open.is_none() && !self.begin_segment() {
            return false;
        }
        self.seal(ready, units);
        let limit = self.store.queue.bytes_max() / 2;
        let full = self
            .open
            .as_ref()
            .is_some_and(|open| open.chunk_filled >= CHUNK_BYTES || open.unpublished_bytes > limit);
        if full {
            self.flush();
        }
        true
    }

    /// Seals a record into the buffer. The open segment has room for it.
    fn seal(&mut self, ready: &Ready<'_>, units: u64) {
        let counters = &self.store.counters;
        let Some(open) = &mut self.open else { return };
        let mut watch = Stopwatch::start();
        let place = (open.chunk_start + open.chunk_filled as u64) / UNIT_BYTES;
        let length = (units * UNIT_BYTES) as usize;
        let start = open.chunk_filled;
        let area = &mut self.chunk.first(start + length)[start..];
        let stored_bytes = ready.bytes.len();
        let mut header = RecordHeader {
            stored: ready.stored,
            is_padded: ready.is_padded,
            provenance: ready.provenance,
            key: ready.key,
            salt: [0; 8],
            number: open.next_record,
            plain_bytes: ready.plain_bytes,
            stored_bytes: stored_bytes as u32,
            code: [0; 4],
            tag: [0; 16],
        };
        open.next_record += 1;
        if ready.provenance & provenance::REINSERTED == 0 {
            self.account.admitted_bytes += stored_bytes as u64;
        }
        let (head, rest) = area.split_at_mut(RECORD_HEADER_BYTES);
        let (body, padding) = rest.split_at_mut(stored_bytes);
        body.copy_from_slice(ready.bytes);
        padding.fill(0);
        let location = Location {
            device: self.store.superblock.device,
            segment: open.number,
            place: place as u32,
            sequence: open.sequence,
        };
        header.salt = open.key.salt_of(&header.covered(location), body);
        header.code = open.key.code(Purpose::Record, &header.covered(location));
        let additional = header.additional_data(location);
        header.tag = open.key.seal(header.salt, header.number, &additional, body);
        head.copy_from_slice(&header.to_bytes());
        open.chunk_filled += length;
        open.unpublished_bytes += u64::from(ready.plain_bytes);
        open.summary.push(SummaryEntry {
            key: ready.key,
            place: place as u32,
            provenance: ready.provenance,
            plain_bytes: ready.plain_bytes,
            stored_bytes: stored_bytes as u32,
        });
        watch.lap(&counters.l2_seal_cpu_ns);
    }

    /// Writes the buffer and adds its records to the index.
    pub(super) fn flush(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.chunk_filled == 0 {
            return;
        }
        let filled = open.chunk_filled;
        let length = (filled as u64).next_multiple_of(BLOCK_BYTES) as usize;
        let chunk = self.chunk.first(length);
        chunk[filled..].fill(0);
        let at = start_of(self.store, open.number) + open.chunk_start;
        self.account.sent_bytes += length as u64;
        if !write(self.store, at, chunk) {
            self.abandon();
            return;
        }
        open.chunk_start += length as u64;
        open.chunk_filled = 0;
        open.unpublished_bytes = 0;
        let written = &open.summary[open.published..];
        publish(self.store, open.number, written);
        self.store.queue.done(written.iter().map(|entry| entry.key));
        open.published = open.summary.len();
    }

    /// Gives up the open segment after a failure. Its records on the device stay readable; its
    /// sequence and numbers are never used again.
    fn abandon(&mut self) {
        if let Some(open) = self.open.take() {
            let lost = &open.summary[open.published..];
            add(&self.store.counters.l2_dropped_device, lost.len() as u64);
            self.store.queue.done(lost.iter().map(|entry| entry.key));
        }
    }

    /// Writes the summary: from now on the segment outlives the process.
    fn finish_segment(&mut self) {
        self.flush();
        let Some(open) = self.open.take() else { return };
        let store = self.store;
        let length = summary_bytes(open.summary.len() as u64) as usize + SEGMENT_BLOCK_BYTES;
        let mut buffer = AlignedBuffer::zeroed(length);
        let (summary, trailer) = buffer.first(length).split_at_mut(length - SEGMENT_BLOCK_BYTES);
        let (entries, _) = summary.as_chunks_mut::<32>();
        for (bytes, entry) in entries.iter_mut().zip(&open.summary) {
            *bytes = entry.to_bytes();
        }
        let mut written = SegmentTrailer {
            segment: open.number,
            sequence: open.sequence,
            device: store.superblock.device,
            records: open.summary.len() as u32,
            data_bytes: open.chunk_start as u32,
            salt: [0; 8],
            tag: [0; 16],
            code: [0; 16],
        };
        let sealed = &mut summary[..open.summary.len() * 32];
        written.salt = open.key.salt_of(&written.additional_data(), sealed);
        let additional = written.additional_data();
        written.tag = open.key.seal(written.salt, NUMBER_OF_SUMMARY, &additional, sealed);
        written.code = open.key.code(Purpose::Trailer, &written.covered());
        trailer.copy_from_slice(&written.to_bytes());
        let end = start_of(store, open.number) + store.superblock.segment_bytes;
        self.account.sent_bytes += length as u64;
        if write(store, end - length as u64, buffer.first(length)) {
            add(&store.counters.l2_log_blk_writes, 1);
            store.segments.update(open.number, |contents| contents.summary_bytes = length as u64);
        }
    }

    /// Takes the oldest segment for the next one; its used records are carried over.
    fn begin_segment(&mut self) -> bool {
        let store = self.store;
        let Some((number, old)) = store.segments.oldest() else { return false };
        let Ok((salt, key)) = store.keys.begin_segment() else { return false };
        let Some(sequence) = self.sequence.checked_add(1) else { return false };
        let spare_bytes = self.account.spare_bytes();
        let carried = if old == 0 { Vec::new() } else { self.reclaim(number, spare_bytes) };
        store.head.store(start_of(store, number) / UNIT_BYTES, Ordering::Relaxed);
        store.allow_index_growth();
        self.sequence = sequence;
        let mut header = SegmentHeader {
            segment: number,
            sequence,
            device: store.superblock.device,
            salt,
            account: store.gate.account(store.now(), store.options.clock.seconds()),
            tag: [0; 16],
        };
        header.tag = key.code(Purpose::Header, &header.covered());
        self.chunk.first(SEGMENT_BLOCK_BYTES).copy_from_slice(&header.to_bytes());
        let segment = Segment { sequence, key: Some(key.clone()), ..Segment::default() };
        store.segments.set(number, segment);
        self.open = Some(Open {
            number,
            sequence,
            key,
            chunk_start: 0,
            chunk_filled: SEGMENT_BLOCK_BYTES,
            next_record: 0,
            summary: Vec::new(),
            published: 0,
            unpublished_bytes: 0,
        });
        add(&store.counters.l2_feeds, 1);
        for record in carried {
            let stored_bytes = record.bytes.len() as u64;
            if self.append(&record.ready()) {
                add(&store.counters.l2_reinserted, 1);
                add(&store.counters.l2_reinserted_bytes, stored_bytes);
            }
        }
        self.open.is_some()
    }
}

impl Open {
    fn has_room(&self, store: &Store, units: u64) -> bool {
        let end = self.chunk_start + self.chunk_filled as u64 + units * UNIT_BYTES;
        let summary = summary_bytes(self.summary.len() as u64 + 1);
        let needed = end.next_multiple_of(BLOCK_BYTES) + summary + BLOCK_BYTES;
        needed <= store.superblock.segment_bytes && self.next_record < RECORD_NUMBER_MAX - 1
    }
}

/// First byte of a segment.
pub(super) fn start_of(store: &Store, number: u32) -> u64 {
    SEGMENTS_START + u64::from(number) * store.superblock.segment_bytes
}

/// Adds records on the device to the index, and counts them in the table of segments.
pub(super) fn publish(store: &Store, number: u32, entries: &[SummaryEntry]) {
    let base = start_of(store, number) / UNIT_BYTES;
    for entry in entries {
        let class = store.classes.class_of(entry.units());
        let address = base + u64::from(entry.place);
        let inserted = store.index.insert(Place::of(&entry.key), class, address);
        if matches!(inserted, Inserted::Displaced(_)) {
            add(&store.counters.l2_index_lost, 1);
        }
    }
    store.segments.update(number, |contents| {
        for entry in entries {
            let stored_bytes = entry.units() * UNIT_BYTES;
            contents.add(u64::from(entry.plain_bytes), stored_bytes, entry.provenance);
        }
    });
    let counters = &store.counters;
    if store.is_recovered() {
        let fresh = entries.iter().filter(|e| e.provenance & provenance::REINSERTED == 0);
        for entry in fresh {
            add(&counters.l2_records_written, 1);
            add(&counters.l2_plain_bytes_written, u64::from(entry.plain_bytes));
            add(&counters.l2_stored_bytes_written, u64::from(entry.stored_bytes));
        }
    }
}

/// Writes to the device and counts; false if it failed.
fn write(store: &Store, offset: u64, bytes: &[u8]) -> bool {
    let counters = &store.counters;
    let mut watch = Stopwatch::start();
    add(&counters.l2_writes_sent, 1);
    let started = store.now();
    store.gate.charge(bytes.len() as u64, started);
    let result = store.device.write_at(offset, bytes);
    watch.lap(&counters.l2_write_cpu_ns);
    add(&counters.l2_writes_done, 1);
    match result {
        Ok(()) => {
            add(&counters.l2_write_bytes, bytes.len() as u64);
            if store.now() - started > store.options.slow.saturating_mul(SLOW_WRITE_FACTOR) {
                store.note_slow();
            } else {
                store.note_success();
            }
            true
        }
        Err(error) => {
            log::info!("a write to the second level failed: {error}");
            add(&counters.l2_writes_error, 1);
            store.note_failure();
            false
        }
    }
}
