//! `mount -o remount`: changing the flags of an existing mount.
//!
//! The kernel can change the flags that it enforces itself: read-only, no devices, no set-user-ID
//! programs, no programs at all. The process behind the mount keeps its own options. An option of
//! ogive only causes a warning, because mount(8) passes the whole line of /etc/fstab, which may
//! contain the option with its present value.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result};
use log::warn;
use rustix::io::Errno;
use rustix::mount::MountFlags;

use super::args::MountArgs;
use super::{fstab_options, paths};
use crate::exit::{self, Refusal};
use crate::mountinfo::{self, MountEntry};

/// Flags by the words that set and clear them; those of the mount table and of `-o` are the same.
const FLAGS: &[(&str, &str, MountFlags)] = &[
    ("ro", "rw", MountFlags::RDONLY),
    ("nodev", "dev", MountFlags::NODEV),
    ("nosuid", "suid", MountFlags::NOSUID),
    ("noexec", "exec", MountFlags::NOEXEC),
    ("noatime", "atime", MountFlags::NOATIME),
    ("nodiratime", "diratime", MountFlags::NODIRATIME),
];

/// Options that mount(8) copies from the table of mounts, and that cannot change.
const STANDING: &[&str] = &["allow_other", "default_permissions", "relatime", "norelatime"];
const STANDING_PREFIXES: &[&str] = &["user_id=", "group_id=", "max_read=", "blksize="];

/// Whether these `-o` arguments request a remount.
pub(crate) fn is_asked(options: &[OsString]) -> bool {
    fstab_options::words(options).any(|option| option == "remount")
}

/// Remounts.
pub(crate) fn run(args: &MountArgs) -> Result<()> {
    let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
    let path = paths::resolve(&mounts, &args.mount_point).map_err(|error| {
        let reason = paths::reason(&error);
        refuse(&args.mount_point, &reason, exit::MOUNT_POINT)
    })?;
    let mount = mountinfo::topmost_at(&mounts, &path)
        .filter(|mount| mount.is_ogive())
        .ok_or_else(|| refuse(&path, "ogive has mounted nothing there", exit::MOUNT_POINT))?;
    let (flags, others) = flags(mount, args)?;
    for other in others {
        warn!("{}: {other} is not changed by a remount; unmount and mount again", path.display());
    }
    if !flags.contains(MountFlags::RDONLY) && was_mounted_read_only(&path) {
        let reason = "it was mounted read-only, and its process refuses to write";
        return Err(refuse(&path, reason, exit::USAGE)
            .hint("unmount it and mount it again without ro")
            .into());
    }
    rustix::mount::mount_remount(&path, flags, c"").map_err(|errno| match errno {
        Errno::BUSY => refuse(&path, "files are open for writing", exit::BUSY)
            .hint("close them, or end the programs that have them open"),
        Errno::PERM => refuse(&path, "only root can change a mount", exit::FUSE),
        errno => refuse(&path, &paths::reason(&errno.into()), exit::FAILURE),
    })?;
    Ok(())
}

fn refuse(path: &Path, reason: &str, code: u8) -> Refusal {
    Refusal::new(code, format!("cannot remount {}: {reason}", path.display()))
}

/// The present flags with the requested changes applied in order, and the options that a remount
/// cannot change.
fn flags(mount: &MountEntry, args: &MountArgs) -> Result<(MountFlags, Vec<String>), Refusal> {
    let mut flags = MountFlags::empty();
    for word in mount.options.split(',') {
        set(&mut flags, word);
    }
    flags.set(MountFlags::RDONLY, flags.contains(MountFlags::RDONLY) || args.read_only);
    let mut others = Vec::new();
    for option in fstab_options::words(&args.options) {
        let Some(word) = option.to_str() else {
            others.push(option.display().to_string());
            continue;
        };
        let is_standing = STANDING.contains(&word)
            || STANDING_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        if word == "remount"
            || set(&mut flags, word)
            || is_standing
            || fstab_options::is_ignored(&option)
        {
            continue;
        }
        match fstab_options::refused(word) {
            Some(refusal) => return Err(refusal),
            None => others.push(word.to_owned()),
        }
    }
    Ok((flags, others))
}

/// Sets or clears the flag of a word; false if it has none.
fn set(flags: &mut MountFlags, word: &str) -> bool {
    let meant = FLAGS.iter().find(|(on, off, _)| word == *on || word == *off);
    if let Some((on, _, flag)) = meant {
        flags.set(*flag, word == *on);
    }
    meant.is_some()
}

fn was_mounted_read_only(path: &Path) -> bool {
    let text = std::fs::read_to_string(path.join(".ogive/mount")).unwrap_or_default();
    let mount: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    mount["read_only"] == true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn remounted(options: &str) -> Result<(MountFlags, Vec<String>), String> {
        let text = b"9 1 0:5 / /m rw,nosuid,nodev,relatime - fuse.ogive /s rw,user_id=0\n";
        let mounts = mountinfo::parse(text);
        let cli = Cli::try_parse_from(["ogive", "mount", "-o", options, "/s", "/m"]).unwrap();
        let Command::Mount(args) = cli.command else { panic!("not mount") };
        assert!(is_asked(&args.options));
        flags(&mounts[0], &args).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_remount_combines_present_and_requested_flags() {
        let standing = MountFlags::NOSUID | MountFlags::NODEV;
        let (flags, others) = remounted("remount,ro").unwrap();
        assert_eq!((flags, others.len()), (standing | MountFlags::RDONLY, 0));
        let whole = "rw,nosuid,relatime,user_id=0,group_id=0,allow_other,noexec,dev,remount,ro,rw";
        let (flags, others) = remounted(whole).unwrap();
        assert_eq!((flags, others.len()), (MountFlags::NOSUID | MountFlags::NOEXEC, 0));
    }

    #[test]
    fn options_that_a_remount_cannot_change_are_named_or_refused() {
        let (_, others) = remounted("remount,arc_max=4G,ro").unwrap();
        assert_eq!(others, ["arc_max=4G"]);
        assert!(remounted("remount,sync").unwrap_err().contains("\"sync\""));
    }
}
