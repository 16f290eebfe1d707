//! Discarding useless segments, on an SSD or in a file system.
//!
//! A segment is useless if a mount would find no record in it. It was never written, or another
//! installation wrote it, or a younger segment has each of its records again. The youngest segment
//! always stays, because its header has the account of all writes.

use super::open::{DeviceError, OpenOptions, open_to_look};
use super::recover::{read_summary, recover, walk};
use super::writer::start_of;
use super::{Store, StoreOptions};
use crate::counters::Counters;
use crate::device::Device;
use crate::format::UNIT_BYTES;
use crate::index::Place;
use std::sync::Arc;

/// The outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discarded {
    /// Segments that were discarded.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Segments that hold something of use.
    pub kept: u64,
}

/// Discards a device's segments of no use. They read as zeroes then, and the file system gets back
/// a file's space for them. Nothing else on the device changes.
///
/// # Errors
/// If the device cannot be opened with this key, or cannot discard.
pub fn discard(device: &Arc<dyn Device>, options: &OpenOptions) -> Result<Discarded, DeviceError> {
    let opened = open_to_look(&**device, options)?;
    let (segments, segment_bytes) = (opened.superblock.segments, opened.superblock.segment_bytes);
    let counters = Arc::new(Counters::default());
    let store = Store::new(device.clone(), opened, StoreOptions::default(), counters);
    let youngest = recover(&store);
    let mut done = Discarded::default();
    for number in 0..segments as u32 {
        if is_of_use(&store, number, youngest) {
            done.kept += 1;
            continue;
        }
        let discarded = device.discard_range(start_of(&store, number), segment_bytes);
        discarded.map_err(|error| DeviceError::System { action: "tell it what is free", error })?;
        done.segments += 1;
        done.bytes += segment_bytes;
    }
    device.flush().map_err(|error| DeviceError::System { action: "flush it", error })?;
    Ok(done)
}

fn is_of_use(store: &Store, number: u32, youngest: u64) -> bool {
    let Some((sequence, _)) = store.segments.seal_of(number) else { return false };
    let base = start_of(store, number) / UNIT_BYTES;
    let is_found = |key: &[u8; 16], place: u32| {
        let slot = store.index.find(Place::of(key));
        slot.is_some_and(|slot| slot.address() == base + u64::from(place))
    };
    sequence == youngest
        || read_summary(store, number)
            .unwrap_or_else(|| walk(store, number))
            .iter()
            .any(|entry| is_found(&entry.key, entry.place))
}
