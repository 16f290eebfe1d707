//! How often to report something that comes and goes.

use std::time::{Duration, Instant};

/// The reports about something that comes and goes, such as a failing device.
///
/// Its presence is reported at once, but at most once in each pause. If the last report is less
/// than a pause ago, the report waits for the end of the pause, and comes only if it is still
/// present then. Its absence is reported only after a report of its presence, and after it has
/// been absent for the time of calm.
///
/// So there are at most two lines a pause, however often it changes. As long as the caller asks,
/// the last line is true.
#[derive(Clone, Copy, Debug)]
pub struct Recurring {
    pause: Duration,
    calm: Duration,
    /// When it was last said to be there.
    said_at: Option<Instant>,
    /// When it was last there, from when it was said until it is said to have gone.
    seen: Option<Instant>,
}

/// The report that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is there.
    Came,
    /// It has gone, so long after it was said to be there.
    Went(Duration),
}

impl Recurring {
    /// Of something that is not there yet.
    #[must_use]
    pub const fn new(pause: Duration, calm: Duration) -> Self {
        Self { pause, calm, said_at: None, seen: None }
    }

    /// The report for its presence or absence. Call this whenever that may have changed, and as
    /// long as [`Self::is_open`].
    pub fn say(&mut self, is_there: bool, now: Instant) -> Option<Change> {
        let since = |at: Instant| now.saturating_duration_since(at);
        match (self.seen, is_there) {
            (Some(_), true) => {
                self.seen = Some(now);
                None
            }
            (None, true) if self.said_at.is_none_or(|at| since(at) >= self.pause) => {
                (self.said_at, self.seen) = (Some(now), Some(now));
                Some(Change::Came)
            }
            (Some(seen), false) if since(seen) >= self.calm => {
                self.seen = None;
                Some(Change::Went(self.said_at.map_or(Duration::ZERO, since)))
            }
            _ => None,
        }
    }

    /// Whether it was said to be there, and not yet that it has gone.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.seen.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(60);

    fn lines(calm: Duration, states: impl Iterator<Item = (u64, bool)>) -> Vec<(u64, Change)> {
        let (start, mut recurring) = (Instant::now(), Recurring::new(PAUSE, calm));
        let mut say =
            |(at, is_there)| Some((at, recurring.say(is_there, start + Duration::from_secs(at))?));
        states.filter_map(&mut say).collect()
    }

    #[test]
    fn a_single_change_is_reported_at_once() {
        let states = [(0, false), (5, true), (6, true), (9, false), (10, false)];
        let went = Change::Went(Duration::from_secs(4));
        assert_eq!(lines(Duration::ZERO, states.into_iter()), [(5, Change::Came), (9, went)]);
    }

    #[test]
    fn a_storm_has_two_lines_a_pause_and_its_last_line_is_true() {
        let storm = (0..=3600).map(|at| (at, at % 2 == 0));
        let said = lines(Duration::ZERO, storm);
        assert_eq!(said.len(), 2 * 60 + 1, "{said:?}");
        assert_eq!(said.last(), Some(&(3600, Change::Came)));
        // A change within the pause that stays is reported at the end of the pause.
        let states = (0..100).map(|at| (at, at != 1));
        let said = lines(Duration::ZERO, states);
        assert_eq!(said.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 60]);
    }

    #[test]
    fn a_state_that_must_be_calm_first_has_two_lines_a_storm() {
        let storm = (0..4000).map(|at| (at, at < 3000 && at % 50 == 0));
        let said = lines(PAUSE, storm);
        let went = Change::Went(Duration::from_secs(3010));
        assert_eq!(said, [(0, Change::Came), (3010, went)]);
    }
}
