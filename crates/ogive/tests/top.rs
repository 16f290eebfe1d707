//! `ogive top` in a pseudo-terminal, whose other end is the test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use common::{OGIVE, assert_code, ogive, stderr, stdout};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// The time limit of each wait; no working program needs it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Leaves the alternate screen.
const LEAVE: &str = "\u{1b}[?1049l";

/// `ogive top` and the terminal it runs in.
struct Top {
    child: Child,
    master: File,
    /// Kept open, so that its settings can be read after the program has ended.
    slave: OwnedFd,
    before: Termios,
    bytes: Receiver<Vec<u8>>,
    seen: String,
}

impl Top {
    fn start(environment: &[(&str, &str)], mounts: &[&Path]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        // In a new session, with this terminal instead of the one that runs the tests.
        let mut command = Command::new("setsid");
        command.arg("-c").arg(OGIVE).arg("top").args(mounts).env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR").envs(environment.iter().copied());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let master = File::from(master);
        let (sender, bytes) = mpsc::channel();
        let mut reader = master.try_clone().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, master, slave, before, bytes, seen: String::new() }
    }

    /// Waits until the program has written this.
    #[track_caller]
    fn wait_for(&mut self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.seen.contains(words) {
            let left = until.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {words:?} within a minute in {:?}", self.seen)
                }
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// The program has ended with success and restored the terminal.
    #[track_caller]
    fn assert_ended_and_restored(mut self) {
        self.wait_for(LEAVE);
        let until = Instant::now() + PATIENCE;
        let status: ExitStatus = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > until => panic!("it does not end"),
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(status.code(), Some(0), "{:?}", self.seen);
        let after = tcgetattr(&self.slave).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_a_terminal_it_names_the_alternative() {
    let output = ogive(["top"]);
    assert_code(&output, 1);
    assert!(stderr(&output).contains("ogive stat"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_path_without_a_mount_is_refused_before_the_screen_changes() {
    let place = tempfile::tempdir().unwrap();
    let mut top = Top::start(&[], &[place.path()]);
    top.wait_for("is not a mount of ogive");
    assert!(!top.seen.contains('\u{1b}'), "{:?}", top.seen);
    assert_eq!(top.child.wait().unwrap().code(), Some(4));
}

#[test]
fn it_measures_takes_keys_and_leaves_the_terminal_as_it_was() {
    let mut top = Top::start(&[], &[]);
    top.wait_for("Pressure");
    top.press("?");
    top.wait_for("Help");
    top.press("?p");
    top.wait_for("PAUSED");
    top.press("q");
    top.assert_ended_and_restored();
}

#[test]
fn signals_and_control_c_leave_the_terminal_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP] {
        let mut top = Top::start(&[], &[]);
        top.wait_for("Measuring");
        kill_process(Pid::from_child(&top.child), signal).unwrap();
        top.assert_ended_and_restored();
    }
    let mut top = Top::start(&[], &[]);
    top.wait_for("Measuring");
    top.press("\u{3}");
    top.assert_ended_and_restored();
}

#[test]
fn a_smaller_terminal_is_noticed() {
    let mut top = Top::start(&[], &[]);
    top.wait_for("Measuring");
    let size = Winsize { ws_row: 10, ws_col: 30, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&top.master, size).unwrap();
    top.wait_for("30x10");
    top.press("q");
    top.assert_ended_and_restored();
}

#[test]
fn no_color_is_obeyed() {
    let colours = |seen: &str| seen.contains("\u{1b}[38;5;") || seen.contains("\u{1b}[34m");
    let mut top = Top::start(&[], &[]);
    top.wait_for("Pressure");
    assert!(colours(&top.seen), "{:?}", top.seen);
    top.press("q");
    top.assert_ended_and_restored();
    let mut top = Top::start(&[("NO_COLOR", "1")], &[]);
    top.wait_for("Pressure");
    assert!(!colours(&top.seen), "{:?}", top.seen);
    top.press("q");
    top.assert_ended_and_restored();
}

#[test]
fn a_hanging_mount_and_an_unmounted_one_are_reported() {
    if !common::can_mount() {
        return;
    }
    let place = common::Place::new();
    place.mount(&[]);
    let mount_point = std::fs::canonicalize(place.mount_point()).unwrap();
    let stopped = common::Stopped::stop(place.pid());
    // Words without a space, because only changed cells are written.
    let mut top = Top::start(&[], &[&mount_point]);
    top.wait_for("answer");
    top.press("?");
    top.wait_for("Help");
    top.press("?");
    drop(stopped);
    top.wait_for("Lookups/s");
    assert_code(&ogive([std::ffi::OsStr::new("unmount"), mount_point.as_os_str()]), 0);
    top.wait_for("mounted;");
    top.press("q");
    top.assert_ended_and_restored();
}
