//! Stacks that BPF tools count: bcc's `profile` and `offcputime`, and bpftrace maps keyed by stack.
//!
//! Frames stand leaf first, followed by the count. Time off CPU is time waited, not CPU time, and
//! is kept apart.

use crate::evidence::{Frame, Profile, Stack};
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// A stack with more frames than this is damaged.
const MAX_FRAMES: usize = 512;

static OPENS: Pattern = Pattern::new(r"^@(\w*)\[(?:([^\]]*?),?)?$");
static CLOSES: Pattern = Pattern::new(r"^(?:,\s*(.*?))?\]:\s*(\d+)$");
static THREAD: Pattern = Pattern::new(r"^-\s+(\S.*?) \((\d+)\)$");

/// Whether a line begins the output of such a tool.
pub(crate) fn is_beginning(text: &str) -> bool {
    let text = text.trim();
    OPENS.is_match(text)
        || text.starts_with("Sampling at ") && text.contains(" Hertz")
        || text.starts_with("Tracing off-CPU time")
        || text.starts_with("Attaching ") && text.trim_end_matches('.').ends_with("probe")
        || text.starts_with("Attaching ") && text.trim_end_matches('.').ends_with("probes")
}

/// Whether a line certainly continues such output: a frame or the end of a stack.
pub(crate) fn is_of(text: &str) -> bool {
    let bare = text.trim();
    CLOSES.is_match(bare)
        || THREAD.is_match(bare)
        || text.starts_with([' ', '\t']) && frame_text(bare).is_some()
}

/// A line that can be a frame: one word, perhaps `b'...'`, with an offset in decimal or
/// hexadecimal.
fn frame_text(text: &str) -> Option<&str> {
    let text = text.strip_prefix("b'").and_then(|text| text.strip_suffix('\'')).unwrap_or(text);
    let named = text.starts_with(|c: char| c.is_alphabetic() || "_[0".contains(c));
    let single = !text.contains(char::is_whitespace) || text.contains("::") || text.ends_with(']');
    (named && single && text.len() < 512 && !text.ends_with([':', '.'])).then_some(text)
}

fn frame_of(text: &str) -> Frame {
    let bare = match text.rsplit_once('+') {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => text,
    };
    frame::frame(bare, None)
}

/// The thread among the other parts of a key: a word that is not a number.
fn thread_in(keys: &str) -> Option<String> {
    let mut parts = keys.split(',').map(str::trim);
    let name = parts.find(|part| !part.is_empty() && number::plain(part).is_none())?;
    Some(frame::thread(name).0)
}

/// The stack that is being read.
#[derive(Default)]
struct Open {
    frames: Vec<Frame>,
    thread: Option<String>,
    in_map: bool,
}

/// Reads the output of both.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut profile = Profile { weighted: true, ..Profile::default() };
    let mut open = Open::default();
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("Tracing off-CPU") {
            profile.off_cpu = true;
        } else if let Some(found) = OPENS.captures(text) {
            let map = found[1].to_lowercase();
            profile.off_cpu |= ["off", "wait", "block"].iter().any(|mark| map.contains(mark));
            let thread = found.get(2).and_then(|keys| thread_in(keys.as_str()));
            open = Open { thread, in_map: true, ..Open::default() };
        } else if let Some(found) = CLOSES.captures(text).filter(|_| open.in_map) {
            let thread = found.get(1).and_then(|keys| thread_in(keys.as_str()));
            open.thread = open.thread.take().or(thread);
            end(&mut open, number::plain(&found[2]), line, &mut profile, reading);
        } else if let Some(found) = THREAD.captures(text) {
            open.thread = Some(frame::thread(&found[1]).0);
        } else if open.thread.is_some() && !open.in_map && number::plain(text).is_some() {
            end(&mut open, number::plain(text), line, &mut profile, reading);
        } else if let Some(text) = frame_text(text).filter(|_| line.text.starts_with([' ', '\t'])) {
            if open.frames.len() < MAX_FRAMES {
                open.frames.push(frame_of(text));
            }
        } else if !is_beginning(text) && !matches!(text, "^C" | "," | "--") {
            reading.leave(line);
        }
    }
    if !profile.stacks.is_empty() {
        let samples: f64 = profile.stacks.iter().map(|stack| stack.weight).sum();
        profile.samples = (!profile.off_cpu).then_some(samples as u64);
        reading.evidence.profiles.push(profile);
    }
}

fn end(
    open: &mut Open,
    weight: Option<f64>,
    line: &Line<'_>,
    profile: &mut Profile,
    reading: &Reading<'_>,
) {
    let Open { frames, thread, .. } = std::mem::take(open);
    if let Some(weight) = weight.filter(|weight| *weight > 0.0 && !frames.is_empty()) {
        let source = reading.at(line);
        profile.stacks.push(Stack { thread, process: None, frames, weight, source });
    }
}
