//! Limits the reports about a recurring state.

use std::time::{Duration, Instant};

/// The reports about a recurring state, such as a failing device.
///
/// The state is reported at once when it appears, but at most once in each pause. A report within a
/// pause of the last one waits for the end of the pause, and is dropped if the state has ended by
/// then. The end is reported only after a report of the state, and after it has been absent for the
/// time of calm.
///
/// So a pause has at most two lines, however often the state changes. As long as the caller polls,
/// the last line is true.
#[derive(Clone, Copy, Debug)]
pub struct Recurring {
    pause: Duration,
    calm: Duration,
    /// The time of the last report of the state.
    reported_at: Option<Instant>,
    /// The last time at which the state was present, from its report until the report of its end.
    present_at: Option<Instant>,
}

/// The report that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The state has appeared.
    Came,
    /// The state has ended, this long after its report.
    Went(Duration),
}

impl Recurring {
    /// For a state that is not present yet.
    #[must_use]
    pub const fn new(pause: Duration, calm: Duration) -> Self {
        Self { pause, calm, reported_at: None, present_at: None }
    }

    /// The report that is due for its presence or absence. Call this whenever the state may have
    /// changed, and repeatedly while [`Self::is_open`].
    pub fn say(&mut self, is_there: bool, now: Instant) -> Option<Change> {
        let since = |at: Instant| now.saturating_duration_since(at);
        match (self.present_at, is_there) {
            (Some(_), true) => {
                self.present_at = Some(now);
                None
            }
            (None, true) if self.reported_at.is_none_or(|at| since(at) >= self.pause) => {
                (self.reported_at, self.present_at) = (Some(now), Some(now));
                Some(Change::Came)
            }
            (Some(present_at), false) if since(present_at) >= self.calm => {
                self.present_at = None;
                Some(Change::Went(self.reported_at.map_or(Duration::ZERO, since)))
            }
            _ => None,
        }
    }

    /// Whether the state was reported and its end was not.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.present_at.is_some()
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
    fn a_storm_has_two_lines_for_each_pause_and_its_last_line_is_true() {
        let storm = (0..=3600).map(|at| (at, at % 2 == 0));
        let lines_of_storm = lines(Duration::ZERO, storm);
        assert_eq!(lines_of_storm.len(), 2 * 60 + 1, "{lines_of_storm:?}");
        assert_eq!(lines_of_storm.last(), Some(&(3600, Change::Came)));
        // A change within the pause that persists is reported at the end of the pause.
        let states = (0..100).map(|at| (at, at != 1));
        let lines_of_storm = lines(Duration::ZERO, states);
        assert_eq!(lines_of_storm.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 60]);
    }

    #[test]
    fn a_state_with_a_time_of_calm_has_two_lines_for_each_storm() {
        let storm = (0..4000).map(|at| (at, at < 3000 && at % 50 == 0));
        let lines_of_storm = lines(PAUSE, storm);
        let went = Change::Went(Duration::from_secs(3010));
        assert_eq!(lines_of_storm, [(0, Change::Came), (3010, went)]);
    }
}
