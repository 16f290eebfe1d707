//! The whole answer for a terminal.
//!
//! The first line is the verdict and nothing else, so that `ogive doctor | head -1` is an answer.

use std::fmt::Write as _;

use super::outline::{machine, sections};
use super::style::{Stress, Style, capital, printable};
use crate::diagnose::{Diagnosis, Finding, Word};
use crate::evidence::Source;

/// A cause below this is too far to be named.
const NEAR: f64 = 0.30;
/// The most unread lines that are shown.
const SHOWN_NOT_UNDERSTOOD: usize = 10;
/// The most inputs that are named.
const SHOWN_INPUTS: usize = 12;
/// The most places of one fact that are named.
const SHOWN_SOURCES: usize = 3;

/// Writes the answer.
pub fn text(diagnosis: &Diagnosis, style: Style) -> String {
    let stress = Stress::of(diagnosis.verdict.kind);
    let mut out = style.stress(&printable(&super::headline(diagnosis)), stress) + "\n\n";
    for (label, words, sources) in machine(diagnosis) {
        let label = format!("{:<12}", capital(label));
        out.push_str(&style.wrap(&label, &format!("{words}{}", cite(sources))));
    }
    out.push('\n');
    for running in &diagnosis.running {
        let line = format!("{}{}", running.text, cite(std::slice::from_ref(&running.source)));
        out.push_str(&style.wrap("Running     ", &line));
    }
    if !diagnosis.running.is_empty() {
        out.push('\n');
    }
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        out.push_str(&finding_text(at + 1, finding, style));
    }
    let near = diagnosis.considered.iter().filter(|(_, confidence)| *confidence >= NEAR).take(5);
    let near: Vec<String> =
        near.map(|(id, confidence)| format!("{id} {:.0}%", confidence * 100.0)).collect();
    if diagnosis.findings.is_empty() && !near.is_empty() {
        out.push_str(&style.wrap("Considered: ", &near.join(", ")));
    }
    if let Some(step) = &diagnosis.verdict.step {
        out.push_str(&style.wrap("Next, run:  ", &step.run));
        for outcome in &step.outcomes {
            out.push_str(&style.wrap("            - ", outcome));
        }
        out.push('\n');
    }
    out.push_str(&reading(diagnosis, style));
    out
}

fn finding_text(number: usize, finding: &Finding, style: Style) -> String {
    let share = super::share(finding).map_or_else(
        || "its share of the CPU is unknown".to_owned(),
        |share| format!("explains {share}"),
    );
    let stress = if finding.word == Word::Certain { Stress::Bold } else { Stress::Dim };
    let sure = style.stress(&super::sure(finding), stress);
    let title = style.stress(&finding.title, Stress::Bold);
    let mut out = format!("{number}. {title} [{}]: {sure}, {share}\n", finding.id);
    if number > 1 {
        out.push_str(&style.wrap("   ", &finding.verdict));
    }
    for section in sections(finding) {
        for (at, line) in section.lines.iter().enumerate() {
            let label = if at == 0 { section.title } else { "" };
            let of =
                if line.cause.is_empty() { String::new() } else { format!("{}: ", line.cause) };
            let run = line.run.as_ref().map(|run| format!("; run: {run}")).unwrap_or_default();
            let words = format!("{of}{}{}{run}", line.words, cite(&line.sources));
            out.push_str(&style.wrap(&format!("   {label:<16}{} ", section.mark), &words));
        }
    }
    out.push('\n');
    out
}

fn cite(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    format!(" [{}]", some(sources.iter().map(ToString::to_string), SHOWN_SOURCES))
}

/// The first names, and the number of the others.
fn some(names: impl ExactSizeIterator<Item = String>, shown: usize) -> String {
    let more = names.len().saturating_sub(shown);
    let named = names.take(shown).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn reading(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    let read = diagnosis.inputs.iter().filter(|input| !input.formats.is_empty());
    let read: Vec<String> =
        read.map(|input| format!("{} ({})", input.name, input.formats.join(", "))).collect();
    if !read.is_empty() {
        out.push_str(&style.wrap("Read: ", &some(read.into_iter(), SHOWN_INPUTS)));
    }
    for input in &diagnosis.inputs {
        if let Some(trouble) = &input.trouble {
            out.push_str(&style.wrap("Trouble: ", &format!("{}: {trouble}", input.name)));
        }
    }
    if !diagnosis.not_understood.is_empty() {
        let unread: usize = diagnosis.inputs.iter().map(|input| input.unread).sum();
        let _ = writeln!(out, "Not read ({unread} lines):");
        for line in diagnosis.not_understood.iter().take(SHOWN_NOT_UNDERSTOOD) {
            let shown: String = line.value.chars().take(style.width.max(40) - 20).collect();
            let _ = writeln!(out, "  {}: {}", line.source, printable(&shown));
        }
    }
    for fault in &diagnosis.rule_faults {
        out.push_str(&style.wrap("Rule fault: ", fault));
    }
    out
}
