//! How far to prefetch for a sequential reader: as far as that raises the rate.
//!
//! A link holds its rate times the latency of a first byte. That alone does not determine the
//! window: while fewer bytes are requested than the link holds, the rate only reflects the
//! requests. So the window is found by trial. It doubles, and doubles again while the rate rises.
//! Otherwise it shrinks again, and the next trial follows some seconds later. It stays between
//! twice and eight times the amount that the link holds.
//!
//! A falling rate is followed slowly, because readers pause. When the store throttles, the window
//! is halved at once.
//!
//! # Locks
//! One, a leaf. It is taken for each piece of a body, of some tens of KiB.

use ogive_origin::ReadAhead;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The initial window of a stream.
const FIRST_BYTES: u64 = 1 << 20;
/// The window of a stream is at most this many times the bytes it has read. While that is less than
/// the link holds, the reader waits for a round trip each time.
const TIMES_READ: u64 = 8;
/// The longest request: several requests at once are faster than a longer one, and a broken
/// connection loses no more than this.
const RUN_BYTES: u64 = 8 << 20;
/// The smallest window: a long stream is read in whole requests, because fewer requests cost less.
const LEAST_BYTES: u64 = 2 * RUN_BYTES;
/// The window before any measurement of the link.
const BEGIN_BYTES: u64 = 2 * LEAST_BYTES;
const MOST_BYTES: u64 = 128 << 20;
/// The shortest interval of a measurement.
const INTERVAL: Duration = Duration::from_millis(50);
/// After this time without bytes, readers have requested none.
const IDLE: Duration = Duration::from_millis(500);
/// How long the shortest latency is valid.
const LATENCY_AGE_MAX: Duration = Duration::from_secs(30);
/// A lower rate lowers the estimate by this fraction of the difference.
const FALL: f64 = 16.0;
/// The rate has to rise by this factor for a wider window to be worth it.
const RISE: f64 = 1.1;
/// How long after a failed trial the next one starts.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The measured link.
pub(super) struct Window {
    link: Mutex<Link>,
    bytes: AtomicU64,
}

/// The state of a trial with a wider window.
#[derive(Clone, Copy)]
enum Trial {
    /// The window was widened, but bytes requested before it still arrive. Holds the rate before.
    Settling(f64),
    /// Bytes requested with the wider window arrive. Holds the rate before.
    Measured(f64),
    /// The rate did not rise.
    Over(Instant),
}

struct Link {
    /// Bytes a second.
    rate: f64,
    /// The shortest latency of a first byte, and when it was measured.
    latency: Option<(Duration, Instant)>,
    /// The current interval of measurement.
    interval: Option<Interval>,
    /// The window on trial in bytes, and the state of the trial.
    tried: u64,
    trial: Trial,
}

#[derive(Clone, Copy)]
struct Interval {
    since: Instant,
    last: Instant,
    bytes: u64,
}

impl Default for Link {
    fn default() -> Self {
        // The first measured rate exceeds zero.
        let trial = Trial::Measured(0.0);
        Self { rate: 0.0, latency: None, interval: None, tried: BEGIN_BYTES, trial }
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { link: Mutex::default(), bytes: AtomicU64::new(BEGIN_BYTES) }
    }
}

impl Link {
    fn window(&self) -> u64 {
        let Some((latency, _)) = self.latency else { return self.tried };
        let held = self.rate * latency.as_secs_f64();
        // The cast saturates, and turns NaN into 0.
        let [least, most] = [2.0, 8.0].map(|times| (times * held) as u64);
        // Until a trial has ended, it is unknown how much the link holds. A window that is too wide
        // only costs memory.
        let is_known = matches!(self.trial, Trial::Over(_));
        let most = if is_known { most } else { most.max(BEGIN_BYTES) };
        self.tried.min(most).max(least).clamp(LEAST_BYTES, MOST_BYTES)
    }

    /// Continues the trial with a newly measured rate.
    fn go_on(&mut self, rate: f64, now: Instant) {
        let window = self.window();
        self.trial = match self.trial {
            Trial::Settling(before) => Trial::Measured(before),
            Trial::Measured(before) if rate > before * RISE => {
                self.tried = window.saturating_mul(2).min(MOST_BYTES);
                Trial::Settling(rate)
            }
            Trial::Measured(_) => {
                self.tried = (window / 2).max(LEAST_BYTES);
                Trial::Over(now)
            }
            Trial::Over(since) if now.saturating_duration_since(since) > TRY_AGAIN => {
                self.tried = window.saturating_mul(2).min(MOST_BYTES);
                Trial::Settling(self.rate.max(rate))
            }
            over @ Trial::Over(_) => over,
        };
    }

    fn received(&mut self, bytes: u64, now: Instant) {
        let begun = Interval { since: now, last: now, bytes: 0 };
        let Some(interval) = &mut self.interval else {
            self.interval = Some(begun);
            return;
        };
        if now.saturating_duration_since(interval.last) > IDLE {
            // The readers paused, and the first piece after a pause has no duration.
            *interval = begun;
            return;
        }
        interval.bytes += bytes;
        interval.last = now;
        let least = self.latency.map_or(INTERVAL, |(latency, _)| latency.max(INTERVAL));
        let passed = now.saturating_duration_since(interval.since);
        if passed < least {
            return;
        }
        let rate = interval.bytes as f64 / passed.as_secs_f64();
        *interval = begun;
        self.rate += if rate > self.rate { rate - self.rate } else { (rate - self.rate) / FALL };
        self.go_on(rate, now);
    }
}

impl Window {
    /// Records received bytes.
    pub(super) fn received(&self, bytes: u64, now: Instant) {
        let mut link = self.link.lock();
        link.received(bytes, now);
        self.bytes.store(link.window(), Relaxed);
    }

    /// Records the latency of a first byte.
    pub(super) fn first_byte(&self, after: Duration, now: Instant) {
        let mut link = self.link.lock();
        let is_shorter = link.latency.is_none_or(|(known, since)| {
            after <= known || now.saturating_duration_since(since) > LATENCY_AGE_MAX
        });
        if is_shorter {
            link.latency = Some((after, now));
            self.bytes.store(link.window(), Relaxed);
        }
    }

    /// Records that the store throttled.
    pub(super) fn slow_down(&self) {
        let mut link = self.link.lock();
        link.rate /= 2.0;
        (link.tried, link.trial) = (link.tried / 2, Trial::Over(Instant::now()));
        self.bytes.store(link.window(), Relaxed);
    }

    /// How far to prefetch. A stream has to continue twice first: a store is far away, and wasted
    /// requests cost money.
    pub(super) fn read_ahead(&self) -> ReadAhead {
        ReadAhead {
            hits_min: 2,
            first_bytes: FIRST_BYTES,
            most_bytes: self.bytes.load(Relaxed),
            times_read: Some(TIMES_READ),
            run_bytes: RUN_BYTES,
        }
    }

    /// The window in bytes, and the rate in bytes a second.
    pub(super) fn standing(&self) -> (u64, u64) {
        (self.bytes.load(Relaxed), self.link.lock().rate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Simulates reads with the current window over a link of this capacity a second.
    fn read(window: &Window, carries: u64, latency: Duration, start: Instant, seconds: u32) {
        let rounds = seconds * 1000 / latency.as_millis() as u32;
        for round in 1..=rounds {
            let now = start + latency * round;
            let asked = window.standing().0;
            let bytes = asked.min((carries as f64 * latency.as_secs_f64()) as u64);
            window.first_byte(latency, now);
            window.received(bytes, now);
        }
    }

    #[test]
    fn the_window_grows_with_the_rate_and_stays_above_twice_what_the_link_holds() {
        let latency = Duration::from_millis(100);
        for (carries, expected) in [(500 * MIB, 100 * MIB), (100 * MIB, 20 * MIB)] {
            let window = Window::default();
            read(&window, carries, latency, Instant::now(), 3);
            let (bytes, rate) = window.standing();
            assert!(rate as f64 > 0.9 * carries as f64, "{rate} of {carries}");
            let is_enough = (0.85..=1.7).contains(&(bytes as f64 / expected as f64));
            assert!(is_enough, "{bytes} for a link of {carries}");
        }
        let window = Window::default();
        read(&window, 10_000 * MIB, latency, Instant::now(), 20);
        assert_eq!(window.standing().0, MOST_BYTES);
        let window = Window::default();
        read(&window, MIB, Duration::from_millis(1), Instant::now(), 5);
        assert_eq!(window.standing().0, LEAST_BYTES);
    }

    #[test]
    fn an_unknown_link_does_not_slow_the_first_readers() {
        let (window, start) = (Window::default(), Instant::now());
        let latency = Duration::from_millis(20);
        // The first runs are short, so the link delivers less than it could.
        window.first_byte(latency, start);
        for round in 0..=3 {
            window.received(MIB, start + latency * round);
        }
        let (bytes, rate) = window.standing();
        assert!(rate > 0 && rate < 100 * MIB, "{rate}");
        assert_eq!(bytes, BEGIN_BYTES);
    }

    #[test]
    fn a_pause_of_the_reader_does_not_count_and_throttling_counts_at_once() {
        let (window, start) = (Window::default(), Instant::now());
        let latency = Duration::from_millis(100);
        read(&window, 400 * MIB, latency, start, 20);
        let (before, _) = window.standing();
        window.received(1, start + Duration::from_secs(100));
        assert_eq!(window.standing().0, before);
        window.slow_down();
        assert!(window.standing().0 <= before / 2 + 1);
    }

    /// Some of the requested bytes have arrived when more are requested, and a request continues
    /// after its first byte. So the bytes in flight are never the whole window.
    #[test]
    fn a_window_smaller_than_the_links_capacity_is_widened() {
        let (window, start) = (Window::default(), Instant::now());
        let (latency, carries) = (Duration::from_millis(20), 900.0 * MIB as f64);
        for round in 1..=200 {
            let now = start + latency * round;
            let rate = (window.standing().0 as f64 * 0.3 / latency.as_secs_f64()).min(carries);
            window.first_byte(latency, now);
            window.received((rate * latency.as_secs_f64()) as u64, now);
        }
        let (bytes, rate) = window.standing();
        assert!(rate as f64 > 0.85 * carries, "{rate} with a window of {bytes}");
    }

    #[test]
    fn a_window_without_a_higher_rate_shrinks_again() {
        let (window, start) = (Window::default(), Instant::now());
        // The program limits the rate, and the link could carry more.
        let latency = Duration::from_millis(20);
        let mut wide = 0;
        for round in 1..=3000 {
            let now = start + latency * round;
            window.first_byte(latency, now);
            window.received((600 * MIB) * 20 / 1000, now);
            wide += u32::from(window.standing().0 > 40 * MIB);
        }
        assert!(wide < 300, "{wide} of 3000");
    }
}
