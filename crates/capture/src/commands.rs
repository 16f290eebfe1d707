//! Commands whose output is part of a capture. All only read; each has a time limit, and one that
//! is not there is no fault.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Bundle;

/// A command that takes longer is ended.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// As much of an output is taken.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

/// Properties that separate causes; "all" of thousands of datasets would be a load of its own.
const PROPERTIES: &str = "encryption,compression,checksum,dedup,recordsize,volblocksize,primarycache,secondarycache,sync,\
atime,dnodesize,xattr,mounted,type,used,quota";

const COMMANDS: [(&str, &[&str]); 9] = [
    ("uname.txt", &["uname", "-a"]),
    ("lscpu.txt", &["lscpu"]),
    ("zfs-version.txt", &["zfs", "version"]),
    ("zpool-list.txt", &["zpool", "list"]),
    ("zpool-status.txt", &["zpool", "status", "-D"]),
    ("zpool-get.txt", &["zpool", "get", "all"]),
    ("zpool-iostat.txt", &["zpool", "iostat", "-v", "1", "2"]),
    ("zfs-get.txt", &["zfs", "get", "-t", "filesystem,volume", PROPERTIES]),
    ("dmesg.txt", &["dmesg"]),
];

/// Runs them all.
pub(super) fn run_all(bundle: &mut Bundle) {
    for (name, words) in COMMANDS {
        match run(words) {
            Outcome::Output(output) => bundle.files.push((format!("commands/{name}"), output)),
            Outcome::NotThere | Outcome::Empty => {}
            Outcome::TooLong => {
                bundle.notes.push(format!(
                    "\"{}\" took longer than {} s and was ended",
                    words.join(" "),
                    TIME_LIMIT.as_secs()
                ));
            }
        }
    }
}

enum Outcome {
    Output(Vec<u8>),
    Empty,
    NotThere,
    TooLong,
}

fn run(words: &[&str]) -> Outcome {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Outcome::NotThere };
    let Some(stdout) = child.stdout.take() else { return Outcome::NotThere };
    // Read on a thread of its own: a child that fills the pipe and one that hangs must both end.
    let reader = std::thread::spawn(move || {
        let mut output = Vec::new();
        let _ = stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut output);
        output
    });
    let begun = Instant::now();
    let mut in_time = true;
    while !reader.is_finished() {
        if begun.elapsed() > TIME_LIMIT {
            in_time = false;
            // It may have ended by itself meanwhile.
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = reader.join().unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    match (in_time, output.is_empty()) {
        (false, _) => Outcome::TooLong,
        (true, true) => Outcome::Empty,
        (true, false) => Outcome::Output(output),
    }
}
