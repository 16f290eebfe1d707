//! What a format of a table is: the words of its heading, its columns, and whose its rows are.
//!
//! Lists of words are one string, divided by blanks; names of a column are one string, divided by
//! bars, of which the first that the heading has counts. A name that begins with `*` is the end of
//! one. `1:sy` is the first of two columns called `sy`.

use super::clock;
use super::unit::Unit;
use crate::read::text::number;

/// A format as data; take [`FORMAT`] for what is not said.
pub(crate) struct Format {
    /// What people call it.
    pub(crate) name: &'static str,
    /// The words by which its heading is known.
    pub(crate) heading: Heading,
    /// Whether a time or a label may stand before the first column.
    pub(crate) clocked: bool,
    /// Whether one must stand before its heading.
    pub(crate) needs_clock: bool,
    /// Names of columns whose cells may be missing.
    pub(crate) missing: &'static str,
    /// Whether cells at the end of a row may be missing.
    pub(crate) may_be_short: bool,
    /// The headings of rows that have lost theirs.
    pub(crate) bare: &'static [&'static str],
    /// Rows are threads or processes, and their percents are of this.
    pub(crate) percent: Option<Percent>,
    /// Rows are programs by their names: neither command lines nor threads of the kernel.
    pub(crate) programs: bool,
    /// The tables that figures go into.
    pub(crate) tables: &'static [&'static str],
    /// What becomes of several rows.
    pub(crate) rows: Rows,
    /// Which rows are means since the start.
    pub(crate) boot: Boot,
    /// Where figures go whose column is not listed.
    pub(crate) others: To,
    /// Whether processes stand beside their own threads, which are left out.
    pub(crate) with_threads: bool,
    /// Whether anything may stand behind the last known column.
    pub(crate) is_open: bool,
    /// Its columns, of which those of all lists follow if rows are threads.
    pub(crate) columns: &'static [Column],
    /// Beginnings of lines that say nothing.
    pub(crate) silent: &'static [&'static str],
    /// Beginnings of lines above the heading: they begin the table, and say nothing more.
    pub(crate) above: &'static [&'static str],
}

/// A format of which nothing is said.
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
    /// All of these are there,
    pub(crate) all: &'static str,
    /// one of each of these groups is, which `&` divides,
    pub(crate) any: &'static str,
    /// and none of these.
    pub(crate) none: &'static str,
    /// This percentage of the words are names of columns.
    pub(crate) known_percent: usize,
}

impl Heading {
    /// All of `all`, and one of `any` unless that is empty.
    pub(crate) const fn of(all: &'static str, any: &'static str) -> Self {
        Self { all, any, none: "", known_percent: 0 }
    }

    /// None of `none`.
    pub(crate) const fn without(self, none: &'static str) -> Self {
        Self { none, ..self }
    }

    /// At least `percent` of the words are names of columns.
    pub(crate) const fn known(self, percent: usize) -> Self {
        Self { known_percent: percent, ..self }
    }
}

/// What the percent of a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Percent {
    /// Of one CPU, while watched.
    OneCpu,
    /// Of all CPUs, while watched.
    AllCpus,
    /// Of one CPU, over the life of the process.
    Life,
}

/// What becomes of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Each is a table.
    Each,
    /// Each is an interval: a table `<table>_row`, and all together their medians.
    Intervals,
    /// The same, with the most of each figure, how many there are and how long one is.
    IntervalsWithMost,
}

/// Which rows are means since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// None.
    Never,
    /// The first of each device or CPU, unless it was left out by `-y`.
    First,
    /// One that was printed at the moment of its heading, and a list by a command that names no
    /// interval.
    WithHeading,
}

/// One column.
#[derive(Debug)]
pub(crate) struct Column {
    /// Its names, the best first.
    pub(crate) names: &'static str,
    /// Where its cells go.
    pub(crate) to: To,
    /// What its cells hold.
    pub(crate) unit: Unit,
}

/// Where cells go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// Nowhere: they show that a row is of this list.
    Nothing,
    /// The function of the kernel in which a thread waits.
    Waits,
    /// A time of day.
    Clock,
    /// What a table is about.
    Scope,
    /// A figure that is true at the moment; `table.figure` goes into a table of its own.
    Gauge(&'static str),
    /// A figure a second.
    Rate(&'static str),
    /// The first if its unit says that it is a second, else the second.
    RateOr(&'static str, &'static str),
    /// A figure under its own name.
    Own,
    /// A figure a second under its own name.
    OwnRate,
    /// A figure under its own name and `_bytes`.
    OwnBytes,
    /// The load of 1, 5 and 15 minutes.
    Load,
    /// Which CPU: a number, or all of them.
    Cpu,
    /// Part of the use of a CPU, which the name of the column tells.
    Used,
    /// All that is used.
    Busy,
    /// The number of a thread or process, threads first.
    Id,
    /// The number of its process, where the list is of threads.
    Process,
    /// The number of its parent.
    Parent,
    /// The command.
    Command,
    /// The letter of a state, or a word.
    State,
    /// Memory; what has none is the kernel's.
    Memory,
    /// Percent of CPU.
    Percent,
    /// Percent of CPU in user space.
    UserPercent,
    /// Percent of CPU in the kernel.
    SystemPercent,
    /// The part of its CPU in user space, percent.
    UserShare,
    /// CPU time, all columns together.
    Seconds,
}

/// A column that is no figure.
pub(crate) const fn column(names: &'static str, to: To, unit: Unit) -> Column {
    Column { names, to, unit }
}

/// A figure that is true at the moment.
pub(crate) const fn gauge(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    column(names, To::Gauge(figure), unit)
}

/// A figure a second.
pub(crate) const fn rate(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    column(names, To::Rate(figure), unit)
}

/// Names of the column with the command, in all languages that tools speak.
pub(crate) const COMMAND: &str =
    "COMMAND|CMD|Command|COMM|ARGS|UCMD|UCOMM|BEFEHL|COM.|ORDEN|COMANDO|COMMANDE|命令";

/// Columns of all lists. `CPU` is the number of a CPU where another column has the percent.
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
    /// Its own columns, and those of all lists that go elsewhere.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().chain(self.shared())
    }

    /// Columns of all lists, if it is one, that go where none of its own goes.
    pub(super) fn shared(&self) -> impl Iterator<Item = &'static Column> {
        let own = self.columns;
        let is_new = move |column: &&Column| {
            column.to == To::Nothing || own.iter().all(|known| known.to != column.to)
        };
        let shared: &[Column] = if self.percent.is_some() { &COLUMNS } else { &[] };
        shared.iter().filter(is_new)
    }

    /// Names of columns that hold blanks.
    pub(super) fn phrases(&self) -> impl Iterator<Item = &'static str> {
        let names = self.columns().flat_map(|column| column.names.split('|'));
        names.filter(|name| name.contains(' '))
    }

    /// Whether a line begins the table: its heading, or a line above that.
    pub(crate) fn begins(&self, text: &str) -> bool {
        self.above.iter().any(|begin| text.starts_with(begin)) || self.is_heading(text)
    }

    /// Words of which each line that begins the table has one; `None` if no word is sure.
    pub(crate) fn naming_words(&self) -> Option<Vec<&'static str>> {
        let Heading { all, any, .. } = self.heading;
        let is_exact = |word: &&str| !word.is_empty() && !word.contains('*');
        let of_all = all.split(' ').find(is_exact).map(|word| vec![word]);
        let of_any = |group: &'static str| {
            let words: Vec<&str> = group.split(' ').collect();
            words.iter().all(is_exact).then_some(words)
        };
        let mut words = of_all.or_else(|| any.split(" & ").find_map(of_any))?;
        // The end of a word is only sure where a blank follows.
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
        let has = |wanted: &str| words.iter().any(|word| is_like(wanted, word));
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

    /// Whether names of columns are all there is, behind what may stand before them.
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

/// Longer lines are no headings.
const MAX_HEADING: usize = 600;
/// Fewer words are none.
const LEAST_WORDS: usize = 3;

/// Whether names of columns end at a character: blanks, bars between groups, boxes and graphs that
/// are drawn, and marks of the column that a list is sorted by.
pub(crate) fn is_gap(c: char) -> bool {
    c.is_whitespace() || c == '|' || is_drawn(c)
}

/// Whether a character is of a box, a graph or a mark.
pub(crate) fn is_drawn(c: char) -> bool {
    matches!(c, '─'..='╿' | '▀'..='▟' | '■'..='◿' | '⠀'..='⣿' | '⯅' | '⯆' | '↑' | '↓')
        || matches!(c, '¹' | '²' | '³' | '⁴')
}

/// The names of a heading.
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
    // The number of a page (`1/29`, `1/1673e4`), the mark of a report (`_cpu_`).
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

/// Which of the names of a column `word` is.
pub(crate) fn rank(names: &str, word: &str) -> Option<usize> {
    names.split('|').position(|name| is_like(name, word))
}

/// Whether a word is `wanted`, or ends or begins as that says (`*/s`, `kb*`).
fn is_like(wanted: &str, word: &str) -> bool {
    if let Some(end) = wanted.strip_prefix('*') {
        word.ends_with(end) && word.len() > end.len()
    } else if let Some(begin) = wanted.strip_suffix('*') {
        word.starts_with(begin) && word.len() > begin.len()
    } else {
        wanted == word
    }
}
