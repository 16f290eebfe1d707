//! What lies in `dist/` is what the program generates, and what is written by hand there is sound.
//!
//! After an intended change, `OGIVE_UPDATE_DIST=1 cargo test -p ogive --test dist` writes the
//! generated files anew.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{OGIVE, assert_code, ogive};

fn dist() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist")).unwrap()
}

#[track_caller]
fn assert_same(path: &Path, generated: &[u8]) {
    if std::env::var_os("OGIVE_UPDATE_DIST").is_some() {
        fs::write(path, generated).unwrap();
    }
    let kept = fs::read(path).unwrap_or_default();
    assert!(
        kept == generated,
        "{} is not what the program generates; run: OGIVE_UPDATE_DIST=1 cargo test -p ogive \
         --test dist",
        path.display()
    );
}

#[test]
fn completions_are_up_to_date() {
    for (shell, file) in [("bash", "ogive.bash"), ("zsh", "_ogive"), ("fish", "ogive.fish")] {
        let output = ogive(["completions", shell]);
        assert_code(&output, 0);
        assert_same(&dist().join("completions").join(file), &output.stdout);
    }
}

#[test]
fn man_pages_are_up_to_date_and_none_is_left_over() {
    let directory = tempfile::tempdir().unwrap();
    let output = ogive(["man", "--out", directory.path().to_str().unwrap()]);
    assert_code(&output, 0);
    let names = |path: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for name in names(directory.path()) {
        let generated = fs::read(directory.path().join(&name)).unwrap();
        assert_same(&dist().join("man").join(&name), &generated);
    }
    assert_eq!(names(&dist().join("man")), names(directory.path()));
}

#[test]
fn the_systemd_unit_is_one_systemd_accepts() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let unit = fs::read_to_string(dist().join("ogive@.service")).unwrap();
    assert!(unit.contains("/usr/bin/ogive"));
    // The program it names must exist for the check.
    let path = directory.path().join("ogive@example.service");
    fs::write(&path, unit.replace("/usr/bin/ogive", OGIVE)).unwrap();
    let output =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().unwrap();
    let said: Vec<String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("ogive"))
        .map(str::to_owned)
        .collect();
    assert!(output.status.success() && said.is_empty(), "{said:?}");
}

#[test]
fn what_the_unit_and_the_examples_pass_is_understood() {
    let example = fs::read_to_string(dist().join("example.conf")).unwrap();
    let value = |key: &str| {
        let line =
            example.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
        line.trim_matches('"').to_owned()
    };
    // As the unit does it: OPTIONS split at spaces; a source that is not there is found out only
    // after all options were understood.
    let options = value("OPTIONS");
    let mut line: Vec<&str> = vec!["mount", "--foreground", "--verbose"];
    line.extend(options.split_whitespace());
    line.extend(["--", "/nonexistent/source", "/nonexistent/mount-point"]);
    assert_code(&ogive(line), 3);
    assert!(value("SOURCE").starts_with('/') && value("MOUNT_POINT").starts_with('/'));

    let readme = fs::read_to_string(dist().join("README.md")).unwrap();
    let lines: Vec<Vec<&str>> = readme
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(2) == Some(&"ogive") && fields.len() == 6)
        .collect();
    assert!(lines.len() >= 3, "examples of fstab lines");
    for fields in lines {
        let output = common::mount_ogive(["/s", "/m", "-f", "-o", fields[3]]);
        assert_code(&output, 0);
    }
}

#[test]
fn the_install_script_puts_everything_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .arg(dist().join("install"))
        .env("DESTDIR", directory.path())
        .env("OGIVE", OGIVE)
        .output()
        .unwrap();
    assert_code(&output, 0);
    for file in [
        "usr/bin/ogive",
        "usr/share/man/man1/ogive-mount.1",
        "usr/share/man/man8/mount.ogive.8",
        "usr/share/bash-completion/completions/ogive",
        "usr/share/zsh/site-functions/_ogive",
        "usr/share/fish/vendor_completions.d/ogive.fish",
        "usr/lib/systemd/system/ogive@.service",
    ] {
        assert!(directory.path().join(file).is_file(), "{file}");
    }
    assert_eq!(
        fs::read_link(directory.path().join("usr/sbin/mount.ogive")).unwrap(),
        Path::new("../bin/ogive")
    );
}
