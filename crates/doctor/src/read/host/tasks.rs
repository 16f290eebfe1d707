//! `/proc/PID/stat` of all threads, and the difference of two readings: the CPU of each thread, and
//! of threads that ended in between.
//!
//! - A thread is identified by its number and start time. Its name may change (a kernel worker is
//!   named after its current work), and its number may be reused.
//! - A process that ended left its CPU to its parent once that waited for it (`cutime`, `cstime`).
//! - A thread that ended left its CPU to its process.
//! - CPU from before the first reading is subtracted, from the nearest ancestor that still runs.
//! - The sum of a list cannot exceed the busy time of `/proc/stat`; if it does, the input says so.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Moment, reading_of};
use crate::evidence::{Evidence, Task, Thread};
use crate::pattern::Pattern;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Ticks per second that Linux shows to programs, on every architecture with ZFS.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;
/// If a thread or child has ended, less than this percent of one CPU is rounding.
const NEXT_TO_NOTHING: f64 = 0.5;
/// A list may exceed the busy CPUs by this part and by so many percent of one CPU: the kernel
/// measures threads exactly, and CPUs by ticks.
const SURPLUS_PART: f64 = 0.15;
const SURPLUS_PERCENT: f64 = 15.0;
/// Ancestors that are followed at most.
const MOST_ANCESTORS: usize = 64;

static TASK: Pattern = Pattern::new(r"^(?:(\d+) )?(\d+) \((.*)\) ([A-Za-z]) ((?:-?\d+ ?){20,})$");

/// Whether a line is the `stat` of a thread.
pub(crate) fn is_task(text: &str) -> bool {
    TASK.is_match(text.trim())
}

/// Reads lines of `/proc/PID/stat`; if both are listed, the process comes before the thread.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        let Some(found) = TASK.captures(text) else {
            if !text.starts_with('#') {
                reading.leave(line);
            }
            continue;
        };
        let fields: Vec<&str> = found[5].split_whitespace().collect();
        // Numbers as in proc_pid_stat(5); the first three precede the fields.
        let field = |number: usize| fields.get(number - 4).and_then(|text| number::plain(text));
        let seconds = |number: usize| field(number).unwrap_or(0.0).max(0.0) / TICKS_PER_SECOND;
        let whole = |number: usize| fields.get(number - 4).and_then(|text| text.parse().ok());
        let source = reading.at(line);
        reading.evidence.tasks.push(Task {
            name: found[3].to_owned(),
            process: found.get(1).and_then(|process| process.as_str().parse().ok()),
            id: found[2].parse().unwrap_or(0),
            parent: whole(4).unwrap_or(0),
            started: whole(22).unwrap_or(0),
            state: found[4].chars().next().unwrap_or('?'),
            used_s: seconds(14) + seconds(15),
            system_s: seconds(15),
            children_s: seconds(16) + seconds(17),
            disk_wait_s: field(42).map(|ticks| ticks / TICKS_PER_SECOND),
            source,
        });
    }
}

/// The file in a capture with the `stat` of the capturing process.
const CAPTURE_FILE: &str = "look-stats.txt";

/// CPU in user space and in the kernel, in seconds, that the capture itself took between the
/// readings. It is neither load of the host nor a row of a list.
pub(crate) fn used_by_capture(evidence: &Evidence) -> (f64, f64) {
    let of_moment = |moment| {
        let mut tasks = evidence.tasks.iter();
        tasks.find(|task| reading_of(&task.source.input) == (Some(moment), CAPTURE_FILE))
    };
    let both = of_moment(Moment::Start).zip(of_moment(Moment::End));
    both.filter(|(start, end)| (start.id, start.started) == (end.id, end.started)).map_or(
        (0.0, 0.0),
        |(start, end)| {
            let system = (end.system_s - start.system_s).max(0.0);
            ((end.used_s - start.used_s - system).max(0.0), system)
        },
    )
}

/// The time between two readings, and how busy the CPUs were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    /// Seconds.
    pub(crate) seconds: f64,
    /// Percent of one CPU, including time that the hypervisor withheld; `None` if not shown.
    pub(crate) busy_percent: Option<f64>,
}

/// Makes threads of the tasks: with two readings, they have their CPU in between.
pub(crate) fn finish(evidence: &mut Evidence, interval: Option<Interval>) {
    let tasks = std::mem::take(&mut evidence.tasks);
    let (mut start, mut end, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for task in &tasks {
        match reading_of(&task.source.input) {
            (_, CAPTURE_FILE) => {}
            (Some(Moment::Start), _) => start.push(task),
            (Some(Moment::End), _) => end.push(task),
            (None, _) => single.push(task),
        }
    }
    let mut threads: Vec<Thread> = single.into_iter().map(thread).collect();
    match interval.filter(|_| !start.is_empty() && !end.is_empty()) {
        Some(interval) => {
            let paired = paired(&start, &end, interval.seconds);
            check(evidence, &paired, interval);
            threads.extend(paired);
        }
        None if end.is_empty() => threads.extend(start.into_iter().map(thread)),
        None => threads.extend(end.into_iter().map(thread)),
    }
    evidence.threads.splice(0..0, threads);
    evidence.tasks = tasks;
}

/// A task as a row of a list.
fn thread(task: &Task) -> Thread {
    Thread {
        id: Some(task.id),
        kernel: Some(task.is_kernel()),
        state: Some(task.state),
        cpu_time_s: Some(task.used_s),
        process: task.process,
        ..Thread::named(task.name.clone(), 0, task.source.clone())
    }
}

/// Tasks of one reading by number and start time.
type ById<'a> = HashMap<(u64, u64), &'a Task>;

/// One row per thread of the second reading, and rows for threads that ended before it.
fn paired(start: &[&Task], end: &[&Task], seconds: f64) -> Vec<Thread> {
    let parts = |tasks: &[&'_ Task]| -> bool { tasks.iter().any(|task| task.process.is_some()) };
    // If threads are listed, the entries of whole processes only show how much ended threads used.
    let is_row = |task: &&&Task| task.process.is_some() || !parts(end);
    let earlier: ById<'_> =
        start.iter().filter(is_row).map(|task| ((task.id, task.started), *task)).collect();
    let percent = |spent: f64| spent.max(0.0) * 100.0 / seconds;
    let mut rows: Vec<Thread> = Vec::new();
    let mut of_process: HashMap<u64, f64> = HashMap::new();
    for task in end.iter().filter(is_row) {
        // A thread that the first reading lacks used all its time in between.
        let before = earlier.get(&(task.id, task.started)).map_or(0.0, |before| before.used_s);
        let spent = (task.used_s - before).max(0.0);
        *of_process.entry(task.process()).or_default() += spent;
        rows.push(Thread { cpu_percent: Some(percent(spent).min(100.0)), ..thread(task) });
    }
    if parts(end) {
        rows.extend(ended_threads(start, end, &of_process, percent));
    }
    rows.extend(ended_children(&processes(start), &processes(end), percent));
    rows
}

/// Threads that ended in running processes: the CPU of the process minus that of its threads.
fn ended_threads(
    start: &[&Task],
    end: &[&Task],
    of_threads: &HashMap<u64, f64>,
    percent: impl Fn(f64) -> f64,
) -> Vec<Thread> {
    let whole = |task: &&&Task| task.process.is_none();
    let earlier: ById<'_> =
        start.iter().filter(whole).map(|task| ((task.id, task.started), *task)).collect();
    // A process that has several threads only now was one thread before.
    let single: ById<'_> = start.iter().map(|task| ((task.id, task.started), *task)).collect();
    let rows = end.iter().filter(whole).filter_map(|task| {
        let key = (task.id, task.started);
        let before = earlier.get(&key).or_else(|| single.get(&key)).map_or(0.0, |t| t.used_s);
        let threads = of_threads.get(&task.id).copied().unwrap_or(0.0);
        let used = percent(task.used_s - before - threads);
        (used >= NEXT_TO_NOTHING).then(|| Thread {
            kernel: Some(task.is_kernel()),
            cpu_percent: Some(used),
            process: Some(task.id),
            ..Thread::named(task.name.clone(), 0, task.source.clone())
        })
    });
    rows.collect()
}

/// One process of a reading.
#[derive(Clone, Copy)]
struct Process<'a> {
    first: &'a Task,
    used_s: f64,
}

/// The processes of a reading, by number.
fn processes<'a>(tasks: &[&'a Task]) -> HashMap<u64, Process<'a>> {
    let mut all: HashMap<u64, Process<'a>> = HashMap::new();
    let mut whole: HashMap<u64, f64> = HashMap::new();
    for task in tasks {
        if task.process.is_none() {
            whole.insert(task.id, task.used_s);
        }
        let known = all.entry(task.process()).or_insert(Process { first: task, used_s: 0.0 });
        if task.process.is_some() {
            known.used_s += task.used_s;
        }
        if task.id == task.process() {
            known.first = task;
        }
    }
    for (id, process) in &mut all {
        process.used_s = whole.get(id).copied().unwrap_or(process.used_s);
    }
    all
}

/// Children that ended and were waited for: one row per running parent.
fn ended_children(
    start: &HashMap<u64, Process<'_>>,
    end: &HashMap<u64, Process<'_>>,
    percent: impl Fn(f64) -> f64,
) -> Vec<Thread> {
    let is_same = |one: &Process<'_>, other: &Process<'_>| one.first.started == other.first.started;
    let runs_on =
        |id: u64, process: &Process<'_>| end.get(&id).is_some_and(|later| is_same(process, later));
    // CPU from before the first reading, by the ancestor that holds it now.
    let mut before: HashMap<u64, f64> = HashMap::new();
    for (id, process) in start.iter().filter(|(id, process)| !runs_on(**id, process)) {
        let mut seen = HashSet::from([*id]);
        let mut ancestor = process.first.parent;
        while let Some(next) = start.get(&ancestor).filter(|next| !runs_on(ancestor, next)) {
            if seen.len() >= MOST_ANCESTORS || !seen.insert(ancestor) {
                break;
            }
            ancestor = next.first.parent;
        }
        *before.entry(ancestor).or_default() += process.used_s + process.first.children_s;
    }
    let mut rows: Vec<(u64, Thread)> = Vec::new();
    for (id, later) in end {
        let same = start.get(id).filter(|earlier| is_same(earlier, later));
        let known = same.map_or(0.0, |earlier| earlier.first.children_s);
        let older = before.get(id).copied().filter(|_| same.is_some()).unwrap_or(0.0);
        let used = percent(later.first.children_s - known - older);
        if used >= NEXT_TO_NOTHING {
            let (parent, source) = (later.first.name.clone(), later.first.source.clone());
            let name = format!("finished children of {parent}");
            let row = Thread {
                kernel: Some(false),
                cpu_percent: Some(used),
                children_of: Some(parent),
                ..Thread::named(name, 0, source)
            };
            rows.push((*id, row));
        }
    }
    rows.sort_by_key(|(id, _)| *id);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Reports a list whose sum exceeds the busy time of the CPUs.
fn check(evidence: &mut Evidence, rows: &[Thread], interval: Interval) {
    let Some(busy) = interval.busy_percent else { return };
    let listed: f64 = rows.iter().filter_map(|row| row.cpu_percent).sum();
    if listed <= busy * (1.0 + SURPLUS_PART) + SURPLUS_PERCENT {
        return;
    }
    let Some(input) = rows.first().map(|row| Arc::clone(&row.source.input)) else { return };
    let excess = format!(
        "its threads add up to {:.1} CPUs, and /proc/stat counts {:.1} busy CPUs for the same time: \
         take its figures as an upper bound",
        listed / 100.0,
        busy / 100.0
    );
    if let Some(entry) = evidence.inputs.iter_mut().find(|entry| entry.name == input) {
        entry.trouble = Some(match entry.trouble.take() {
            Some(trouble) => format!("{trouble}; {excess}"),
            None => excess,
        });
    }
}
