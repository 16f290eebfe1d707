//! A fleet as a table, for programs, and as one self-contained page. What comes from outside is
//! escaped; the page has no script and fetches nothing.

use std::fmt::Write as _;

use ogive_text::escape;
use serde_json::{Value, json};

use super::style::{Stress, Style, printable};
use crate::diagnose::VerdictKind;
use crate::expression::Format;
use crate::fleet::{Common, Fleet, Group, Host};

/// Version of the schema.
pub const FLEET_VERSION: u32 = 1;

/// So many hosts of a group are named in the table.
const NAMED: usize = 5;
/// So many bundles that could not be read are named in the table.
const UNREAD: usize = 10;

/// Writes the fleet as a table; `all` names every host.
pub fn fleet(fleet: &Fleet, all: bool, style: Style) -> String {
    let ill = fleet.ill() > 0;
    let stress = if ill { Stress::Bad } else { Stress::Good };
    let mut out = style.stress(&printable(&fleet.sentence()), stress);
    out.push('\n');
    for group in &fleet.groups {
        let word = match group.verdict {
            VerdictKind::Cause => "problem",
            other => other.name(),
        };
        let head = format!("{} {}", hosts(group.hosts.len()), word);
        let _ = write!(out, "\n{}", style.stress(&head, Stress::Bold));
        out.push_str(&style.wrap(": ", &format!("{} [{}]", group.title, group.id)));
        let named = if all { group.hosts.len() } else { NAMED };
        let names: Vec<String> =
            group.hosts.iter().take(named).map(|at| named_host(&fleet.hosts[*at])).collect();
        let more = group.hosts.len().saturating_sub(named);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        out.push_str(&style.wrap("  hosts   ", &format!("{}{more}", names.join(", "))));
        for (at, row) in group.common.iter().enumerate() {
            let label = if at == 0 { "  common  " } else { "          " };
            out.push_str(&style.wrap(label, &common(row)));
        }
    }
    out.push_str(&read_in_part(fleet, all, style));
    if !fleet.unread.is_empty() {
        out.push('\n');
        let shown = if all { fleet.unread.len() } else { UNREAD };
        for one in fleet.unread.iter().take(shown) {
            out.push_str(&style.wrap("Not read: ", &format!("{}: {}", one.name, one.reason)));
        }
        let more = fleet.unread.len().saturating_sub(shown);
        if more > 0 {
            let _ = writeln!(out, "Not read: and {more} more");
        }
    }
    out
}

/// Hosts whose bundle was read in part only.
fn read_in_part(fleet: &Fleet, all: bool, style: Style) -> String {
    let mut out = String::new();
    let mut damaged = fleet.hosts.iter().filter_map(|host| Some((host, host.trouble.as_ref()?)));
    let shown = if all { fleet.hosts.len() } else { UNREAD };
    for (host, trouble) in damaged.by_ref().take(shown) {
        if out.is_empty() {
            out.push('\n');
        }
        out.push_str(&style.wrap("Read in part: ", &format!("{}: {trouble}", host.name)));
    }
    let more = damaged.count();
    if more > 0 {
        let _ = writeln!(out, "Read in part: and {more} more");
    }
    out
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}

fn named_host(host: &Host) -> String {
    match (host.share_percent, host.busy_percent) {
        (Some(share), Some(busy)) => {
            let share = Format::Percent.write(share);
            format!("{} ({share} of {busy:.0}% busy)", host.name)
        }
        (Some(share), None) => format!("{} ({})", host.name, Format::Percent.write(share)),
        (None, Some(busy)) => format!("{} ({busy:.0}% busy)", host.name),
        (None, None) => host.name.clone(),
    }
}

fn common(row: &Common) -> String {
    let lift = row.lift.map(|lift| format!(", lift {lift:.1}")).unwrap_or_default();
    let alike = match row.alike {
        0 => String::new(),
        more => format!("; {more} more that the same hosts have"),
    };
    format!(
        "{} {}: {} of {} here, {} of {} elsewhere{lift}{alike}",
        row.is.name, row.is.value, row.ill.0, row.ill.1, row.others.0, row.others.1
    )
}

/// The fleet as JSON.
pub fn fleet_json(fleet: &Fleet) -> Value {
    json!({
        "version": FLEET_VERSION,
        "sentence": fleet.sentence(),
        "hosts": fleet.hosts.iter().map(host_json).collect::<Vec<_>>(),
        "groups": fleet.groups.iter().map(|group| group_json(fleet, group)).collect::<Vec<_>>(),
        "unread": fleet.unread.iter().map(|one| json!({
            "name": one.name, "reason": one.reason,
        })).collect::<Vec<_>>(),
    })
}

fn host_json(host: &Host) -> Value {
    json!({
        "name": host.name,
        "verdict": host.verdict.name(),
        "sentence": host.sentence,
        "cause": host.first.as_ref().map(|(id, _, _)| id),
        "confidence": host.first.as_ref().map(|(_, _, confidence)| confidence),
        "share_percent": host.share_percent,
        "busy_percent": host.busy_percent,
        "trouble": host.trouble,
    })
}

fn group_json(fleet: &Fleet, group: &Group) -> Value {
    json!({
        "id": group.id,
        "title": group.title,
        "verdict": group.verdict.name(),
        "hosts": group.hosts.iter().map(|at| &fleet.hosts[*at].name).collect::<Vec<_>>(),
        "common": group.common.iter().map(|row| json!({
            "kind": row.is.kind.name(),
            "name": row.is.name,
            "value": row.is.value,
            "here": {"having": row.ill.0, "known": row.ill.1},
            "elsewhere": {"having": row.others.0, "known": row.others.1},
            "lift": row.lift,
            "alike": row.alike,
        })).collect::<Vec<_>>(),
    })
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
padding:0 1rem;color:#222;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 \
.3rem}table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;\
padding:.15rem .8rem .15rem 0;border-bottom:1px solid #ddd}td.n,th.n{text-align:right}\
.dim{color:#666}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}\
.dim{color:#aaa}td,th{border-color:#444}}";

/// The fleet as a page.
pub fn fleet_html(fleet: &Fleet) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>ogive doctor: {}</title><style>{STYLE}</style></head><body>\n<h1>{}</h1>\n",
        escape(&hosts(fleet.hosts.len())),
        escape(&fleet.sentence())
    );
    for group in &fleet.groups {
        let _ = writeln!(
            out,
            "<h2>{} <span class=\"dim\">[{}] {}, {}</span></h2>",
            escape(&group.title),
            escape(&group.id),
            escape(group.verdict.name()),
            hosts(group.hosts.len())
        );
        common_html(&mut out, &group.common);
        out.push_str(
            "<table><tr><th>host</th><th class=\"n\">busy</th><th class=\"n\">of that</th>\
<th class=\"n\">sure</th><th>answer</th></tr>\n",
        );
        for at in &group.hosts {
            host_html(&mut out, &fleet.hosts[*at]);
        }
        out.push_str("</table>\n");
    }
    if !fleet.unread.is_empty() {
        out.push_str("<h2>Not read</h2>\n<ul>\n");
        for one in &fleet.unread {
            let _ = writeln!(out, "<li>{}: {}</li>", escape(&one.name), escape(&one.reason));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</body></html>\n");
    out
}

fn common_html(out: &mut String, rows: &[Common]) {
    if rows.is_empty() {
        return;
    }
    out.push_str(
        "<table><tr><th>in common</th><th></th><th class=\"n\">here</th>\
<th class=\"n\">elsewhere</th><th class=\"n\">lift</th></tr>\n",
    );
    for row in rows {
        let alike = if row.alike > 0 { format!(" and {} alike", row.alike) } else { String::new() };
        let lift = row.lift.map(|lift| format!("{lift:.1}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}{alike}</td><td class=\"n\">{} of {}</td><td class=\"n\">{} of {}\
</td><td class=\"n\">{lift}</td></tr>",
            escape(&row.is.name),
            escape(&row.is.value),
            row.ill.0,
            row.ill.1,
            row.others.0,
            row.others.1
        );
    }
    out.push_str("</table>\n");
}

fn host_html(out: &mut String, host: &Host) {
    let percent =
        |value: Option<f64>| value.map(|one| Format::Percent.write(one)).unwrap_or_default();
    let sure = host.first.as_ref().map(|(_, _, confidence)| confidence * 100.0);
    let trouble = host
        .trouble
        .as_ref()
        .map(|trouble| format!(" <span class=\"dim\">({})</span>", escape(trouble)))
        .unwrap_or_default();
    let _ = writeln!(
        out,
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
<td>{}{trouble}</td></tr>",
        escape(&host.name),
        percent(host.busy_percent),
        percent(host.share_percent),
        percent(sure),
        escape(&host.sentence)
    );
}
