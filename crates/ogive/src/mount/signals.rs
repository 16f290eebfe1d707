//! Signals: the first one unmounts, a second one ends the process at once.
//!
//! SIGHUP ends only a mount in the foreground of a terminal, which sends it when the terminal
//! closes. Any other mount reopens its log file, as daemons do for log rotation, and reloads
//! credentials.
//!
//! One thread sleeps in read(2) on the pipe of the signal handlers; it never wakes without a
//! signal. The unmount runs on another thread, so that a second signal works while the unmount
//! hangs.
//!
//! If programs still use the mount, it is detached, so that no new program can enter. The process
//! serves it until the last program has closed its files. Ending at once leaves no dead mount
//! point, but open files fail from then on. No write is lost either way: a write that returned has
//! reached the source.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use log::{error, info, warn};
use ogive_bucket::Renewal;
use ogive_fs::Unmounter;
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::background;
use crate::exit;
use crate::fuse::{self, Unmount};
use crate::mountinfo;
use crate::unmount::users;

/// The signals that end a mount, caught from the creation of this value on.
pub(crate) struct Ending {
    signals: Signals,
}

/// The meaning of SIGHUP.
pub(crate) enum Hangup {
    /// The terminal has gone.
    Ends,
    /// The log file, if there is one, was given another name, or there are other credentials for a
    /// bucket.
    Reopens(Option<PathBuf>, Option<Arc<Renewal>>),
}

/// Which mount to end.
#[derive(Clone)]
pub(crate) struct Target {
    /// Asks the file system's own session to unmount.
    pub(crate) unmounter: Unmounter,
    /// Where it is mounted.
    pub(crate) mount_point: PathBuf,
    /// Its device number, so that nothing mounted over it is taken for it.
    pub(crate) device: Option<(u32, u32)>,
}

impl Ending {
    /// Catches SIGTERM, SIGINT and SIGHUP. To be called before mounting: a signal that killed the
    /// process between mounting and serving would leave a dead mount point.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self { signals: Signals::new([SIGTERM, SIGINT, SIGHUP])? })
    }

    /// Ends the mount on the signals, including those that have come already.
    pub(crate) fn watch(mut self, target: Target, hangup: Hangup) -> io::Result<()> {
        thread::Builder::new().name("ogive-signals".into()).spawn(move || {
            let mut asked = false;
            for signal in self.signals.forever() {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("signal");
                if let (SIGHUP, Hangup::Reopens(log_file, renewal)) = (signal, &hangup) {
                    reopen(log_file.as_deref());
                    renew(renewal.as_ref());
                    continue;
                }
                if asked {
                    warn!("{name} again: ending at once");
                    end_at_once(&target);
                }
                asked = true;
                info!("{name}: unmounting {}", target.mount_point.display());
                let target = target.clone();
                let spawned = thread::Builder::new()
                    .name("ogive-unmount".into())
                    .spawn(move || unmount(&target));
                if let Err(reason) = spawned {
                    error!("cannot unmount {reason}; send the signal again to end at once");
                }
            }
        })?;
        Ok(())
    }
}

/// Reopens the log file by its name: a new file, if the old one was renamed.
fn reopen(log_file: Option<&Path>) {
    let Some(path) = log_file else { return };
    let opened = background::open_log_file(path).map_err(|refusal| refusal.to_string());
    let done = opened.and_then(|file| {
        let redirected = background::redirect_messages(Some(file));
        redirected.map_err(|error| format!("cannot write to {}: {error}", path.display()))
    });
    match done {
        Ok(()) => info!("SIGHUP: reopened the log file"),
        Err(reason) => error!("{reason}; the old log file stays in use"),
    }
}

/// Reloads the credentials of a bucket on a thread of its own. That may take time, and the mount
/// must react to signals meanwhile.
fn renew(renewal: Option<&Arc<Renewal>>) {
    let Some(renewal) = renewal.cloned() else { return };
    let look = move || match renewal.look() {
        Ok(()) => info!("SIGHUP: reloaded the credentials"),
        Err(reason) => {
            warn!("SIGHUP: found no credentials, the old ones stay in use: {reason}");
        }
    };
    if let Err(reason) = thread::Builder::new().name("ogive-renewal".into()).spawn(look) {
        error!("cannot look for credentials: {reason}; send SIGHUP again");
    }
}

fn unmount(target: &Target) {
    let path = target.mount_point.display();
    if is_on_top(target) {
        match fuse::unmount(&target.mount_point, Unmount::Plain) {
            Ok(()) => return,
            Err(reason) if Errno::from_io_error(&reason) == Some(Errno::BUSY) => {
                let users = users::find(Path::new("/proc"), &target.mount_point);
                warn!(
                    "{path} is in use{users}; it is served until they close it; a second signal \
                     ends it at once"
                );
            }
            // The session unmounts in its own way, and reports its own errors.
            Err(_) => {}
        }
    }
    if let Err(reason) = target.unmounter.unmount() {
        error!("cannot unmount {path}: {reason}; send the signal again to end at once");
    }
}

fn end_at_once(target: &Target) -> ! {
    if is_on_top(target)
        && let Err(reason) = fuse::unmount(&target.mount_point, Unmount::Detach)
    {
        error!("{} stays as a dead mount point: {reason}", target.mount_point.display());
    }
    std::process::exit(i32::from(exit::BUSY));
}

/// Whether an unmount of the path would remove our mount.
fn is_on_top(target: &Target) -> bool {
    let mounts = mountinfo::read().unwrap_or_default();
    mountinfo::topmost_at(&mounts, &target.mount_point)
        .is_some_and(|mount| Some(mount.device) == target.device)
}
