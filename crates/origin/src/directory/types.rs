//! What is known of file systems by their type.
//!
//! Where bytes are elsewhere, on a server or with another program, rights are decided there too:
//! the mode bits that are shown here need not be what counts.

use super::times::Proof;
use Place::{Elsewhere, Here};
use Proof::{All, Contents, Image, Nothing};

/// Where the bytes of a file system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    Elsewhere,
}

/// The types, where their bytes are, and what their times prove ([`super::times`]). Where bytes are
/// elsewhere, directories are read again: what exports them is not known. Whatever is not named
/// proves nothing, and is here unless it is FUSE.
const TYPES: &[(&str, Place, Proof)] = &[
    ("bcachefs", Here, All),
    ("btrfs", Here, All),
    ("devtmpfs", Here, All),
    ("ext2", Here, All),
    ("ext3", Here, All),
    ("ext4", Here, All),
    ("f2fs", Here, All),
    ("gfs2", Here, Contents),
    ("hfsplus", Here, All),
    ("jffs2", Here, All),
    ("jfs", Here, All),
    ("nilfs2", Here, All),
    ("ntfs3", Here, All),
    ("ocfs2", Here, Contents),
    ("ramfs", Here, All),
    ("reiserfs", Here, All),
    ("rootfs", Here, All),
    ("tmpfs", Here, All),
    ("ubifs", Here, All),
    ("udf", Here, All),
    ("ufs", Here, All),
    ("xfs", Here, All),
    ("zfs", Here, All),
    ("cramfs", Here, Image),
    ("erofs", Here, Image),
    ("iso9660", Here, Image),
    ("romfs", Here, Image),
    ("squashfs", Here, Image),
    ("9p", Elsewhere, Contents),
    ("afs", Elsewhere, Nothing),
    ("beegfs", Elsewhere, Contents),
    ("ceph", Elsewhere, Contents),
    ("cifs", Elsewhere, Nothing),
    ("coda", Elsewhere, Nothing),
    ("fuse.ceph", Elsewhere, Contents),
    ("fuse.ceph-fuse", Elsewhere, Contents),
    ("fuse.glusterfs", Elsewhere, Contents),
    ("fuse.juicefs", Elsewhere, Contents),
    ("fuse.mfs", Elsewhere, Contents),
    ("gpfs", Elsewhere, Contents),
    ("lustre", Elsewhere, Contents),
    ("nfs", Elsewhere, Contents),
    ("nfs4", Elsewhere, Contents),
    ("pvfs2", Elsewhere, Contents),
    ("smb3", Elsewhere, Nothing),
    ("virtiofs", Elsewhere, Contents),
];

fn known(fstype: &str) -> Option<(Place, Proof)> {
    let found = TYPES.iter().find(|(name, ..)| *name == fstype);
    found.map(|(_, place, proof)| (*place, *proof))
}

/// What the times of a type of file system prove.
pub(super) fn proof(fstype: &str) -> Proof {
    known(fstype).map_or(Nothing, |(_, proof)| proof)
}

/// Whether the bytes of a type of file system are elsewhere, and so its rights decided.
pub(super) fn is_elsewhere(fstype: &str) -> bool {
    let is_fuse = fstype == "fuse" || fstype == "fuseblk" || fstype.starts_with("fuse.");
    is_fuse || known(fstype).is_some_and(|(place, _)| place == Elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_is_named_twice() {
        for (place, (name, ..)) in TYPES.iter().enumerate() {
            assert!(TYPES[..place].iter().all(|(other, ..)| other != name), "{name}");
        }
    }

    #[test]
    fn rights_are_decided_elsewhere_by_servers_and_by_other_programs() {
        for elsewhere in ["nfs", "nfs4", "cifs", "smb3", "ceph", "afs", "9p", "virtiofs", "fuse"] {
            assert!(is_elsewhere(elsewhere), "{elsewhere}");
        }
        for fuse in ["fuse.ogive", "fuse.sshfs", "fuse.juicefs", "fuseblk"] {
            assert!(is_elsewhere(fuse), "{fuse}");
        }
        for here in ["ext4", "xfs", "tmpfs", "vfat", "overlay", "squashfs", "fusectl", ""] {
            assert!(!is_elsewhere(here), "{here}");
        }
    }
}
