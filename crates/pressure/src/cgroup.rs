//! Which cgroups a process stands in, as directories.
//!
//! `/proc/<pid>/cgroup` names the cgroup within its hierarchy, `/proc/<pid>/mountinfo` says where
//! (and which part of) the hierarchy is mounted. A limit anywhere between the cgroup and the root
//! of the hierarchy binds, so all directories on the way up are returned, innermost first. In a
//! container the part above the mount cannot be seen; what cannot be seen cannot be counted.
//! Sources: cgroups(7), `Documentation/admin-guide/cgroup-v2.rst`, proc_pid_mountinfo(5).

use std::path::{Component, Path, PathBuf};

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

/// Finds the process's directories in the hierarchies that may have memory: v1's memory hierarchy
/// and the unified one, in that order. `cgroup` and `mountinfo` are the texts of the two files;
/// mount points are taken below `root`.
pub(crate) fn hierarchies(root: &Path, cgroup: &str, mountinfo: &str) -> Vec<Hierarchy> {
    [Version::V1, Version::V2]
        .into_iter()
        .filter_map(|version| {
            let path = path_within(cgroup, version)?;
            let directories = mounts(mountinfo, version)
                .filter_map(|mount| directories(root, &mount, &path))
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

struct Mount {
    /// The part of the hierarchy that is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

fn mounts(mountinfo: &str, version: Version) -> impl Iterator<Item = Mount> + '_ {
    mountinfo.lines().filter_map(move |line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options = file_system.nth(1)?;
        let matches = match version {
            Version::V1 => kind == "cgroup" && options.split(',').any(|name| name == "memory"),
            Version::V2 => kind == "cgroup2",
        };
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        matches.then(|| Mount { root: unescape(root), point: unescape(point) })
    })
}

/// The directories from the process's own up to the mount point, those that exist.
fn directories(root: &Path, mount: &Mount, path: &Path) -> Option<Vec<PathBuf>> {
    let point = root.join(mount.point.strip_prefix("/").ok()?);
    // A path outside the mounted part (another cgroup namespace) begins with `/..`; what can be
    // seen is the mount point.
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

/// mountinfo writes blank, tab, line feed and backslash as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (character, length) = match code {
            Some(byte) if byte.is_ascii() => (char::from(byte), 4),
            _ => ('\\', 1),
        };
        plain.push(character);
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "23 1 0:21 / /proc rw - proc proc rw\n\
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
        let mountinfo = "9 8 0:1 /docker/id /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        let found = hierarchies(root.path(), "0::/docker/id/inner\n", mountinfo);
        assert_eq!(found[0].directories, [point.join("inner"), point.clone()]);
        // Seen from another namespace, or a cgroup that is gone: what is mounted, no more.
        for path in ["0::/../other\n", "0::/docker/id/gone (deleted)\n", "0::/elsewhere\n"] {
            assert_eq!(hierarchies(root.path(), path, mountinfo)[0].directories, [point.as_path()]);
        }
    }

    #[test]
    fn no_hierarchy_is_no_answer() {
        let root = tree(&[]);
        assert!(hierarchies(root.path(), "", "").is_empty());
        assert!(hierarchies(root.path(), "0::/\n", MIXED).is_empty(), "mounted nowhere");
        assert!(hierarchies(root.path(), "nonsense\n\n0:\n", "- - -\n1 2\n").is_empty());
    }

    #[test]
    fn escapes_of_mountinfo() {
        assert_eq!(unescape(r"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescape(r"/odd\9\"), Path::new(r"/odd\9\"));
        assert_eq!(unescape(r"/é\303x"), Path::new(r"/é\303x"));
    }
}
