//! The mounts of ogive that are watched.

use std::path::{Path, PathBuf};

use ogive_origin::mount_table as mountinfo;
use serde_json::Value;

use super::mount::Mount;
use super::{Step, Subject};

/// Mounts that are watched at most.
const MOUNTS_MAX: usize = 16;
/// The list is read again once in so many steps.
const LISTED_EVERY: u32 = 5;

/// The choice of mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// All mounts of ogive on this host, including later ones.
    All,
    /// These.
    These(Vec<PathBuf>),
}

impl Watched {
    /// The mount points that exist now, in order, at most `MOUNTS_MAX`. `None` if the kernel's list
    /// cannot be read.
    pub(crate) fn mounted(&self) -> Option<Vec<PathBuf>> {
        let table = mountinfo::read().ok()?;
        let is_there = |path: &PathBuf| {
            mountinfo::topmost_at(&table, path).is_some_and(mountinfo::MountEntry::is_ogive)
        };
        let mut paths: Vec<PathBuf> = match self {
            Self::All => table.iter().map(|mount| mount.mount_point.clone()).collect(),
            Self::These(paths) => paths.clone(),
        };
        paths.retain(is_there);
        paths.sort();
        paths.dedup();
        paths.truncate(MOUNTS_MAX);
        Some(paths)
    }
}

/// The mounts.
#[derive(Debug)]
pub(super) struct Mounts {
    watched: Watched,
    mounts: Vec<Mount>,
    /// All mounts since the start, so that each has its own name for as long as the history has its
    /// series; empty where a number is free.
    paths: Vec<PathBuf>,
    steps: u32,
}

impl Mounts {
    pub(super) fn new(watched: Watched) -> Self {
        Self { watched, mounts: Vec::new(), paths: Vec::new(), steps: 0 }
    }

    /// Takes over the numbers that mounts had before.
    pub(super) fn remember(&mut self, known: Vec<Option<PathBuf>>) {
        self.paths = known.into_iter().map(Option::unwrap_or_default).collect();
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    pub(super) fn forget(&mut self) {
        self.mounts.iter_mut().for_each(Mount::forget);
        self.steps = 0;
    }

    pub(super) fn step(&mut self, step: &mut Step) {
        if self.steps.is_multiple_of(LISTED_EVERY) {
            self.list();
        }
        self.steps = self.steps.wrapping_add(1);
        for mount in &mut self.mounts {
            mount.step(step);
        }
    }

    pub(super) fn describe(&self) -> Vec<Value> {
        self.mounts.iter().map(Mount::describe).collect()
    }

    pub(super) fn subjects(&self) -> impl Iterator<Item = (String, Subject)> {
        self.mounts.iter().map(Mount::subject)
    }

    fn list(&mut self) {
        let Some(paths) = self.watched.mounted() else { return };
        self.mounts.retain(|mount| paths.iter().any(|path| path == mount.path()));
        for path in paths {
            if self.mounts.iter().any(|mount| mount.path() == path) {
                continue;
            }
            let number = self.number(&path);
            match Mount::new(format!("m{}", number + 1), path) {
                Ok(mount) => self.mounts.push(mount),
                Err(error) => log::warn!("cannot start a thread to watch a mount: {error}"),
            }
        }
    }

    /// The number of a mount, the same for as long as its path is kept.
    fn number(&mut self, path: &Path) -> usize {
        if let Some(known) = self.paths.iter().position(|known| known == path) {
            return known;
        }
        let free = self.paths.iter().position(|known| known.as_os_str().is_empty());
        let number = free.unwrap_or(self.paths.len());
        self.paths.resize(self.paths.len().max(number + 1), PathBuf::new());
        path.clone_into(&mut self.paths[number]);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_keeps_its_number_and_a_new_one_takes_a_free_number() {
        let mut mounts = Mounts::new(Watched::These(Vec::new()));
        mounts.remember(vec![Some("/a".into()), None, Some("/c".into())]);
        let numbers =
            ["/c", "/new", "/a", "/more", "/new"].map(|path| mounts.number(path.as_ref()));
        assert_eq!(numbers, [2, 1, 0, 3, 1]);
        let paths: Vec<_> = mounts.paths().iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/a", "/new", "/c", "/more"]);
    }
}
