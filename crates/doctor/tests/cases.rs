//! The labelled cases in the tree are sound, and each lies in the half that its hash selects.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/doctor/cases")
}

/// Runs `python3` with these arguments; `None` if this machine has no Python.
fn python(arguments: &[&str]) -> Option<Output> {
    match Command::new("python3").arg("-B").args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped("there is no python3");
            None
        }
        Err(error) => panic!("python3 does not run: {error}"),
    }
}

fn verify(directory: &Path) -> Option<Output> {
    let script = cases().join("split.py");
    python(&[script.to_str().unwrap(), "verify", directory.to_str().unwrap()])
}

/// A sound case. The `{id}` `b` belongs to the learn half.
fn case(id: &str, url: &str, class: &str) -> String {
    format!(
        r#"{{"id": "{id}", "url": "{url}", "platform": {{"os": "Linux"}}, "symptom": "It is slow.", "#
    ) + r#""facts": {"zpool": {"list": []}, "report": ["One fact."]}, "use": "diagnose", "notes": "", "#
        + &format!(
            r#""truth": {{"class": "{class}", "accept": [], "family": "innocent", "zfs_role": "innocent", "#
        )
        + r#""confidence": "low", "summary": "s", "remedy": "r", "source": "nobody"}}"#
        + "\n"
}

fn verdict_on(learn: &str, check: &str) -> Option<(bool, String)> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("learn.jsonl"), learn).unwrap();
    std::fs::write(directory.path().join("check.jsonl"), check).unwrap();
    let output = verify(directory.path())?;
    Some((output.status.success(), String::from_utf8(output.stderr).unwrap()))
}

#[test]
fn the_cases_are_sound_and_in_their_halves() {
    let Some(output) = verify(&cases()) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn faults_of_cases_are_found() {
    // The first byte of the SHA-256 of "b" is 0x3e, that of "c" is 0x2e, that of "e" is 0x3f.
    let (b, e) = (case("b", "u:b", "workload-legit"), case("e", "u:e", "workload-legit"));
    let Some((sound, faults)) = verdict_on(&b, &e) else { return };
    assert!(sound, "{faults}");
    let faulty = [
        (format!("{b}{e}"), String::new(), "e: belongs to check.jsonl"),
        (b.clone(), case("e", "u:b", "workload-legit"), "its url is also in learn.jsonl"),
        (
            b.clone() + &case("b", "u:2", "workload-legit"),
            e.clone(),
            "this id is also in learn.jsonl",
        ),
        (b.clone(), case("e", "u:e", "no-such-thing"), "no such class: no-such-thing"),
        (b.clone(), case("e", "u:e", "dedup-ddt"), "the family of dedup-ddt is not innocent"),
        (
            b.clone(),
            e.replace(r#""zpool": {"list": []}, "#, ""),
            "has no facts that a tool printed",
        ),
        (b.clone(), e.replace("[\"One fact.\"]", "7"), "does not render"),
        (b.clone(), e.replace("\"nobody\"", "\"\""), "has no source for its truth"),
        (b, format!("{e}{{"), "check.jsonl:2: not a case"),
    ];
    for (learn, check, complaint) in faulty {
        let (sound, faults) = verdict_on(&learn, &check).unwrap();
        assert!(!sound && faults.contains(complaint), "want {complaint:?}, got {faults:?}");
    }
}

#[test]
fn the_check_half_is_scored_in_totals_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("check.jsonl");
    std::fs::write(&path, case("secret-name", "u:s", "workload-legit")).unwrap();
    let script = cases().join("score.py");
    let files = [script.as_path(), path.as_path(), directory.path()].map(|p| p.to_str().unwrap());
    for form in [&["--totals"][..], &["--totals", "--json"]] {
        let Some(output) = python(&[&files[..], form].concat()) else { return };
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("gives no answer"));
        assert!(!text.contains("secret-name"), "{text}");
    }
    let open = python(&files).unwrap();
    assert!(String::from_utf8(open.stdout).unwrap().contains("secret-name"));
}

fn learn() -> String {
    cases().join("../learn.py").to_str().unwrap().to_owned()
}

#[test]
fn weights_are_never_counted_over_the_check_half() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("check.jsonl");
    std::fs::write(&path, case("secret-name", "u:s", "workload-legit")).unwrap();
    let Some(output) = python(&[&learn(), path.to_str().unwrap()]) else { return };
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && complaint.contains("not to learn from"), "{complaint}");
}

#[test]
fn one_case_does_not_change_a_weight_and_words_weigh_only_as_much_as_they_are_right() {
    let script = r#"
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
import learn
class Model:
    prior_own, prior_other, rise = 20.0, 200.0, 0.5
def counted(kind, own, other, when="said('x')"):
    sign = {"kind": kind, "when": when, "weight": 3.0, "otherwise": -1.0}
    return learn.weight(sign, own, other, Model)[0]
assert counted("symbol", (1, 0), (0, 200)) == 3.0
assert counted("symbol", (2, 0), (0, 200)) > 3.0
assert counted("symbol", (1, 0), (90, 110)) < 2.0
assert counted("words", (1, 0), (0, 200)) == 3.0
assert counted("words", (1, 0), (90, 110)) < 0.1
assert counted("words", (2, 5), (2, 200)) < 3.0
assert counted("words", (0, 5), (4, 200)) < 2.0
when = "said('zfs') && !said(r\"cpu|load\")"
assert learn.without_exceptions(when) == "said('zfs')"
assert learn.without_exceptions('tells(r"zfs & <slow> & !cpu|load")') == 'tells(r"zfs & <slow>")'
rules = {"a": {"1": {"kind": "symbol", "weight": 3.0, "otherwise": 0.0}}}
def case(cause, *accept):
    return {"truth": {"class": cause, "accept": accept}}
counts = learn.Counts(rules, {}, Model)
for cause in ("a", "a", "b"):
    counts.add(case(cause), {"a": {"1": True}})
counts.add(case("b", "a"), {"a": {"1": True}})
counts.add(case("b"), {"a": {"1": False}})
counts.add(case("b"), {})
assert counts.table == {("a", "1"): [2, 0, 1, 1]}, counts.table
counts.add(case("a"), {"a": {"1": True}}, -1)
assert counts.table == {("a", "1"): [1, 0, 1, 1]}, counts.table
"#;
    let Some(output) = python(&["-c", script, &learn()]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn perturb() -> String {
    cases().join("../perturb.py").to_str().unwrap().to_owned()
}

#[test]
fn the_check_half_is_never_perturbed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("check.jsonl");
    std::fs::write(&path, case("secret-name", "u:s", "workload-legit")).unwrap();
    let Some(output) = python(&[&perturb(), path.to_str().unwrap()]) else { return };
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && complaint.contains("not to learn from"), "{complaint}");
    assert!(!complaint.contains("secret-name"), "{complaint}");
}

#[test]
fn variants_have_fewer_facts_or_other_tools_and_a_seed_repeats_them() {
    let script = r#"
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
import perturb
top = """top - 10:11:01 up 14:51,  2 users,  load average: 1.03, 0.97, 0.91
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
    101 root      20   0       0      0      0 R  98.7  0.0   1:02.03 z_wr_iss
    102 root      20   0       0      0      0 S   0.3  0.0   0:00.03 txg_sync
"""
perf = "  52.64%  [zfs]  [k] SHA256Transform\n   3.10%  libc.so.6  [.] memcpy\n"
files = {"top.txt": top, "perf-top.txt": perf, "p.folded": "a;b 7\na;c 9\n",
         "report.txt": "It is slow.\nIt was fast.\n", "version.txt": "zfs-2.1.5\n"}
made = list(perturb.variants(files, "1 a"))
assert made == list(perturb.variants(files, "1 a"))
halves = {str(own) for seed in range(9) for kind, _, own in perturb.variants(files, seed) if kind == "half the rows"}
assert len(halves) > 1
kinds = {}
for kind, what, own in made:
    kinds.setdefault(kind, {})[what] = own
assert set(kinds) == {"without words", "without machine", "without a tool", "only a tool", "first rows",
    "half the rows", "no weights", "as folded", "as ps", "as words", "no words", "no versions", "a sentence less"}, set(kinds)
assert "top.txt" not in kinds["without a tool"]["top.txt"] and len(kinds["without a tool"]) == 3
assert set(kinds["only a tool"]["perf-top.txt"]) == {"perf-top.txt", "report.txt", "version.txt"}
assert kinds["no weights"]["p.folded"]["p.folded"] == "a;b 1\na;c 1\n"
assert kinds["as folded"]["perf-top.txt"]["stacks.folded"] == "SHA256Transform_[k] 526\nmemcpy 31\n"
assert "root         101 98.7  0.0" in kinds["as ps"]["top.txt"]["ps.txt"] and "top.txt" not in kinds["as ps"]["top.txt"]
words = kinds["as words"]
assert words["top.txt"]["report.txt"].endswith("It was fast.\nz_wr_iss is at 99% of a CPU.\n")
assert "goes to SHA256Transform(), memcpy().\n" in words["perf-top.txt"]["report.txt"]
assert "report.txt" not in kinds["no words"][""] and "version.txt" not in kinds["no versions"][""]
assert kinds["a sentence less"]["It is slow."]["report.txt"] == "It was fast.\n"
assert perturb.thin(top, lambda row: row < 2).count("\n") < top.count("\n")
"#;
    let Some(output) = python(&["-c", script, &perturb()]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
