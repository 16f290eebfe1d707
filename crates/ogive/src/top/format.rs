//! Numbers and names as the screen shows them.

use ratatui::text::Span;

use crate::profile::tables::printable;

/// Stands in for a figure that was not measured.
pub(super) const NOTHING: &str = "-";
/// Heights of a sparkline, the lowest first.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A name from outside, without control characters, invisible characters, and characters that turn
/// the direction of writing.
pub(super) fn harmless(name: &str) -> String {
    let hides = |c| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    let turns = |c| matches!(c, '\u{2060}'..='\u{206f}' | '\u{61c}' | '\u{feff}' | '\u{ad}');
    printable(name).chars().map(|c| if hides(c) || turns(c) { '\u{fffd}' } else { c }).collect()
}

/// A text of at most so many columns. It is cut at the front, with an ellipsis, because paths differ
/// at their end.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let mut tail: Vec<char> = Vec::new();
    let mut left = columns.saturating_sub(1);
    for c in text.chars().rev() {
        let own = columns_of(c.encode_utf8(&mut [0; 4]));
        if own > left {
            break;
        }
        left -= own;
        tail.push(c);
    }
    if columns > 0 {
        tail.push('…');
    }
    tail.iter().rev().collect()
}

/// Columns that a text takes.
pub(super) fn columns_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// Percent with one digit.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.1}%"))
}

/// A number with three significant digits.
pub(crate) fn count(value: Option<f64>) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// Bytes, in powers of 1024.
pub(crate) fn bytes(value: Option<f64>) -> String {
    scaled(value, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"])
}

/// Bytes a second.
pub(super) fn byte_rate(value: Option<f64>) -> String {
    match value {
        Some(_) => format!("{}/s", bytes(value)),
        None => NOTHING.to_owned(),
    }
}

/// Milliseconds, as seconds, milliseconds or microseconds.
pub(super) fn milliseconds(value: Option<f64>) -> String {
    match value {
        None => NOTHING.to_owned(),
        Some(ms) if ms >= 1000.0 => format!("{:.2} s", ms / 1000.0),
        Some(ms) if ms >= 1.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{:.0} us", ms * 1000.0),
    }
}

/// Seconds, for an interval or a span of time.
pub(super) fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

fn scaled(value: Option<f64>, step: f64, units: &[&str]) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return NOTHING.to_owned() };
    let (mut value, mut unit) = (value, 0);
    // A value that rounds up to the next unit takes that unit.
    while value.abs() >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value.abs() {
        _ if value == value.round() && unit == 0 => 0,
        size if size < 9.95 => 1,
        size if size < 99.5 && unit > 0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[unit])
}

/// Values as heights, `top` the highest; a gap where nothing was measured.
pub(super) fn sparkline(values: &[Option<f64>], top: f64) -> String {
    let height = |value: f64| {
        let share = if top > 0.0 { (value / top).clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
        HEIGHTS[(share * 7.0).round() as usize]
    };
    values.iter().map(|value| value.map_or(' ', height)).collect()
}

/// Columns out of `columns` that a share from 0 to 1 takes.
pub(super) fn part_of(columns: usize, share: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "not negative, and at most the columns of a terminal"
    )]
    let part = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
    part.min(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_three_significant_digits() {
        for (value, text) in [
            (0.0, "0 B"),
            (0.25, "0.2 B"),
            (1023.0, "1023 B"),
            (1023.9, "1.0 KiB"),
            (1536.0, "1.5 KiB"),
            (13.2 * 1024.0 * 1024.0, "13.2 MiB"),
            (500.0 * 1024.0 * 1024.0 * 1024.0, "500 GiB"),
        ] {
            assert_eq!(bytes(Some(value)), text);
        }
        assert_eq!(count(Some(999.9)), "1.0k");
        assert_eq!(count(Some(12_345.0)), "12.3k");
        assert_eq!(count(Some(f64::NAN)), NOTHING);
        assert_eq!(byte_rate(None), NOTHING);
        assert_eq!(milliseconds(Some(0.25)), "250 us");
        assert_eq!(seconds(60), "60 s");
    }

    #[test]
    fn names_lose_control_characters_and_keep_their_end() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{202e}c\n"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(cut("/mnt/fast", 9), "/mnt/fast");
        assert_eq!(cut("/mnt/fast", 5), "…fast");
        assert_eq!(cut("漢字漢字", 5), "…漢字");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn a_sparkline_has_a_gap_where_nothing_was_measured() {
        assert_eq!(sparkline(&[Some(0.0), None, Some(100.0), Some(900.0)], 100.0), "▁ ██");
        assert_eq!(sparkline(&[Some(f64::NAN), Some(3.0)], 0.0), "▁▁");
    }
}
