//! Advisory locks, tried from a second process, and the calls without a safe wrapper.
//!
//! Only another process can see whether a lock conflicts, because a process never conflicts with
//! its own `fcntl` locks. So the suite holds a lock and starts its own binary as `lock-probe`. The
//! exit code of that process is the answer: [`PROBE_FREE`], [`PROBE_TAKEN`], or an errno.
//!
//! One process-wide lock (`PROBING`) is held from taking a lock to releasing it. A starting process
//! has copies of all descriptors until it runs its program, and a copy keeps a `flock` alive.
//! Without `PROBING`, a probe of one thread would hold another thread's lock.
#![allow(unsafe_code, reason = "byte-range locks and truncate(2) have no safe wrapper")]

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::operation::{Answer, LockKind, Outcome};

/// Exit code of the probe when another process holds the lock.
pub const PROBE_FREE: i32 = 100;
/// Exit code of the probe when another process holds the lock.
pub const PROBE_TAKEN: i32 = 101;

/// Held while a lock is held or a probe is started; see the module.
static PROBING: Mutex<()> = Mutex::new(());

/// The byte range that range locks cover: inside the first record but not at its start.
const RANGE_START: i64 = 100;
const RANGE_LENGTH: i64 = 50;

/// `truncate(2)`: unlike opening and `ftruncate` it needs no descriptor and reports its own
/// errors.
///
/// # Errors
/// The errno of the call.
pub(crate) fn truncate_by_path(path: &Path, length: i64) -> Result<(), Errno> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    let result = unsafe { libc::truncate(name.as_ptr(), length) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    crate::mapping::errno_of(&std::io::Error::last_os_error())
}

/// Takes a lock without waiting.
///
/// # Errors
/// `EAGAIN` or `EACCES` when another process holds it, otherwise the errno of the call.
pub fn take(file: &OwnedFd, kind: LockKind, exclusive: bool) -> Result<(), Errno> {
    let command = match kind {
        LockKind::Flock => {
            let operation = if exclusive {
                FlockOperation::NonBlockingLockExclusive
            } else {
                FlockOperation::NonBlockingLockShared
            };
            return rustix::fs::flock(file, operation);
        }
        LockKind::Process => libc::F_SETLK,
        LockKind::OpenFile => libc::F_OFD_SETLK,
    };
    let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
    let range = libc::flock {
        l_type: i16::try_from(kind).map_err(|_| Errno::INVAL)?,
        l_whence: 0,
        l_start: RANGE_START,
        l_len: RANGE_LENGTH,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open and `range` is a valid `struct flock` for the whole call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const range) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// The probing process: it tries the lock and returns its exit code.
#[must_use]
pub fn probe(path: &Path, kind: LockKind, exclusive: bool) -> i32 {
    match open(path).and_then(|file| take(&file, kind, exclusive)) {
        Ok(()) => PROBE_FREE,
        Err(Errno::AGAIN | Errno::ACCESS) => PROBE_TAKEN,
        Err(errno) => errno.raw_os_error(),
    }
}

/// Holds one lock and lets another process try another. The answer is the probe's exit code.
pub(crate) fn conflict(
    prober: &Path,
    path: &Path,
    held: LockKind,
    tried: LockKind,
    exclusive: bool,
) -> Outcome {
    let _alone = PROBING.lock().unwrap_or_else(PoisonError::into_inner);
    let file = open(path)?;
    take(&file, held, true)?;
    let tried_name = serde_json::to_string(&tried).map_err(|_| Errno::INVAL)?;
    let status = Command::new(prober)
        .arg("lock-probe")
        .arg(path)
        .arg(tried_name.trim_matches('"'))
        .args(exclusive.then_some("--exclusive"))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| crate::mapping::errno_of(&error))?;
    Ok(Answer::Texts(vec![format!("probe answered {:?}", status.code())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_two_descriptors_conflict() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"x").unwrap();
        for kind in [LockKind::Flock, LockKind::OpenFile] {
            let file = open(&path).unwrap();
            assert_eq!(probe(&path, kind, true), PROBE_FREE);
            take(&file, kind, false).unwrap();
            assert_eq!(probe(&path, kind, false), PROBE_FREE);
            assert_eq!(probe(&path, kind, true), PROBE_TAKEN);
        }
        let missing = directory.path().join("missing");
        assert_eq!(probe(&missing, LockKind::Flock, true), libc::ENOENT);
    }

    #[test]
    fn truncating_by_path_reports_its_errno() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(truncate_by_path(directory.path(), 0), Err(Errno::ISDIR));
    }
}
