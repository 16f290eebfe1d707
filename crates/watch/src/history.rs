//! The last hour, in memory: named series in steps of a second.
//!
//! The bound is [`ROWS_MAX`] steps of [`SERIES_MAX`] series of four bytes: 28 MiB at most, and two
//! or three on most hosts. A series without values costs as much as any other. A new series makes
//! later rows longer, but not earlier ones.

use std::collections::VecDeque;
use std::fmt::Write as _;

use hashbrown::HashMap;

/// Steps that are kept: an hour of seconds.
pub const ROWS_MAX: usize = 3600;
/// And for how long: steps may be further apart than a second.
const KEPT_MS: u64 = 3_700_000;
/// Series at most; values of later ones are dropped.
pub const SERIES_MAX: usize = 2048;

/// One step.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// Since the Unix epoch.
    time_ms: u64,
    /// By number of series; NaN where nothing was measured.
    values: Box<[f32]>,
}

/// The steps.
#[derive(Debug, Default)]
pub struct History {
    names: Vec<String>,
    index: HashMap<String, usize>,
    rows: VecDeque<Row>,
    /// Steps since the start; the last one has this number.
    sequence: u64,
}

impl History {
    /// Adds a step.
    pub fn push(&mut self, time_ms: u64, values: &[(String, f64)]) {
        let mut row = vec![f32::NAN; self.names.len()];
        for (name, value) in values {
            let at = match self.index.get(name) {
                Some(at) => *at,
                None if self.names.len() == SERIES_MAX => continue,
                None => {
                    self.names.push(name.clone());
                    self.index.insert(name.clone(), self.names.len() - 1);
                    row.push(f32::NAN);
                    self.names.len() - 1
                }
            };
            #[expect(clippy::cast_possible_truncation, reason = "four digits are shown")]
            if let Some(place) = row.get_mut(at) {
                *place = *value as f32;
            }
        }
        // A clock that was set back: rows with a later time go, because times only rise.
        while self.rows.back().is_some_and(|row| row.time_ms >= time_ms) {
            self.rows.pop_back();
        }
        let is_old = |row: &Row| row.time_ms.saturating_add(KEPT_MS) < time_ms;
        while self.rows.len() == ROWS_MAX || self.rows.front().is_some_and(is_old) {
            self.rows.pop_front();
        }
        self.rows.push_back(Row { time_ms, values: row.into() });
        self.sequence += 1;
    }

    /// The number of the last step.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Names of all series, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The last value of a series.
    pub fn last(&self, name: &str) -> Option<f32> {
        let values = &self.rows.back()?.values;
        values.get(*self.index.get(name)?).copied().filter(|value| value.is_finite())
    }

    /// The values of a series in the last steps, `count` at most, the oldest first; `None` where
    /// nothing was measured.
    pub fn recent(&self, name: &str, count: usize) -> Vec<Option<f32>> {
        let Some(at) = self.index.get(name) else { return Vec::new() };
        let skipped = self.rows.len().saturating_sub(count);
        let values = self.rows.iter().skip(skipped).map(|row| row.values.get(*at).copied());
        values.map(|value| value.filter(|value| value.is_finite())).collect()
    }

    /// When the oldest step that is kept was measured, in milliseconds since the Unix epoch.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.rows.front().map(|row| row.time_ms)
    }

    /// Means of all series that were measured from one moment to before another, and the number of
    /// steps there.
    pub fn means(&self, from_ms: u64, to_ms: u64) -> Means {
        let mut sums = vec![(0.0, 0.0); self.names.len()];
        let mut steps = 0;
        for row in self.rows.iter().filter(|row| (from_ms..to_ms).contains(&row.time_ms)) {
            steps += 1;
            for ((sum, count), value) in sums.iter_mut().zip(&row.values) {
                if value.is_finite() {
                    *sum += f64::from(*value);
                    *count += 1.0;
                }
            }
        }
        let measured = self.names.iter().zip(sums).filter(|(_, (_, count))| *count > 0.0);
        let values = measured.map(|(name, (sum, count))| (name.clone(), sum / count)).collect();
        Means { steps, values }
    }

    /// Writes the steps after number `since` as a JSON array of arrays: the time, then the values.
    pub fn write_rows(&self, since: u64, out: &mut String) {
        let kept = self.rows.len() as u64;
        // A client that names a future step has its number from an earlier server.
        let since = if since > self.sequence { 0 } else { since };
        let new = (self.sequence - since).min(kept);
        let skipped = usize::try_from(kept - new).unwrap_or(usize::MAX);
        out.push('[');
        for (at, row) in self.rows.iter().skip(skipped).enumerate() {
            if at > 0 {
                out.push(',');
            }
            let _ = write!(out, "[{}", row.time_ms);
            for value in &row.values {
                out.push(',');
                write_short(*value, out);
            }
            out.push(']');
        }
        out.push(']');
    }
}

/// The measurements over a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Means {
    /// Steps in which something was measured.
    pub steps: usize,
    /// Series by name, each with its mean over the steps that have it.
    pub values: Vec<(String, f64)>,
}

impl Means {
    /// The mean of a series.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }
}

/// Writes a number with four significant digits, or null.
fn write_short(value: f32, out: &mut String) {
    if !value.is_finite() {
        out.push_str("null");
    } else if value == 0.0 {
        out.push('0');
    } else if value.abs() >= 1e6 || value.abs() < 1e-2 {
        let _ = write!(out, "{value:.3e}");
    } else {
        let digits = 3 - value.abs().log10().floor() as i32;
        let scale = 10f64.powi(digits.max(0));
        let _ = write!(out, "{}", (f64::from(value) * scale).round() / scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(history: &mut History, time_ms: u64, values: &[(&str, f64)]) {
        let values: Vec<_> =
            values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        history.push(time_ms, &values);
    }

    fn rows(history: &History, since: u64) -> serde_json::Value {
        let mut text = String::new();
        history.write_rows(since, &mut text);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn times_rise_when_the_clock_is_set_back_and_a_reader_gets_the_new_steps() {
        let mut history = History::default();
        for time_ms in [1000, 2000, 3000, 4000] {
            row(&mut history, time_ms, &[("a", 1.0)]);
        }
        row(&mut history, 2500, &[("a", 2.0)]);
        assert_eq!(rows(&history, 0), serde_json::json!([[1000, 1], [2000, 1], [2500, 2]]));
        assert_eq!(rows(&history, 4), serde_json::json!([[2500, 2]]));
        assert_eq!(history.sequence(), 5);
        // A client that fell behind gets a new start, and must drop its older steps.
        assert_eq!(rows(&history, 2), serde_json::json!([[1000, 1], [2000, 1], [2500, 2]]));
    }

    #[test]
    fn a_reader_gets_the_unseen_steps() {
        let mut history = History::default();
        row(&mut history, 1, &[("a", 1.5)]);
        row(&mut history, 2, &[("b", f64::NAN), ("a", 2.0)]);
        row(&mut history, 3, &[("b", 1e12)]);
        assert_eq!(history.names(), ["a", "b"]);
        assert_eq!(rows(&history, 0), serde_json::json!([[1, 1.5], [2, 2, null], [3, null, 1e12]]));
        assert_eq!(rows(&history, 2), serde_json::json!([[3, null, 1e12]]));
        assert_eq!(rows(&history, 3), serde_json::json!([]));
        assert_eq!(
            rows(&history, 99).as_array().unwrap().len(),
            3,
            "a number of an earlier server"
        );
        assert_eq!(history.last("b"), Some(1e12));
        assert_eq!(history.last("a"), None);
        assert_eq!(history.recent("b", 2), [None, Some(1e12)]);
        assert_eq!(history.recent("b", 9), [None, None, Some(1e12)]);
        assert!(history.recent("c", 9).is_empty());
    }

    #[test]
    fn means_cover_the_steps_in_between() {
        let mut history = History::default();
        assert_eq!(history.oldest_ms(), None);
        row(&mut history, 1000, &[("a", 100.0)]);
        row(&mut history, 2000, &[("a", 1.0), ("b", 8.0)]);
        row(&mut history, 3000, &[("a", 3.0)]);
        row(&mut history, 4000, &[("a", 100.0), ("c", 1.0)]);
        let means = history.means(2000, 4000);
        assert_eq!(means.steps, 2);
        assert_eq!((means.get("a"), means.get("b"), means.get("c")), (Some(2.0), Some(8.0), None));
        assert_eq!(history.means(9000, 10_000), Means::default());
        assert_eq!(history.oldest_ms(), Some(1000));
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut history = History::default();
        for time_ms in 0..ROWS_MAX as u64 + 10 {
            row(&mut history, time_ms, &[("a", 1.0)]);
        }
        let kept = rows(&history, 0);
        assert_eq!(kept.as_array().unwrap().len(), ROWS_MAX);
        assert_eq!(kept[0][0], 10);
        for number in 0..SERIES_MAX + 10 {
            row(&mut history, 0, &[(&format!("s{number}"), 1.0)]);
        }
        assert_eq!(history.names().len(), SERIES_MAX);
    }

    #[test]
    fn numbers_are_short_and_right() {
        for (value, text) in [
            (0.0, "0"),
            (12.34567, "12.35"),
            (99999.0, "99999"),
            (0.123456, "0.1235"),
            (1.2638e10, "1.264e10"),
            (0.000123456, "1.235e-4"),
            (-5.5, "-5.5"),
            (f32::INFINITY, "null"),
        ] {
            let mut out = String::new();
            write_short(value, &mut out);
            assert_eq!(out, text);
            assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
        }
    }
}
