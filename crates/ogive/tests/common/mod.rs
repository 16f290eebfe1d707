//! Shared by the tests of the program: how to run it, and a mount that is always removed at the
//! end.

#![allow(dead_code, reason = "each test file is a crate of its own and uses a part")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

#[path = "../../../../tests/skipped.rs"]
pub(crate) mod skipped;

pub(crate) use skipped::skipped;

/// The program under test.
pub(crate) const OGIVE: &str = env!("CARGO_BIN_EXE_ogive");

/// Runs `ogive` to its end. Standard output and error are pipes read to their ends, so a background
/// process that kept one of them would hang the test.
pub(crate) fn ogive<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(OGIVE).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs the program as mount(8) would, under the name `mount.ogive`.
pub(crate) fn mount_ogive<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(OGIVE)
        .arg0("/sbin/mount.ogive")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Fails with the program's output unless it ended with this code.
#[track_caller]
pub(crate) fn assert_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout: {}\nstderr: {}",
        stdout(output),
        stderr(output)
    );
}

/// Whether mounts can be made here; otherwise prints the reason.
pub(crate) fn can_mount() -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "not root"
    } else if fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse cannot be opened"
    } else {
        return true;
    };
    skipped(reason);
    false
}

/// Until a process started by another test becomes its program, it has a copy of every descriptor.
/// A copy keeps a mount busy and prevents the execution of a program. A mount name space made
/// meanwhile also keeps all mounts. So only one place is in use at a time.
static ONE_PLACE: ReentrantMutex<()> = ReentrantMutex::new(());

/// A source with a file in it and a mount point, both in a directory of their own. One test at a
/// time has such places, and the thread that it runs on may have several.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    _only: ReentrantMutexGuard<'static, ()>,
}

impl Place {
    /// A place where mounts can be made here.
    pub(crate) fn mountable() -> Option<Self> {
        can_mount().then(Self::new)
    }

    pub(crate) fn new() -> Self {
        let only = ONE_PLACE.lock();
        let directory = tempfile::tempdir().unwrap();
        let place = Self { directory, _only: only };
        fs::create_dir(place.source()).unwrap();
        fs::create_dir(place.mount_point()).unwrap();
        fs::write(place.source().join("hello"), "hello world\n").unwrap();
        place
    }

    /// The name of the directory both are in, which no other place has.
    pub(crate) fn name(&self) -> &str {
        self.directory.path().file_name().unwrap().to_str().unwrap()
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.directory.path().join("source")
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.directory.path().join("mount point")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Mounts in the background with these further arguments.
    #[track_caller]
    pub(crate) fn mount(&self, arguments: &[&str]) {
        let mut line: Vec<PathBuf> = vec!["mount".into()];
        line.extend(arguments.iter().map(PathBuf::from));
        line.extend([self.source(), self.mount_point()]);
        assert_code(&ogive(line), 0);
    }

    /// The line of mountinfo for the mount point, if there is one.
    pub(crate) fn mount_line(&self) -> Option<String> {
        let escaped = fs::canonicalize(self.directory.path()).unwrap().join("mount\\040point");
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let field = format!(" {} ", escaped.display());
        text.lines().rev().find(|line| line.contains(&field)).map(str::to_owned)
    }

    /// The process that serves the mount.
    pub(crate) fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.mount_point().join(".ogive/mount")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["pid"].as_u64().unwrap().try_into().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Before the directory is removed: removing must never walk into a mount.
        for _ in 0..4 {
            if self.mount_line().is_none() {
                break;
            }
            let _ = Command::new("umount").arg("--lazy").arg(self.mount_point()).output();
        }
    }
}

/// Waits until a condition holds. Fails after a minute, which no working program needs.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never came: {what}");
}

/// The result of a call that waits for another process. Fails after a minute, as [`eventually`].
#[track_caller]
pub(crate) fn within_a_minute<T: Send + 'static>(
    what: &str,
    call: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    // The receiver has ended if it took too long.
    std::thread::spawn(move || drop(sender.send(call())));
    receiver.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("never came: {what}"))
}

/// The exit status of a process. Fails after a minute, as [`eventually`], and kills it.
#[track_caller]
pub(crate) fn end_of(child: &mut Child) -> ExitStatus {
    for _ in 0..6_000 {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("never came: the end of process {}", child.id());
}

/// Whether a process exists with a thread that is not a zombie. While one lives, all files of the
/// process stay open.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")) else {
        return false;
    };
    tasks.flatten().any(|task| {
        fs::read_to_string(task.path().join("stat"))
            .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with(['Z', 'X']))
    })
}

/// Always continues a stopped process, because its mount hangs.
pub(crate) struct Stopped(rustix::process::Pid);

impl Stopped {
    pub(crate) fn stop(pid: u32) -> Self {
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended.
        let _ = rustix::process::kill_process(self.0, rustix::process::Signal::CONT);
    }
}
