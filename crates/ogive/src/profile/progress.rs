//! A line on standard error that says how far long work is; only where that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Between two lines.
const PAUSE: Duration = Duration::from_millis(200);

/// How far work is.
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
    /// Work on so many bytes, if that is known.
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

    /// Work that takes so long.
    pub(crate) fn time(what: &str, duration: Duration) -> Self {
        Self { duration, ..Self::bytes(what, None) }
    }

    /// So many more bytes are done.
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

    /// Work has gone on for so long, and so many samples were taken.
    pub(crate) fn at(&mut self, elapsed: Duration, samples: u64) {
        let left = self.duration.saturating_sub(elapsed).as_secs_f64().ceil();
        let line = format!("{}: {samples} samples, {left:.0} s left, Ctrl-C ends it", self.what);
        self.show(&line);
    }

    /// Work has gone on for so long.
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
        // A terminal that has gone is no reason to stop.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
    }

    /// The line goes away.
    pub(crate) fn end(&mut self) {
        if self.any {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
