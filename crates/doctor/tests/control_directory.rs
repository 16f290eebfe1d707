//! Every line of the files in a mount's control directory is read.
//!
//! `control_directory` has these files as a mount with a second level wrote them.

use std::path::{Path, PathBuf};

use ogive_doctor::evidence::Evidence;
use ogive_doctor::read;

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the samples").flatten();
    let mut paths: Vec<PathBuf> = entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => vec![path],
        })
        .collect();
    paths.sort();
    paths
}

/// The unread lines of one input.
fn unread(name: &str, bytes: &[u8]) -> Vec<String> {
    let mut evidence = Evidence::default();
    read::read_bytes(&mut evidence, name, bytes);
    let trouble = evidence.inputs.iter().filter_map(|input| input.trouble.clone());
    evidence.not_understood.iter().map(|line| line.value.clone()).chain(trouble).collect()
}

#[test]
fn no_line_of_a_control_directory_is_unread() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_directory");
    let paths = files(&root);
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        let name = path.strip_prefix(&root).expect("a path below the root").to_string_lossy();
        let bytes = std::fs::read(&path).expect("a sample");
        // In a capture, in a copy of the directory, and alone.
        let alone = name.rsplit('/').next().unwrap_or(&name);
        let is_of_module = name.contains("/parameters/");
        for name in [&*format!("start/.ogive/{name}"), &name, alone] {
            if is_of_module && name == alone {
                continue;
            }
            assert_eq!(unread(name, &bytes), [""; 0], "{name}");
        }
    }
}

#[test]
fn every_form_of_a_few_control_files_is_read() {
    for (name, text) in [
        ("l2", "{}\n"),
        ("memory", "no source of memory pressure\n"),
        (
            "memory",
            "memory of the machine: not used: it has no line MemTotal (/proc/meminfo)\n\
             cgroup v2 memory: limit 1073741824 bytes, usage 5, of which reclaimable 3 \
             (/sys/fs/cgroup/a)\n\
             cgroup v1 memory: not used: this hierarchy is not mounted (/sys/fs/cgroup)\n\
             stall time (PSI): not used: No such file or directory (os error 2) \
             (/proc/pressure/memory)\n",
        ),
        ("zfs-module.txt", "zfs module: not loaded\n"),
    ] {
        assert_eq!(unread(name, text.as_bytes()), [""; 0], "{name}");
    }
}
