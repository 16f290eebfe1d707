//! Tests: every rule on every sample. No printed text has an open slot, and no command belongs to
//! another system.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use regex::Regex;

use super::{Finding, finding, next_step, weigh};
use crate::answers::Answers;
use crate::bundle::Loader;
use crate::evidence::{Evidence, Source, Statement};
use crate::expression::Environment;
use crate::facts::Facts;
use crate::pattern::Pattern;
use crate::read::{finish, read_bytes};
use crate::rule::{Expectation, Rule, RuleSet};

/// Patterns of a slot that was not filled.
static OPEN: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"<[a-z][^<>]*>",
        r"…",
        r"[{}]",
        r"(^|[ =(])\?([ ,;.)]|$)",
        r"\b(of|with|by|is|and|than)  +\S",
        r"\b(of|with|by|most|uses|than) *([,.;:)]|$)",
        r"\( *\)|``|=[,;. ]",
    ]
    .map(|pattern| Regex::new(pattern).expect("a constant pattern"))
    .into()
});
/// The same in a command, where braces and question marks have a meaning.
static OPEN_IN_COMMAND: Pattern = Pattern::new(r"<(its|bytes|the|old|new|less|twice)\b|…");

/// Words of commands, files and settings that only Linux has.
const OF_LINUX: [&str; 40] = [
    "/proc/",
    "/sys/",
    "/etc/modprobe.d",
    "perf record",
    "perf report",
    "perf top",
    "pidstat",
    "mpstat -P",
    "top -Hb",
    "top -b ",
    "top -H -b",
    "modprobe",
    "systemctl",
    "journalctl",
    "udevadm",
    "bpftrace",
    "strace",
    "lsmod",
    "lscpu",
    "modinfo zfs",
    "sar -B",
    "ogive capture",
    "ogive locks",
    "free -m",
    "--forest",
    "--sort=",
    "drop_caches",
    "mdadm",
    "pstree",
    "ionice",
    "findmnt",
    "CPUQuota",
    "khugepaged",
    "ksmd",
    "iotop",
    "nfsiostat",
    "numactl",
    "libvirt",
    "cgroup",
    "init_on_alloc",
];
const OF_FREEBSD: [&str; 6] =
    ["gstat", "procstat", "kldstat", "/boot/loader.conf", "freebsd-version", "top -SH"];
const OF_ILLUMOS: [&str; 6] =
    ["prstat", "mdb -k", "kstat -m", "/etc/system", "iostat -xn", "intrstat"];
const OF_MACOS: [&str; 3] = ["vm_stat", "spindump", "kextstat"];
const OF_WINDOWS: [&str; 3] = ["Get-Counter", "Get-Process", "wpr "];
/// Commands that Windows lacks and all other systems have.
const OF_UNIX: [&str; 7] = ["grep", "| head", "vmstat", "dmesg", "renice", "sudo ", "cat "];

/// Systems, and the words that must not appear in their texts.
fn foreign(system: &str) -> Vec<&'static str> {
    let own = [
        ("linux", &OF_LINUX[..]),
        ("freebsd", &OF_FREEBSD[..]),
        ("illumos", &OF_ILLUMOS[..]),
        ("macos", &OF_MACOS[..]),
        ("windows", &OF_WINDOWS[..]),
    ];
    let others = own.iter().filter(|(name, _)| *name != system).flat_map(|(_, words)| *words);
    let unix = OF_UNIX.iter().filter(|_| system == "windows");
    others.chain(unix).copied().collect()
}

/// The texts of a finding that do not come from the input.
pub(super) fn advice(found: &Finding) -> Vec<&String> {
    let remedy = &found.remedy;
    [&remedy.now, &remedy.lasting, &remedy.verify, &remedy.dont].into_iter().flatten().collect()
}

pub(super) fn commands(found: &Finding) -> Vec<&String> {
    found.open.iter().filter_map(|open| open.ask.as_ref()).chain([&found.ask]).collect()
}

/// The text without its commands, and without FreeBSD's notation of a thread.
fn prose(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("CMD").replace("kernel{arc_prune}", "it")
}

fn faults_of(found: &Finding, place: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let facts = found.evidence.iter().chain(&found.against).map(|line| &line.text);
    let by = found.open.iter().map(|open| &open.by);
    let out = found.ruled_out.iter().map(|out| &out.because);
    for text in facts.chain(by).chain(out).chain(advice(found)) {
        let prose = prose(text);
        for pattern in OPEN.iter().filter(|pattern| pattern.is_match(&prose)) {
            faults.push(format!("{} at {place}: {text:?} has {pattern}", found.id));
        }
    }
    for text in commands(found).into_iter().chain(advice(found)) {
        if OPEN_IN_COMMAND.is_match(text) {
            faults.push(format!("{} at {place}: {text:?}", found.id));
        }
    }
    faults
}

/// The finding of a rule as it would be printed.
pub(super) fn printed(rule: &Rule, rules: &RuleSet, environment: &Environment) -> Option<Finding> {
    let mut weighed = vec![(rule, weigh::weigh(rule, environment).ok()??)];
    let like = rule.text.lookalikes.iter().filter_map(|id| rules.get(id));
    weighed.extend(like.filter_map(|one| Some((one, weigh::weigh(one, environment).ok()??))));
    let answers = Answers::of(environment.facts());
    let found = finding::finding(&weighed, 0, environment, &answers);
    Some(found.expect("a bundled rule is sound"))
}

fn samples() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut paths: Vec<PathBuf> = ["pastes", "read_samples", "stories", "unseen"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(tests.join(folder)).expect("it is there"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with("expected"))
        .collect();
    paths.sort();
    paths
}

/// Runs `check` for each of `items` on all processors, and returns the results.
pub(super) fn on_all<T: Sync>(
    items: &[T],
    check: impl Fn(&T) -> Vec<String> + Sync,
) -> Vec<String> {
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = check(item);
                    faults.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                }
            });
        }
    });
    faults.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn none_of(mut faults: Vec<String>) {
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn no_printed_text_has_an_open_slot() {
    let rules = RuleSet::bundled().expect("the rules compile");
    none_of(on_all(&samples(), |path| {
        let mut loader = Loader::new();
        loader.add_path(path).expect("it can be read");
        let facts = Facts::with_patterns(loader.read().evidence, rules.patterns());
        let environment = Environment::new(facts);
        let place = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let place = place.unwrap_or_default();
        let found = rules.iter().filter_map(|rule| printed(rule, &rules, &environment));
        found.flat_map(|found| faults_of(&found, &place)).collect()
    }));
}

/// The evidence of the rule's own test that finds it, on another system.
pub(super) fn convincing(rule: &Rule, system: &str) -> Option<Evidence> {
    let mut tests = rule.text.tests.iter();
    let found = tests
        .find(|test| !matches!(test.expect, Expectation::Absent | Expectation::Insufficient))?;
    let mut evidence = Evidence::default();
    for (name, content) in &found.files {
        read_bytes(&mut evidence, name, content.as_bytes());
    }
    finish(&mut evidence);
    let source = Source { input: "host".into(), line: None };
    evidence.host.os = Some(Statement { value: system.to_owned(), source });
    (evidence.host.kernel, evidence.host.distribution) = (None, None);
    Some(evidence)
}

#[test]
fn no_command_belongs_to_another_system() {
    let rules = RuleSet::bundled().expect("the rules compile");
    let systems = ["linux", "freebsd", "illumos", "macos", "windows"];
    let all: Vec<(&Rule, &str)> =
        rules.iter().flat_map(|rule| systems.iter().map(move |system| (rule, *system))).collect();
    none_of(on_all(&all, |(rule, system)| {
        let Some(evidence) = convincing(rule, system) else { return Vec::new() };
        let environment = Environment::new(Facts::with_patterns(evidence, rules.patterns()));
        let facts = environment.facts();
        // A mount of ogive exists only on Linux.
        let cannot = facts.cannot_have(&rule.text.requires).is_some()
            || rule.text.family == "ogive" && *system != "linux";
        let Some(found) = (!cannot).then(|| printed(rule, &rules, &environment)).flatten() else {
            return Vec::new();
        };
        let answers = Answers::of(facts);
        let weighed = weigh::weigh(rule, &environment).ok().flatten();
        let near: Vec<_> = weighed.into_iter().map(|one| (*rule, one)).collect();
        let step = next_step(&near, &answers, &environment);
        let step = step.map(|step| format!("{} | {}", step.run, step.outcomes.join(" | ")));
        // The name of the cause may contain words of another system.
        let step = step.map(|step| step.replace(&rule.text.title, ""));
        let texts = advice(&found).into_iter().chain(commands(&found)).chain(step.as_ref());
        let mut faults = faults_of(&found, system);
        for text in texts {
            // FreeBSD has its own "top -b".
            let own = |word: &str| *system == "freebsd" && word == "top -b ";
            let words = foreign(system).into_iter().filter(|word| text.contains(word));
            let words: Vec<_> = words.filter(|word| !own(word)).collect();
            if !words.is_empty() {
                faults.push(format!("{} on {system}: {words:?} in {text:?}", rule.text.id));
            }
        }
        faults
    }));
}

#[test]
fn every_probe_and_command_is_of_its_own_system() {
    for system in ["linux", "freebsd", "illumos", "macos", "windows"] {
        let looks = crate::rule::probes().iter().filter_map(|probe| {
            let means = probe.means(system).join(" | ");
            Some((probe.id.as_str(), format!("{} | {means}", probe.run(system)?)))
        });
        let does = crate::rule::commands().iter().filter_map(|command| {
            let undo = command.undo(system).unwrap_or_default();
            Some((command.id.as_str(), format!("{} | {undo}", command.run(system)?)))
        });
        for (id, text) in looks.chain(does) {
            // FreeBSD has its own "top -b".
            let own = |word: &&str| system == "freebsd" && *word == "top -b ";
            for word in foreign(system).into_iter().filter(|word| !own(word)) {
                assert!(!text.contains(word), "{id} on {system}: {word} in {text}");
            }
        }
    }
}
