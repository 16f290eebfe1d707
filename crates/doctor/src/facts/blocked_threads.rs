//! The number of threads in uninterruptible sleep. Each adds one to the load average and uses no
//! CPU.
//!
//! A list of threads has their states. `vmstat` (column b) and /proc/stat (`procs_blocked`) count
//! threads that wait for a disk. A list may be an excerpt, so the largest number counts.

use super::{Facts, Known, absent};

impl Facts {
    /// Threads in uninterruptible sleep.
    pub fn waiting(&self) -> Known<f64> {
        let shown = [
            self.thread_in_state(".", "D"),
            self.gauge("vmstat.b"),
            self.gauge("stat.procs_blocked"),
        ];
        let most = shown.into_iter().flatten().reduce(f64::max);
        most.map_or_else(|| absent("states of threads (ps -eLo stat,comm)"), Ok)
    }
}
