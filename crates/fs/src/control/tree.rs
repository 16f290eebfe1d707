//! The files and directories of the control directory, by name and number.
//!
//! `proc/` and `sys/` imitate `/proc` and `/sys` of a host with OpenZFS, as far as OpenZFS's tools
//! and exporters of metrics read them. The tools have the paths built in, so the paths and the
//! contents of the files are OpenZFS's. The mount is shown as a pool `ogive` with one dataset,
//! named after the source. Only two of OpenZFS's parameters are here: the one that has a meaning
//! for the mount, and the one that `arc_summary` needs. Neither can be set.
//!
//! A node's number is that of the control directory plus the position in [`NODES`]. So a parent
//! stands before its children, and a released node keeps its position.

use super::File;
use crate::inode_number::{CONTROL_FIRST, ROOT};
use ogive_kstat::files;
use ogive_origin::FileKind;
use std::ffi::OsStr;

/// The kind of a node.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Directory,
    File(File),
}

/// A file or directory: its name, the position of its directory, and its kind.
type Node = (&'static str, usize, Kind);

const CONTROL: usize = 0;
const PROC: usize = 14;
const SPL: usize = PROC + 1;
const KSTAT: usize = PROC + 2;
const ZFS: usize = PROC + 3;
const POOL: usize = PROC + 4;
const SYS: usize = PROC + 14;
const MODULE: usize = SYS + 1;
const MODULE_ZFS: usize = SYS + 2;
const MODULE_SPL: usize = SYS + 3;
const PARAMETERS: usize = SYS + 4;

const NODES: [Node; 42] = [
    ("", CONTROL, Kind::Directory),
    ("arcstats", CONTROL, Kind::File(File::Arcstats)),
    ("zfetchstats", CONTROL, Kind::File(File::Zfetchstats)),
    ("dmu_tx", CONTROL, Kind::File(File::Companion(&files::DMU_TX))),
    ("zil", CONTROL, Kind::File(File::Companion(&files::ZIL))),
    ("vdev_cache_stats", CONTROL, Kind::File(File::Companion(&files::VDEV_CACHE_STATS))),
    ("vdev_mirror_stats", CONTROL, Kind::File(File::Companion(&files::VDEV_MIRROR_STATS))),
    ("ogivestats", CONTROL, Kind::File(File::Ogivestats)),
    ("mount", CONTROL, Kind::File(File::Mount)),
    ("memory", CONTROL, Kind::File(File::Memory)),
    ("arc_max", CONTROL, Kind::File(File::ArcMax)),
    ("reclaim", CONTROL, Kind::File(File::Reclaim)),
    ("prune", CONTROL, Kind::File(File::Prune)),
    ("trace", CONTROL, Kind::File(File::Trace)),
    ("proc", CONTROL, Kind::Directory),
    ("spl", PROC, Kind::Directory),
    ("kstat", SPL, Kind::Directory),
    ("zfs", KSTAT, Kind::Directory),
    (files::POOL, ZFS, Kind::Directory),
    ("arcstats", ZFS, Kind::File(File::ArcstatsForAll)),
    ("zfetchstats", ZFS, Kind::File(File::Zfetchstats)),
    ("dmu_tx", ZFS, Kind::File(File::Companion(&files::DMU_TX))),
    ("zil", ZFS, Kind::File(File::Companion(&files::ZIL))),
    ("vdev_cache_stats", ZFS, Kind::File(File::Companion(&files::VDEV_CACHE_STATS))),
    ("vdev_mirror_stats", ZFS, Kind::File(File::Companion(&files::VDEV_MIRROR_STATS))),
    ("xuio_stats", ZFS, Kind::File(File::Companion(&files::XUIO_STATS))),
    (files::OBJSET.name, POOL, Kind::File(File::Dataset)),
    ("state", POOL, Kind::File(File::State)),
    ("sys", CONTROL, Kind::Directory),
    ("module", SYS, Kind::Directory),
    ("zfs", MODULE, Kind::Directory),
    ("spl", MODULE, Kind::Directory),
    ("parameters", MODULE_ZFS, Kind::Directory),
    ("parameters", MODULE_SPL, Kind::Directory),
    ("version", MODULE_ZFS, Kind::File(File::Version)),
    ("version", MODULE_SPL, Kind::File(File::Version)),
    ("zfs_arc_max", PARAMETERS, Kind::File(File::ArcMaxShown)),
    ("zfs_vdev_cache_size", PARAMETERS, Kind::File(File::None)),
    ("objects", CONTROL, Kind::File(File::Objects)),
    ("l2", CONTROL, Kind::File(File::L2)),
    ("reads", CONTROL, Kind::File(File::Reads)),
    ("hidden", CONTROL, Kind::File(File::Hidden)),
];

fn number(position: usize) -> u64 {
    CONTROL_FIRST + position as u64
}

fn position(number: u64) -> Option<usize> {
    let position = usize::try_from(number.checked_sub(CONTROL_FIRST)?).ok()?;
    (position < NODES.len()).then_some(position)
}

/// The entries of a directory, with positions; the control directory is not in itself.
fn inside(directory: usize) -> impl Iterator<Item = (usize, &'static Node)> {
    NODES.iter().enumerate().skip(1).filter(move |(_, (_, parent, _))| *parent == directory)
}

/// The number of the entry with this name in the directory of this number.
pub(super) fn find(directory: u64, name: &OsStr) -> Option<u64> {
    let (position, _) = inside(position(directory)?).find(|(_, (own, ..))| *own == name)?;
    Some(number(position))
}

/// Whether this number is a directory's.
pub(super) fn is_directory(number: u64) -> bool {
    position(number).is_some_and(|position| matches!(NODES[position].2, Kind::Directory))
}

/// The file with this number.
pub(super) fn file(number: u64) -> Option<File> {
    match NODES[position(number)?].2 {
        Kind::File(file) => Some(file),
        Kind::Directory => None,
    }
}

/// Name, number and kind of every entry of the directory with this number.
pub(super) fn entries(directory: u64) -> Vec<(&'static str, u64, FileKind)> {
    let Some(position) = position(directory) else { return Vec::new() };
    let above = if position == CONTROL { ROOT } else { number(NODES[position].1) };
    let own = [(".", directory, FileKind::Directory), ("..", above, FileKind::Directory)];
    let others = inside(position).map(|(position, (name, _, kind))| match kind {
        Kind::Directory => (*name, number(position), FileKind::Directory),
        Kind::File(_) => (*name, number(position), FileKind::Regular),
    });
    own.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_found_by_its_path_and_no_other_number_is_one() {
        for (position, (name, parent, kind)) in NODES.iter().enumerate().skip(1) {
            assert!(*parent < position, "{name} stands before the directory it is in");
            assert!(is_directory(number(*parent)), "{name} is not in a directory");
            assert_eq!(find(number(*parent), OsStr::new(name)), Some(number(position)), "{name}");
            assert_eq!(is_directory(number(position)), matches!(kind, Kind::Directory), "{name}");
            let entries = entries(number(*parent));
            assert!(entries.iter().any(|(_, entry, _)| *entry == number(position)), "{name}");
        }
        let past = number(NODES.len());
        assert!(!is_directory(past) && file(past).is_none() && entries(past).is_empty());
        assert!(find(number(1), OsStr::new("arcstats")).is_none(), "a file has nothing in it");
        assert!(find(number(CONTROL), OsStr::new("")).is_none());
    }

    #[test]
    fn the_tree_has_the_paths_that_are_built_into_the_tools() {
        let mut directory = number(CONTROL);
        for name in ["proc", "spl", "kstat", "zfs"] {
            directory = find(directory, OsStr::new(name)).unwrap_or_else(|| panic!("no {name}"));
        }
        let names: Vec<_> = entries(directory).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names[..3], [".", "..", "ogive"]);
        for name in ["arcstats", "zfetchstats", "dmu_tx", "zil", "vdev_mirror_stats"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}
