//! Lists the files of `rules/` so that a new rule needs no line of Rust.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let rules = root.join("rules");
    println!("cargo:rerun-if-changed={}", rules.display());
    let mut paths: Vec<PathBuf> = fs::read_dir(&rules)
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
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("rules.rs");
    fs::write(out, code).expect("the build directory is writable");
}
