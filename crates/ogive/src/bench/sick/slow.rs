//! A slow file system: a second mount of ogive whose process is stopped most of the time.
//!
//! Requests wait while it is stopped, as they would for a hanging network.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ogive_fs::MountOptions;
use rustix::process::{Signal, kill_process};

use super::SOURCE;
use super::served::{Part, Served};
use super::sickness::Sickness;

/// Its mount point, and the file of a second level in it.
pub(super) const MOUNT: &str = "slow";
const DEVICE: &str = "device";
/// How long it is stopped in each cycle.
const STOPPED: Duration = Duration::from_millis(199);
/// How long it runs in each cycle.
const RUNNING: Duration = Duration::from_millis(1);

/// The mount that can be slowed down.
pub(super) struct SlowMount {
    served: Served,
    mount_point: PathBuf,
}

/// Slows it down for as long as this lives.
pub(super) struct Slowing {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Its source, or an empty directory for the second level. It caches next to nothing.
pub(super) fn options(sickness: Sickness, work: &Path) -> MountOptions {
    let below = if sickness == Sickness::SlowL2 { DEVICE } else { SOURCE };
    MountOptions {
        source: work.join(below),
        mount_point: work.join(MOUNT),
        direct_io: true,
        arc_max_bytes: Some(2 << 20),
        prefetch_max_bytes: 0,
        control_name: std::ffi::OsString::new(),
        release_memory: crate::allocator::release_memory,
        ..MountOptions::default()
    }
}

impl SlowMount {
    /// Mounts it.
    pub(super) fn start(sickness: Sickness, work: &Path) -> Result<Self> {
        let mount_point = work.join(MOUNT);
        std::fs::create_dir(&mount_point)?;
        if sickness == Sickness::SlowL2 {
            std::fs::create_dir(work.join(DEVICE))?;
        }
        let served = Served::start(Part::Below, sickness, work).context("the slow mount")?;
        Ok(Self { served, mount_point })
    }

    /// Where it is.
    pub(super) fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Stops and continues its process until the result is dropped.
    pub(super) fn slow_down(&self) -> Result<Slowing> {
        let pid = self.served.pid().context("the slow mount has no process")?;
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("slow".to_owned())
            .spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    if kill_process(pid, Signal::STOP).is_err() {
                        return;
                    }
                    std::thread::sleep(STOPPED);
                    // It must never stay stopped.
                    if kill_process(pid, Signal::CONT).is_err() {
                        return;
                    }
                    std::thread::sleep(RUNNING);
                }
            })
            .context("cannot start a thread")?;
        Ok(Slowing { ended, thread: Some(thread) })
    }

    /// Unmounts it.
    pub(super) fn end(self) -> Result<()> {
        self.served.end().context("the slow mount")
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
