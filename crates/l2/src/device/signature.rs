//! Whether something else lives on a device.
//!
//! As `blkid(8)` does it, with the names of what is met most often; but any byte that is not zero
//! in the first MiB counts as something, named or not: it is never overwritten unasked.

use super::{AlignedBuffer, Device};
use std::io;

/// How much is looked at: superblocks of all common file systems, tables and volumes are within.
const LOOK_BYTES: usize = 1 << 20;

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

/// What is on a device, in words; `None` if its first MiB is zero or it has no bytes at all.
///
/// # Errors
/// If it cannot be read.
pub fn foreign_contents(device: &dyn Device) -> io::Result<Option<&'static str>> {
    let whole = device.len_bytes()?.min(LOOK_BYTES as u64) as usize;
    let mut buffer = AlignedBuffer::zeroed(LOOK_BYTES);
    let alignment = device.alignment_bytes();
    let aligned = whole / alignment * alignment;
    if aligned > 0 {
        device.read_at(0, &mut buffer.bytes_mut()[..aligned])?;
    }
    let bytes = &buffer.bytes()[..aligned];
    let has = |(place, signature, _): &&(usize, &[u8], &str)| {
        bytes.get(*place..*place + signature.len()) == Some(*signature)
    };
    if let Some((_, _, name)) = KNOWN.iter().find(has) {
        return Ok(Some(name));
    }
    // Fewer bytes than can be read are something, too.
    let something = aligned < whole || bytes.iter().any(|byte| *byte != 0);
    Ok(something.then_some("data that ogive does not know"))
}
