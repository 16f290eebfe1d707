//! Pastes, one file each, and the first three answers to them. Each is of a kind that was once
//! answered wrongly. The kinds are rows that exclude no program, a list with large gaps, interrupts
//! and stolen time, one full CPU, and a wait for disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::LazyLock;

use ogive_doctor::answers::{Among, Part, State, Wait};
use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose, report};

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::bundled().unwrap());

fn of(name: &str) -> Diagnosis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pastes").join(name);
    let mut loader = Loader::new();
    loader.add_path(&path).unwrap();
    diagnose(&RULES, loader.read().evidence)
}

/// The answers in words: state, first user, whether ZFS is among them, kind of verdict.
fn answers(name: &str) -> (State, String, Among, VerdictKind) {
    let diagnosis = of(name);
    let first = diagnosis.answers.users.first().map(|user| user.name.clone());
    (
        diagnosis.answers.cpu.state,
        first.unwrap_or_default(),
        diagnosis.answers.zfs.among,
        diagnosis.verdict.kind,
    )
}

#[test]
fn the_three_answers_are_right_for_every_tool() {
    use {Among as A, State as S, VerdictKind as V};
    for (name, state, user, among, kind) in [
        ("ps-java.txt", S::Busy, "java", A::No, V::UserProcess),
        ("ps-kworker.txt", S::Unknown, "kworker", A::No, V::Kernel),
        ("top-kworker.txt", S::Some, "kworker/3:2+events", A::No, V::Kernel),
        ("procinfo.txt", S::Idle, "", A::Unknown, V::Open),
        ("top-iowait.txt", S::Waiting, "", A::Unknown, V::NotCpu),
        ("top-iowait-rows.txt", S::Waiting, "txg_sync", A::Unknown, V::NotCpu),
        ("arm64-ccm.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("issue-template.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("key-value.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("pidstat-d.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("time-zfs-get.txt", S::Some, "zfs", A::Yes, V::Cause),
        ("stolen-and-interrupts.txt", S::Busy, "interrupts", A::No, V::Kernel),
        ("list-shows-little.txt", S::Busy, "not shown by the list", A::Unknown, V::Open),
        ("one-cpu-of-soft-interrupts.txt", S::Some, "interrupts", A::No, V::Kernel),
        ("nfs-server-hash.txt", S::Unknown, "nfsd", A::No, V::Kernel),
        ("few-samples.txt", S::Unknown, "txg_sync", A::Yes, V::Open),
        ("windows-list.txt", S::Busy, "", A::Unknown, V::Open),
        ("macos-list.txt", S::Busy, "clang", A::No, V::NotZfs),
        ("plain-question.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("chat-idle.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("chat-without-zfs.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("lockup-of-a-worker.txt", S::Some, "kworker/3:1", A::Unknown, V::Open),
        ("containers.txt", S::Busy, "shop-elastic-1", A::Unknown, V::Open),
        ("program-in-the-kernel.txt", S::Busy, "node", A::Unknown, V::Open),
        ("pressure.txt", S::Waiting, "", A::Unknown, V::NotCpu),
        ("resync.txt", S::Waiting, "md0_raid6", A::No, V::NotCpu),
        ("seconds-of-cpu.txt", S::Unknown, "chrome", A::Unknown, V::Open),
        ("load-of-sleepers.txt", S::Idle, "portsyncd", A::No, V::NotCpu),
        ("iowait-of-nobody.txt", S::Idle, "sensord", A::No, V::NotCpu),
        ("top-of-one-name.txt", S::Some, "systemd", A::Unknown, V::Open),
        ("first-screen-of-atop.txt", S::Idle, "", A::Unknown, V::Open),
        ("figures-of-no-cpu.txt", S::Unknown, "", A::Unknown, V::Insufficient),
        ("supervisor.txt", S::Unknown, "", A::Unknown, V::Insufficient),
    ] {
        let expected = (state, user.to_owned(), among, kind);
        assert_eq!(answers(name), expected, "{name}: {}", of(name).verdict.sentence);
    }
}

#[test]
fn the_first_line_states_the_most_certain_fact() {
    for (name, line) in [
        ("ps-java.txt", "Not ZFS: it is java, with 3.8 CPUs, as a mean over its life."),
        (
            "top-kworker.txt",
            "Not ZFS: it is a kernel worker (kworker/3:2+events) (runs what was put off; its name \
             says for whom), with 1 CPU.",
        ),
        (
            "stolen-and-interrupts.txt",
            "Interrupts take 45% of all CPUs; 44% of all CPUs are stolen by the hypervisor.",
        ),
        ("macos-list.txt", "clang uses 3.9 CPUs."),
        ("windows-list.txt", "91% of the CPUs is busy; its users are not shown."),
        (
            "load-of-sleepers.txt",
            "Not the CPU: 2.3% is busy, and a load of 17 means about 15 tasks in state D, for an \
             unknown reason.",
        ),
        (
            "first-screen-of-atop.txt",
            "9.7% of the CPUs is busy (system 7.2%, user 2.2%), as a mean since it started; how busy it \
             is now is not shown.",
        ),
    ] {
        assert_eq!(report::short(&of(name), report::Style::default()).lines().next(), Some(line));
    }
    let waits = of("top-iowait.txt");
    assert_eq!(waits.answers.cpu.waits_for, Some(Wait::Disks));
    let stolen = of("stolen-and-interrupts.txt").answers.cpu;
    assert_eq!(stolen.most(), Some(Part::Interrupts));
    assert_eq!(stolen.part(Part::Stolen), 43.9);
}

#[test]
fn a_possible_cause_is_not_stated_as_a_fact_and_few_samples_are_not_certain() {
    let few = of("few-samples.txt");
    assert!(few.findings.iter().all(|finding| finding.confidence < 0.7), "{:?}", few.verdict);
    assert!(few.verdict.sentence.contains("of the only 65 busy samples"), "{:?}", few.verdict);
    let nfs = of("nfs-server-hash.txt");
    assert!(nfs.findings.is_empty(), "{:?}", nfs.findings);
}

#[test]
fn a_cause_that_needs_another_processor_is_not_named() {
    let arm = of("arm64-ccm.txt");
    let named = arm.considered.iter().map(|(id, _)| id.as_str());
    let named: Vec<&str> =
        named.chain(arm.findings.iter().map(|finding| finding.id.as_str())).collect();
    let impossible = ["encryption-ccm", "encryption-no-simd", "encryption-fpu-overhead"];
    assert!(!named.iter().any(|id| impossible.contains(id)), "{named:?}");
}

#[test]
fn the_next_step_suits_the_system_and_has_not_been_taken() {
    let step = |name: &str| of(name).verdict.step.map(|step| step.run).unwrap_or_default();
    assert!(step("windows-list.txt").starts_with("Get-Counter"), "{}", step("windows-list.txt"));
    assert!(!step("top-iowait.txt").contains("zpool iostat"), "{}", step("top-iowait.txt"));
    let interrupts = step("one-cpu-of-soft-interrupts.txt");
    assert!(
        interrupts.contains("/proc/softirqs") && !interrupts.contains("mpstat"),
        "{interrupts}"
    );
    let worker = of("top-kworker.txt").verdict.step.unwrap();
    assert!(worker.run.contains("perf record") && worker.outcomes.len() >= 2, "{worker:?}");
    // If the cause is known, its remedy is the next step.
    assert_eq!(step("time-zfs-get.txt"), "");
}

#[test]
fn properties_and_versions_are_read_in_any_place() {
    let template = of("issue-template.txt");
    assert_eq!(template.overview.zfs_version.as_deref(), Some("2.0.0-r0-gentoo"));
    assert_eq!(template.overview.kernel.as_deref(), Some("5.4.80-gentoo-r1"));
    assert!(template.not_understood.is_empty(), "{:?}", template.not_understood);
    assert!(of("key-value.txt").not_understood.is_empty());
    assert!(of("pidstat-d.txt").not_understood.is_empty());
}
