//! The text before the first column of a row: a time, a date, or the word for an average.

use crate::read::text::number;

/// Words of that text, at most.
pub(crate) const MOST_WORDS: usize = 3;

/// The text before a row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Before {
    /// Seconds since midnight.
    pub(crate) time_s: Option<f64>,
    /// Whether it is the word for an average, in any language.
    pub(crate) average: bool,
}

impl Before {
    /// Parses `text`; `None` if it is neither a time nor an average.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.contains(|c: char| c.is_ascii_digit());
        // A time is not longer.
        if text.len() > 40 {
            return None;
        }
        if text.is_empty() {
            return Some(Self::default());
        }
        if !digits {
            // `Average:`, `Moyenne :`, `Durchschn.:`.
            return text.ends_with([':', '：']).then_some(Self { time_s: None, average: true });
        }
        let is_time = text.split_whitespace().all(|word| {
            let of_digits = |c: char| c.is_ascii_digit() || ":-/.,T+Z".contains(c);
            let has_digit = word.contains(|c: char| c.is_ascii_digit());
            has_digit && (!word.is_ascii() || word.chars().all(of_digits))
                || matches!(word, "AM" | "PM" | "am" | "pm")
        });
        let time_s = number::time_of_day(&text.to_ascii_uppercase());
        is_time.then_some(Self { time_s, average: false })
    }
}

/// Whether a line is only a date or a time, as `iostat -t` prints it above a report.
pub(crate) fn is_moment(text: &str) -> bool {
    text.contains(':') && Before::of(text).is_some_and(|before| !before.average)
}

/// A heading without the text before its first column, and that text.
pub(crate) fn of_heading(text: &str, is_known: impl Fn(&str) -> bool) -> (&str, Before) {
    let mut rest = text.trim();
    let mut before = 0;
    for _ in 0..MOST_WORDS {
        let Some((word, behind)) = rest.split_once(char::is_whitespace) else { break };
        let is_word = matches!(word, "#" | "Time" | "AM" | "PM" | "am" | "pm");
        let stands_before = word.contains([':', '：'])
            || word.contains(|c: char| c.is_ascii_digit()) && !word.is_ascii()
            || behind.trim_start().starts_with(": ");
        if !is_word && (is_known(word) || !stands_before) {
            break;
        }
        rest = behind.trim_start();
        before = text.trim().len() - rest.len();
    }
    (rest, Before::of(&text.trim()[..before]).unwrap_or_default())
}
