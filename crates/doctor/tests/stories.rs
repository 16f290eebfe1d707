//! The five published stories that took experts days, with the figures that their readers had.
//!
//! Each folder of `stories/` has the files that the people of the story could have saved. The test
//! runs the whole doctor: readers, rules, verdict, remedy.

use std::fs;
use std::path::Path;

use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::evidence::Evidence;
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose, read};

fn story(name: &str) -> Diagnosis {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories").join(name);
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .expect("the story is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut evidence = Evidence::default();
    for path in paths {
        let bytes = fs::read(&path).expect("a readable file");
        let name = path.file_name().expect("a file name").to_string_lossy().into_owned();
        read::read_bytes(&mut evidence, &name, &bytes);
    }
    read::finish(&mut evidence);
    let diagnosis =
        diagnose::diagnose(&RuleSet::bundled().expect("the bundled rules compile"), evidence);
    assert!(diagnosis.rule_faults.is_empty(), "{:?}", diagnosis.rule_faults);
    diagnosis
}

/// The printed text about the first finding.
fn printed(diagnosis: &Diagnosis) -> String {
    let first = &diagnosis.findings[0];
    let mut text = first.verdict.clone();
    let remedy = &first.remedy;
    for line in remedy.now.iter().chain(&remedy.lasting).chain(&remedy.verify).chain(&remedy.dont) {
        text.push('\n');
        text.push_str(line);
    }
    for line in first.evidence.iter().map(|line| &line.text) {
        text.push('\n');
        text.push_str(line);
    }
    text
}

fn first(diagnosis: &Diagnosis) -> &str {
    diagnosis.findings.first().map_or("nothing", |finding| finding.id.as_str())
}

#[test]
fn an_idle_arc_made_random_numbers() {
    let diagnosis = story("idle-arc-random-sublist");
    assert_eq!(first(&diagnosis), "arc-evict-random-sublist");
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Cause);
    let text = printed(&diagnosis);
    assert!(text.contains("modprobe -r zfs") && text.contains("0.7.0"), "{text}");
    let share = diagnosis.findings[0].share_percent.expect("the profile tells the share");
    assert!((60.0..75.0).contains(&share), "{share}");
}

#[test]
fn aes_ccm_saved_the_fpu_for_every_sixteen_bytes() {
    let diagnosis = story("aes-ccm-fpu");
    assert_eq!(first(&diagnosis), "encryption-ccm");
    assert!(diagnosis.findings[0].confidence >= diagnose::CERTAIN);
    let text = printed(&diagnosis);
    assert!(text.contains("aes-256-gcm: create a new dataset and move the data"), "{text}");
    assert!(text.contains("about 8 times"), "{text}");
}

/// The counters of vnodes are of the reporter's own kernel; released kernels lack them.
#[test]
fn freebsd_examined_963_vnodes_for_each_one_freed() {
    let diagnosis = story("freebsd-arc-prune");
    assert_eq!(first(&diagnosis), "freebsd-arc-prune-dispatch");
    assert!(diagnosis.findings[0].confidence >= diagnose::CERTAIN);
    let text = printed(&diagnosis);
    assert!(text.contains("963 vnodes were examined for each one freed"), "{text}");
    assert!(
        text.contains("held and skipped") && text.contains("another file system and were skipped"),
        "{text}"
    );
    assert!(text.contains("EN-23:18") && text.contains("2.2.1"), "{text}");
}

#[test]
fn lockstat_named_the_lists_of_the_arc() {
    let diagnosis = story("arc-list-locks");
    assert_eq!(first(&diagnosis), "arc-list-lock-contention");
    let text = printed(&diagnosis);
    assert!(text.contains("0.6.5") && text.contains("5497"), "{text}");
    assert!(
        diagnosis.findings[0]
            .evidence
            .iter()
            .any(|line| line.sources.iter().any(|at| at.input.contains("lockstat")))
    );
}

#[test]
fn the_culprit_on_a_host_without_zfs_is_another_program() {
    let diagnosis = story("zfs-free-host");
    assert_eq!(first(&diagnosis), "innocent-user-process");
    assert_eq!(diagnosis.verdict.kind, VerdictKind::NotZfs);
    assert!(printed(&diagnosis).contains("java"), "{}", printed(&diagnosis));
}
