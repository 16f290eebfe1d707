//! The proof that the times of a file system give about its contents.
//!
//! Contents are recognized by size, modification time and *change time*. On most local file systems
//! the kernel of this machine sets the change time at each change, and no program can set it.
//! Elsewhere it may be a copy of the modification time (FAT, exFAT, SFTP, SMB as Samba serves it).
//! Then a program that restores an old time (`touch -r`, `cp -p`, `rsync --times`, `tar`) makes new
//! contents look like the old ones. Times of *directories* prove even less. A union of directories
//! shows that of one of them, and a server may not change it when names come and go.
//!
//! So the type of file system decides ([`super::file_systems`]). A type that is not known to keep
//! its own times proves nothing, unless the user says otherwise ([`TrustTimes`]). An overlay is
//! worth as much as its layers, and a view of ogive as much as its source. `statx(2)` does not show
//! the kernel's own change counter (`STATX_CHANGE_COOKIE`) to programs.

use super::file_systems;
use crate::mount_table::MountEntry;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Whether to trust the times of mounted file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustTimes {
    /// As far as the type of file system proves them.
    #[default]
    Auto,
    /// For all contents: the user promises that no program restores old times.
    Always,
    /// For nothing.
    Never,
    /// For everything: the user promises that nothing changes.
    Unchanging,
}

/// The proof that times give, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Proof {
    Nothing,
    /// Contents of files and links, but not names in directories.
    Contents,
    /// Everything.
    All,
    /// Everything while it is mounted: it is an image that is made once and never changed. Another
    /// image may have the same times, if both are built reproducibly.
    Image,
}

impl TrustTimes {
    /// The trust that follows from this proof.
    pub(super) fn allows(self, proof: Proof) -> Proof {
        match self {
            Self::Auto => proof,
            Self::Always => proof.max(Proof::Contents),
            Self::Never => Proof::Nothing,
            Self::Unchanging => proof.max(Proof::All),
        }
    }
}

use Proof::{All, Contents, Image};

/// Depth to which stacked file systems are followed.
const DEPTH_MAX: usize = 8;

/// The proof that the times of a mounted file system give.
pub(super) fn proof(mounts: &[MountEntry], mount: &MountEntry) -> Proof {
    below(mounts, mount, DEPTH_MAX)
}

fn below(mounts: &[MountEntry], mount: &MountEntry, depth: usize) -> Proof {
    if depth == 0 {
        return Proof::Nothing;
    }
    let of_path = |path: &Path| holder(mounts, path).map(|mount| below(mounts, mount, depth - 1));
    if mount.is_ogive() {
        // A bucket, or a directory with a name chosen by the user, is no path.
        return match of_path(Path::new(&mount.source)) {
            Some(Image | All | Contents) => Contents,
            _ => Proof::Nothing,
        };
    }
    if mount.fstype == "overlay" {
        // Layers outside this mount namespace, as in a container, count as local ones.
        let own = |path: &PathBuf| holder(mounts, path).is_none_or(|layer| layer == mount);
        let layers = layers(mount).into_iter().filter(|path| !own(path));
        let proved = layers.filter_map(|path| of_path(&path)).min().unwrap_or(All);
        // One layer is an image, and another is not.
        return if proved == Image { Proof::Nothing } else { proved };
    }
    file_systems::proof(&mount.fstype)
}

/// The mount of a path, as far as the path alone shows it.
fn holder<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    if !path.is_absolute() {
        return None;
    }
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    // The last of several at one mount point covers the others.
    above.max_by_key(|mount| mount.mount_point.as_os_str().len())
}

/// The directories of an overlay's layers (`lowerdir=a:b`, `lowerdir+=a`, `upperdir=a`).
fn layers(mount: &MountEntry) -> Vec<PathBuf> {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let mut layers = Vec::new();
    for option in &mount.super_options {
        let mut parts = option.as_bytes().splitn(2, |byte| *byte == b'=');
        let (name, Some(value)) = (parts.next().unwrap_or_default(), parts.next()) else {
            continue;
        };
        match name {
            b"lowerdir" => {
                // A colon within a name is escaped by a backslash.
                let mut layer = Vec::new();
                let mut bytes = value.iter();
                while let Some(&byte) = bytes.next() {
                    match byte {
                        b'\\' => layer.extend(bytes.next()),
                        b':' => layers.push(std::mem::take(&mut layer)),
                        byte => layer.push(byte),
                    }
                }
                layers.push(layer);
            }
            b"lowerdir+" | b"datadir+" | b"upperdir" => {
                layers.push(OsStr::from_bytes(value).as_bytes().to_vec());
            }
            _ => {}
        }
    }
    let paths = layers.into_iter().map(|layer| PathBuf::from(std::ffi::OsString::from_vec(layer)));
    paths.filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount_table::parse;

    const TABLE: &[u8] = b"\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:30 / /run rw - tmpfs tmpfs rw
3 1 0:31 / /ssh rw - fuse.sshfs me@host:/ rw
4 1 0:32 / /nfs rw - nfs4 host:/export rw,vers=4.2
5 1 7:0 / /snap/x ro - squashfs /dev/loop0 ro
6 1 8:17 / /stick rw - vfat /dev/sdb1 rw
7 1 0:33 / /proc rw - proc proc rw
8 1 0:34 / /view rw - fuse.ogive /srv rw
9 1 0:35 / /view-of-ssh rw - fuse.ogive /ssh/data rw
10 1 0:36 / /view-of-view rw - fuse.ogive /view/a rw
11 1 0:37 / /view-of-bucket rw - fuse.ogive s3://bucket/data rw
12 1 0:38 / /merged rw - overlay overlay rw,lowerdir=/a:/b\\134:/ssh,upperdir=/u,workdir=/w
13 1 0:39 / /over-ssh rw - overlay o rw,lowerdir=/a:/ssh/b,upperdir=/u,workdir=/w
14 1 0:40 / /over-image ro - overlay o ro,lowerdir+=/snap/x/a,lowerdir+=/snap/x/b
15 1 0:41 / /over-nothing rw - overlay o rw,lowerdir=relative
16 1 0:42 / /own rw - overlay o rw,lowerdir=/own/a:/a
17 1 0:43 / /pool rw - fuse.mergerfs a:b rw
18 1 0:44 / /new rw - somefs new rw
19 1 0:45 / /circle rw - fuse.ogive /circle/a rw
20 1 0:46 / /upper-stick rw - overlay o rw,lowerdir=/a,upperdir=/stick/u,workdir=/stick/w
21 1 0:47 / /fuse rw - fuse passthrough rw
22 1 8:33 / /ntfs rw - fuseblk /dev/sdc1 rw
23 1 0:48 / /smb rw - cifs //host/share rw,vers=3.1.1
24 1 0:49 / /smb3 rw - smb3 //host/share rw,vers=3.1.1
";

    fn of(mount_point: &str) -> Proof {
        let mounts = parse(TABLE);
        let found = mounts.iter().find(|mount| mount.mount_point == Path::new(mount_point));
        proof(&mounts, found.unwrap_or_else(|| panic!("no {mount_point}")))
    }

    #[test]
    fn the_type_of_file_system_decides_on_the_proof_of_times() {
        for local in ["/", "/run", "/merged", "/over-nothing", "/own"] {
            assert_eq!(of(local), All, "{local}");
        }
        for far in ["/nfs", "/view", "/view-of-view"] {
            assert_eq!(of(far), Contents, "{far}");
        }
        assert_eq!(of("/snap/x"), Image);
        let unknown =
            ["/ssh", "/stick", "/proc", "/pool", "/new", "/fuse", "/ntfs", "/smb", "/smb3"];
        let on_top = ["/view-of-ssh", "/view-of-bucket", "/over-ssh", "/upper-stick", "/circle"];
        for nothing in unknown.into_iter().chain(on_top).chain(["/over-image"]) {
            assert_eq!(of(nothing), Proof::Nothing, "{nothing}");
        }
    }

    #[test]
    fn a_user_may_vouch_for_contents_but_not_for_names_in_directories() {
        for (proof, always) in
            [(Proof::Nothing, Contents), (Contents, Contents), (All, All), (Image, Image)]
        {
            assert_eq!(TrustTimes::Auto.allows(proof), proof);
            assert_eq!(TrustTimes::Always.allows(proof), always);
            assert_eq!(TrustTimes::Never.allows(proof), Proof::Nothing);
            assert_eq!(TrustTimes::Unchanging.allows(proof), proof.max(All));
        }
    }
}
