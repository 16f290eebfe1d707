//! The whole answer for a terminal.
//!
//! The first line is the verdict and nothing else, so that `ogive doctor | head -1` is an answer.

use std::fmt::Write as _;

use super::style::{Stress, Style, capital, printable};
use crate::diagnose::{Diagnosis, EvidenceLine, Finding, VerdictKind, Word};
use crate::evidence::Source;
use crate::expression::Format;

/// A cause below this is not near enough to be named.
const NEAR: f64 = 0.30;
/// How many lines that nobody understood are shown.
const SHOWN_NOT_UNDERSTOOD: usize = 10;

/// Writes the answer.
pub fn text(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    let stress = match diagnosis.verdict.kind {
        VerdictKind::Cause => Stress::Bad,
        VerdictKind::Insufficient | VerdictKind::Open => Stress::Bold,
        _ => Stress::Good,
    };
    let _ = writeln!(out, "{}", style.stress(&printable(&super::headline(diagnosis)), stress));
    out.push('\n');
    out.push_str(&overview(diagnosis, style));
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
    if diagnosis.findings.is_empty() {
        let nearest: Vec<String> = diagnosis
            .considered
            .iter()
            .filter(|(_, confidence)| *confidence >= NEAR)
            .take(5)
            .map(|(id, confidence)| format!("{id} {:.0}%", confidence * 100.0))
            .collect();
        if !nearest.is_empty() {
            out.push_str(&style.wrap("Considered: ", &nearest.join(", ")));
        }
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

fn overview(diagnosis: &Diagnosis, style: Style) -> String {
    let overview = &diagnosis.overview;
    let mut out = String::new();
    for (label, sentence, sources) in super::three(&diagnosis.answers) {
        let label = format!("{:<12}", capital(label));
        out.push_str(&style.wrap(&label, &format!("{sentence}{}", cite(sources))));
    }
    if let Some(place) = &diagnosis.verdict.place {
        out.push_str(&style.wrap("Where       ", &place.sentence));
    }
    let threads: Vec<String> = overview
        .consumers
        .iter()
        .filter(|user| user.threads.len() > 1)
        .take(3)
        .map(|user| {
            let threads = user.threads.iter().filter(|(_, share)| *share >= 1.0).take(3);
            let threads: Vec<String> =
                threads.map(|(name, share)| format!("{name} {share:.0}%")).collect();
            format!("{}: {}", user.name, threads.join(", "))
        })
        .collect();
    if !threads.is_empty() {
        out.push_str(&style.wrap("Threads     ", &threads.join("; ")));
    }
    if let Some(samples) = overview.samples.filter(|_| !overview.symbols.is_empty()) {
        let symbols: Vec<String> = overview
            .symbols
            .iter()
            .take(5)
            .map(|(symbol, module, share)| format!("{symbol} [{module}] {share:.0}%"))
            .collect();
        out.push_str(&style.wrap(
            "Hottest     ",
            &format!("{} (of {samples:.0} busy samples)", symbols.join(", ")),
        ));
    }
    let versions: Vec<String> = [("ZFS", &overview.zfs_version), ("kernel", &overview.kernel)]
        .into_iter()
        .filter_map(|(name, version)| version.as_ref().map(|version| format!("{name} {version}")))
        .collect();
    if !versions.is_empty() {
        out.push_str(&style.wrap("Versions    ", &versions.join(", ")));
    }
    if let Some(percent) = overview.looking_percent {
        let line = format!("looking took {percent:.1}% of one CPU, which is left out above");
        out.push_str(&style.wrap("Cost        ", &line));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn finding_text(number: usize, finding: &Finding, style: Style) -> String {
    let mut out = String::new();
    let share = finding.share_percent.map_or_else(
        || "its share of the CPU cannot be told from this".to_owned(),
        |share| format!("explains {} of the busy CPU", Format::Percent.write(share)),
    );
    let hint = if finding.is_hint { ", by words that no tool printed" } else { "" };
    let sure = format!("{} ({:.0}%){hint}", finding.word, finding.confidence * 100.0);
    let sure =
        style.stress(&sure, if finding.word == Word::Certain { Stress::Bold } else { Stress::Dim });
    let _ = writeln!(
        out,
        "{number}. {} [{}]: {sure}, {share}",
        style.stress(&finding.title, Stress::Bold),
        finding.id
    );
    if number > 1 {
        out.push_str(&style.wrap("   ", &finding.verdict));
    }
    section(
        &mut out,
        style,
        "evidence",
        finding.evidence.iter().map(|line| evidence_text(line, '+')),
    );
    section(
        &mut out,
        style,
        "against it",
        finding.against.iter().map(|line| evidence_text(line, '-')),
    );
    section(
        &mut out,
        style,
        "ruled out",
        finding
            .ruled_out
            .iter()
            .map(|out| format!("x {}: {}{}", out.cause, out.because, cite(&out.sources))),
    );
    section(
        &mut out,
        style,
        "not ruled out",
        finding.open.iter().map(|open| {
            let ask = open.ask.as_ref().map(|ask| format!("; run: {ask}")).unwrap_or_default();
            format!("? {}: {}{ask}", open.cause, open.by)
        }),
    );
    versions(&mut out, finding, style);
    section(&mut out, style, "now", finding.remedy.now.iter().map(|line| format!("> {line}")));
    section(
        &mut out,
        style,
        "lasting",
        finding.remedy.lasting.iter().map(|line| format!("> {line}")),
    );
    section(
        &mut out,
        style,
        "it worked if",
        finding.remedy.verify.iter().map(|line| format!("> {line}")),
    );
    section(&mut out, style, "do not", finding.remedy.dont.iter().map(|line| format!("! {line}")));
    if finding.word != Word::Certain && !finding.ask.is_empty() {
        section(&mut out, style, "would settle it", std::iter::once(format!("$ {}", finding.ask)));
    }
    out.push('\n');
    out
}

fn section(out: &mut String, style: Style, title: &str, lines: impl Iterator<Item = String>) {
    for (at, line) in lines.enumerate() {
        let label = if at == 0 { format!("   {title:<16}") } else { " ".repeat(19) };
        let (mark, words) = line.split_once(' ').unwrap_or(("", line.as_str()));
        out.push_str(&style.wrap(&format!("{label}{mark} "), words));
    }
}

fn evidence_text(line: &EvidenceLine, mark: char) -> String {
    format!("{mark} {}{}", line.text, cite(&line.sources))
}

fn cite(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = sources.iter().take(3).map(ToString::to_string).collect();
    let more = sources.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(" [{}{more}]", shown.join(", "))
}

fn versions(out: &mut String, finding: &Finding, style: Style) {
    let versions = &finding.versions;
    if versions.fixed.is_empty() && versions.affected.is_none() {
        return;
    }
    let mut line = versions
        .affected
        .as_ref()
        .map(|affected| format!("affected: {affected}. "))
        .unwrap_or_default();
    if !versions.fixed.is_empty() {
        let _ = write!(line, "First releases with the fix: {}. ", versions.fixed.join(" and "));
        let installed = versions.installed.as_deref().unwrap_or("?");
        line.push_str(&match versions.has_fix {
            Some(true) => format!("Installed {installed} has it."),
            Some(false) => format!("Installed {installed} does not have it."),
            None => "Which one is installed is not known (zfs version).".to_owned(),
        });
    }
    section(out, style, "versions", std::iter::once(format!("= {line}")));
}

fn reading(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    let inputs: Vec<String> = diagnosis
        .inputs
        .iter()
        .filter(|input| !input.formats.is_empty())
        .map(|input| format!("{} ({})", input.name, input.formats.join(", ")))
        .collect();
    if !inputs.is_empty() {
        let shown = inputs.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
        let more = inputs.len().saturating_sub(12);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        out.push_str(&style.wrap("Read: ", &format!("{shown}{more}")));
    }
    for input in diagnosis.inputs.iter().filter(|input| input.trouble.is_some()) {
        out.push_str(&style.wrap(
            "Trouble: ",
            &format!("{}: {}", input.name, input.trouble.as_deref().unwrap_or("")),
        ));
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
