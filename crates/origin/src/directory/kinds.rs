//! What kinds of file systems do otherwise than most, by their magic numbers (`linux/magic.h`).
//!
//! What cannot be asked of a file system is known of its type. A type that is not named here has
//! the careful answer: its time of birth proves nothing, and its numbers and names are taken as
//! they come.

use crate::Result;
use rustix::fd::AsFd;

const BCACHEFS: u32 = 0xca45_1a4e;
const BTRFS: u32 = 0x9123_683e;
const CEPH: u32 = 0x00c3_6400;
pub(super) const EXFAT: u32 = 0x2011_bab0;
/// ext2, ext3 and ext4.
pub(super) const EXT: u32 = 0xef53;
const F2FS: u32 = 0xf2f5_2010;
pub(super) const FAT: u32 = 0x4d44;
pub(super) const FUSE: u32 = 0x6573_5546;
const HFS_PLUS: u32 = 0x482b;
/// The AFS of the kernel, and OpenAFS.
const AFS: [u32; 2] = [0x6b41_4653, 0x5346_414f];
pub(super) const NFS: u32 = 0x6969;
const OVERLAY: u32 = 0x794c_7630;
/// SMB 1, and SMB 2 and 3.
pub(super) const SMB: [u32; 2] = [0xff53_4d42, 0xfe53_4d42];
const TMPFS: u32 = 0x0102_1994;
const XFS: u32 = 0x5846_5342;
const ZFS: u32 = 0x2fc1_2fc1;

/// Those of this machine's own kernel that open a file whenever its mode and their being writable
/// permit.
const OPEN_AS_FILES_PERMIT: &[u32] = &[EXT, XFS, BTRFS, F2FS, BCACHEFS, ZFS, TMPFS, OVERLAY];
/// Those that are told attributes with names.
const LIST_WITH_ATTRIBUTES: &[u32] = &[FUSE, NFS, SMB[0], SMB[1], CEPH];
/// Those that set the time of birth when an object is made, and never again.
const BIRTH_STAYS: &[u32] = &[EXT, XFS, BTRFS, F2FS, BCACHEFS, ZFS, TMPFS, HFS_PLUS, FAT];
/// Those that do so of everything but directories: exFAT sets it anew at a rename in one.
const BIRTH_OF_FILES_STAYS: &[u32] = &[EXFAT];
/// Those that have no numbers of their own: an object gets the next one whenever the kernel reads
/// it from the disk.
const NUMBERS_ARE_MADE_UP: &[u32] = &[FAT, EXFAT];
/// Those whose handles tell objects apart, but lead to one only for as long as the kernel has it in
/// memory: most programs that are a file system (libfuse) number the paths that they are asked for,
/// and forget a path together with the kernel.
const FORGET_HANDLES: &[u32] = &[FUSE];
/// Those that give a file another name in its directory (`.nfs...`), or keep its own, when it is
/// removed while somebody has it open.
const HIDE_WHAT_IS_OPEN: &[u32] = &[NFS, SMB[0], SMB[1], AFS[0], AFS[1], FUSE];
/// Those of them that do so where it is open only for its name (`O_PATH`), too. A program that is a
/// file system (FUSE) is not told of such descriptors.
const HIDE_WHAT_IS_NAMED: &[u32] = &[NFS, SMB[0], SMB[1], AFS[0], AFS[1]];
/// How the names begin that they give such files. That of FUSE is libfuse's.
const HIDDEN: &[&[u8]] = &[b".nfs", b".__afs", b".fuse_hidden"];
/// Those that lead from any spelling of a name to the same object. Others may be made to: they are
/// asked once ([`super::spelling`]).
const FOLD_CASE: &[u32] = &[FAT, EXFAT, SMB[0], SMB[1]];

/// Those whose files have no capabilities: nothing is kept under that name, whatever else is.
const LACK_CAPABILITIES: &[u32] = &[NFS, SMB[0], SMB[1], AFS[0], AFS[1], FAT, EXFAT];
/// Those that bring what was written to a file to the server before they tell its times.
const FLUSH_TO_TELL_TIMES: &[u32] = &[NFS];
/// Those that keep the names of a directory while it is unchanged, but not the attributes that came
/// with them.
const KEEP_NAMES: &[u32] = &[NFS];

/// What is known of a type of file system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) lists_with_attributes: bool,
    pub(super) opens_as_files_permit: bool,
    birth_stays: bool,
    birth_of_files_stays: bool,
    /// The number of an object is good for as long as somebody has the object open.
    pub(super) makes_up_numbers: bool,
    /// So is its handle, for finding it.
    pub(super) forgets_handles: bool,
    pub(super) lacks_capabilities: bool,
    pub(super) flushes_to_tell_times: bool,
    pub(super) keeps_names: bool,
    /// A file that is open when it is removed stays in its directory.
    pub(super) hides_what_is_open: bool,
    /// So does one that is open for its name alone.
    pub(super) hides_what_is_named: bool,
    pub(super) folds_case: bool,
    /// It is known whether it does.
    pub(super) is_case_known: bool,
}

impl Kind {
    /// That with this magic number.
    pub(super) fn of(magic: u32) -> Self {
        Self {
            lists_with_attributes: LIST_WITH_ATTRIBUTES.contains(&magic),
            opens_as_files_permit: OPEN_AS_FILES_PERMIT.contains(&magic),
            birth_stays: BIRTH_STAYS.contains(&magic),
            birth_of_files_stays: BIRTH_OF_FILES_STAYS.contains(&magic),
            makes_up_numbers: NUMBERS_ARE_MADE_UP.contains(&magic),
            forgets_handles: FORGET_HANDLES.contains(&magic),
            lacks_capabilities: LACK_CAPABILITIES.contains(&magic),
            flushes_to_tell_times: FLUSH_TO_TELL_TIMES.contains(&magic),
            keeps_names: KEEP_NAMES.contains(&magic),
            hides_what_is_open: HIDE_WHAT_IS_OPEN.contains(&magic),
            hides_what_is_named: HIDE_WHAT_IS_NAMED.contains(&magic),
            folds_case: FOLD_CASE.contains(&magic),
            is_case_known: FOLD_CASE.contains(&magic),
        }
    }

    /// That of the file system that an open object lies on.
    pub(super) fn of_object(fd: impl AsFd) -> Result<Self> {
        Ok(Self::of(rustix::fs::fstatfs(fd)?.f_type as u32))
    }

    /// Whether an object is found by its handle for as long as it exists.
    pub(super) fn finds_by_handle(&self) -> bool {
        !self.makes_up_numbers && !self.forgets_handles
    }

    /// Whether the time of birth tells an object from one that had its number before.
    pub(super) fn birth_tells(&self, is_directory: bool) -> bool {
        self.birth_stays || (self.birth_of_files_stays && !is_directory)
    }
}

/// Whether a name is one that a file system has given to a file that was removed while it was open.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    HIDDEN.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_tells_objects_apart_only_where_it_stays() {
        for magic in [EXT, XFS, BTRFS, TMPFS, FAT] {
            assert!(Kind::of(magic).birth_tells(true) && Kind::of(magic).birth_tells(false));
        }
        assert!(!Kind::of(EXFAT).birth_tells(true), "a rename in a directory is a birth of it");
        assert!(Kind::of(EXFAT).birth_tells(false));
        // What an overlay tells is of the file below, and another's after a copy up; what SMB tells
        // any client may set; what FUSE tells is some program's.
        for magic in [OVERLAY, SMB[0], SMB[1], FUSE, 0] {
            assert!(!Kind::of(magic).birth_tells(false), "{magic:x}");
        }
    }

    #[test]
    fn descriptors_of_names_are_kept_where_they_keep_nothing_in_its_directory() {
        for magic in [EXT, XFS, OVERLAY, FAT, FUSE, CEPH, 0] {
            assert!(!Kind::of(magic).hides_what_is_named, "{magic:x}");
        }
        for magic in [NFS, SMB[1], AFS[0]] {
            assert!(Kind::of(magic).hides_what_is_named, "{magic:x}");
            assert!(Kind::of(magic).hides_what_is_open, "{magic:x}");
        }
        assert!(Kind::of(FUSE).hides_what_is_open, "files that a program opens are hidden");
    }

    #[test]
    fn objects_are_found_by_handle_only_where_that_is_good_for_as_long_as_they_are() {
        for magic in [FAT, EXFAT, FUSE] {
            assert!(!Kind::of(magic).finds_by_handle(), "{magic:x}");
        }
        for magic in [EXT, XFS, NFS, CEPH, 0] {
            assert!(Kind::of(magic).finds_by_handle(), "{magic:x}");
        }
    }

    #[test]
    fn only_nfs_flushes_to_tell_times_and_keeps_names_beyond_attributes() {
        for magic in [EXT, XFS, FUSE, CEPH, SMB[1], 0] {
            let Kind { flushes_to_tell_times, keeps_names, .. } = Kind::of(magic);
            assert!(!flushes_to_tell_times && !keeps_names, "{magic:x}");
        }
        let nfs = Kind::of(NFS);
        assert!(nfs.flushes_to_tell_times && nfs.keeps_names);
    }
}
