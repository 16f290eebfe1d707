//! Momentary stacks of kernel threads: `/proc/PID/stack`, lists of them with thread headings,
//! counted leaves (`sort | uniq -c`), FreeBSD `procstat -kk`, tools of illumos and macOS.
//!
//! They carry no weight: they show where a thread is, not that it uses CPU there.

use crate::evidence::{Frame, KernelStack};
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static FRAME: Pattern = Pattern::new(
    r"^\s*(?:(\d+)\s+)?(?:\[[ \d.]+\]\s*)?(?:\[?<[0-9a-fx]+>\]?\s+)?(\?\s+)?([A-Za-z_.$][\w.$]*)\+(0x[0-9a-f]+)/(0x[0-9a-f]+)(?:\s+\[([\w-]+)[^\]]*\])?\s*$",
);
static THREAD: Pattern = Pattern::new(
    r"^(?:==+|#+|---+)?\s*(?:(?:PID|pid|TID|tid)[: ]*)?(?:(\S+)\s+(\d+)|(\d+)\s+\(?([^\s()]+)\)?)\s*(?:state=\S+)?:?\s*(?:==+|---+)?$",
);
static PROCSTAT: Pattern =
    Pattern::new(r"^\s*(\d+)\s+(\d{5,})\s+(\S+)\s+(\S.*?)\s{1,}(\S+\+0x[0-9a-f]+(?:\s+\S+)*)\s*$");

/// Whether a line is a frame of `/proc/PID/stack`, with or without a count in front.
pub(crate) fn is_frame(text: &str) -> bool {
    FRAME.is_match(text)
}

/// Whether a line names the thread of the next stack, with its state.
pub(crate) fn is_thread(text: &str) -> bool {
    text.starts_with("== ") && text.contains(" state=") && THREAD.is_match(text.trim())
}

/// The frame of such a line and the number of threads in front of it.
pub(crate) fn frame_of(text: &str) -> Option<(Frame, Option<u64>)> {
    let found = FRAME.captures(text)?;
    let count = found.get(1).and_then(|count| count.as_str().parse().ok());
    let module = found.get(6).map(|module| format!("[{}]", module.as_str()));
    let frame = frame::frame(&found[3], module.as_deref());
    let module = frame.module.or_else(|| Some("kernel".to_owned()));
    let frame = Frame { module, kernel: Some(true), ..frame };
    Some((frame, count))
}

/// Reads stacks; a counted leaf is a stack of one frame.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut thread = section.hint.path.as_deref().and_then(thread_of_name);
    let mut frames: Vec<Frame> = Vec::new();
    let mut first: Option<&Line<'_>> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || is_end(text) {
            close(&mut frames, &thread, first, reading);
            continue;
        }
        match frame_of(&line.text) {
            Some((frame, Some(count))) => {
                close(&mut frames, &thread, first, reading);
                push(None, count, vec![frame], line, reading);
            }
            Some((frame, None)) => {
                if frames.is_empty() {
                    first = Some(line);
                }
                if frames.len() < 256 {
                    frames.push(frame);
                }
            }
            None => {
                close(&mut frames, &thread, first, reading);
                let found = THREAD.captures(text);
                let name = found.as_ref().and_then(|found| found.get(1).or_else(|| found.get(4)));
                thread = name.map(|name| frame::thread(name.as_str()).0).or(thread);
                if found.is_none() {
                    reading.leave(line);
                }
            }
        }
    }
    close(&mut frames, &thread, first, reading);
}

/// Whether a line ends a stack of an older kernel.
fn is_end(text: &str) -> bool {
    text.ends_with("0xffffffffffffffff") && text.starts_with("[<")
}

/// Ends a stack that began at `first`, unless it has no frames.
pub(crate) fn close(
    frames: &mut Vec<Frame>,
    thread: &Option<String>,
    first: Option<&Line<'_>>,
    reading: &mut Reading<'_>,
) {
    let Some(line) = first.filter(|_| !frames.is_empty()) else { return };
    push(thread.clone(), 1, std::mem::take(frames), line, reading);
}

fn push(
    thread: Option<String>,
    count: u64,
    frames: Vec<Frame>,
    line: &Line<'_>,
    reading: &mut Reading<'_>,
) {
    let source = reading.at(line);
    reading.evidence.kernel_stacks.push(KernelStack { thread, count, frames, source });
}

/// `stack-nfsd.txt` names the thread if the text does not.
fn thread_of_name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let name = file.strip_prefix("stack-")?.split('.').next()?;
    (!name.is_empty() && name != "counts").then(|| name.to_owned())
}

/// Reads `procstat -kk`: `PID TID COMM TDNAME KSTACK`.
pub(crate) fn read_procstat(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("PID") || text.is_empty() {
            continue;
        }
        let Some(found) = PROCSTAT.captures(text) else {
            reading.leave(line);
            continue;
        };
        let name = match &found[4] {
            "-" => &found[3],
            name => name,
        };
        let frames: Vec<Frame> = found[5]
            .split_whitespace()
            .take(256)
            .map(|part| Frame { kernel: Some(true), ..frame::frame(part, None) })
            .collect();
        push(Some(frame::thread(name).0), 1, frames, line, reading);
    }
}
