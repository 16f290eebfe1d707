//! Folded stacks: `thread;root;...;leaf weight`, one line a stack, sorted.

use std::io::{self, Write};

use crate::model::{Profile, Rate, Sample, StackId, View, WeightUnit};

/// Writes the lines. Where each sample stands for the same time, the figure is their number, as in
/// what other tools write and read: nothing in the format says that it is a time.
pub(super) fn write(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 18, out);
    let meta = &view.profile().meta;
    let timed = meta.unit == WeightUnit::Nanoseconds && matches!(meta.rate, Rate::Hertz(_));
    let figure: fn(&Sample) -> u64 =
        if timed { |sample| u64::from(sample.count) } else { |sample| sample.weight };
    for line in counted(view, figure) {
        writeln!(out, "{} {}", line.0, line.1)?;
    }
    out.flush()
}

/// The stacks as text, and their weights, sorted by text.
pub(super) fn lines(view: &View<'_>) -> Vec<(String, u64)> {
    counted(view, |sample| sample.weight)
}

fn counted(view: &View<'_>, figure: fn(&Sample) -> u64) -> Vec<(String, u64)> {
    let profile = view.profile();
    let names: Vec<String> = profile.frames().map(|(_, frame)| clean(&frame.name())).collect();
    // By name of thread and stack, so that threads of one name are one.
    let mut weights: Vec<(&str, StackId, u64)> = view
        .samples()
        .map(|sample| (profile.thread(sample.thread).name, sample.stack, figure(sample)))
        .collect();
    weights.sort_unstable();
    let mut lines: Vec<(String, u64)> = Vec::new();
    for of_stack in weights.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (thread, stack, _) = of_stack[0];
        let weight = of_stack.iter().fold(0u64, |sum, (.., weight)| sum.saturating_add(*weight));
        lines.push((line(profile, &names, thread, stack), weight));
    }
    lines.sort_unstable();
    lines.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(later.1);
        }
        same
    });
    lines
}

fn line(profile: &Profile, names: &[String], thread: &str, stack: StackId) -> String {
    let mut frames: Vec<&str> = profile.stack(stack).map(|frame| &*names[frame.index()]).collect();
    let mut line = clean(if thread.is_empty() { "[unknown]" } else { thread });
    frames.reverse();
    for frame in frames {
        line.push(';');
        line.push_str(frame);
    }
    line
}

/// A name without what separates names and lines.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
