//! The layout of answers in a payload (`include/uapi/linux/fuse.h`, protocol 7.42).

use super::protocol::{u32_at, u64_at};
use crate::view::NodeAttributes;
use ogive_origin::{FileFlags, FileKind, FileSystemStatistics};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// `sizeof(struct fuse_attr)`.
const ATTRIBUTES_BYTES: usize = 88;
/// `sizeof(struct fuse_entry_out)`.
pub(super) const ENTRY_BYTES: usize = 128;
/// `sizeof(struct fuse_dirent)`, without the name.
const LISTED_BYTES: usize = 24;
/// An entry of a listing is rounded up to this.
const LISTED_ALIGNMENT: usize = 8;

/// `FOPEN_*`: how the kernel treats an opened file.
pub(super) mod open_flags {
    pub(crate) const DIRECT_IO: u32 = 1;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    pub(crate) const CACHE_DIR: u32 = 1 << 3;
    pub(crate) const NOFLUSH: u32 = 1 << 5;
    pub(crate) const PASSTHROUGH: u32 = 1 << 7;
}

/// How long the kernel may cache a name and its attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) name: Duration,
    pub(super) attributes: Duration,
}

impl Validity {
    /// Not at all.
    pub(super) const NONE: Self = Self { name: Duration::ZERO, attributes: Duration::ZERO };
}

/// An answer that grows in its buffer. An entry without room is left out.
pub(super) struct Reply<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Reply<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Bytes of the answer.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(room) =
            self.bytes.get_mut(self.length..).and_then(|room| room.get_mut(..bytes.len()))
        {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_ne_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_ne_bytes());
    }

    /// `struct fuse_attr_out`.
    pub(super) fn attributes(&mut self, valid: Duration, known: &NodeAttributes) {
        self.u64(valid.as_secs());
        self.u32(valid.subsec_nanos());
        self.u32(0);
        self.attribute_fields(known);
    }

    /// `struct fuse_entry_out`: an inode and its attributes. The kernel counts a reference to it.
    pub(super) fn entry(&mut self, validity: Validity, known: &NodeAttributes) {
        self.entry_of(known.number, validity, known);
    }

    /// The same for a missing name, which the kernel may cache.
    pub(super) fn absent(&mut self, valid: Duration) {
        self.u64(0);
        self.u64(0);
        self.u64(valid.as_secs());
        self.u64(valid.as_secs());
        self.u32(valid.subsec_nanos());
        self.u32(valid.subsec_nanos());
        self.bytes(&[0; ATTRIBUTES_BYTES]);
    }

    fn entry_of(&mut self, node: u64, validity: Validity, known: &NodeAttributes) {
        self.u64(node);
        self.u64(known.generation);
        self.u64(validity.name.as_secs());
        self.u64(validity.attributes.as_secs());
        self.u32(validity.name.subsec_nanos());
        self.u32(validity.attributes.subsec_nanos());
        self.attribute_fields(known);
    }

    /// `struct fuse_attr`.
    fn attribute_fields(&mut self, known: &NodeAttributes) {
        let attributes = &known.attributes;
        let times = [attributes.accessed, attributes.modified, attributes.changed];
        self.u64(known.shown);
        self.u64(attributes.size_bytes);
        self.u64(attributes.blocks);
        times.iter().for_each(|time| self.u64(time.seconds as u64));
        times.iter().for_each(|time| self.u32(time.nanoseconds));
        self.u32(type_bits(attributes.kind) | u32::from(attributes.permissions));
        self.u32(attributes.links);
        self.u32(attributes.user);
        self.u32(attributes.group);
        self.u32(device::encode(attributes.special_device));
        self.u32(attributes.block_size_bytes);
        self.u32(0);
    }

    /// `struct fuse_statfs_out`.
    pub(super) fn statistics(&mut self, statistics: &FileSystemStatistics) {
        self.u64(statistics.blocks);
        self.u64(statistics.blocks_free);
        self.u64(statistics.blocks_available);
        self.u64(statistics.inodes);
        self.u64(statistics.inodes_free);
        self.u32(statistics.block_size_bytes);
        self.u32(statistics.name_max_bytes);
        self.u32(statistics.fragment_size_bytes);
        self.bytes(&[0; 28]);
    }

    /// A number of 32 bits with as many of padding: `struct fuse_write_out`, `fuse_getxattr_out`.
    pub(super) fn count(&mut self, count: usize) {
        // Never more than the requested count, which has 32 bits.
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
        self.u32(0);
    }

    /// `struct fuse_ioctl_out` of a success, with a result.
    pub(super) fn flags(&mut self, flags: FileFlags) {
        self.bytes(&[0; 16]);
        match flags {
            FileFlags::Plain(bits) => self.u32(bits),
            FileFlags::Extended(fields) => fields.iter().for_each(|field| self.u32(*field)),
        }
    }

    /// `struct fuse_ioctl_out` of a success, without a result.
    pub(super) fn controlled(&mut self) {
        self.bytes(&[0; 16]);
    }

    /// `struct fuse_open_out`.
    pub(super) fn opened(&mut self, handle: u64, flags: u32) {
        self.opened_with(handle, flags, 0);
    }

    /// The same with the number of a backing file, which the kernel reads and writes itself.
    pub(super) fn opened_with(&mut self, handle: u64, flags: u32, backing: u32) {
        self.u64(handle);
        self.u32(flags);
        self.u32(backing);
    }

    /// `struct fuse_dirent`; false if it does not fit. `cookie` is the offset after it.
    pub(super) fn listed(
        &mut self,
        number: u64,
        cookie: u64,
        kind: FileKind,
        name: &OsStr,
    ) -> bool {
        let has_room = self.has_room(LISTED_BYTES, name);
        if has_room {
            self.u64(number);
            self.u64(cookie);
            self.u32(name.len() as u32);
            self.u32(type_bits(kind) >> 12);
            self.bytes(name.as_bytes());
            self.bytes(&[0; LISTED_ALIGNMENT][..padding(LISTED_BYTES + name.len())]);
        }
        has_room
    }

    /// `struct fuse_direntplus`; false if it does not fit. The kernel counts a reference to the
    /// inode.
    pub(super) fn listed_with_attributes(
        &mut self,
        validity: Validity,
        cookie: u64,
        known: &NodeAttributes,
        name: &OsStr,
    ) -> bool {
        let has_room = self.has_room(ENTRY_BYTES + LISTED_BYTES, name);
        if has_room {
            self.entry_of(known.number, validity, known);
            self.listed(known.shown, cookie, known.attributes.kind, name);
        }
        has_room
    }

    /// The same without an inode, for a name that the kernel has to look up itself.
    pub(super) fn listed_without_attributes(
        &mut self,
        number: u64,
        cookie: u64,
        kind: FileKind,
        name: &OsStr,
    ) -> bool {
        let has_room = self.has_room(ENTRY_BYTES + LISTED_BYTES, name);
        if has_room {
            self.absent(Duration::ZERO);
            self.listed(number, cookie, kind, name);
        }
        has_room
    }

    fn has_room(&self, fixed_bytes: usize, name: &OsStr) -> bool {
        let length = fixed_bytes + name.len();
        self.bytes.len() - self.length >= length + padding(length)
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(LISTED_ALIGNMENT) - length
}

/// The inodes of a listing with attributes. The kernel counts a reference to each.
pub(super) fn listed_inodes(listing: &[u8]) -> impl Iterator<Item = u64> {
    let mut rest = listing;
    std::iter::from_fn(move || {
        rest.get(ENTRY_BYTES + LISTED_BYTES..)?;
        let number = u64_at(rest, 0);
        let length = ENTRY_BYTES + LISTED_BYTES + u32_at(rest, ENTRY_BYTES + 16) as usize;
        rest = rest.get(length + padding(length)..).unwrap_or(&[]);
        Some(number)
    })
}

/// The `S_IFMT` bits of a mode.
fn type_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::Pipe => 0o010_000,
        FileKind::CharacterDevice => 0o020_000,
        FileKind::Directory => 0o040_000,
        FileKind::BlockDevice => 0o060_000,
        FileKind::Regular => 0o100_000,
        FileKind::Symlink => 0o120_000,
        FileKind::Socket => 0o140_000,
    }
}

/// Device numbers in FUSE's 32 bits (`new_encode_dev` and `new_decode_dev` of the kernel's
/// `include/linux/kdev_t.h`).
pub(super) mod device {
    pub(crate) fn encode(device: u64) -> u32 {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
    }

    pub(crate) fn decode(encoded: u32) -> u64 {
        let major = (encoded & 0xf_ff00) >> 8;
        let minor = (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00);
        rustix::fs::makedev(major, minor)
    }
}

#[cfg(test)]
mod tests;
