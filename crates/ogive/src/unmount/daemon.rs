//! The process behind a mount, and waiting for its end.
//!
//! The process is found by the number of its FUSE connection, which newer kernels print for every
//! open /dev/fuse (`fuse_connection:` in /proc/PID/fdinfo). This asks nothing of the mount, which
//! may not answer. On older kernels the control directory of the mount has the process number. A
//! descriptor (pidfd_open(2)), taken before the unmount, holds the process, so a new process with
//! the same number is never mistaken for it. Waiting is one poll(2) on it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

/// A process that serves a mount.
#[derive(Debug)]
pub(crate) struct Daemon {
    pid: u32,
    handle: OwnedFd,
}

impl Daemon {
    /// The process that serves the mount, if it can be found.
    pub(crate) fn find(mount_point: &Path, connection: u32) -> Option<Self> {
        let control_file = mount_point.join(".ogive/mount");
        let pid = pid_of_connection(Path::new("/proc"), connection)
            .or_else(|| fs::read(control_file).ok().and_then(|text| pid_in(&text)))?;
        let handle =
            rustix::process::pidfd_open(Pid::from_raw(pid.try_into().ok()?)?, PidfdFlags::empty())
                .ok()?;
        // In another process namespace the number may belong to another process.
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim_end() == "ogive").then_some(Self { pid, handle })
    }

    /// The process number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the process has ended, at most this long; says whether it has.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<bool> {
        // A time beyond what the clock can count is for ever.
        let end = Instant::now().checked_add(at_most);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
            match rustix::event::poll(&mut handles, left.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    return Err(error).context(format!("cannot wait for process {}", self.pid));
                }
            }
        }
    }
}

/// The field `pid` of the control file.
fn pid_in(json: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    value.get("pid")?.as_u64()?.try_into().ok()
}

/// The process called ogive that has this FUSE connection open.
pub(crate) fn pid_of_connection(proc: &Path, connection: u32) -> Option<u32> {
    fs::read_dir(proc).ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let process = entry.path();
        if fs::read_to_string(process.join("comm")).ok()?.trim_end() != "ogive" {
            return None;
        }
        let served = fs::read_dir(process.join("fdinfo")).ok()?.flatten().any(|file| {
            fs::read_to_string(file.path())
                .is_ok_and(|text| connection_in(&text) == Some(connection))
        });
        served.then_some(pid)
    })
}

fn connection_in(fdinfo: &str) -> Option<u32> {
    fdinfo.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_number_is_read_from_the_control_file() {
        assert_eq!(pid_in(br#"{"source": "/a", "pid": 4711}"#), Some(4711));
        for text in [&b""[..], b"{}", b"[1]", br#"{"pid": -1}"#, br#"{"pid": "x"}"#, b"\xff"] {
            assert_eq!(pid_in(text), None);
        }
    }

    #[test]
    fn a_connection_is_found_among_the_files_of_processes_called_ogive() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, name, connection) in [(7, "sshfs", 52), (8, "ogive", 51), (9, "ogive", 52)] {
            let dir = proc.path().join(format!("{pid}/fdinfo"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("0"), "pos:\t0\nflags:\t02\n").unwrap();
            fs::write(
                dir.join("3"),
                format!("pos:\t0\nflags:\t02\nfuse_connection:\t{connection}\n"),
            )
            .unwrap();
            fs::write(proc.path().join(format!("{pid}/comm")), format!("{name}\n")).unwrap();
        }
        assert_eq!(pid_of_connection(proc.path(), 52), Some(9));
        assert_eq!(pid_of_connection(proc.path(), 53), None);
    }

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let daemon = Daemon { pid: child.id(), handle };
        assert!(!daemon.wait(Duration::ZERO).unwrap());
        drop(child.stdin.take());
        assert!(daemon.wait(Duration::MAX).unwrap());
        child.wait().unwrap();
    }
}
