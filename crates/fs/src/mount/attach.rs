//! Connecting to the kernel, and letting go of it.
//!
//! Root mounts with the system call, so that the table of mounts shows `fuse.ogive` and not any
//! FUSE file system; everybody else goes through `fusermount3`, as the protocol's library does it.

use super::{MountError, MountOptions};
use crate::session::Session;
use fuser::{Config, MountOption, SessionACL, SessionUnmounter};
use ogive_origin::Origin;
use parking_lot::Mutex;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DEVICE: &str = "/dev/fuse";

/// Ends a mount; any number of threads may hold one.
#[derive(Clone)]
pub struct Unmounter(Arc<Way>);

enum Way {
    /// By the system call.
    Direct(PathBuf),
    /// As the library mounted it.
    Library(Mutex<SessionUnmounter>),
}

impl Unmounter {
    /// Unmounts. If programs still use the file system it disappears from sight at once and goes
    /// when the last of them lets go.
    ///
    /// # Errors
    /// What the system says; that it is not mounted any more is no error.
    pub fn unmount(&self) -> io::Result<()> {
        match &*self.0 {
            Way::Direct(path) => {
                match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
                    Err(Errno::BUSY) => {
                        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                        rustix::mount::unmount(path, flags)?;
                    }
                    // Somebody else was quicker.
                    Err(Errno::INVAL | Errno::NOENT) => {}
                    other => other?,
                }
                Ok(())
            }
            Way::Library(unmounter) => unmounter.lock().unmount(),
        }
    }
}

/// Whose requests are answered.
pub(super) fn acl(options: &MountOptions) -> SessionACL {
    if options.allow_other { SessionACL::All } else { SessionACL::Owner }
}

/// Mounts and answers the kernel's first request.
pub(super) fn attach<O: Origin>(
    session: Session<O>,
    options: &MountOptions,
    source: &Path,
    threads: usize,
) -> Result<(fuser::Session<Session<O>>, Unmounter), MountError> {
    let name = match &options.name {
        Some(name) => name.clone(),
        None => source.to_string_lossy().into_owned(),
    };
    let mut config = Config::default();
    config.acl = acl(options);
    config.n_threads = Some(threads);
    config.clone_fd = true;
    if rustix::process::geteuid().is_root() {
        return attach_directly(session, options, &name, config);
    }
    config.mount_options = vec![
        MountOption::FSName(name),
        MountOption::Subtype("ogive".into()),
        MountOption::DefaultPermissions,
    ];
    if options.read_only {
        config.mount_options.push(MountOption::RO);
    }
    if !options.exec {
        config.mount_options.push(MountOption::NoExec);
    }
    // Anything else is root's: fusermount3 would refuse it.
    let mut session = fuser::Session::new(session, &options.mount_point, &config)
        .map_err(|error| explain(&options.mount_point, error))?;
    let unmounter = Way::Library(Mutex::new(session.unmount_callable()));
    Ok((session, Unmounter(Arc::new(unmounter))))
}

fn attach_directly<O: Origin>(
    session: Session<O>,
    options: &MountOptions,
    name: &str,
    config: Config,
) -> Result<(fuser::Session<Session<O>>, Unmounter), MountError> {
    let path = options
        .mount_point
        .canonicalize()
        .map_err(|error| MountError::mount_point(&options.mount_point, error))?;
    let device = rustix::fs::openat(CWD, DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| MountError::Fuse { error: errno.into(), hint: hint(errno) })?;
    mount(&device, &path, options, name)?;
    let unmounter = Unmounter(Arc::new(Way::Direct(path)));
    match fuser::Session::from_fd(session, device, config.acl, config) {
        Ok(session) => Ok((session, unmounter)),
        Err(error) => {
            if let Err(error) = unmounter.unmount() {
                log::warn!("cannot undo the mount: {error}");
            }
            Err(MountError::session(error))
        }
    }
}

fn mount(
    device: &OwnedFd,
    path: &Path,
    options: &MountOptions,
    name: &str,
) -> Result<(), MountError> {
    let fail = |errno: Errno| MountError::mount_point(path, errno.into());
    let mode = rustix::fs::stat(path).map_err(fail)?.st_mode;
    if !rustix::fs::FileType::from_raw_mode(mode).is_dir() {
        return Err(fail(Errno::NOTDIR));
    }
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        mode,
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if options.allow_other {
        data.push_str(",allow_other");
    }
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, options.read_only);
    flags.set(MountFlags::NODEV, !options.dev);
    flags.set(MountFlags::NOSUID, !options.suid);
    flags.set(MountFlags::NOEXEC, !options.exec);
    let data = CString::new(data).expect("numbers and words have no NUL byte");
    rustix::mount::mount(name, path, "fuse.ogive", flags, data.as_c_str()).map_err(fail)
}

/// What the library's errors mean to a user.
fn explain(mount_point: &Path, error: io::Error) -> MountError {
    let text = error.to_string();
    if text.contains("user_allow_other") {
        let hint = "add the line user_allow_other to /etc/fuse.conf, or leave out --allow-other";
        return MountError::Fuse { error, hint };
    }
    match error.kind() {
        io::ErrorKind::NotFound if !Path::new(DEVICE).exists() => {
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
