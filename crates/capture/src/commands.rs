//! Commands whose output is part of a capture. They only read. Each has a time limit, and a command
//! that is not installed is no error.
//!
//! The properties of data sets take most of a minute on a sick host, and they are the most useful.
//! That command therefore runs beside the whole capture; the others run after it, two at a time. If
//! it does not end, the data sets with traffic are asked for by name.
//!
//! A command that cannot be ended is left behind ([`Detached`]). So is its output if another
//! program keeps the pipe open. The output so far is kept.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};

use super::Bundle;
use super::detached::{Detached, Gone, HERE};

/// A command that takes longer behind the look is ended.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Longest output that is kept.
const MAX_OUTPUT_BYTES: usize = 8 << 20;
/// Commands that run at a time: a sick host has enough to do.
const AT_ONCE: usize = 2;
/// Data sets with traffic whose properties are asked for by name, at most.
const MAX_NAMED: usize = 16;

/// Properties that separate causes, and that cost no reading of a data set's space; "all" of
/// thousands of data sets would be a load of its own.
const TELLING: &str =
    "encryption,checksum,compression,recordsize,volblocksize,dedup,sync,primarycache";
/// More of them.
const FURTHER: &str = "type,secondarycache,logbias,atime,dnodesize,xattr,mounted";
/// The counters of each data set.
const SPACE: &str = "used,quota";

const GET: [&str; 4] = ["zfs", "get", "-t", "filesystem,volume"];

/// The most telling and, on a sick host, slowest one: it runs beside the look.
const BESIDE: (&str, &[&str]) = ("zfs-get.txt", &[GET[0], GET[1], GET[2], GET[3], TELLING]);

/// The commands after the snapshots, in this order.
const BEHIND: [(&str, &[&str]); 10] = [
    ("uname.txt", &["uname", "-a"]),
    ("lscpu.txt", &["lscpu"]),
    ("zfs-version.txt", &["zfs", "version"]),
    ("zpool-list.txt", &["zpool", "list"]),
    ("zpool-status.txt", &["zpool", "status", "-D"]),
    ("zpool-get.txt", &["zpool", "get", "all"]),
    ("zpool-iostat.txt", &["zpool", "iostat", "-v", "1", "2"]),
    ("zfs-get-further.txt", &[GET[0], GET[1], GET[2], GET[3], FURTHER]),
    ("zfs-get-space.txt", &[GET[0], GET[1], GET[2], GET[3], SPACE]),
    ("dmesg.txt", &["dmesg"]),
];

/// A command to run, with the name of its output.
#[derive(Clone, Debug)]
struct Task {
    name: String,
    words: Vec<String>,
}

impl Task {
    fn new(name: &str, words: &[&str]) -> Self {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Self { name: name.to_owned(), words }
    }

    /// They ask the same module: where one hangs, each other one would, and stay.
    fn is_of_zfs(&self) -> bool {
        matches!(self.words[0].as_str(), "zfs" | "zpool")
    }

    fn line(&self) -> String {
        self.words.join(" ")
    }
}

/// The result of a task.
type Came = Option<(Vec<u8>, Option<Gone>)>;

/// The command that runs beside the look.
pub(super) struct Beside {
    task: Task,
    came: mpsc::Receiver<(usize, Came)>,
    tell: mpsc::Sender<(usize, Came)>,
    limit: Duration,
}

/// Starts what runs beside a look that takes as long.
pub(super) fn start(look: Duration) -> Beside {
    let (tell, came) = mpsc::channel();
    let limit = look + TIME_LIMIT;
    let task = Task::new(BESIDE.0, BESIDE.1);
    begin(0, &task, limit, &tell);
    Beside { task, came, tell, limit }
}

/// Runs a task on a thread of its own; its answer comes within the limit.
fn begin(at: usize, task: &Task, limit: Duration, tell: &mpsc::Sender<(usize, Came)>) {
    let (own, words) = (tell.clone(), task.words.clone());
    let work = move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // The receiver is gone if this is late.
        let _ = own.send((at, run(&words, limit, &HERE)));
    };
    if let Err(gone) = HERE.start(work) {
        let _ = tell.send((at, Some((Vec::new(), Some(gone)))));
    }
}

impl Beside {
    /// Runs the others, and takes what all of them say.
    pub(super) fn finish(self, bundle: &mut Bundle) {
        let mut tasks = vec![self.task.clone()];
        tasks.extend(BEHIND.iter().map(|(name, words)| Task::new(name, words)));
        let mut said: Vec<Option<Came>> = vec![None; tasks.len()];
        let (mut running, mut next) = (1, 1);
        let mut hangs: Option<String> = None;
        loop {
            while running < AT_ONCE && next < tasks.len() {
                let task = &tasks[next];
                match hangs.as_ref().filter(|_| task.is_of_zfs()) {
                    Some(other) => bundle.notes.push(format!(
                        "\"{}\" was not tried, because \"{other}\" hangs",
                        task.line()
                    )),
                    None => {
                        begin(next, task, TIME_LIMIT, &self.tell);
                        running += 1;
                    }
                }
                next += 1;
            }
            if running == 0 {
                break;
            }
            let Ok((at, came)) = self.came.recv_timeout(self.limit + TIME_LIMIT) else { break };
            running -= 1;
            let is_late = matches!(came, Some((_, Some(_))));
            if is_late && tasks[at].is_of_zfs() && hangs.is_none() {
                hangs = Some(tasks[at].words[0].clone());
            }
            said[at] = Some(came);
        }
        let all_told = matches!(&said[0], Some(None | Some((_, None))));
        for (task, came) in tasks.iter().zip(said) {
            let limit = if task.name == self.task.name { self.limit } else { TIME_LIMIT };
            take(bundle, task, came.flatten(), limit);
        }
        if !all_told {
            ask_by_name(bundle);
        }
    }
}

/// Adds the output of a command, and why it ended early.
fn take(bundle: &mut Bundle, task: &Task, came: Came, limit: Duration) {
    let Some((output, gone)) = came else { return };
    if !output.is_empty() {
        bundle.files.push((format!("commands/{}", task.name), output));
    }
    if let Some(gone) = gone {
        bundle.notes.push(gone.note(&format!("\"{}\"", task.line()), limit));
    }
}

/// Asks for the properties of the data sets with traffic alone: where all data sets take too long,
/// a few of them do not.
fn ask_by_name(bundle: &mut Bundle) {
    let names = busiest(&bundle.files);
    if names.is_empty() {
        return;
    }
    let mut task = Task::new("zfs-get-busiest.txt", &[GET[0], GET[1], TELLING]);
    task.words.extend(names);
    let words: Vec<&str> = task.words.iter().map(String::as_str).collect();
    let came = run(&words, TIME_LIMIT, &HERE);
    take(bundle, &task, came, TIME_LIMIT);
}

/// Data sets that were read or written between the two snapshots, most bytes first.
fn busiest(files: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut moved: BTreeMap<String, f64> = BTreeMap::new();
    for (name, content) in files.iter().filter(|(name, _)| name.contains("/objset-")) {
        let text = String::from_utf8_lossy(content);
        // Name, type and value, which may hold blanks.
        let row = |row: &str| {
            let of = |line: &str| {
                let (_kind, value) =
                    line.strip_prefix(row)?.trim_start().split_once(char::is_whitespace)?;
                Some(value.trim().to_owned())
            };
            text.lines().find_map(of)
        };
        let bytes = |name: &str| row(name).and_then(|text| text.parse::<f64>().ok());
        let (Some(dataset), Some(read), Some(written)) =
            (row("dataset_name"), bytes("nread"), bytes("nwritten"))
        else {
            continue;
        };
        let sign = if name.starts_with("start/") { -1.0 } else { 1.0 };
        *moved.entry(dataset).or_default() += sign * (read + written);
    }
    let mut moved: Vec<(String, f64)> =
        moved.into_iter().filter(|(_, bytes)| *bytes > 0.0).collect();
    moved.sort_by(|a, b| b.1.total_cmp(&a.1));
    moved.into_iter().map(|(name, _)| name).take(MAX_NAMED).collect()
}

/// The messages of the thread of a command.
enum Heard {
    NotThere,
    Started(Option<Pid>),
    Ended,
}

/// The output of a command as far as it came, and why there is no more; `None` where the command is
/// not there.
fn run(words: &[&str], limit: Duration, detached: &Detached) -> Option<(Vec<u8>, Option<Gone>)> {
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
    if let Err(gone) = detached.start(move || follow(command, &own, &tell, &held)) {
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

/// Starts a command, reads its output to the end, and then waits for it.
fn follow(
    mut command: Command,
    output: &Mutex<Vec<u8>>,
    tell: &mpsc::Sender<Heard>,
    held: &mpsc::Receiver<()>,
) {
    // The caller may have given up.
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
        let detached = Detached::default();
        let mut waited = Duration::from_millis(200);
        // A busy machine may need longer to start it.
        let (output, gone) = loop {
            let ended = run(&[&zpool, "status"], waited, &detached).unwrap();
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
    fn data_sets_with_traffic_are_told_by_the_difference_of_two_snapshots() {
        let file = |moment: &str, object: u32, dataset: &str, bytes: u32| {
            let text = format!(
                "62 1 0x01 27 7600 1 2\nname type data\ndataset_name 7 {dataset}\n\
                 writes 4 3\nnwritten 4 {bytes}\nreads 4 1\nnread 4 10\n"
            );
            (format!("{moment}/proc/spl/kstat/zfs/tank/objset-0x{object}"), text.into_bytes())
        };
        let files = [
            file("start", 1, "tank/idle", 900),
            file("start", 2, "tank/some", 0),
            file("start", 3, "tank/most of it", 5),
            file("end", 1, "tank/idle", 900),
            file("end", 2, "tank/some", 100),
            file("end", 3, "tank/most of it", 500),
        ];
        assert_eq!(busiest(&files), ["tank/most of it", "tank/some"]);
        assert!(busiest(&[]).is_empty());
    }

    #[test]
    fn a_command_that_ends_gives_all_it_says_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let zpool = program(directory.path(), "echo one; echo two");
        let (output, gone) =
            run(&[&zpool], Duration::from_secs(600), &Detached::default()).unwrap();
        assert_eq!((output.as_slice(), gone), (&b"one\ntwo\n"[..], None));
        assert!(run(&["/nowhere/zpool"], TIME_LIMIT, &Detached::default()).is_none());
    }
}
