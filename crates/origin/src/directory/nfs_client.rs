//! How long an NFS client uses its cache without asking the server, from its mount options
//! (nfs(5)).
//!
//! A view of NFS can never be fresher than the answers of the client.

use crate::mount_table::MountEntry;
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// The NFS client of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NfsClient {
    /// Version of the protocol, as `4.2`; empty if the mount does not say.
    pub version: String,
    /// How many seconds it caches attributes of files: at first, and at most.
    pub files_seconds: RangeInclusive<u32>,
    /// The same for directories, and so for the names in them, unless it asks for each name.
    pub directories_seconds: RangeInclusive<u32>,
    /// It asks for a name each time the name is followed (`lookupcache=none`).
    pub asks_for_names: bool,
}

impl NfsClient {
    /// The client of a mount; `None` if the mount is not of NFS.
    pub(super) fn of(mount: &MountEntry) -> Option<Self> {
        if !matches!(mount.fstype.as_str(), "nfs" | "nfs4") {
            return None;
        }
        let options: Vec<_> = mount.super_options.iter().map(OsString::as_os_str).collect();
        let value = |name: &str| {
            let texts = options.iter().filter_map(|option| option.to_str()?.split_once('='));
            texts.filter(|(known, _)| *known == name).map(|(_, value)| value).next_back()
        };
        let has = |name: &str| options.iter().any(|option| *option == name);
        let seconds = |least: (&str, u32), most: (&str, u32)| {
            let given = |(name, default)| match value(name).or_else(|| value("actimeo")) {
                Some(seconds) => seconds.parse().unwrap_or(default),
                None => default,
            };
            if has("noac") { 0..=0 } else { given(least)..=given(most) }
        };
        Some(Self {
            version: value("vers").unwrap_or_default().to_owned(),
            // The defaults of the kernel's `include/linux/nfs_fs.h`.
            files_seconds: seconds(("acregmin", 3), ("acregmax", 60)),
            directories_seconds: seconds(("acdirmin", 30), ("acdirmax", 60)),
            asks_for_names: value("lookupcache") == Some("none"),
        })
    }

    /// Whether the client may follow names for a while that other clients have changed.
    pub fn believes_names(&self) -> bool {
        !self.asks_for_names && *self.directories_seconds.end() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount_table;

    fn client(fstype: &str, options: &str) -> Option<NfsClient> {
        let line =
            format!("36 35 0:40 / /data rw,relatime shared:1 - {fstype} srv:/data {options}");
        NfsClient::of(&mount_table::parse(line.as_bytes())[0])
    }

    #[test]
    fn a_mount_without_options_has_the_defaults_of_the_client() {
        let options = "rw,vers=4.2,rsize=1048576,hard,proto=tcp,sec=sys,local_lock=none";
        let found = client("nfs4", options).unwrap();
        assert_eq!(found.version, "4.2");
        assert_eq!(
            (found.files_seconds.clone(), found.directories_seconds.clone()),
            (3..=60, 30..=60)
        );
        assert!(found.believes_names() && !found.asks_for_names);
    }

    #[test]
    fn mount_options_set_how_long_the_client_caches() {
        let given = "vers=3,acregmin=5,acregmax=7,acdirmin=9,acdirmax=11,lookupcache=none";
        let found = client("nfs", given).unwrap();
        assert_eq!(
            (found.files_seconds.clone(), found.directories_seconds.clone()),
            (5..=7, 9..=11)
        );
        assert!(found.asks_for_names && !found.believes_names());
        let none = client("nfs", "vers=3,noac").unwrap();
        assert!(*none.files_seconds.end() == 0 && !none.believes_names());
        assert!(client("nfs", "vers=3,lookupcache=pos").unwrap().believes_names());
        assert_eq!(client("nfs", "acregmin=x,vers").unwrap().files_seconds, 3..=60);
    }

    #[test]
    fn other_file_systems_have_no_such_client() {
        for fstype in ["ext4", "cifs", "fuse.nfs", "nfsd"] {
            assert_eq!(client(fstype, "rw,vers=3.1.1"), None, "{fstype}");
        }
    }
}
