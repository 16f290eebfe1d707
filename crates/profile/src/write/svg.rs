//! A flame graph as SVG, drawn by `inferno`. With a baseline, both are scaled to the same total,
//! and colours show the difference: red grew, blue shrank.
//!
//! Lines too narrow to be drawn are joined first, because they are most of a recording's stacks.

use std::fmt::Write as _;
use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use super::html::{Page, unit_name};
use super::named_stacks::{Line, NamedStacks};

/// The smallest width that is drawn, in percent of the whole.
const MIN_WIDTH_PERCENT: f64 = 0.05;

/// Writes the picture.
pub(super) fn write(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let mut stacks = NamedStacks::new();
    for (of, view) in [Some(page.view), page.baseline].into_iter().flatten().enumerate() {
        stacks.add(view, of, |sample| sample.weight);
    }
    stacks.sort();
    let total = |of: usize| stacks.lines().iter().map(|line| line.weights[of] as f64).sum::<f64>();
    let mut path = Vec::new();
    let mut with_text = |line: &Line, figures: std::fmt::Arguments<'_>| {
        let mut text = String::new();
        stacks.text(line, &mut path, &mut text);
        let _ = text.write_fmt(figures);
        text
    };
    let lines: Vec<String> = if page.baseline.is_none() {
        // The same formula as in the drawing library, so that the same boxes are too narrow.
        let least = MIN_WIDTH_PERCENT / (100.0 / total(0));
        let joined = stacks.joined(least);
        joined.iter().map(|line| with_text(line, format_args!(" {}", line.weights[0]))).collect()
    } else {
        // The weight before, scaled to the total of the weight now, and the weight now.
        let scale = match total(1) {
            0.0 => 1.0,
            before => total(0) / before,
        };
        let line = |line: &Line| {
            let before = (line.weights[1] as f64 * scale).round() as u64;
            with_text(line, format_args!(" {before} {}", line.weights[0]))
        };
        stacks.lines().iter().map(line).collect()
    };
    let mut options = Options::default();
    options.title = page.title.to_owned();
    options.count_name = unit_name(page.view.profile().meta.unit).to_owned();
    options.min_width = MIN_WIDTH_PERCENT;
    options.hash = true;
    options.no_sort = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}
