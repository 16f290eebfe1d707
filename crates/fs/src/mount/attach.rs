//! Mounts and unmounts.
//!
//! Root mounts with the system call, so that the table of mounts shows `fuse.ogive` and not just
//! any FUSE file system. Other users mount through `fusermount3` ([`super::fusermount`]).

use super::fusermount;
use super::{MountError, MountOptions};
use crate::session::device;
use crate::session::in_flight::InFlight;
use crate::view::Permissions;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::{CString, OsStr};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an unmount lets requests wait for the source before it ends the connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often an unmount checks the waiting requests. It stops waiting after several checks in a row
/// without a request that has waited since the check before. One check is not enough: a request
/// that made the mount busy may still be on its way. A program sends one after the other.
const LOOK: Duration = Duration::from_millis(100);
const QUIET_LOOKS: u32 = 5;
/// Most checks: programs that get answers, one after the other, need no wait.
const LOOKS_MAX: u32 = 40;

/// Ends a mount; any number of threads may hold one.
#[derive(Clone)]
pub struct Unmounter(Arc<MountedAt>);

struct MountedAt {
    path: PathBuf,
    /// By the system call, and not through `fusermount3`.
    is_direct: bool,
    in_flight: Arc<InFlight>,
}

impl Unmounter {
    /// Unmounts. If programs still use the file system, its name disappears at once, and it ends
    /// when the last of them closes it. Programs that wait for a source that hangs get an error
    /// after a short time, because the connection is ended.
    ///
    /// # Errors
    /// The system's error; a file system that is not mounted any more is no error.
    pub fn unmount(&self) -> io::Result<()> {
        let MountedAt { path, is_direct, in_flight } = &*self.0;
        if !is_direct {
            return fusermount::unmount(path);
        }
        match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => {
                if hangs(in_flight) {
                    log::warn!("the source does not answer: programs that wait for it are let go");
                    // The connection ends; the mount itself may still be in use.
                    let flags = UnmountFlags::FORCE | UnmountFlags::NOFOLLOW;
                    let _ = rustix::mount::unmount(path, flags);
                }
                let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                match rustix::mount::unmount(path, flags) {
                    Err(Errno::INVAL | Errno::NOENT) => Ok(()),
                    other => other.map_err(io::Error::from),
                }
            }
            // Another process has unmounted it already.
            Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            other => other.map_err(io::Error::from),
        }
    }
}

/// Whether a request hangs in the source; waits until that is certain.
fn hangs(in_flight: &InFlight) -> bool {
    let waits_for =
        |time| Instant::now().checked_sub(time).is_some_and(|before| in_flight.waits_since(before));
    let (mut looks, mut quiet) = (0, 0);
    while looks < LOOKS_MAX && quiet < QUIET_LOOKS {
        if waits_for(PATIENCE) {
            return true;
        }
        std::thread::sleep(LOOK);
        looks += 1;
        quiet = if waits_for(LOOK) { 0 } else { quiet + 1 };
    }
    false
}

/// Mounts. Returns the connection, on which the kernel waits for the answer to its first request.
pub(super) fn attach(
    options: &MountOptions,
    source: &Path,
    permissions: Permissions,
    in_flight: Arc<InFlight>,
) -> Result<(OwnedFd, Unmounter), MountError> {
    // Its exact bytes: other programs find the source by them.
    let name = options.name.as_deref().unwrap_or(source.as_os_str());
    let path = options
        .mount_point
        .canonicalize()
        .map_err(|error| MountError::mount_point(&options.mount_point, error))?;
    let is_direct = rustix::process::geteuid().is_root();
    let connection = if is_direct {
        let connection = device::open()
            .map_err(|errno| MountError::Fuse { error: errno.into(), hint: hint(errno) })?;
        mount(&connection, &path, (options, permissions), name)?;
        connection
    } else {
        fusermount::mount(&path, (options, permissions), name)
            .map_err(|error| explain(&path, error))?
    };
    Ok((connection, Unmounter(Arc::new(MountedAt { path, is_direct, in_flight }))))
}

fn mount(
    device: &OwnedFd,
    path: &Path,
    (options, permissions): (&MountOptions, Permissions),
    name: &OsStr,
) -> Result<(), MountError> {
    let fail = |errno: Errno| MountError::mount_point(path, errno.into());
    let mode = rustix::fs::stat(path).map_err(fail)?.st_mode;
    if !rustix::fs::FileType::from_raw_mode(mode).is_dir() {
        return Err(fail(Errno::NOTDIR));
    }
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_raw_fd(),
        mode,
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if !permissions.are_of_source() {
        data.push_str(",default_permissions");
    }
    if options.allow_other {
        data.push_str(",allow_other");
    }
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, options.read_only);
    flags.set(MountFlags::NODEV, !options.dev);
    flags.set(MountFlags::NOSUID, !options.suid);
    flags.set(MountFlags::NOEXEC, !options.exec);
    // For the table of mounts only: the kernel leaves access times of a FUSE mount to the daemon.
    flags.set(MountFlags::NOATIME, options.no_atime);
    flags.set(MountFlags::NODIRATIME, options.no_diratime);
    let data = CString::new(data).expect("numbers and words have no NUL byte");
    rustix::mount::mount(name, path, "fuse.ogive", flags, data.as_c_str()).map_err(fail)
}

/// The device number of the file system mounted there, without a request to it.
pub(super) fn device_at(mount_point: &Path) -> Option<(u32, u32)> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let statx = rustix::fs::statx(CWD, mount_point, flags, StatxFlags::TYPE).ok()?;
    Some((statx.stx_dev_major, statx.stx_dev_minor))
}

/// Explains the errors of `fusermount3` to a user.
fn explain(mount_point: &Path, error: io::Error) -> MountError {
    // An error of the program itself; an error of the system means that it could not be run.
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        let hint = "add the line user_allow_other to /etc/fuse.conf, or leave out --allow-other";
        return MountError::Fuse { error, hint };
    }
    match error.kind() {
        io::ErrorKind::NotFound if !Path::new(device::PATH).exists() => {
            MountError::Fuse { error, hint: hint(Errno::NOENT) }
        }
        io::ErrorKind::NotFound if mount_point.is_dir() => MountError::Fuse {
            error,
            hint: "install fusermount3 (package fuse3), which lets users mount",
        },
        _ => MountError::mount_point(mount_point, error),
    }
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => {
            "there is no /dev/fuse: load the module with `modprobe fuse`, or give the container \
             the device"
        }
        _ => "the device /dev/fuse cannot be opened: check its permissions",
    }
}
