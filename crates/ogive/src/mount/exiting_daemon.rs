//! Whether a process of ogive is exiting.
//!
//! A killed process takes time to end: each of its threads ends when the scheduler next runs it.
//! Until the last thread has ended, /dev/fuse is open and requests may be half answered. The first
//! thread may be a zombie long before that, so this module checks every thread.

use std::fs;
use std::path::Path;

use ogive_proc::stat::Stat;
use ogive_proc::status::is_thread_killed;

/// Whether a process called ogive has threads left that are to end.
pub(super) fn any_exiting(proc: &Path) -> bool {
    let Ok(processes) = fs::read_dir(proc) else { return false };
    processes.flatten().any(|process| {
        let process = process.path();
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim_end() == "ogive")
            && is_dying(&process)
    })
}

/// Whether it has begun to end and has not ended.
fn is_dying(process: &Path) -> bool {
    let Ok(threads) = fs::read_dir(process.join("task")) else { return false };
    let threads: Vec<Thread> =
        threads.flatten().filter_map(|thread| Thread::at(&thread.path())).collect();
    threads.contains(&Thread::Ending)
        || (threads.contains(&Thread::Ended) && threads.contains(&Thread::Running))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Running,
    /// It ends when it next runs, or is about to.
    Ending,
    /// It has let go of everything.
    Ended,
}

impl Thread {
    fn at(directory: &Path) -> Option<Self> {
        let line = fs::read(directory.join("stat")).ok()?;
        let stat = Stat::parse(&line)?;
        if matches!(stat.state()?, 'Z' | 'X') {
            return Some(Self::Ended);
        }
        let status = fs::read(directory.join("status")).ok()?;
        let is_ending = stat.is_exiting()? || is_thread_killed(&status)?;
        Some(if is_ending { Self::Ending } else { Self::Running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread as /proc shows it.
    fn thread(process: &Path, number: u32, state: char, flags: u64, pending: u64) {
        let directory = process.join(format!("task/{number}"));
        fs::create_dir_all(&directory).unwrap();
        let stat = format!("{number} (a) b) {state} 1 7 7 0 -1 {flags} 0 0\n");
        fs::write(directory.join("stat"), stat).unwrap();
        let status = format!("Name:\ta) b\nSigPnd:\t{pending:016x}\nShdPnd:\t0000000000000100\n");
        fs::write(directory.join("status"), status).unwrap();
    }

    #[test]
    fn a_process_is_exiting_until_its_last_thread_has_ended() {
        for (threads, expected) in [
            // Alive: running, asleep, stopped; another signal waits.
            (vec![('S', 0x40_0040, 0), ('R', 0x40_0040, 0x4000)], false),
            // Killed, and no thread has run since; then one is ending.
            (vec![('T', 0x40_0040, 0x100), ('S', 0x40_0040, 0x100)], true),
            (vec![('Z', 0x40_0044, 0), ('D', 0x40_0044, 0)], true),
            // The first thread is a zombie and others are not.
            (vec![('Z', 0x40_0044, 0), ('S', 0x40_0040, 0)], true),
            // Ended, and its parent has not waited for it.
            (vec![('Z', 0x40_0044, 0)], false),
        ] {
            let proc = tempfile::tempdir().unwrap();
            for (name, pid) in [("ogive", 7), ("other", 8)] {
                let process = proc.path().join(pid.to_string());
                fs::create_dir(&process).unwrap();
                fs::write(process.join("comm"), format!("{name}\n")).unwrap();
            }
            thread(&proc.path().join("8"), 8, 'S', 0x44, 0x100);
            assert!(!any_exiting(proc.path()), "another program");
            for (number, &(state, flags, pending)) in (7..).zip(&threads) {
                thread(&proc.path().join("7"), number, state, flags, pending);
            }
            assert_eq!(any_exiting(proc.path()), expected, "{threads:?}");
        }
    }
}
