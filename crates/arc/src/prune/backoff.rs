//! How long to leave an owner alone that frees little. The pause grows exponentially. Pure: the
//! caller gives the clock.

use std::time::Duration;

/// The pause after the first poor answer.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// An answer is poor if less than this part of the request was freed.
const POOR_DIVISOR: u64 = 8;

/// Whether to ask an owner now. Each poor answer in a row doubles the pause, from 10 ms to one
/// minute; a good one ends it. Times are since any one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    poor_answers: u32,
    until: Duration,
}

impl Backoff {
    /// Whether the owner may be asked at `now`.
    #[must_use]
    pub fn allows(&self, now: Duration) -> bool {
        now >= self.until
    }

    /// Notes an answer got at `now`.
    pub fn note(&mut self, now: Duration, want_bytes: u64, freed_bytes: u64) {
        if freed_bytes >= want_bytes.div_ceil(POOR_DIVISOR) {
            *self = Self::default();
            return;
        }
        let factor = 1_u32.checked_shl(self.poor_answers).unwrap_or(u32::MAX);
        self.until = now + FIRST_PAUSE.saturating_mul(factor).min(PAUSE_MAX);
        self.poor_answers = (self.poor_answers + 1).min(31);
    }

    /// Poor answers in a row so far.
    #[must_use]
    pub const fn poor_answers(&self) -> u32 {
        self.poor_answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_pause_doubles_up_to_a_minute_and_ends_with_a_good_answer() {
        let mut backoff = Backoff::default();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            assert!(backoff.allows(now));
            backoff.note(now, 800, 99);
            assert!(!backoff.allows(now));
            let pause = backoff.until - now;
            assert!(!backoff.allows(now + pause - ms(1)));
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(&pauses[..4], [ms(10), ms(20), ms(40), ms(80)]);
        assert!(pauses[13..].iter().all(|&pause| pause == PAUSE_MAX));
        backoff.note(now, 800, 100);
        assert!(backoff.allows(now) && backoff.poor_answers() == 0);
    }

    #[test]
    fn asked_for_little_and_freed_nothing_is_poor() {
        let mut backoff = Backoff::default();
        backoff.note(ms(5), 1, 0);
        assert!(!backoff.allows(ms(14)));
        assert!(backoff.allows(ms(15)));
    }
}
