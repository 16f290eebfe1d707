//! Reads the shared cases and captures, and compares the evidence with their figures.
//!
//! They are in the folder `OGIVE_SHARED`; without it the tests are skipped. Nothing else outside
//! the tree is read, so every clone runs the same tests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod figures;
#[path = "../../../../tests/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ogive_doctor::evidence::Evidence;
use ogive_doctor::read;

/// The expected formats of each file of the cases, by the part of its name before the first dot or
/// digit.
const FORMATS: [(&str, &[&str]); 38] = [
    ("top.txt", &["top"]),
    ("ps.txt", &["ps"]),
    ("uptime.txt", &["uptime"]),
    ("perf-report.txt", &["perf report"]),
    ("perf-top.txt", &["perf report"]),
    ("stacks.folded", &["folded stacks"]),
    ("perf-stat.txt", &["perf stat"]),
    ("arcstats", &["kstat"]),
    ("dbufstats", &["kstat"]),
    ("fletcher_4_bench", &["benchmark"]),
    ("vdev_raidz_bench", &["benchmark"]),
    ("chksum_bench", &["benchmark"]),
    ("txgs", &["txgs"]),
    ("dbgmsg", &["dbgmsg"]),
    ("arcstat.txt", &["arcstat"]),
    ("arc_summary.txt", &["arc_summary"]),
    ("kstat-arcstats.txt", &["kstat of illumos"]),
    ("meminfo", &["meminfo"]),
    ("free.txt", &["free"]),
    ("slabinfo", &["slabinfo"]),
    ("spl-slab.txt", &["spl slab"]),
    ("buddyinfo", &["buddyinfo"]),
    ("vmstat.txt", &["vmstat"]),
    ("proc-vmstat", &["vmstat file"]),
    ("sar.txt", &["sar"]),
    ("iotop.txt", &["iotop"]),
    ("atop.txt", &["atop"]),
    ("atopsar.txt", &["atopsar"]),
    ("time.txt", &["time"]),
    ("lockstat.txt", &["lockstat"]),
    ("zfs-get.txt", &["zfs get"]),
    ("zpool-list.txt", &["zpool list"]),
    ("zpool-status.txt", &["zpool status"]),
    ("zpool-get.txt", &["zfs get"]),
    ("module-params.txt", &["module parameters"]),
    ("version.txt", &["version"]),
    ("os-release", &["settings"]),
    ("lscpu.txt", &["lscpu"]),
];

fn shared() -> Option<PathBuf> {
    let Some(path) = std::env::var_os("OGIVE_SHARED").map(PathBuf::from) else {
        skipped::skipped("OGIVE_SHARED does not name a folder of cases and captures");
        return None;
    };
    let facts = path.join("cases/facts.jsonl");
    assert!(facts.is_file(), "OGIVE_SHARED has no {}", facts.display());
    Some(path)
}

/// Every file below `folder`, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn read_folder(folder: &Path) -> Evidence {
    let mut evidence = Evidence::default();
    for path in files(folder) {
        // The readers must not see the answer.
        if path.ends_with("truth.json") {
            continue;
        }
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        read::read_bytes(&mut evidence, &name, &bytes);
    }
    read::finish(&mut evidence);
    evidence
}

#[test]
fn every_rendered_file_is_recognised_and_its_figures_are_in_the_evidence() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let rendered = Command::new("python3")
        .arg(shared.join("cases/render.py"))
        .arg(shared.join("cases/facts.jsonl"))
        .arg(folder.path())
        .status();
    if !rendered.is_ok_and(|status| status.success()) {
        skipped::skipped("render.py could not be run");
        return;
    }
    let text = std::fs::read_to_string(shared.join("cases/facts.jsonl")).unwrap();
    let (mut found, mut missing) = (0, Vec::new());
    let mut wrong = Vec::new();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let evidence = read_folder(&folder.path().join(id));
        for input in &evidence.inputs {
            let expected = FORMATS.iter().find(|(name, _)| **name == *input.name);
            if let Some((_, formats)) = expected
                && input.formats.iter().map(String::as_str).ne(formats.iter().copied())
            {
                wrong.push(format!("{id}/{}: {:?}", input.name, input.formats));
            }
        }
        let by_hand = |input: &str| matches!(input, "report.txt" | "notes.txt");
        let of_tools = evidence.not_understood.iter().filter(|one| !by_hand(&one.source.input));
        for line in of_tools {
            missing.push(format!("{id}/{}: not understood: {}", line.source, line.value));
        }
        let known = figures::of_evidence(&evidence);
        for (path, value) in figures::of_facts(&case["facts"]) {
            if known.has(value) {
                found += 1
            } else {
                missing.push(format!("{id}: {path} = {value}"))
            }
        }
    }
    for line in &missing {
        println!("missing {line}");
    }
    println!("figures found {found}, missing {}", missing.len());
    assert!(wrong.is_empty(), "taken for another format: {wrong:#?}");
    assert!(missing.is_empty() && found >= 460, "{} figures are missing", missing.len());
}

#[test]
fn every_file_of_the_captures_is_recognised() {
    let Some(shared) = shared() else { return };
    let captures = shared.join("captures");
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(&captures).unwrap() {
        let capture = entry.unwrap().path();
        if !capture.is_dir() {
            continue;
        }
        let evidence = read_folder(&capture);
        for input in &evidence.inputs {
            if input.formats.is_empty() && input.trouble.is_none() {
                *unknown.entry(input.name.to_string()).or_default() += 1;
            }
        }
        for line in &evidence.not_understood {
            println!(
                "{}: {}: {}",
                capture.file_name().unwrap().to_string_lossy(),
                line.source,
                line.value
            );
        }
        assert!(evidence.cpu.iter().any(|used| !used.since_boot && used.idle < 100.0));
        assert!(evidence.threads.iter().any(|thread| thread.cpu_percent.is_some()));
        assert!(evidence.tables.iter().filter(|table| table.name == "arcstats").count() >= 2);
        assert!(!evidence.profiles.is_empty());
    }
    for (name, count) in &unknown {
        println!("unknown {name} in {count} captures");
    }
    // The notes of the capture script are not output of a tool.
    let unknown: Vec<_> = unknown
        .keys()
        .filter(|name| !["sizes.txt", "perf.script.err"].contains(&name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Figures that were measured of a capture by other means.
fn measured(capture: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(capture.join("truth.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
    truth["measured"].clone()
}

#[test]
fn two_readings_give_the_measured_cpu_of_threads() {
    let Some(shared) = shared() else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(shared.join("captures")).unwrap() {
        let capture = entry.unwrap().path();
        if !capture.is_dir() {
            continue;
        }
        let truth = measured(&capture);
        let evidence = read_folder(&capture);
        let Some(window_s) = truth["window_s"].as_f64() else { continue };
        let used = evidence.cpu.iter().rfind(|used| !used.since_boot).unwrap();
        let system = truth["cpu_percent_of_2_cores"]["system"].as_f64().unwrap();
        assert!(
            (used.system - system).abs() < 3.0,
            "{}: {} {system}",
            capture.display(),
            used.system
        );
        for (name, seconds) in truth["threads_cpu_seconds"].as_object().unwrap() {
            let seconds = seconds.as_f64().unwrap();
            let percent: f64 = (evidence.threads.iter())
                .filter(|thread| {
                    thread.name == *name && thread.source.input.contains("thread-stats")
                })
                .filter_map(|thread| thread.cpu_percent)
                .sum();
            // Names of several threads, or of ended ones, are not compared.
            if seconds >= 5.0 && percent > 0.0 {
                let found_s = percent * window_s / 100.0;
                assert!((found_s - seconds).abs() < 0.1 * seconds, "{name}: {found_s} {seconds}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 5, "{compared} threads compared");
}
