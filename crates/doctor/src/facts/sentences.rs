//! Quantities in sentences: CPU of threads, and functions that stand on somebody's stack.
//!
//! "txg_sync and receive_writer are at 100% and 50%" is what `top` would show in two rows, and
//! "it stands in `txg_wait_synced` below `zil_replay`" is a stack. Both are picked rows: they prove
//! presence. A sentence is a weaker source than a tool, and `diagnose` counts it as words.

use std::sync::LazyLock;

use regex::Regex;

use super::generic::is_of_a_machine;
use super::threads::looks_like_kernel;
use super::{is_known_program, is_spin_symbol, is_zfs_thread, takers};
use crate::evidence::{Evidence, Frame, KernelStack, Remark, Thread};

/// List number of the threads that an input's sentences name: no tool has as many lists.
pub(crate) const TOLD_LIST: u32 = u32::MAX;

/// No machine has more.
const MOST_CPUS: f64 = 4096.0;

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
        r"(?i)\d+(?:[.,]\d+)?\s*(?:%|percent)\s*(?:of the time )?(?:idle|iowait|i/o[ -]?wait|wait|free)\b|\b(?:swap|memory|ram)(?: space)?(?: is| was)?(?: at)?(?: \d+ ?%)?(?: is)? full\b",
    )
});
static PERCENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(\d+(?:[.,]\d+)?)(?:\s*%?\s*(?:to|-|and up to)\s*\d+)?\s*(?:%|percent)")
});
static USES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(is|are|at|uses?|has|have|with|takes?|stays?|goes|eat(s|ing)?|burn(s|ing)?|using|taking|pegged|of (a|one) (cpu|core))\b",
    )
});
static NOT_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(full|fragment|of (all|the) (writes|reads|memory)|hit|util|instead|fell|falls|iotop)",
    )
});
static WORD: LazyLock<Regex> = LazyLock::new(|| compiled(r"[A-Za-z_][A-Za-z0-9_.:/-]*(?:\(\))?"));

/// Adds the threads that sentences give figures for.
pub(super) fn add_threads(evidence: &mut Evidence) {
    let said = |remark: &Remark| {
        let known = threads(remark);
        // A sentence about threads that are known by name is read as one about those.
        if known.is_empty() { programs(remark) } else { known }
    };
    let cpus = evidence.host.cpus.as_ref().map_or(MOST_CPUS, |cpus| f64::from(cpus.value));
    let possible = |row: &Thread| row.cpu_percent.is_some_and(|all| all <= 100.0 * cpus + 50.0);
    let mut rows: Vec<Thread> = Vec::new();
    let of_a_machine = evidence.remarks.iter().filter(|one| is_of_a_machine(&one.text));
    for row in of_a_machine.flat_map(said).filter(possible) {
        // Who is told of twice is no two threads: the larger figure counts.
        match rows.iter_mut().find(|known| known.name == row.name) {
            Some(known) if known.cpu_percent < row.cpu_percent => *known = row,
            Some(_) => {}
            None => rows.push(row),
        }
    }
    evidence.threads.extend(rows);
}

/// The programs that a sentence gives a part of the CPU: "mysqld uses 300% CPU".
fn programs(remark: &Remark) -> Vec<Thread> {
    let text = &*UNUSED.replace_all(&remark.text, "");
    if NOT_CPU.is_match(text) {
        return Vec::new();
    }
    let rows = takers::programs(remark, text).into_iter();
    let keyed = remark.key.is_some();
    let others = rows.filter(|(name, _)| {
        keyed
            || !is_thread(name)
            || looks_like_kernel(name) && !is_zfs_thread(name)
            || is_known_program(name)
    });
    others.map(|(name, percent)| told(remark, &name, 1, percent)).collect()
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

/// How many threads of a name there are by the words before it; of several it is at least three.
fn count_before(words: &[&str]) -> u32 {
    const NUMBERS: [&str; 9] =
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    const SEVERAL: [&str; 12] = [
        "several", "many", "multiple", "some", "few", "bunch", "lots", "handful", "dozens",
        "group", "number", "load",
    ];
    let mut last = words.iter().rev().map(|word| bare(word)).filter(|word| *word != "of");
    let Some(word) = last.next().map(str::to_ascii_lowercase) else { return 1 };
    if let Ok(count) = word.parse::<u32>() {
        return if (2..10_000).contains(&count) { count } else { 1 };
    }
    if let Some((count, _)) = (2_u32..).zip(NUMBERS).find(|(_, name)| *name == word) {
        return count;
    }
    match word.as_str() {
        "couple" | "both" => 2,
        several if SEVERAL.contains(&several) => 3,
        _ => 1,
    }
}

fn threads(remark: &Remark) -> Vec<Thread> {
    // A figure of one sentence is none of the next one's.
    remark.text.split(". ").flat_map(|sentence| threads_of(remark, sentence)).collect()
}

fn threads_of(remark: &Remark, sentence: &str) -> Vec<Thread> {
    let text = &*UNUSED.replace_all(sentence, "");
    if NOT_CPU.is_match(text) || !USES.is_match(text) {
        return Vec::new();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut names: Vec<(&str, u32)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = bare(word);
        if is_thread(name) && !names.iter().any(|(known, _)| *known == name) {
            names.push((name, count_before(&words[..at])));
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
            let found = programs(&remark(text)).into_iter().next();
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
    fn lines_of_few_words_name_who_uses_the_cpu() {
        let said = |text: &str| -> Vec<(String, f64)> {
            let mut evidence = Evidence { remarks: vec![remark(text)], ..Evidence::default() };
            add_threads(&mut evidence);
            let rows = evidence.threads.into_iter();
            rows.map(|thread| (thread.name, thread.cpu_percent.unwrap())).collect()
        };
        let rows = |rows: &[(&str, f64)]| -> Vec<(String, f64)> {
            rows.iter().map(|(name, percent)| ((*name).to_owned(), *percent)).collect()
        };
        for (text, wanted) in [
            ("java eating 780%, 8 cores", &[("java", 780.0)][..]),
            ("mysqld uses 3 of 4 cores", &[("mysqld", 300.0)]),
            ("a bunch of z_wr_iss threads at 90%", &[("z_wr_iss", 270.0)]),
            ("kswapd0 at 100% and swap full", &[("kswapd0", 100.0)]),
            ("postgres at 95%, nginx at 40%", &[("postgres", 95.0), ("nginx", 40.0)]),
            ("foo is at 340% and I do not know why", &[("foo", 340.0)]),
            ("java at 99999999999999999999%", &[]),
            ("2.1.5 fixes txg_sync using 100% CPU.", &[]),
            ("java can use 100% of a core", &[]),
            ("5 x claude processes at ~170-200% CPU", &[("claude", 850.0)]),
            ("the pool is at 90%", &[]),
            ("apples at 40%", &[]),
        ] {
            assert_eq!(said(text), rows(wanted), "{text}");
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
