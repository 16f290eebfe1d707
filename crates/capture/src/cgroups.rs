//! Takes the limits of control groups and their effects: `PATH/FILE:LINE`, as `grep . PATH/FILE`
//! prints it.
//!
//! Only groups with a limit are taken. A host may have thousands of groups, so the number of
//! visited directories and of groups is bounded.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::detached::{Part, read};

/// Directories visited at most.
const MOST_DIRECTORIES: usize = 4000;
/// Groups taken at most.
const MOST_GROUPS: usize = 500;

/// The mount points of hierarchies, the files that show a group's limit, and the files that are
/// taken. In version 2 all controllers share one hierarchy.
const HIERARCHIES: [(&str, &[&str], &[&str]); 5] = [
    ("/sys/fs/cgroup", V2_LIMITS, V2_FILES),
    ("/sys/fs/cgroup/unified", V2_LIMITS, V2_FILES),
    ("/sys/fs/cgroup/cpu", &["cpu.cfs_quota_us"], V1_CPU),
    ("/sys/fs/cgroup/cpu,cpuacct", &["cpu.cfs_quota_us"], V1_CPU),
    ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"], V1_MEMORY),
];
const V2_LIMITS: &[&str] = &["cpu.max", "memory.max", "memory.high"];
const V2_FILES: &[&str] = &[
    "cpu.max",
    "cpu.stat",
    "cpu.pressure",
    "memory.max",
    "memory.high",
    "memory.current",
    "memory.events",
    "memory.pressure",
    "io.pressure",
];
const V1_CPU: &[&str] = &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat", "cpuacct.usage"];
const V1_MEMORY: &[&str] =
    &["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt", "memory.oom_control"];
/// A file that every hierarchy of version 2 has in its root.
const V2_TOP: &str = "cgroup.controllers";

/// Takes the groups with a limit.
pub(super) fn take(part: &Part, name: &str) {
    let (mut directories, mut groups) = (0, 0);
    for (top, limits, files) in HIERARCHIES {
        let top = Path::new(top);
        // `cpu` is often a link to `cpu,cpuacct`, which is taken under its own name.
        let is_link = top.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let is_v2 = limits.len() > 1;
        if is_link || !top.is_dir() || is_v2 && !top.join(V2_TOP).exists() {
            continue;
        }
        let mut left = VecDeque::from([top.to_path_buf()]);
        while let Some(group) = left.pop_front() {
            if directories >= MOST_DIRECTORIES || groups >= MOST_GROUPS {
                part.note(format!(
                    "more than {MOST_DIRECTORIES} control groups, or more than {MOST_GROUPS} with a \
                     limit; the rest was left out"
                ));
                return;
            }
            directories += 1;
            if limits.iter().any(|limit| is_limit(part, &group.join(limit))) {
                groups += 1;
                files.iter().for_each(|file| lines(part, name, &group.join(file)));
            }
            left.extend(below(&group));
        }
    }
}

/// The child groups of a group, in order.
fn below(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(group) else { return Vec::new() };
    let directories = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut all: Vec<PathBuf> = directories.map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Whether a file shows a limit. "max", -1 and values beyond any host's size mean that there is
/// none.
fn is_limit(part: &Part, path: &Path) -> bool {
    let Some(content) = read(part, path) else { return false };
    let text = String::from_utf8_lossy(&content);
    let first = text.split_whitespace().next().unwrap_or("max");
    first.parse::<u64>().is_ok_and(|value| value < 1 << 62)
}

/// Appends each line of a file with its path in front.
fn lines(part: &Part, name: &str, path: &Path) {
    let Some(content) = read(part, path) else { return };
    let text = String::from_utf8_lossy(&content);
    let path = path.to_string_lossy();
    let lines: String = text.lines().map(|line| format!("{path}:{line}\n")).collect();
    part.append(name, lines.as_bytes());
}
