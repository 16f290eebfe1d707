//! A memory cgroup for one run: a limit over daemon and readers together.
//!
//! Version 2 where its memory controller is there, else version 1. The name begins with
//! [`PREFIX`], so that what an interrupted run left behind is found and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::error::{Context, Result};

/// How all cgroups of the benchmark begin.
pub const PREFIX: &str = "ogive-bench-";

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// A memory cgroup with a limit; removed when dropped.
pub struct Cgroup {
    folder: PathBuf,
    version_2: bool,
}

impl Cgroup {
    /// Makes a cgroup that may use `limit_bytes`, swap not counted in.
    ///
    /// # Errors
    /// If the machine has no memory cgroups or we may not make one.
    pub fn new(limit_bytes: u64) -> Result<Self> {
        let version_2 = fs::read_to_string(Path::new(V2).join("cgroup.controllers"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|c| c == "memory"));
        let root = if version_2 { V2 } else { V1 };
        if !version_2 && !Path::new(V1).join("memory.limit_in_bytes").exists() {
            return Err("no memory cgroups on this machine".into());
        }
        if version_2 {
            // Says so for the children of the root; already on as a rule.
            let _ = fs::write(Path::new(root).join("cgroup.subtree_control"), "+memory");
        }
        let folder = Path::new(root).join(format!("{PREFIX}{}", std::process::id()));
        remove(&folder);
        fs::create_dir(&folder).context(|| format!("cannot make {}", folder.display()))?;
        let cgroup = Self { folder, version_2 };
        let limit = if version_2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limit = cgroup.folder.join(limit);
        fs::write(&limit, limit_bytes.to_string())
            .context(|| format!("cannot write {}", limit.display()))?;
        if version_2 {
            let _ = fs::write(cgroup.folder.join("memory.swap.max"), "0");
        } else {
            let _ = fs::write(cgroup.folder.join("memory.swappiness"), "0");
        }
        Ok(cgroup)
    }

    /// The file a process writes its id to in order to enter.
    pub fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Most memory charged at any time, in bytes; `None` where the kernel does not keep it.
    pub fn peak_bytes(&self) -> Option<u64> {
        let name = if self.version_2 { "memory.peak" } else { "memory.max_usage_in_bytes" };
        fs::read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }

    /// Processes killed for want of memory.
    pub fn killed(&self) -> u64 {
        let name = if self.version_2 { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let killed = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        killed.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes what interrupted runs left behind.
pub fn remove_leftovers() {
    for root in [V1, V2] {
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                remove(&entry.path());
            }
        }
    }
}

fn remove(folder: &Path) {
    // A cgroup goes once its last process is gone, which can be a moment after the wait for it.
    for _ in 0..50 {
        if !folder.exists() || fs::remove_dir(folder).is_ok() {
            return;
        }
        sleep(Duration::from_millis(20));
    }
}
