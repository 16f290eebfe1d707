//! Finds the cgroups of a process, as directories.
//!
//! `/proc/<pid>/cgroup` names the cgroup within its hierarchy. `/proc/<pid>/mountinfo` says where,
//! and which part of, the hierarchy is mounted. A limit of any cgroup up to the root of the
//! hierarchy binds, so all directories on the way up are returned, innermost first. In a container
//! the part above the mount is invisible and cannot be counted. Sources: cgroups(7),
//! `Documentation/admin-guide/cgroup-v2.rst`, proc_pid_mountinfo(5).

use std::path::{Component, Path, PathBuf};

use ogive_proc::mountinfo::{self, MountEntry};

/// The two interfaces of the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// The directories of one process in one hierarchy, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    pub(crate) directories: Vec<PathBuf>,
}

/// Finds the process's directories in the hierarchies that may have the memory controller: v1's
/// memory hierarchy and then the unified one. `cgroup` and `mountinfo` are the texts of the two
/// files, and mount points are taken below `root`.
pub(crate) fn hierarchies(root: &Path, cgroup: &str, mountinfo: &[u8]) -> Vec<Hierarchy> {
    let mounts = mountinfo::parse(mountinfo);
    [Version::V1, Version::V2]
        .into_iter()
        .filter_map(|version| {
            let path = path_within(cgroup, version)?;
            let directories = mounts
                .iter()
                .filter(|mount| is_of(mount, version))
                .filter_map(|mount| directories(root, mount, &path))
                .max_by_key(Vec::len)?;
            Some(Hierarchy { version, directories })
        })
        .collect()
}

/// The process's path in the hierarchy: `0::/path` for v2, `N:controllers:/path` for v1.
fn path_within(cgroup: &str, version: Version) -> Option<PathBuf> {
    cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let matches = match version {
            Version::V1 => controllers.split(',').any(|name| name == "memory"),
            Version::V2 => id == "0" && controllers.is_empty(),
        };
        matches.then(|| PathBuf::from(path))
    })
}

/// Whether a mount belongs to the hierarchy.
fn is_of(mount: &MountEntry, version: Version) -> bool {
    match version {
        Version::V1 => {
            mount.fstype == "cgroup" && mount.super_options.iter().any(|name| name == "memory")
        }
        Version::V2 => mount.fstype == "cgroup2",
    }
}

/// The existing directories from the process's own up to the mount point.
fn directories(root: &Path, mount: &MountEntry, path: &Path) -> Option<Vec<PathBuf>> {
    let point = root.join(mount.mount_point.strip_prefix("/").ok()?);
    // A path outside the mounted part (another cgroup namespace) begins with `/..`. Only the mount
    // point is visible then.
    let inside = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let own = match inside.as_os_str() {
        inside if inside.is_empty() || !plain => point.clone(),
        inside => point.join(inside),
    };
    let up: Vec<PathBuf> = own
        .ancestors()
        .take_while(|directory| directory.starts_with(&point))
        .filter(|directory| directory.is_dir())
        .map(Path::to_path_buf)
        .collect();
    (!up.is_empty()).then_some(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &[u8] = b"23 1 0:21 / /proc rw - proc proc rw\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn tree(directories: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for directory in directories {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        root
    }

    #[test]
    fn both_hierarchies_of_a_mixed_machine_are_walked_up() {
        let root = tree(&["sys/fs/cgroup/memory/a/b", "sys/fs/cgroup/unified/u"]);
        let found = hierarchies(root.path(), "5:cpu:/x\n4:foo,memory:/a/b\n0::/u\n", MIXED);
        let memory = root.path().join("sys/fs/cgroup/memory");
        let unified = root.path().join("sys/fs/cgroup/unified");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].version, Version::V1);
        assert_eq!(found[0].directories, [memory.join("a/b"), memory.join("a"), memory]);
        assert_eq!(found[1].version, Version::V2);
        assert_eq!(found[1].directories, [unified.join("u"), unified]);
    }

    #[test]
    fn in_a_container_the_mounted_part_is_the_root() {
        let root = tree(&["sys/fs/cgroup/inner"]);
        let point = root.path().join("sys/fs/cgroup");
        let mountinfo = b"9 8 0:1 /docker/id /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        let found = hierarchies(root.path(), "0::/docker/id/inner\n", mountinfo);
        assert_eq!(found[0].directories, [point.join("inner"), point.clone()]);
        // A path in another namespace or of a removed cgroup leads to the mount point only.
        for path in ["0::/../other\n", "0::/docker/id/gone (deleted)\n", "0::/elsewhere\n"] {
            assert_eq!(hierarchies(root.path(), path, mountinfo)[0].directories, [point.as_path()]);
        }
    }

    #[test]
    fn without_a_hierarchy_there_are_no_directories() {
        let root = tree(&[]);
        assert!(hierarchies(root.path(), "", b"").is_empty());
        assert!(hierarchies(root.path(), "0::/\n", MIXED).is_empty(), "mounted nowhere");
        assert!(hierarchies(root.path(), "nonsense\n\n0:\n", b"- - -\n1 2\n").is_empty());
    }
}
