//! Lists the files of `rules/`, so that a new rule needs no line of Rust, and packs the atlas.
//!
//! The functions of the atlas are sorted by name here, so that the program only unpacks and
//! searches.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    list_rules(&root.join("rules"), &out.join("rules.rs"));
    pack_atlas(&root.join("atlas"), &out.join("atlas.zst"));
}

fn list_rules(rules: &Path, out: &Path) {
    println!("cargo:rerun-if-changed={}", rules.display());
    let mut paths: Vec<PathBuf> = fs::read_dir(rules)
        .map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut code = String::from(
        "/// File name and content of every rule in `rules/`.\nconst BUNDLED: &[(&str, &str)] = &[\n",
    );
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let _ = writeln!(code, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    fs::write(out, code).expect("the build directory is writable");
}

/// The lines of an atlas file without its comments.
fn lines(atlas: &Path, name: &str) -> Vec<String> {
    let path = atlas.join(name);
    println!("cargo:rerun-if-changed={}", path.display());
    let text = fs::read_to_string(&path).expect("the atlas is committed");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Writes the sections of the atlas, each after a line `[name]`; `src/atlas/mod.rs` reads them.
fn pack_atlas(atlas: &Path, out: &Path) {
    let subsystems = lines(atlas, "subsystems.txt");
    let number = |name: &str| {
        let at =
            subsystems.iter().position(|line| line.split_once(": ").is_some_and(|p| p.0 == name));
        at.expect("every subsystem is in subsystems.txt")
    };
    let mut files: Vec<String> = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut beginnings: BTreeSet<String> = BTreeSet::new();
    let mut place = String::new();
    for line in lines(atlas, "openzfs-functions.txt") {
        if let Some(head) = line.strip_prefix("= ") {
            let (subsystem, file) = head.split_once(' ').expect("a heading names a file");
            let at = files.iter().position(|known| known == file).unwrap_or_else(|| {
                files.push(file.to_owned());
                files.len() - 1
            });
            place = format!("{}\t{at}", number(subsystem));
        } else {
            let (name, releases) = line.split_once(' ').unwrap_or((&line, ""));
            names.insert(format!("{name}\t{place}\t{releases}"));
        }
    }
    for line in lines(atlas, "linux-functions.txt") {
        if let Some(subsystem) = line.strip_prefix("= ") {
            place = number(subsystem).to_string();
            continue;
        }
        for name in line.split(' ') {
            match name.strip_suffix('*') {
                Some(start) => beginnings.insert(format!("{start}\t{place}")),
                None => names.insert(format!("{name}\t{place}")),
            };
        }
    }
    let mut role = String::new();
    let mut threads: BTreeSet<String> = BTreeSet::new();
    for line in lines(atlas, "threads.txt") {
        match line.strip_prefix("= ") {
            Some(name) => name.clone_into(&mut role),
            None => {
                let name = line.split(' ').next().unwrap_or(&line);
                threads.insert(format!("{name}\t{role}"));
            }
        }
    }
    let mut kind = String::new();
    let mut facts: BTreeSet<String> = BTreeSet::new();
    for line in lines(atlas, "names.txt") {
        match line.strip_prefix("= ") {
            Some(name) => name.clone_into(&mut kind),
            None => {
                let (name, releases) = line.split_once(' ').unwrap_or((&line, ""));
                facts.insert(format!("{name}\t{kind}\t{releases}"));
            }
        }
    }
    let sections = [
        ("releases", lines(atlas, "releases.txt")),
        ("subsystems", subsystems.clone()),
        ("files", files),
        ("functions", names.into_iter().collect()),
        ("beginnings", beginnings.into_iter().collect()),
        ("fixes", lines(atlas, "fixes.txt")),
        ("roles", lines(atlas, "roles.txt")),
        ("names", facts.into_iter().collect()),
        ("tunables", lines(atlas, "tunables.txt")),
        ("threads", threads.into_iter().collect()),
    ];
    write_sections(&sections, out);
}

/// Writes each section after a line with its name, and compresses all of them.
fn write_sections(sections: &[(&str, Vec<String>)], out: &Path) {
    let mut text = String::new();
    for (name, lines) in sections {
        let _ = writeln!(text, "[{name}]");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
    }
    let packed = zstd::bulk::compress(text.as_bytes(), 19).expect("memory suffices");
    fs::write(out, packed).expect("the build directory is writable");
}
