//! Whole reads and writes of files, in as many system calls as needed.

use crate::Result;
use rustix::fd::AsFd;
use rustix::io::Errno;

/// Reads at most `length_bytes`, even if the vector has room for more.
pub(super) fn read_no_more(
    fd: impl AsFd,
    at: u64,
    most: usize,
    into: &mut Vec<u8>,
) -> Result<usize> {
    let mut bytes = vec![0; most];
    let count = rustix::io::pread(fd, &mut bytes[..], at)?;
    into.extend_from_slice(&bytes[..count]);
    Ok(count)
}

/// Writes piece by piece through a function that gets the number of bytes already written.
pub(super) fn write_all(
    bytes: &[u8],
    write: impl Fn(&[u8], usize) -> Result<usize>,
) -> Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..], written) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(errno) if written == 0 => return Err(errno),
            // The bytes that reached the origin are reported; the next write returns the error.
            Err(_) => break,
        }
    }
    Ok(written)
}
