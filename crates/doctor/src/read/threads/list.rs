//! One list of processes or threads under the names of its columns, whatever tool printed it.
//!
//! Tools differ in order and choice of columns, not in what a column is called: one table of names
//! is enough. The command may hold blanks and stand anywhere; everything else is one word.
//!
//! Invariants: a row is taken only if each of its cells is what its column says, so that rows of
//! another list are not read under the wrong names; a column that is not there gives no figure.

use crate::evidence::Thread;
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::frame::{self, short_name};
use crate::read::text::number;
use crate::read::text::reading::Reading;

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

/// Names of the column with the command, in all languages that tools speak.
pub(crate) const COMMANDS: [&str; 13] = [
    "COMMAND", "CMD", "Command", "COMM", "ARGS", "UCMD", "UCOMM", "BEFEHL", "COM.", "ORDEN",
    "COMANDO", "COMMANDE", "命令",
];
/// Names of the column with the number of a thread or process, threads first.
const IDS: [&str; 6] = ["TID", "LWP", "SPID", "PID", "Pid", "进程号"];
/// Names of the column with the percent of CPU; `CPU` alone is a number of a CPU where one of the
/// others is there.
const PERCENTS: [&str; 6] = ["%CPU", "CPU%", "WCPU", "PCPU", "Cpu%", "CPU"];
/// What stands in a cell that has no figure.
const EMPTY: [&str; 6] = ["-", "?", "*", "N/A", "n/a", "--"];
/// The kernel keeps so many bytes of a thread's name.
const MAX_THREAD_NAME: usize = 15;
/// A larger percent is none: no machine has so many CPUs.
const MAX_PERCENT: f64 = 1_000_000.0;

struct Figures {
    state: Option<char>,
    id: Option<u64>,
    process: Option<u64>,
    percent: Option<f64>,
    seconds: Option<f64>,
}

/// The columns of one list.
#[derive(Debug)]
pub(crate) struct List<'h> {
    columns: Columns<'h>,
    command: usize,
    percent: Percent,
    /// Whether commands are names of programs, which may hold blanks, and not command lines.
    named: bool,
}

impl<'h> List<'h> {
    /// The list under a heading; `None` if that names no command.
    pub(crate) fn under(heading: &'h str, percent: Percent) -> Option<Self> {
        Self::of(Columns::of(heading), &COMMANDS, percent)
    }

    /// A list whose columns were told apart already.
    pub(crate) fn of(columns: Columns<'h>, commands: &[&str], percent: Percent) -> Option<Self> {
        let command = columns.position(commands)?;
        Some(Self { columns, command, percent, named: false })
    }

    /// The same list, whose commands are names.
    pub(crate) fn of_names(self) -> Self {
        Self { named: true, ..self }
    }

    /// The cells of a row by blanks.
    pub(crate) fn cells<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        self.columns.cells_around(text, self.command)
    }

    /// A cell of a row by the names of its column.
    pub(crate) fn cell<'t>(&self, cells: &[&'t str], names: &[&str]) -> Option<&'t str> {
        columns::cell(&self.columns, cells, names)
    }

    /// One row; `None` if it is not of this list.
    pub(crate) fn row(&self, text: &str, line: &Line<'_>, reading: &Reading<'_>) -> Option<Thread> {
        self.thread(&self.cells(text)?, line, reading)
    }

    /// Whether a row may be of this list.
    pub(crate) fn fits(&self, text: &str) -> bool {
        self.cells(text).is_some_and(|cells| self.figures(&cells).is_some())
    }

    /// What the cells of a row say; `None` if one of them is not what its column says.
    pub(crate) fn thread(
        &self,
        cells: &[&str],
        line: &Line<'_>,
        reading: &Reading<'_>,
    ) -> Option<Thread> {
        let cell = |names: &[&str]| columns::cell(&self.columns, cells, names);
        let figures = self.figures(cells)?;
        // Trees are drawn in front of the command.
        let raw = cells.get(self.command)?.trim_start_matches(is_branch);
        let (name, dressed) = frame::thread(raw);
        if name.is_empty() || name.len() > 4096 {
            return None;
        }
        // A process that has ended is dressed like a thread of the kernel, and has no memory.
        let ended = figures.state == Some('Z') || raw.ends_with("<defunct>");
        let no_memory = cell(&["VSZ", "VIRT"]) == Some("0");
        let child = self.percent != Percent::OneCpu && cell(&["PPID"]) == Some("2");
        let kernel = dressed.or((no_memory || child).then_some(true)).filter(|_| !ended);
        let mut thread = reading.thread(self.name(&name), line);
        thread.command = (name.contains(' ') && !self.named).then(|| name.clone());
        thread.id = figures.id;
        thread.process =
            figures.process.filter(|_| cell(&["TID", "LWP", "SPID", "TGID"]).is_some());
        thread.kernel = kernel;
        thread.state = figures.state;
        thread.cpu_time_s = figures.seconds;
        match self.percent {
            Percent::OneCpu => thread.cpu_percent = figures.percent,
            Percent::AllCpus => thread.machine_percent = figures.percent,
            Percent::Life => thread.life_percent = figures.percent,
        }
        Some(thread)
    }

    /// The figures of a row; `None` if a cell is not what its column says.
    fn figures(&self, cells: &[&str]) -> Option<Figures> {
        let state = columns::cell(&self.columns, cells, &["STAT", "S", "STATE", "Status"]);
        let state = match state.filter(|state| !EMPTY.contains(state)) {
            Some(state) => Some(state_letter(state)?),
            None => None,
        };
        Some(Figures {
            state,
            id: self.id(&IDS, cells)?,
            process: self.id(&["TGID", "PID"], cells)?,
            percent: self.percent(cells)?,
            seconds: self.seconds(cells)?,
        })
    }

    fn name(&self, name: &str) -> String {
        // Bundles of macOS have blanks in their paths.
        if let Some((_, program)) = name.rsplit_once(".app/Contents/MacOS/") {
            return program.split(" -").next().unwrap_or(program).to_owned();
        }
        let of_threads = self.columns.position(&["TID", "LWP", "SPID"]).is_some();
        if self.named { name.to_owned() } else { name_of(name, of_threads) }
    }

    /// The number under the first of `names`: outer `None` where the cell holds something else.
    fn id(&self, names: &[&str], cells: &[&str]) -> Option<Option<u64>> {
        for name in names {
            let Some(cell) = columns::cell(&self.columns, cells, &[name]) else { continue };
            if EMPTY.contains(&cell) {
                continue;
            }
            return Some(Some(cell.trim_end_matches(['*', '+', '-', ',']).parse().ok()?));
        }
        Some(None)
    }

    /// The percent of CPU: outer `None` where the cell holds something else.
    fn percent(&self, cells: &[&str]) -> Option<Option<f64>> {
        let found = PERCENTS.iter().find_map(|name| columns::cell(&self.columns, cells, &[name]));
        let of_life = || columns::cell(&self.columns, cells, &["C"]);
        let found = found.or_else(|| of_life().filter(|_| self.percent == Percent::Life));
        match found {
            Some(cell) if !EMPTY.contains(&cell) => {
                let percent = number::percent(cell)?;
                (0.0..MAX_PERCENT).contains(&percent).then_some(Some(percent))
            }
            _ => Some(None),
        }
    }

    /// The CPU time: outer `None` where there is such a column and no cell of it is a time.
    fn seconds(&self, cells: &[&str]) -> Option<Option<f64>> {
        let named = self.columns.names().iter().zip(cells);
        let times = named.filter(|(name, _)| {
            matches!(**name, "TIME" | "TIME+" | "Time" | "CPU Time") || name.ends_with('+')
        });
        let mut found = None;
        let mut whole = None;
        let mut any = false;
        for (_, cell) in times {
            any = true;
            let cell = cell.trim_end_matches('+');
            if EMPTY.contains(&cell) {
                return Some(None);
            }
            found = number::cpu_seconds(cell).or(found);
            whole = cell.parse::<u32>().ok().map(f64::from).or(whole);
        }
        // `ps -o times` prints whole seconds.
        let found = found.or(whole.filter(|_| self.percent == Percent::Life));
        (found.is_some() || !any).then_some(found)
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

/// The letter of a state: FreeBSD names the wait channel of what sleeps, macOS and Windows have
/// words. `None` if it is no state.
fn state_letter(state: &str) -> Option<char> {
    let first = state.chars().next()?;
    match state {
        "running" | "Running" | "RUN" => Some('R'),
        "stuck" => Some('D'),
        "stopped" | "Suspended" => Some('T'),
        "zombie" => Some('Z'),
        _ if first.is_ascii_uppercase() && state.len() <= 6 => Some(first),
        _ if state.starts_with("sleep") || state == "idle" => Some('S'),
        _ => None,
    }
}
