//! Reading a whole device through and checking every seal.

use super::open::{DeviceError, OpenOptions, open_to_look};
use super::read::Unsealer;
use super::recover::{read_summary, recover, walk};
use super::writer::start_of;
use super::{Store, StoreOptions};
use crate::counters::Counters;
use crate::device::{AlignedBuffer, Device};
use crate::format::UNIT_BYTES;
use std::sync::Arc;

/// The result of reading a device through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Segments in use.
    pub segments: u64,
    /// Segments among them without a summary: they were open when the last user ended.
    pub open_segments: u64,
    /// Records that are whole.
    pub records: u64,
    /// Their bytes before compression.
    pub plain_bytes: u64,
    /// Their bytes on the device.
    pub stored_bytes: u64,
    /// The padding in those.
    pub padding_bytes: u64,
    /// Records whose seal is wrong or that cannot be read. Reading them through a mount is a miss.
    pub bad_records: u64,
}

/// Reads a device through and writes nothing. `progress` is called after each segment with the
/// number that are done; false stops.
///
/// # Errors
/// If the device cannot be opened; faults of records are counted.
pub fn verify(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
    mut progress: impl FnMut(u64, u64) -> bool,
) -> Result<Verification, DeviceError> {
    let opened = open_to_look(&**device, options)?;
    let segments = opened.superblock.segments;
    let counters = Arc::new(Counters::default());
    let store = Store::new(device.clone(), opened, StoreOptions::default(), counters);
    recover(&store);
    let mut found = Verification::default();
    let mut unsealer = Unsealer::default();
    for number in 0..segments as u32 {
        if store.segments.seal_of(number).is_some() {
            verify_segment(&store, number, &mut found, &mut unsealer);
        }
        if !progress(u64::from(number) + 1, segments) {
            break;
        }
    }
    Ok(found)
}

fn verify_segment(store: &Store, number: u32, found: &mut Verification, unsealer: &mut Unsealer) {
    found.segments += 1;
    let summary = read_summary(store, number).unwrap_or_else(|| {
        found.open_segments += 1;
        walk(store, number)
    });
    let base = start_of(store, number) / UNIT_BYTES;
    let mut buffer = AlignedBuffer::default();
    for entry in &summary {
        let length = entry.units() * UNIT_BYTES;
        let plan = store.plan_at(base + u64::from(entry.place), length);
        let whole = plan.and_then(|plan| {
            let read = buffer.first(plan.length);
            store.device.read_at(plan.offset, read).ok()?;
            let (header, bytes) = store.open_stored(&plan, read)?;
            Store::is_whole(&header, &bytes, unsealer)
        });
        if let Some(padding_bytes) = whole {
            found.records += 1;
            found.padding_bytes += padding_bytes as u64;
            found.plain_bytes += u64::from(entry.plain_bytes);
            found.stored_bytes += length;
        } else {
            found.bad_records += 1;
        }
    }
}
