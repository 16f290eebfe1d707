//! Arrows between modules of a crate: none goes up, and no circle has more than two files.
//!
//! A module is a file. A file may import from its children. An import from its own parent is no
//! arrow, because a child often implements a part of a parent's type. An import from a module
//! further up is an arrow, except from the crate's root, which has the shared items such as
//! `Result`. A re-exported item counts as imported from its own module. Tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by its path inside its crate; the root is empty.
type Module = Vec<String>;

/// The modules of one crate and what each imports.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Module>,
    /// `use` paths and paths in the text, as they stand there.
    paths: BTreeMap<Module, Vec<Vec<String>>>,
    /// The re-exported items by name: the path, from the crate's root.
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// The crate of a source file and the module that it is; nothing for tests and other targets.
fn place(file: &Path) -> Option<(String, Module)> {
    let mut parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into()).collect();
    let last = parts.pop()?.strip_suffix(".rs")?.to_owned();
    let at = parts.iter().position(|part| part == "src")?;
    let name = parts[..at].join("/");
    let mut module = parts.split_off(at + 1);
    if last != "mod" && !(module.is_empty() && (last == "lib" || last == "main")) {
        module.push(last);
    }
    let is_test = module.iter().any(|part| part == "tests" || part == "testing");
    let is_ours = name.starts_with("crates/") || name.starts_with("tests/");
    (is_ours && !is_test).then_some((name, module))
}

/// The text without comments, and without test modules that stand in it.
fn code(text: &str) -> String {
    let mut left = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let is_test_module = trimmed.starts_with("#[cfg(")
            && trimmed.contains("test")
            && lines.peek().is_some_and(|next| {
                next.trim_start().starts_with("mod ") && next.trim_end().ends_with('{')
            });
        if is_test_module && line.len() == trimmed.len() {
            break;
        }
        if !trimmed.starts_with("//") {
            left.push(line.split(" // ").next().unwrap_or_default());
        }
    }
    left.join("\n")
}

/// Every path of a `use` with braces.
fn spread(tree: &str) -> Vec<Vec<String>> {
    let Some((before, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| spread(&format!("{before}{}", part.trim()))).collect()
}

/// The `use` paths of a text, those that are public apart, and what is left of the text.
fn uses(code: &str) -> (Vec<Vec<String>>, Vec<Vec<String>>, String) {
    let (mut own, mut public, mut rest) = (Vec::new(), Vec::new(), String::new());
    let mut statement = String::new();
    for line in code.lines() {
        let trimmed = line.trim();
        if statement.is_empty() {
            let after_pub = trimmed.strip_prefix("pub").map(|after| {
                after
                    .trim_start()
                    .strip_prefix('(')
                    .map_or(after, |rest| rest.split_once(')').map_or(rest, |(_, after)| after))
            });
            let begins = |text: &str| text.trim_start().starts_with("use ");
            if !begins(trimmed) && !after_pub.is_some_and(begins) {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        }
        statement.push_str(trimmed);
        statement.push(' ');
        if trimmed.ends_with(';') {
            let whole = std::mem::take(&mut statement);
            let tree = whole.split_once("use ").map_or("", |(_, tree)| tree);
            let into = if whole.starts_with("pub") { &mut public } else { &mut own };
            into.extend(spread(tree.trim().trim_end_matches(';')));
        }
    }
    (own, public, rest)
}

/// Paths in code that begin at the crate, at the module or above it.
fn inline(code: &str) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let split = |part| str::split(part, move |letter: char| !is_word(letter) && letter != ':');
    // A visibility is no import.
    let mut parts = code.split("pub(in ");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, after)| after));
    std::iter::once(first)
        .chain(rest)
        .flat_map(split)
        .filter(|word| ["crate::", "super::", "self::"].iter().any(|from| word.starts_with(from)))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
        .collect()
}

impl Crate {
    fn add(&mut self, module: Module, text: &str) {
        let (mut own, public, rest) = uses(&code(text));
        own.extend(inline(&rest));
        self.paths.entry(module.clone()).or_default().extend(own);
        let exports = self.exports.entry(module.clone()).or_default();
        for path in public {
            if let Some(name) = path.last() {
                exports.insert(name.clone(), path.clone());
            }
        }
        self.modules.insert(module);
    }

    /// A path as it stands in a module, from the crate's root; nothing for other crates.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = module.to_vec();
        let mut path = path;
        match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" | "super" => {
                while let Some((first, after)) = path.split_first() {
                    match first.as_str() {
                        "self" => {}
                        "super" => drop(base.pop()),
                        _ => break,
                    }
                    path = after;
                }
            }
            first => {
                let child = [module, &[first.to_owned()]].concat();
                self.modules.contains(&child).then_some(())?;
            }
        }
        Some([base.as_slice(), path].concat())
    }

    /// The module that has what a path names, re-exports looked through.
    fn home(&self, path: &[String], depth: usize) -> Module {
        let mut at = Module::new();
        for (number, part) in path.iter().enumerate() {
            let child = [at.as_slice(), std::slice::from_ref(part)].concat();
            if self.modules.contains(&child) {
                at = child;
                continue;
            }
            let exported = self.exports.get(&at).and_then(|exports| exports.get(part));
            let target = exported.and_then(|export| self.absolute(&at, export));
            if let Some(target) = target.filter(|_| depth < 8) {
                return self.home(&[&target, &path[number + 1..]].concat(), depth + 1);
            }
            break;
        }
        at
    }

    /// The imports of each module, except from its own parent.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut arrows = BTreeMap::<Module, BTreeSet<Module>>::new();
        for (module, paths) in &self.paths {
            let targets = arrows.entry(module.clone()).or_default();
            for path in paths {
                let Some(path) = self.absolute(module, path) else { continue };
                let target = self.home(&path, 0);
                let is_parent = module.split_last().is_some_and(|(_, above)| *above == target);
                if target != *module && !is_parent {
                    targets.insert(target);
                }
            }
        }
        arrows
    }
}

/// The modules that can be reached from a module.
fn reached(arrows: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = open.pop() {
        for next in arrows.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

fn called(module: &Module) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("::") }
}

/// Every arrow up and every circle of more than two files: `crate: from > to`, and
/// `crate: first of the circle, number of files`.
pub(crate) fn faults(sources: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut crates = BTreeMap::<String, Crate>::new();
    for (file, text) in sources {
        if let Some((name, module)) = place(file) {
            crates.entry(name).or_default().add(module, text);
        }
    }
    let mut faults = Vec::new();
    for (name, modules) in crates {
        let arrows = modules.arrows();
        for (module, targets) in &arrows {
            let is_up = |target: &&Module| !target.is_empty() && module.starts_with(target);
            for up in targets.iter().filter(is_up) {
                faults.push(format!("{name}: {} > {}", called(module), called(up)));
            }
        }
        let all: BTreeMap<&Module, _> = arrows.keys().map(|m| (m, reached(&arrows, m))).collect();
        let mut seen = BTreeSet::new();
        for (module, reached) in &all {
            let back = |other: &&Module| all.get(other).is_some_and(|far| far.contains(*module));
            let circle: Vec<_> = reached.iter().filter(back).collect();
            if circle.len() > 2 && !circle.iter().any(|other| seen.contains(*other)) {
                let names: Vec<_> = circle.iter().map(|other| called(other)).collect();
                faults.push(format!("{name}: a circle of {}", names.join(", ")));
            }
            seen.extend(circle);
        }
    }
    faults
}

#[cfg(test)]
mod rules {
    use super::faults;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let named = |(name, text): &(&str, &str)| {
            (PathBuf::from(format!("crates/a/src/{name}.rs")), (*text).to_owned())
        };
        faults(&files.iter().map(named).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_circle_of_three_files_is_a_fault_and_one_of_two_is_not() {
        let two = [("lib", "mod a;\nmod b;"), ("a", "use crate::b::B;"), ("b", "use super::a::A;")];
        assert_eq!(of(&two), Vec::<String>::new());
        let three = [
            ("lib", "mod a;\nmod b;\nmod c;"),
            ("a", "use crate::b::{\n    B,\n    Other,\n};"),
            ("b", "fn f() {\n    crate::c::g();\n}"),
            ("c/mod", "pub(crate) use crate::a::A;\nuse super::a;"),
        ];
        assert_eq!(of(&three), ["crates/a: a circle of a, b, c"]);
    }

    #[test]
    fn a_re_exported_item_counts_for_its_own_module() {
        let files = [
            ("lib", "mod a;\nmod b;\nmod c;\npub use a::A;\npub use c::C;"),
            ("a", "use crate::b::B;"),
            ("b", "use crate::C;"),
            ("c", "// use crate::A;\n#[cfg(test)]\nmod tests {\n    use crate::A;\n}"),
        ];
        assert_eq!(of(&files), Vec::<String>::new());
        let mut circle = files;
        circle[3].1 = "use crate::A;";
        assert_eq!(of(&circle), ["crates/a: a circle of a, b, c"]);
    }

    #[test]
    fn a_child_may_import_from_its_parent_and_no_further_up() {
        let files = [
            ("lib", "mod a;\npub struct Root;"),
            ("a/mod", "mod b;\nuse b::B;\npub struct A;"),
            ("a/b/mod", "mod c;\nuse super::A;"),
            ("a/b/c", "use super::super::A;\nuse super::B;\nuse crate::Root;"),
        ];
        assert_eq!(of(&files), ["crates/a: a::b::c > a"]);
    }
}
