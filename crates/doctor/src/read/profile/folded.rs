//! Folded stacks: `thread;root;...;leaf WEIGHT`, one distinct stack a line.
//!
//! Whether the first part is a thread's name is not said. It is one unless it looks like the start
//! of a kernel or thread stack. `sym_[k]` marks and `module`sym` prefixes name the module.

use crate::evidence::{Frame, Profile, Stack};
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// The most stacks of one input.
const MAX_STACKS: usize = 2_000_000;

/// Frames that cannot be the name of a thread.
const NO_THREADS: [&str; 8] = [
    "ret_from_fork",
    "kthread",
    "entry_SYSCALL_64_after_hwframe",
    "_start",
    "start_thread",
    "unix`thread_start",
    "fork_exit",
    "[unknown]",
];

/// Whether a line is a folded stack of at least two parts.
pub(crate) fn is_row(text: &str) -> bool {
    let Some((stack, weight)) = text.trim().rsplit_once(' ') else { return false };
    stack.contains(';')
        && !stack.ends_with([';', ':', ','])
        && !weight.is_empty()
        && weight.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && weight.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && stack
            .split(';')
            .all(|part| part.len() < 512 && !part.starts_with(' ') && part.split(' ').count() < 8)
}

/// Reads the stacks.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut profile = Profile { weighted: false, ..Profile::default() };
    let mut total = 0.0;
    for line in section.lines {
        let text = line.text.trim();
        let parts = text.rsplit_once(' ').filter(|_| is_row(text));
        let Some((stack, weight)) =
            parts.and_then(|(stack, weight)| Some((stack, weight.parse::<f64>().ok()?)))
        else {
            reading.leave(line);
            continue;
        };
        if profile.stacks.len() == MAX_STACKS {
            break;
        }
        let mut parts: Vec<&str> = stack.split(';').collect();
        let first = parts[0];
        let named = !NO_THREADS.contains(&first)
            && !first.contains(['`', '+', '('])
            && !first.ends_with("_[k]");
        let thread = (named && parts.len() > 1).then(|| {
            parts.remove(0);
            frame::thread(comm(first)).0
        });
        let frames: Vec<Frame> = parts
            .iter()
            .rev()
            .filter(|part| **part != "-" && **part != "--")
            .map(|part| folded_frame(part))
            .collect();
        if frames.is_empty() {
            continue;
        }
        profile.weighted |= weight != 1.0;
        total += weight;
        let source = reading.at(line);
        profile.stacks.push(Stack { thread, process: None, frames, weight, source });
    }
    if profile.stacks.is_empty() {
        return;
    }
    profile.samples = profile.weighted.then_some(total as u64);
    reading.evidence.profiles.push(profile);
}

/// `comm-PID/TID` as `stackcollapse-perf.pl --pid --tid` writes it.
fn comm(text: &str) -> &str {
    match text.rsplit_once('-') {
        Some((name, pid))
            if !name.is_empty()
                && pid.len() > 1
                && pid
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'/' || byte == b'?') =>
        {
            name
        }
        _ => text,
    }
}

fn folded_frame(part: &str) -> Frame {
    if let Some((module, name)) = part.split_once('`') {
        return frame::frame(name, Some(module));
    }
    let mut found = frame::frame(part, None);
    if part.ends_with("_[k]") {
        found.kernel = Some(true);
    }
    found
}
