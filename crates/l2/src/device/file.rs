//! A file or a block device, with O_DIRECT where the system gives it.
//!
//! The page cache would hold sealed bytes, which no program can use, in memory that the first level
//! could have had.

use super::{AlignedBuffer, Device};
use rustix::fs::{AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Alignment that every device accepts.
const PAGE_BYTES: usize = 4096;

/// The purpose of opening a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To read and write, alone; a missing file is made.
    Create,
    /// To read and write, alone.
    Write,
    /// To read, while no process writes.
    ReadAlone,
    /// To look, while another process may be writing.
    Read,
}

/// Why a path cannot be a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused.
    #[error("cannot open {}: {error}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// It is neither a file nor a block device.
    #[error("{} is neither a regular file nor a block device", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// Another process uses it.
    #[error("{} is in use by another process; unmount that mount first, or take it out of that \
        with `ogive l2 remove`", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
}

/// A file or a block device.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    is_block: bool,
    is_direct: bool,
    alignment_bytes: usize,
    /// Where the file was made, if there was none.
    made: Option<PathBuf>,
}

/// A file that was made and came to nothing, because its size or its key was refused, goes again.
/// No other process can have written to it: it is locked until it is closed.
impl Drop for FileDevice {
    fn drop(&mut self) {
        let Some(path) = &self.made else { return };
        let (Ok(own), Ok(there)) = (self.file.metadata(), path.symlink_metadata()) else { return };
        if own.len() == 0 && (own.dev(), own.ino()) == (there.dev(), there.ino()) {
            // If it cannot be removed, an empty file remains, which is harmless.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl FileDevice {
    /// Opens a path, around the page cache if `direct` and if that can be.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, mode: OpenMode, direct: bool) -> Result<Self, OpenError> {
        let system = |errno: Errno| OpenError::System { path: path.into(), error: errno.into() };
        let kind = match rustix::fs::statat(rustix::fs::CWD, path, AtFlags::empty()) {
            Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
            Err(Errno::NOENT) if mode == OpenMode::Create && !is_for_devices(path) => None,
            Err(errno) => return Err(system(errno)),
        };
        let is_block = match kind {
            Some(FileType::BlockDevice) => true,
            Some(FileType::RegularFile) | None => false,
            Some(_) => return Err(OpenError::Kind { path: path.into() }),
        };
        let mut flags = OFlags::CLOEXEC;
        let writes = matches!(mode, OpenMode::Create | OpenMode::Write);
        flags |= if writes { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::CREATE, mode == OpenMode::Create && !is_block);
        // A block device must not be mounted, or be open in this way elsewhere.
        flags.set(OFlags::EXCL, is_block && mode != OpenMode::Read);
        let open = |flags| rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let busy = || OpenError::Busy { path: path.into() };
        // One attempt at a time: a block device that is open here would be busy for the next.
        let around = if direct { open(flags | OFlags::DIRECT) } else { Err(Errno::INVAL) };
        let (descriptor, is_direct) = match around {
            Ok(descriptor) => (descriptor, true),
            Err(Errno::BUSY) => return Err(busy()),
            Err(_) => match open(flags) {
                Ok(descriptor) => (descriptor, false),
                Err(Errno::BUSY) => return Err(busy()),
                Err(errno) => return Err(system(errno)),
            },
        };
        if mode != OpenMode::Read {
            let lock = if writes {
                FlockOperation::NonBlockingLockExclusive
            } else {
                FlockOperation::NonBlockingLockShared
            };
            match rustix::fs::flock(&descriptor, lock) {
                Err(Errno::WOULDBLOCK) => return Err(busy()),
                other => other.map_err(system)?,
            }
        }
        let made = kind.is_none().then(|| path.to_owned());
        let file = descriptor.into();
        let mut device = Self { file, is_block, is_direct, alignment_bytes: 1, made };
        if is_direct {
            device.alignment_bytes = device.probe_alignment();
        }
        if is_block && device.len_bytes().is_ok_and(|len_bytes| len_bytes == 0) {
            return Err(system(Errno::NOMEDIUM));
        }
        Ok(device)
    }

    /// Whether reads and writes go around the page cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The file, to be read in another way.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Sectors of 512 bytes where the device has them: records stand at multiples of these.
    fn probe_alignment(&self) -> usize {
        let mut page = AlignedBuffer::zeroed(PAGE_BYTES);
        let sector = &mut page.bytes_mut()[512..1024];
        match self.file.read_at(sector, 512) {
            Ok(_) => 512,
            Err(_) => PAGE_BYTES,
        }
    }
}

/// Whether a missing path belongs to a device: a file in its place would be memory.
fn is_for_devices(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

impl Device for FileDevice {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        if self.is_block {
            return Ok(rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))?);
        }
        Ok(self.file.metadata()?.len())
    }

    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()> {
        if self.is_block {
            return Ok(());
        }
        let now = self.len_bytes()?;
        if len_bytes > now {
            // Room is taken at once: a cache that finds the disk full later is of no use, and
            // makes the disk full for others.
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len_bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.file.set_len(len_bytes)?,
                Err(errno) => {
                    self.file.set_len(now)?;
                    return Err(errno.into());
                }
                Ok(()) => {}
            }
        } else {
            self.file.set_len(len_bytes)?;
        }
        self.file.sync_all()
    }

    fn discard(&self) -> io::Result<()> {
        if !self.is_block {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.discard_range(0, self.len_bytes()?)
    }

    fn discard_range(&self, offset: u64, len_bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, len_bytes)?)
    }

    fn alignment_bytes(&self) -> usize {
        self.alignment_bytes
    }

    fn engine(&self) -> &'static str {
        if self.is_direct { "O_DIRECT, preadv" } else { "page cache, preadv" }
    }
}
