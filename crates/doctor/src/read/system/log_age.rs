//! Which lines of the kernel's log describe the present.
//!
//! The log goes back to boot, and a capture covers a few seconds. Lines and stacks that are a
//! minute older than the capture are history, like a counter's value at its first reading. A log
//! that was pasted alone stays whole.

use std::collections::HashMap;
use std::sync::Arc;

use crate::evidence::{Evidence, Source};

/// Lines may be this many seconds older than the capture.
const MARGIN_S: f64 = 60.0;

/// Seconds since boot from the stamp of a line: `[ 2021.237259]`.
pub(super) fn stamp(line: &str) -> Option<f64> {
    line.strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

/// Removes the lines that are history.
pub(crate) fn finish(evidence: &mut Evidence) {
    let stamps = std::mem::take(&mut evidence.log_stamps);
    let Some(uptime) = evidence.host.uptime_s.as_ref() else { return };
    if evidence.tasks.is_empty() {
        return;
    }
    let first = uptime.value - MARGIN_S;
    let stamps: HashMap<(Arc<str>, Option<u32>), f64> =
        stamps.into_iter().map(|(at, seconds)| ((at.input, at.line), seconds)).collect();
    let is_now = |at: &Source| {
        stamps.get(&(at.input.clone(), at.line)).is_none_or(|seconds| *seconds >= first)
    };
    evidence.log.retain(|line| is_now(&line.source));
    evidence.kernel_stacks.retain(|stack| is_now(&stack.source));
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    const LOG: &str = "\
[   26.973917] ZFS: Loaded module v2.3.9-1, ZFS pool version 5000, ZFS filesystem version 5
[  900.000000] INFO: task txg_sync:97 blocked for more than 120 seconds.
[  900.000001] Call Trace:
[  900.000002]  cv_wait_common+0xb2/0x140 [spl]
[ 1990.000000] INFO: task fio:12 blocked for more than 120 seconds.
[ 1990.000001] Call Trace:
[ 1990.000002]  zio_wait+0x10/0x20 [zfs]
";

    /// Remaining lines of the log and their stacks, when these files are read too.
    fn left(files: &[(&str, &str)]) -> (usize, usize) {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "commands/dmesg.txt", LOG.as_bytes());
        for (name, text) in files {
            read_bytes(&mut evidence, name, text.as_bytes());
        }
        finish(&mut evidence);
        assert!(evidence.host.zfs_version.is_some());
        (evidence.log.len(), evidence.kernel_stacks.len())
    }

    #[test]
    fn log_lines_older_than_a_capture_are_dropped() {
        let (lines, stacks) = left(&[]);
        assert_eq!((lines, stacks), (5, 2));
        let of = |ticks: &str| {
            let heading = "# first column pid (tgid), then the line of /proc/PID/task/TID/stat\n";
            format!(
                "{heading}9 9 (fio) S 1 9 9 0 -1 0 0 0 0 0 {ticks} 5 0 0 20 0 1 0 100 0 0 1 0 0\n"
            )
        };
        let (start, end) = (of("5"), of("9"));
        let look = [
            ("start/thread-stats.txt", start.as_str()),
            ("end/thread-stats.txt", end.as_str()),
            ("start/proc/uptime", "2000.00 1.00\n"),
        ];
        assert_eq!(left(&look), (2, 1));
    }
}
