//! Whether something else lives on a device.
//!
//! It works as `blkid(8)`, with the names of the most common contents. But any byte that is not
//! zero counts as contents, named or not, and is never overwritten unasked. The first MiB, the last
//! one and samples from the rest are looked at.

use super::{AlignedBuffer, Device, ReadRequest};
use std::io;

/// How much is looked at. The superblocks of all common file systems, tables and volumes are
/// within. Some have copies at the end, others have their only one there (RAID 0.90 and 1.0, ZFS).
const LOOK_BYTES: usize = 1 << 20;
/// Samples of the rest, and their size.
const SAMPLES: u64 = 1024;
const SAMPLE_BYTES: usize = 4096;

/// Place, bytes and name of signatures (util-linux, `libblkid/src/superblocks`).
const KNOWN: [(usize, &[u8], &str); 16] = [
    (0, b"OGIVEL2\n", "a second level of ogive"),
    (0x438, &[0x53, 0xef], "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0x218, b"LVM2 001", "an LVM volume"),
    (0x1000, &[0xfc, 0x4e, 0x2b, 0xa9], "a member of a RAID"),
    (0xff6, b"SWAPSPACE2", "swap space"),
    (3, b"NTFS    ", "an NTFS file system"),
    (0x36, b"FAT1", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0x200, b"EFI PART", "a partition table"),
    (0x400, &[0x10, 0x20, 0xf5, 0xf2], "an F2FS file system"),
    (0, b"hsqs", "a SquashFS image"),
    (0x1018, b"\xc6\x85\x73\xf6", "a bcache device"),
    (510, &[0x55, 0xaa], "a partition table or boot sector"),
];

/// The contents of a device, in words; `None` if all that was looked at is zero or it has no bytes
/// at all.
///
/// # Errors
/// If it cannot be read.
pub fn foreign_contents(device: &dyn Device) -> io::Result<Option<&'static str>> {
    const UNKNOWN: &str = "data that ogive does not know";
    let length = device.len_bytes()?;
    let alignment = device.alignment_bytes() as u64;
    let aligned = length / alignment * alignment;
    let mut buffer = AlignedBuffer::zeroed(LOOK_BYTES);
    let look_bytes = aligned.min(LOOK_BYTES as u64);
    let bytes = buffer.first(look_bytes as usize);
    if !bytes.is_empty() {
        device.read_at(0, bytes)?;
    }
    let has = |(place, signature, _): &&(usize, &[u8], &str)| {
        bytes.get(*place..*place + signature.len()) == Some(*signature)
    };
    if let Some((_, _, name)) = KNOWN.iter().find(has) {
        return Ok(Some(name));
    }
    // Fewer bytes than can be read are something, too.
    if aligned < length.min(LOOK_BYTES as u64) || !is_zero(bytes) {
        return Ok(Some(UNKNOWN));
    }
    let end = aligned - look_bytes;
    if end > 0 {
        device.read_at(end, bytes)?;
        if !is_zero(bytes) {
            return Ok(Some(UNKNOWN));
        }
    }
    Ok(has_samples(device, look_bytes..end)?.then_some(UNKNOWN))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Whether a sample of the range has anything in it.
fn has_samples(device: &dyn Device, range: std::ops::Range<u64>) -> io::Result<bool> {
    const BATCH: usize = 32;
    let places = range.end.saturating_sub(range.start) / SAMPLE_BYTES as u64;
    let step = places.div_ceil(SAMPLES).max(1) * SAMPLE_BYTES as u64;
    let mut buffer = AlignedBuffer::zeroed(BATCH * SAMPLE_BYTES);
    let mut next = range.start.next_multiple_of(SAMPLE_BYTES as u64);
    while next + SAMPLE_BYTES as u64 <= range.end {
        let mut reads = Vec::with_capacity(BATCH);
        for buffer in buffer.bytes_mut().chunks_mut(SAMPLE_BYTES) {
            if next + SAMPLE_BYTES as u64 <= range.end {
                reads.push(ReadRequest { offset: next, buffer, result: Ok(()) });
                next += step;
            }
        }
        device.read_many(&mut reads);
        for read in reads {
            read.result?;
            if !is_zero(read.buffer) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MemoryDevice;

    #[test]
    fn contents_anywhere_on_a_device_are_found() {
        const LENGTH: usize = 40 << 20;
        assert_eq!(foreign_contents(&MemoryDevice::new(LENGTH as u64)).unwrap(), None);
        assert_eq!(foreign_contents(&MemoryDevice::new(0)).unwrap(), None);
        for place in [0, 700_000, LENGTH - 65_536, LENGTH - 1] {
            let device = MemoryDevice::new(LENGTH as u64);
            device.tamper(|bytes| bytes[place] = 1);
            assert!(foreign_contents(&device).unwrap().is_some(), "a byte at {place}");
        }
        // In between, only samples are read: contents larger than the gaps are found.
        for place in [2 << 20, 17 << 20, 38 << 20] {
            let device = MemoryDevice::new(LENGTH as u64);
            device.tamper(|bytes| bytes[place..place + 65_536].fill(9));
            assert!(foreign_contents(&device).unwrap().is_some(), "64 KiB at {place}");
        }
    }

    #[test]
    fn known_contents_are_named() {
        for (place, signature, name) in KNOWN {
            let device = MemoryDevice::new(2 << 20);
            device.tamper(|bytes| {
                bytes[place..place + signature.len()].copy_from_slice(signature);
            });
            assert_eq!(foreign_contents(&device).unwrap(), Some(name));
        }
    }
}
