//! Growth and its bounds: the table in ARCHITECTURE.md, checked against the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Where the daemon's code is, below `crates`.
const DAEMON: [&str; 10] = [
    "arc/src",
    "bucket/src",
    "fs/src",
    "l2/src",
    "metrics/src",
    "ogive/src/mount",
    "origin/src",
    "pressure/src",
    "threads/src",
    "watch/src/http",
];
/// The structures that may grow.
const GROWING: [&str; 8] = [
    "BTreeMap<",
    "BTreeSet<",
    "BinaryHeap<",
    "Bounded<",
    "HashMap<",
    "HashSet<",
    "HashTable<",
    "VecDeque<",
];
/// Files with such structures and without a row, with the reason.
const WITHOUT_ROW: [(&str, &str); 3] = [
    ("bucket/src/memory.rs", "a store in memory, of tests"),
    ("bucket/src/object_metadata.rs", "a part of one object, which a store bounds"),
    ("fs/src/testing.rs", "an origin of tests and of the fuzzer"),
];

/// Sources by their paths below `crates`, and which of them are tests.
#[derive(Default)]
pub(crate) struct Sources {
    texts: BTreeMap<String, String>,
    tests: BTreeSet<String>,
}

impl Sources {
    pub(crate) fn of(sources: &BTreeMap<PathBuf, String>, tests: &BTreeSet<PathBuf>) -> Self {
        let below = |path: &PathBuf| Some(path.strip_prefix("crates").ok()?.display().to_string());
        let texts = sources.iter().filter_map(|(path, text)| Some((below(path)?, text.clone())));
        Self { texts: texts.collect(), tests: tests.iter().filter_map(below).collect() }
    }

    /// The code that is no test.
    fn code(&self) -> impl Iterator<Item = (&String, &str)> {
        let texts = self.texts.iter().filter(|(path, _)| !self.tests.contains(*path));
        texts.map(|(path, text)| (path, code(text)))
    }
}

/// A text without the test modules in it.
fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default()
}

/// The text between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether a line is a field, or a static, with a structure that grows.
fn grows(line: &str) -> bool {
    let is_field = [",", ";", "("].iter().any(|end| line.trim_end().ends_with(end));
    let first = line.trim_start();
    let is_code = ["//", "let ", "mut ", "use "].iter().all(|other| !first.starts_with(other));
    let is_function = line.contains("fn ") || line.contains("->") || line.contains("::new");
    is_field && is_code && !is_function && GROWING.iter().any(|name| line.contains(name))
}

fn row(cells: &[&str], sources: &Sources) -> Vec<String> {
    let [what, file, bound, counters, goes, tests] = cells else {
        return vec![format!("{cells:?}: a row has six cells")];
    };
    let mut faults = Vec::new();
    let path = quoted(file).next().unwrap_or_default();
    let Some(text) = sources.texts.get(path) else {
        return vec![format!("{what}: there is no file {path}")];
    };
    if bound.is_empty() || goes.is_empty() {
        faults.push(format!("{what}: without a bound, or never given back"));
    }
    let is_anywhere = |word: &str| sources.code().any(|(_, text)| text.contains(word));
    for name in quoted(bound) {
        let is_there = match name.strip_prefix("--") {
            Some(option) => is_anywhere(&format!("pub(crate) {}:", option.replace('-', "_"))),
            None => text.contains(&format!("const {name}:")),
        };
        if !is_there {
            faults.push(format!("{what}: {path} has no {name}"));
        }
    }
    for counter in quoted(counters) {
        // Or by a macro that makes a name of each of its lines.
        let ways = [format!("\"{counter}\""), format!(" {counter} \""), format!(" {counter}\n")];
        if !ways.iter().any(|way| is_anywhere(way)) {
            faults.push(format!("{what}: there is no counter {counter}"));
        }
    }
    if quoted(tests).next().is_none() {
        faults.push(format!("{what}: without a test"));
    }
    for test in quoted(tests) {
        let is_script = test.contains('/') && super::root().join(test).is_file();
        let function = format!("fn {test}(");
        if !is_script && !sources.texts.values().any(|text| text.contains(&function)) {
            faults.push(format!("{what}: there is no test {test}"));
        }
    }
    faults
}

/// The false rows of a table, and the structures that it lacks.
pub(crate) fn faults(table: &str, sources: &Sources) -> Vec<String> {
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<Vec<&str>> =
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let mut faults: Vec<String> = rows.iter().flat_map(|cells| row(cells, sources)).collect();
    let mut known: BTreeSet<&str> =
        rows.iter().filter_map(|cells| quoted(cells.get(1)?).next()).collect();
    known.extend(WITHOUT_ROW.iter().map(|(path, _)| *path));
    for (path, text) in sources.code() {
        let is_daemon = DAEMON.iter().any(|below| path.starts_with(below));
        if is_daemon && !known.contains(path.as_str()) {
            let lines = text.lines().filter(|line| grows(line));
            faults.extend(lines.map(|line| format!("{path}: `{}` has no row", line.trim())));
        }
    }
    faults
}

#[cfg(test)]
mod rules {
    use super::*;

    #[test]
    fn a_row_that_is_not_so_and_a_structure_without_one_are_faults() {
        let texts = [
            ("fs/src/a.rs", "const A_MAX: usize = 3;\nstruct A {\n    a: HashMap<u8, u8>,\n}\n"),
            ("fs/src/b.rs", "push(\"as\", 1);\n#[test]\nfn a_test() {}\n"),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let mut sources = Sources { texts, ..Sources::default() };
        let head = "| what | file | bound | counter | goes with | test |\n|---|---|\n";
        let of = |row: &str, sources: &Sources| faults(&format!("{head}{row}\n"), sources);
        let right = "| a | `fs/src/a.rs` | `A_MAX` | `as` | time | `a_test` |";
        assert_eq!(of(right, &sources), Vec::<String>::new());
        for (part, wrong) in
            [("a.rs", "c.rs"), ("A_MAX", "B_MAX"), ("`as`", "`bs`"), ("a_test", "b_test")]
        {
            assert!(!of(&right.replace(part, wrong), &sources).is_empty(), "{wrong}");
        }
        assert_eq!(of(&right.replace("`a_test`", ""), &sources), ["a: without a test"]);
        let other = "struct C(\n    Mutex<VecDeque<u8>>,\n);\n#[cfg(test)]\nmod tests {\n    a: HashMap<u8>,\n}\n";
        sources.texts.insert("fs/src/c.rs".to_owned(), other.to_owned());
        assert_eq!(of(right, &sources), ["fs/src/c.rs: `Mutex<VecDeque<u8>>,` has no row"]);
    }
}
