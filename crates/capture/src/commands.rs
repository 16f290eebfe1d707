//! Commands whose output is part of a capture. All only read; each has a time limit, and one that
//! is not there is no fault.
//!
//! One that cannot be ended is left behind ([`Apart`]), as is its output where another program
//! keeps that open. What it has said until then is taken.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};

use super::Bundle;
use super::apart::{Apart, Gone, HERE};

/// A command that takes longer is ended.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// As much of an output is taken.
const MAX_OUTPUT_BYTES: usize = 8 << 20;

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
    let mut hangs: Option<&str> = None;
    for (name, words) in COMMANDS {
        let line = words.join(" ");
        // They ask the same module: where one hangs, each other one would, and stay.
        let is_of_zfs = matches!(words[0], "zfs" | "zpool");
        if let Some(other) = hangs.filter(|_| is_of_zfs) {
            bundle.notes.push(format!("\"{line}\" was not tried, because \"{other}\" hangs"));
            continue;
        }
        let Some((output, gone)) = run(words, TIME_LIMIT, &HERE) else { continue };
        if !output.is_empty() {
            bundle.files.push((format!("commands/{name}"), output));
        }
        if let Some(gone) = gone {
            bundle.notes.push(gone.note(&format!("\"{line}\""), TIME_LIMIT));
            hangs = hangs.or_else(|| is_of_zfs.then_some(words[0]));
        }
    }
}

/// What the thread of a command tells.
enum Heard {
    NotThere,
    Started(Option<Pid>),
    Ended,
}

/// The output of a command as far as it came, and why there is no more; `None` where the command is
/// not there.
fn run(words: &[&str], limit: Duration, apart: &Apart) -> Option<(Vec<u8>, Option<Gone>)> {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Of its own, so that what it starts ends with it.
        .process_group(0);
    let output = Arc::new(Mutex::new(Vec::new()));
    let ((tell, told), (hold, held)) = (mpsc::channel(), mpsc::channel());
    let own = Arc::clone(&output);
    if let Err(gone) = apart.start(move || follow(command, &own, &tell, &held)) {
        return Some((Vec::new(), Some(gone)));
    }
    let mut group = None;
    let end = loop {
        match told.recv_timeout(limit) {
            Ok(Heard::NotThere) => return None,
            Ok(Heard::Started(started)) => group = started,
            Ok(Heard::Ended) => break None,
            Err(_) => break Some(Gone::TooLong),
        }
    };
    if let Some(group) = group {
        // Its thread waits for it when `hold` is gone, so its number is nobody else's till then.
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    drop::<mpsc::Sender<()>>(hold);
    let output = std::mem::take(&mut *output.lock());
    Some((output, end))
}

/// Starts a command, reads what it says until it says no more, and then waits for it.
fn follow(
    mut command: Command,
    output: &Mutex<Vec<u8>>,
    tell: &mpsc::Sender<Heard>,
    held: &mpsc::Receiver<()>,
) {
    // Whoever gave up hears no more of it.
    let said = |what| drop(tell.send(what));
    let Ok(mut child) = command.spawn() else { return said(Heard::NotThere) };
    said(Heard::Started(i32::try_from(child.id()).ok().and_then(Pid::from_raw)));
    if let Some(mut stdout) = child.stdout.take() {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = stdout.read(&mut piece) {
            let mut output = output.lock();
            let room = MAX_OUTPUT_BYTES.saturating_sub(output.len());
            output.extend_from_slice(&piece[..length.min(room)]);
            if length > room {
                break;
            }
        }
    }
    said(Heard::Ended);
    let _ = held.recv();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    /// A program of these lines, which writes its output and the numbers of what it starts.
    fn program(directory: &Path, lines: &str) -> String {
        let path = directory.join("zpool");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn is_alive(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn a_command_whose_pipe_stays_open_is_left_behind_with_what_it_said() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        // A session of its own is out of reach of what ends the group.
        let lines = format!(
            "echo said; setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60' & \
             until [ -e {0} ]; do sleep 0.01; done; exec sleep 60",
            pid.display()
        );
        let zpool = program(directory.path(), &lines);
        let apart = Apart::default();
        let mut waited = Duration::from_millis(200);
        // A busy machine may need longer to start it.
        let (output, gone) = loop {
            let ended = run(&[&zpool, "status"], waited, &apart).unwrap();
            if pid.exists() {
                break ended;
            }
            waited *= 2;
        };
        assert_eq!((output.as_slice(), gone), (&b"said\n"[..], Some(Gone::TooLong)));
        let pid = std::fs::read_to_string(pid).unwrap();
        assert!(is_alive(pid.trim()), "it was waited for");
        let killed = std::process::Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.unwrap().success());
    }

    #[test]
    fn a_command_that_ends_gives_all_it_says_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let zpool = program(directory.path(), "echo one; echo two");
        let (output, gone) = run(&[&zpool], Duration::from_secs(600), &Apart::default()).unwrap();
        assert_eq!((output.as_slice(), gone), (&b"one\ntwo\n"[..], None));
        assert!(run(&["/nowhere/zpool"], TIME_LIMIT, &Apart::default()).is_none());
    }
}
