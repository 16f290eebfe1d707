//! Operations on the bytes of files: read, write, truncate, allocate, holes, copies and maps.
//!
//! The kernel may return a short count, so short reads and writes are continued to the end of the
//! file or of the request. The comparison uses the final result.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::access::Side;
use crate::bytes::filled;
use crate::mapping;
use crate::operation::{AllocateKind, Answer, Operation, Outcome};

/// The unit of direct I/O, in bytes. 4 KiB suits every disk.
pub const DIRECT_BLOCK_BYTES: usize = 4096;

/// `pread` until the request or the file ends.
pub(crate) fn read_fully(file: &OwnedFd, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let done = read_into(file, offset, &mut bytes)?;
    bytes.truncate(done);
    Ok(bytes)
}

fn read_into(file: &OwnedFd, offset: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(file, &mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// `pwrite` until everything is written.
pub(crate) fn write_fully(file: &OwnedFd, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(file, &bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Reads a whole file through its path with a fresh open.
///
/// # Errors
/// The errno of `open`, `fstat` or `read`.
pub fn read_whole(path: &Path) -> Result<Vec<u8>, Errno> {
    let file = open_for_reading(path)?;
    let size = rustix::fs::fstat(&file)?.st_size;
    // One byte more than the size, to detect a file that reports too small a size.
    let mut bytes = Vec::new();
    let chunk = usize::try_from(size).unwrap_or(0) + 1;
    loop {
        let more = read_fully(&file, bytes.len() as u64, chunk)?;
        if more.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&more);
    }
}

fn open_for_reading(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

pub(crate) fn write_at(file: &OwnedFd, offset: u64, length: usize, seed: u64) -> Outcome {
    Ok(Answer::Count(write_fully(file, offset, &filled(seed, length))? as u64))
}

pub(crate) fn write_here(file: &OwnedFd, length: usize, seed: u64) -> Outcome {
    let bytes = filled(seed, length);
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::write(file, &bytes[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    // The position afterwards shows where the bytes went.
    Ok(Answer::Count(rustix::fs::seek(file, SeekFrom::Current(0))?))
}

pub(crate) fn read_at(file: &OwnedFd, offset: u64, length: usize) -> Outcome {
    Ok(Answer::Bytes(read_fully(file, offset, length)?))
}

pub(crate) fn synchronize(file: &OwnedFd, data_only: bool) -> Outcome {
    if data_only {
        rustix::fs::fdatasync(file)?;
    } else {
        rustix::fs::fsync(file)?;
    }
    Ok(Answer::Done)
}

pub(crate) fn allocate(file: &OwnedFd, kind: AllocateKind, offset: u64, length: u64) -> Outcome {
    let flags = match kind {
        AllocateKind::Plain => FallocateFlags::empty(),
        AllocateKind::KeepSize => FallocateFlags::KEEP_SIZE,
        AllocateKind::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        AllocateKind::ZeroRange => FallocateFlags::ZERO_RANGE,
    };
    rustix::fs::fallocate(file, flags, offset, length)?;
    Ok(Answer::Count(rustix::fs::fstat(file)?.st_size.unsigned_abs()))
}

pub(crate) fn copy_range(
    source: &OwnedFd,
    source_offset: u64,
    target: &OwnedFd,
    target_offset: u64,
    length: usize,
) -> Outcome {
    let (mut from, mut to) = (source_offset, target_offset);
    let mut done = 0;
    while done < length {
        let count = rustix::fs::copy_file_range(
            source,
            Some(&mut from),
            target,
            Some(&mut to),
            length - done,
        )?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(Answer::Count(done as u64))
}

/// The operations on contents that name a path, `None` for all others.
pub(crate) fn by_path(side: &Side, operation: &Operation) -> Option<Outcome> {
    Some(match operation {
        Operation::ReadWhole { path } => read_whole(&side.path(path)).map(Answer::Bytes),
        Operation::DirectWrite { path, block, blocks, seed } => {
            direct_write(&side.path(path), *block, *blocks, *seed)
        }
        Operation::DirectRead { path, block, blocks } => {
            direct_read(&side.path(path), *block, *blocks)
        }
        Operation::TruncatePath { path, size } => truncate_path(&side.path(path), *size),
        Operation::SeekHoles { path } => seek_holes(&side.path(path)),
        Operation::MapRead { path, offset, length } => open_for_reading(&side.path(path))
            .and_then(|file| mapping::read(&file, *offset, *length))
            .map(Answer::Bytes),
        Operation::MapWriteShared { path, offset, length, seed } => {
            open_for_both(&side.path(path), OFlags::empty())
                .and_then(|file| mapping::write_shared(&file, *offset, &filled(*seed, *length)))
                .map(|count| Answer::Count(count as u64))
        }
        Operation::MapWritePrivate { path, offset, length, seed } => {
            open_for_reading(&side.path(path))
                .and_then(|file| mapping::write_private(&file, *offset, &filled(*seed, *length)))
                .map(Answer::Bytes)
        }
        _ => return None,
    })
}

fn open_for_both(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    rustix::fs::open(path, flags, Mode::empty())
}

fn truncate_path(path: &Path, size: u64) -> Outcome {
    let length = i64::try_from(size).map_err(|_| Errno::INVAL)?;
    crate::locks::truncate_by_path(path, length)?;
    Ok(Answer::Done)
}

/// A buffer for direct I/O: `O_DIRECT` wants the memory aligned as well as the offset.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let bytes = vec![0; length + DIRECT_BLOCK_BYTES];
        let start = bytes.as_ptr().align_offset(DIRECT_BLOCK_BYTES);
        Aligned { bytes, start, length }
    }

    fn slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

fn direct_write(path: &Path, block: u64, blocks: usize, seed: u64) -> Outcome {
    let file = open_for_both(path, OFlags::DIRECT)?;
    let mut buffer = Aligned::new(blocks * DIRECT_BLOCK_BYTES);
    let length = buffer.length;
    buffer.slice().copy_from_slice(&filled(seed, length));
    let offset = block * DIRECT_BLOCK_BYTES as u64;
    Ok(Answer::Count(write_fully(&file, offset, buffer.slice())? as u64))
}

fn direct_read(path: &Path, block: u64, blocks: usize) -> Outcome {
    let file = open_for_both(path, OFlags::DIRECT)?;
    let mut buffer = Aligned::new(blocks * DIRECT_BLOCK_BYTES);
    let offset = block * DIRECT_BLOCK_BYTES as u64;
    // One call, because some file systems refuse to read on from an unaligned end of file.
    let count = rustix::io::pread(&file, buffer.slice(), offset)?;
    Ok(Answer::Bytes(buffer.slice()[..count].to_vec()))
}

/// Walks the file by `SEEK_DATA` and `SEEK_HOLE` and returns its size. The file system decides
/// where the holes are. So this checks only the general rules: extents go forward, end with the
/// file, and every byte outside the data reads as zero.
fn seek_holes(path: &Path) -> Outcome {
    let file = open_for_reading(path)?;
    let status = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        // The answer for a directory is its file system's own choice.
        return Ok(Answer::Done);
    }
    let size = status.st_size.unsigned_abs();
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => size,
            Err(errno) => return Err(errno),
        };
        if data < at || data > size {
            return Ok(Answer::Texts(vec![format!("SEEK_DATA from {at} gave {data} of {size}")]));
        }
        let hole_length = usize::try_from(data - at).map_err(|_| Errno::FBIG)?;
        if read_fully(&file, at, hole_length)?.iter().any(|&byte| byte != 0) {
            return Ok(Answer::Texts(vec![format!("hole {at}..{data} holds bytes")]));
        }
        if data == size {
            break;
        }
        let hole = rustix::fs::seek(&file, SeekFrom::Hole(data))?;
        if hole <= data || hole > size {
            return Ok(Answer::Texts(vec![format!("SEEK_HOLE from {data} gave {hole} of {size}")]));
        }
        at = hole;
    }
    Ok(Answer::Count(size))
}
