//! Reads inputs of other profilers' tests and compares the samples with the results of those tests
//! or of perf itself.
//!
//! The inputs are not bundled. `bench/profile/others.py` collects them into a directory, with a
//! file of expected results next to each, and OGIVE_OTHERS names the directory. Without it the test
//! reports that it is skipped.

#![allow(clippy::unwrap_used, reason = "an input that is there must be readable")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ogive_profile::Profile;
use ogive_profile::read::{self, Options};

/// The number of samples, if it is given, and the weight of each program.
type Expected = BTreeMap<String, (Option<u64>, u64)>;

/// The expected samples by program, and whether samples without a stack count.
fn expected(path: &Path) -> (Expected, bool) {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| {
        let mut words = line.splitn(3, ' ');
        let (count, weight) = (words.next().unwrap(), words.next().unwrap());
        let name = words.next().unwrap().to_owned();
        (name, (count.parse().ok(), weight.parse().unwrap()))
    });
    (rows.collect(), !text.starts_with("# stacks"))
}

fn found(profile: &Profile, all: bool) -> BTreeMap<String, (u64, u64)> {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples() {
        if !all && profile.stack(sample.stack).next().is_none() {
            continue;
        }
        let name = profile.thread(sample.thread).name;
        let name = if all { name.to_owned() } else { folded(name) };
        let of = found.entry(name).or_default();
        *of = (of.0 + u64::from(sample.count), of.1 + sample.weight);
    }
    found
}

/// A program's name as stackcollapse-perf.pl prints it, which takes a number in the name for the
/// thread's.
fn folded(name: &str) -> String {
    let words = name.split(' ').enumerate();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = words.take_while(|(at, word)| *at == 0 || !is_number(word));
    words.map(|(_, word)| word).collect::<Vec<_>>().join("_")
}

/// The differences from the expected result; `None` without any.
fn difference(path: &Path) -> Option<String> {
    let (expected, all) = expected(
        &path.with_file_name(format!("{}.want", path.file_name().unwrap().to_string_lossy())),
    );
    let profile = match read::open(path, &Options::default(), &mut |_| {}) {
        Ok(profile) => profile,
        Err(_) if expected.is_empty() => return None,
        Err(error) => return Some(error.to_string()),
    };
    let found = found(&profile, all);
    let same = |name: &String| match (expected.get(name), found.get(name)) {
        (Some((count, weight)), Some(found)) => {
            *weight == found.1 && count.is_none_or(|count| count == found.0)
        }
        _ => false,
    };
    let names = expected.keys().chain(found.keys());
    let different: Vec<String> = names
        .filter(|name| !same(name))
        .map(|name| format!("{name}: {:?}, expected {:?}", found.get(name), expected.get(name)))
        .collect();
    (!different.is_empty()).then(|| different[..different.len().min(4)].join("; "))
}

#[test]
fn inputs_of_other_profilers_give_the_expected_samples() {
    let Some(place) = std::env::var_os("OGIVE_OTHERS") else {
        return skipped::skipped("OGIVE_OTHERS does not say where the inputs of others are");
    };
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_none_or(|end| end != "want")).collect();
    inputs.sort();
    let different: Vec<String> = inputs
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), difference(path)?)))
        .collect();
    let right = inputs.len() - different.len();
    assert!(
        different.is_empty(),
        "{right} of {} are as expected:\n{}",
        inputs.len(),
        different.join("\n")
    );
}
