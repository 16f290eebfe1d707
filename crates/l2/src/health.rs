//! Whether a device is worth asking.
//!
//! Errors and reads that take too long are counted over a minute. Too many, and the device is
//! bypassed: nothing is read from it or offered to it for a while, twice as long each time. Then a
//! few are tried again; success makes everything as before.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Failures within [`WINDOW`] that make a device bypassed.
const FAILURES_MAX: u32 = 8;
const WINDOW: Duration = Duration::from_secs(60);
/// Longest time without a try.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Health of a device.
#[derive(Debug)]
pub(crate) struct Health {
    /// A fast answer for the common case.
    bypassed: AtomicBool,
    /// A leaf lock, held for a few comparisons.
    state: Mutex<State>,
    /// The first pause after too many failures.
    pause_first: Duration,
}

#[derive(Debug)]
struct State {
    failures: u32,
    window_start: Instant,
    until: Instant,
    pause: Duration,
}

impl Health {
    pub(crate) fn new(pause_first: Duration) -> Self {
        let now = Instant::now();
        let state = State { failures: 0, window_start: now, until: now, pause: pause_first };
        Self { bypassed: AtomicBool::new(false), state: Mutex::new(state), pause_first }
    }

    /// Whether the device is to be left alone now. When the pause is over it is not, and one
    /// failure more brings the next.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypassed.load(Ordering::Relaxed) && Instant::now() < self.state.lock().until
    }

    /// Something failed; whether the device is bypassed because of that.
    pub(crate) fn failed(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state.lock();
        let on_trial = self.bypassed.load(Ordering::Relaxed);
        if on_trial && now < state.until {
            return false;
        }
        if now.duration_since(state.window_start) > WINDOW {
            (state.window_start, state.failures) = (now, 0);
        }
        state.failures += 1;
        if !on_trial && state.failures < FAILURES_MAX {
            return false;
        }
        if on_trial {
            state.pause = (state.pause * 2).min(PAUSE_MAX);
        }
        state.until = now + state.pause;
        state.failures = 0;
        self.bypassed.store(true, Ordering::Relaxed);
        true
    }

    /// Something went well.
    pub(crate) fn succeeded(&self) {
        if self.bypassed.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            if Instant::now() >= state.until {
                self.bypassed.store(false, Ordering::Relaxed);
                (state.failures, state.pause) = (0, self.pause_first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_bypass_and_one_success_later_ends_it() {
        let health = Health::new(Duration::ZERO);
        for _ in 1..FAILURES_MAX {
            assert!(!health.failed() && !health.is_bypassed());
        }
        assert!(health.failed(), "now it is bypassed");
        // Without a pause it is tried at once, and a failure brings the next pause.
        assert!(!health.is_bypassed() && health.failed());
        health.succeeded();
        assert!(!health.is_bypassed() && !health.failed());

        let health = Health::new(Duration::from_secs(3600));
        for _ in 0..FAILURES_MAX {
            let _ = health.failed();
        }
        assert!(health.is_bypassed());
        health.succeeded();
        assert!(health.is_bypassed(), "a late success of a read begun before proves nothing");
    }
}
