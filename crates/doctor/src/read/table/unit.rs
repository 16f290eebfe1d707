//! The units of cells, and how many words of a row make up one cell.

use crate::read::text::number;

/// Cells without a figure.
const EMPTY: [&str; 8] = ["-", "?", "*", "N/A", "n/a", "--", "?unavailable?", ""];

/// No machine has more CPUs.
pub(super) const MAX_CPUS: u16 = 4096;

/// The unit of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Any single word.
    Word,
    /// Any number of words; a list has one such column.
    Text,
    /// This number of words.
    Words(usize),
    /// The text before a slash (`mysqld/9`).
    UntilSlash,
    /// A whole number, perhaps with a mark.
    Whole,
    /// A figure, perhaps with a decimal suffix or its sign.
    Number,
    /// A percent.
    Percent,
    /// A percent with its sign or decimals, which distinguish it from other numbers.
    Share,
    /// Bytes, with a binary suffix.
    Bytes,
    /// Units of this number of bytes; with a suffix, bytes.
    BytesOf(u32),
    /// Kilobytes. They stay kilobytes even if the cell has a suffix.
    Kilobytes,
    /// Milliseconds, perhaps with their unit.
    Milliseconds,
    /// Milliseconds of CPU per second, converted to percent.
    MillisecondsASecond,
    /// CPU time.
    Time,
    /// Seconds, perhaps with their `s`, or CPU time.
    Seconds,
    /// Seconds with two decimals; any mark or a blank may separate thousands.
    Hundredths,
    /// CPUs (`250m` is a quarter of one).
    Cores,
    /// The number of a CPU, or a word for all of them.
    Cpu,
    /// A state.
    State,
    /// A date or a time of day, in one word or several.
    Date,
    /// A terminal as Linux names it.
    Terminal,
    /// A terminal as other systems name it.
    OtherTerminal,
    /// Two figures with a slash between them.
    Pair,
}

/// Whether a cell is empty.
pub(crate) fn is_empty(cell: &str) -> bool {
    EMPTY.contains(&cell)
}

impl Unit {
    /// The figure of a cell; `None` if it has none.
    pub(crate) fn figure(self, cell: &str) -> Option<f64> {
        if is_empty(cell) {
            return None;
        }
        let plain = || number::plain(cell);
        match self {
            Self::Whole => whole(cell),
            Self::Number => {
                plain().or_else(|| number::percent(cell)).or_else(|| number::count(cell))
            }
            // `< 0.01`
            Self::Percent => {
                number::percent(cell.trim_start_matches('<')).filter(|value| *value >= 0.0)
            }
            Self::Share => Self::Percent.figure(cell).filter(|_| cell.contains(['%', '.', ','])),
            Self::Bytes => number::bytes(cell),
            Self::BytesOf(bytes) => {
                plain().map(|value| value * f64::from(bytes)).or_else(|| number::bytes(cell))
            }
            Self::Kilobytes => {
                let figure = plain().or_else(|| number::percent(cell));
                figure.or_else(|| number::count(cell).map(|value| value / 1000.0))
            }
            Self::Milliseconds => {
                plain().or_else(|| number::seconds(cell).map(|seconds| seconds * 1000.0))
            }
            Self::MillisecondsASecond => plain().map(|value| value / 10.0),
            Self::Time => time(cell),
            Self::Seconds => {
                let seconds = cell.trim_end_matches('s').replace(',', ".");
                number::plain(&seconds).or_else(|| time(cell))
            }
            Self::Hundredths => hundredths(cell),
            Self::Cores => cores(cell),
            _ => None,
        }
    }

    /// Whether a cell fits the unit.
    pub(crate) fn fits(self, cell: &str) -> bool {
        let is_linux = cell == "?" || cell.starts_with("pts/") || cell.starts_with("tty");
        match self {
            Self::Word | Self::Text | Self::Words(_) | Self::UntilSlash => true,
            Self::Terminal => is_linux,
            Self::OtherTerminal => !is_linux,
            _ if is_empty(cell) => true,
            Self::State => cell.len() <= 12 && !cell.starts_with(|c: char| c.is_ascii_digit()),
            Self::Cpu => cell == "all" || cell.parse::<u16>().is_ok_and(|at| at < MAX_CPUS),
            Self::Date => cell.contains(|c: char| c.is_ascii_digit()),
            Self::Pair => cell.split_once('/').is_some_and(|(one, other)| {
                number::bytes(one).is_some() && number::bytes(other).is_some()
            }),
            _ => self.figure(cell).is_some(),
        }
    }

    /// How many of the next words of a row make up one cell.
    pub(crate) fn words<'t>(self, mut words: impl Iterator<Item = &'t str>) -> usize {
        let first = words.next().unwrap_or_default();
        let second = words.next().unwrap_or_default();
        match self {
            Self::Words(count) => count,
            Self::Pair if second == "/" => 3,
            // `Mon Jun 29 17:21:50 2023`
            Self::Date if WEEKDAYS.contains(&first) && MONTHS.contains(&second) => 5,
            Self::Date if MONTHS.contains(&first) => 2,
            // `15-03 12:00:00`
            Self::Date if first.contains('-') && second.contains(':') => 2,
            // `1.23 M/s`, `7.71 ms`, `0.00 %`
            Self::Bytes | Self::Milliseconds | Self::Percent if is_unit(second) => 2,
            Self::Percent if first == "<" => 2,
            // `S <`, `92 hrs`, `8 786,38`
            Self::State if matches!(second, "<" | "N") => 2,
            Self::Time if second == "hrs" => 2,
            Self::Hundredths if whole(first).is_some() && hundredths(second).is_some() => 2,
            _ => 1,
        }
    }
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Whether a word is the unit of the figure before it.
fn is_unit(word: &str) -> bool {
    matches!(word, "%" | "B" | "K" | "M" | "G" | "T" | "MB" | "ms" | "us")
        || matches!(word, "B/s" | "K/s" | "M/s" | "G/s" | "T/s")
}

/// A whole number, without the marks of macOS and of lists (`123*`, `0-`, `12,`).
fn whole(cell: &str) -> Option<f64> {
    let digits = cell.trim_end_matches(['*', '+', '-', ',']);
    let bare = digits.strip_prefix('-').unwrap_or(digits);
    let is_whole = bare.len() <= 19 && bare.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| digits.parse().ok()).flatten()
}

/// CPU time; `ps -o times` prints whole seconds.
fn time(cell: &str) -> Option<f64> {
    if let Some(hours) = cell.strip_suffix(" hrs") {
        return Some(number::plain(hours)? * 3600.0);
    }
    let cell = cell.trim_end_matches(['+', '-']);
    number::cpu_seconds(cell).or_else(|| cell.parse::<u32>().ok().map(f64::from))
}

fn hundredths(cell: &str) -> Option<f64> {
    let (_, decimals) = cell.rsplit_once(['.', ','])?;
    let is_mark = |c: char| c.is_ascii_digit() || " .,'\u{2019}".contains(c);
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    let is_time = decimals.len() == 2 && cell.chars().all(is_mark);
    is_time.then(|| digits.parse::<f64>().ok()).flatten().map(|hundredths| hundredths / 100.0)
}

fn cores(cell: &str) -> Option<f64> {
    for (unit, part) in [("m", 1e-3), ("u", 1e-6), ("n", 1e-9)] {
        if let Some(figure) = cell.strip_suffix(unit) {
            return Some(number::plain(figure)? * part);
        }
    }
    number::plain(cell)
}
