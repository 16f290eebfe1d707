//! The committed atlas equals the output of its script over the histories.

#[path = "../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Environment variables with the histories, and the options of the script for them.
const HISTORIES: [(&str, &str); 3] =
    [("OGIVE_OPENZFS", "--openzfs"), ("OGIVE_SPL", "--spl"), ("OGIVE_LINUX", "--linux")];

#[test]
fn the_committed_atlas_matches_the_histories() {
    let mut command = Command::new("python3");
    let atlas = Path::new(env!("CARGO_MANIFEST_DIR")).join("atlas");
    command.arg(atlas.join("generate.py"));
    for (variable, option) in HISTORIES {
        let Some(path) = env::var_os(variable) else {
            skipped(format_args!(
                "{variable} does not name a clone to ask (see atlas/generate.py)"
            ));
            return;
        };
        command.arg(option).arg(path);
    }
    let made = tempfile::tempdir().expect("a directory can be made");
    let status = command.arg("--out").arg(made.path()).status().expect("python3 runs");
    assert!(status.success(), "generate.py failed");
    let mut compared = 0;
    for entry in fs::read_dir(made.path()).expect("it was made").flatten() {
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let committed = text(&atlas.join(entry.file_name()));
        assert!(committed == text(&entry.path()), "{:?}: run generate.py", entry.file_name());
        compared += 1;
    }
    assert!(compared >= 4, "{compared} files");
}
