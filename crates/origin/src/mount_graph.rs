//! Which mounts of ogive read from which other mounts.
//!
//! The process behind a mount reads its source. If that source is itself a mount of ogive, or
//! contains one, the process waits for another. If the chain leads back to its start, they wait for
//! each other for ever. Not even SIGKILL ends a process that waits for a FUSE mount served by one
//! that waits for it.
//!
//! The graph comes from the kernel alone. No mount is asked, because that one may be hanging. The
//! table of mounts has the mount points and sources. `/proc` shows which process serves a FUSE
//! connection (`fuse_connection` in `/proc/PID/fdinfo`) and which directories it has open. An open
//! directory shows where a source was moved to, or where it is if the mount has another name.
//!
//! Two things are invisible: mounts of other mount namespaces, and the open directories of other
//! users' processes.

use crate::mount_table::{self, MountEntry};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `O_DIRECTORY` as `/proc/PID/fdinfo` shows it.
const DIRECTORY: u32 = rustix::fs::OFlags::DIRECTORY.bits();

/// The present mounts, and the sources of ogive's mounts.
#[derive(Debug, Default)]
pub struct MountGraph {
    mounts: Vec<MountEntry>,
    /// Sources of each mount of ogive, by device number.
    sources: HashMap<(u32, u32), Vec<PathBuf>>,
}

/// The target of a path through the graph.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    Path(&'a Path),
    Device((u32, u32)),
}

impl MountGraph {
    /// The graph as this process sees it.
    ///
    /// # Errors
    /// If the table of mounts cannot be read.
    pub fn read() -> io::Result<Self> {
        let mounts = mount_table::read()?;
        let served = if mounts.iter().any(MountEntry::is_ogive) {
            directories_of_servers(Path::new("/proc"))
        } else {
            HashMap::new()
        };
        Ok(Self::new(mounts, &served))
    }

    /// `served` has the directories that the process behind a FUSE connection has open.
    fn new(mounts: Vec<MountEntry>, served: &HashMap<u32, Vec<PathBuf>>) -> Self {
        let mut sources: HashMap<(u32, u32), Vec<PathBuf>> = HashMap::new();
        for mount in mounts.iter().filter(|mount| mount.is_ogive()) {
            let known = sources.entry(mount.device).or_default();
            let named = Path::new(&mount.source);
            let open = served.get(&mount.device.1).into_iter().flatten();
            for source in open.map(PathBuf::as_path).chain(named.is_absolute().then_some(named)) {
                if !known.iter().any(|known| known == source) {
                    known.push(source.to_owned());
                }
            }
        }
        Self { mounts, sources }
    }

    /// A read of `source` reaches `mount_point` through these mounts of ogive; `None` if no such
    /// path exists. The source of the last mount contains `mount_point`.
    pub fn way_to(&self, source: &Path, mount_point: &Path) -> Option<Vec<&MountEntry>> {
        self.search(source, Target::Path(mount_point), &mut Vec::new())
    }

    /// Whether a read of the file system with device number `entered` may reach the one with
    /// number `device`.
    pub fn leads_to(&self, entered: (u32, u32), device: (u32, u32)) -> bool {
        let mut visited = vec![entered];
        entered == device
            || self
                .sources
                .get(&entered)
                .into_iter()
                .flatten()
                .any(|source| self.search(source, Target::Device(device), &mut visited).is_some())
    }

    fn search(
        &self,
        source: &Path,
        target: Target<'_>,
        visited: &mut Vec<(u32, u32)>,
    ) -> Option<Vec<&MountEntry>> {
        for mount in self.within_reach(source) {
            if matches!(target, Target::Device(device) if device == mount.device) {
                return Some(vec![mount]);
            }
            if !mount.is_ogive() || visited.contains(&mount.device) {
                continue;
            }
            visited.push(mount.device);
            for source in self.sources.get(&mount.device).into_iter().flatten() {
                if matches!(target, Target::Path(path) if path.starts_with(source)) {
                    return Some(vec![mount]);
                }
                if let Some(mut way) = self.search(source, target, visited) {
                    way.insert(0, mount);
                    return Some(way);
                }
            }
        }
        None
    }

    /// The mount that a path lies on, and those mounted at or below it.
    fn within_reach(&self, path: &Path) -> Vec<&MountEntry> {
        let carrier = path.ancestors().find_map(|at| mount_table::topmost_at(&self.mounts, at));
        let below = self.mounts.iter().filter(|mount| mount.mount_point.starts_with(path));
        carrier.into_iter().chain(below).collect()
    }

    /// Where the file system with this device number is mounted.
    pub fn mounted_at(&self, device: (u32, u32)) -> impl Iterator<Item = &Path> {
        let same = move |mount: &&MountEntry| mount.device == device;
        self.mounts.iter().filter(same).map(|mount| mount.mount_point.as_path())
    }
}

/// For each FUSE connection that a process called ogive serves, the directories that it has open.
fn directories_of_servers(proc: &Path) -> HashMap<u32, Vec<PathBuf>> {
    let mut served = HashMap::new();
    for process in fs::read_dir(proc).into_iter().flatten().flatten() {
        let process = process.path();
        if !fs::read(process.join("comm")).is_ok_and(|name| name.trim_ascii_end() == b"ogive") {
            continue;
        }
        let mut connections = Vec::new();
        let mut directories = Vec::new();
        for file in fs::read_dir(process.join("fdinfo")).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(file.path()) else { continue };
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
            if let Some(number) = field("fuse_connection:").and_then(|n| n.trim().parse().ok()) {
                connections.push(number);
            }
            let flags = field("flags:").and_then(|n| u32::from_str_radix(n.trim(), 8).ok());
            if flags.is_some_and(|flags| flags & DIRECTORY != 0)
                && let Ok(path) = fs::read_link(process.join("fd").join(file.file_name()))
                && is_path(path.as_os_str())
            {
                directories.push(path);
            }
        }
        for connection in connections {
            served.insert(connection, directories.clone());
        }
    }
    served
}

/// Whether a link of `/proc/PID/fd` is the path of something that has one.
fn is_path(link: &OsStr) -> bool {
    link.as_bytes().starts_with(b"/") && !link.as_bytes().ends_with(b" (deleted)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from lines of (mount point, device minor, type, source).
    fn graph(mounts: &[(&str, u32, &str, &str)]) -> MountGraph {
        served(mounts, &HashMap::new())
    }

    fn served(
        mounts: &[(&str, u32, &str, &str)],
        directories: &HashMap<u32, Vec<PathBuf>>,
    ) -> MountGraph {
        let lines = mounts.iter().enumerate().map(|(id, (at, minor, fstype, source))| {
            format!("{id} 0 0:{minor} / {at} rw - {fstype} {source} rw\n")
        });
        let text: String = std::iter::once("99 0 8:1 / / rw - ext4 /dev/sda1 rw\n".to_owned())
            .chain(lines)
            .collect();
        MountGraph::new(mount_table::parse(text.as_bytes()), directories)
    }

    fn is_cycle(graph: &MountGraph, source: &str, mount_point: &str) -> bool {
        graph.way_to(Path::new(source), Path::new(mount_point)).is_some()
    }

    #[test]
    fn two_mounts_and_three_that_would_serve_each_other_are_cycles() {
        let two = graph(&[("/b", 1, "fuse.ogive", "/a")]);
        assert!(is_cycle(&two, "/b", "/a"));
        assert!(is_cycle(&two, "/b/inner", "/a/inner"));
        assert!(!is_cycle(&two, "/b", "/c"), "one view of another");
        assert!(!is_cycle(&two, "/c", "/a"), "a view mounted in the source of another");
        assert!(!is_cycle(&two, "/b", "/ab"));
        let three = graph(&[("/b", 1, "fuse.ogive", "/a"), ("/c", 2, "fuse.ogive", "/b")]);
        assert!(is_cycle(&three, "/c", "/a"));
        let way = three.way_to(Path::new("/c"), Path::new("/a")).unwrap();
        assert_eq!(way.iter().map(|mount| mount.device.1).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn mounts_below_a_source_and_bind_mounts_belong_to_it() {
        let below = graph(&[("/s/in", 1, "fuse.ogive", "/a")]);
        assert!(is_cycle(&below, "/s", "/a/deep"));
        let bound = graph(&[("/b", 1, "fuse.ogive", "/a"), ("/x", 1, "fuse.ogive", "/a")]);
        assert!(is_cycle(&bound, "/x", "/a"));
        let covered = graph(&[("/b", 1, "fuse.ogive", "/a"), ("/b", 2, "tmpfs", "none")]);
        assert!(!is_cycle(&covered, "/b/in", "/a"), "the topmost mount is what is read");
    }

    #[test]
    fn a_mount_under_another_name_is_known_by_the_open_directories_of_its_process() {
        let mounts = [("/b", 7, "fuse.ogive", "photos")];
        assert!(!is_cycle(&graph(&mounts), "/b", "/a"));
        let open = HashMap::from([(7, vec![PathBuf::from("/a")])]);
        assert!(is_cycle(&served(&mounts, &open), "/b", "/a"));
    }

    #[test]
    fn a_mount_that_appeared_later_leads_back_by_device() {
        let mounts = graph(&[
            ("/b", 1, "fuse.ogive", "/a"),
            ("/d", 2, "fuse.ogive", "/b"),
            ("/e", 3, "fuse.ogive", "/other"),
            ("/a/in", 4, "fuse.ogive", "/d"),
            ("/a/own", 1, "fuse.ogive", "/a"),
        ]);
        let leads = |entered| mounts.leads_to((0, entered), (0, 1));
        assert!(leads(1) && leads(2));
        assert!(leads(4), "one whose source is that of a third");
        assert!(!leads(3) && !leads(77));
        assert!(!mounts.leads_to((8, 1), (0, 1)), "an ordinary file system");
    }

    #[test]
    fn this_process_is_read_without_an_error() {
        MountGraph::read().unwrap();
    }
}
