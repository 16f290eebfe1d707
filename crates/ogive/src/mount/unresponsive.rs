//! Questions to a mount whose process may not answer.
//!
//! Each question runs on a thread of its own. If no answer comes, that thread is left behind, and
//! the process is examined instead. A stopped process (SIGSTOP, a debugger, a frozen group) gets
//! one second, because it cannot answer. A running process may only be slow, and gets longer.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::exit::{self, Refusal};
use crate::mountinfo;
use crate::unmount::daemon;

/// How long to wait for a stopped process.
const STOPPED_AFTER: Duration = Duration::from_secs(1);
/// How much longer to wait for a running one.
const SILENT_AFTER: Duration = Duration::from_secs(9);

/// A mount that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unresponsive {
    /// Its process, where it can be found.
    pid: Option<u32>,
    is_stopped: bool,
}

impl fmt::Display for Unresponsive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) if self.is_stopped => write!(f, "its process {pid} is stopped"),
            Some(pid) => write!(f, "its process {pid} does not answer"),
            None => f.write_str("its process does not answer"),
        }
    }
}

impl Unresponsive {
    /// The error of an action such as `cannot show statistics of /mnt`.
    pub(crate) fn refusal(&self, cannot: &str) -> Refusal {
        let refusal = Refusal::new(exit::MOUNT_POINT, format!("{cannot}: {self}"));
        match self.pid {
            Some(pid) if self.is_stopped => refusal.hint(format!(
                "continue it with \"kill -CONT {pid}\", or end the mount with \"kill -KILL {pid}\""
            )),
            Some(pid) => refusal.hint(format!(
                "\"cat /proc/{pid}/task/*/stack\" as root shows where it waits; \"kill -KILL {pid}\" \
                 ends the mount"
            )),
            None => refusal.hint("\"ps -C ogive\" lists the processes of mounts"),
        }
    }
}

/// The answer to a question about a mount.
pub(crate) fn ask<T: Send + 'static>(
    mount_point: &Path,
    question: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unresponsive> {
    let (send, receive) = mpsc::sync_channel(1);
    let asked = thread::Builder::new().name("ogive-asks".into()).spawn(move || {
        // A late answer is dropped.
        let _ = send.send(question());
    });
    let unknown = Unresponsive { pid: None, is_stopped: false };
    if asked.is_err() {
        return Err(unknown);
    }
    if let Ok(answer) = receive.recv_timeout(STOPPED_AFTER) {
        return Ok(answer);
    }
    let pid = process_of(mount_point);
    let silent = Unresponsive { is_stopped: pid.is_some_and(is_stopped), pid };
    if silent.is_stopped {
        return Err(silent);
    }
    receive.recv_timeout(SILENT_AFTER).map_err(|_| silent)
}

/// The process of a mount, which is not asked for it.
fn process_of(mount_point: &Path) -> Option<u32> {
    let mounts = mountinfo::read().ok()?;
    let connection = mountinfo::topmost_at(&mounts, mount_point)?.device.1;
    daemon::pid_of_connection(Path::new("/proc"), connection)
}

/// Whether a process is stopped, by a signal or a debugger.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_process_and_the_next_step() {
        let refusal =
            |pid, is_stopped| Unresponsive { pid, is_stopped }.refusal("cannot x /m").to_string();
        assert_eq!(
            refusal(Some(7), true),
            "cannot x /m: its process 7 is stopped; continue it with \"kill -CONT 7\", or end the \
             mount with \"kill -KILL 7\""
        );
        assert!(refusal(Some(7), false).contains("/proc/7/task/*/stack"));
        assert!(refusal(None, false).contains("ps -C ogive"));
    }

    #[test]
    fn an_answer_is_given_as_it_is() {
        assert_eq!(ask(Path::new("/"), || 7), Ok(7));
    }
}
