//! Memory maps of files: the only place where this crate maps anything.
//!
//! A map is never longer than its file, and no other program changes the file during its life. So
//! no access runs past the end, which would be SIGBUS. A mount that reports a wrong size can
//! therefore kill the suite with SIGBUS; that counts as a failure of the mount.
#![allow(unsafe_code, reason = "mapping a file is unsafe by nature")]

use std::os::fd::{AsFd, AsRawFd};

use memmap2::{MmapMut, MmapOptions};
use rustix::io::Errno;

/// Converts an error of the standard library.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// The part of `[offset, offset + length)` that lies inside the file, `None` when nothing does.
fn inside(file: impl AsFd, offset: u64, length: usize) -> Result<Option<usize>, Errno> {
    let status = rustix::fs::fstat(file)?;
    let size = u64::try_from(status.st_size).unwrap_or(0);
    let room = size.saturating_sub(offset).min(length as u64);
    Ok(usize::try_from(room).ok().filter(|&bytes| bytes > 0))
}

/// Reads through a shared read-only map. Bytes past the end of the file are not returned.
///
/// # Errors
/// The errno of `fstat` or `mmap`.
pub fn read(file: &(impl AsFd + AsRawFd), offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let Some(bytes) = inside(file, offset, length)? else {
        return Ok(Vec::new());
    };
    // SAFETY: the range lies inside the file and the file is not shortened while the map lives,
    // because only the caller's thread works on it. The bytes are copied out before return.
    let map = unsafe { MmapOptions::new().offset(offset).len(bytes).map(file) }
        .map_err(|error| errno_of(&error))?;
    Ok(map.to_vec())
}

/// Writes through a shared map and flushes it (`msync(MS_SYNC)`). Returns the number of bytes
/// written. It is smaller than `bytes` if the file ends earlier, because a map cannot extend a file.
///
/// # Errors
/// The errno of `fstat`, `mmap` or `msync`.
pub fn write_shared(
    file: &(impl AsFd + AsRawFd),
    offset: u64,
    bytes: &[u8],
) -> Result<usize, Errno> {
    let Some(room) = inside(file, offset, bytes.len())? else {
        return Ok(0);
    };
    let mut map = shared(file, offset, room)?;
    map.copy_from_slice(&bytes[..room]);
    map.flush().map_err(|error| errno_of(&error))?;
    Ok(room)
}

/// Writes through a private map and returns the whole range of the map. The file must stay as it
/// was.
///
/// # Errors
/// The errno of `fstat` or `mmap`.
pub fn write_private(
    file: &(impl AsFd + AsRawFd),
    offset: u64,
    bytes: &[u8],
) -> Result<Vec<u8>, Errno> {
    let Some(room) = inside(file, offset, bytes.len())? else {
        return Ok(Vec::new());
    };
    // SAFETY: as in `read`; the copy-on-write pages are this function's own.
    let mut map = unsafe { MmapOptions::new().offset(offset).len(room).map_copy(file) }
        .map_err(|error| errno_of(&error))?;
    // Every second byte is left alone, so that both the file's and the map's own bytes are seen.
    for (at, byte) in bytes[..room].iter().enumerate().step_by(2) {
        map[at] = *byte;
    }
    Ok(map.to_vec())
}

/// A shared writable map of `length` bytes at `offset`, which must lie inside the file.
///
/// # Errors
/// The errno of `mmap`.
pub fn shared(file: &(impl AsFd + AsRawFd), offset: u64, length: usize) -> Result<MmapMut, Errno> {
    // SAFETY: the caller keeps the file at least this long while the map lives; every caller in
    // this crate works on a file that it alone changes.
    unsafe { MmapOptions::new().offset(offset).len(length).map_mut(file) }
        .map_err(|error| errno_of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn maps_end_where_the_file_ends() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        assert_eq!(read(&file, 0, 100), Ok(b"0123456789".to_vec()));
        assert_eq!(read(&file, 4096, 100), Ok(vec![]));
        assert_eq!(write_shared(&file, 0, b"abc"), Ok(3));
        assert_eq!(read(&file, 0, 5), Ok(b"abc34".to_vec()));
        assert_eq!(write_private(&file, 0, b"XYZ"), Ok(b"XbZ".to_vec()));
        assert_eq!(read(&file, 0, 3), Ok(b"abc".to_vec()));
    }
}
