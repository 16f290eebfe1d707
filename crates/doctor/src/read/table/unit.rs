//! What the cells of a column hold, and how a row is cut into them.

use crate::read::text::number;

/// What stands in a cell that has no figure.
const EMPTY: [&str; 8] = ["-", "?", "*", "N/A", "n/a", "--", "?unavailable?", ""];

/// No machine has more CPUs.
pub(super) const MAX_CPUS: u16 = 4096;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Anything, in one word.
    Word,
    /// Anything, in so many words.
    Words(usize),
    /// The text before a slash (`mysqld/9`).
    UntilSlash,
    /// A whole number, perhaps with a mark.
    Whole,
    /// A figure, perhaps with a decimal suffix or its sign.
    Number,
    /// Percent.
    Percent,
    /// Bytes, with a binary suffix.
    Bytes,
    /// So many bytes each; with a suffix, bytes.
    BytesOf(u32),
    /// Kilobytes, kept as such, also where the cell has a suffix.
    Kilobytes,
    /// Milliseconds, perhaps with their unit.
    Milliseconds,
    /// Milliseconds of a CPU a second, as percent.
    MillisecondsASecond,
    /// CPU time.
    Time,
    /// Seconds, perhaps with their `s`.
    Seconds,
    /// CPUs (`250m` is a quarter of one).
    Cores,
    /// The number of a CPU, or a word for all of them.
    Cpu,
    /// A state.
    State,
    /// A date, of one word or several.
    Date,
    /// Two figures and a slash between them.
    Pair,
}

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// It has no figure.
    Empty,
    /// A figure.
    Figure(f64),
    /// No figure is wanted.
    Word,
    /// It is not what its column says.
    Wrong,
}

/// Whether a cell has nothing.
pub(crate) fn is_empty(cell: &str) -> bool {
    EMPTY.contains(&cell)
}

impl Unit {
    /// What a cell says.
    pub(crate) fn read(self, cell: &str) -> Cell {
        if is_empty(cell) {
            return Cell::Empty;
        }
        let figure = match self {
            Self::Word | Self::Words(_) | Self::UntilSlash | Self::Date | Self::Pair => {
                return Cell::Word;
            }
            Self::State => {
                let is_word = cell.len() <= 12 && !cell.starts_with(|c: char| c.is_ascii_digit());
                return if is_word { Cell::Word } else { Cell::Wrong };
            }
            Self::Cpu => {
                let is_cpu = cell == "all" || cell.parse::<u16>().is_ok_and(|at| at < MAX_CPUS);
                return if is_cpu { Cell::Word } else { Cell::Wrong };
            }
            Self::Whole => whole(cell),
            Self::Number => amount(cell),
            Self::Percent => number::percent(cell).filter(|percent| *percent >= 0.0),
            Self::Bytes => number::bytes(cell),
            Self::BytesOf(bytes) => {
                let plain = number::plain(cell).map(|value| value * f64::from(bytes));
                plain.or_else(|| number::bytes(cell))
            }
            Self::Kilobytes => {
                let plain = number::plain(cell).or_else(|| number::percent(cell));
                plain.or_else(|| number::count(cell).map(|value| value / 1000.0))
            }
            Self::Milliseconds => {
                let plain = number::plain(cell);
                plain.or_else(|| number::seconds(cell).map(|seconds| seconds * 1000.0))
            }
            Self::MillisecondsASecond => number::plain(cell).map(|value| value / 10.0),
            Self::Time => time(cell),
            Self::Seconds => number::plain(cell.trim_end_matches('s')).or_else(|| time(cell)),
            Self::Cores => cores(cell),
        };
        figure.map_or(Cell::Wrong, Cell::Figure)
    }

    /// Whether its cells are figures.
    pub(crate) fn is_of_figures(self) -> bool {
        self.read("x") == Cell::Wrong
    }

    /// Whether a cell is what its column says.
    pub(crate) fn fits(self, cell: &str) -> bool {
        self.read(cell) != Cell::Wrong
    }

    /// How many words at the beginning of `rest` are one cell.
    pub(crate) fn words(self, rest: &str) -> usize {
        let mut words = rest.split_whitespace();
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
            _ => 1,
        }
    }

    /// How many words a cell has that is counted from the end of a row.
    pub(crate) fn words_from_end(self) -> usize {
        match self {
            Self::Words(count) => count,
            Self::Pair => 3,
            _ => 1,
        }
    }
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Whether a word is the unit of the figure before it.
fn is_unit(word: &str) -> bool {
    matches!(word, "%" | "B" | "K" | "M" | "G" | "T" | "ms" | "us")
        || matches!(word, "B/s" | "K/s" | "M/s" | "G/s" | "T/s")
}

/// A whole number; marks of macOS and lists (`123*`, `0-`, `12,`) are no part of it.
fn whole(cell: &str) -> Option<f64> {
    let digits = cell.trim_end_matches(['*', '+', '-', ',']);
    let is_whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let bare = digits.strip_prefix('-').unwrap_or(digits);
    (!bare.is_empty() && bare.len() <= 19 && is_whole(bare)).then(|| digits.parse().ok()).flatten()
}

fn amount(cell: &str) -> Option<f64> {
    number::plain(cell).or_else(|| number::percent(cell)).or_else(|| number::count(cell))
}

/// CPU time; `ps -o times` prints whole seconds.
fn time(cell: &str) -> Option<f64> {
    let cell = cell.trim_end_matches(['+', '-']);
    number::cpu_seconds(cell).or_else(|| cell.parse::<u32>().ok().map(f64::from))
}

fn cores(cell: &str) -> Option<f64> {
    for (unit, part) in [("m", 1e-3), ("u", 1e-6), ("n", 1e-9)] {
        if let Some(figure) = cell.strip_suffix(unit) {
            return Some(number::plain(figure)? * part);
        }
    }
    number::plain(cell)
}
