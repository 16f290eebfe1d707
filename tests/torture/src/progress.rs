//! One line of progress on a terminal; nothing if the output is not a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is updated.
const INTERVAL: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    started: Instant,
    next: Instant,
}

impl Default for Progress {
    fn default() -> Progress {
        let now = Instant::now();
        Progress { shown: std::io::stderr().is_terminal(), started: now, next: now }
    }
}

impl Progress {
    /// Shows `done` of `total`, unless the last update was a moment ago.
    pub fn show(&mut self, what: &str, done: u64, total: u64) {
        if !self.shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + INTERVAL;
        let seconds = self.started.elapsed().as_secs();
        // The run goes on without its terminal.
        let _ = write!(std::io::stderr(), "\r{what}: {done} of {total}, {seconds} s ");
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
