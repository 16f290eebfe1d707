//! FUSE on this machine: whether it works, and how to unmount.
//!
//! Root mounts and unmounts by system call. Other users go through the set-uid program
//! `fusermount3` (or its older name `fusermount`), which lets a user unmount only their own mounts.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::exit::{self, Refusal};
use crate::mount::paths::reason;

/// How an unmount treats a mount in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmount {
    /// Fails with EBUSY while anything uses the mount.
    Plain,
    /// Takes the mount out of the tree at once; it ends when its last user lets go.
    Detach,
}

/// Whether this process may mount by itself.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Unmounts what is mounted on top at `mount_point`, an absolute path.
pub(crate) fn unmount(mount_point: &Path, how: Unmount) -> io::Result<()> {
    let flags = match how {
        Unmount::Plain => UnmountFlags::NOFOLLOW,
        Unmount::Detach => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
    };
    match rustix::mount::unmount(mount_point, flags) {
        Err(Errno::PERM) => unmount_by_program(mount_point, how),
        result => result.map_err(io::Error::from),
    }
}

fn unmount_by_program(mount_point: &Path, how: Unmount) -> io::Result<()> {
    let program = fusermount().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only root can unmount without fusermount3, which is not installed",
        )
    })?;
    let mut command = Command::new(program);
    command.arg("-u");
    if how == Unmount::Detach {
        command.arg("-z");
    }
    // The program's messages are matched below, so they must not be translated.
    let output =
        command.arg("--").arg(mount_point).env("LC_ALL", "C").stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    if text.ends_with("Device or resource busy") {
        return Err(Errno::BUSY.into());
    }
    Err(io::Error::other(text.strip_prefix("fusermount3: ").unwrap_or(text).to_owned()))
}

/// The program through which users who are not root mount and unmount.
fn fusermount() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    ["fusermount3", "fusermount"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |dir| dir.join(name)))
        .find(|candidate| candidate.is_file())
}

/// The kernel's side of FUSE.
const DEVICE: &str = "/dev/fuse";

/// Refuses if FUSE cannot work for this user, and says what to install or load.
pub(crate) fn check_available(allow_other: bool) -> Result<(), Refusal> {
    let device = std::fs::File::options().read(true).write(true).open(DEVICE);
    let machine = Machine {
        device_error: device.err(),
        root: is_root(),
        fusermount: fusermount().is_some(),
        // fusermount3 reads the same file.
        fuse_conf: std::fs::read_to_string("/etc/fuse.conf").unwrap_or_default(),
    };
    check(&machine, allow_other)
}

/// The facts that decide whether FUSE works, read from the machine or made up by a test.
struct Machine {
    device_error: Option<io::Error>,
    root: bool,
    fusermount: bool,
    fuse_conf: String,
}

fn check(machine: &Machine, allow_other: bool) -> Result<(), Refusal> {
    if let Some(error) = &machine.device_error {
        return Err(device_refusal(error, machine.root));
    }
    if machine.root {
        return Ok(());
    }
    if !machine.fusermount {
        return Err(Refusal::new(
            exit::FUSE,
            "cannot mount: not root, and fusermount3 is not in PATH",
        )
        .hint("install it (Debian, Fedora, Arch: package fuse3) or run as root"));
    }
    if allow_other && !user_allow_other(&machine.fuse_conf) {
        return Err(Refusal::new(
            exit::FUSE,
            "cannot mount with --allow-other: only root may, unless /etc/fuse.conf says \
             user_allow_other",
        )
        .hint("add the line \"user_allow_other\" to /etc/fuse.conf, or leave --allow-other out"));
    }
    Ok(())
}

/// The refusal if the device cannot be opened. fusermount3 opens it as the user, too.
fn device_refusal(error: &io::Error, root: bool) -> Refusal {
    let (reason, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            "it does not exist".to_owned(),
            "load the kernel module with \"modprobe fuse\", or in a container pass \
             \"--device /dev/fuse --cap-add SYS_ADMIN\"",
        ),
        io::ErrorKind::PermissionDenied if !root => (
            "permission denied".to_owned(),
            "allow users to open it, as udev does, with \"chmod 666 /dev/fuse\", or run as root",
        ),
        io::ErrorKind::PermissionDenied => (
            "permission denied, even for root".to_owned(),
            "in a container pass \"--device /dev/fuse --cap-add SYS_ADMIN\"",
        ),
        _ => (reason(error), "load the kernel module with \"modprobe fuse\""),
    };
    Refusal::new(exit::FUSE, format!("cannot mount: {DEVICE} cannot be opened: {reason}"))
        .hint(hint)
}

fn user_allow_other(fuse_conf: &str) -> bool {
    fuse_conf.lines().any(|line| line.trim() == "user_allow_other")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { device_error: None, root: false, fusermount: true, fuse_conf: String::new() }
    }

    #[test]
    fn each_missing_piece_is_named_with_its_remedy() {
        let refused = |machine: Machine| check(&machine, true).unwrap_err().to_string();
        let without = |errno: Errno, root| {
            refused(Machine { device_error: Some(errno.into()), root, ..machine() })
        };
        let none = without(Errno::NOENT, true);
        assert!(none.contains("/dev/fuse") && none.contains("modprobe fuse"), "{none}");
        assert!(without(Errno::NODEV, true).contains("modprobe fuse"));
        assert!(without(Errno::PERM, true).contains("--device /dev/fuse"));
        assert!(without(Errno::ACCESS, false).contains("chmod 666 /dev/fuse"));
        let program = refused(Machine { fusermount: false, ..machine() });
        assert!(program.contains("package fuse3"), "{program}");
        let other = refused(machine());
        assert!(other.contains("/etc/fuse.conf"), "{other}");
    }

    #[test]
    fn root_needs_neither_the_program_nor_the_permission() {
        let root = Machine { root: true, fusermount: false, ..machine() };
        assert!(check(&root, true).is_ok());
    }

    #[test]
    fn a_commented_permission_is_none() {
        assert!(!user_allow_other("# user_allow_other\nmount_max = 1000\n"));
        assert!(user_allow_other("mount_max = 1000\n  user_allow_other \n"));
        let allowed = Machine { fuse_conf: "user_allow_other\n".into(), ..machine() };
        assert!(check(&allowed, true).is_ok());
        assert!(check(&machine(), false).is_ok());
    }

    #[test]
    fn unmounting_without_a_mount_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(unmount(dir.path(), Unmount::Plain).is_err());
    }
}
