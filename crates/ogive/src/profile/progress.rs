//! Shows the progress of long work in a line on standard error, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The time between two updates.
const PAUSE: Duration = Duration::from_millis(200);

/// The progress of work.
pub(crate) struct Progress {
    what: String,
    size: Option<u64>,
    duration: Duration,
    done: u64,
    shown: Instant,
    visible: bool,
    any: bool,
}

impl Progress {
    /// Work on this many bytes, if the number is known.
    pub(crate) fn bytes(what: &str, size: Option<u64>) -> Self {
        Self {
            what: crate::profile::tables::printable(what),
            size,
            duration: Duration::ZERO,
            done: 0,
            shown: Instant::now(),
            visible: std::io::stderr().is_terminal(),
            any: false,
        }
    }

    /// Work of this duration.
    pub(crate) fn time(what: &str, duration: Duration) -> Self {
        Self { duration, ..Self::bytes(what, None) }
    }

    /// Adds processed bytes.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let mebibytes = self.done >> 20;
        let line = match self.size {
            Some(size) if size > 0 && self.done <= size => {
                format!("{}: {mebibytes} MiB, {}%", self.what, self.done * 100 / size)
            }
            _ => format!("{}: {mebibytes} MiB", self.what),
        };
        self.show(&line);
    }

    /// Updates the elapsed time and the number of samples.
    pub(crate) fn at(&mut self, elapsed: Duration, samples: u64) {
        let left = self.duration.saturating_sub(elapsed).as_secs_f64().ceil();
        let line = format!("{}: {samples} samples, {left:.0} s left, Ctrl-C ends it", self.what);
        self.show(&line);
    }

    /// Updates the elapsed time.
    pub(crate) fn elapsed(&mut self, elapsed: Duration) {
        let left = self.duration.saturating_sub(elapsed).as_secs_f64().ceil();
        let line = format!("{}: {left:.0} s left, Ctrl-C ends it", self.what);
        self.show(&line);
    }

    fn show(&mut self, line: &str) {
        if !self.visible || (self.any && self.shown.elapsed() < PAUSE) {
            return;
        }
        self.any = true;
        self.shown = Instant::now();
        // The work continues if the terminal has gone.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
    }

    /// Removes the line.
    pub(crate) fn end(&mut self) {
        if self.any {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
