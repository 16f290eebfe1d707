//! SIGHUP: a mount reopens its log and continues. At a terminal that is closed it ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{OGIVE, Place, assert_code, end_of, eventually, ogive};
use rustix::process::{Pid, Signal, kill_process};

fn hang_up(pid: u32) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::HUP).unwrap();
}

fn unmount(place: &Place) {
    let point = place.mount_point();
    assert_code(&ogive([std::ffi::OsStr::new("unmount"), point.as_os_str()]), 0);
}

#[test]
fn a_renamed_log_is_reopened_and_the_mount_continues() {
    let Some(place) = Place::mountable() else { return };
    let (log, old) = (place.path("log"), place.path("log.1"));
    place.mount(&["-v", "--log-file", log.to_str().unwrap()]);
    let pid = place.pid();
    for _ in 0..2 {
        fs::rename(&log, &old).unwrap();
        let before = fs::read(&old).unwrap();
        hang_up(pid);
        let is_told = || fs::read_to_string(&log).is_ok_and(|text| text.contains("SIGHUP"));
        eventually("a line in the new log", is_told);
        assert_eq!(fs::read(&old).unwrap(), before, "the old one is left alone");
        assert_eq!(place.pid(), pid);
    }
    assert_eq!(fs::read_to_string(place.mount_point().join("hello")).unwrap(), "hello world\n");
    unmount(&place);
}

#[test]
fn a_mount_without_a_log_goes_on() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let pid = place.pid();
    hang_up(pid);
    assert_eq!(place.pid(), pid);
    assert_eq!(fs::read_to_string(place.mount_point().join("hello")).unwrap(), "hello world\n");
    unmount(&place);
}

#[test]
fn in_the_foreground_of_a_terminal_it_unmounts_and_elsewhere_it_goes_on() {
    let Some(place) = Place::mountable() else { return };
    let start = |message: Stdio| {
        let line = ["mount", "--foreground"].map(std::path::PathBuf::from);
        Command::new(OGIVE)
            .args(line)
            .args([place.source(), place.mount_point()])
            .stderr(message)
            .spawn()
            .unwrap()
    };
    let is_there = || place.mount_point().join(".ogive/mount").exists();
    let mut child = start(Stdio::null());
    eventually("the mount", is_there);
    hang_up(child.id());
    assert_eq!(place.pid(), child.id());
    unmount(&place);
    assert_eq!(end_of(&mut child).code(), Some(0));

    let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
    let side = fs::File::options().write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = start(side.into());
    eventually("the mount", is_there);
    hang_up(child.id());
    assert_eq!(end_of(&mut child).code(), Some(0));
    assert!(place.mount_line().is_none());
}
