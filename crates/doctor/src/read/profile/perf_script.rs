//! `perf script`: one sample a paragraph, its stack below, leaf first; or one line a sample.
//!
//! Equal stacks are counted together, so that a long recording costs memory by its distinct stacks.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{Frame, Profile, Stack};
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Frames of one stack that are kept, from the leaf.
const MAX_FRAMES: usize = 256;

static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^(\S.*?)\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[\d+\]\s+)?(?:[A-Za-z.]{5}\s+)?\d+\.\d+:\s*(?:(\d+)\s+)?([\w:.\-/,=]*[A-Za-z][\w:.\-/,=]*?):?(?:\s+(.*))?$";
    Regex::new(pattern).expect("a constant pattern")
});
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*([0-9a-f]{3,16})\s+(.+?)(?:\s+\(([^()]*(?:\([^()]*\))?[^()]*)\))?$")
        .expect("a constant pattern")
});

/// Whether a line begins a sample.
pub(crate) fn is_header(text: &str) -> bool {
    HEADER.is_match(text)
}

/// Whether a line is a frame of a stack.
pub(crate) fn is_frame(text: &str) -> bool {
    text.starts_with([' ', '\t']) && FRAME.is_match(text)
}

/// Whether a line is a frame with its object, which no other format has.
pub(crate) fn is_sure_frame(text: &str) -> bool {
    text.contains('(') && is_frame(text)
}

/// Reads the samples.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut stacks: HashMap<(String, Vec<Frame>), (f64, u32)> = HashMap::new();
    let mut current: Option<(String, Vec<Frame>, u32)> = None;
    let mut samples = 0;
    let mut off_cpu = false;
    for line in section.lines {
        let text = &*line.text;
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        if !is_frame(text)
            && let Some(header) = HEADER.captures(text.trim_start())
        {
            close(&mut stacks, current.take());
            samples += 1;
            off_cpu |= header[5].starts_with("sched:") || header[5].starts_with("lock:");
            let alone = header.get(6).and_then(|rest| FRAME.captures(rest.as_str()));
            let frames = alone.map(|found| frame_of(&found)).into_iter().collect();
            current = Some((frame::thread(&header[1]).0, frames, line.number));
            continue;
        }
        match (FRAME.captures(text), &mut current) {
            (Some(found), Some((_, frames, _))) => {
                if frames.len() < MAX_FRAMES {
                    frames.push(frame_of(&found));
                }
            }
            _ => reading.leave(line),
        }
    }
    close(&mut stacks, current.take());
    if stacks.is_empty() {
        return;
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by_key(|(_, (_, line))| *line);
    let stacks = stacks.into_iter().map(|((thread, frames), (weight, line))| Stack {
        thread: Some(thread),
        process: None,
        frames,
        weight,
        source: reading.at_number(line),
    });
    let profile = Profile {
        stacks: stacks.collect(),
        rows: Vec::new(),
        samples: Some(samples),
        weighted: true,
        off_cpu,
    };
    reading.evidence.profiles.push(profile);
}

fn frame_of(found: &regex::Captures<'_>) -> Frame {
    frame::frame(&found[2], found.get(3).map(|object| object.as_str()))
}

fn close(
    stacks: &mut HashMap<(String, Vec<Frame>), (f64, u32)>,
    sample: Option<(String, Vec<Frame>, u32)>,
) {
    let Some((thread, mut frames, line)) = sample else { return };
    if frames.is_empty() {
        // A sample without a stack still is CPU of its thread.
        frames.push(Frame::default());
    }
    stacks.entry((thread, frames)).or_insert((0.0, line)).0 += 1.0;
}
