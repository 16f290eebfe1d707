//! The numbers of the protocol, and the headers of every request and answer
//! (`include/uapi/linux/fuse.h`, protocol 7.42). All are in the processor's byte order.
//!
//! This module trusts no length that it reads.

use ogive_origin::Errno;

/// `sizeof(struct fuse_in_header)`.
pub(crate) const REQUEST_HEADER_BYTES: usize = 40;
/// `sizeof(struct fuse_out_header)`.
pub(crate) const ANSWER_HEADER_BYTES: usize = 16;

/// `enum fuse_opcode`.
pub(super) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const ACCESS: u32 = 34;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const IOCTL: u32 = 39;
    pub(crate) const NOTIFY_REPLY: u32 = 41;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
}

/// `struct fuse_in_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Length of the request with this header, in bytes.
    pub(super) total_bytes: usize,
    pub(super) opcode: u32,
    /// Number of the request, which its answer must carry.
    pub(super) unique: u64,
    /// Number of the inode that the request names.
    pub(super) node: u64,
    /// The requester; 0 if there is none in particular.
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) thread: u32,
}

impl Header {
    /// `None` if there are fewer bytes than a header has.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REQUEST_HEADER_BYTES] = bytes.first_chunk()?;
        Some(Self {
            total_bytes: u32_at(bytes, 0) as usize,
            opcode: u32_at(bytes, 4),
            unique: u64_at(bytes, 8),
            node: u64_at(bytes, 16),
            user: u32_at(bytes, 24),
            group: u32_at(bytes, 28),
            thread: u32_at(bytes, 32),
        })
    }
}

/// `struct fuse_out_header` of an answer with this many bytes after it, or of a positive error
/// number alone.
pub(super) fn answer_header(unique: u64, result: Result<u32, i32>) -> [u8; ANSWER_HEADER_BYTES] {
    let (error, payload_bytes) = match result {
        Ok(payload_bytes) => (0, payload_bytes),
        Err(error) => (-error, 0),
    };
    let total_bytes = payload_bytes.saturating_add(ANSWER_HEADER_BYTES as u32);
    let mut bytes = [0; ANSWER_HEADER_BYTES];
    bytes[..4].copy_from_slice(&total_bytes.to_ne_bytes());
    bytes[4..8].copy_from_slice(&error.to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// The error number in an answer. Some errors of a dead network or FUSE source would look as if
/// this mount had died. To a program above, such an origin is a failing device.
pub(super) fn error_number(errno: Errno) -> i32 {
    match errno {
        Errno::NOTCONN | Errno::CONNABORTED | Errno::SHUTDOWN | Errno::HOSTDOWN => {
            Errno::IO.raw_os_error()
        }
        errno => errno.raw_os_error(),
    }
}

/// The number at an offset, 0 if the bytes end before.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_ne_bytes)
}

/// The number at an offset, 0 if the bytes end before.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_forty_bytes_or_none() {
        let mut bytes = [0u8; 40];
        bytes[4..8].copy_from_slice(&15u32.to_ne_bytes());
        bytes[8..16].copy_from_slice(&7u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&3u32.to_ne_bytes());
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.opcode, header.unique, header.thread), (15, 7, 3));
        assert_eq!(Header::parse(&bytes[..39]), None);
        assert_eq!((u32_at(&bytes, 37), u64_at(&bytes, 99)), (0, 0));
    }

    #[test]
    fn answers_carry_the_number_of_their_request() {
        let bytes = answer_header(7, Ok(10));
        assert_eq!((u32_at(&bytes, 0), u32_at(&bytes, 4), u64_at(&bytes, 8)), (26, 0, 7));
        let bytes = answer_header(8, Err(5));
        assert_eq!((u32_at(&bytes, 0), u64_at(&bytes, 8)), (16, 8));
        assert_eq!(u32_at(&bytes, 4) as i32, -5);
    }
}
