//! All memory-pressure sources of a process, found once and read many times.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::cgroup::{self, Hierarchy, Version};
use crate::level::Level;
use crate::meminfo::Meminfo;
use crate::psi;
use crate::source_status::SourceStatus;
use crate::stat_file::StatFile;
use crate::waiter::Waiter;

/// From this percentage of stalled time in the last ten seconds, a [`Reading`] is called stalled.
/// Below it, refaults of an ordinary busy page cache are noise.
pub const STALLED_PERCENT: f64 = 1.0;

/// The sources could not be found or read.
#[derive(Debug, Error)]
pub enum PressureError {
    /// `/proc/meminfo` cannot be read, and nothing works without it.
    #[error("cannot read {}: {error}; is /proc mounted?", .path.display())]
    Meminfo {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// Memory at one moment. All sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Memory of the machine (`MemTotal`).
    pub total_bytes: u64,
    /// Unused memory (`MemFree`). Taking more than this evicts something, page cache first.
    pub free_bytes: u64,
    /// The kernel's estimate of the memory that programs can take without swapping
    /// (`MemAvailable`).
    pub available_bytes: u64,
    /// Swap space of the machine, 0 if none.
    pub swap_total_bytes: u64,
    /// Swap space not in use.
    pub swap_free_bytes: u64,
    /// The least of `total_bytes` and every cgroup limit that binds the process.
    pub limit_bytes: u64,
    /// Usage, including page cache, of the cgroup with the least headroom. If the machine has less
    /// headroom, `total_bytes` less `available_bytes`.
    pub usage_bytes: u64,
    /// Memory that can be taken before a limit binds: the least of `available_bytes` and the
    /// headroom of every cgroup with a limit. Reclaimable file pages count as free.
    pub headroom_bytes: u64,
    /// Memory that the cgroups leave unused: the least distance to a limit, with page cache counted
    /// as used. `total_bytes` if there is no limit.
    pub unused_bytes: u64,
    /// Whether tasks stalled for lack of memory for [`STALLED_PERCENT`] or more of the last ten
    /// seconds, on the machine or in the process's cgroup. It fades within some ten seconds after
    /// the shortage; without PSI it is always false.
    pub stalled: bool,
    /// Microseconds of such stalls since boot, the greater of the machine's and the cgroup's.
    /// Callers take differences.
    pub stall_total_us: u64,
}

/// The memory-pressure sources of one process.
///
/// The cgroups of the process are found once; probe again after it was moved. Limits are read each
/// time, so changed limits count at once.
#[derive(Debug)]
pub struct Sources {
    meminfo_path: PathBuf,
    meminfo: StatFile,
    levels: Vec<Level>,
    psi: Vec<(PathBuf, StatFile)>,
    psi_paths: Vec<PathBuf>,
    notes: Vec<SourceStatus>,
}

impl Sources {
    /// The sources of this process.
    ///
    /// # Errors
    /// [`PressureError::Meminfo`]; every other source may be absent.
    pub fn probe() -> Result<Self, PressureError> {
        Self::probe_below(Path::new("/"))
    }

    /// The same below another root directory, for tests.
    ///
    /// # Errors
    /// As [`Sources::probe`].
    pub fn probe_below(root: &Path) -> Result<Self, PressureError> {
        Self::probe_named(root, "self")
    }

    /// The sources of another process.
    ///
    /// # Errors
    /// As [`Sources::probe`].
    pub fn probe_process(process_id: u32) -> Result<Self, PressureError> {
        Self::probe_named(Path::new("/"), &process_id.to_string())
    }

    fn probe_named(root: &Path, process: &str) -> Result<Self, PressureError> {
        let meminfo_path = root.join("proc/meminfo");
        let meminfo = StatFile::open(&meminfo_path)
            .map_err(|error| PressureError::Meminfo { path: meminfo_path.clone(), error })?;
        let own = root.join("proc").join(process);
        let cgroup = std::fs::read_to_string(own.join("cgroup"));
        let hierarchies = match (cgroup, std::fs::read(own.join("mountinfo"))) {
            (Ok(cgroup), Ok(mountinfo)) => cgroup::hierarchies(root, &cgroup, &mountinfo),
            _ => Vec::new(),
        };
        let mut sources = Self {
            meminfo_path,
            meminfo,
            levels: Vec::new(),
            psi: Vec::new(),
            psi_paths: Vec::new(),
            notes: Vec::new(),
        };
        sources.read_meminfo()?;
        for version in [Version::V2, Version::V1] {
            let hierarchy = hierarchies.iter().find(|found| found.version == version);
            sources.add_levels(version, hierarchy);
        }
        sources.add_psi(root.join("proc/pressure/memory"));
        let unified = hierarchies.iter().find(|found| found.version == Version::V2);
        if let Some(own) = unified.and_then(|hierarchy| hierarchy.directories.first()) {
            // The root cgroup's file repeats /proc/pressure, and two triggers would wake twice.
            // Only the root cgroup has no type.
            if own.join("cgroup.type").exists() {
                sources.add_psi(own.join("memory.pressure"));
            }
        }
        Ok(sources)
    }

    fn add_levels(&mut self, version: Version, hierarchy: Option<&Hierarchy>) {
        let name = level_name(version);
        let Some(hierarchy) = hierarchy else {
            let path = "/sys/fs/cgroup";
            self.notes.push(SourceStatus::absent(name, path, "this hierarchy is not mounted"));
            return;
        };
        let before = self.levels.len();
        let open = |directory: &PathBuf| Level::open(version, directory).ok();
        self.levels.extend(hierarchy.directories.iter().filter_map(open));
        if self.levels.len() == before {
            let path = hierarchy.directories.first().cloned().unwrap_or_default();
            let why = "the process is in no cgroup with the memory controller";
            self.notes.push(SourceStatus::absent(name, path, why));
        }
    }

    fn add_psi(&mut self, path: PathBuf) {
        match StatFile::open(&path) {
            Ok(file) => self.psi.push((path.clone(), file)),
            Err(error) => self.notes.push(SourceStatus::absent("stall time (PSI)", &path, error)),
        }
        self.psi_paths.push(path);
    }

    fn read_meminfo(&self) -> Result<Meminfo, PressureError> {
        let failed = |error| PressureError::Meminfo { path: self.meminfo_path.clone(), error };
        self.meminfo.with_text(Meminfo::parse).map_err(failed)?.ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::InvalidData, "the line MemTotal is missing"))
        })
    }

    /// The least of the machine's memory and all current cgroup limits, in bytes.
    ///
    /// # Errors
    /// [`PressureError::Meminfo`].
    pub fn limit_bytes(&self) -> Result<u64, PressureError> {
        let total_bytes = self.read_meminfo()?.total_bytes;
        Ok(self.levels.iter().filter_map(Level::limit_bytes).fold(total_bytes, u64::min))
    }

    /// Reads the present state: one read of meminfo, one of each PSI file, one or two for each
    /// cgroup and two more for each with a limit. Allocates nothing.
    ///
    /// # Errors
    /// [`PressureError::Meminfo`]. A cgroup that has vanished is left out.
    pub fn read(&self) -> Result<Reading, PressureError> {
        let meminfo = self.read_meminfo()?;
        let mut reading = Reading {
            total_bytes: meminfo.total_bytes,
            free_bytes: meminfo.free_bytes,
            available_bytes: meminfo.available_bytes,
            swap_total_bytes: meminfo.swap_total_bytes,
            swap_free_bytes: meminfo.swap_free_bytes,
            limit_bytes: meminfo.total_bytes,
            usage_bytes: meminfo.total_bytes.saturating_sub(meminfo.available_bytes),
            headroom_bytes: meminfo.available_bytes,
            unused_bytes: meminfo.total_bytes,
            stalled: false,
            stall_total_us: 0,
        };
        for limited in self.levels.iter().filter_map(Level::read) {
            reading.limit_bytes = reading.limit_bytes.min(limited.limit_bytes);
            reading.unused_bytes = reading.unused_bytes.min(limited.unused_bytes());
            let headroom_bytes = limited.headroom_bytes();
            if headroom_bytes < reading.headroom_bytes {
                reading.headroom_bytes = headroom_bytes;
                reading.usage_bytes = limited.usage_bytes;
            }
        }
        for (_, file) in &self.psi {
            if let Ok(Some(stall)) = file.with_text(psi::some) {
                reading.stalled |= stall.average_10s_percent >= STALLED_PERCENT;
                reading.stall_total_us = reading.stall_total_us.max(stall.total_us);
            }
        }
        Ok(reading)
    }

    /// The sources that are used and those that are not, with their present values, for people.
    pub fn describe(&self) -> Vec<SourceStatus> {
        let mut notes = Vec::new();
        let meminfo = self.read_meminfo();
        notes.push(match &meminfo {
            Ok(Meminfo { total_bytes, available_bytes, .. }) => {
                let how = format!("{available_bytes} of {total_bytes} bytes available");
                SourceStatus::used("memory of the machine", &self.meminfo_path, how)
            }
            Err(error) => SourceStatus::absent("memory of the machine", &self.meminfo_path, error),
        });
        for level in &self.levels {
            let how = match level.read() {
                Some(limited) => format!(
                    "limit {} bytes, usage {}, of which reclaimable {}",
                    limited.limit_bytes, limited.usage_bytes, limited.reclaimable_bytes
                ),
                None => "no limit set".to_owned(),
            };
            notes.push(SourceStatus::used(level_name(level.version), &level.directory, how));
        }
        for (path, file) in &self.psi {
            notes.push(match file.with_text(psi::some) {
                Ok(Some(stall)) => {
                    let how = format!("{:.2} % of the last 10 s", stall.average_10s_percent);
                    SourceStatus::used("stall time (PSI)", path, how)
                }
                Ok(None) => {
                    SourceStatus::absent("stall time (PSI)", path, "the line `some` is missing")
                }
                Err(error) => SourceStatus::absent("stall time (PSI)", path, error),
            });
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }

    /// A waiter for the events of these sources. Triggers are armed here, and [`Waiter::describe`]
    /// notes sources without events. Under limits of cgroup v1 it also wakes when usage crosses one
    /// of `headrooms_bytes` below the present limit.
    ///
    /// # Errors
    /// The eventfd of the wakers cannot be made (out of descriptors).
    pub fn waiter(&self, headrooms_bytes: &[u64]) -> io::Result<Waiter> {
        Waiter::new(&self.psi_paths, &self.levels, headrooms_bytes)
    }
}

fn level_name(version: Version) -> &'static str {
    match version {
        Version::V1 => "cgroup v1 memory",
        Version::V2 => "cgroup v2 memory",
    }
}
