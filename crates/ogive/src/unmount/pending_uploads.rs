//! Files of a bucket mount that are not uploaded yet, found without asking the mount.
//!
//! The process holds the lock of its stage open. The stage has a log for each file to be uploaded,
//! and deletes it when the store has the file.

use std::fs;
use std::path::{Path, PathBuf};

use ogive_bucket::journal::count_staged;

/// The stage of a process, if it has one.
pub(super) fn stage_of(pid: u32) -> Option<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let lock = targets.find(|path| path.ends_with("lock") && is_stage(path.parent()))?;
    lock.parent().map(Path::to_owned)
}

fn is_stage(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path.join("identity").is_file() && path.join("conflicts").is_dir())
}

/// How many files are to be uploaded.
pub(super) fn count(stage: &Path) -> usize {
    count_staged(stage).unwrap_or(0)
}
