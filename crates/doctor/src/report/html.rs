//! The answer as one self-contained page. What comes from outside is escaped; there is no script of
//! ours, and no address is fetched.

use std::fmt::Write as _;

use ogive_text::escape;

use crate::diagnose::{Diagnosis, EvidenceLine, Finding};
use crate::evidence::Source;
use crate::expression::Format;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .3rem}.sure{font-weight:normal;color:#555}\
dl{display:grid;grid-template-columns:9rem 1fr;gap:.2rem 1rem}dt{color:#666}dd{margin:0}ul{margin:0;padding-left:1.1rem}\
.src{color:#777;font:12px ui-monospace,monospace}code{background:#f2f2f2;padding:.1rem .3rem}.bar{background:#eee;height:.6rem;width:16rem}\
.bar i{display:block;height:100%;background:#c33}iframe{width:100%;height:46rem;border:1px solid #ccc}\
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}code{background:#2a2a2a}.bar{background:#333}\
dt,.sure{color:#b0b0b0}.src{color:#a0a0a0}iframe{border-color:#444}}";

/// The answer as a page. `flame_graph` is a self-contained page with the flame graph, if there is
/// one.
pub fn html(diagnosis: &Diagnosis, flame_graph: Option<&str>) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ogive doctor</title>\
<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n"
    );
    let _ = writeln!(out, "<h1>{}</h1>", escape(&super::headline(diagnosis)));
    overview(&mut out, diagnosis);
    for finding in &diagnosis.findings {
        finding_html(&mut out, finding);
    }
    if let Some(page) = flame_graph {
        let _ = writeln!(
            out,
            "<h2>Flame graph</h2>\n<iframe title=\"flame graph\" sandbox=\"allow-scripts\" srcdoc=\"{}\"></iframe>",
            escape(page)
        );
    }
    reading(&mut out, diagnosis);
    out.push_str("</body></html>\n");
    out
}

fn overview(out: &mut String, diagnosis: &Diagnosis) {
    let overview = &diagnosis.overview;
    out.push_str("<dl>");
    for (label, sentence, _) in super::three(&diagnosis.answers) {
        let _ = write!(out, "<dt>{label}</dt><dd>{}</dd>", escape(&sentence));
    }
    for running in &diagnosis.running {
        let _ = write!(out, "<dt>running</dt><dd>{}</dd>", escape(&running.text));
    }
    if !overview.consumers.is_empty() {
        out.push_str("<dt>of the busy CPU</dt><dd>");
        for user in &overview.consumers {
            let _ = write!(
                out,
                "<div>{} {}<div class=\"bar\"><i style=\"width:{:.1}%\"></i></div></div>",
                escape(&user.name),
                user.used(),
                user.share_percent.unwrap_or(0.0).clamp(0.0, 100.0)
            );
        }
        out.push_str("</dd>");
    }
    if !overview.symbols.is_empty() {
        out.push_str("<dt>hottest</dt><dd><ul>");
        for (symbol, module, share) in &overview.symbols {
            let _ = write!(
                out,
                "<li><code>{}</code> {} {share:.1}%</li>",
                escape(symbol),
                escape(module)
            );
        }
        out.push_str("</ul></dd>");
    }
    for (name, version) in [("ZFS", &overview.zfs_version), ("kernel", &overview.kernel)] {
        if let Some(version) = version {
            let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escape(version));
        }
    }
    out.push_str("</dl>\n");
}

fn finding_html(out: &mut String, finding: &Finding) {
    let share = finding
        .share_percent
        .map(|share| format!(", {} of the busy CPU", Format::Percent.write(share)))
        .unwrap_or_default();
    let _ = writeln!(
        out,
        "<h2 id=\"{0}\">{1} <span class=\"sure\">[{0}] {2} ({3:.0}%){share}</span></h2>\n<p>{4}</p>",
        escape(&finding.id),
        escape(&finding.title),
        finding.word,
        finding.confidence * 100.0,
        escape(&finding.verdict)
    );
    if let Some(mechanism) = &finding.mechanism {
        let _ = writeln!(out, "<p>{}</p>", escape(mechanism.trim()));
    }
    out.push_str("<dl>");
    entry(out, "evidence", finding.evidence.iter().map(evidence_html));
    entry(out, "against it", finding.against.iter().map(evidence_html));
    entry(
        out,
        "ruled out",
        finding.ruled_out.iter().map(|neighbour| {
            format!(
                "<b>{}</b>: {}{}",
                escape(&neighbour.cause),
                escape(&neighbour.because),
                cite(&neighbour.sources)
            )
        }),
    );
    entry(
        out,
        "not ruled out",
        finding.open.iter().map(|open| {
            let ask = open
                .ask
                .as_ref()
                .map(|ask| format!(" <code>{}</code>", escape(ask)))
                .unwrap_or_default();
            format!("<b>{}</b>: {}{ask}", escape(&open.cause), escape(&open.by))
        }),
    );
    let remedy = &finding.remedy;
    for (title, lines) in [
        ("now", &remedy.now),
        ("lasting", &remedy.lasting),
        ("it worked if", &remedy.verify),
        ("do not", &remedy.dont),
    ] {
        entry(out, title, lines.iter().map(|line| escape(line)));
    }
    if !finding.versions.fixed.is_empty() {
        entry(out, "fixed in", std::iter::once(escape(&finding.versions.fixed.join(" and "))));
    }
    let ask = Some(&finding.ask).filter(|ask| !ask.is_empty());
    entry(out, "settles it", ask.map(|ask| format!("<code>{}</code>", escape(ask))).into_iter());
    entry(out, "references", finding.references.iter().map(|reference| escape(reference)));
    out.push_str("</dl>\n");
}

fn entry(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, "<dt>{title}</dt><dd><ul>");
    for line in lines {
        let _ = write!(out, "<li>{line}</li>");
    }
    out.push_str("</ul></dd>");
}

fn evidence_html(line: &EvidenceLine) -> String {
    format!("{}{}", escape(&line.text), cite(&line.sources))
}

fn cite(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = sources.iter().map(|source| escape(&source.to_string())).collect();
    format!(" <span class=\"src\">{}</span>", shown.join(", "))
}

fn reading(out: &mut String, diagnosis: &Diagnosis) {
    out.push_str("<h2>What was read</h2>\n<ul>");
    for input in &diagnosis.inputs {
        let trouble = input
            .trouble
            .as_ref()
            .map(|trouble| format!(": {}", escape(trouble)))
            .unwrap_or_default();
        let _ = write!(
            out,
            "<li>{} ({}){trouble}</li>",
            escape(&input.name),
            escape(&input.formats.join(", "))
        );
    }
    out.push_str("</ul>\n");
    if !diagnosis.not_understood.is_empty() {
        out.push_str("<h2>Lines not understood</h2>\n<ul>");
        for line in diagnosis.not_understood.iter().take(200) {
            let _ = write!(
                out,
                "<li>{}: <code>{}</code></li>",
                escape(&line.source.to_string()),
                escape(&line.value)
            );
        }
        out.push_str("</ul>\n");
    }
}
