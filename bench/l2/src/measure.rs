//! Medians, their spread, and how they are printed.

use std::time::Duration;

/// Values of several rounds.
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// One round more.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The one in the middle.
    pub(crate) fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Prints median and spread.
    pub(crate) fn show(&self, what: &str, unit: &str) {
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        println!(
            "{what:<52} {:>10.2} {unit:<6} ({:.2} to {:.2})",
            self.median(),
            end(self.0.first()),
            end(self.0.last())
        );
    }
}

/// Prints one figure.
pub(crate) fn show(what: &str, value: f64, unit: &str) {
    println!("{what:<52} {value:>10.2} {unit}");
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ThreadCPUTime)
}

/// CPU time of this process, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ProcessCPUTime)
}

fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits until something holds, a minute at most.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), crate::Failure> {
    for _ in 0..60_000 {
        if holds() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(format!("{what} did not come about in a minute").into())
}
