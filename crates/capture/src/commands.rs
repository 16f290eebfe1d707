//! Runs the commands whose output is part of a capture. They only read. Each has a time limit, and
//! a command that is not installed is not an error.
//!
//! The properties of data sets take most of a minute on a sick host, and they are the most useful.
//! So that command runs during the whole capture, and the others run after it, two at a time. If it
//! does not end, only the data sets with traffic are queried, by name.
//!
//! A command that cannot be killed is abandoned ([`Detached`]), and so is its output if another
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

/// A command after the capture is killed after this time.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Output that is kept of a command at most.
const MAX_OUTPUT_BYTES: usize = 8 << 20;
/// Commands that run at a time: a sick host has little capacity.
const AT_ONCE: usize = 2;
/// Data sets with traffic whose properties are queried by name, at most.
const MAX_NAMED: usize = 16;

/// Properties that separate causes and do not compute the space of a data set; "all" of thousands
/// of data sets would be a load of its own.
const PROPERTIES: &str =
    "encryption,checksum,compression,recordsize,volblocksize,dedup,sync,primarycache";
/// More of these properties.
const MORE_PROPERTIES: &str = "type,secondarycache,logbias,atime,dnodesize,xattr,mounted";
/// The counters of each data set.
const SPACE: &str = "used,quota";

const GET: [&str; 4] = ["zfs", "get", "-t", "filesystem,volume"];

/// The most useful command and, on a sick host, the slowest: it runs during the capture.
const DURING: (&str, &[&str]) = ("zfs-get.txt", &[GET[0], GET[1], GET[2], GET[3], PROPERTIES]);

/// The commands after the capture, in this order.
const AFTER: [(&str, &[&str]); 10] = [
    ("uname.txt", &["uname", "-a"]),
    ("lscpu.txt", &["lscpu"]),
    ("zfs-version.txt", &["zfs", "version"]),
    ("zpool-list.txt", &["zpool", "list"]),
    ("zpool-status.txt", &["zpool", "status", "-D"]),
    ("zpool-get.txt", &["zpool", "get", "all"]),
    ("zpool-iostat.txt", &["zpool", "iostat", "-v", "1", "2"]),
    ("zfs-get-further.txt", &[GET[0], GET[1], GET[2], GET[3], MORE_PROPERTIES]),
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

    /// These commands query one module: if one hangs, all others would hang too.
    fn is_of_zfs(&self) -> bool {
        matches!(self.words[0].as_str(), "zfs" | "zpool")
    }

    fn line(&self) -> String {
        self.words.join(" ")
    }
}

/// The result of a task.
type Outcome = Option<(Vec<u8>, Option<Gone>)>;

/// The command that runs during the capture.
pub(super) struct Running {
    task: Task,
    outcome: mpsc::Receiver<(usize, Outcome)>,
    send: mpsc::Sender<(usize, Outcome)>,
    limit: Duration,
}

/// Starts the command that runs during a capture of this length.
pub(super) fn start(look: Duration) -> Running {
    let (send, outcome) = mpsc::channel();
    let limit = look + TIME_LIMIT;
    let task = Task::new(DURING.0, DURING.1);
    begin(0, &task, limit, &send);
    Running { task, outcome, send, limit }
}

/// Runs a task on a thread of its own. Its outcome arrives within the limit.
fn begin(at: usize, task: &Task, limit: Duration, send: &mpsc::Sender<(usize, Outcome)>) {
    let (own, words) = (send.clone(), task.words.clone());
    let work = move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // The receiver is gone after the limit.
        let _ = own.send((at, run(&words, limit, &HERE)));
    };
    if let Err(gone) = HERE.start(work) {
        let _ = send.send((at, Some((Vec::new(), Some(gone)))));
    }
}

impl Running {
    /// Runs the other commands and collects all outcomes.
    pub(super) fn finish(self, bundle: &mut Bundle) {
        let mut tasks = vec![self.task.clone()];
        tasks.extend(AFTER.iter().map(|(name, words)| Task::new(name, words)));
        let mut outcomes: Vec<Option<Outcome>> = vec![None; tasks.len()];
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
                        begin(next, task, TIME_LIMIT, &self.send);
                        running += 1;
                    }
                }
                next += 1;
            }
            if running == 0 {
                break;
            }
            let Ok((at, outcome)) = self.outcome.recv_timeout(self.limit + TIME_LIMIT) else {
                break;
            };
            running -= 1;
            let is_late = matches!(outcome, Some((_, Some(_))));
            if is_late && tasks[at].is_of_zfs() && hangs.is_none() {
                hangs = Some(tasks[at].words[0].clone());
            }
            outcomes[at] = Some(outcome);
        }
        let is_complete = matches!(&outcomes[0], Some(None | Some((_, None))));
        for (task, outcome) in tasks.iter().zip(outcomes) {
            let limit = if task.name == self.task.name { self.limit } else { TIME_LIMIT };
            take(bundle, task, outcome.flatten(), limit);
        }
        if !is_complete {
            ask_by_name(bundle);
        }
    }
}

/// Adds the output of a command, and a note if it ended early.
fn take(bundle: &mut Bundle, task: &Task, outcome: Outcome, limit: Duration) {
    let Some((output, gone)) = outcome else { return };
    if !output.is_empty() {
        bundle.files.push((format!("commands/{}", task.name), output));
    }
    if let Some(gone) = gone {
        bundle.notes.push(gone.note(&format!("\"{}\"", task.line()), limit));
    }
}

/// Queries the properties of the data sets with traffic only. If all data sets take too long, a few
/// of them do not.
fn ask_by_name(bundle: &mut Bundle) {
    let names = busiest(&bundle.files);
    if names.is_empty() {
        return;
    }
    let mut task = Task::new("zfs-get-busiest.txt", &[GET[0], GET[1], PROPERTIES]);
    task.words.extend(names);
    let words: Vec<&str> = task.words.iter().map(String::as_str).collect();
    let outcome = run(&words, TIME_LIMIT, &HERE);
    take(bundle, &task, outcome, TIME_LIMIT);
}

/// Data sets that were read or written between the two snapshots, most bytes first.
fn busiest(files: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut moved: BTreeMap<String, f64> = BTreeMap::new();
    for (name, content) in files.iter().filter(|(name, _)| name.contains("/objset-")) {
        let text = String::from_utf8_lossy(content);
        // Name, type and value, which may contain blanks.
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

/// The messages from the thread of a command.
enum Message {
    NotInstalled,
    Started(Option<Pid>),
    Ended,
}

/// The output of a command so far, and the reason why it is incomplete; `None` if the command is
/// not installed.
fn run(words: &[&str], limit: Duration, detached: &Detached) -> Option<(Vec<u8>, Option<Gone>)> {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A group of its own, so that its children are killed with it.
        .process_group(0);
    let output = Arc::new(Mutex::new(Vec::new()));
    let ((send, messages), (hold, held)) = (mpsc::channel(), mpsc::channel());
    let own = Arc::clone(&output);
    if let Err(gone) = detached.start(move || follow(command, &own, &send, &held)) {
        return Some((Vec::new(), Some(gone)));
    }
    let mut group = None;
    let end = loop {
        match messages.recv_timeout(limit) {
            Ok(Message::NotInstalled) => return None,
            Ok(Message::Started(started)) => group = started,
            Ok(Message::Ended) => break None,
            Err(_) => break Some(Gone::TooLong),
        }
    };
    if let Some(group) = group {
        // The command's thread waits for it only after `hold` is dropped, so its number is not
        // reused before. The kill fails if it has ended by itself.
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
    send: &mpsc::Sender<Message>,
    held: &mpsc::Receiver<()>,
) {
    // The caller may have given up.
    let report = |message| drop(send.send(message));
    let Ok(mut child) = command.spawn() else { return report(Message::NotInstalled) };
    report(Message::Started(i32::try_from(child.id()).ok().and_then(Pid::from_raw)));
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
    report(Message::Ended);
    let _ = held.recv();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    /// A program of these lines, which writes its output and the numbers of its children.
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
    fn a_command_whose_pipe_stays_open_is_abandoned_and_its_output_kept() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        // A child with its own session is not in the killed group.
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
    fn data_sets_with_traffic_are_found_by_comparing_two_snapshots() {
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
    fn a_command_that_ends_gives_all_its_output_and_is_not_abandoned() {
        let directory = tempfile::tempdir().unwrap();
        let zpool = program(directory.path(), "echo one; echo two");
        let (output, gone) =
            run(&[&zpool], Duration::from_secs(600), &Detached::default()).unwrap();
        assert_eq!((output.as_slice(), gone), (&b"one\ntwo\n"[..], None));
        assert!(run(&["/nowhere/zpool"], TIME_LIMIT, &Detached::default()).is_none());
    }
}
