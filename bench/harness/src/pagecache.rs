//! The kernel's page cache: how much of a file is in it, and putting a file in or out.
//!
//! A benchmark of warm or cold reads needs a file set that is warm or cold. So every group checks
//! its assumption with `cachestat(2)` (Linux 6.5).

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::error::{Context, Result};

const CACHESTAT: libc::c_long = 451;
const PAGE_BYTES: u64 = 4096;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`: five counts of pages.
#[repr(C)]
#[derive(Default)]
struct Stat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of `path` that are in the page cache; `None` where the kernel cannot say.
pub fn resident_bytes(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let range = Range { offset: 0, length: 0 }; // length 0: to the end
    let mut stat = Stat::default();
    // SAFETY: both structures are laid out as the kernel's and live through the call.
    let outcome = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0_u32)
    };
    (outcome == 0).then_some(stat.cached * PAGE_BYTES)
}

/// Share of the files' bytes that is in the page cache, 0 to 1; `None` where unknown.
pub fn resident_share<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<f64> {
    let (mut resident, mut total) = (0, 0);
    for path in paths {
        resident += resident_bytes(path)?;
        total += fs::metadata(path).ok()?.len();
    }
    (total > 0).then(|| resident as f64 / total as f64)
}

/// Reads the whole file and throws the bytes away.
pub fn read_through(path: &Path) -> Result<u64> {
    let mut file = File::open(path).context(|| format!("cannot open {}", path.display()))?;
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    loop {
        match file.read(&mut buffer).context(|| format!("cannot read {}", path.display()))? {
            0 => return Ok(total),
            read => total += read as u64,
        }
    }
}

/// Drops the file from the page cache: only that file if the kernel follows the advice, otherwise the
/// whole page cache.
pub fn evict(path: &Path) -> Result<()> {
    let file = File::open(path).context(|| format!("cannot open {}", path.display()))?;
    file.sync_all().context(|| format!("cannot sync {}", path.display()))?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .context(|| format!("cannot drop the pages of {}", path.display()))?;
    if resident_bytes(path).is_none_or(|bytes| bytes > 0) {
        drop_caches(1)?;
    }
    Ok(())
}

/// Drops clean pages (1), dentries and inodes (2) or both (3), of the whole machine.
pub fn drop_caches(what: u8) -> Result<()> {
    nix::unistd::sync();
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, format!("{what}\n")).context(|| format!("cannot write {path}"))
}
