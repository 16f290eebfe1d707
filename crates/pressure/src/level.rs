//! One cgroup of the memory controller: its limit, its usage, and the reclaimable part of the
//! usage.
//!
//! The usage of a cgroup includes the page cache of its processes. A cgroup that reads files always
//! fills with page cache up to its limit, so usage against limit would always say "full". But the
//! kernel drops clean file pages before it stalls, swaps or kills a process. So file pages on the
//! two LRU lists count as available, without the dirty ones and those under writeback, which cannot
//! be dropped at once. Shared memory and tmpfs are on the anonymous lists and do not count.
//! Reclaimable slab is left out, because it includes inodes and dentries in use.
//!
//! `memory.high` binds like `memory.max`: above it every allocation is throttled.

use std::io;
use std::path::{Path, PathBuf};

use crate::cgroup::Version;
use crate::stat_file::{StatFile, keyed};

/// A v1 limit from here on means no limit: the kernel's "unlimited" is `LONG_MAX` rounded down to a
/// page, whose size differs.
const V1_UNLIMITED_BYTES: u64 = 1 << 62;

#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) version: Version,
    pub(crate) directory: PathBuf,
    limits: Vec<StatFile>,
    usage: StatFile,
    stat: Option<StatFile>,
}

/// Bytes in a cgroup that has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    pub(crate) limit_bytes: u64,
    pub(crate) usage_bytes: u64,
    pub(crate) reclaimable_bytes: u64,
}

impl Limited {
    /// Bytes that can be added before the kernel has to drop any of the group's pages.
    pub(crate) fn unused_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.usage_bytes)
    }

    /// Bytes that can be added before the limit binds.
    pub(crate) fn headroom_bytes(&self) -> u64 {
        let burden = self.usage_bytes.saturating_sub(self.reclaimable_bytes);
        self.limit_bytes.saturating_sub(burden)
    }
}

impl Level {
    /// Opens the files of `directory`. It is an error if the usage file is missing, as in v2's
    /// root.
    pub(crate) fn open(version: Version, directory: &Path) -> io::Result<Self> {
        let (limits, usage): (&[&str], _) = match version {
            Version::V1 => (&["memory.limit_in_bytes"], "memory.usage_in_bytes"),
            Version::V2 => (&["memory.max", "memory.high"], "memory.current"),
        };
        let open = |name: &&str| StatFile::open(&directory.join(name)).ok();
        Ok(Self {
            version,
            directory: directory.to_path_buf(),
            limits: limits.iter().filter_map(open).collect(),
            usage: StatFile::open(&directory.join(usage))?,
            stat: StatFile::open(&directory.join("memory.stat")).ok(),
        })
    }

    /// The limit in bytes; `None` if there is none. A cgroup that was removed limits nothing.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        let limits = self.limits.iter().filter_map(|file| file.number().ok().flatten());
        limits.filter(|&limit| self.version == Version::V2 || limit < V1_UNLIMITED_BYTES).min()
    }

    /// Limit and usage; `None` without a limit. Usage is not read without a limit, because
    /// `memory.stat` makes the kernel gather counters from every CPU.
    pub(crate) fn read(&self) -> Option<Limited> {
        let limit_bytes = self.limit_bytes()?;
        let usage_bytes = self.usage.number().ok().flatten()?;
        let reclaimable = |file: &StatFile| file.with_text(|text| self.reclaimable_bytes(text));
        let reclaimable_bytes = self.stat.as_ref().and_then(|file| reclaimable(file).ok());
        Some(Limited {
            limit_bytes,
            usage_bytes,
            reclaimable_bytes: reclaimable_bytes.unwrap_or(0),
        })
    }

    fn reclaimable_bytes(&self, stat: &str) -> u64 {
        // v1 has counters of the cgroup alone and, as `total_`, with those below it, which its
        // usage includes.
        let [inactive, active, dirty, writeback] = match self.version {
            Version::V1 => {
                ["total_inactive_file", "total_active_file", "total_dirty", "total_writeback"]
            }
            Version::V2 => ["inactive_file", "active_file", "file_dirty", "file_writeback"],
        };
        let number = |key| keyed(stat, key).unwrap_or(0);
        let file = number(inactive).saturating_add(number(active));
        file.saturating_sub(number(dirty).saturating_add(number(writeback)))
    }
}
