//! `ogive stat` on a directory of made-up kstats.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{OGIVE, assert_code, ogive, stderr, stdout};

/// Ten seconds after its beginning, 900 hits and 100 misses.
fn write_arcstats(directory: &Path, seconds: i64, hits: u64) {
    let crtime_ns = 1_000_000_000;
    let rows = [
        ("hits", hits),
        ("misses", 100),
        ("demand_data_hits", hits),
        ("demand_data_misses", 100),
        ("size", 3 << 30),
        ("c", 4 << 30),
        ("c_max", 8 << 30),
    ];
    let text =
        ogive_kstat::arcstats::file(crtime_ns, crtime_ns + seconds * 1_000_000_000, rows).unwrap();
    // Replaced in one step: the program may read at any moment.
    let new = directory.join("arcstats.new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, directory.join("arcstats")).unwrap();
}

fn kstats() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_arcstats(directory.path(), 10, 900);
    directory
}

fn stat(directory: &Path, arguments: &[&str]) -> std::process::Output {
    let mut line: Vec<PathBuf> = vec!["stat".into(), "--kstat".into(), directory.into()];
    line.extend(arguments.iter().map(PathBuf::from));
    ogive(line)
}

#[test]
fn without_an_interval_one_line_covers_the_time_since_the_start() {
    let directory = kstats();
    let output = stat(directory.path(), &["-f", "read,hits,miss,hit%,size,c"]);
    assert_code(&output, 0);
    let text = stdout(&output);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], ["read", "hits", "miss", "hit%", "size", "c"]);
    // 1000 reads in 10 seconds.
    let numbers: Vec<f64> = lines[1][..4].iter().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(numbers, [100.0, 90.0, 10.0, 90.0]);
    assert_eq!(lines[1][4..], ["3.0G", "4.0G"]);
}

#[test]
fn the_default_columns_are_those_of_arcstat() {
    let directory = kstats();
    let text = stdout(&stat(directory.path(), &[]));
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        header,
        ["time", "read", "ddread", "ddh%", "dmread", "dmh%", "pread", "ph%", "size", "c", "avail"]
    );
}

#[test]
fn numbers_can_be_raw_and_columns_separated_by_anything() {
    let directory = kstats();
    let text = stdout(&stat(directory.path(), &["-p", "-s", ",", "-f", "size,c"]));
    assert_eq!(text.lines().nth(1), Some("3221225472,4294967296"), "{text}");
}

#[test]
fn json_is_one_object_a_line_in_the_order_asked_for() {
    let directory = kstats();
    let text = stdout(&stat(directory.path(), &["--json", "-f", "time,hits,hit%,c", "0.1", "3"]));
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["hits"].as_f64(), Some(90.0));
    assert_eq!(lines[0]["hit%"].as_f64(), Some(90.0));
    assert_eq!(lines[0]["c"].as_f64(), Some((4_u64 << 30) as f64));
    assert!(text.starts_with("{\"time\":\""), "{text}");
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn later_lines_cover_the_interval_before_them() {
    let directory = kstats();
    let mut child = Command::new(OGIVE)
        .args(["stat", "--json", "-f", "hits,miss", "0.1", "--kstat"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let first = lines.next().unwrap();
    assert!(first.contains("\"hits\":90"), "{first}");
    // Two seconds later by the counters' own clock, 50 more hits.
    write_arcstats(directory.path(), 12, 950);
    let changed = lines.find(|line| json(line)["hits"].as_f64() != Some(0.0)).unwrap();
    let json = json(&changed);
    assert_eq!((json["hits"].as_f64(), json["miss"].as_f64()), (Some(25.0), Some(0.0)));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupt_ends_the_lines_with_success() {
    let directory = kstats();
    let mut child = Command::new(OGIVE)
        .args(["stat", "600", "--kstat"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    // The header and the first line are there; now it sleeps.
    lines.read_line(&mut text).unwrap();
    lines.read_line(&mut text).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    lines.read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn the_end_of_the_reader_is_no_error() {
    let directory = kstats();
    let mut child = Command::new(OGIVE)
        .args(["stat", "0.1", "--kstat"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_code(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn lines_can_go_to_a_file() {
    let directory = kstats();
    let path = directory.path().join("out");
    let output = stat(directory.path(), &["0.1", "2", "-o", path.to_str().unwrap()]);
    assert_code(&output, 0);
    assert_eq!(stdout(&output), "");
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 3);
}

#[test]
fn headers_are_repeated_in_a_long_run() {
    let directory = kstats();
    let text = stdout(&stat(directory.path(), &["-f", "hits,c", "0.1", "25"]));
    assert_eq!(text.lines().filter(|line| line.contains("hits")).count(), 2, "{text}");
    assert_eq!(text.lines().count(), 27);
}

#[test]
fn a_directory_with_the_layout_of_proc_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("spl/kstat/zfs");
    fs::create_dir_all(&inner).unwrap();
    let missing = stat(directory.path(), &[]);
    assert_code(&missing, 1);
    assert!(stderr(&missing).contains("spl/kstat/zfs"), "{}", stderr(&missing));
    write_arcstats(&inner, 10, 900);
    let output = stat(directory.path(), &["-p", "-f", "hits"]);
    assert_code(&output, 0);
    assert_eq!(stdout(&output).lines().nth(1).map(str::trim), Some("90"));
    assert_eq!(stderr(&output), "", "no message about a named directory");
}

#[test]
fn an_invalid_kstat_is_reported_with_its_file_and_line() {
    let directory = kstats();
    fs::write(directory.path().join("arcstats"), "what is this\n").unwrap();
    let output = stat(directory.path(), &[]);
    assert_code(&output, 1);
    assert!(stderr(&output).contains("arcstats"), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("ogive: "), "{}", stderr(&output));
}

/// The answer of a mount about two files, one of which has a deceptive name.
const OBJECTS: &str = r#"{
    "objects": 2, "undercount_max_bytes": 0,
    "sampled_seconds": 12.0, "sampled_one_in": 8, "lease_seconds": 30,
    "total": {"records": 5, "bytes": 655360, "mru_bytes": 131072, "mfu_bytes": 524288,
        "reads": 1000, "hits": 990, "misses": 10, "origin_bytes": 1310720, "l2_bytes": 0},
    "metadata": {"records": 0, "bytes": 0, "mru_bytes": 0, "mfu_bytes": 0,
        "reads": 0, "hits": 0, "misses": 0, "origin_bytes": 0, "l2_bytes": 0},
    "unnamed": {"records": 0, "bytes": 0, "mru_bytes": 0, "mfu_bytes": 0,
        "reads": 0, "hits": 0, "misses": 0, "origin_bytes": 0, "l2_bytes": 0},
    "files": [
        {"path": "/large", "records": 4, "bytes": 524288, "mru_bytes": 0, "mfu_bytes": 524288,
            "reads": 100, "hits": 100, "misses": 0, "origin_bytes": 0, "l2_bytes": 0},
        {"path": "/d/a\\u{a}b", "records": 1, "bytes": 131072, "mru_bytes": 131072, "mfu_bytes": 0,
            "reads": 900, "hits": 890, "misses": 10, "origin_bytes": 1310720, "l2_bytes": 0}
    ],
    "directories": [
        {"path": "/", "records": 5, "bytes": 655360, "mru_bytes": 131072, "mfu_bytes": 524288,
            "reads": 1000, "hits": 990, "misses": 10, "origin_bytes": 1310720, "l2_bytes": 0},
        {"path": "/d", "records": 1, "bytes": 131072, "mru_bytes": 131072, "mfu_bytes": 0,
            "reads": 900, "hits": 890, "misses": 10, "origin_bytes": 1310720, "l2_bytes": 0}
    ]
}"#;

#[test]
fn objects_are_a_table_that_is_aligned_whatever_their_names_are() {
    let directory = kstats();
    fs::write(directory.path().join("objects"), OBJECTS).unwrap();
    let output = stat(directory.path(), &["--objects"]);
    assert_code(&output, 0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    let at = |line: &str, word: &str| line.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    // Directories, files, sums: each with a header, and paths below each other.
    assert_eq!(at(lines[0], "directories"), at(lines[2], "/d"));
    assert!(lines[4].ends_with("files") && lines[5].ends_with("/large"), "{text}");
    assert_eq!(at(lines[4], "files"), at(lines[6], "/d/a\\u{a}b"));
    let words: Vec<&str> = lines[6].split_whitespace().collect();
    let expected = [
        "128",
        "KiB",
        "128",
        "KiB",
        "0",
        "B",
        "1",
        "900",
        "98.9",
        "10",
        "1.2",
        "MiB",
        "/d/a\\u{a}b",
    ];
    assert_eq!(words, expected);
    assert!(text.contains("of the last 12 seconds, estimated from one record in 8"), "{text}");

    let by_misses = stdout(&stat(directory.path(), &["--objects", "--by", "misses", "-p"]));
    let files: Vec<&str> = by_misses.lines().skip(5).take(2).collect();
    assert!(files[0].ends_with("/d/a\\u{a}b") && files[1].ends_with("/large"), "{by_misses}");
    assert!(files[0].contains(" 1310720 "), "{by_misses}");
}

#[test]
fn objects_are_one_json_object_a_line_and_refusals_are_text() {
    let directory = kstats();
    fs::write(directory.path().join("objects"), OBJECTS).unwrap();
    let text = stdout(&stat(directory.path(), &["--objects", "--json", "0.1", "2"]));
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["files"][0]["path"], "/large");

    fs::remove_file(directory.path().join("objects")).unwrap();
    let output = stat(directory.path(), &["--objects"]);
    assert_code(&output, 4);
    assert!(stderr(&output).contains("of an earlier version"), "{}", stderr(&output));
    for arguments in [&["--objects", "-x"][..], &["--by", "reads"], &["--objects", "--by", "name"]]
    {
        assert_code(&stat(directory.path(), arguments), 2);
    }
}

#[test]
fn invalid_objects_are_reported_as_such() {
    let directory = kstats();
    let file = directory.path().join("objects");
    fs::write(&file, r#"{"total": 5, "files": [7, {"path": 1}], "directories": {}}"#).unwrap();
    for arguments in [&["--objects"][..], &["--objects", "-p"], &["--objects", "--json"]] {
        assert_code(&stat(directory.path(), arguments), 0);
    }
    fs::write(&file, "nothing of the kind").unwrap();
    let output = stat(directory.path(), &["--objects"]);
    assert_code(&output, 1);
    assert!(stderr(&output).contains("has invalid content"), "{}", stderr(&output));
}
