//! `perf script`: one sample per paragraph with its stack below, leaf first; or one line per
//! sample.
//!
//! Equal stacks are counted together, so a long recording takes memory only for distinct stacks.

use std::collections::HashMap;

use ogive_profile::read::perf_script::{Frame as Written, Head, Line as Part, Script};

use crate::evidence::{Frame, Profile, Stack};
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Frames of one stack at most, counted from the leaf.
const MAX_FRAMES: usize = 256;

/// Whether a line begins a sample: it has a thread, a time and an event.
pub(crate) fn is_header(text: &str) -> bool {
    let Part::Head(head) = Script::default().line(text) else { return false };
    let is_word = head.event.contains(|c: char| c.is_ascii_alphabetic());
    is_word && head.time_ns > 0 && !head.name.is_empty() && (head.tid != -1 || head.name == ":-1")
}

/// Whether a line is a frame of a stack.
pub(crate) fn is_frame(text: &str) -> bool {
    text.starts_with([' ', '\t']) && !is_header(text) && written(text).is_some()
}

/// Whether a line is a frame with its object. No other format has such lines.
pub(crate) fn is_sure_frame(text: &str) -> bool {
    text.contains('(') && is_frame(text)
}

/// The frame in a line below the beginning of a sample.
fn written(text: &str) -> Option<Written<'_>> {
    let mut words = text.split_ascii_whitespace();
    let is_address = words.next().is_some_and(|word| (3..=16).contains(&word.len()));
    if !is_address || words.next().is_none() {
        return None;
    }
    match Script::in_sample().line(text) {
        Part::Frame(frame) => Some(frame),
        _ => None,
    }
}

/// Reads the samples.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut stacks: HashMap<(String, Vec<Frame>), (f64, u32)> = HashMap::new();
    let mut current: Option<(String, Vec<Frame>, u32)> = None;
    let mut samples = 0;
    let mut off_cpu = false;
    let mut script = Script::default();
    for line in section.lines {
        match script.line(&line.text) {
            Part::Head(head) => {
                close(&mut stacks, current.take());
                samples += 1;
                off_cpu |= head.event.starts_with("sched:") || head.event.starts_with("lock:");
                let frames = head.frame().iter().map(frame_of).collect();
                current = Some((thread(&head), frames, line.number));
            }
            Part::Frame(found) => match &mut current {
                Some((_, frames, _)) if frames.len() < MAX_FRAMES => frames.push(frame_of(&found)),
                Some(_) => {}
                None => reading.leave(line),
            },
            Part::End | Part::Comment | Part::Source | Part::Record | Part::Lost(_) => {}
            Part::Other => reading.leave(line),
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
    let (stacks, samples) = (stacks.collect(), Some(samples));
    let profile = Profile { stacks, samples, weighted: true, off_cpu, ..Profile::default() };
    reading.evidence.profiles.push(profile);
}

/// The name of a sample's thread, or its number if it has none, as perf prints it.
fn thread(head: &Head<'_>) -> String {
    if head.name.is_empty() { format!(":{}", head.tid) } else { frame::thread(head.name).0 }
}

fn frame_of(found: &Written<'_>) -> Frame {
    frame::frame(found.symbol, (!found.module.is_empty()).then_some(found.module))
}

fn close(
    stacks: &mut HashMap<(String, Vec<Frame>), (f64, u32)>,
    sample: Option<(String, Vec<Frame>, u32)>,
) {
    let Some((thread, mut frames, line)) = sample else { return };
    if frames.is_empty() {
        // A sample without a stack still counts for its thread.
        frames.push(Frame::default());
    }
    stacks.entry((thread, frames)).or_insert((0.0, line)).0 += 1.0;
}
