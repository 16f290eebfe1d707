//! Changing attributes of an object: one system call for each kind, in an order that loses none of
//! them.

use super::magic_link;
use super::node::PathDescriptor;
use crate::{Changes, Result, SetTime, Time};
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Uid};

/// Changes the attributes of an object; `writable` is a descriptor for a change of its size.
pub(super) fn change(
    descriptor: BorrowedFd<'_>,
    writable: Option<&PathDescriptor>,
    changes: &Changes,
) -> Result<()> {
    let path = magic_link(descriptor);
    // Owner before permissions: a change of owner clears set-id bits.
    if changes.user.is_some() || changes.group.is_some() {
        rustix::fs::chownat(
            descriptor,
            c"",
            changes.user.map(Uid::from_raw),
            changes.group.map(Gid::from_raw),
            AtFlags::EMPTY_PATH,
        )?;
    }
    if let Some(permissions) = changes.permissions {
        rustix::fs::chmod(path.as_c_str(), Mode::from_raw_mode(permissions & 0o7777))?;
    }
    if let (Some(size_bytes), Some(writable)) = (changes.size_bytes, writable) {
        rustix::fs::ftruncate(writable.as_fd(), size_bytes)?;
    }
    if changes.accessed.is_some() || changes.modified.is_some() {
        let times = rustix::fs::Timestamps {
            last_access: timespec(changes.accessed),
            last_modification: timespec(changes.modified),
        };
        rustix::fs::utimensat(CWD, path.as_c_str(), &times, AtFlags::empty())?;
    }
    Ok(())
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        Some(SetTime::To(Time { seconds, nanoseconds })) => {
            Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) }
        }
    }
}
