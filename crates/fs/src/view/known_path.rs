//! The path of a file, from the names by which the kernel knows it and its directories.
//!
//! It is as good as those names: a name that was changed behind the mount stays until its next
//! lookup.

use super::View;
use crate::inode::Inode;
use crate::inode_number::ROOT;
use ogive_origin::Origin;
use std::path::PathBuf;

/// Directories above each other at most: a path of 4096 bytes has no more.
const DEPTH_MAX: usize = 2048;

impl<O: Origin> View<O> {
    /// The path of an inode from the root, if its names lead there.
    fn path_of(&self, inode: &Inode<O>) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut name = inode.kernel_names.last();
        loop {
            let parent = name.parent;
            names.push(name.name);
            if parent == ROOT {
                return Some(names.iter().rev().map(|name| &**name).collect());
            }
            if names.len() > DEPTH_MAX || parent == 0 {
                return None;
            }
            name = self.inodes.get(parent)?.kernel_names.last();
        }
    }

    /// Whether the records of a file that is being opened may go to the second level. Under path
    /// rules, a file whose path is unknown may not.
    pub(super) fn may_be_kept(&self, inode: &Inode<O>) -> bool {
        let Some(level) = &self.second_level else { return true };
        let rules = level.rules();
        rules.allow_all() || self.path_of(inode).is_some_and(|path| rules.allow(&path))
    }
}
