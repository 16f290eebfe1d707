//! Pressure stall information: how long tasks stalled for lack of memory.
//!
//! The first of the file's two lines, `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, counts the
//! time (µs) in which at least one task was stalled. A task stalls in reclaim or while it waits for
//! a page that was evicted too early. Writing `some 150000 2000000` and a NUL arms a trigger on the
//! descriptor. Then poll(2) reports `POLLPRI` when stalls add up to 150 ms within any window of 2
//! s, at most once a window. Source: `Documentation/accounting/psi.rst`, `kernel/sched/psi.c`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ogive_proc::pressure::{Share, Stall, stalls};

/// The triggers to try, best first: 7.5% of one second, or of two.
///
/// The window of one second reacts sooner, but only a task with `CAP_SYS_RESOURCE` may choose its
/// window freely. Others get `EINVAL` unless it is a multiple of 2 s, the interval of the averages
/// (Linux 6.5; before, they got `EPERM` at open). The kernel overwrites the last byte with a
/// terminator, hence the NUL.
pub(crate) const TRIGGERS: [(&str, &[u8]); 2] = [
    ("woken by stalls of 75 ms in 1 s", b"some 75000 1000000\0"),
    ("woken by stalls of 150 ms in 2 s", b"some 150000 2000000\0"),
];

/// Arms a trigger on `path`. Returns the open file, which is the trigger, and its description.
pub(crate) fn arm(path: &Path) -> io::Result<(File, &'static str)> {
    let mut failure = None;
    for (meaning, trigger) in TRIGGERS {
        // A descriptor takes only one trigger in its life, so each attempt opens its own.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut file =
            OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(path)?;
        match file.write_all(trigger) {
            Ok(()) => return Ok((file, meaning)),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}

/// The line of stalls of at least one task.
pub(crate) fn some(text: &str) -> Option<Stall> {
    stalls(text).find(|stall| stall.share == Share::Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_end_in_nul_and_the_fallback_window_is_two_seconds() {
        assert!(TRIGGERS.iter().all(|(_, trigger)| trigger.ends_with(b"\0")));
        let (_, fallback) = TRIGGERS[1];
        let window = std::str::from_utf8(fallback).unwrap().trim_end_matches('\0');
        let window_us: u64 = window.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(window_us % 2_000_000, 0);
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = arm(&directory.path().join("memory")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
