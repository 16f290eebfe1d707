//! File systems mounted below the origin, checked before any request to them.
//!
//! A name may lead to a mount that did not exist when the view was mounted. It may be the view
//! itself, bound into its own source, or another ogive mount that reads from this one. A request to
//! it would wait for this very process. So it is refused with `ELOOP`, like a symbolic link to
//! itself.
//! The kernel knows the mount of an object, and does not ask the file system for it. The call for a
//! handle returns it, and so does `statx` with `AT_STATX_DONT_SYNC`. A new mount is searched in the
//! graph of mounts ([`MountGraph`]), which comes from the kernel alone. The verdict on a mount
//! stays: only a new mount can close a circle, and the next request to that mount judges it.
//!
//! A FUSE mount without `allow_other` is for one user, and the kernel enforces that. This process
//! may be that user, so if it serves other users, they are refused here.

use super::handle::MountId;
use super::identity::{mount_of, this};
use crate::Result;
use crate::mount_graph::MountGraph;
use crate::{impersonation, mount_table};
use parking_lot::RwLock;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::sync::{Arc, OnceLock};

/// `STATX_MNT_ID_UNIQUE` of `linux/stat.h`, since Linux 6.8: no id is given twice.
pub(super) const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
/// Mounts whose verdict is remembered; a further one is judged each time.
const KNOWN_MAX: usize = 1024;

/// A device number as the kernel writes it, major and minor.
pub type Device = (u32, u32);

/// Judges mounts. The locks guard the short lists of known mounts.
#[derive(Debug, Default)]
pub(super) struct Submounts {
    /// The file system that is served from this origin, once it is mounted.
    own: Arc<OnceLock<Device>>,
    /// Other users than this process's own are served.
    pub(super) is_shared: bool,
    known: RwLock<Vec<(u64, Device)>>,
    /// The same by the ids that come with handles.
    passed: RwLock<Vec<MountId>>,
}

impl Submounts {
    /// A cell for the device number of the mount that serves this origin.
    pub(super) fn own(&self) -> Arc<OnceLock<Device>> {
        self.own.clone()
    }

    /// Checks that a name's object in a directory, or the directory itself for an empty name, may
    /// get requests. `id` is that of its mount, if it has a handle.
    ///
    /// # Errors
    /// `ELOOP` if a request would lead back to this process; `EACCES` if the mount is only for
    /// another user; the kernel's error for the name.
    pub(super) fn check(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        id: Option<MountId>,
    ) -> Result<()> {
        let Some(own) = self.own.get() else { return Ok(()) };
        // Another mount may get a number that is not unique.
        let id = id.filter(|id| id.is_unique);
        if id.is_some_and(|id| self.passed.read().contains(&id)) {
            return Ok(());
        }
        if self.judge(directory, name, *own)? == For::All
            && let Some(id) = id
        {
            let mut passed = self.passed.write();
            if passed.len() < KNOWN_MAX && !passed.contains(&id) {
                passed.push(id);
            }
        }
        Ok(())
    }

    fn judge(&self, directory: BorrowedFd<'_>, name: &OsStr, own: Device) -> Result<For> {
        let flags = this(name) | AtFlags::STATX_DONT_SYNC;
        let mask = MNT_ID_UNIQUE | StatxFlags::MNT_ID;
        let statx = rustix::fs::statx(directory, name, flags, mask)?;
        let device = (statx.stx_dev_major, statx.stx_dev_minor);
        if device == own {
            return Err(Errno::LOOP);
        }
        let met = (statx.stx_mnt_id, device);
        if self.known.read().contains(&met) {
            return Ok(For::All);
        }
        if self.is_shared
            && let Some(user) = only_user((directory, name), &statx)
        {
            let is_it = impersonation::requester_thread()
                .is_none_or(|requester_thread| requester_thread.is(user));
            return if is_it { Ok(For::One) } else { Err(Errno::ACCESS) };
        }
        // Without the table of mounts, only the own mount is known.
        if MountGraph::read().is_ok_and(|graph| graph.leads_to(device, own)) {
            return Err(Errno::LOOP);
        }
        let mut known = self.known.write();
        if known.len() < KNOWN_MAX && !known.contains(&met) {
            known.push(met);
        }
        Ok(For::All)
    }
}

/// The users who may use a mount.
#[derive(PartialEq, Eq)]
enum For {
    All,
    One,
}

fn only_user(place: (BorrowedFd<'_>, &OsStr), statx: &Statx) -> Option<u32> {
    let mounts = mount_table::read().ok()?;
    mount_of(&mounts, statx, place)?.only_user()
}
