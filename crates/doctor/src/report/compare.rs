//! A comparison of two hosts as a table and for programs. The schema is described in
//! `docs/compare.md`.

use serde_json::Value;

use super::json::{all, object, source};
use super::style::{Stress, Style, printable};
use crate::compare::{Comparison, Difference, Outcome};

/// Version of the schema.
pub const COMPARISON_VERSION: u32 = 1;

/// The most rows unless all are requested.
const ROWS: usize = 18;
/// The most columns of a figure before it is cut.
const CELL: usize = 36;

/// Writes the comparison as a table; `all` prints every row whole.
pub fn comparison(comparison: &Comparison, all: bool, style: Style) -> String {
    let stress = match comparison.outcome {
        Outcome::Cause => Stress::Bad,
        Outcome::Place | Outcome::Nothing | Outcome::Insufficient => Stress::Bold,
        Outcome::MoreWork | Outcome::Program => Stress::Good,
    };
    let mut out = style.stress(&printable(&comparison.sentence), stress);
    out.push_str("\n\n");
    let shown = if all { comparison.differences.len() } else { ROWS };
    let rows: Vec<[String; 5]> = comparison
        .differences
        .iter()
        .take(shown)
        .map(|one| {
            let cut = |text: &str| if all { printable(text) } else { cut(text) };
            [
                one.kind.name().to_owned(),
                cut(&one.name),
                cut(one.healthy.as_deref().unwrap_or("-")),
                cut(one.sick.as_deref().unwrap_or("-")),
                explains(one),
            ]
        })
        .collect();
    if rows.is_empty() {
        out.push_str("No compared value differs.\n");
        return out;
    }
    let [healthy, sick] = &comparison.names;
    let head = ["", "", healthy, sick, "explains"].map(cut);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3].map(width);
    for row in std::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        line.push_str(&row[4]);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let left = comparison.differences.len().saturating_sub(shown);
    if left > 0 {
        let note = format!("{left} more that explain less: --long");
        out.push('\n');
        out.push_str(&style.stress(&note, Stress::Dim));
        out.push('\n');
    }
    out
}

/// The comparison as JSON.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let [healthy, sick] = &comparison.names;
    object!(comparison => sentence;
    "version": COMPARISON_VERSION,
    "outcome": comparison.outcome.name(),
    "healthy": {"name": healthy, "busy_cpus": comparison.busy_cpus[0]},
    "sick": {"name": sick, "busy_cpus": comparison.busy_cpus[1]},
    "differences": all(&comparison.differences, |one| {
        object!(one => name, healthy, sick, factor, explains_percent, cited_by;
            "kind": one.kind.name(), "sources": all(&one.sources, source))
    }))
}

fn explains(one: &Difference) -> String {
    let mut parts = Vec::new();
    if let Some(percent) = one.explains_percent {
        parts.push(format!("{percent:.0}% of the additional CPU"));
    }
    if let Some(cause) = &one.cited_by {
        parts.push(format!("evidence of {cause}"));
    } else if let Some(factor) = one.factor.filter(|_| parts.is_empty()) {
        parts.push(if factor >= 10.0 {
            format!("{factor:.0} times")
        } else {
            format!("{factor:.1} times")
        });
    }
    parts.join(", ")
}

/// A cell, cut if it is too wide.
fn cut(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= CELL {
        return text;
    }
    text.chars().take(CELL - 3).chain("...".chars()).collect()
}
