//! Types of file systems and their properties: one table, a row per type.
//!
//! Some properties cannot be read from a file system, but follow from its type. Any object has the
//! magic number of its type (`linux/magic.h`), which gives the unusual behaviour. The table of
//! mounts has the name of the type, which determines the place of its bytes and the value of its
//! times. A type without a row gets the careful answers. Its times and its time of birth prove
//! nothing, and its numbers and names are used unchanged. Its bytes are on this machine, unless it
//! is FUSE.
//!
//! If the bytes are on a server or with another program, permissions are decided there too, and the
//! mode bits may not count. Directories of such a type are always read again, because the exported
//! file system is unknown.

use super::times::Proof;
use crate::Result;
use Place::{Elsewhere, Here};
use Proof::{All, Contents, Image, Nothing};
use rustix::fd::AsFd;

pub(super) const EXFAT: u32 = 0x2011_bab0;
/// ext2, ext3 and ext4.
pub(super) const EXT: u32 = 0xef53;
pub(super) const FAT: u32 = 0x4d44;
pub(super) const FUSE: u32 = 0x6573_5546;
pub(super) const NFS: u32 = 0x6969;
/// SMB 1, and SMB 2 and 3.
pub(super) const SMB: [u32; 2] = [0xff53_4d42, 0xfe53_4d42];

/// A type of file system, or several similar ones.
struct Type {
    /// As the table of mounts has them. FUSE with a program behind it has more names than these.
    names: &'static [&'static str],
    /// Empty if the type has only the usual properties.
    magics: &'static [u32],
    place: Place,
    /// The proof that its times give ([`super::times`]).
    proof: Proof,
    kind: Kind,
}

/// Where the bytes of a file system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    Elsewhere,
}

/// The unusual properties of a type of file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Its server sends attributes together with names.
    pub(super) lists_with_attributes: bool,
    /// It is a file system of this machine's own kernel, and opens a file whenever its mode and a
    /// writable mount permit.
    pub(super) opens_as_files_permit: bool,
    birth: Birth,
    pub(super) sizes: Sizes,
    /// It has no numbers of its own: an object gets the next one whenever the kernel reads it from
    /// the disk. The number holds only while a program has the object open.
    pub(super) makes_up_numbers: bool,
    /// Its handles distinguish objects, but find one only while the kernel has it in memory. Most
    /// FUSE file systems (libfuse) number the paths of requests, and drop a path when the kernel
    /// does.
    pub(super) forgets_handles: bool,
    /// Its files have no capabilities, whatever other attributes they have.
    pub(super) lacks_capabilities: bool,
    /// It sends written data to the server before it reports the times of a file.
    pub(super) flushes_before_times: bool,
    /// It keeps the names of a directory while it is unchanged, but not the attributes that came
    /// with them.
    pub(super) keeps_names: bool,
    /// A file that is open when it is removed stays in its directory, under another name
    /// (`.nfs...`) or its own.
    pub(super) hides_what_is_open: bool,
    /// So does a file that is open only by name (`O_PATH`). A FUSE file system does not learn of
    /// such descriptors.
    pub(super) hides_what_is_named: bool,
    /// It leads from any spelling of a name to the same object.
    pub(super) folds_case: bool,
    /// It is known whether it folds case. Other types may be configured for it: they are probed
    /// once ([`super::name_folding`]).
    pub(super) is_case_known: bool,
}

/// How much can be read, given a file's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// As many bytes as the size.
    True,
    /// The same, unless the size is 0: then there may be more.
    Doubted,
    /// Any number: the contents are made at each read.
    MadeUp,
}

/// The objects whose time of birth is set once and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Birth {
    Changes,
    /// exFAT changes a directory's time of birth at a rename in it.
    StaysOfFiles,
    Stays,
}

const PLAIN: Kind = Kind {
    lists_with_attributes: false,
    opens_as_files_permit: false,
    birth: Birth::Changes,
    sizes: Sizes::True,
    makes_up_numbers: false,
    forgets_handles: false,
    lacks_capabilities: false,
    flushes_before_times: false,
    keeps_names: false,
    hides_what_is_open: false,
    hides_what_is_named: false,
    folds_case: false,
    is_case_known: false,
};
const DOUBTED: Kind = Kind { sizes: Sizes::Doubted, ..PLAIN };
const OPENING: Kind = Kind { opens_as_files_permit: true, ..PLAIN };
const LOCAL: Kind = Kind { birth: Birth::Stays, ..OPENING };
const DOS: Kind = Kind {
    birth: Birth::Stays,
    makes_up_numbers: true,
    lacks_capabilities: true,
    folds_case: true,
    is_case_known: true,
    ..PLAIN
};
const LISTING: Kind = Kind { lists_with_attributes: true, ..PLAIN };
const SERVED: Kind =
    Kind { lacks_capabilities: true, hides_what_is_open: true, hides_what_is_named: true, ..PLAIN };

const fn plain(names: &'static [&'static str], place: Place, proof: Proof) -> Type {
    Type { names, magics: &[], place, proof, kind: PLAIN }
}

const fn local(names: &'static [&'static str], magics: &'static [u32]) -> Type {
    Type { names, magics, place: Here, proof: All, kind: LOCAL }
}

const TYPES: &[Type] = &[
    local(&["bcachefs"], &[0xca45_1a4e]),
    local(&["btrfs"], &[0x9123_683e]),
    local(&["ext2", "ext3", "ext4"], &[EXT]),
    local(&["f2fs"], &[0xf2f5_2010]),
    local(&["devtmpfs", "tmpfs"], &[0x0102_1994]),
    local(&["xfs"], &[0x5846_5342]),
    local(&["zfs"], &[0x2fc1_2fc1]),
    Type { kind: Kind { birth: Birth::Stays, ..PLAIN }, ..local(&["hfsplus"], &[0x482b]) },
    // An overlay's times prove what its layers' times do, and its times of birth are those of the
    // lower files.
    Type { proof: Nothing, kind: OPENING, ..local(&["overlay"], &[0x794c_7630]) },
    plain(&["jffs2", "jfs", "nilfs2", "ntfs3", "ramfs", "reiserfs", "rootfs"], Here, All),
    plain(&["ubifs", "udf", "ufs"], Here, All),
    plain(&["gfs2", "ocfs2"], Here, Contents),
    plain(&["cramfs", "erofs", "iso9660", "romfs", "squashfs"], Here, Image),
    Type { names: &["msdos", "vfat"], magics: &[FAT], place: Here, proof: Nothing, kind: DOS },
    Type {
        names: &["exfat"],
        magics: &[EXFAT],
        place: Here,
        proof: Nothing,
        kind: Kind { birth: Birth::StaysOfFiles, ..DOS },
    },
    Type {
        names: &["nfs", "nfs4"],
        magics: &[NFS],
        place: Elsewhere,
        proof: Contents,
        kind: Kind {
            lists_with_attributes: true,
            flushes_before_times: true,
            keeps_names: true,
            ..SERVED
        },
    },
    Type {
        names: &["cifs", "smb3"],
        magics: &SMB,
        place: Elsewhere,
        proof: Nothing,
        kind: Kind { lists_with_attributes: true, folds_case: true, is_case_known: true, ..SERVED },
    },
    // The AFS of the kernel, and OpenAFS.
    Type {
        names: &["afs"],
        magics: &[0x6b41_4653, 0x5346_414f],
        place: Elsewhere,
        proof: Nothing,
        kind: SERVED,
    },
    Type {
        names: &["ceph"],
        magics: &[0x00c3_6400],
        place: Elsewhere,
        proof: Contents,
        kind: LISTING,
    },
    Type {
        names: &["fuse", "fuseblk"],
        magics: &[FUSE],
        place: Elsewhere,
        proof: Nothing,
        kind: Kind {
            sizes: Sizes::Doubted,
            forgets_handles: true,
            hides_what_is_open: true,
            ..LISTING
        },
    },
    plain(&["fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs"], Elsewhere, Contents),
    plain(&["fuse.juicefs", "fuse.mfs"], Elsewhere, Contents),
    plain(&["9p", "beegfs", "gpfs", "lustre", "pvfs2", "virtiofs"], Elsewhere, Contents),
    // The kernel makes their contents at each read.
    Type {
        names: MADE,
        magics: MADE_MAGICS,
        place: Here,
        proof: Nothing,
        kind: Kind { sizes: Sizes::MadeUp, ..PLAIN },
    },
    plain(&["coda"], Elsewhere, Nothing),
];

/// The kernel's own file systems, whose contents are made at each read (`linux/magic.h`).
const MADE: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nfsd",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
    "xenfs",
];
const MADE_MAGICS: &[u32] = &[
    0x4249_4e4d,
    0xcafe_4a11,
    0x0027_e0eb,
    0x6367_7270,
    0x6265_6570,
    0x6462_6720,
    0x0000_1cd1,
    0xde5e_81e4,
    0x6573_5543,
    0x1980_0202,
    0x6e66_7364,
    0x0000_9fa0,
    0x6165_676c,
    0x0765_5821,
    0x6759_6969,
    0x7363_6673,
    0xf97c_ff8c,
    0x4341_5d53,
    0x6265_6572,
    0x7472_6163,
    0xabba_1974,
];

/// The first bytes of names that file systems give to files that are removed while open.
const HIDDEN: &[&[u8]] = &[
    b".nfs",
    b".__afs",
    // libfuse.
    b".fuse_hidden",
];

fn named(fstype: &str) -> Option<&'static Type> {
    TYPES.iter().find(|known| known.names.contains(&fstype))
}

/// The proof that the times of a type of file system give.
pub(super) fn proof(fstype: &str) -> Proof {
    named(fstype).map_or(Nothing, |known| known.proof)
}

/// Whether the bytes of a type of file system are elsewhere, so that its rights are decided
/// elsewhere too.
pub(super) fn is_elsewhere(fstype: &str) -> bool {
    fstype.starts_with("fuse.") || named(fstype).is_some_and(|known| known.place == Elsewhere)
}

impl Kind {
    /// The kind with this magic number.
    pub(super) fn of(magic: u32) -> Self {
        let known = TYPES.iter().find(|known| known.magics.contains(&magic));
        known.map_or(DOUBTED, |known| known.kind)
    }

    /// The kind of the file system of an open object.
    pub(super) fn of_object(fd: impl AsFd) -> Result<Self> {
        Ok(Self::of(rustix::fs::fstatfs(fd)?.f_type as u32))
    }

    /// Whether a handle finds its object for as long as the object exists.
    pub(super) fn finds_by_handle(&self) -> bool {
        !self.makes_up_numbers && !self.forgets_handles
    }

    /// Whether the time of birth distinguishes an object from an earlier one with its number.
    pub(super) fn birth_tells(&self, is_directory: bool) -> bool {
        match self.birth {
            Birth::Changes => false,
            Birth::StaysOfFiles => !is_directory,
            Birth::Stays => true,
        }
    }
}

impl Default for Kind {
    fn default() -> Self {
        DOUBTED
    }
}

/// Whether a file system gave this name to a file that was removed while it was open.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    HIDDEN.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFS: u32 = 0x6b41_4653;
    const BTRFS: u32 = 0x9123_683e;
    const CEPH: u32 = 0x00c3_6400;
    const OVERLAY: u32 = 0x794c_7630;
    const TMPFS: u32 = 0x0102_1994;
    const XFS: u32 = 0x5846_5342;

    #[test]
    fn a_birth_distinguishes_objects_only_if_it_never_changes() {
        for magic in [EXT, XFS, BTRFS, TMPFS, FAT] {
            assert!(Kind::of(magic).birth_tells(true) && Kind::of(magic).birth_tells(false));
        }
        assert!(
            !Kind::of(EXFAT).birth_tells(true),
            "a rename in a directory changes its time of birth"
        );
        assert!(Kind::of(EXFAT).birth_tells(false));
        // An overlay reports the time of the lower file, and another one after a copy up. On SMB
        // any client can set it; on FUSE it comes from a program.
        for magic in [OVERLAY, SMB[0], SMB[1], FUSE, 0] {
            assert!(!Kind::of(magic).birth_tells(false), "{magic:x}");
        }
    }

    #[test]
    fn descriptors_of_names_are_kept_unless_they_keep_a_removed_file_in_its_directory() {
        for magic in [EXT, XFS, OVERLAY, FAT, FUSE, CEPH, 0] {
            assert!(!Kind::of(magic).hides_what_is_named, "{magic:x}");
        }
        for magic in [NFS, SMB[1], AFS] {
            assert!(Kind::of(magic).hides_what_is_named, "{magic:x}");
            assert!(Kind::of(magic).hides_what_is_open, "{magic:x}");
        }
        assert!(Kind::of(FUSE).hides_what_is_open, "files that a program opens are hidden");
    }

    #[test]
    fn objects_are_found_by_handle_only_where_handles_last_as_long_as_objects() {
        for magic in [FAT, EXFAT, FUSE] {
            assert!(!Kind::of(magic).finds_by_handle(), "{magic:x}");
        }
        for magic in [EXT, XFS, NFS, CEPH, 0] {
            assert!(Kind::of(magic).finds_by_handle(), "{magic:x}");
        }
    }

    #[test]
    fn only_nfs_flushes_before_times_and_keeps_names_beyond_attributes() {
        for magic in [EXT, XFS, FUSE, CEPH, SMB[1], 0] {
            let Kind { flushes_before_times, keeps_names, .. } = Kind::of(magic);
            assert!(!flushes_before_times && !keeps_names, "{magic:x}");
        }
        let nfs = Kind::of(NFS);
        assert!(nfs.flushes_before_times && nfs.keeps_names);
    }

    #[test]
    fn no_type_is_named_twice() {
        let names: Vec<_> = TYPES.iter().flat_map(|known| known.names).collect();
        let magics: Vec<_> = TYPES.iter().flat_map(|known| known.magics).collect();
        for (place, name) in names.iter().enumerate() {
            assert!(!names[..place].contains(name), "{name}");
        }
        for (place, magic) in magics.iter().enumerate() {
            assert!(!magics[..place].contains(magic), "{magic:x}");
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
