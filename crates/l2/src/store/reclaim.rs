//! Reclaiming a segment: records that had hits since they were written are carried over, the rest
//! is forgotten.

use super::Store;
use super::read::Unsealer;
use super::recover::read_summary;
use super::writer::{Ready, Writer, start_of};
use crate::compression::Stored;
use crate::device::AlignedBuffer;
use crate::format::{RECORD_HEADER_BYTES, RecordHeader, SummaryEntry, UNIT_BYTES, provenance};
use crate::index::Place;
use crate::padding::unpad;

/// Share of a segment that may be carried over, one in so many, if the account of writes allows it.
/// So rewriting stays within its promised share of admitted bytes.
const CARRIED_SHARE: u64 = 10;

/// A record that is carried over to the next segment, unsealed and still compressed.
pub(super) struct Carried {
    key: [u8; 16],
    stored: Stored,
    is_padded: bool,
    plain_bytes: u32,
    provenance: u8,
    pub(super) bytes: Vec<u8>,
}

impl Carried {
    pub(super) fn ready(&self) -> Ready<'_> {
        Ready {
            key: self.key,
            stored: self.stored,
            is_padded: self.is_padded,
            plain_bytes: self.plain_bytes,
            bytes: &self.bytes,
            provenance: self.provenance,
        }
    }
}

impl Writer<'_> {
    /// Removes a segment from the index; returns its referenced records, up to `spare_bytes`.
    pub(super) fn reclaim(&mut self, number: u32, spare_bytes: u64) -> Vec<Carried> {
        let store = self.store;
        let base = start_of(store, number) / UNIT_BYTES;
        let units = store.superblock.segment_bytes / UNIT_BYTES;
        let Some(summary) = read_summary(store, number) else {
            // The contents are unknown.
            store.index.remove_range(base..base + units);
            return Vec::new();
        };
        let mut budget = (store.superblock.segment_bytes / CARRIED_SHARE).min(spare_bytes);
        let mut carried = Vec::new();
        for entry in &summary {
            let place = Place::of(&entry.key);
            let address = base + u64::from(entry.place);
            let slot = store.index.find(place).filter(|slot| slot.address() == address);
            let Some(slot) = slot else { continue };
            let cost = entry.units() * UNIT_BYTES;
            if slot.references() > 0
                && cost <= budget
                && let Some(record) = read_stored(store, address, entry)
            {
                budget -= cost;
                carried.push(record);
            }
            store.index.remove(place, address);
        }
        carried
    }
}

/// Reads the stored bytes of a record, and checks its seal.
fn read_stored(store: &Store, address: u64, entry: &SummaryEntry) -> Option<Carried> {
    let plan = store.plan_at(address, entry.units() * UNIT_BYTES)?;
    let mut buffer = AlignedBuffer::zeroed(plan.length);
    let read = buffer.first(plan.length);
    if store.device.read_at(plan.offset, read).is_err() {
        store.note_failure();
        return None;
    }
    let (header, bytes) = store.open_stored(&plan, read)?;
    (header.key == entry.key).then_some(Carried {
        key: header.key,
        stored: header.stored,
        is_padded: header.is_padded,
        plain_bytes: header.plain_bytes,
        provenance: header.provenance | provenance::REINSERTED,
        bytes,
    })
}

impl Store {
    /// Header and stored bytes of a record whose seal is right.
    pub(super) fn open_stored(
        &self,
        plan: &super::Plan,
        read: &[u8],
    ) -> Option<(RecordHeader, Vec<u8>)> {
        let record = read.get(plan.start()..)?;
        let header = RecordHeader::parse(record)?;
        let end = RECORD_HEADER_BYTES + header.stored_bytes as usize;
        let sealed = record.get(RECORD_HEADER_BYTES..end)?;
        let mut bytes = vec![0; sealed.len()];
        let additional = header.additional_data(plan.location());
        let nonce = (header.salt, header.number);
        let right = plan.key().open(nonce, &additional, header.tag, sealed, &mut bytes);
        right.then_some((header, bytes))
    }

    /// Whether an opened record also decompresses to its stated length, and how many of its bytes
    /// are padding.
    pub(super) fn is_whole(
        header: &RecordHeader,
        stored: &[u8],
        unsealer: &mut Unsealer,
    ) -> Option<usize> {
        let whole = (stored, header.plain_bytes as usize);
        let (bytes, plain_bytes) = if header.is_padded { unpad(stored)? } else { whole };
        let mut plain = vec![0; plain_bytes];
        let right = unsealer.decompress(header.stored, bytes, &mut plain);
        right.then_some(stored.len() - bytes.len())
    }
}
