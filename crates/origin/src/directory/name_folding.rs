//! Whether different spellings of a name lead to the same object.
//!
//! Some file systems always fold names ([`super::file_systems`]), and some only if they were made
//! or mounted so. For a server it is unknown. So the first name found on a file system is looked up
//! in another spelling. The result is the same object, another object, or none. If none, the first
//! spelling is looked up again, because the object may have been removed meanwhile. This does not
//! detect ext4 and F2FS, which fold case for single directories (`chattr +F`).

use super::Nodes;
use super::identity::Seen;
use super::node::Node;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

impl Nodes {
    /// Probes whether names fold case, by a name in a directory and its object.
    pub(super) fn learn_case(&self, parent: &Node, name: &OsStr, seen: &Seen) {
        let Some(other) = other_spelling(name) else { return };
        // If the directory is gone, the next name will serve.
        let folds = self.within(parent, |directory| {
            self.rights.run(|| Ok(folds(directory, (name, &other), seen)))
        });
        if let Ok(Some(folds)) = folds {
            self.inspector.is_known_to_fold(seen.attributes.device, folds);
        }
    }
}

/// The name with one letter in the other case.
fn other_spelling(name: &OsStr) -> Option<OsString> {
    let mut bytes = name.as_bytes().to_vec();
    let letter = bytes.iter_mut().find(|byte| byte.is_ascii_alphabetic())?;
    *letter ^= b'a' ^ b'A';
    Some(OsString::from_vec(bytes))
}

fn folds(directory: BorrowedFd<'_>, (name, other): (&OsStr, &OsStr), seen: &Seen) -> Option<bool> {
    let ask = |name| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statx(directory, name, flags, StatxFlags::INO)
    };
    let is_it = |found: Statx| found.stx_ino == seen.attributes.inode;
    match ask(other) {
        Ok(found) => Some(is_it(found)),
        Err(Errno::NOENT) => ask(name).is_ok_and(is_it).then_some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::DirectoryOrigin;
    use crate::{FileKind, Origin};

    #[test]
    fn one_letter_makes_another_spelling() {
        let other =
            |name: &str| other_spelling(OsStr::new(name)).map(|name| name.into_string().unwrap());
        assert_eq!(other("Name.txt").unwrap(), "name.txt");
        assert_eq!(other("1-name").unwrap(), "1-Name");
        assert_eq!(other("2026-11-27"), None);
    }

    #[test]
    fn a_file_system_is_asked_once_whether_it_folds_case() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["1", "name", "other"] {
            std::fs::write(directory.path().join(name), "1").unwrap();
        }
        // As if every spelling led to it.
        std::fs::hard_link(directory.path().join("name"), directory.path().join("Name")).unwrap();
        let origin = DirectoryOrigin::open(directory.path()).unwrap();
        let root = origin.root().unwrap();
        assert_eq!(root.attributes.kind, FileKind::Directory);
        let device = root.attributes.device;
        let known = || {
            let kind = origin.nodes.inspector.kind(device);
            (kind.is_case_known, origin.folds_case(device), origin.folds_case_in(&root.node))
        };
        origin.lookup(&root.node, OsStr::new("1")).unwrap();
        assert_eq!(known(), (false, false, false), "it has no letter");
        origin.lookup(&root.node, OsStr::new("other")).unwrap();
        assert_eq!(known(), (true, false, false));
        origin.lookup(&root.node, OsStr::new("name")).unwrap();
        assert_eq!(known(), (true, false, false), "it was asked");

        let origin = DirectoryOrigin::open(directory.path()).unwrap();
        let root = origin.root().unwrap();
        origin.lookup(&root.node, OsStr::new("name")).unwrap();
        assert!(origin.folds_case(device) && origin.folds_case_in(&root.node));
    }
}
