//! Negotiates features with the kernel in its first request, `FUSE_INIT`.

use super::protocol::{REQUEST_HEADER_BYTES, answer_header, opcode, u32_at};
use super::request::{Dialect, Request};
use ogive_origin::Errno;
use rustix::fd::OwnedFd;
use std::io::{self, IoSlice};

/// Largest write in bytes, and largest read within the kernel's own limit.
pub(super) const REQUEST_MAX_BYTES: u32 = 1 << 20;
/// Readahead and other asynchronous requests that the kernel may have in flight.
const BACKGROUND_MAX: u16 = 64;
/// With more of them the kernel considers the mount congested.
const CONGESTED_ABOVE: u16 = BACKGROUND_MAX / 4 * 3;
/// The protocol version of this implementation, and the oldest that it accepts: that of Linux 5.4.
const VERSION: (u32, u32) = (7, 42);
const MINOR_MIN: u32 = 31;
/// From this version on the kernel checks which flags a user may set.
const MINOR_CHECKS_FLAGS: u32 = 34;
/// `sizeof(struct fuse_init_out)`.
const ANSWER_BYTES: usize = 64;
const PAGE_BYTES: u32 = 4096;

/// Features that are accepted if the kernel offers them (`FUSE_*` of `struct fuse_init_in::flags`;
/// from bit 32 on of `flags2`).
mod flag {
    pub(super) const ASYNC_READ: u64 = 1 << 0;
    pub(super) const BIG_WRITES: u64 = 1 << 5;
    pub(super) const DONT_MASK: u64 = 1 << 6;
    pub(super) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(super) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(super) const ASYNC_DIO: u64 = 1 << 15;
    pub(super) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(super) const POSIX_ACL: u64 = 1 << 20;
    pub(super) const MAX_PAGES: u64 = 1 << 22;
    pub(super) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(super) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(super) const SETXATTR_EXT: u64 = 1 << 29;
    pub(super) const INIT_EXT: u64 = 1 << 30;
    pub(super) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    pub(super) const PASSTHROUGH: u64 = 1 << 37;
    pub(super) const OVER_IO_URING: u64 = 1 << 41;
}

/// The features that a mount requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedFeatures {
    /// The origin keeps access control lists.
    pub(crate) access_control_lists: bool,
    /// The origin applies the umask of the requester.
    pub(crate) umask_by_origin: bool,
    /// Largest request through a ring in bytes, if there are rings.
    pub(crate) ring_payload_bytes: Option<u32>,
    /// The kernel may read and write files itself, if their file systems are stacked less deep than
    /// this.
    pub(crate) passthrough_depth: Option<u32>,
}

/// The agreed features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Requests come through rings, as soon as the rings exist.
    pub(crate) rings: bool,
    /// The kernel reads and writes files itself where an answer says so.
    pub(crate) passthrough: bool,
    /// Largest request, in bytes.
    pub(crate) request_max_bytes: u32,
    pub(super) dialect: Dialect,
}

/// Answers the kernel's first request.
///
/// # Errors
/// If the connection has ended, or the kernel speaks an older protocol.
pub(crate) fn negotiate(device: &OwnedFd, requested: RequestedFeatures) -> io::Result<Agreed> {
    let mut message = vec![0; PAGE_BYTES as usize * 4];
    loop {
        let length = match rustix::io::read(device, &mut message[..]) {
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let offer = InitRequest::parse(&message[..length])?;
        let send = |result: Result<&[u8], Errno>| {
            let header = answer_header(
                offer.unique,
                result.map(|bytes| bytes.len() as u32).map_err(|errno| errno.raw_os_error()),
            );
            let bytes = result.unwrap_or(&[]);
            rustix::io::writev(device, &[IoSlice::new(&header), IoSlice::new(bytes)])
        };
        match offer.version {
            // A kernel that speaks a newer major version sends the request again.
            (major, _) if major > VERSION.0 => {
                let mut answer = [0; ANSWER_BYTES];
                answer[..4].copy_from_slice(&VERSION.0.to_ne_bytes());
                answer[4..8].copy_from_slice(&VERSION.1.to_ne_bytes());
                send(Ok(&answer))?;
            }
            version if version < (VERSION.0, MINOR_MIN) => {
                let _ = send(Err(Errno::PROTO));
                let (major, minor) = version;
                return Err(io::Error::other(format!(
                    "the kernel speaks FUSE {major}.{minor}; {}.{MINOR_MIN} (Linux 5.4) or later \
                     is needed",
                    VERSION.0
                )));
            }
            _ => {
                let (agreed, answer) = offer.accept(requested);
                send(Ok(&answer))?;
                return Ok(agreed);
            }
        }
    }
}

/// `struct fuse_init_in`.
struct InitRequest {
    unique: u64,
    version: (u32, u32),
    readahead_max_bytes: u32,
    flags: u64,
}

impl InitRequest {
    fn parse(message: &[u8]) -> io::Result<Self> {
        let wrong = || io::Error::other("the kernel's first request is not FUSE_INIT");
        let header = super::protocol::Header::parse(message).ok_or_else(wrong)?;
        let arguments = message.get(REQUEST_HEADER_BYTES..).ok_or_else(wrong)?;
        if header.opcode != opcode::INIT || arguments.len() < 16 {
            return Err(wrong());
        }
        let low = u64::from(u32_at(arguments, 12));
        let high = if low & flag::INIT_EXT != 0 { u32_at(arguments, 16) } else { 0 };
        Ok(Self {
            unique: header.unique,
            version: (u32_at(arguments, 0), u32_at(arguments, 4)),
            readahead_max_bytes: u32_at(arguments, 8),
            flags: low | u64::from(high) << 32,
        })
    }

    /// Accepts the useful features among those offered. Returns them with the answer, `struct
    /// fuse_init_out`.
    fn accept(&self, requested: RequestedFeatures) -> (Agreed, [u8; ANSWER_BYTES]) {
        let mut wanted = flag::ASYNC_READ
            | flag::BIG_WRITES
            | flag::MAX_PAGES
            | flag::ASYNC_DIO
            | flag::PARALLEL_DIROPS
            | flag::DO_READDIRPLUS
            | flag::READDIRPLUS_AUTO
            | flag::CACHE_SYMLINKS
            | flag::DIRECT_IO_ALLOW_MMAP
            // Each change says whether the program may leave a file privileged (`privileges`).
            | flag::HANDLE_KILLPRIV_V2
            | flag::SETXATTR_EXT
            | flag::INIT_EXT;
        if requested.access_control_lists {
            wanted |= flag::POSIX_ACL;
        }
        if requested.umask_by_origin {
            wanted |= flag::DONT_MASK;
        }
        let mut request_max_bytes = REQUEST_MAX_BYTES;
        let mut readahead_max_bytes = self.readahead_max_bytes;
        let ring_payload_bytes =
            requested.ring_payload_bytes.filter(|_| self.flags & flag::OVER_IO_URING != 0);
        if let Some(payload_bytes) = ring_payload_bytes {
            wanted |= flag::OVER_IO_URING;
            request_max_bytes = payload_bytes;
            // The kernel must not ask for a readahead larger than a buffer.
            readahead_max_bytes = readahead_max_bytes.min(payload_bytes);
        }
        let depth = requested.passthrough_depth.filter(|_| self.flags & flag::PASSTHROUGH != 0);
        if depth.is_some() {
            wanted |= flag::PASSTHROUGH;
        }
        let flags = wanted & self.flags;
        let mut answer = [0; ANSWER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| answer[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &VERSION.0.to_ne_bytes());
        put(4, &VERSION.1.to_ne_bytes());
        put(8, &readahead_max_bytes.to_ne_bytes());
        put(12, &(flags as u32).to_ne_bytes());
        put(16, &BACKGROUND_MAX.to_ne_bytes());
        put(18, &CONGESTED_ABOVE.to_ne_bytes());
        put(20, &request_max_bytes.to_ne_bytes());
        // Times are exact to the nanosecond.
        put(24, &1u32.to_ne_bytes());
        put(28, &((request_max_bytes.div_ceil(PAGE_BYTES)) as u16).to_ne_bytes());
        put(32, &((flags >> 32) as u32).to_ne_bytes());
        put(36, &depth.unwrap_or(0).to_ne_bytes());
        let dialect = Dialect {
            long_set_xattr: flags & flag::SETXATTR_EXT != 0,
            checked_flags: self.version >= (VERSION.0, MINOR_CHECKS_FLAGS),
        };
        let (rings, passthrough) = (ring_payload_bytes.is_some(), depth.is_some());
        (Agreed { rings, passthrough, request_max_bytes, dialect }, answer)
    }
}

/// Reads a request from the device, in the negotiated form.
pub(super) fn parse(agreed: Agreed, message: &[u8]) -> Option<(Request, usize)> {
    Request::parse(message, agreed.dialect)
}

#[cfg(test)]
mod tests {
    use super::super::protocol::u32_at;
    use super::*;

    #[test]
    fn the_kernel_reads_files_itself_if_requested_and_offered() {
        let accept = |flags, passthrough_depth| {
            let offer =
                InitRequest { unique: 1, version: VERSION, readahead_max_bytes: 1 << 17, flags };
            let requested = RequestedFeatures {
                access_control_lists: false,
                umask_by_origin: false,
                ring_payload_bytes: None,
                passthrough_depth,
            };
            let (agreed, answer) = offer.accept(requested);
            let bit = (flag::PASSTHROUGH >> 32) as u32;
            (agreed.passthrough, u32_at(&answer, 32) & bit != 0, u32_at(&answer, 36))
        };
        assert_eq!(accept(u64::MAX, Some(2)), (true, true, 2));
        assert_eq!(accept(u64::MAX, None), (false, false, 0));
        assert_eq!(accept(!flag::PASSTHROUGH, Some(1)), (false, false, 0));
    }
}
