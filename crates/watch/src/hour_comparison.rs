//! The last minute compared with the minute an hour ago, from the steps in memory.
//!
//! It measures nothing. The steps of an hour ago exist once a page has been open for an hour, or if
//! a file keeps the week. Without them the answer says so, and which minute can be compared.

use std::time::Duration;

use crate::history::{History, Means};
use crate::week::Week;

/// How long ago.
pub const AGO: Duration = Duration::from_secs(3600);
/// The length of the compared minute: the mean covers this time.
pub const OVER: Duration = Duration::from_secs(60);
/// With fewer steps a mean says little; steps of ten seconds are six in a minute.
const STEPS_MIN: usize = 5;

/// The minute an hour ago, and the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// An hour ago.
    pub then: Means,
    /// Now.
    pub now: Means,
}

/// Why no comparison is possible.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoEarlier {
    /// The last minute has too few steps.
    NotNow(String),
    /// The minute an hour ago has too few steps.
    NotThen {
        /// The last minute.
        now: Means,
        /// The reason, as text.
        why: String,
    },
}

impl NoEarlier {
    pub(crate) fn into_words(self) -> String {
        match self {
            Self::NotNow(why) | Self::NotThen { why, .. } => why,
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The two minutes, from memory.
pub(crate) fn earlier(history: &History, now_ms: u64) -> Result<Earlier, NoEarlier> {
    let Some(oldest_ms) = history.oldest_ms() else {
        return Err(NoEarlier::NotNow(
            "nothing has been measured yet: there is no hour to compare with".to_owned(),
        ));
    };
    let now = history.means(now_ms.saturating_sub(ms(OVER)), now_ms.saturating_add(1));
    if now.steps < STEPS_MIN {
        return Err(NoEarlier::NotNow(format!(
            "the last minute has {} steps of {STEPS_MIN} needed: try again in a few seconds",
            now.steps
        )));
    }
    // Memory holds hardly more than an hour, so the minute begins an hour ago.
    let from_ms = now_ms.saturating_sub(ms(AGO));
    let then = history.means(from_ms, from_ms + ms(OVER));
    if then.steps >= STEPS_MIN {
        return Ok(Earlier { then, now });
    }
    let known = Duration::from_millis(now_ms.saturating_sub(oldest_ms));
    let why = if known + OVER < AGO {
        format!(
            "there is no hour yet: steps begin {} minutes ago; keep the page open, and ask again in \
             {} minutes",
            known.as_secs() / 60,
            (AGO - known).as_secs().div_ceil(60)
        )
    } else {
        "an hour ago nothing was measured: no page was open, or the host was asleep".to_owned()
    };
    Err(NoEarlier::NotThen { now, why })
}

/// The last minute and the one an hour ago, from the history file.
pub(crate) fn from_week(week: &Week, now: Means, now_ms: u64) -> Option<Earlier> {
    // Minutes in the file begin with those of the clock; this takes the one of that moment.
    let moment_ms = now_ms.saturating_sub(ms(AGO));
    let then = week.means(moment_ms, moment_ms + 1).ok()?;
    (then.steps > 0).then_some(Earlier { then, now })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    /// Steps at these seconds before now.
    fn history(seconds: impl IntoIterator<Item = u64>) -> History {
        let mut history = History::default();
        for before in seconds {
            let value = if before > 1800 { 1.0 } else { 5.0 };
            history.push(NOW_MS - before * 1000, &[("host.cpu_usr".to_owned(), value)]);
        }
        history
    }

    #[test]
    fn the_same_minute_an_hour_ago_is_compared_with_the_last() {
        let found = earlier(&history((0..3600).rev()), NOW_MS).unwrap();
        assert_eq!(found.then.get("host.cpu_usr"), Some(1.0));
        assert_eq!(found.now.get("host.cpu_usr"), Some(5.0));
        assert!(found.then.steps >= 58 && found.now.steps >= 58, "{found:?}");
    }

    #[test]
    fn without_an_hour_it_says_when_there_will_be_one() {
        let error = earlier(&history((0..600).rev()), NOW_MS).unwrap_err().into_words();
        assert!(error.contains("no hour yet: steps begin 9 minutes ago"), "{error}");
        assert!(error.contains("in 51 minutes"), "{error}");
        let nothing = earlier(&History::default(), NOW_MS).unwrap_err().into_words();
        assert!(nothing.contains("nothing"), "{nothing}");
        let stopped = earlier(&history((100..3600).rev()), NOW_MS).unwrap_err().into_words();
        assert!(stopped.contains("the last minute has 0 steps"), "{stopped}");
    }

    #[test]
    fn a_pause_an_hour_ago_is_reported_as_one() {
        let error = earlier(&history((3590..3600).rev().chain((0..60).rev())), NOW_MS);
        assert!(error.is_ok(), "ten steps are enough");
        let coarse = (0..370).rev().map(|step| step * 10);
        let found = earlier(&history(coarse), NOW_MS).unwrap();
        assert_eq!((found.then.steps, found.now.steps), (6, 7), "steps of ten seconds are enough");
        let error = earlier(&history([3650].into_iter().chain((0..60).rev())), NOW_MS);
        let words = error.unwrap_err().into_words();
        assert!(words.contains("an hour ago nothing was measured"), "{words}");
    }

    /// If memory has no hour yet, a file of an earlier process may have it.
    #[test]
    fn without_an_hour_in_memory_the_minute_is_the_one_that_the_file_has() {
        let place = tempfile::tempdir().unwrap();
        let week = Week::open(&place.path().join("week")).unwrap().week;
        let now = history((0..600).rev()).means(NOW_MS - 60_000, NOW_MS);
        assert_eq!(from_week(&week, now.clone(), NOW_MS), None, "an empty file has none, either");
        let minute_ms = (NOW_MS - 3_600_000) / 60_000 * 60_000;
        for (begins_ms, value) in [(minute_ms - 60_000, 9.0), (minute_ms, 3.0)] {
            let mut minute = crate::week::Minute::default();
            let values = [("host.cpu_usr".to_owned(), value)];
            assert!(minute.add(begins_ms + 1000, &values).is_none());
            let over = minute.add(begins_ms + 61_000, &values).unwrap();
            week.put(&over, &[]).unwrap();
        }
        let found = from_week(&week, now, NOW_MS).unwrap();
        assert_eq!(found.then.get("host.cpu_usr"), Some(3.0));
        assert_eq!(found.now.get("host.cpu_usr"), Some(5.0));
        // Nothing was measured in the minute an hour before this moment.
        assert_eq!(from_week(&week, found.now, NOW_MS + 600_000), None);
    }

    /// After a clock was set back, steps with a later time do not belong to the last minute.
    #[test]
    fn a_clock_that_was_set_back_is_reported_until_a_minute_is_over() {
        let ahead = (0..3600).rev().map(|second| second * 1000);
        let mut history = History::default();
        ahead.for_each(|before| {
            history.push(NOW_MS + 7_200_000 - before, &[("host.cpu_usr".to_owned(), 1.0)]);
        });
        let words = earlier(&history, NOW_MS).unwrap_err().into_words();
        assert!(words.contains("the last minute has 0 steps"), "{words}");
        for second in 0..60 {
            history.push(NOW_MS + second * 1000, &[("host.cpu_usr".to_owned(), 1.0)]);
        }
        let words = earlier(&history, NOW_MS + 60_000).unwrap_err().into_words();
        assert!(words.contains("no hour yet: steps begin 1 minutes ago"), "{words}");
    }
}
