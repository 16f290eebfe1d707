//! The rules, each a function from text to faults.
//!
//! They read rustfmt's layout, not Rust: a body ends at the first closing brace with the
//! indentation of the line that opened it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::words;

/// Lines of a source file at most.
pub(crate) const FILE_LINES_MAX: usize = 600;
/// Lines of a function at most, from its first line to its closing brace.
pub(crate) const FUNCTION_LINES_MAX: usize = 80;
/// How far above unsafe code its argument may begin.
const SAFETY_LINES_ABOVE: usize = 15;

/// A fault and its place.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) subject: String,
    pub(crate) what: String,
}

fn fault(at: usize, subject: &str, what: impl Into<String>) -> Fault {
    Fault { line: at + 1, subject: subject.to_owned(), what: what.into() }
}

/// A file's lines.
pub(crate) struct Lines<'text>(Vec<&'text str>);

impl<'text> Lines<'text> {
    pub(crate) fn of(text: &'text str) -> Lines<'text> {
        Lines(text.lines().collect())
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &'text str)> + '_ {
        self.0.iter().copied().enumerate()
    }

    /// The line that closes what is opened at `start`: itself when nothing stays open.
    fn end_of(&self, start: usize) -> usize {
        let indent = indent(self.0[start]);
        for (at, line) in self.iter().skip(start) {
            let ended = at == start || self::indent(line) == indent;
            if ended && (line.ends_with(';') || line.ends_with('}') || line.ends_with("},")) {
                return at;
            }
        }
        self.0.len() - 1
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Whether `word` stands in `line` by itself, not inside a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(part_of_word) && !line[at + word.len()..].starts_with(part_of_word)
    })
}

/// Whether a name in code is this word, or has it as a part: `Word`, `OneWord`, `WordOfOthers`.
fn names_with(line: &str, word: &str) -> bool {
    let is_type = word.starts_with(char::is_uppercase);
    let goes_on = |character: char| character.is_lowercase() || character.is_ascii_digit();
    let mut places = line.match_indices(word).map(|(at, _)| &line[at + word.len()..]);
    has_word(line, word) || is_type && places.any(|rest| !rest.starts_with(goes_on))
}

pub(crate) fn long_file(lines: &Lines<'_>) -> Vec<Fault> {
    let count = lines.0.len();
    if count <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![fault(count - 1, "", format!("{count} lines; {FILE_LINES_MAX} are allowed"))]
}

/// The name of the function that begins on this line.
fn function_name(line: &str) -> Option<&str> {
    if is_comment(line) {
        return None;
    }
    let (before, after) = line.split_once("fn ")?;
    let qualifiers = ["pub", "const", "async", "unsafe", "extern", "\"C\"", "default"];
    let only_qualifiers = before
        .split_whitespace()
        .all(|word| qualifiers.contains(&word) || word.starts_with("pub("));
    let name = after.split(['(', '<']).next()?;
    (only_qualifiers && !name.is_empty()).then_some(name)
}

pub(crate) fn long_functions(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let length = lines.end_of(at) - at + 1;
        if length > FUNCTION_LINES_MAX {
            let what = format!("{name} has {length} lines; {FUNCTION_LINES_MAX} are allowed");
            faults.push(fault(at, name, what));
        }
    }
    faults
}

pub(crate) fn left_undone(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter() {
        for word in ["todo!", "unimplemented!", "dbg!", "FIXME", "XXX", "TODO"] {
            if has_word(line, word) {
                faults.push(fault(at, word, format!("{word} is left")));
            }
        }
        if line.trim_start().starts_with("#[ignore") {
            faults.push(fault(at, "ignore", "a test that does not run"));
        }
    }
    faults
}

/// Whether a line makes the next item a part of tests only.
fn is_test_only(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("#[cfg(") && has_word(line, "test") && !line.contains("not(test"))
        || line.starts_with("#[test]")
}

/// The source files that belong to tests, benches, fuzzing or examples: by their folder, or
/// because they are declared as a test-only module of another file.
pub(crate) fn test_files(sources: &BTreeMap<PathBuf, String>) -> BTreeSet<PathBuf> {
    let folders = ["tests", "benches", "fuzz", "examples"];
    let mut found: BTreeSet<PathBuf> = sources
        .keys()
        .filter(|file| file.iter().any(|part| folders.iter().any(|folder| part == *folder)))
        .cloned()
        .collect();
    for (file, text) in sources {
        if text.lines().any(|line| line.starts_with("#![cfg(test)]")) {
            found.insert(file.clone());
        }
        let lines = Lines::of(text);
        for (at, line) in lines.iter() {
            let Some(module) = line.trim_start().strip_prefix("mod ") else {
                continue;
            };
            let Some(module) = module.strip_suffix(';') else {
                continue;
            };
            if at > 0 && is_test_only(lines.0[at - 1]) {
                let folder = module_folder(file).join(module);
                found.extend(
                    sources
                        .keys()
                        .filter(|other| {
                            other.with_extension("") == folder || other.starts_with(&folder)
                        })
                        .cloned(),
                );
            }
        }
    }
    found
}

/// The folder in which the modules of a file live.
fn module_folder(file: &Path) -> PathBuf {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match stem {
        "lib" | "main" | "mod" => file.parent().unwrap_or(file).to_path_buf(),
        _ => file.with_extension(""),
    }
}

pub(crate) fn unwraps(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut at = 0;
    while at < lines.0.len() {
        let line = lines.0[at];
        if is_test_only(line) {
            // Further attributes may stand between; the item itself is as far left.
            let mut item = at + 1;
            while item + 1 < lines.0.len() && lines.0[item].trim_start().starts_with(['#', '/']) {
                item += 1;
            }
            at = lines.end_of(item.min(lines.0.len() - 1)) + 1;
            continue;
        }
        if !is_comment(line) && line.contains(".unwrap()") {
            faults.push(fault(at, "unwrap", "unwrap outside tests; use expect with the invariant"));
        }
        at += 1;
    }
    faults
}

pub(crate) fn unargued_unsafe(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter() {
        if is_comment(line) || !has_word(line, "unsafe") {
            continue;
        }
        const CODE: [&str; 5] =
            ["unsafe {", "unsafe impl", "unsafe fn", "unsafe trait", "unsafe extern"];
        let Some(start) = CODE.iter().filter_map(|code| line.find(code)).min() else {
            continue;
        };
        let in_text = line[..start].contains('"');
        // The type of a function pointer does nothing.
        let is_type = line.contains("unsafe extern \"C\" fn(") || line.contains("unsafe fn(");
        if in_text || is_type {
            continue;
        }
        let above = &lines.0[at.saturating_sub(SAFETY_LINES_ABOVE)..=at];
        let argued = above.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"));
        if !argued {
            faults.push(fault(at, "unsafe", "unsafe code without a SAFETY comment above it"));
        }
    }
    faults
}

pub(crate) fn without_opening(lines: &Lines<'_>) -> Vec<Fault> {
    match lines.0.first() {
        Some(line) if line.starts_with("//! ") => Vec::new(),
        _ => vec![fault(0, "", "does not open with `//!` and its idea")],
    }
}

/// Names in code that a newcomer would have to have explained.
pub(crate) fn own_words(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter() {
        let code = line.split("//").next().unwrap_or_default();
        let code: String = code.split('"').step_by(2).collect();
        for (word, better) in words::of("code") {
            if names_with(&code, word) {
                faults.push(fault(at, word, format!("{word} is not the field's word: {better}")));
            }
        }
    }
    faults
}

/// Tests that say by a macro that they cannot run: the test runner keeps that to itself.
pub(crate) fn unreported_skips(lines: &Lines<'_>) -> Vec<Fault> {
    let is_unheard = |line: &str| {
        let (_, printed) = line.split_once("print")?;
        let text = printed.strip_prefix("ln").unwrap_or(printed).strip_prefix("!(\"")?;
        let is_of_skipping = text.starts_with("skipped")
            || text.starts_with("not tested")
            || text.contains("nothing checked");
        is_of_skipping.then_some(())
    };
    let found = lines.iter().filter(|(_, line)| is_unheard(line).is_some());
    found
        .map(|(at, _)| {
            fault(at, "", "report it with tests/skipped.rs, which the test runner does not hide")
        })
        .collect()
}

/// Columns that a line of prose in a page has at most.
pub(crate) const PROSE_COLUMNS_MAX: usize = 100;

/// Lines of a page that are too wide to read. Tables, code, pictures and headings may be wider.
pub(crate) fn wide_prose(lines: &Lines<'_>) -> Vec<Fault> {
    let (mut faults, mut is_code) = (Vec::new(), false);
    for (at, line) in lines.iter() {
        is_code ^= line.trim_start().starts_with("```");
        let columns = line.chars().count();
        let is_prose = !is_code && !line.starts_with(['|', '!', '#', '<', '`']);
        if is_prose && columns > PROSE_COLUMNS_MAX {
            faults.push(fault(
                at,
                "",
                format!("{columns} columns; {PROSE_COLUMNS_MAX} are allowed"),
            ));
        }
    }
    faults
}

/// Columns that a line of a shell script has at most.
const SHELL_COLUMNS_MAX: usize = 100;

/// Lines of a shell script that a window cuts off.
pub(crate) fn wide_shell(lines: &Lines<'_>) -> Vec<Fault> {
    let wide = lines.iter().map(|(at, line)| (at, line.chars().count()));
    let wide = wide.filter(|(_, columns)| *columns > SHELL_COLUMNS_MAX);
    wide.map(|(at, columns)| fault(at, "", format!("{columns} columns; break it"))).collect()
}

/// Paths that exist on one machine only.
pub(crate) fn machine_paths(lines: &Lines<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter() {
        for path in ["/root/", "/Users/", "/tmp/target"] {
            // In the middle of a longer path it is a folder of this project or of a user's.
            let alone = line.match_indices(path).any(|(start, _)| {
                !line[..start].ends_with(|before: char| {
                    before.is_alphanumeric() || "._-}~*/$".contains(before)
                })
            });
            if alone {
                faults.push(fault(at, path, format!("names {path}, a path of one machine")));
            }
        }
    }
    faults
}

/// Packages of a lock file that come from anywhere but the public registry.
pub(crate) fn foreign_sources(lock: &str) -> Vec<String> {
    const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    lock.lines()
        .filter(|line| line.starts_with("source = ") && *line != REGISTRY)
        .map(ToOwned::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rule: fn(&Lines<'_>) -> Vec<Fault>, text: &str) -> usize {
        rule(&Lines::of(text)).len()
    }

    #[test]
    fn length_is_counted() {
        assert_eq!(count(long_file, &"x\n".repeat(600)), 0);
        assert_eq!(count(long_file, &"x\n".repeat(601)), 1);
        let body = |lines| {
            format!("    pub(crate) fn f(\n    ) {{\n{}    }}\n", "        x;\n".repeat(lines))
        };
        assert_eq!(count(long_functions, &body(77)), 0);
        assert_eq!(count(long_functions, &body(78)), 1);
        assert_eq!(count(long_functions, &format!("fn f();\n{}", "x\n".repeat(100))), 0);
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(count(left_undone, "// TODO: more\n    dbg!(x);\n#[ignore = \"slow\"]"), 3);
        assert_eq!(count(left_undone, "mktemp XXXXXX\nTODOS\n"), 0);
    }

    #[test]
    fn unwraps_are_found_outside_tests_only() {
        let code = "fn f() {\n    x.unwrap();\n}\n";
        assert_eq!(count(unwraps, code), 1);
        let indented = "    fn f() {\n        x.unwrap();\n    }\n";
        assert_eq!(count(unwraps, &format!("#[cfg(test)]\nmod tests {{\n{indented}}}\n")), 0);
        assert_eq!(count(unwraps, &format!("#[cfg(not(test))]\nmod a {{\n{indented}}}\n")), 1);
        assert_eq!(count(unwraps, "#[cfg(test)]\nmod tests;\nfn f() { x.unwrap() }\n"), 1);
        assert_eq!(count(unwraps, "/// x.unwrap()\n"), 0);
    }

    #[test]
    fn test_only_modules_are_found() {
        let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
        let sources = BTreeMap::from([
            file("a/src/lib.rs", "#[cfg(test)]\nmod check;\nmod real;\n"),
            file("a/src/check.rs", ""),
            file("a/src/real.rs", "#[cfg(test)]\nmod tests;\n"),
            file("a/src/real/tests.rs", ""),
            file("a/tests/b.rs", ""),
        ]);
        let found: Vec<_> = test_files(&sources).into_iter().collect();
        let expected = ["a/src/check.rs", "a/src/real/tests.rs", "a/tests/b.rs"];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn unsafe_without_argument_is_found() {
        assert_eq!(count(unargued_unsafe, "let x = unsafe { y() };"), 1);
        assert_eq!(count(unargued_unsafe, "// SAFETY: y is there.\nlet x = unsafe { y() };"), 0);
        assert_eq!(count(unargued_unsafe, "unsafe impl Send for X {}"), 1);
        assert_eq!(count(unargued_unsafe, "#![forbid(unsafe_code)]"), 0);
        assert_eq!(count(unargued_unsafe, "call: unsafe extern \"C\" fn(i32),"), 0);
    }

    #[test]
    fn unreported_skips_are_found() {
        let text = "eprintln!(\"skipped: no fuse\");\nprint!(\"no cases; nothing checked\");\n\
                    eprintln!(\"not tested: no ring\");\n";
        assert_eq!(count(unreported_skips, text), 3);
        assert_eq!(
            count(unreported_skips, "println!(\"{n} skipped\");\nskipped(\"no fuse\");\n"),
            0
        );
    }

    #[test]
    fn words_and_wide_lines_are_found() {
        assert_eq!(count(own_words, "struct Told;\nlet eldest = 1;\n"), 2);
        assert_eq!(count(own_words, "struct ToldSizes;\nNewPanel::told()\n"), 2);
        assert_eq!(count(own_words, "// Told\nlet text = \"Panel\";\nLeaves::told()\n"), 0);
        let wide = "word ".repeat(30);
        assert_eq!(count(wide_prose, &format!("{wide}\n- {wide}\n")), 2);
        let allowed = format!("| {wide} |\n```sh\n{wide}\n```\n# {wide}\n");
        assert_eq!(count(wide_prose, &allowed), 0);
        assert_eq!(count(wide_prose, &format!("```\n{wide}\n```\n{wide}\n")), 1);
        assert_eq!(count(wide_shell, &format!("# {wide}\n{}\n", "x".repeat(100))), 1);
    }

    #[test]
    fn openings_and_paths_and_sources_are_checked() {
        assert_eq!(count(without_opening, "//! The idea.\n"), 0);
        assert_eq!(count(without_opening, "use x;\n"), 1);
        assert_eq!(count(without_opening, ""), 1);
        assert_eq!(count(machine_paths, "see /Users/x and \"/root/y\""), 2);
        assert_eq!(count(machine_paths, "see bench/Users/x and $HOME/root/y"), 0);
        assert_eq!(foreign_sources("source = \"registry+https://mirror.example/\"\n").len(), 1);
    }
}
