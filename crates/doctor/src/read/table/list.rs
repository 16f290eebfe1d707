//! A row of a list of threads or processes, of any tool.
//!
//! Tools differ in order and choice of columns, but not in their names. One table of names
//! therefore suffices, and a format lists only what the tool alone has. The command may contain
//! blanks and stand in any column.
//!
//! Invariants: a missing column gives no figure. A row with an invalid state or number belongs to
//! another list.

use std::collections::HashMap;

use super::format::{Percent, To};
use super::layout::Layout;
use super::unit::{self, Unit};
use crate::evidence::{Frame, KernelStack, Thread};
use crate::read::text::clean::Line;
use crate::read::text::frame::{self, short_name};
use crate::read::text::reading::Reading;

/// Length of a thread's name in the kernel.
const MAX_THREAD_NAME: usize = 15;
/// Longer texts are not commands.
const MAX_COMMAND: usize = 4096;
/// Names of the kernel where it counts as one program with all its threads.
const KERNELS: [&str; 5] = ["kernel_task", "System", "system", "System interrupts", "Interrupts"];
/// Names of idle time where a tool lists it as a program.
const IDLE: [&str; 5] = ["Idle", "idle", "System Idle Process", "_Total", "_total"];

/// The process whose threads follow a row.
pub(super) fn process_of_threads(layout: &Layout<'_>, cells: &[&str]) -> Option<u64> {
    let shown = layout.has(&["TID"]) && layout.has(&["TGID"]);
    let is_thread = layout.cells_of(To::Id, cells).count() > 0;
    let process = layout.cell(To::Process, cells).filter(|_| shown && !is_thread)?;
    process.parse().ok()
}

/// Whether cells that fit their columns are a row of a list.
pub(super) fn is_row(layout: &Layout<'_>, cells: &[&str]) -> bool {
    let command = layout.cell(To::Command, cells);
    command.is_some_and(|command| command.len() <= MAX_COMMAND)
        && layout.cell(To::State, cells).is_none_or(|word| state(layout, word).is_some())
        && cells.iter().filter(|cell| !unit::is_empty(cell)).count() > 1
}

/// The thread of a row; `None` if the row is not of this list.
pub(super) fn thread(
    layout: &Layout<'_>,
    cells: &[&str],
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Option<Thread> {
    let id = layout.cell(To::Id, cells).map(|id| id.trim_end_matches(['*', '+', '-', ',']));
    // Negative numbers belong to rows of sums.
    let id: Option<u64> = id.map(str::parse).transpose().ok()?;
    let (unit, raw) = layout.cells_of(To::Command, cells).next()?;
    let raw =
        raw.split_once('/').filter(|_| unit == Unit::UntilSlash).map_or(raw, |(name, _)| name);
    let mut thread = if layout.format.programs {
        program(raw, line, reading)
    } else {
        // Trees are drawn before the command.
        let (name, is_kernel) = frame::thread(raw.trim_start_matches(is_branch));
        let mut thread = reading.thread(name_of(&name, of_threads(layout)), line);
        thread.kernel = is_kernel;
        thread.command = Some(name).filter(|name| name.contains(' ') && *name != thread.name);
        thread
    };
    if thread.name.is_empty() {
        return None;
    }
    thread.id = id;
    let has_process = of_threads(layout) || layout.has(&["TGID"]);
    thread.process =
        layout.cell(To::Process, cells).filter(|_| has_process).and_then(|id| id.parse().ok());
    thread.state = layout.cell(To::State, cells).and_then(|word| state(layout, word));
    if thread.kernel.is_none() {
        let no_memory = layout.cell(To::Memory, cells) == Some("0");
        let child = layout.format.percent != Some(Percent::OneCpu)
            && layout.cell(To::Parent, cells) == Some("2");
        thread.kernel = (no_memory || child).then_some(true);
    }
    // A process that has ended has no memory and is bracketed like a thread of the kernel.
    let ended = thread.state == Some('Z') || raw.ends_with("<defunct>");
    thread.kernel = thread.kernel.filter(|_| !ended);
    thread.cpu_time_s = seconds(layout, cells);
    percents(layout, &mut thread, cells);
    Some(thread)
}

/// A program by its name.
pub(crate) fn program(name: &str, line: &Line<'_>, reading: &Reading<'_>) -> Thread {
    // Programs of one name are numbered (`chrome#3`) or counted (`Google Chrome (12)`).
    let name = name.split('#').next().unwrap_or(name).trim();
    let counted = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    let name = counted.filter(|(_, count)| count.parse::<u32>().is_ok()).map_or(name, |one| one.0);
    let kernel = Some(KERNELS.contains(&name));
    Thread { kernel, ..reading.thread(name.to_owned(), line) }
}

/// Whether a row of programs is idle time.
pub(crate) fn is_idle(name: &str) -> bool {
    IDLE.contains(&name)
}

/// Records where a thread in uninterruptible sleep waits, as a stack of one frame. Other threads
/// sleep because they have no work, so their place is no evidence.
pub(crate) fn note_wait(thread: &Thread, channel: &str, reading: &mut Reading<'_>) {
    // A condition variable or the scheduler shows that it waits, but not for what.
    let is_any = ["cv_", "schedule"].iter().any(|begin| channel.starts_with(begin));
    if thread.state != Some('D') || is_any || channel == "do_wait" {
        return;
    }
    // `-` and `0` mean unknown, and old kernels cut names to a few letters.
    if let Some(symbol) = frame::symbol_name(channel).filter(|name| name.len() > 3) {
        reading.evidence.kernel_stacks.push(KernelStack {
            thread: Some(thread.name.clone()),
            count: 1,
            frames: vec![Frame { symbol: Some(symbol), module: None, kernel: Some(true) }],
            source: thread.source.clone(),
        });
    }
}

/// Which rows are threads of a process in the same list. Among rows with the same owner and memory,
/// one that uses as much as the others together is the process.
pub(super) fn are_threads(layout: &Layout<'_>, rows: &[&[&str]]) -> Vec<bool> {
    let memory = |cells: &[&str]| -> Option<String> {
        let place = |name: &&str| layout.names.iter().position(|other| other == name);
        let places =
            ["USER", "VIRT", "RES", "SHR"].iter().map(place).collect::<Option<Vec<_>>>()?;
        let is_own = layout.format.with_threads && cells[places[1]] != "0";
        is_own.then(|| places.iter().map(|at| cells[*at]).collect())
    };
    let used = |cells: &[&str]| layout.figures(To::Percent, cells).next().unwrap_or_default();
    let shared: Vec<Option<String>> = rows.iter().map(|cells| memory(cells)).collect();
    // For each process: the row with the most CPU, its figure, and the sum of all rows.
    let mut sums: HashMap<&str, (usize, f64, f64)> = HashMap::new();
    for (at, (memory, cells)) in shared.iter().zip(rows).enumerate() {
        let Some(memory) = memory else { continue };
        let sum = sums.entry(memory).or_insert((at, used(cells), 0.0));
        sum.2 += used(cells);
        if used(cells) > sum.1 {
            (sum.0, sum.1) = (at, used(cells));
        }
    }
    let is_thread = |(at, memory): (usize, &Option<String>)| {
        let of_all = memory.as_ref().and_then(|memory| sums.get(memory.as_str()));
        of_all
            .is_some_and(|(process, most, sum)| *process != at && *most >= (sum - most) * 0.9 - 1.0)
    };
    shared.iter().enumerate().map(is_thread).collect()
}

/// Whether the rows of a list are threads.
fn of_threads(layout: &Layout<'_>) -> bool {
    layout.has(&["TID", "LWP", "SPID"])
}

/// CPU time: the first column that has one, or the sum of its parts.
fn seconds(layout: &Layout<'_>, cells: &[&str]) -> Option<f64> {
    // atop counts user and system time in separate columns.
    let is_sum = layout.cells_of(To::Seconds, cells).next()?.0 == Unit::Seconds;
    let mut times = layout.figures(To::Seconds, cells);
    let first = times.next()?;
    if is_sum { Some(first + times.sum::<f64>()).filter(|time| *time > 0.0) } else { Some(first) }
}

fn percents(layout: &Layout<'_>, thread: &mut Thread, cells: &[&str]) {
    let figure = |to: To| {
        let (unit, cell) = layout.cells_of(to, cells).next()?;
        let value = unit.figure(cell)?;
        Some(if unit == Unit::Cores { value * 100.0 } else { value })
    };
    let (user, system) = (figure(To::UserPercent), figure(To::SystemPercent));
    // Some lists show only the parts.
    let percent = user.zip(system).map(|(user, system)| user + system);
    let percent = percent.or_else(|| figure(To::Percent));
    let by_share = percent.zip(figure(To::UserShare));
    let by_share = by_share.map(|(percent, user)| percent * (1.0 - user / 100.0));
    thread.system_percent = system.or(by_share.filter(|system| *system >= 0.0));
    match layout.format.percent {
        Some(Percent::AllCpus) => thread.machine_percent = percent,
        Some(Percent::Life) => thread.life_percent = percent,
        _ => thread.cpu_percent = percent,
    }
}

/// The name in a command. Names of threads may contain blanks (`GC Thread#0`) and are short.
pub(crate) fn name_of(command: &str, of_thread: bool) -> String {
    // Paths of macOS bundles contain blanks.
    if let Some((_, program)) = command.rsplit_once(".app/Contents/MacOS/") {
        return program.split(" -").next().unwrap_or(program).to_owned();
    }
    let is_line = command.len() > MAX_THREAD_NAME
        || command.starts_with('/')
        || command.contains(" -")
        || command.contains(": ");
    if of_thread && !is_line {
        command.to_owned()
    } else {
        // `sshd: user`, cut to its first word by `awk`.
        short_name(command).trim_end_matches(':').to_owned()
    }
}

/// The letter of a state. FreeBSD shows the wait channel of a sleeping thread; others show words.
fn state(layout: &Layout<'_>, state: &str) -> Option<char> {
    let first = state.chars().next()?;
    let is_letters = first.is_ascii_uppercase() && state.len() <= 6;
    let has_words = layout.has(&["STATE", "Status"]);
    match state {
        "running" | "Running" | "RUN" => Some('R'),
        "stuck" => Some('D'),
        "stopped" | "Suspended" => Some('T'),
        "zombie" => Some('Z'),
        _ if state.starts_with("CPU") || state.starts_with("cpu") => Some('R'),
        _ if first == 't' && !has_words => Some('t'),
        _ if is_letters && (state.len() == 1 || !has_words) => Some(first),
        _ if state.starts_with("sleep") || state == "idle" || has_words => Some('S'),
        _ => None,
    }
}

/// Whether a character is part of a tree drawn before a command.
pub(crate) fn is_branch(c: char) -> bool {
    matches!(c, '\\' | '_' | '|' | ' ' | '`' | '-' | '+' | '├' | '└' | '─' | '│' | '┬' | '┌' | '╴')
}
