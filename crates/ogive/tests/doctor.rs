//! `ogive doctor` on the command line: whole answers, comparisons, fleets, and invalid input.
//!
//! The doctor's own crate tests the findings; these tests check the output and the exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{assert_code, ogive, stderr, stdout};
use ogive_doctor::bundle::BundleWriter;

/// A host whose reads are decrypted by AES-CCM.
const ILL: &str = "\
z_rd_int;kthread;zio_execute;ccm_mode_decrypt_contiguous_blocks;aes_encrypt_block 900
cat;read;zfs_read;copy_to_user 100
";
/// A host on which a program works.
const WELL: &str = "\
md5sum;main;md5_process_block 900
cat;read;zfs_read;copy_to_user 50
";

/// A capture of a host.
fn capture(directory: &Path, name: &str, profile: &str, cipher: &str) -> PathBuf {
    let path = directory.join(format!("{name}.ogive"));
    let mut writer = BundleWriter::new(fs::File::create(&path).unwrap(), 1).unwrap();
    let properties = format!("NAME  PROPERTY  VALUE  SOURCE\ntank  encryption  {cipher}  -\n");
    let uname = format!("Linux {name} 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n");
    for (file, text) in [
        ("manifest.json", "{\"version\":1}"),
        ("profile.folded", profile),
        ("zfs-get.txt", &properties),
        ("uname.txt", &uname),
    ] {
        writer.add(file, text.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn doctor(arguments: &[&str], paths: &[&Path]) -> std::process::Output {
    let mut line: Vec<PathBuf> = vec!["doctor".into()];
    line.extend(arguments.iter().map(PathBuf::from));
    line.extend(paths.iter().map(|path| path.to_path_buf()));
    ogive(line)
}

/// The lines that begin with a word.
fn labelled<'t>(text: &'t str, label: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.trim_start().starts_with(label)).collect()
}

#[test]
fn the_whole_answer_has_every_part_and_the_short_one_fits_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let ill = capture(directory.path(), "ill", ILL, "aes-256-ccm");
    let long = doctor(&["--long"], &[&ill]);
    assert_code(&long, 8);
    let text = stdout(&long);
    assert!(text.starts_with("Problem found. AES-CCM"), "{text}");
    assert_eq!(labelled(&text, "1. ").len(), 1, "{text}");
    assert!(text.contains("[encryption-ccm]: certain ("), "{text}");
    for part in [
        "evidence",
        "ruled out",
        "lasting",
        "it worked if",
        "Is it CPU",
        "Who uses it",
        "Is it ZFS",
        "Hottest",
    ] {
        assert!(!labelled(&text, part).is_empty(), "no {part}: {text}");
    }
    // Each line of evidence says from where.
    let evidence: Vec<&str> = text.lines().filter(|line| line.contains(" + ")).collect();
    assert!(!evidence.is_empty(), "{text}");
    assert!(text.contains("[zfs-get.txt:2]"), "{text}");
    let short = doctor(&[], &[&ill]);
    assert_code(&short, 8);
    let page = stdout(&short);
    assert!(page.lines().count() <= 25 && page.starts_with("Problem found. "), "{page}");
    assert!(page.lines().count() < text.lines().count(), "{page}");
}

#[test]
fn a_comparison_names_differences_and_equal_hosts_are_no_finding() {
    let directory = tempfile::tempdir().unwrap();
    let well = capture(directory.path(), "well", WELL, "aes-256-gcm");
    let ill = capture(directory.path(), "ill", ILL, "aes-256-ccm");
    let differs = doctor(&["--compare"], &[&well, &ill]);
    let text = stdout(&differs);
    let head = text.lines().nth(2).unwrap_or_default();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns.last(), Some(&"explains"), "{text}");
    assert!(head.contains("well") && head.contains("ill"), "{text}");
    let cipher: Vec<&str> = text.lines().filter(|line| line.contains("encryption")).collect();
    let both = |line: &&str| line.contains("aes-256-gcm") && line.contains("aes-256-ccm");
    assert!(cipher.iter().any(both), "{text}");
    assert!(matches!(differs.status.code(), Some(7 | 8)), "{:?} {text}", differs.status);
    let same = doctor(&["--compare"], &[&well, &well]);
    assert!(stdout(&same).contains("No compared value differs."), "{}", stdout(&same));
    let one = doctor(&["--compare"], &[&well]);
    assert_code(&one, 2);
    assert!(stderr(&one).contains("two"), "{}", stderr(&one));
}

#[test]
fn several_captures_are_a_fleet_by_cause_and_one_that_is_damaged_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for at in 0..2 {
        paths.push(capture(directory.path(), &format!("ill-{at}"), ILL, "aes-256-ccm"));
    }
    paths.push(capture(directory.path(), "well", WELL, "aes-256-gcm"));
    let whole = fs::read(&paths[0]).unwrap();
    let broken = directory.path().join("broken.ogive");
    fs::write(&broken, &whole[..whole.len() / 8]).unwrap();
    paths.push(broken);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let table = doctor(&[], &paths);
    assert_code(&table, 8);
    let text = stdout(&table);
    let groups: Vec<&str> = text.lines().filter(|line| line.contains(" problem: ")).collect();
    assert_eq!(groups.len(), 1, "{text}");
    assert!(groups[0].starts_with("2 hosts problem: "), "{text}");
    assert!(text.contains("[encryption-ccm]"), "{text}");
    let hosts = labelled(&text, "hosts");
    assert!(hosts[0].contains("ill-0") && hosts[0].contains("ill-1"), "{text}");
    assert!(!hosts[0].contains("well"), "{text}");
    assert_eq!(labelled(&text, "Not read: broken").len(), 1, "{text}");
    let json = doctor(&["--json"], &paths);
    let fleet: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(fleet["version"], 1);
    assert_eq!(fleet["hosts"].as_array().map(Vec::len), Some(3), "{fleet}");
    assert_eq!(fleet["groups"][0]["id"], "encryption-ccm", "{fleet}");
    assert_eq!(fleet["unread"][0]["name"], "broken", "{fleet}");
}

#[test]
fn for_unknown_bytes_the_answer_names_the_formats_it_tried() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("random");
    let mut state = 0x9e37_79b9_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    })
    .take(5000)
    .collect();
    fs::write(&path, bytes).unwrap();
    let output = doctor(&[], &[&path]);
    assert_code(&output, 7);
    let text = stdout(&output);
    for word in ["not read", "it is not text", "perf.data", "tar"] {
        assert!(text.contains(word), "no {word}: {text}");
    }
}

#[test]
fn for_a_calm_list_the_answer_names_the_largest_user_and_that_it_is_little() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("top.txt");
    let top = "\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    901 root      20   0   90000   5000   4000 S   2.7   0.1   0:09.00 sshd
    801 root      20   0       0      0      0 S   0.3   0.0   0:01.00 txg_sync
";
    fs::write(&path, top).unwrap();
    let output = doctor(&[], &[&path]);
    assert_code(&output, 7);
    let text = stdout(&output);
    let says = "Not enough evidence: sshd uses most of what is listed, 0.03 CPUs";
    assert!(text.starts_with(says), "{text}");
}
