//! Quantities in sentences: CPU of threads, and functions that stand on somebody's stack.
//!
//! "txg_sync and receive_writer are at 100% and 50%" is what `top` would show in two rows, and
//! "it stands in `txg_wait_synced` below `zil_replay`" is a stack. Both are picked rows: they prove
//! presence. A sentence is a weaker source than a tool, and `diagnose` counts it as words.

use std::sync::LazyLock;

use regex::Regex;

use super::threads::looks_like_kernel;
use super::{is_spin_symbol, is_zfs_thread};
use crate::evidence::{Evidence, Frame, KernelStack, Remark, Thread};

/// List number of the threads that an input's sentences name: no tool has as many lists.
pub(super) const TOLD_LIST: u32 = u32::MAX;

/// Programs that stand in such sentences beside kernel threads.
const PROGRAMS: [&str; 14] = [
    "zed",
    "zfs",
    "zpool",
    "zdb",
    "ztest",
    "nfsd",
    "udevd",
    "systemd-udevd",
    "kernel_task",
    "vnlru",
    "pagedaemon",
    "kthreadd",
    "smbd",
    "java",
];

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// A figure of what is not used.
static UNUSED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\d+(?:[.,]\d+)?\s*(?:%|percent)\s*(?:of the time )?(?:idle|iowait|i/o[ -]?wait|wait|free)\b",
    )
});
static PERCENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(\d+(?:[.,]\d+)?)(?:\s*%?\s*(?:to|-|and up to)\s*\d+)?\s*(?:%|percent)")
});
static USES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)\b(is|are|at|uses?|has|have|with|takes?|stays?|goes|of (a|one) (cpu|core))\b")
});
static NOT_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(full|fragment|of (all|the) (writes|reads|memory)|hit|util|instead|fell|falls|iotop)",
    )
});
/// A program that has a part of the CPU: who it is, and what it has.
static HAS_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[\s(])(?:process(?:es)?|programs?|daemon|service|command|thread)?\s?",
        r"([a-z][\w./+-]*)\)?(?: (?:process|program|daemon|service|command|thread)s?)?",
        r" (?:constantly |always |alone |now |then |permanently )?",
        r"(?:is|was|are|sits|stays|runs|uses?|used|takes?|took|has|had|eats?|consumes?|burns?)",
        r"(?: (?:at|up|to|about|around|over|nearly|almost|more|than|between|a|the|full|constantly))*",
        r" (\d+(?:[.,]\d+)?)(?:\s*(?:to|-)\s*\d+)?\s*(?:%|percent)",
    ))
});
static CPU: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?i)\b(cpus?|cores?|processors?)\b"));

/// Words that stand before such a figure and are no program's name.
const NO_PROGRAM: [&str; 56] = [
    "it",
    "this",
    "that",
    "which",
    "who",
    "they",
    "one",
    "each",
    "all",
    "both",
    "none",
    "everything",
    "nothing",
    "something",
    "else",
    "system",
    "kernel",
    "user",
    "idle",
    "iowait",
    "wait",
    "time",
    "load",
    "usage",
    "use",
    "utilization",
    "utilisation",
    "cpu",
    "cpus",
    "core",
    "cores",
    "processor",
    "processors",
    "machine",
    "host",
    "server",
    "node",
    "memory",
    "disk",
    "disks",
    "drive",
    "pool",
    "zfs",
    "arc",
    "interrupts",
    "interrupt",
    "process",
    "processes",
    "program",
    "programs",
    "thread",
    "threads",
    "daemon",
    "service",
    "command",
    "rest",
];

static WORD: LazyLock<Regex> = LazyLock::new(|| compiled(r"[A-Za-z_][A-Za-z0-9_.:/-]*(?:\(\))?"));

/// Adds the threads that sentences give figures for.
pub(super) fn add_threads(evidence: &mut Evidence) {
    let said = |remark: &Remark| {
        let known = threads(remark);
        // A sentence about threads that are known by name is read as one about those.
        if known.is_empty() { program(remark) } else { known }
    };
    let mut rows: Vec<Thread> = Vec::new();
    for row in evidence.remarks.iter().flat_map(said) {
        // Who is told of twice is no two threads: the larger figure counts.
        match rows.iter_mut().find(|known| known.name == row.name) {
            Some(known) if known.cpu_percent < row.cpu_percent => *known = row,
            Some(_) => {}
            None => rows.push(row),
        }
    }
    evidence.threads.extend(rows);
}

/// The program that a sentence gives a part of the CPU: "mysqld uses 300% CPU".
fn program(remark: &Remark) -> Vec<Thread> {
    let text = &*UNUSED.replace_all(&remark.text, "");
    if NOT_CPU.is_match(text) || !CPU.is_match(text) {
        return Vec::new();
    }
    let found = HAS_CPU.captures_iter(text).find_map(|found| {
        let name = found.get(1)?.as_str().trim_end_matches(['.', '-', '/']);
        let is_name = !NO_PROGRAM.contains(&name.to_ascii_lowercase().as_str());
        let percent = found.get(2)?.as_str().replace(',', ".").parse().ok()?;
        (is_name && !is_thread(name)).then_some((name, percent))
    });
    found.map(|(name, percent)| told(remark, name, 1, percent)).into_iter().collect()
}

/// A row of a list, as a sentence tells it.
fn told(remark: &Remark, name: &str, count: u32, percent: f64) -> Thread {
    Thread {
        kernel: Some(is_zfs_thread(name) || looks_like_kernel(name)),
        cpu_percent: Some(percent * f64::from(count)),
        count: u64::from(count),
        ..Thread::named(name.to_owned(), TOLD_LIST, remark.source.clone())
    }
}

/// Threads that a sentence names, each once.
pub(super) fn named_threads(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '/' | ';'))
    {
        let name = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let known = is_zfs_thread(name)
            || looks_like_kernel(name)
            || matches!(name, "zed" | "zdb" | "ztest");
        // "zvol" and "zvols" are volumes as often as threads.
        if known && name.contains(['_', 'd']) && !names.iter().any(|one| one == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A bare name: `nfsd,` is `nfsd`, `kswapd0` stays.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

fn is_thread(name: &str) -> bool {
    PROGRAMS.contains(&name) || is_zfs_thread(name) || looks_like_kernel(name)
}

fn threads(remark: &Remark) -> Vec<Thread> {
    let text = &*UNUSED.replace_all(&remark.text, "");
    if NOT_CPU.is_match(text) || !USES.is_match(text) {
        return Vec::new();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut names: Vec<(&str, u32)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = bare(word);
        if is_thread(name) && !names.iter().any(|(known, _)| *known == name) {
            let before = at.checked_sub(1).and_then(|before| words[before].parse().ok());
            names.push((name, before.filter(|count| (2..10_000).contains(count)).unwrap_or(1)));
        }
    }
    let figures: Vec<f64> = PERCENT
        .captures_iter(text)
        .filter_map(|found| found[1].replace(',', ".").parse().ok())
        .collect();
    let each = match (figures.len(), names.len()) {
        (0, _) | (_, 0) => return Vec::new(),
        (1, _) => vec![figures[0]; names.len()],
        (figures_shown, shown) if figures_shown == shown => figures,
        _ => return Vec::new(),
    };
    let row = |((name, count), percent): ((&str, u32), f64)| told(remark, name, count, percent);
    names.into_iter().zip(each).map(row).collect()
}

/// The functions that each sentence names, in its order, as a stack without weight.
pub(super) fn stacks(evidence: &Evidence) -> Vec<KernelStack> {
    let functions = |remark: &Remark| -> Option<KernelStack> {
        let mut frames: Vec<Frame> = Vec::new();
        for word in WORD.find_iter(&remark.text).map(|found| found.as_str()) {
            let name = bare(word.trim_end_matches("()"));
            let marked = name.contains('_') || word.ends_with("()") || is_spin_symbol(name);
            if marked
                && !is_zfs_thread(name)
                && !frames.iter().any(|f| f.symbol.as_deref() == Some(name))
            {
                frames.push(Frame { symbol: Some(name.to_owned()), module: None, kernel: None });
            }
        }
        let source = remark.source.clone();
        (!frames.is_empty()).then_some(KernelStack { thread: None, count: 1, frames, source })
    };
    evidence.remarks.iter().filter_map(functions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Source;

    fn remark(text: &str) -> Remark {
        let source = Source { input: "report.txt".into(), line: Some(1) };
        Remark { key: None, text: text.to_owned(), source }
    }

    fn threads_said(text: &str) -> Vec<(String, f64)> {
        let found = threads(&remark(text)).into_iter();
        found.map(|thread| (thread.name, thread.cpu_percent.unwrap())).collect()
    }

    #[test]
    fn sentences_give_the_cpu_of_threads_only_where_names_and_figures_pair_up() {
        assert_eq!(
            threads_said("txg_sync, txg_quiesce and receive_writer are at 100%, 60% and 50%."),
            [
                ("txg_sync".to_owned(), 100.0),
                ("txg_quiesce".to_owned(), 60.0),
                ("receive_writer".to_owned(), 50.0)
            ]
        );
        assert_eq!(
            threads_said("24 z_wr_iss threads are at 35 to 50% each; the load is 45."),
            [("z_wr_iss".to_owned(), 840.0)]
        );
        assert_eq!(threads_said("Process zed is at 100% CPU."), [("zed".to_owned(), 100.0)]);
        assert!(threads_said("The pool is at 90% and z_wr_iss is full.").is_empty());
        assert!(threads_said("kswapd0 and arc_prune use 30%, 40% and 50%.").is_empty());
    }

    #[test]
    fn a_program_is_read_with_its_part_of_the_cpu_and_nobody_else() {
        let said = |text: &str| {
            let found = program(&remark(text)).into_iter().next();
            found.map(|thread| (thread.name, thread.cpu_percent.unwrap()))
        };
        for (text, name, percent) in [
            ("In top mysqld uses 310% CPU.", "mysqld", 310.0),
            ("The process qemu-system-x86_64 is at 97.5 % of a core.", "qemu-system-x86_64", 97.5),
            ("The collectd daemon takes about 60% of the CPU.", "collectd", 60.0),
        ] {
            assert_eq!(said(text), Some((name.to_owned(), percent)), "{text}");
        }
        for text in [
            "The system is at 90% CPU.",
            "The CPU is at 100%.",
            "It uses 90% of a CPU.",
            "Of the CPU time iowait is 40%.",
            "The pool is 90% full and the CPU idle.",
            "fio reads 40% less, at the same CPU.",
        ] {
            assert_eq!(said(text), None, "{text}");
        }
    }

    #[test]
    fn functions_of_a_sentence_are_a_stack_in_its_order() {
        let evidence = Evidence {
            remarks: vec![remark("The import stands in txg_wait_synced below zil_replay().")],
            ..Evidence::default()
        };
        let names: Vec<_> =
            stacks(&evidence)[0].frames.iter().map(|f| f.symbol.clone().unwrap()).collect();
        assert_eq!(names, ["txg_wait_synced", "zil_replay"]);
    }
}
