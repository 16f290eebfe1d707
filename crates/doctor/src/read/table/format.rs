//! A format of a table: the words of its heading, its columns, and the kind of its rows.
//!
//! A list of words is one string, separated by blanks. The names of a column are one string,
//! separated by bars; the first one in the heading counts. A name that begins with `*` matches the
//! end of a word. `1:sy` is the first of two columns called `sy`.

use super::clock;
use super::unit::Unit;
use crate::read::text::number;

/// A format as data; [`FORMAT`] has the defaults.
pub(crate) struct Format {
    /// Its usual name.
    pub(crate) name: &'static str,
    /// The words that identify its heading.
    pub(crate) heading: Heading,
    /// Whether a time or a label may precede the first column.
    pub(crate) clocked: bool,
    /// Whether a time or a label must precede its heading.
    pub(crate) needs_clock: bool,
    /// Names of columns whose cells may be missing.
    pub(crate) missing: &'static str,
    /// Whether cells at the end of a row may be missing.
    pub(crate) may_be_short: bool,
    /// Headings for rows without one.
    pub(crate) bare: &'static [&'static str],
    /// Set if rows are threads or processes: the base of their percents.
    pub(crate) percent: Option<Percent>,
    /// Whether rows name programs, not command lines or threads of the kernel.
    pub(crate) programs: bool,
    /// The tables that figures go into.
    pub(crate) tables: &'static [&'static str],
    /// How several rows are combined.
    pub(crate) rows: Rows,
    /// Which rows are averages since boot.
    pub(crate) boot: Boot,
    /// The destination of columns that are not listed.
    pub(crate) others: To,
    /// Whether the list shows processes and also their threads; the threads are dropped.
    pub(crate) with_threads: bool,
    /// Whether text may follow the last known column.
    pub(crate) is_open: bool,
    /// Its columns. If rows are threads, the columns of all lists come after them.
    pub(crate) columns: &'static [Column],
    /// Beginnings of lines without information.
    pub(crate) silent: &'static [&'static str],
    /// Beginnings of lines above the heading: they begin the table and have no other information.
    pub(crate) above: &'static [&'static str],
}

/// The defaults of a format.
pub(crate) const FORMAT: Format = Format {
    name: "",
    heading: Heading::of("", ""),
    clocked: false,
    needs_clock: false,
    missing: "",
    may_be_short: false,
    bare: &[],
    percent: None,
    programs: false,
    tables: &[],
    rows: Rows::Each,
    boot: Boot::Never,
    others: To::Own,
    with_threads: false,
    is_open: false,
    columns: &[],
    silent: &[],
    above: &[],
};

/// The words of a heading.
pub(crate) struct Heading {
    /// All of these words are present,
    pub(crate) all: &'static str,
    /// and one word of each of these groups, separated by `&`,
    pub(crate) any: &'static str,
    /// and none of these.
    pub(crate) none: &'static str,
    /// At least this percentage of the words are names of columns.
    pub(crate) known_percent: usize,
}

impl Heading {
    /// All of `all`, and one of `any` unless that is empty.
    pub(crate) const fn of(all: &'static str, any: &'static str) -> Self {
        Self { all, any, none: "", known_percent: 0 }
    }

    /// Adds words that must be absent.
    pub(crate) const fn without(self, none: &'static str) -> Self {
        Self { none, ..self }
    }

    /// Requires that `percent` of the words are names of columns.
    pub(crate) const fn known(self, percent: usize) -> Self {
        Self { known_percent: percent, ..self }
    }
}

/// The base of a list's percents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Percent {
    /// Of one CPU, during the interval.
    OneCpu,
    /// Of all CPUs, during the interval.
    AllCpus,
    /// Of one CPU, over the life of the process.
    Life,
}

/// How several rows are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Each is a table of its own.
    Each,
    /// Each is an interval and becomes a table `<table>_row`; the table has their medians.
    Intervals,
    /// As above, with the maximum of each figure, the number of intervals and their length.
    IntervalsWithMost,
}

/// Which rows are averages since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// None.
    Never,
    /// The first of each device or CPU, unless `-y` omitted it.
    First,
    /// A row with the same time as its heading, and a list from a command without an interval.
    WithHeading,
}

/// One column.
#[derive(Debug)]
pub(crate) struct Column {
    /// Its names, the best first.
    pub(crate) names: &'static str,
    /// The destination of its cells.
    pub(crate) to: To,
    /// The unit of its cells.
    pub(crate) unit: Unit,
}

/// The destination of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// Nowhere: they only identify a row of this list.
    Nothing,
    /// The kernel function in which a thread waits.
    Waits,
    /// A time of day.
    Clock,
    /// The subject of a table, such as a device.
    Scope,
    /// A momentary figure; `table.figure` goes into a table of its own.
    Gauge(&'static str),
    /// A figure per second.
    Rate(&'static str),
    /// The first name if the unit is per second, else the second.
    RateOr(&'static str, &'static str),
    /// A figure under its own name.
    Own,
    /// A figure per second under its own name.
    OwnRate,
    /// A figure under its own name with `_bytes`.
    OwnBytes,
    /// The load of 1, 5 and 15 minutes.
    Load,
    /// The CPU: a number, or all of them.
    Cpu,
    /// A part of the use of a CPU; the column's name says which.
    Used,
    /// The total use of a CPU.
    Busy,
    /// The number of a thread or process, threads first.
    Id,
    /// The number of the process, in a list of threads.
    Process,
    /// The number of its parent.
    Parent,
    /// The command.
    Command,
    /// The letter of a state, or a word.
    State,
    /// Memory; a row without any is the kernel's.
    Memory,
    /// Percent of CPU.
    Percent,
    /// Percent of CPU in user space.
    UserPercent,
    /// Percent of CPU in the kernel.
    SystemPercent,
    /// The user share of its CPU, in percent.
    UserShare,
    /// CPU time, the sum of all such columns.
    Seconds,
}

/// A column without a figure.
pub(crate) const fn column(names: &'static str, to: To, unit: Unit) -> Column {
    Column { names, to, unit }
}

/// A momentary figure.
pub(crate) const fn gauge(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    column(names, To::Gauge(figure), unit)
}

/// A figure per second.
pub(crate) const fn rate(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    column(names, To::Rate(figure), unit)
}

/// Names of the command column, in every language of these tools.
pub(crate) const COMMAND: &str =
    "COMMAND|CMD|Command|COMM|ARGS|UCMD|UCOMM|BEFEHL|COM.|ORDEN|COMANDO|COMMANDE|命令";

/// Columns of all lists. `CPU` is the number of a CPU if another column has the percent.
static COLUMNS: [Column; 15] = [
    column("TID|LWP|SPID|PID|Pid|进程号", To::Id, Unit::Whole),
    column("TGID|PID", To::Process, Unit::Whole),
    column("PPID", To::Parent, Unit::Whole),
    column("%CPU|CPU%|WCPU|PCPU|Cpu%|CPU", To::Percent, Unit::Percent),
    column("%system", To::SystemPercent, Unit::Percent),
    column("TIME+|TIME|Time|CPU Time|*+", To::Seconds, Unit::Time),
    column("STAT|S|STATE|Status", To::State, Unit::State),
    column("VSZ|VIRT|SIZE", To::Memory, Unit::Bytes),
    column(COMMAND, To::Command, Unit::Text),
    column("WCHAN|MWCHAN|NWCHAN", To::Waits, Unit::Word),
    column("START|STARTED|STIME", To::Nothing, Unit::Date),
    column("%MEM|MEM%", To::Nothing, Unit::Percent),
    column("RES|RSS|SHR", To::Nothing, Unit::Bytes),
    column("NI|C", To::Nothing, Unit::Whole),
    column("TTY|TT", To::Nothing, Unit::Word),
];

impl Format {
    /// Its own columns, then those of all lists that have another destination.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().chain(self.shared())
    }

    /// If it is a list, the columns of all lists whose destination none of its own has.
    pub(super) fn shared(&self) -> impl Iterator<Item = &'static Column> {
        let own = self.columns;
        let is_new = move |column: &&Column| {
            column.to == To::Nothing || own.iter().all(|known| known.to != column.to)
        };
        let shared: &[Column] = if self.percent.is_some() { &COLUMNS } else { &[] };
        shared.iter().filter(is_new)
    }

    /// Names of columns that contain blanks.
    pub(super) fn phrases(&self) -> impl Iterator<Item = &'static str> {
        let names = self.columns().flat_map(|column| column.names.split('|'));
        names.filter(|name| name.contains(' '))
    }

    /// Whether a line begins the table: its heading, or a line above the heading.
    pub(crate) fn begins(&self, text: &str) -> bool {
        self.above.iter().any(|begin| text.starts_with(begin)) || self.is_heading(text)
    }

    /// Words of which every first line of the table has one; `None` if there are no such words.
    pub(crate) fn naming_words(&self) -> Option<Vec<&'static str>> {
        let Heading { all, any, .. } = self.heading;
        let is_exact = |word: &&str| !word.is_empty() && !word.contains('*');
        let of_all = all.split(' ').find(is_exact).map(|word| vec![word]);
        let of_any = |group: &'static str| {
            let words: Vec<&str> = group.split(' ').collect();
            words.iter().all(is_exact).then_some(words)
        };
        let mut words = of_all.or_else(|| any.split(" & ").find_map(of_any))?;
        // A word at the end of such a beginning may be cut; one before a blank is whole.
        let above: Option<Vec<_>> = self.above.iter().map(|begin| begin.split_once(' ')).collect();
        words.extend(above?.iter().map(|(word, _)| word));
        Some(words)
    }

    /// Whether a line is the heading.
    pub(crate) fn is_heading(&self, text: &str) -> bool {
        let Heading { all, any, none, known_percent } = &self.heading;
        if text.len() > MAX_HEADING || all.is_empty() && any.is_empty() {
            return false;
        }
        let words: Vec<&str> = text.split(is_gap).filter(|word| !word.is_empty()).collect();
        let has = |name: &str| words.iter().any(|word| is_like(name, word));
        let is_command = |column: &Column| {
            let is_there = |name: &str| has(name) || name.contains(' ') && text.contains(name);
            column.to == To::Command && column.names.split('|').any(is_there)
        };
        let least = if *known_percent == 100 { 2 } else { LEAST_WORDS };
        words.len() >= least
            && all.split(' ').all(|word| word.is_empty() || has(word))
            && (any.is_empty() || any.split(" & ").all(|group| group.split(' ').any(has)))
            && (none.is_empty() || !none.split(' ').any(has))
            && (self.percent.is_none() || self.columns().any(is_command))
            && (*known_percent == 0 || self.known_percent(text) >= *known_percent)
            && self.has_no_figures(text)
    }

    /// Whether a line has only names of columns, after a time or label.
    fn has_no_figures(&self, text: &str) -> bool {
        let names = if self.clocked {
            let (names, _) = clock::of_heading(text, |word| self.is_column(word));
            if self.needs_clock && names.len() == text.trim().len() {
                return false;
            }
            names
        } else {
            text
        };
        names.split(is_gap).all(|word| number::plain(word).is_none())
    }

    /// Whether a word is the name of a column.
    pub(super) fn is_column(&self, word: &str) -> bool {
        self.columns().any(|column| rank(column.names, word).is_some())
    }

    fn known_percent(&self, text: &str) -> usize {
        let names = names(text, self);
        names.iter().filter(|name| self.is_column(name)).count() * 100 / names.len().max(1)
    }
}

/// Longer lines are not headings.
const MAX_HEADING: usize = 600;
/// A heading has at least this many words.
const LEAST_WORDS: usize = 3;

/// Whether a character separates names of columns: blanks, bars between groups, drawn boxes and
/// graphs, and the mark of the sorted column.
pub(crate) fn is_gap(c: char) -> bool {
    c.is_whitespace() || c == '|' || is_drawn(c)
}

/// Whether a character is part of a box, a graph or a mark.
pub(crate) fn is_drawn(c: char) -> bool {
    matches!(c, '─'..='╿' | '▀'..='▟' | '■'..='◿' | '⠀'..='⣿' | '⯅' | '⯆' | '↑' | '↓')
        || matches!(c, '¹' | '²' | '³' | '⁴')
}

/// The names in a heading.
pub(super) fn names<'h>(heading: &'h str, format: &Format) -> Vec<&'h str> {
    let phrases: Vec<&str> = format.phrases().collect();
    if !phrases.is_empty() && heading.contains('\t') {
        return heading.split('\t').map(str::trim).collect();
    }
    let mut found = Vec::new();
    let mut rest = heading.trim_matches(is_gap);
    while !rest.is_empty() {
        let phrase = phrases.iter().filter(|name| rest.starts_with(**name)).map(|name| name.len());
        let end = phrase.max().or_else(|| rest.find(is_gap)).unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_gap);
    }
    // The number of a page (`1/29`, `1/1673e4`) or the mark of a report (`_cpu_`).
    let is_page =
        |(page, of): (&str, &str)| page.parse::<u32>().is_ok() && of.parse::<f64>().is_ok();
    let is_mark = |word: &&str| {
        word.starts_with('_') && word.ends_with('_') || word.split_once('/').is_some_and(is_page)
    };
    if found.last().is_some_and(is_mark) {
        found.pop();
    }
    found
}

/// The position of `word` among the names of a column.
pub(crate) fn rank(names: &str, word: &str) -> Option<usize> {
    names.split('|').position(|name| is_like(name, word))
}

/// Whether a word matches `name`, which may be an end or a beginning (`*/s`, `kb*`).
fn is_like(name: &str, word: &str) -> bool {
    if let Some(end) = name.strip_prefix('*') {
        word.ends_with(end) && word.len() > end.len()
    } else if let Some(begin) = name.strip_suffix('*') {
        word.starts_with(begin) && word.len() > begin.len()
    } else {
        name == word
    }
}
