//! `/proc/self/mountinfo`: the mounts that a process sees (proc_pid_mountinfo(5)).
//!
//! In that file paths contain space, tab, newline, backslash and `#` as three octal digits; here
//! they are the original bytes. Invalid lines are skipped, because one odd line of the kernel must
//! not hide the others.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::unescaped;

/// The file system type under which the kernel lists ogive's mounts.
pub const FSTYPE: &str = "fuse.ogive";

/// One line of the file: a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The number of the mount. It is reused after an unmount.
    pub id: u32,
    /// The device number of the file system, `major:minor`. For FUSE the minor is the number of its
    /// connection.
    pub device: (u32, u32),
    /// The mounted directory of the file system: `/`, unless it is a bind mount.
    pub root: OsString,
    /// The mount point.
    pub mount_point: PathBuf,
    /// Options of this mount instead of the file system, such as `rw,nosuid,nodev,relatime`.
    pub options: String,
    /// File system type, such as `ext4` or `fuse.ogive`.
    pub fstype: String,
    /// The source: a device, or for ogive its source directory.
    pub source: OsString,
    /// Options of the file system, each such as `rw` or `name=value`.
    pub super_options: Vec<OsString>,
}

impl MountEntry {
    /// Whether this is an ogive mount.
    pub fn is_ogive(&self) -> bool {
        self.fstype == FSTYPE
    }

    /// Whether this is a FUSE mount of any kind (`fuse`, `fuse.sshfs`, `fuseblk`).
    pub fn is_fuse(&self) -> bool {
        self.fstype == "fuse" || self.fstype == "fuseblk" || self.fstype.starts_with("fuse.")
    }

    /// The only user that the kernel admits: that of a FUSE mount without `allow_other`.
    pub fn only_user(&self) -> Option<u32> {
        let value = |option: &OsString| option.to_str()?.strip_prefix("user_id=")?.parse().ok();
        let is_private = self.is_fuse() && !self.super_options.iter().any(|o| o == "allow_other");
        self.super_options.iter().find_map(value).filter(|_| is_private)
    }
}

/// The mount at exactly this path that no other mount covers: the last line with this path.
pub fn topmost_at<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    mounts.iter().rev().find(|mount| mount.mount_point == path)
}

/// The mounts below a path, without the one at it.
pub fn below<'a>(mounts: &'a [MountEntry], path: &Path) -> impl Iterator<Item = &'a MountEntry> {
    mounts
        .iter()
        .filter(move |mount| mount.mount_point != path && mount.mount_point.starts_with(path))
}

/// Parses the text of a mountinfo file.
pub fn parse(text: &[u8]) -> Vec<MountEntry> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountEntry> {
    // id parent major:minor root mount-point options [tag[:value] ...] - fstype source
    // super-options
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?;
    let root = fields.next()?;
    let mount_point = fields.next()?;
    let options = fields.next()?;
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let fstype = fields.next()?;
    let source = fields.next()?;
    // A comma in a value is escaped, like a space.
    let super_options = fields.next().unwrap_or_default().split(|byte| *byte == b',');
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    Some(MountEntry {
        id,
        root: OsString::from_vec(unescaped(root)),
        device: (major.parse().ok()?, minor.parse().ok()?),
        mount_point: PathBuf::from(OsString::from_vec(unescaped(mount_point))),
        options: String::from_utf8_lossy(options).into_owned(),
        fstype: String::from_utf8_lossy(fstype).into_owned(),
        source: OsString::from_vec(unescaped(source)),
        super_options: super_options.map(|each| OsString::from_vec(unescaped(each))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &[u8] = b"\
22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
28 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
91 28 0:52 / /mnt/my\\040photos\\134x rw,nosuid,nodev,relatime shared:7 master:3 \
- fuse.ogive /srv/my\\011data rw,user_id=0,a=b\\054c
92 91 0:53 / /mnt/my\\040photos\\134x/sub rw - fuse.sshfs host:/x rw,user_id=7,allow_other
a broken line
93 28 0:54 / /mnt/two ro - fuse.ogive /two ro
94 28 0:55 / /mnt/two rw - tmpfs - rw
";

    #[test]
    fn a_mount_without_allow_other_admits_one_user() {
        let users: Vec<_> = parse(SAMPLE).iter().map(MountEntry::only_user).collect();
        assert_eq!(users, [None, None, Some(0), None, None, None]);
    }

    #[test]
    fn paths_are_unescaped_to_their_bytes() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts.len(), 6);
        let ogive = &mounts[2];
        assert_eq!(ogive.mount_point, Path::new("/mnt/my photos\\x"));
        assert_eq!(ogive.source, "/srv/my\tdata");
        assert_eq!((ogive.id, ogive.device), (91, (0, 52)));
        assert_eq!(ogive.root, "/");
        assert_eq!(ogive.options, "rw,nosuid,nodev,relatime");
        assert_eq!(ogive.super_options, ["rw", "user_id=0", "a=b,c"]);
        assert!(ogive.is_ogive() && ogive.is_fuse());
        assert!(!mounts[3].is_ogive() && mounts[3].is_fuse());
        assert!(!mounts[1].is_fuse());
    }

    #[test]
    fn a_dash_as_source_is_not_the_separator() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts[5].fstype, "tmpfs");
        assert_eq!(mounts[5].source, "-");
    }

    #[test]
    fn the_last_mount_at_a_path_covers_the_earlier_ones() {
        let mounts = parse(SAMPLE);
        assert_eq!(topmost_at(&mounts, Path::new("/mnt/two")).unwrap().fstype, "tmpfs");
        assert_eq!(topmost_at(&mounts, Path::new("/mnt")), None);
        let points: Vec<_> = below(&mounts, Path::new("/mnt/my photos\\x")).collect();
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].fstype, "fuse.sshfs");
    }

    proptest! {
        #[test]
        fn any_path_that_the_kernel_writes_is_read_back(
            path in proptest::collection::vec(1_u8..=255, 1..40)
        ) {
            let escaped: Vec<u8> = path.iter().flat_map(|byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}").into_bytes(),
                other => vec![*other],
            }).collect();
            let mut line = b"1 2 0:3 / ".to_vec();
            line.extend(&escaped);
            line.extend(b" rw - fuse.ogive src rw\n");
            let mounts = parse(&line);
            prop_assert_eq!(mounts.len(), 1);
            prop_assert_eq!(&mounts[0].mount_point, &PathBuf::from(OsString::from_vec(path)));
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&text);
        }
    }
}
