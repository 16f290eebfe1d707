//! How far to prefetch for a sequential reader: as far as bytes arrive faster for it.
//!
//! A link holds its rate times the time to a first byte. That does not say how much to request:
//! while less is under way than the link holds, the rate is only what was requested. So the window
//! is found by trial. It doubles, and doubles again while the rate rises. Otherwise it goes back,
//! and is tried again some seconds later. It stays between twice and eight times what the link
//! holds.
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

/// Where a stream begins.
const FIRST_BYTES: u64 = 1 << 20;
/// How far ahead a stream is read at most, in times what it has read. As long as that is less than
/// what the link holds, the reader waits for a round trip each time.
const TIMES_READ: u64 = 8;
/// How long one request is at most: several at once are faster than one that is longer, and a
/// connection that breaks loses no more.
const RUN_BYTES: u64 = 8 << 20;
/// A long stream is read in whole requests, however short the way is: fewer of them cost less.
const LEAST_BYTES: u64 = 2 * RUN_BYTES;
/// Before anything is known of the link.
const BEGIN_BYTES: u64 = 2 * LEAST_BYTES;
const MOST_BYTES: u64 = 128 << 20;
/// How long what comes is added up, at least.
const INTERVAL: Duration = Duration::from_millis(50);
/// Without bytes for so long, no reader has asked for any.
const IDLE: Duration = Duration::from_millis(500);
/// The shortest time to a first byte is believed for so long.
const LATENCY_AGE_MAX: Duration = Duration::from_secs(30);
/// A lower rate pulls what is believed down by this part of the difference.
const FALL: f64 = 16.0;
/// The rate has to rise by this factor for a wider window to be worth it.
const RISE: f64 = 1.1;
/// A window that was tried in vain is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The link, as it was measured.
pub(super) struct Window {
    link: Mutex<Link>,
    bytes: AtomicU64,
}

/// Where the trial of wider windows stands.
#[derive(Clone, Copy)]
enum Trial {
    /// A wider one was set: what comes now was asked for before. With the rate before it.
    Settling(f64),
    /// The bytes that arrive now were requested with it.
    Measured(f64),
    /// It was tried in vain.
    Over(Instant),
}

struct Link {
    /// Bytes a second.
    rate: f64,
    /// The shortest time to a first byte, and when that was.
    latency: Option<(Duration, Instant)>,
    /// The interval that is being measured.
    interval: Option<Interval>,
    /// The window of the trials in bytes, and their state.
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
        // The first rate that is measured is higher than none.
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
        // Saturates, and is 0 for what is no number.
        let [least, most] = [2.0, 8.0].map(|times| (times * held) as u64);
        // What a link holds is not known before as much was asked for as it carries. A window that
        // is too wide costs memory that is touched for the first time.
        let is_known = matches!(self.trial, Trial::Over(_));
        let most = if is_known { most } else { most.max(BEGIN_BYTES) };
        self.tried.min(most).max(least).clamp(LEAST_BYTES, MOST_BYTES)
    }

    /// Goes on with the trial of wider windows, now that this rate was measured.
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
            // The pause was ours, and this first piece stands for no time.
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
    /// Bytes have come.
    pub(super) fn received(&self, bytes: u64, now: Instant) {
        let mut link = self.link.lock();
        link.received(bytes, now);
        self.bytes.store(link.window(), Relaxed);
    }

    /// The first byte of an answer has come after so long.
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

    /// The store wants patience.
    pub(super) fn slow_down(&self) {
        let mut link = self.link.lock();
        link.rate /= 2.0;
        (link.tried, link.trial) = (link.tried / 2, Trial::Over(Instant::now()));
        self.bytes.store(link.window(), Relaxed);
    }

    /// How far ahead to read. A stream proves itself by going on twice: a store is far, and what is
    /// read in vain is paid for.
    pub(super) fn read_ahead(&self) -> ReadAhead {
        ReadAhead {
            hits_min: 2,
            first_bytes: FIRST_BYTES,
            most_bytes: self.bytes.load(Relaxed),
            times_read: Some(TIMES_READ),
            run_bytes: RUN_BYTES,
        }
    }

    /// The window and the rate, in bytes and bytes a second.
    pub(super) fn standing(&self) -> (u64, u64) {
        (self.bytes.load(Relaxed), self.link.lock().rate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A link that carries so much a second, read with the window as it is, for some seconds.
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
        // The first runs are short, so little comes of a link that holds much.
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

    /// Part of what was asked for is here already when more is asked for, and a request takes a
    /// while after its first byte: what is under way never is the whole window.
    #[test]
    fn a_window_that_hides_what_the_link_carries_is_found_too_small() {
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
    fn a_window_that_brings_no_higher_rate_goes_back() {
        let (window, start) = (Window::default(), Instant::now());
        // A program takes what comes as it likes, on a link that could carry more.
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
