//! Two hosts compared: their differences, and those that explain the trouble. `OGIVE_SHARED` may
//! name a folder with real pairs.

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::fmt::Write as _;
use std::path::PathBuf;

use ogive_doctor::bundle::Loader;
use ogive_doctor::compare::{Comparison, Kind, Outcome, compare};
use ogive_doctor::evidence::Evidence;
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::RuleSet;

fn rules() -> RuleSet {
    RuleSet::bundled().expect("they compile")
}

fn evidence(files: &[(&str, String)]) -> Evidence {
    let mut loader = Loader::new();
    for (name, content) in files {
        loader.add_bytes(name, content.clone().into_bytes());
    }
    loader.read().evidence
}

/// A host of four CPUs over ten seconds: ticks in the kernel, reads of the ARC, a profile.
struct Host {
    busy_ticks: u32,
    arc_hits: u32,
    profile: &'static str,
    cipher: &'static str,
    parameter: &'static str,
}

impl Host {
    fn files(&self) -> Vec<(&'static str, String)> {
        let stat = |busy: u32, idle: u32| {
            let mut text = format!("cpu  0 0 {busy} {idle} 0 0 0 0 0 0\n");
            for cpu in 0..4 {
                let _ = writeln!(text, "cpu{cpu} 0 0 {} {} 0 0 0 0 0 0", busy / 4, idle / 4);
            }
            text
        };
        let arcstats = |time_s: u64, hits: u32| {
            format!(
                "13 1 0x01 147 39984 4000000000 {}\nname                            type data\n\
                 hits                            4    {hits}\n\
                 misses                          4    10\n\
                 evict_not_enough                4    {}\n",
                time_s * 1_000_000_000,
                hits / 1000
            )
        };
        vec![
            ("start/proc/stat", stat(0, 0)),
            ("end/proc/stat", stat(self.busy_ticks, 4000 - self.busy_ticks)),
            ("start/proc/spl/kstat/zfs/arcstats", arcstats(100, 0)),
            ("end/proc/spl/kstat/zfs/arcstats", arcstats(110, self.arc_hits)),
            ("profile.folded", self.profile.to_owned()),
            ("zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n".to_owned()),
            (
                "zfs-get.txt",
                format!(
                    "NAME       PROPERTY    VALUE        SOURCE\ntank       encryption  off          \
                     default\ntank/data  encryption  {}  -\n",
                    self.cipher
                ),
            ),
            ("module-parameters.txt", format!("zfs/zfs_txg_timeout {}\n", self.parameter)),
        ]
    }

    fn evidence(&self) -> Evidence {
        evidence(&self.files())
    }
}

const CALM: &str = "z_rd_int;kthread;zio_execute;zio_done 150\ncat;main;loop 50\n";
const CCM: &str = "\
z_rd_int;kthread;zio_execute;zio_decrypt;ccm_mode_decrypt_contiguous_blocks;aes_encrypt_block;kfpu_end 1700
z_rd_int;kthread;zio_execute;zio_decrypt;ccm_mode_decrypt_contiguous_blocks;aes_aesni_encrypt 300
cat;read;zfs_read;dmu_read_uio_dbuf;copy_to_user 150
";
const HASHING: &str = "md5sum;main;md5_process_block 1800\ncat;read;zfs_read;copy_to_user 150\n";

fn healthy() -> Host {
    Host { busy_ticks: 200, arc_hits: 10_000, profile: CALM, cipher: "aes-256-gcm", parameter: "5" }
}

fn compared(healthy: &Host, sick: &Host) -> Comparison {
    compare(&rules(), ("well", healthy.evidence()), ("ill", sick.evidence()))
}

#[test]
fn a_setting_that_a_cause_depends_on_is_named_before_others() {
    let sick = Host {
        busy_ticks: 2200,
        profile: CCM,
        cipher: "aes-256-ccm",
        parameter: "30",
        ..healthy()
    };
    let comparison = compared(&healthy(), &sick);
    assert_eq!(comparison.outcome, Outcome::Cause, "{}", comparison.sentence);
    assert!(
        comparison.sentence.contains("ill has a cause that well does not have"),
        "{}",
        comparison.sentence
    );
    assert!(
        comparison.sentence.contains("encryption is aes-256-ccm (tank/data), and aes-256-gcm"),
        "{}",
        comparison.sentence
    );
    let at = |name: &str| comparison.differences.iter().position(|one| one.name == name);
    let place = |name: &str| at(name).unwrap_or_else(|| panic!("no {name}: {comparison:#?}"));
    let cipher = &comparison.differences[place("encryption")];
    assert_eq!(cipher.cited_by.as_deref(), Some("encryption-ccm"));
    assert_eq!(comparison.differences[0].kind, Kind::Cause);
    assert!(place("encryption") < place("z_rd_int"));
    let thread = &comparison.differences[place("z_rd_int")];
    let explained = thread.explains_percent.expect("the CPU of both is known");
    // 2000 of 2150 samples of 2.2 CPUs, minus 0.15 of 0.2, are 95% of 2.0 CPUs.
    assert!((90.0..97.0).contains(&explained), "{explained}");
    let other = &comparison.differences[place("zfs_txg_timeout")];
    assert!(other.cited_by.is_none() && place("zfs_txg_timeout") > place("z_rd_int"));
}

#[test]
fn hosts_without_a_relevant_difference_are_reported_as_such() {
    let sick = Host { parameter: "30", ..healthy() };
    let comparison = compared(&healthy(), &sick);
    assert_eq!(comparison.outcome, Outcome::Nothing);
    assert!(
        comparison.sentence.starts_with("No difference explains it: ill is not busier"),
        "{}",
        comparison.sentence
    );
    let names: Vec<&str> = comparison.differences.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["zfs_txg_timeout"], "{comparison:#?}");
    let same = compared(&healthy(), &healthy());
    assert!(same.differences.is_empty(), "{same:#?}");
}

#[test]
fn proportionally_more_reads_and_cpu_are_load_and_not_a_fault() {
    let sick = Host { busy_ticks: 600, arc_hits: 30_000, ..healthy() };
    let comparison = compared(&healthy(), &sick);
    assert_eq!(comparison.outcome, Outcome::MoreWork, "{}", comparison.sentence);
    assert!(comparison.sentence.contains("3.0 times the work"), "{}", comparison.sentence);
}

#[test]
fn additional_cpu_of_a_program_is_not_attributed_to_zfs() {
    let sick = Host { busy_ticks: 2200, profile: HASHING, ..healthy() };
    let comparison = compared(&healthy(), &sick);
    assert_eq!(comparison.outcome, Outcome::Program, "{}", comparison.sentence);
    assert!(comparison.sentence.contains("md5sum"), "{}", comparison.sentence);
}

#[test]
fn hosts_are_not_compared_without_the_use_of_their_cpus() {
    let bare = evidence(&[("zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n".to_owned())]);
    let comparison = compare(&rules(), ("well", bare), ("ill", healthy().evidence()));
    assert_eq!(comparison.outcome, Outcome::Insufficient);
    assert!(
        comparison.sentence.contains("the busy CPUs of well are unknown"),
        "{}",
        comparison.sentence
    );
}

#[test]
fn the_table_is_short_and_escaped_and_json_is_complete() {
    let sick = Host { busy_ticks: 2200, profile: CCM, cipher: "aes-256-ccm", ..healthy() };
    let mut comparison = compared(&healthy(), &sick);
    comparison.names[1] = "ill\x1b[2J".to_owned();
    let text = report::comparison(&comparison, false, Style::default());
    assert!(text.lines().count() <= 25 && !text.contains('\x1b'), "{text}");
    assert!(text.lines().skip(2).all(|line| line.chars().count() < 160), "{text}");
    let json = report::comparison_json(&comparison);
    assert_eq!(json["outcome"], "cause");
    let rows = json["differences"].as_array().expect("a list");
    assert_eq!(rows.len(), comparison.differences.len());
    assert!(rows.iter().any(|row| row["cited_by"] == "encryption-ccm"), "{json:#}");
}

fn capture(name: &str) -> Option<Evidence> {
    let Some(shared) = std::env::var_os("OGIVE_SHARED") else {
        skipped::skipped("OGIVE_SHARED does not name a folder of captures");
        return None;
    };
    let path = PathBuf::from(shared).join("captures").join(name);
    assert!(path.exists(), "OGIVE_SHARED has no {}", path.display());
    let mut loader = Loader::new();
    loader.add_path(&path).expect("it can be read");
    Some(loader.read().evidence)
}

#[test]
fn real_captures_differ_in_the_change_that_was_made() {
    let rules = rules();
    let Some(healthy) = capture("01-healthy-idle") else { return };
    let pairs = [
        ("03-aes-ccm-read", Outcome::Cause, "encryption-ccm"),
        ("12-recordsize512-evict", Outcome::Cause, "arc-prune-meta-pinned"),
    ];
    for (name, outcome, cause) in pairs {
        let Some(sick) = capture(name) else { continue };
        let comparison = compare(&rules, ("healthy", healthy.clone()), (name, sick));
        assert_eq!(comparison.outcome, outcome, "{}", comparison.sentence);
        let first = &comparison.differences[0];
        assert_eq!((first.kind, first.name.as_str()), (Kind::Cause, cause), "{first:?}");
        let cited = comparison.differences.iter().filter(|one| one.cited_by.is_some()).count();
        assert!(cited > 0, "nothing is cited: {comparison:#?}");
    }
    if let Some(sick) = capture("13-negative-userspace-hog") {
        let comparison = compare(&rules, ("healthy", healthy), ("hog", sick));
        assert_eq!(comparison.outcome, Outcome::Program, "{}", comparison.sentence);
        assert!(comparison.sentence.contains("md5sum"), "{}", comparison.sentence);
    }
}
