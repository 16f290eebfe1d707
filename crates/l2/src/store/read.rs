//! Reading a record: from a slot of the index to bytes that can be trusted.

use super::Store;
use crate::cipher::{Purpose, SharedKey};
use crate::compression::{Decompressor, Stored};
use crate::counters::{Stopwatch, add};
use crate::format::{Location, RECORD_HEADER_BYTES, RecordHeader, SEGMENTS_START, UNIT_BYTES};
use crate::index::{Place, Slot};
use crate::padding::unpad;

/// The place to read for a slot, and the expected contents.
#[derive(Clone)]
pub(crate) struct Plan {
    /// First byte to read; a multiple of the device's alignment, as is the length.
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// Where the record begins in the bytes that are read.
    start: usize,
    location: Location,
    key: SharedKey,
}

/// Why a record cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another record is there, or none.
    Stale,
    /// The record was changed.
    Bad,
}

/// The memory that one thread needs to open records.
#[derive(Default)]
pub(crate) struct Unsealer {
    decompressor: Decompressor,
    scratch: Vec<u8>,
    /// Where the next record goes, if it is as long as the last.
    spare: Vec<u8>,
    last_bytes: usize,
}

impl Plan {
    /// The same for bytes that begin with the record.
    pub(super) fn at_start(mut self) -> Self {
        self.start = 0;
        self
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn location(&self) -> Location {
        self.location
    }

    pub(super) fn key(&self) -> &SharedKey {
        &self.key
    }

    /// Whether a header was written for this place in this segment. Its lengths are then those of
    /// the sealed record.
    pub(super) fn vouches_for(&self, header: &RecordHeader) -> bool {
        self.key.is_code(Purpose::Record, &header.covered(self.location), &header.code)
    }
}

impl Unsealer {
    /// Takes the memory that the next record will probably need. Call it while a device works:
    /// fresh memory costs about as much as unsealing into it.
    pub(crate) fn prepare(&mut self) {
        if self.spare.len() != self.last_bytes {
            self.spare = vec![0; self.last_bytes];
        }
    }

    /// Memory for a record.
    fn destination(&mut self, len_bytes: usize) -> Vec<u8> {
        self.last_bytes = len_bytes;
        let spare = std::mem::take(&mut self.spare);
        if spare.len() == len_bytes { spare } else { vec![0; len_bytes] }
    }

    pub(super) fn decompress(&mut self, way: Stored, stored: &[u8], plain: &mut [u8]) -> bool {
        self.decompressor.decompress(way, stored, plain)
    }
}

impl Store {
    /// The slot of a key in the index.
    pub(crate) fn look(&self, key: &[u8; 16]) -> Option<Slot> {
        self.index.find(Place::of(key))
    }

    /// How to read what a slot points at; `None` if that is nowhere.
    pub(crate) fn plan(&self, slot: Slot) -> Option<Plan> {
        let length = self.classes.bytes(slot.class());
        self.plan_at(slot.address(), length)
    }

    pub(super) fn plan_at(&self, address: u64, length: u64) -> Option<Plan> {
        let segment_bytes = self.superblock.segment_bytes;
        let byte = (address * UNIT_BYTES).checked_sub(SEGMENTS_START)?;
        let (segment, within) = (byte / segment_bytes, byte % segment_bytes);
        if segment >= self.superblock.segments {
            return None;
        }
        let segment = u32::try_from(segment).ok()?;
        let (sequence, key) = self.segments.seal_of(segment)?;
        let end = within + length.min(segment_bytes - within);
        let alignment = self.device.alignment_bytes() as u64;
        let first = within / alignment * alignment;
        let length = (end - first).next_multiple_of(alignment);
        Some(Plan {
            offset: SEGMENTS_START + u64::from(segment) * segment_bytes + first,
            length: usize::try_from(length).ok()?,
            start: (within - first) as usize,
            location: Location {
                device: self.superblock.device,
                segment,
                place: u32::try_from(within / UNIT_BYTES).ok()?,
                sequence,
            },
            key,
        })
    }

    /// Opens the record that was read by a plan.
    pub(crate) fn unseal(
        &self,
        plan: &Plan,
        read: &[u8],
        key: &[u8; 16],
        unsealer: &mut Unsealer,
    ) -> Result<Vec<u8>, Fault> {
        let record = read.get(plan.start..).ok_or(Fault::Stale)?;
        let header = RecordHeader::parse(record).ok_or(Fault::Stale)?;
        if header.key != *key {
            return Err(Fault::Stale);
        }
        // Only for counting: a record of another time in this place is no damage.
        let fault = || if plan.vouches_for(&header) { Fault::Bad } else { Fault::Stale };
        let end = RECORD_HEADER_BYTES + header.stored_bytes as usize;
        let sealed = record.get(RECORD_HEADER_BYTES..end).ok_or(Fault::Bad)?;
        // The length of a padded record is known only after unsealing.
        let known = if header.is_padded { 0 } else { header.plain_bytes as usize };
        let mut plain = unsealer.destination(known);
        let additional = header.additional_data(plan.location);
        let nonce = (header.salt, header.number);
        let counters = &self.counters;
        let mut watch = Stopwatch::start();
        let cpu = if plan.key.is_checksum() {
            &counters.l2_copy_cpu_ns
        } else {
            &counters.l2_unseal_cpu_ns
        };
        if header.stored == Stored::Plain && !header.is_padded {
            let right = plan.key.open(nonce, &additional, header.tag, sealed, &mut plain);
            watch.lap(cpu);
            add(&counters.l2_unsealed_bytes, u64::from(header.stored_bytes));
            return if right { Ok(plain) } else { Err(fault()) };
        }
        unsealer.scratch.resize(sealed.len(), 0);
        let scratch = &mut unsealer.scratch[..sealed.len()];
        let right = plan.key.open(nonce, &additional, header.tag, sealed, scratch);
        watch.lap(cpu);
        add(&counters.l2_unsealed_bytes, u64::from(header.stored_bytes));
        if !right {
            return Err(fault());
        }
        let mut bytes = &scratch[..];
        if header.is_padded {
            let plain_bytes;
            (bytes, plain_bytes) = unpad(scratch).ok_or(Fault::Bad)?;
            plain = vec![0; plain_bytes];
        }
        let right = unsealer.decompressor.decompress(header.stored, bytes, &mut plain);
        watch.lap(&counters.l2_decompress_cpu_ns);
        if right { Ok(plain) } else { Err(Fault::Bad) }
    }

    /// A record was read and was right.
    pub(crate) fn note_hit(&self, key: &[u8; 16]) {
        self.index.touch(Place::of(key));
    }

    /// A record could not be had: its slot is of no use any more.
    pub(crate) fn note_fault(&self, key: &[u8; 16], slot: Slot, fault: Fault) {
        let counter = match fault {
            Fault::Stale => &self.counters.l2_stale,
            Fault::Bad => &self.counters.l2_cksum_bad,
        };
        add(counter, 1);
        self.index.remove(Place::of(key), slot.address());
    }
}
