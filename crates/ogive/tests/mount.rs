//! Real mounts, as the user, mount(8), a crash and a signal meet them.
//!
//! These tests need root and /dev/fuse, and say so when they are skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::{
    OGIVE, Place, assert_code, can_mount, end_of, eventually, is_alive, mount_ogive, ogive, stderr,
    stdout, within_a_minute,
};
use rustix::process::{Pid, Signal};

fn send(pid: u32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn unmount(place: &Place, arguments: &[&str]) -> Output {
    let mount_point = place.mount_point();
    let mut line = vec!["unmount"];
    line.extend(arguments);
    line.push(mount_point.to_str().unwrap());
    ogive(line)
}

/// A program with its working directory on the mount, until this is dropped.
struct Visitor(Child);

impl Visitor {
    fn at(directory: &Path) -> Self {
        Self(
            Command::new("cat")
                .current_dir(directory)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        end_of(&mut self.0);
    }
}

/// `ogive mount --foreground`, ready when this returns, with its standard error to be read.
fn foreground(place: &Place) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(OGIVE)
        .args(["mount", "--foreground", "--verbose"])
        .args([place.source(), place.mount_point()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = BufReader::new(child.stderr.take().unwrap());
    eventually("the mount", || place.mount_point().join("hello").exists());
    (child, messages)
}

#[test]
fn the_first_command_after_a_background_mount_finds_the_files() {
    let Some(place) = Place::mountable() else { return };
    for _ in 0..5 {
        place.mount(&[]);
        assert_eq!(fs::read_to_string(place.mount_point().join("hello")).unwrap(), "hello world\n");
        let names: Vec<_> =
            fs::read_dir(place.mount_point()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["hello"]);
        assert_code(&unmount(&place, &[]), 0);
        assert!(place.mount_line().is_none());
    }
}

#[test]
fn unmount_returns_when_the_process_has_ended() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let pid = place.pid();
    assert!(is_alive(pid));
    assert_code(&unmount(&place, &[]), 0);
    assert!(!is_alive(pid));
    // A second unmount finds no mount.
    assert_code(&unmount(&place, &[]), 4);
}

#[test]
fn the_background_process_pins_nothing_of_its_caller() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let process = Path::new("/proc").join(place.pid().to_string());
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    for file in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(fs::read_link(process.join(file)).unwrap(), Path::new("/dev/null"), "{file}");
    }
    let status = fs::read_to_string(process.join("status")).unwrap();
    assert!(status.contains("Umask:\t0000"), "{status}");
    let stat = fs::read_to_string(process.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // Session number: its own; terminal: none.
    assert_eq!((fields[3], fields[4]), (place.pid().to_string().as_str(), "0"));
    let limits = fs::read_to_string(process.join("limits")).unwrap();
    let files: Vec<&str> = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(files[3], files[4], "soft and hard limit on open files");
}

#[test]
fn statistics_come_from_the_named_mount_or_the_only_one() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    fs::read(place.mount_point().join("hello")).unwrap();
    let mount_point = place.mount_point();
    let output = ogive(["stat", "--json", "-f", "time,read,size,c", mount_point.to_str().unwrap()]);
    assert_code(&output, 0);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(json["c"].as_f64().unwrap() > 0.0, "{json}");
    let output = ogive(["stat", "0.1", "2", mount_point.to_str().unwrap()]);
    assert_code(&output, 0);
    assert_eq!(stdout(&output).lines().count(), 3);
}

#[test]
fn cached_bytes_of_each_file_are_shown_to_the_user_who_mounted() {
    let Some(place) = Place::mountable() else { return };
    fs::create_dir(place.source().join("d")).unwrap();
    fs::write(place.source().join("d/two\nlines"), vec![7; 300_000]).unwrap();
    place.mount(&["--direct-io"]);
    let objects = || {
        let mount_point = place.mount_point();
        let output = ogive(["stat", "--objects", "--json", mount_point.to_str().unwrap()]);
        assert_code(&output, 0);
        serde_json::from_str::<serde_json::Value>(&stdout(&output)).unwrap()
    };
    assert_eq!(objects()["objects"], 0);
    for _ in 0..2 {
        assert_eq!(fs::read(place.mount_point().join("d/two\nlines")).unwrap().len(), 300_000);
    }
    let listed = objects();
    let file = &listed["files"][0];
    assert_eq!(file["path"], "/d/two\\u{a}lines");
    // Three records of 128 KiB at most, with their bookkeeping.
    assert_eq!((&file["records"], &file["bytes"]), (&3.into(), &(300_000 + 3 * 256).into()));
    assert_eq!(listed["directories"][1]["path"], "/d");
    let permissions = fs::metadata(place.mount_point().join(".ogive/objects")).unwrap();
    assert_eq!(permissions.permissions().mode() & 0o777, 0o400);
    assert_code(&unmount(&place, &[]), 0);
}

#[test]
fn the_next_mount_removes_a_dead_mount_point() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let pid = place.pid();
    send(pid, Signal::KILL);
    eventually("the end of the process", || !is_alive(pid));
    // The last threads of the process may still be ending, and requests may fail with EIO or
    // ECONNABORTED until then. The program must handle that, so it runs at once.
    let output = ogive(["stat", place.mount_point().to_str().unwrap()]);
    assert_code(&output, 4);
    assert!(stderr(&output).contains("its process has gone"), "{}", stderr(&output));
    eventually("the end of the connection", || {
        let error = fs::read_dir(place.mount_point()).unwrap_err();
        rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::NOTCONN)
    });

    let output = ogive(["mount".into(), place.source(), place.mount_point()]);
    assert_code(&output, 0);
    assert!(stderr(&output).contains("removed a dead fuse.ogive mount"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(place.mount_point().join("hello")).unwrap(), "hello world\n");
    assert_code(&unmount(&place, &[]), 0);
    assert!(place.mount_line().is_none(), "no dead mount is left below");
}

#[test]
fn a_dead_mount_point_can_be_unmounted_by_its_relative_path() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let pid = place.pid();
    send(pid, Signal::KILL);
    eventually("the end of the process", || !is_alive(pid));
    let output = Command::new(OGIVE)
        .args(["unmount", "mount point"])
        .current_dir(place.mount_point().parent().unwrap())
        .output()
        .unwrap();
    assert_code(&output, 0);
    assert!(place.mount_line().is_none());
}

#[test]
fn a_second_mount_at_the_same_place_is_refused() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let output = ogive(["mount".into(), place.source(), place.mount_point()]);
    assert_code(&output, 4);
    assert!(stderr(&output).contains("ogive has already mounted"), "{}", stderr(&output));
    assert!(place.mount_point().join("hello").exists());
}

#[test]
fn a_mount_in_use_is_kept_and_its_users_are_named() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    let visitor = Visitor::at(&place.mount_point());
    let output = unmount(&place, &[]);
    assert_code(&output, 6);
    let who = format!("cat (process {}: working directory", visitor.0.id());
    assert!(stderr(&output).contains(&who), "{}", stderr(&output));
    assert!(place.mount_point().join("hello").exists());

    let pid = place.pid();
    assert_code(&unmount(&place, &["--lazy"]), 0);
    assert!(place.mount_line().is_none());
    assert!(is_alive(pid), "it serves those who are still in it");
    drop(visitor);
    eventually("the end of the process", || !is_alive(pid));
}

#[test]
fn sigterm_unmounts_a_background_mount() {
    let Some(place) = Place::mountable() else { return };
    let log = place.path("log");
    place.mount(&["--verbose", "--log-file", log.to_str().unwrap()]);
    let pid = place.pid();
    send(pid, Signal::TERM);
    eventually("the end of the process", || !is_alive(pid));
    assert!(place.mount_line().is_none());
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("SIGTERM: unmounting"), "{log}");
    assert!(
        log.lines().last().unwrap().contains("mount point: read "),
        "the summary is the last line: {log}"
    );
}

#[test]
fn a_log_in_json_has_one_object_a_line_from_the_first_to_the_last() {
    let Some(place) = Place::mountable() else { return };
    let log = place.path("log");
    let arguments = ["--verbose", "--log-format", "json", "--log-file", log.to_str().unwrap()];
    place.mount(&arguments);
    let pid = place.pid();
    send(pid, Signal::TERM);
    eventually("the end of the process", || !is_alive(pid));
    let log = fs::read_to_string(log).unwrap();
    let objects: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(objects.iter().all(|line| line["pid"] == pid && line["time"].is_string()), "{log}");
    let says = |line: &serde_json::Value, text| line["message"].as_str().unwrap().contains(text);
    assert!(objects.iter().any(|line| says(line, "SIGTERM: unmounting")), "{log}");
    let last = objects.last().unwrap();
    assert!(says(last, "mount point: read ") && last["level"] == "info", "{log}");

    // A failed mount reports its error in the same form.
    let output = ogive([
        "mount".as_ref(),
        "--foreground".as_ref(),
        "--log-format=json".as_ref(),
        place.path("nothing").as_os_str(),
        place.mount_point().as_os_str(),
    ]);
    assert_code(&output, 3);
    let errors = stderr(&output);
    let object: serde_json::Value = serde_json::from_str(&errors).unwrap();
    assert!(object["level"] == "error" && says(&object, "nothing"), "{errors}");
}

#[test]
fn interrupting_the_foreground_unmounts_and_ends_with_success() {
    let Some(place) = Place::mountable() else { return };
    let (mut child, mut messages) = foreground(&place);
    send(child.id(), Signal::INT);
    assert_eq!(end_of(&mut child).code(), Some(0));
    assert!(place.mount_line().is_none());
    let text = within_a_minute("the end of the messages", move || {
        let mut text = String::new();
        messages.read_to_string(&mut text).map(|_| text)
    })
    .unwrap();
    assert!(text.contains("SIGINT: unmounting"), "{text}");
}

#[test]
fn a_second_signal_ends_a_mount_in_use_at_once_and_leaves_no_dead_mount_point() {
    let Some(place) = Place::mountable() else { return };
    let (mut child, mut messages) = foreground(&place);
    let visitor = Visitor::at(&place.mount_point());
    send(child.id(), Signal::TERM);
    // Standard error stays open for the last messages until the end.
    let (line, _messages) = within_a_minute("the word that it is in use", move || {
        let line = messages
            .by_ref()
            .lines()
            .find(|line| line.as_ref().is_ok_and(|line| line.contains("is in use")));
        (line, messages)
    });
    let line = line.expect("it reports that it is in use before it ends").unwrap();
    assert!(line.contains(&format!("cat (process {}", visitor.0.id())), "{line}");
    eventually("the detached mount", || place.mount_line().is_none());
    assert!(child.try_wait().unwrap().is_none(), "it serves those who are still in it");
    send(child.id(), Signal::TERM);
    assert_eq!(end_of(&mut child).code(), Some(6));
    assert!(fs::read_dir(place.mount_point()).is_ok());
}

#[test]
fn mount_8_finds_its_helper_in_the_program() {
    let Some(place) = Place::mountable() else { return };
    let paths = [place.source().into_os_string(), place.mount_point().into_os_string()];
    let with = |more: &[&str]| {
        mount_ogive(paths.iter().cloned().chain(more.iter().map(std::ffi::OsString::from)))
    };

    assert_code(&with(&["-f", "-o", "ro"]), 0);
    assert!(place.mount_line().is_none(), "-f mounts nothing");
    assert_code(&with(&["-o", "ro,what=ever"]), 1);

    assert_code(
        &with(&["-s", "-o", "ro,noexec,what=ever,x-systemd.automount,name=my data,arc_max=64M"]),
        0,
    );
    let line = place.mount_line().unwrap();
    assert!(line.contains(" ro,nosuid,nodev,noexec,"), "{line}");
    assert!(line.contains(" fuse.ogive my\\040data "), "{line}");
    let error = fs::write(place.mount_point().join("new"), "x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);

    // Mounted already.
    assert_code(&with(&[]), 32);
    assert_code(&ogive(["umount".into(), place.mount_point()]), 0);
}

#[test]
fn mount_8_and_fstab_work_with_the_link_installed() {
    let Some(place) = Place::mountable() else { return };
    let directory = fs::canonicalize(place.source().parent().unwrap()).unwrap();
    let line = format!(
        "{0}/source {0}/mount\\040point ogive arc_max=64M,noauto,nofail,x-a=b,noexec 0 0\n",
        directory.display()
    );
    fs::write(place.path("fstab"), line).unwrap();
    // In a name space of its own the link can be installed without touching this machine.
    let script = r#"set -eu
        cd "$2"
        mount -t tmpfs tmpfs /usr/sbin && ln -s "$1" /usr/sbin/mount.ogive
        mount -t ogive -o ro,arc_max=64M,relatime source "mount point"
        cat "mount point/hello"
        ! touch "mount point/new" 2>/dev/null
        umount "mount point"
        mount --fstab fstab "$2/mount point"
        touch "mount point/new" source/new
        findmnt --noheadings --output FSTYPE,OPTIONS "$2/mount point"
        umount "mount point"
        "#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", OGIVE])
        .arg(&directory)
        .output()
        .unwrap();
    assert_code(&output, 0);
    let out = stdout(&output);
    assert!(out.starts_with("hello world\nfuse.ogive rw,nosuid,nodev,noexec,"), "{out}");
}

#[test]
fn without_no_exec_programs_run_and_with_it_they_do_not() {
    let Some(place) = Place::mountable() else { return };
    let program = place.source().join("program");
    fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = || Command::new(place.mount_point().join("program")).status();

    place.mount(&[]);
    assert_eq!(run().unwrap().code(), Some(7));
    assert_code(&unmount(&place, &[]), 0);
    place.mount(&["--no-exec"]);
    assert_eq!(run().unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn systemd_is_notified_when_the_mount_answers_and_when_it_ends() {
    let Some(place) = Place::mountable() else { return };
    let path = place.path("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut child = Command::new(OGIVE)
        .args(["mount", "--foreground"])
        .args([place.source(), place.mount_point()])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let receive = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).expect("a word to systemd within a minute");
        String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned()
    };
    assert_eq!(receive(), "READY=1");
    assert!(place.mount_point().join("hello").exists());
    assert_code(&unmount(&place, &[]), 0);
    assert_eq!(receive(), "STOPPING=1");
    assert_eq!(end_of(&mut child).code(), Some(0));
}

#[test]
fn a_mount_that_would_appear_in_its_own_source_is_undone() {
    if !can_mount() {
        return;
    }
    // A name space of its own, in which mounts propagate between bind mounts. It begins as a copy,
    // with the mounts of tests that run at the same moment, so only those of this place are
    // counted.
    let place = Place::new();
    let script = r#"set -eu
        mount -t tmpfs tmpfs "$2"; mount --make-shared "$2"
        mkdir "$2/data" "$2/data/inside" "$2/other"
        mount --bind "$2/data" "$2/other"
        code=0; "$1" mount "$2/data" "$2/other/inside" || code=$?
        grep fuse.ogive /proc/self/mountinfo | grep -c "$3" || true
        exit $code"#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", OGIVE])
        .args([place.mount_point().as_path(), Path::new(place.name())])
        .output()
        .unwrap();
    assert_code(&output, 4);
    assert!(stderr(&output).contains("inside its own source"), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "0");
}

#[test]
fn a_user_without_privileges_mounts_and_unmounts() {
    if !can_mount() {
        return;
    }
    if Command::new("fusermount3").arg("-V").output().is_err() {
        common::skipped("fusermount3 is not installed");
        return;
    }
    let place = Place::new();
    // A directory where the user can reach the program and may mount.
    let program = place.path("ogive");
    fs::copy(OGIVE, &program).unwrap();
    let directory = place.source().parent().unwrap().to_owned();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    // In a new name space /dev/fuse gets the mode of udev, whatever its mode is here.
    let script = r#"set -u
        cd "$1"
        mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || exit 77
        chown -R 65534:65534 source "mount point"
        user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
        user ./ogive mount source "mount point" || exit 1
        user cat "mount point/hello" || exit 2
        cat "mount point/hello" 2>/dev/null && exit 3
        user ./ogive unmount "mount point" || exit 4
        grep -q "$1/mount" /proc/self/mountinfo && exit 5
        user ./ogive mount --no-exec source "mount point"; echo "no-exec $?"
        grep "$1/mount" /proc/self/mountinfo | grep -qw noexec || exit 6
        user ./ogive unmount "mount point" || exit 7
        user ./ogive mount --dev source "mount point"; echo "dev $?"
        grep -q "^ *user_allow_other *$" /etc/fuse.conf || {
            user ./ogive mount --allow-other source "mount point"; echo "allow-other $?"; }
        chmod 600 /dev/fuse
        user ./ogive mount source "mount point"; echo "device $?"
        "#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&directory)
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        common::skipped(format!("no device can be made here: {}", stderr(&output)));
        return;
    }
    assert_code(&output, 0);
    let (out, errors) = (stdout(&output), stderr(&output));
    assert!(out.starts_with("hello world\n"), "{out}");
    assert!(
        out.contains("no-exec 0") && out.contains("dev 2") && out.contains("device 5"),
        "{out}\n{errors}"
    );
    assert!(errors.contains("chmod 666 /dev/fuse"), "{errors}");
    assert!(!out.contains("allow-other") || out.contains("allow-other 5"), "{out}\n{errors}");
}

#[test]
fn lines_for_the_journal_carry_their_priority_and_others_do_not() {
    let Some(place) = Place::mountable() else { return };
    fs::write(place.mount_point().join("covered"), "").unwrap();
    for (is_journal, prefix) in [(true, "<4>"), (false, "ogive: warning: ")] {
        // The variable that systemd sets when it connects standard error to the journal.
        let (reader, writer) = std::io::pipe().unwrap();
        let stat = rustix::fs::fstat(&writer).unwrap();
        let inode = if is_journal { stat.st_ino } else { stat.st_ino + 1 };
        let mut child = Command::new(OGIVE)
            .args(["mount", "--foreground"])
            .args([place.source(), place.mount_point()])
            .env("JOURNAL_STREAM", format!("{}:{inode}", stat.st_dev))
            .stderr(writer)
            .spawn()
            .unwrap();
        let line = within_a_minute("a line for the journal", move || {
            let mut line = String::new();
            BufReader::new(reader).read_line(&mut line).map(|_| line)
        })
        .unwrap();
        assert!(line.starts_with(prefix) && line.contains("is not empty"), "{line}");
        eventually("the mount", || place.mount_point().join("hello").exists());
        send(child.id(), Signal::TERM);
        assert_eq!(end_of(&mut child).code(), Some(0));
    }
}
