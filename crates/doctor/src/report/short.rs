//! The short answer: at most [`SHORT_LINES`] lines, the first for an operator on call at night.
//!
//! It consists of blocks of whole statements. If they are too long for the screen, the least
//! important are dropped, never half a statement. The last line shows where to find the rest.

use super::outline::hottest;
use super::reading::reading;
use super::style::{Stress, Style, printable};
use crate::diagnose::{Diagnosis, EvidenceLine, Finding, Word};

/// The most lines of the short answer.
pub const SHORT_LINES: usize = 25;

/// Columns of the labels.
const LABEL: usize = 12;
/// A further finding below this confidence gets no line.
const WORTH_A_LINE: f64 = crate::diagnose::POSSIBLE;

/// One statement: its label, its rank and its lines.
struct Block {
    label: &'static str,
    /// A larger one is left out earlier.
    spare: u8,
    words: String,
}

/// Writes the short answer.
pub fn short(diagnosis: &Diagnosis, style: Style) -> String {
    let stress = Stress::of(diagnosis.verdict.kind);
    let mut blocks = unread(diagnosis);
    blocks.extend(machine(diagnosis));
    blocks.extend(diagnosis.running.iter().map(|running| Block {
        label: "running",
        spare: 2,
        words: format!("{} [{}]", running.text, running.source),
    }));
    if let Some(first) = diagnosis.findings.first() {
        let is_named = diagnosis.verdict.names.as_ref() == Some(&first.id);
        if first.word == Word::Possible && !is_named {
            blocks.push(Block { label: "possible", spare: 0, words: first.title.clone() });
        }
        blocks.extend(of_finding(first));
    }
    let others = diagnosis.findings.iter().skip(1).filter(|one| one.confidence >= WORTH_A_LINE);
    blocks.extend(others.take(3).map(|other| Block {
        label: "also",
        spare: 6,
        words: format!("{}: {} [{}]", other.word, other.title, other.id),
    }));
    if let Some(step) = &diagnosis.verdict.step {
        blocks.push(Block { label: "next, run", spare: 0, words: step.run.clone() });
        let meaning = step.outcomes.iter().map(|outcome| format!("- {outcome}"));
        blocks.extend(meaning.map(|words| Block { label: "it means", spare: 4, words }));
    }
    // The first line is one line, so that `head -1` is an answer; a terminal breaks it.
    let head = printable(&headline(diagnosis));
    let foot = style.wrap("", &rest(diagnosis));
    let body = fitted(&blocks, style, &style.wrap("", &head), &foot);
    let mut out = style.stress(&head, stress);
    out.push_str("\n\n");
    out.push_str(&body);
    out.push('\n');
    out.push_str(&style.stress(foot.trim_end(), Stress::Dim));
    out.push('\n');
    out
}

/// The first line: the problem, or the innocent, in plain words.
pub(crate) fn headline(diagnosis: &Diagnosis) -> String {
    let verdict = &diagnosis.verdict;
    // A name stays as the system writes it, also as the first word.
    let sentence = verdict.sentence.trim();
    let end = if sentence.ends_with(['.', ';']) { "" } else { "." };
    format!("{}{sentence}{end}", verdict.label)
}

/// The inputs that were not read: the answer uses only the rest. If nothing could be read, the
/// reason instead of an answer.
fn unread(diagnosis: &Diagnosis) -> Vec<Block> {
    if let Some(input) = diagnosis.inputs.iter().find(|input| input.in_part) {
        let why = input.trouble.as_deref().unwrap_or("it ends early");
        let words = format!("{}: {why}; this answer uses only the part that was read", input.name);
        return vec![Block { label: "read in part", spare: 0, words }];
    }
    if diagnosis.inputs.iter().any(|input| !input.formats.is_empty() || input.facts > 0) {
        return Vec::new();
    }
    let troubled = diagnosis.inputs.iter().filter_map(|input| {
        let why = input.trouble.as_ref()?;
        Some(Block { label: "not read", spare: 1, words: format!("{}: {why}", input.name) })
    });
    troubled.take(3).collect()
}

/// The first three answers, and the functions with most samples.
fn machine(diagnosis: &Diagnosis) -> Vec<Block> {
    let answers = super::three(&diagnosis.answers).into_iter();
    let answers = answers.map(|(label, sentence, sources)| {
        let from = sources.first().map(|source| format!(" [{source}]")).unwrap_or_default();
        Block { label, spare: 0, words: sentence + &from }
    });
    let mut blocks: Vec<Block> = answers.collect();
    if let Some(place) = &diagnosis.verdict.place {
        blocks.push(Block { label: "where", spare: 3, words: place.sentence.clone() });
    }
    let hottest = hottest(&diagnosis.overview, 3);
    blocks.extend(hottest.map(|words| Block { label: "hottest", spare: 7, words }));
    blocks
}

fn of_finding(finding: &Finding) -> Vec<Block> {
    let share = super::share(finding).map(|share| format!("; explains {share}"));
    let share = share.unwrap_or_default();
    let sure = format!("{}{share}", super::sure(finding));
    let mut blocks = vec![Block { label: "how sure", spare: 0, words: sure }];
    for (line, spare) in finding.evidence.iter().zip([0, 3, 5, 8]) {
        blocks.push(Block { label: "because", spare, words: proof(line) });
    }
    for line in finding.against.iter().take(1) {
        blocks.push(Block { label: "but", spare: 4, words: proof(line) });
    }
    let remedy = &finding.remedy;
    let parts =
        [("now", &remedy.now, 1), ("lasting", &remedy.lasting, 2), ("do not", &remedy.dont, 4)];
    for (label, lines, spare) in parts {
        blocks.extend(lines.iter().map(|line| Block { label, spare, words: line.clone() }));
    }
    let versions = &finding.versions;
    if let (Some(false), Some(installed)) = (versions.has_fix, &versions.installed) {
        let fixed = versions.fixed.join(" and ");
        let words = format!("first in {fixed}; {installed} does not have it");
        blocks.push(Block { label: "the fix", spare: 3, words });
    }
    blocks.extend(remedy.verify.iter().map(|line| Block {
        label: "it worked if",
        spare: 5,
        words: line.clone(),
    }));
    blocks
}

/// A fact with its source.
fn proof(line: &EvidenceLine) -> String {
    let more = line.sources.len().saturating_sub(1);
    match line.sources.first() {
        Some(source) if more > 0 => format!("{} [{source} and {more} more]", line.text),
        Some(source) => format!("{} [{source}]", line.text),
        None => line.text.clone(),
    }
}

/// The blocks that fit between head and foot.
fn fitted(blocks: &[Block], style: Style, head: &str, foot: &str) -> String {
    let set: Vec<String> = blocks
        .iter()
        .map(|block| style.wrap(&format!("{:<LABEL$} ", block.label), &block.words))
        .collect();
    let height = |text: &str| text.lines().count();
    // Two empty lines separate the three parts.
    let room = SHORT_LINES.saturating_sub(height(head) + height(foot) + 2);
    let mut blocks_left: Vec<usize> = (0..blocks.len()).collect();
    let total =
        |blocks_left: &[usize]| blocks_left.iter().map(|at| height(&set[*at])).sum::<usize>();
    while total(&blocks_left) > room {
        let Some(most) = blocks_left.iter().copied().max_by_key(|at| (blocks[*at].spare, *at))
        else {
            break;
        };
        blocks_left.retain(|at| *at != most);
    }
    let mut body = String::new();
    let mut label = "";
    for at in &blocks_left {
        let line = &set[*at];
        if blocks[*at].label == label {
            // The label is printed once.
            body.push_str(&" ".repeat(LABEL + 1));
            body.push_str(&line.chars().skip(LABEL + 1).collect::<String>());
        } else {
            body.push_str(line);
        }
        label = blocks[*at].label;
    }
    body
}

/// The foot: the rest of the answer.
fn rest(diagnosis: &Diagnosis) -> String {
    let trouble = diagnosis.inputs.iter().filter(|input| input.trouble.is_some()).count();
    let mut parts = vec![reading(&diagnosis.inputs)];
    if trouble > 0 {
        parts.push(ogive_text::counted(trouble, "input with trouble", "inputs with trouble"));
    }
    if !diagnosis.rule_faults.is_empty() {
        parts.push(ogive_text::counted(diagnosis.rule_faults.len(), "faulty rule", "faulty rules"));
    }
    let looked = diagnosis
        .overview
        .looking_percent
        .map(|percent| format!(" Looking took {percent:.1}% of one CPU, which is left out."))
        .unwrap_or_default();
    let explain = diagnosis
        .findings
        .first()
        .map(|finding| format!("; --explain {} what is known about it", finding.id))
        .unwrap_or_default();
    let read = printable(&parts.join("; "));
    format!("{read}.{looked} --long has the whole answer{explain}.")
}
