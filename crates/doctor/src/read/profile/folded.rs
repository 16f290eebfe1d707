//! Folded stacks: `thread;root;...;leaf WEIGHT`, one distinct stack per line. `ogive_profile`
//! parses the lines.

use ogive_profile::Mode;
use ogive_profile::read::folded::{self, LineFrame};

use crate::evidence::{Frame, Profile, Stack};
use crate::read::text::frame;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Stacks of one input at most.
const MAX_STACKS: usize = 2_000_000;

/// Whether a line is a folded stack of at least two parts.
pub(crate) fn is_row(text: &str) -> bool {
    let Some((stack, weight)) = text.trim().rsplit_once(' ') else { return false };
    stack.contains(';')
        && !stack.ends_with([';', ':', ','])
        && weight.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && weight.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && stack
            .split(';')
            .all(|part| part.len() < 512 && !part.starts_with(' ') && part.split(' ').count() < 8)
}

/// Reads the stacks.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut profile = Profile::default();
    let mut total = 0.0;
    for line in section.lines.iter().take(MAX_STACKS) {
        let Some(found) = folded::line(&line.text).filter(|_| is_row(&line.text)) else {
            reading.leave(line);
            continue;
        };
        let thread = found.thread.map(|thread| frame::thread(thread.name).0);
        let frames: Vec<Frame> = found.frames.iter().rev().map(frame_of).collect();
        if frames.is_empty() {
            continue;
        }
        let weight = found.weight;
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

fn frame_of(found: &LineFrame<'_>) -> Frame {
    let module = (!found.module.is_empty()).then_some(found.module);
    let mut named = frame::frame(found.symbol, module);
    if found.mode == Mode::Kernel {
        named.kernel = Some(true);
    }
    named
}
