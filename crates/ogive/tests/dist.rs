//! The parts of a package: `dist/`, the files that `dist/install` installs, and `./setup` before
//! them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{OGIVE, assert_code, ogive};

fn dist() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist")).unwrap()
}

#[test]
fn the_systemd_unit_is_one_systemd_accepts() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        common::skipped("systemd-analyze is not installed");
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
    let errors: Vec<String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("ogive"))
        .map(str::to_owned)
        .collect();
    assert!(output.status.success() && errors.is_empty(), "{errors:?}");
}

#[test]
fn arguments_in_the_unit_and_the_examples_are_understood() {
    let example = fs::read_to_string(dist().join("example.conf")).unwrap();
    let value = |key: &str| {
        let line =
            example.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
        line.trim_matches('"').to_owned()
    };
    // As in the unit, OPTIONS are split at spaces. The error of the missing source comes only after
    // all options were parsed.
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

/// Runs `dist/install` into `directory`.
fn install_into(directory: &Path) {
    let output = Command::new("sh")
        .arg(dist().join("install"))
        .env("DESTDIR", directory)
        .env("OGIVE", OGIVE)
        .output()
        .unwrap();
    assert_code(&output, 0);
}

#[test]
fn the_install_script_puts_everything_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    install_into(directory.path());
    // A second time, over existing files: an upgrade.
    install_into(directory.path());
    for file in [
        "usr/bin/ogive",
        "usr/share/man/man1/ogive.1",
        "usr/share/man/man1/ogive-mount.1",
        "usr/share/man/man8/mount.ogive.8",
        "usr/share/bash-completion/completions/ogive",
        "usr/share/zsh/site-functions/_ogive",
        "usr/share/fish/vendor_completions.d/ogive.fish",
        "usr/lib/systemd/system/ogive@.service",
        "usr/share/ogive/prometheus/ogive.rules.yml",
        "usr/share/ogive/grafana/ogive.json",
        "usr/share/ogive/parca/parca.yml",
    ] {
        let size = directory.path().join(file).metadata().map(|metadata| metadata.len());
        assert!(size.is_ok_and(|size| size > 0), "{file}");
    }
    assert_eq!(
        fs::read_link(directory.path().join("usr/sbin/mount.ogive")).unwrap(),
        Path::new("../bin/ogive")
    );
    assert!(directory.path().join("usr/sbin/mount.fuse.ogive").is_symlink());
}

#[test]
fn the_installed_program_runs_and_its_line_tables_lie_apart() {
    if ["objcopy", "readelf"]
        .iter()
        .any(|tool| Command::new(tool).arg("--version").output().is_err())
    {
        common::skipped("objcopy and readelf (binutils) are not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    install_into(directory.path());
    let program = directory.path().join("usr/bin/ogive");
    let sections = |path: &Path| {
        let output = Command::new("readelf").args(["-SW"]).arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(sections(Path::new(OGIVE)).contains(".debug_line"));
    assert!(!sections(&program).contains(".debug_line"));
    let of_build_ids = directory.path().join("usr/lib/debug/.build-id");
    let files: Vec<PathBuf> = fs::read_dir(of_build_ids)
        .unwrap()
        .flat_map(|prefix| fs::read_dir(prefix.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(sections(&files[0]).contains(".debug_line"));
    let output = Command::new(&program).arg("--version").output().unwrap();
    assert_code(&output, 0);
}

/// A directory with a program `name` in it that prints `says` and ends with `code`.
fn pretend(directory: &Path, name: &str, says: &str, code: i32) {
    // Written by another process. Children of other threads inherit descriptors until they become
    // programs. A file that a thread of this process has open for writing could not be executed so
    // long.
    let write = r#"printf '#!/bin/sh\necho "%s"\nexit %s\n' "$1" "$2" >"$3"; chmod 755 "$3""#;
    let output = Command::new("sh")
        .args(["-c", write, "sh", says, &code.to_string()])
        .arg(directory.join(name))
        .output()
        .unwrap();
    assert_code(&output, 0);
}

/// `./setup cargo --version` with `tools` before everything, and `home` for rustup's.
fn set_up(tools: &Path, home: &Path) -> std::process::Output {
    Command::new(dist().join("../setup"))
        .args(["cargo", "--version"])
        .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
        .env("HOME", home)
        .env_remove("CARGO_HOME")
        .output()
        .unwrap()
}

#[test]
fn setup_does_without_a_cargo_that_is_too_old() {
    let (tools, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for tool in ["cc", "make", "fusermount3"] {
        pretend(tools.path(), tool, "", 0);
    }
    pretend(tools.path(), "cargo", "cargo 1.63.0 (distribution)", 0);
    // Without a newer one, the message names the required and the present version.
    pretend(tools.path(), "curl", "", 6);
    let output = set_up(tools.path(), home.path());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("or later; here is 1.63.0"), "{errors}");
    // A new enough one of rustup is used, although the old one is first in PATH.
    fs::create_dir_all(home.path().join(".cargo/bin")).unwrap();
    pretend(&home.path().join(".cargo/bin"), "cargo", "cargo 99.1.0 (rustup)", 0);
    let output = set_up(tools.path(), home.path());
    assert_code(&output, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cargo 99.1.0 (rustup)\n");
}
