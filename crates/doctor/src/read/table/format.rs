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
    /// Names of the one column that may hold blanks.
    pub(crate) wide: &'static str,
    /// Names of columns whose cells may be missing.
    pub(crate) missing: &'static str,
    /// Whether cells at the end of a row may be missing.
    pub(crate) may_be_short: bool,
    /// The heading of rows that have lost theirs.
    pub(crate) bare: &'static str,
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
    /// What figures are whose column is not listed.
    pub(crate) others: Kind,
    /// Whether what stands behind the last known column is a time.
    pub(crate) ends_in_time: bool,
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
    heading: HEADING,
    clocked: false,
    needs_clock: false,
    wide: "",
    missing: "",
    may_be_short: false,
    bare: "",
    percent: None,
    programs: false,
    tables: &[],
    rows: Rows::Each,
    boot: Boot::Never,
    others: Kind::Gauge,
    ends_in_time: false,
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
    /// Of the words so many percent are names of columns.
    pub(crate) known_percent: usize,
}

const HEADING: Heading = Heading { all: "", any: "", none: "", known_percent: 0 };

impl Heading {
    /// All of `all`, and one of `any` unless that is empty.
    pub(crate) const fn of(all: &'static str, any: &'static str) -> Self {
        Self { all, any, ..HEADING }
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
    /// The first, unless it was left out by `-y`.
    First,
    /// One that was printed at the moment of its heading.
    WithHeading,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// True at the moment.
    Gauge,
    /// A second.
    Rate,
    /// A rate if its unit says so, else a gauge of this name.
    RateOr(&'static str),
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
    /// What its figures are.
    pub(crate) kind: Kind,
}

/// Where cells go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// Nowhere: they show that a row is of this list.
    Nothing,
    /// A time of day.
    Clock,
    /// What a table is about.
    Scope,
    /// A figure; `table.figure` goes into a table of its own.
    Figure(&'static str),
    /// A figure under its own name.
    Own,
    /// A figure under its own name and `_bytes`.
    OwnBytes,
    /// The load of 1, 5 and 15 minutes.
    Load,
    /// Which CPU: a number, or all of them.
    Cpu,
    /// Parts of the use of a CPU.
    User,
    /// What the kernel uses.
    System,
    /// What is idle.
    Idle,
    /// What waits for disks.
    Wait,
    /// Interrupts.
    Interrupt,
    /// What other machines took.
    Steal,
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
    Column { names, to, unit, kind: Kind::Gauge }
}

/// A figure that is true at the moment.
pub(crate) const fn gauge(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    Column { names, to: To::Figure(figure), unit, kind: Kind::Gauge }
}

/// A figure a second.
pub(crate) const fn rate(names: &'static str, figure: &'static str, unit: Unit) -> Column {
    Column { names, to: To::Figure(figure), unit, kind: Kind::Rate }
}

/// Names of the column with the command, in all languages that tools speak.
pub(crate) const COMMAND: &str =
    "COMMAND|CMD|Command|COMM|ARGS|UCMD|UCOMM|BEFEHL|COM.|ORDEN|COMANDO|COMMANDE|命令";

/// Columns of all lists. `CPU` is the number of a CPU where another column has the percent.
static COLUMNS: [Column; 14] = [
    column("TID|LWP|SPID|PID|Pid|进程号", To::Id, Unit::Whole),
    column("TGID|PID", To::Process, Unit::Whole),
    column("PPID", To::Parent, Unit::Whole),
    column("%CPU|CPU%|WCPU|PCPU|Cpu%|CPU", To::Percent, Unit::Percent),
    column("%system", To::SystemPercent, Unit::Percent),
    column("TIME+|TIME|Time|CPU Time|*+", To::Seconds, Unit::Time),
    column("STAT|S|STATE|Status", To::State, Unit::State),
    column("VSZ|VIRT|SIZE", To::Memory, Unit::Bytes),
    column(COMMAND, To::Command, Unit::Word),
    column("START|STARTED|STIME", To::Nothing, Unit::Date),
    column("%MEM|MEM%", To::Nothing, Unit::Percent),
    column("RES|RSS|SHR", To::Nothing, Unit::Bytes),
    column("NI|C", To::Nothing, Unit::Whole),
    column("TTY|TT", To::Nothing, Unit::Word),
];

impl Format {
    /// All its columns: its own, and those of all lists that go elsewhere.
    pub(crate) fn all_columns(&self) -> impl Iterator<Item = &'static Column> {
        let own = self.columns;
        let is_new = move |column: &&Column| {
            column.to == To::Nothing || own.iter().all(|known| known.to != column.to)
        };
        let shared: &[Column] = if self.percent.is_some() { &COLUMNS } else { &[] };
        own.iter().chain(shared.iter().filter(is_new))
    }

    /// Whether a line begins the table: its heading, or a line above that.
    pub(crate) fn begins(&self, text: &str) -> bool {
        self.above.iter().any(|begin| text.starts_with(begin)) || self.is_heading(text)
    }

    /// Whether a line is the heading.
    pub(crate) fn is_heading(&self, text: &str) -> bool {
        let Heading { all, any, none, known_percent } = &self.heading;
        if text.len() > MAX_HEADING || all.is_empty() && any.is_empty() {
            return false;
        }
        let has = |wanted: &str| text.split(is_gap).any(|word| is_like(wanted, word));
        let wide = |word: &str| rank(self.wide, word).is_some();
        all.split(' ').all(|word| word.is_empty() || has(word))
            && (any.is_empty() || any.split(" & ").all(|group| group.split(' ').any(has)))
            && (self.wide.is_empty() || text.split(is_gap).any(wide))
            && (none.is_empty() || !none.split(' ').any(has))
            && text.split(is_gap).filter(|word| !word.is_empty()).count() >= LEAST_WORDS
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
        self.all_columns().any(|column| rank(column.names, word).is_some())
    }

    fn known_percent(&self, text: &str) -> usize {
        let words: Vec<&str> = text.split(is_gap).filter(|word| !word.is_empty()).collect();
        words.iter().filter(|word| self.is_column(word)).count() * 100 / words.len().max(1)
    }
}

/// Longer lines are no headings.
const MAX_HEADING: usize = 600;
/// Fewer words are none.
const LEAST_WORDS: usize = 3;

/// Whether names of columns end at a character: blanks, bars between groups, and marks of the
/// column that a list is sorted by.
pub(crate) fn is_gap(c: char) -> bool {
    c.is_whitespace() || matches!(c, '|' | '▽' | '△' | '▼' | '▲' | '⯆' | '⯅')
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
