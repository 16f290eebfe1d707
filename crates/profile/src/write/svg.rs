//! A flame graph as SVG, drawn by `inferno`. With a baseline, differences are coloured: red grew,
//! blue shrank, after both were scaled to the same total.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use super::folded;
use super::html::{Page, unit_name};

/// Writes the picture.
pub(super) fn write(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let lines = folded::lines(page.view);
    let lines: Vec<String> = match page.baseline {
        None => lines.into_iter().map(|(stack, weight)| format!("{stack} {weight}")).collect(),
        Some(baseline) => differences(lines, folded::lines(baseline)),
    };
    let mut options = Options::default();
    options.title = page.title.to_owned();
    options.count_name = unit_name(page.view.profile().meta.unit).to_owned();
    options.min_width = 0.05;
    options.hash = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}

/// Lines of stack, weight before, weight now, with the former scaled to the total of the latter.
fn differences(now: Vec<(String, u64)>, before: Vec<(String, u64)>) -> Vec<String> {
    let total = |lines: &[(String, u64)]| lines.iter().map(|line| line.1 as f64).sum::<f64>();
    let scale = match total(&before) {
        0.0 => 1.0,
        before => total(&now) / before,
    };
    let mut both: std::collections::BTreeMap<String, (u64, u64)> = Default::default();
    for (stack, weight) in now {
        both.entry(stack).or_default().1 = weight;
    }
    for (stack, weight) in before {
        both.entry(stack).or_default().0 = (weight as f64 * scale).round() as u64;
    }
    both.into_iter().map(|(stack, (before, now))| format!("{stack} {before} {now}")).collect()
}
