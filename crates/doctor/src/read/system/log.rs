//! Logs: dmesg and the journal (hung tasks, lockups, stalls, out of memory, I/O errors, call
//! traces), and ZFS's own `dbgmsg`.

use super::log_age;
use crate::evidence::Frame;
use crate::pattern::Pattern;
use crate::read::profile::kernel_stack;
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Every form of a kernel message: raw and human stamps of dmesg (`-T`, `-H`, `-d`, `-x`), the
/// journal and syslog with their dates. The month may be in any language.
static STAMP: Pattern = Pattern::new(concat!(
    r"^(?:<\d+>)?\s*(?:kern\s*:\s*\w+\s*:\s*)?",
    r"(?:\[\s*\+?\d+\.\d+(?:\s*<\s*\d+\.\d+>)?\](?: \S+ kernel:)?|",
    r"\[\p{L}{2,4}\.? \p{L}{3,5}\.? .{1,24}\d{4}\]|",
    r"\[\p{L}{3,4}\s?\d+ \d\d:\d\d\]|",
    r"(?:\p{L}{3,5}\.?\s+\d+|\d+\.? \p{L}{3,5}\.?|\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d(?:[.,]\d+)? ",
    r"\S+ kernel:(?:\s*\[\s*\d+\.\d+\])?|",
    r"\d{4}-\d\d-\d\dT\S+ \S+ kernel:(?:\s*\[\s*\d+\.\d+\])?|",
    r"kernel:(?:\s*\[\s*\d+\.\d+\])?)",
    r"(?:\[\s*[TC]\d+\])?\s?(.*)$",
));

/// Beginnings of messages that are the kernel's even without a time stamp.
const MESSAGES: &str = "INFO: rcu|rcu: INFO|INFO: task |watchdog: BUG|BUG: soft lockup|BUG: unable|NMI watchdog\
     |sending NMI|Sending NMI|Call Trace:|Task dump for CPU|blk_update_request:|Buffer I/O error\
     |print_req_error|Out of memory|Kernel panic|VERIFY|PANIC at|PANIC: |SPLError:\
     |ZFS: Loaded module|SPL: Loaded module|CPU: |RIP: |Pid: |Mem-Info:|panic: \
     |current process         =|trap number             =|zio pool=";
static EVENT: Pattern = Pattern::new(concat!(
    r"invoked oom-killer|page allocation failure|blocked for more than|soft lockup|hung_task|",
    r"detected stall|I/O error, dev|running task\s+\d|zio pool=|Kill process|Killed process|",
    r": segfault at|CPU\d+: .*(?:temperature|Temperature|clock throttled)|",
    r"^nfs: server \S+ not responding|QID \d+.* timeout|timeout, (?:aborting|reset controller)|",
    r"^ata\d+(?:\.\d+)?: (?:exception|failed command|hard resetting|SError|status:|error:)|",
    r"hogged CPU for|interrupt took too long|self-detected stall|timekeeping watchdog|",
    r"was killed: |^swap_pager|Timeout on slot \d|CAM status: |Resetting controller due to",
));
static LOADED: Pattern = Pattern::new(
    r"ZFS: Loaded module v([0-9][\w.+~-]*)|ZFS filesystem version|This module requires|ZFS storage pool version",
);
static COMM: Pattern = Pattern::new(
    r"[Cc]omm: (\S+)|INFO: task (\S+?):\d+ blocked|soft lockup - CPU#\d+ stuck for \S+ \[(.+?):\d+\]|^(\S+)\s+[RSDZTW]\s+running task",
);
static PANIC_FRAME: Pattern = Pattern::new(r"^#\d+\s+(?:0x[0-9a-f]+|\S+) at (\S+?)\+");

/// Whether a line begins the kernel's log.
pub(crate) fn is_dmesg(text: &str) -> bool {
    let trimmed = text.trim();
    // The address of a bare stack frame looks like a time stamp in brackets.
    STAMP.is_match(trimmed) && !kernel_stack::is_frame(text)
        || word_lists::begins(MESSAGES, trimmed) && !is_processor(trimmed)
        || EVENT.is_match(trimmed) && trimmed.len() < 300 && !trimmed.ends_with('.')
}

/// Whether a line describes the processor (`CPU: AMD ...`) or its use (`CPU: 5%`). A line of an
/// oops (`CPU: 3 PID:`) does neither.
fn is_processor(text: &str) -> bool {
    text.strip_prefix("CPU: ").is_some_and(|rest| {
        let first = rest.split_whitespace().next().unwrap_or_default();
        !first.starts_with(|c: char| c.is_ascii_digit()) || first.contains('%')
    })
}

/// Reads the kernel's log; its call traces become stacks too.
pub(crate) fn read_dmesg(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut frames: Vec<Frame> = Vec::new();
    let mut first: Option<&Line<'_>> = None;
    let mut thread: Option<String> = None;
    for line in section.lines {
        let trimmed = line.text.trim();
        if let Some(seconds) = log_age::stamp(trimmed) {
            let at = reading.at(line);
            reading.evidence.log_stamps.push((at, seconds));
        }
        let message = STAMP
            .captures(trimmed)
            .and_then(|found| found.get(1))
            .map_or(trimmed, |rest| rest.as_str())
            .trim();
        if message.is_empty() {
            continue;
        }
        if let Some((frame, _)) = kernel_stack::frame_of(message).or_else(|| panic_frame(message)) {
            if frames.is_empty() {
                first = Some(line);
            }
            if frames.len() < 256 {
                frames.push(frame);
            }
            continue;
        }
        kernel_stack::close(&mut frames, &thread, first, reading);
        if let Some(found) = COMM.captures(message) {
            thread = (1..=4).find_map(|at| found.get(at)).map(|name| name.as_str().to_owned());
        }
        if let Some(version) = LOADED.captures(message).and_then(|found| found.get(1)) {
            let version = version.as_str().to_owned();
            reading.evidence.host.zfs_version.get_or_insert_with(|| crate::evidence::Statement {
                value: version,
                source: crate::evidence::Source {
                    input: reading.input.clone(),
                    line: Some(line.number),
                },
            });
        }
        reading.log(message, line);
    }
    kernel_stack::close(&mut frames, &thread, first, reading);
}

fn panic_frame(message: &str) -> Option<(Frame, Option<u64>)> {
    let found = PANIC_FRAME.captures(message)?;
    Some((Frame { kernel: Some(true), ..crate::read::text::frame::frame(&found[1], None) }, None))
}

/// Whether a line is one of `dbgmsg`.
pub(crate) fn is_dbgmsg(text: &str) -> bool {
    static ROW: Pattern = Pattern::new(r"^\s*\d{9,11}\s+\w[\w-]*\.c:\d+:");
    ROW.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_message_is_recognised_alone() {
        for line in include_str!("../../../tests/read_samples/dmesg-dressed.txt").lines() {
            assert!(is_dmesg(line), "{line}");
        }
        for line in [
            "The CPU was throttled and the nfs: server x not responding line came later.",
            "nfs is slow",
            "12 Mar 2024 we moved to a new kernel: 6.1",
            "kernel",
        ] {
            assert!(!is_dmesg(line), "{line}");
        }
    }
}
