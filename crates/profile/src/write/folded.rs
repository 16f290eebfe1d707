//! Folded stacks: `thread;root;...;leaf weight`, one line per stack, sorted.

use std::io::{self, Write};

use super::named_stacks::NamedStacks;
use crate::model::{Rate, Sample, View, WeightUnit};

/// Writes the lines. If each sample stands for the same time, the figure is the number of samples,
/// as other tools write and read it: the format cannot say that it is a time.
pub(super) fn write(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 18, out);
    let meta = &view.profile().meta;
    let timed = meta.unit == WeightUnit::Nanoseconds && matches!(meta.rate, Rate::Hertz(_));
    let figure: fn(&Sample) -> u64 =
        if timed { |sample| u64::from(sample.count) } else { |sample| sample.weight };
    let mut stacks = NamedStacks::new();
    stacks.add(view, 0, figure);
    stacks.sort();
    let (mut path, mut text) = (Vec::new(), String::new());
    for line in stacks.lines() {
        text.clear();
        stacks.text(line, &mut path, &mut text);
        writeln!(out, "{text} {}", line.weights[0])?;
    }
    out.flush()
}
