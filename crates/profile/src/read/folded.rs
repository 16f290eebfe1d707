//! Reads folded stacks, one per line: `thread;root;...;leaf 42`, as stackcollapse writes and
//! flamegraph reads them (<https://github.com/brendangregg/FlameGraph>).
//!
//! The first component is the thread (`z_rd_int`, or `z_rd_int-316/317`), unless it has the form of
//! a function (``zfs`arc_evict``, `start_thread`). Marks at the end of a function give its mode:
//! `_[k]` kernel, `_[i]` inlined, `_[j]` generated. A scaled number may have a fraction.

use std::io::BufRead;

use super::Lines;
use crate::model::{CPU_UNKNOWN, Format, Meta, Mode, Profile, Sample, StackId, WeightUnit};

/// Frames of one stack at most.
const DEPTH_MAX: usize = 8192;
/// Lines between two reports of progress.
const PROGRESS_LINES: u64 = 100_000;
/// Roots of stacks that have no thread in front.
const ROOTS: [&str; 10] = [
    "[unknown]",
    "_start",
    "clone",
    "clone3",
    "entry_SYSCALL_64_after_hwframe",
    "fork_exit",
    "kthread",
    "ret_from_fork",
    "ret_from_fork_asm",
    "start_thread",
];

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'l> {
    /// The thread, if the line has one.
    pub thread: Option<LineThread<'l>>,
    /// The functions, outermost first.
    pub frames: Vec<LineFrame<'l>>,
    /// The time or the number of samples; may have a fraction.
    pub weight: f64,
}

/// The thread of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineThread<'l> {
    /// Its name.
    pub name: &'l str,
    /// Its process, or -1.
    pub pid: i32,
    /// Its number, or -1.
    pub tid: i32,
}

/// A function of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFrame<'l> {
    /// Its name; empty if only the module is known.
    pub symbol: &'l str,
    /// Its module; empty if unknown.
    pub module: &'l str,
    /// The mode, if the line has it.
    pub mode: Mode,
}

/// Reads one line; `None` if it is not a stack with a count.
pub fn line(text: &str) -> Option<Line<'_>> {
    let (stack, weight) = split(text)?;
    let mut components = stack.split(';').peekable();
    let first = components.peek().copied().unwrap_or_default();
    let is_function = first.contains('`')
        || first.contains("+0x")
        || first.ends_with("_[k]")
        || first.find('(').is_some_and(|at| at > 0)
        || ROOTS.contains(&first);
    let thread = (!is_function).then(|| {
        components.next();
        let (name, pid, tid) = thread(first);
        LineThread { name, pid, tid }
    });
    // Skips the mark between user and kernel stack.
    let components = components.filter(|component| !matches!(*component, "-" | "--"));
    let frames = components.take(DEPTH_MAX).map(frame);
    let frames = frames.map(|(symbol, module, mode)| LineFrame { symbol, module, mode });
    Some(Line { thread, frames: frames.collect(), weight })
}

/// Whether this is the beginning of such a text: most of its whole lines are stacks, and one of the
/// first stacks has a caller.
pub(super) fn is_folded(text: &str) -> bool {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let whole = if text.ends_with('\n') || lines.len() < 2 {
        &lines[..]
    } else {
        &lines[..lines.len() - 1]
    };
    let stacks = whole.iter().filter(|line| split(line).is_some()).count();
    let calls = whole.iter().filter(|line| split(line).is_some_and(|(s, _)| s.contains(';')));
    calls.count() > 0 && stacks * 10 >= whole.len() * 9
}

/// Reads the text.
pub(super) fn read(source: impl BufRead, progress: &mut dyn FnMut(u64)) -> Profile {
    let meta = Meta { format: Format::Folded, unit: WeightUnit::Samples, ..Meta::default() };
    let mut profile = Profile::new(meta);
    let mut lines = Lines::new(source);
    let (mut bytes, mut ignored, mut rounded) = (0u64, 0u64, 0u64);
    while let Some(text) = lines.next() {
        bytes += text.len() as u64 + 1;
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('#') {
            match line(text) {
                Some(stack) => {
                    rounded += u64::from(stack.weight.fract() != 0.0);
                    add(&mut profile, &stack);
                }
                None => ignored += 1,
            }
        }
        if lines.number.is_multiple_of(PROGRESS_LINES) {
            progress(std::mem::take(&mut bytes));
        }
    }
    progress(bytes);
    if ignored > 0 {
        profile.meta.note(format!(
            "{} left out: no stack with a count",
            ogive_text::counted(ignored, "line was", "lines were")
        ));
    }
    if rounded > 0 {
        profile.meta.note(format!("{rounded} counts had fractions and were rounded"));
    }
    if let Some(error) = &lines.error {
        profile.meta.note(format!("reading stopped after line {}: {error}", lines.number));
    }
    profile.finish();
    profile
}

/// Stack and weight of a line. A line with two numbers is a difference: the second number is the
/// newer one.
fn split(line: &str) -> Option<(&str, f64)> {
    let (stack, number) = line.trim().rsplit_once([' ', '\t'])?;
    let weight: f64 = number.parse().ok()?;
    if !(0.0..1e18).contains(&weight) || !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let stack = match stack.rsplit_once(' ') {
        Some((before, first))
            if before.contains(';') && first.parse::<f64>().is_ok_and(f64::is_finite) =>
        {
            before
        }
        _ => stack,
    };
    let stack = stack.trim();
    (!stack.is_empty()).then_some((stack, weight))
}

fn add(profile: &mut Profile, line: &Line<'_>) {
    let thread = match &line.thread {
        None => profile.add_thread(-1, -1, ""),
        Some(LineThread { name, pid, tid }) => profile.add_thread(*pid, *tid, name),
    };
    let mut stack = StackId::EMPTY;
    for LineFrame { symbol, module, mode } in &line.frames {
        let symbol = profile.intern(symbol);
        let module = profile.intern(module);
        let frame = profile.add_frame(symbol, module, *mode, 0);
        stack = profile.push_frame(stack, frame);
    }
    let weight = line.weight.round() as u64;
    let count = u32::try_from(weight).unwrap_or(u32::MAX);
    profile.push(Sample { time_ns: 0, weight, thread, cpu: CPU_UNKNOWN, stack, count });
}

/// `name`, `name-pid`, `name-pid/tid`, `name-?/tid`.
fn thread(text: &str) -> (&str, i32, i32) {
    let Some((name, numbers)) = text.rsplit_once('-') else { return (text, -1, -1) };
    let number = |text: &str| {
        if text == "?" {
            Some(-1)
        } else {
            text.parse::<u32>().ok().and_then(|n| i32::try_from(n).ok())
        }
    };
    match numbers.split_once('/') {
        Some((pid, tid)) => match (number(pid), number(tid)) {
            (Some(pid), Some(tid)) => (name, pid, tid),
            _ => (text, -1, -1),
        },
        None => match number(numbers) {
            // A single digit is more likely part of the name: ksoftirqd-1.
            Some(pid) if pid >= 10 => (name, pid, pid),
            _ => (text, -1, -1),
        },
    }
}

/// Symbol, module, mode.
fn frame(text: &str) -> (&str, &str, Mode) {
    for (mark, mode) in [
        ("_[k]", Mode::Kernel),
        ("_[i]", Mode::Unknown),
        ("_[j]", Mode::User),
        ("_[w]", Mode::Unknown),
    ] {
        if let Some(symbol) = text.strip_suffix(mark) {
            let (symbol, module) = unnamed(symbol);
            return (symbol, module, mode);
        }
    }
    if let Some((module, symbol)) = text.split_once('`') {
        let symbol = symbol.rsplit_once("+0x").map_or(symbol, |(symbol, _)| symbol);
        let kernel = module.starts_with("kernel") || !module.contains(['.', '/']);
        let mode = if kernel { Mode::Kernel } else { Mode::User };
        return (symbol, module, mode);
    }
    let (symbol, module) = unnamed(text);
    (symbol, module, Mode::Unknown)
}

/// `[libc.so.6]` is a nameless function of that module.
fn unnamed(text: &str) -> (&str, &str) {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['[', ']'])) {
        ("", text)
    } else {
        (text, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_threads_and_marks_are_read() {
        let text = "z_rd_int-316/317;kthread;kfpu_end_[k] 10\n\
                    z_rd_int-316/317;kthread 5.4\n\
                    zfs`arc_evict+0x12;genunix`foo 3\n\
                    old top;main 7 9\n\
                    no count here\n";
        assert!(!is_folded("just a text\nwith 3\n") && !is_folded(""));
        let profile = read(text.as_bytes(), &mut |_| {});
        assert_eq!(profile.view().weight(), 10 + 5 + 3 + 9);
        let threads = profile.view().by_thread_name();
        assert_eq!((threads[0].name.as_str(), threads[0].weight), ("z_rd_int", 15));
        let top = profile.view().self_by_symbol();
        assert_eq!((&*top[0].symbol, top[0].mode), ("kfpu_end", Mode::Kernel));
        assert_eq!(profile.meta.notes.len(), 2, "{:?}", profile.meta.notes);
        let stack = profile.samples()[2].stack;
        let leaf = profile.stack(stack).next().unwrap();
        assert_eq!((profile.frame(leaf).symbol, profile.frame(leaf).module), ("foo", "genunix"));
    }

    #[test]
    fn a_stack_without_a_thread_keeps_its_first_function() {
        for (text, name, functions) in [
            ("kthread;f_[k] 3", None, &["kthread", "f"][..]),
            ("(sd-pam);main 1", Some("(sd-pam)"), &["main"]),
            ("std::run(int);f 1.5", None, &["std::run(int)", "f"]),
            ("java;main;-;sys_read_[k] 2", Some("java"), &["main", "sys_read"]),
        ] {
            let line = line(text).unwrap();
            assert_eq!(line.thread.map(|thread| thread.name), name, "{text}");
            let symbols: Vec<&str> = line.frames.iter().map(|frame| frame.symbol).collect();
            assert_eq!(symbols, functions, "{text}");
        }
        assert_eq!(line("no count here"), None);
    }

    #[test]
    fn thread_numbers_are_distinguished_from_names() {
        assert_eq!(thread("z_rd_int-316/317"), ("z_rd_int", 316, 317));
        assert_eq!(thread("bash-1234"), ("bash", 1234, 1234));
        assert_eq!(thread("ksoftirqd-1"), ("ksoftirqd-1", -1, -1));
        assert_eq!(thread("dm-crypt"), ("dm-crypt", -1, -1));
        assert_eq!(thread("mysqld-?/91"), ("mysqld", -1, 91));
    }
}
