//! The parts of the whole answer, for a terminal and for a page. They are one list of rows about
//! the machine, and one list of sections for each finding.

use super::three;
use crate::diagnose::{Diagnosis, EvidenceLine, Finding, Overview, Word};
use crate::evidence::Source;

/// A row about the machine: its label, its text and its sources.
pub(super) type Row<'d> = (&'static str, String, &'d [Source]);

/// The first three answers, and further facts about the machine.
pub(super) fn machine(diagnosis: &Diagnosis) -> Vec<Row<'_>> {
    let Overview { consumers, zfs_version, kernel, looking_percent, .. } = &diagnosis.overview;
    let mut rows = Vec::from(three(&diagnosis.answers));
    let mut say =
        |label, words: Option<String>| rows.extend(words.map(|words| (label, words, &[][..])));
    say("where", diagnosis.verdict.place.as_ref().map(|place| place.sentence.clone()));
    let threads = consumers.iter().filter(|user| user.threads.len() > 1).take(3).map(|user| {
        let threads = user.threads.iter().filter(|(_, share)| *share >= 1.0).take(3);
        let threads: Vec<String> =
            threads.map(|(name, share)| format!("{name} {share:.0}%")).collect();
        format!("{}: {}", user.name, threads.join(", "))
    });
    say("threads", joined(threads.collect(), "; "));
    say("hottest", hottest(&diagnosis.overview, 5));
    let versions = [("ZFS", zfs_version), ("kernel", kernel)].into_iter();
    let versions =
        versions.filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
    say("versions", joined(versions.collect(), ", "));
    let cost = looking_percent
        .map(|percent| format!("looking took {percent:.1}% of one CPU, which is left out above"));
    say("cost", cost);
    rows
}

fn joined(words: Vec<String>, mark: &str) -> Option<String> {
    (!words.is_empty()).then(|| words.join(mark))
}

/// The functions with the most samples of their own.
pub(super) fn hottest(overview: &Overview, most: usize) -> Option<String> {
    let named = overview.symbols.iter().filter(|(name, _, share)| name != "?" && *share >= 1.0);
    let named = named.map(|(symbol, module, share)| format!("{symbol} [{module}] {share:.0}%"));
    let named = joined(named.take(most).collect(), ", ")?;
    Some(format!("{named} (of {:.0} busy samples)", overview.samples?))
}

/// A line of a section.
#[derive(Default)]
pub(super) struct Line {
    /// The other cause that the line is about, if any.
    pub(super) cause: String,
    pub(super) words: String,
    pub(super) sources: Vec<Source>,
    /// The command.
    pub(super) run: Option<String>,
}

/// A section of a finding.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// The mark before its lines on a terminal.
    pub(super) mark: char,
    pub(super) lines: Vec<Line>,
}

/// The sections of a finding below its title.
pub(super) fn sections(finding: &Finding) -> Vec<Section> {
    let plain = |lines: &[String]| -> Vec<Line> {
        lines.iter().map(|words| Line { words: words.clone(), ..Line::default() }).collect()
    };
    let proofs = |lines: &[EvidenceLine]| -> Vec<Line> {
        let line = |line: &EvidenceLine| (line.text.clone(), line.sources.clone());
        let lines = lines.iter().map(line);
        lines.map(|(words, sources)| Line { words, sources, ..Line::default() }).collect()
    };
    let out = finding.ruled_out.iter().map(|out| Line {
        cause: out.cause.clone(),
        words: out.because.clone(),
        sources: out.sources.clone(),
        run: None,
    });
    let open = finding.open.iter().map(|open| Line {
        cause: open.cause.clone(),
        words: open.by.clone(),
        sources: Vec::new(),
        run: open.ask.clone(),
    });
    let ask =
        Some(finding.ask.clone()).filter(|ask| finding.word != Word::Certain && !ask.is_empty());
    let remedy = &finding.remedy;
    let parts = [
        ("evidence", '+', proofs(&finding.evidence)),
        ("against it", '-', proofs(&finding.against)),
        ("ruled out", 'x', out.collect()),
        ("not ruled out", '?', open.collect()),
        ("versions", '=', plain(versions(finding).as_slice())),
        ("now", '>', plain(&remedy.now)),
        ("lasting", '>', plain(&remedy.lasting)),
        ("it worked if", '>', plain(&remedy.verify)),
        ("do not", '!', plain(&remedy.dont)),
        ("would settle it", '$', plain(ask.as_slice())),
    ];
    parts.map(|(title, mark, lines)| Section { title, mark, lines }).into()
}

/// The affected releases, those with the fix, and whether the installed one has it.
fn versions(finding: &Finding) -> Option<String> {
    let versions = &finding.versions;
    let affected = versions.affected.as_ref().map(|affected| format!("affected: {affected}. "));
    if versions.fixed.is_empty() {
        return affected;
    }
    let installed = versions.installed.as_deref().unwrap_or("?");
    let has = match versions.has_fix {
        Some(true) => format!("Installed {installed} has it."),
        Some(false) => format!("Installed {installed} does not have it."),
        None => "The installed version is unknown (zfs version).".to_owned(),
    };
    let fixed = versions.fixed.join(" and ");
    Some(format!("{}First releases with the fix: {fixed}. {has}", affected.unwrap_or_default()))
}
