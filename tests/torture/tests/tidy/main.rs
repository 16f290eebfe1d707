//! Tidy: the rules of this project that a machine can check, checked over the whole workspace.
//!
//! Each rule is a pure function from a file's text to its faults (see `rules`). Tests below run it
//! against text that breaks it, and then against every tracked file. The lists here have the
//! exceptions, each with its reason.

#![allow(clippy::unwrap_used, reason = "a tree that cannot be read fails the test")]

mod arrows;
mod bounds;
mod links;
mod modules;
mod prose;
mod rules;
mod statistics;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use prose::Prose;
use rules::{Fault, Lines};

/// Source files that may be longer than [`rules::FILE_LINES_MAX`], with the reason.
const LONG_FILES: [(&str, &str); 0] = [];
/// Functions (`file: name`) that may be longer than [`rules::FUNCTION_LINES_MAX`], with the reason.
const LONG_FUNCTIONS: [(&str, &str); 0] = [];

/// How faults of modules begin that are none, with the reason: arrows up, and circles of more than
/// two files.
const MODULE_ARROWS: &[(&str, &str)] = &[
    (
        "crates/ogive: a circle of the root, bucket, cli",
        "completions and manual pages are made from the command line that they are part of",
    ),
    (
        "tests/torture: a circle of access, attributes, contents, directory_entries",
        "`access` runs an operation, the others are its operations on the `Side` that it has",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file that git tracks or would track; where there is no git, every file outside `target`.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files: Vec<PathBuf> = match listed {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .collect(),
        _ => walk(Path::new("")),
    };
    files.sort();
    files.dedup();
    files.retain(|file| root().join(file).is_file());
    files
}

fn walk(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let path = below.join(name);
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The text files with their contents; what is not UTF-8 is no text.
fn texts() -> BTreeMap<PathBuf, String> {
    files()
        .into_iter()
        .filter_map(|file| Some((file.clone(), std::fs::read_to_string(root().join(file)).ok()?)))
        .collect()
}

fn sources() -> BTreeMap<PathBuf, String> {
    let mut sources = texts();
    sources.retain(|file, _| file.extension().is_some_and(|extension| extension == "rs"));
    assert!(sources.len() > 20, "only {} source files were found", sources.len());
    sources
}

/// Fails with all faults, one a line.
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Applies one rule to every source file.
fn check(rule: impl Fn(&Path, &Lines<'_>) -> Vec<Fault>) {
    let mut faults = Vec::new();
    for (file, text) in sources() {
        for fault in rule(&file, &Lines::of(&text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

#[test]
fn files_are_short() {
    check(|file, lines| {
        let excepted = LONG_FILES.iter().any(|(name, _)| Path::new(name) == file);
        if excepted { Vec::new() } else { rules::long_file(lines) }
    });
}

#[test]
fn functions_are_short() {
    check(|file, lines| {
        let mut faults = rules::long_functions(lines);
        faults.retain(|fault| {
            let place = format!("{}: {}", file.display(), fault.subject);
            !LONG_FUNCTIONS.iter().any(|(name, _)| *name == place)
        });
        faults
    });
}

#[test]
fn exceptions_are_needed() {
    let sources = sources();
    let mut faults = Vec::new();
    for (name, _) in LONG_FILES {
        let text = sources.get(Path::new(name));
        if text.is_none_or(|text| rules::long_file(&Lines::of(text)).is_empty()) {
            faults.push(format!("{name} is not too long any more"));
        }
    }
    none(&faults);
}

#[test]
fn nothing_is_left_undone() {
    let mut faults = Vec::new();
    for (file, text) in texts() {
        // The rules themselves must name what they forbid.
        if file.starts_with("tests/torture/tests/tidy") {
            continue;
        }
        for fault in rules::left_undone(&Lines::of(&text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let sources = sources();
    let test_files = rules::test_files(&sources);
    let mut faults = Vec::new();
    for (file, text) in &sources {
        if test_files.contains(file) {
            continue;
        }
        for fault in rules::unwraps(&Lines::of(text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

#[test]
fn unsafe_code_is_argued_for() {
    check(|_, lines| rules::unargued_unsafe(lines));
}

#[test]
fn files_open_with_their_idea() {
    check(|_, lines| rules::without_opening(lines));
}

#[test]
fn names_are_the_fields() {
    let mut faults = Vec::new();
    for (file, text) in sources() {
        // The rules themselves must name what they forbid.
        if file.starts_with("tests/torture/tests/tidy") {
            continue;
        }
        for fault in rules::own_words(&Lines::of(&text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

/// Results are written by programs, and the cases of the doctor by the people who reported them. The
/// rules must name what they forbid.
fn is_ours(file: &Path) -> bool {
    let others = ["bench/results", "bench/doctor/cases", "tests/torture/tests/tidy"];
    !others.iter().any(|folder| file.starts_with(folder))
}

#[test]
fn prose_is_plain_and_files_have_names_of_the_field() {
    let mut faults = Vec::new();
    for (file, text) in texts().into_iter().filter(|(file, _)| is_ours(file)) {
        let Some(prose) = Prose::of(&file, &text) else { continue };
        let long = prose.head.iter().filter(|sentence| sentence.is_long());
        let long = long.map(|sentence| format!("a long sentence: {}", sentence.beginning()));
        let words = prose.head.iter().chain(&prose.comments).flat_map(words::faults);
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        let better = words::better("file", stem).filter(|_| is_source);
        let named = better.map(|better| format!("a file's name: {better}"));
        let all = long.chain(words).chain(named);
        faults.extend(all.map(|fault| format!("{}: {fault}", file.display())));
    }
    none(&faults);
}

#[test]
fn skipped_tests_are_reported() {
    check(|file, lines| {
        let is_rule = file.starts_with("tests/torture/tests/tidy");
        if is_rule { Vec::new() } else { rules::unreported_skips(lines) }
    });
}

/// Results are written by programs, and the cases of the doctor are what people wrote.
#[test]
fn pages_are_wrapped() {
    let mut faults = Vec::new();
    for (file, text) in texts() {
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        if !is_page || file.starts_with("bench/results") || file.starts_with("bench/doctor/cases") {
            continue;
        }
        for fault in rules::wide_prose(&Lines::of(&text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

#[test]
fn links_between_pages_resolve() {
    let mut pages = texts();
    pages.retain(|file, _| file.extension().is_some_and(|extension| extension == "md"));
    assert!(pages.len() > 20, "only {} pages were found", pages.len());
    none(&links::faults(&pages, &files()));
}

#[test]
fn shell_scripts_fit_a_window() {
    let mut faults = Vec::new();
    for (file, text) in texts() {
        let ending = file.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("sh" | "bash")) {
            for fault in rules::wide_shell(&Lines::of(&text)) {
                faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
            }
        }
    }
    none(&faults);
}

#[test]
fn no_path_of_one_machine() {
    let mut faults = Vec::new();
    for (file, text) in texts() {
        if file.starts_with("tests/torture/tests/tidy") {
            continue;
        }
        for fault in rules::machine_paths(&Lines::of(&text)) {
            faults.push(format!("{}:{}: {}", file.display(), fault.line, fault.what));
        }
    }
    none(&faults);
}

#[test]
fn packages_come_from_the_public_registry() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    none(&rules::foreign_sources(&lock));
}

#[test]
fn arrows_run_down_only() {
    let mut manifests = BTreeMap::new();
    let folders = ["crates", "tests"].map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        if let Ok(text) = std::fs::read_to_string(&manifest) {
            manifests.insert(arrows::name(&text).unwrap(), text);
        }
    }
    assert!(manifests.len() >= 5, "only {} crates were found", manifests.len());
    none(&arrows::faults(&manifests));
}

#[test]
fn arrows_between_modules_run_down() {
    let mut faults = modules::faults(&sources());
    for (known, _) in MODULE_ARROWS {
        let before = faults.len();
        faults.retain(|fault| !fault.starts_with(known));
        if faults.len() == before {
            faults.push(format!("no fault begins with {known:?} any more: take it off the list"));
        }
    }
    none(&faults);
}

#[test]
fn every_growing_structure_has_a_bound() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = page.split("## What grows").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(table.lines().count() > 40, "the table of ARCHITECTURE.md was not found");
    let sources = sources();
    let sources = bounds::Sources::of(&sources, &rules::test_files(&sources));
    none(&bounds::faults(table, &sources));
}

#[test]
fn every_statistic_is_a_row() {
    let table = std::fs::read_to_string(root().join("crates/stats/src/table.rs")).unwrap();
    none(&statistics::faults(&table, &sources()));
}

#[test]
fn the_ways_through_the_code_are_there() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let ways = page.split("## Ways through").nth(1).unwrap().split("\n## ").next().unwrap();
    let (mut faults, mut functions) = (Vec::new(), 0);
    for way in ways.replace("\n  ", " ").lines().filter(|line| line.starts_with("- ")) {
        let (mut file, mut text) = ("", String::new());
        for name in way.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                file = name;
                text = std::fs::read_to_string(root().join("crates").join(file)).unwrap();
            } else if file.ends_with(".rs") && !text.contains(&format!("fn {name}")) {
                let module = Path::new(file).with_file_name(format!("{name}.rs"));
                if !root().join("crates").join(module).is_file() {
                    faults.push(format!("{file}: no function {name}"));
                }
            }
            functions += 1;
        }
    }
    assert!(functions > 60, "only {functions} names were found");
    none(&faults);
}
