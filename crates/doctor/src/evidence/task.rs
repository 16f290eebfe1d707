//! A thread or process as the kernel counts it since its start: one line of `/proc/PID/stat`.

use super::Source;

/// One line of `/proc/PID/stat`, of a thread or of a whole process.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name when it was read; it may have had another before.
    pub name: String,
    /// Number of its process where the line is of a thread.
    pub process: Option<u64>,
    /// Number of the thread, or of the process.
    pub id: u64,
    /// Number of its parent.
    pub parent: u64,
    /// When it began, in ticks since boot. With `id` it names a thread for good.
    pub started: u64,
    /// State letter.
    pub state: char,
    /// CPU time that it has used, seconds.
    pub used_s: f64,
    /// Its part in the kernel.
    pub system_s: f64,
    /// CPU time of its children that have ended and were waited for, with theirs, seconds.
    pub children_s: f64,
    /// Time that it has waited for disks, seconds; `None` where the kernel does not count it.
    pub disk_wait_s: Option<f64>,
    /// Where it was read.
    pub source: Source,
}

impl Task {
    /// The number of its process.
    pub fn process(&self) -> u64 {
        self.process.unwrap_or(self.id)
    }

    /// Whether it is the kernel's.
    pub fn is_kernel(&self) -> bool {
        self.parent == 2 || self.id == 2
    }
}
