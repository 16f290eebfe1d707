//! The kernel's counters of a thread or process since its start: one line of `/proc/PID/stat`.

use super::Source;

/// One line of `/proc/PID/stat`, of a thread or of a whole process.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name at the time of reading; it may have changed.
    pub name: String,
    /// Number of its process, if the line is of a thread.
    pub process: Option<u64>,
    /// Number of the thread, or of the process.
    pub id: u64,
    /// Number of its parent.
    pub parent: u64,
    /// Its start, in ticks since boot. Together with `id` it identifies a thread uniquely.
    pub started: u64,
    /// State letter.
    pub state: char,
    /// CPU time used, in seconds.
    pub used_s: f64,
    /// The system part of it, in seconds.
    pub system_s: f64,
    /// CPU time of children that have ended and were waited for, and of their children, in seconds.
    pub children_s: f64,
    /// Time spent waiting for disks, in seconds; `None` if the kernel does not count it.
    pub disk_wait_s: Option<f64>,
    /// Where it was read.
    pub source: Source,
}

impl Task {
    /// The number of its process.
    pub fn process(&self) -> u64 {
        self.process.unwrap_or(self.id)
    }

    /// Whether it is a kernel thread.
    pub fn is_kernel(&self) -> bool {
        self.parent == 2 || self.id == 2
    }
}
