//! A file system that takes its time: a second mount of ogive whose process is stopped most of the
//! time.
//!
//! Requests wait for as long as it is stopped, as they would for a network that hangs. If this
//! program is killed, the kernel wakes the other up and tells it to hang up (a stopped process
//! group that loses its parent gets SIGHUP and SIGCONT), which unmounts it.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::Stop;
use super::sickness::Sickness;
use crate::fuse::{self, Unmount};

/// How long it is stopped, again and again.
const STOPPED: Duration = Duration::from_millis(199);
/// How long it runs in between.
const RUNNING: Duration = Duration::from_millis(1);
/// How long it may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The mount that can be slowed down.
pub(super) struct SlowMount {
    child: Child,
    mount_point: PathBuf,
}

/// Slows it down for as long as this lives.
pub(super) struct Slowing {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowMount {
    /// Mounts the source, or an empty directory for the second level.
    pub(super) fn start(sickness: Sickness, source: &Path, work: &Path) -> Result<Self> {
        let mount_point = work.join("slow");
        std::fs::create_dir(&mount_point)?;
        let below = match sickness {
            Sickness::SlowL2 => {
                let directory = work.join("device");
                std::fs::create_dir(&directory)?;
                directory
            }
            _ => source.to_owned(),
        };
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .args([
                "mount",
                "--foreground",
                "--direct-io",
                "--arc-max",
                "2M",
                "--prefetch-max",
                "0",
            ])
            .arg("--control-name=")
            .arg(&below)
            .arg(&mount_point)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start the slow mount")?;
        let mut mount = Self { child, mount_point };
        let begun = Instant::now();
        while !mount.is_up() {
            if mount.child.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                mount.end()?;
                bail!("the slow mount did not come up");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(mount)
    }

    fn is_up(&self) -> bool {
        crate::mountinfo::read()
            .is_ok_and(|mounts| mounts.iter().any(|mount| mount.mount_point == self.mount_point))
    }

    /// Where it is.
    pub(super) fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Stops and continues its process until the result is dropped or `stop` is set.
    pub(super) fn slow_down(&self, stop: &Stop) -> Result<Slowing> {
        let pid = self.pid().context("the slow mount has no process")?;
        let ended = Arc::new(AtomicBool::new(false));
        let (stop, end) = (Arc::clone(stop), Arc::clone(&ended));
        let thread = std::thread::Builder::new()
            .name("slow".to_owned())
            .spawn(move || {
                while !end.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                    if kill_process(pid, Signal::STOP).is_err() {
                        return;
                    }
                    std::thread::sleep(STOPPED);
                    // It must not stay stopped, whatever else happens.
                    if kill_process(pid, Signal::CONT).is_err() {
                        return;
                    }
                    std::thread::sleep(RUNNING);
                }
            })
            .context("cannot start a thread")?;
        Ok(Slowing { ended, thread: Some(thread) })
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Unmounts it.
    pub(super) fn end(mut self) -> Result<()> {
        if self.is_up() && fuse::unmount(&self.mount_point, Unmount::Plain).is_err() {
            fuse::unmount(&self.mount_point, Unmount::Detach)
                .context("cannot unmount the slow mount")?;
        }
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                self.child.kill().context("cannot end the slow mount")?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Slowing {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only sleeps and signals; it cannot panic.
            let _ = thread.join();
        }
    }
}
