//! The answer as one self-contained page. Outside text is escaped. The page has no script and
//! fetches no address.

use std::fmt::{Display, Write as _};

use ogive_text::escape;

use super::outline::{machine, sections};
use crate::diagnose::{Diagnosis, Finding};
use crate::evidence::Source;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .3rem}.sure{font-weight:normal}.dim,.sure{color:#666}\
dl{display:grid;grid-template-columns:9rem 1fr;gap:.2rem 1rem}dt{color:#666}dd{margin:0}ul{margin:0;padding-left:1.1rem}\
.src{color:#777;font:12px ui-monospace,monospace}code{background:#f2f2f2;padding:.1rem .3rem}.bar{background:#eee;height:.6rem;width:16rem}\
.bar i{display:block;height:100%;background:#c33}iframe{width:100%;height:46rem;border:1px solid #ccc}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.15rem .8rem .15rem 0;border-bottom:1px solid #ddd}\
td.n,th.n{text-align:right}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}code{background:#2a2a2a}.bar{background:#333}\
dt,.sure,.dim{color:#b0b0b0}.src{color:#a0a0a0}iframe,td,th{border-color:#444}}";

/// A page; `head` is put into its head.
pub(super) fn page(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{head}\
<meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><style>{STYLE}</style></head>\
<body>\n{body}</body></html>\n",
        escape(title)
    )
}

/// The answer as a page. `flame_graph` is a self-contained page with the flame graph, if any.
pub fn html(diagnosis: &Diagnosis, flame_graph: Option<&str>) -> String {
    let mut out = format!("<h1>{}</h1>\n", escape(&super::headline(diagnosis)));
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
    let inputs = diagnosis.inputs.iter().map(|input| {
        let trouble = input.trouble.as_ref().map(|trouble| format!(": {trouble}"));
        let formats = input.formats.join(", ");
        escape(&format!("{} ({formats}){}", input.name, trouble.unwrap_or_default()))
    });
    section(&mut out, "What was read", inputs);
    let lines = diagnosis.not_understood.iter().take(200);
    let lines =
        lines.map(|line| format!("{}: {}", escape(&line.source.to_string()), code(&line.value)));
    section(&mut out, "Lines not understood", lines);
    page("ogive doctor", "", &out)
}

/// A list below a title, if it has any lines.
pub(super) fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let list = list(lines);
    if !list.is_empty() {
        let _ = writeln!(out, "<h2>{title}</h2>\n{list}");
    }
}

fn list(lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("<li>{line}</li>")).collect();
    if lines.is_empty() { lines } else { format!("<ul>{lines}</ul>") }
}

fn entry(out: &mut String, label: &str, content: impl Display) {
    let _ = write!(out, "<dt>{label}</dt><dd>{content}</dd>");
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

fn overview(out: &mut String, diagnosis: &Diagnosis) {
    out.push_str("<dl>");
    for (label, words, _) in machine(diagnosis) {
        entry(out, label, escape(&words));
    }
    for running in &diagnosis.running {
        entry(out, "running", escape(&running.text));
    }
    let users = diagnosis.overview.consumers.iter().map(|user| {
        let share = user.share_percent.unwrap_or(0.0).clamp(0.0, 100.0);
        let bar = format!("<div class=\"bar\"><i style=\"width:{share:.1}%\"></i></div>");
        format!("<div>{} {}{bar}</div>", escape(&user.name), user.used())
    });
    let users: String = users.collect();
    if !users.is_empty() {
        entry(out, "of the busy CPU", users);
    }
    out.push_str("</dl>\n");
}

fn finding_html(out: &mut String, finding: &Finding) {
    let share = super::share(finding).map(|share| format!(", {share}")).unwrap_or_default();
    let _ = writeln!(
        out,
        "<h2 id=\"{0}\">{1} <span class=\"sure\">[{0}] {2}{share}</span></h2>\n<p>{3}</p>",
        escape(&finding.id),
        escape(&finding.title),
        super::sure(finding),
        escape(&finding.verdict)
    );
    if let Some(mechanism) = &finding.mechanism {
        let _ = writeln!(out, "<p>{}</p>", escape(mechanism.trim()));
    }
    out.push_str("<dl>");
    for section in sections(finding) {
        let lines = section.lines.iter().map(|line| {
            let of = if line.cause.is_empty() {
                String::new()
            } else {
                format!("<b>{}</b>: ", escape(&line.cause))
            };
            let words = if section.mark == '$' { code(&line.words) } else { escape(&line.words) };
            let run = line.run.as_ref().map(|run| format!(" {}", code(run))).unwrap_or_default();
            format!("{of}{words}{}{run}", cite(&line.sources))
        });
        let list = list(lines);
        if !list.is_empty() {
            entry(out, section.title, list);
        }
    }
    if !finding.references.is_empty() {
        entry(
            out,
            "references",
            list(finding.references.iter().map(|reference| escape(reference))),
        );
    }
    out.push_str("</dl>\n");
}

fn cite(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = sources.iter().map(|source| escape(&source.to_string())).collect();
    format!(" <span class=\"src\">{}</span>", shown.join(", "))
}
