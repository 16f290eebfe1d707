//! A row of a list of threads or processes, whatever tool printed it.
//!
//! Tools differ in order and choice of columns, not in what a column is called: one table of names
//! is enough, beside which a format lists what only it has. The command may hold blanks and stand
//! anywhere.
//!
//! Invariants: a column that is not there gives no figure; a state that is none, and a number that
//! is none, make a row one of another list.

use std::rc::Rc;

pub(crate) use super::format::Percent;
use super::format::{COMMAND, FORMAT, Format, To, column};
use super::layout::Layout;
use super::unit::{self, Cell, Unit};
use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::frame::{self, short_name};
use crate::read::text::reading::Reading;

/// Names of the column with the command, in all languages that tools speak.
pub(crate) const COMMANDS: [&str; 13] = [
    "COMMAND", "CMD", "Command", "COMM", "ARGS", "UCMD", "UCOMM", "BEFEHL", "COM.", "ORDEN",
    "COMANDO", "COMMANDE", "命令",
];
/// A list of any tool, known by the names of its columns.
const ANY: Format = Format { wide: COMMAND, ..FORMAT };
static OF_ONE_CPU: Format = Format { percent: Some(Percent::OneCpu), ..ANY };
/// `ps -ef` calls the percent `C`.
static OF_LIFE: Format = Format {
    percent: Some(Percent::Life),
    columns: &[column("%CPU|CPU%|WCPU|PCPU|Cpu%|CPU|C", To::Percent, Unit::Percent)],
    ..ANY
};

/// The kernel keeps so many bytes of a thread's name.
const MAX_THREAD_NAME: usize = 15;
/// Longer commands are none.
const MAX_COMMAND: usize = 4096;

/// The columns of one list.
#[derive(Debug, Clone)]
pub(crate) struct List<'h> {
    layout: Rc<Layout<'h>>,
    percent: Percent,
    /// Whether commands are names of programs, which may hold blanks, and not command lines.
    named: bool,
    /// Whether its rows are of threads.
    of_threads: bool,
}

impl<'h> List<'h> {
    /// The list under a heading; `None` if that names no command.
    pub(crate) fn under(heading: &'h str, percent: Percent) -> Option<Self> {
        let format = if percent == Percent::Life { &OF_LIFE } else { &OF_ONE_CPU };
        let layout = Layout::under(format, heading);
        layout.wide()?;
        Some(Self::new(Rc::new(layout), percent, false))
    }

    /// The same list, whose commands are names of programs.
    pub(crate) fn of_names(self) -> Self {
        Self { named: true, ..self }
    }

    /// The list of a layout.
    pub(super) fn new(layout: Rc<Layout<'h>>, percent: Percent, named: bool) -> Self {
        let of_threads = layout.names().iter().any(|name| matches!(*name, "TID" | "LWP" | "SPID"));
        Self { layout, percent, named, of_threads }
    }

    /// The cells of a row.
    pub(crate) fn cells<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        self.layout.cells(text)
    }

    /// A cell of a row by the names of its column.
    pub(crate) fn cell<'t>(&self, cells: &[&'t str], names: &[&str]) -> Option<&'t str> {
        self.layout.cell(cells, names)
    }

    /// One row; `None` if it is not of this list.
    pub(crate) fn row(&self, text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
        self.thread(&self.cells(text)?, line, reading)
    }

    /// Whether a row may be of this list.
    pub(crate) fn fits(&self, text: &str) -> bool {
        self.cells(text).is_some_and(|cells| self.is_row(&cells))
    }

    /// The first cell that is not empty of what goes to `to`.
    pub(super) fn first<'t>(&self, to: To, cells: &[&'t str]) -> Option<&'t str> {
        let places = self.layout.places(to).iter();
        let mut found = places.filter_map(|at| cells.get(*at).copied());
        found.find(|cell| !unit::is_empty(cell))
    }

    fn figure(&self, to: To, cells: &[&str]) -> Option<f64> {
        let at = self.layout.places(to).iter().find(|at| !unit::is_empty(cells[**at]))?;
        match (self.layout.unit(*at), self.layout.unit(*at).read(cells[*at])) {
            (Unit::Cores, Cell::Figure(cpus)) => Some(cpus * 100.0),
            (_, Cell::Figure(value)) => Some(value),
            _ => None,
        }
    }

    /// The process whose threads stand below this row.
    pub(super) fn process_of_threads(&self, cells: &[&str]) -> Option<u64> {
        let thread = self.layout.cell(cells, &["TID"])?;
        let process = self.layout.cell(cells, &["TGID"])?;
        unit::is_empty(thread).then(|| process.parse().ok()).flatten()
    }

    /// Whether cells that fit their columns are a row of a list.
    pub(super) fn is_row(&self, cells: &[&str]) -> bool {
        let state = self.first(To::State, cells);
        let is_state = state.is_none_or(|state| self.state(state).is_some());
        is_state && self.first(To::Command, cells).is_some_and(|raw| raw.len() <= MAX_COMMAND)
    }

    /// What the cells of a row say; `None` if it is not of this list.
    pub(crate) fn thread(
        &self,
        cells: &[&str],
        line: &Line<'_>,
        reading: &Reading<'_>,
    ) -> Option<Thread> {
        if !self.is_row(cells) {
            return None;
        }
        let id = self.first(To::Id, cells).map(|id| id.trim_end_matches(['*', '+', '-', ',']));
        // Numbers below zero are of sums.
        let id: Option<u64> = match id {
            Some(id) => Some(id.parse().ok()?),
            None => None,
        };
        // Trees are drawn in front of the command.
        let raw = self.first(To::Command, cells)?;
        let raw = raw.trim_start_matches(is_branch);
        let of = self.layout.places(To::Command).first().map(|at| self.layout.unit(*at));
        let raw = match raw.split_once('/') {
            Some((name, _)) if of == Some(Unit::UntilSlash) => name,
            _ => raw,
        };
        let (name, dressed) = if self.named { (raw.to_owned(), None) } else { frame::thread(raw) };
        if name.is_empty() {
            return None;
        }
        let state = self.first(To::State, cells).and_then(|state| self.state(state));
        let mut thread = reading.thread(self.name(&name), line);
        let has_more = name.contains(' ') && name != thread.name;
        thread.command = has_more.then(|| name.clone());
        thread.id = id;
        thread.process = self.process(cells);
        // The kernel is one task on macOS, and no container is it.
        let is_kernel = || Some(name == "kernel_task");
        thread.kernel =
            if self.named { is_kernel() } else { self.kernel(raw, dressed, state, cells) };
        thread.state = state;
        thread.cpu_time_s = self.seconds(cells);
        self.percents(&mut thread, cells);
        Some(thread)
    }

    fn process(&self, cells: &[&str]) -> Option<u64> {
        let names = self.layout.names();
        let of_threads = self.of_threads || names.contains(&"TGID");
        self.first(To::Process, cells).filter(|_| of_threads)?.parse().ok()
    }

    fn kernel(
        &self,
        raw: &str,
        dressed: Option<bool>,
        state: Option<char>,
        cells: &[&str],
    ) -> Option<bool> {
        // A process that has ended is dressed like a thread of the kernel, and has no memory.
        let ended = state == Some('Z') || raw.ends_with("<defunct>");
        let no_memory = self.first(To::Memory, cells) == Some("0");
        let child = self.percent != Percent::OneCpu && self.first(To::Parent, cells) == Some("2");
        dressed.or((no_memory || child).then_some(true)).filter(|_| !ended)
    }

    /// CPU time: the first column that has one, or the parts that make it up.
    fn seconds(&self, cells: &[&str]) -> Option<f64> {
        let parts = self.layout.places(To::Seconds).iter();
        let mut found = parts.filter_map(|at| match self.layout.unit(*at) {
            unit @ (Unit::Time | Unit::Seconds) => Some((unit, unit.read(cells[*at]))),
            _ => None,
        });
        match found.next()? {
            // atop counts the kernel's part and the program's apart.
            (Unit::Seconds, Cell::Figure(first)) => {
                let rest = found.filter_map(|(_, cell)| match cell {
                    Cell::Figure(value) => Some(value),
                    _ => None,
                });
                Some(first + rest.sum::<f64>()).filter(|time| *time > 0.0)
            }
            (_, Cell::Figure(value)) => Some(value),
            _ => None,
        }
    }

    fn percents(&self, thread: &mut Thread, cells: &[&str]) {
        let user = self.figure(To::UserPercent, cells);
        let system = self.figure(To::SystemPercent, cells);
        let percent = self.figure(To::Percent, cells);
        // Of some lists only the parts are shown.
        let sum = user.zip(system).map(|(user, system)| user + system);
        let percent = percent.filter(|_| sum.is_none()).or(sum);
        let user_share = self.figure(To::UserShare, cells);
        let by_share =
            percent.zip(user_share).map(|(percent, user)| percent * (1.0 - user / 100.0));
        thread.system_percent = system.or(by_share.filter(|system| *system >= 0.0));
        match self.percent {
            Percent::OneCpu => thread.cpu_percent = percent,
            Percent::AllCpus => thread.machine_percent = percent,
            Percent::Life => thread.life_percent = percent,
        }
    }

    fn name(&self, name: &str) -> String {
        // Bundles of macOS have blanks in their paths.
        if let Some((_, program)) = name.rsplit_once(".app/Contents/MacOS/") {
            return program.split(" -").next().unwrap_or(program).to_owned();
        }
        if self.named { name.to_owned() } else { name_of(name, self.of_threads) }
    }

    /// The letter of a state: FreeBSD names the wait channel of what sleeps, others have words.
    fn state(&self, state: &str) -> Option<char> {
        let first = state.chars().next()?;
        let is_letters = first.is_ascii_uppercase() && state.len() <= 6;
        match state {
            "running" | "Running" | "RUN" => Some('R'),
            "stuck" => Some('D'),
            "stopped" | "Suspended" => Some('T'),
            "zombie" => Some('Z'),
            _ if state.starts_with("CPU") || state.starts_with("cpu") => Some('R'),
            _ if is_letters && (state.len() == 1 || self.has_letters()) => Some(first),
            _ if state.starts_with("sleep") || state == "idle" || !self.has_letters() => Some('S'),
            _ => None,
        }
    }

    /// Whether states are letters and not words.
    fn has_letters(&self) -> bool {
        !self.layout.names().iter().any(|name| matches!(*name, "STATE" | "Status"))
    }
}

/// The name in a command; those of threads may hold blanks (`GC Thread#0`), and are short.
pub(crate) fn name_of(command: &str, of_thread: bool) -> String {
    let is_line = command.len() > MAX_THREAD_NAME
        || command.starts_with('/')
        || command.contains(" -")
        || command.contains(": ");
    if of_thread && !is_line {
        command.to_owned()
    } else {
        // `sshd: user`, of which `awk` left the first word.
        short_name(command).trim_end_matches(':').to_owned()
    }
}

/// Whether a character belongs to a tree that is drawn in front of a command.
pub(crate) fn is_branch(c: char) -> bool {
    matches!(c, '\\' | '_' | '|' | ' ' | '`' | '-' | '+' | '├' | '└' | '─' | '│' | '┬' | '┌' | '╴')
}
