//! Whether a device is worth asking.
//!
//! Errors and reads that take too long are counted over a minute. Too many, and the device is
//! bypassed: nothing is read from it or offered to it for a while, twice as long each time. Then a
//! few are tried again; success makes everything as before. The log reports a change once a minute
//! at most. The caller gives the time.

use ogive_text::{Change, Recurring};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Failures within [`WINDOW`] that make a device bypassed.
const FAILURES_MAX: u32 = 8;
const WINDOW: Duration = Duration::from_secs(60);
/// Longest time without a try.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// A change in a device's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bypass {
    /// How long it is left alone.
    pub(crate) pause: Duration,
    /// Whether to report that in the log.
    pub(crate) is_news: bool,
}

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
    said: Recurring,
}

impl Health {
    pub(crate) fn new(pause_first: Duration, now: Instant) -> Self {
        let said = Recurring::new(WINDOW, Duration::ZERO);
        let state = State { failures: 0, window_start: now, until: now, pause: pause_first, said };
        Self { bypassed: AtomicBool::new(false), state: Mutex::new(state), pause_first }
    }

    /// Whether the device is bypassed now. When the pause is over it is not, and one failure more
    /// brings the next. The time is asked for only where it matters.
    pub(crate) fn is_bypassed(&self, now: impl FnOnce() -> Instant) -> bool {
        self.bypassed.load(Ordering::Relaxed) && now() < self.state.lock().until
    }

    /// Notes a failure. Returns the bypass, if the device is bypassed because of it.
    pub(crate) fn failed(&self, now: Instant) -> Option<Bypass> {
        let mut state = self.state.lock();
        let on_trial = self.bypassed.load(Ordering::Relaxed);
        if on_trial && now < state.until {
            return None;
        }
        if now.duration_since(state.window_start) > WINDOW {
            (state.window_start, state.failures) = (now, 0);
        }
        state.failures += 1;
        if !on_trial && state.failures < FAILURES_MAX {
            return None;
        }
        if on_trial {
            state.pause = (state.pause * 2).min(PAUSE_MAX);
        }
        state.until = now + state.pause;
        state.failures = 0;
        self.bypassed.store(true, Ordering::Relaxed);
        let is_news = state.said.say(true, now) == Some(Change::Came);
        Some(Bypass { pause: state.pause, is_news })
    }

    /// Something went well. How long the device was bypassed, if it is used again from now on and
    /// the log has to report that.
    pub(crate) fn succeeded(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        if !self.bypassed.load(Ordering::Relaxed) {
            return None;
        }
        let now = now();
        let mut state = self.state.lock();
        if now < state.until {
            return None;
        }
        self.bypassed.store(false, Ordering::Relaxed);
        (state.failures, state.pause) = (0, self.pause_first);
        match state.said.say(false, now) {
            Some(Change::Went(after)) => Some(after),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_bypass_and_one_success_later_ends_it() {
        let now = Instant::now();
        let health = Health::new(Duration::ZERO, now);
        for _ in 1..FAILURES_MAX {
            assert!(health.failed(now).is_none() && !health.is_bypassed(|| now));
        }
        assert!(health.failed(now).is_some(), "now it is bypassed");
        // Without a pause it is tried at once, and a failure brings the next pause.
        assert!(!health.is_bypassed(|| now) && health.failed(now).is_some());
        let _ = health.succeeded(|| now);
        assert!(!health.is_bypassed(|| now) && health.failed(now).is_none());

        let health = Health::new(Duration::from_secs(3600), now);
        for _ in 0..FAILURES_MAX {
            let _ = health.failed(now);
        }
        assert!(health.is_bypassed(|| now));
        assert_eq!(health.succeeded(|| now), None);
        assert!(health.is_bypassed(|| now), "a late success of a read begun before proves nothing");
    }

    #[test]
    fn failures_count_for_a_minute() {
        let start = Instant::now();
        let health = Health::new(Duration::ZERO, start);
        for _ in 1..FAILURES_MAX {
            assert_eq!(health.failed(start + WINDOW), None);
        }
        let later = start + WINDOW + Duration::from_nanos(1);
        assert_eq!(health.failed(later), None, "those before are forgotten");
        for _ in 2..FAILURES_MAX {
            assert_eq!(health.failed(later + WINDOW), None);
        }
        assert!(health.failed(later + WINDOW).is_some());
    }

    #[test]
    fn each_pause_is_twice_the_last_up_to_ten_minutes() {
        let mut now = Instant::now();
        let health = Health::new(Duration::from_secs(30), now);
        for _ in 1..FAILURES_MAX {
            let _ = health.failed(now);
        }
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            let pause = Duration::from_secs(seconds);
            assert_eq!(health.failed(now).map(|bypass| bypass.pause), Some(pause));
            let almost = now + pause - Duration::from_nanos(1);
            assert!(health.is_bypassed(|| almost) && health.failed(almost).is_none());
            now += pause;
            assert!(!health.is_bypassed(|| now), "after {seconds} s it is tried");
        }
        let _ = health.succeeded(|| now);
        for _ in 1..FAILURES_MAX {
            assert_eq!(health.failed(now), None, "all is as before");
        }
        assert_eq!(health.failed(now).map(|bypass| bypass.pause), Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_device_that_fails_and_works_in_turn_is_reported_once_a_minute() {
        let (start, mut bypasses, mut lines) = (Instant::now(), 0, Vec::new());
        let health = Health::new(Duration::ZERO, start);
        for second in 0..120 {
            let now = start + Duration::from_secs(second);
            for _ in 0..FAILURES_MAX {
                let Some(bypass) = health.failed(now) else { continue };
                bypasses += 1;
                lines.extend(bypass.is_news.then_some((second, "bypassed")));
            }
            lines.extend(health.succeeded(|| now).map(|_| (second, "back")));
        }
        assert_eq!(bypasses, 120);
        assert_eq!(lines, [(0, "bypassed"), (0, "back"), (60, "bypassed"), (60, "back")]);
    }
}
