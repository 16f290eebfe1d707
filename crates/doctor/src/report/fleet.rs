//! A fleet as a table, as JSON, and as one self-contained page. Outside text is escaped. The page
//! has no script and fetches nothing.

use std::fmt::Write as _;

use ogive_text::escape;
use serde_json::{Value, json};

use super::html::{page, section};
use super::json::object;
use super::style::{Stress, Style, printable};
use crate::diagnose::VerdictKind;
use crate::expression::Format;
use crate::fleet::{Common, Fleet, Group, Host};

/// Version of the schema.
pub const FLEET_VERSION: u32 = 1;

/// The most hosts of a group that the table names.
const NAMED: usize = 5;
/// The most unreadable bundles that the table names.
const UNREAD: usize = 10;

/// Writes the fleet as a table; `all` names every host.
pub fn fleet(fleet: &Fleet, all: bool, style: Style) -> String {
    let stress = if fleet.ill() > 0 { Stress::Bad } else { Stress::Good };
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
    let damaged = fleet.hosts.iter().filter_map(|host| Some((&host.name, host.trouble.as_ref()?)));
    let unread = fleet.unread.iter().map(|one| (&one.name, &one.reason));
    for (label, lines) in
        [("Read in part: ", damaged.collect::<Vec<_>>()), ("Not read: ", unread.collect())]
    {
        let shown = if all { lines.len() } else { lines.len().min(UNREAD) };
        for (at, (name, why)) in lines[..shown].iter().enumerate() {
            out.push_str(if at == 0 { "\n" } else { "" });
            out.push_str(&style.wrap(label, &format!("{name}: {why}")));
        }
        if lines.len() > shown {
            let _ = writeln!(out, "{label}and {} more", lines.len() - shown);
        }
    }
    out
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}

fn named_host(host: &Host) -> String {
    let share = host.share_percent.map(|share| Format::Percent.write(share));
    match (share, host.busy_percent) {
        (Some(share), Some(busy)) => format!("{} ({share} of {busy:.0}% busy)", host.name),
        (Some(share), None) => format!("{} ({share})", host.name),
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
    let host = |host: &Host| {
        object!(host => name, sentence, share_percent, busy_percent, trouble;
            "verdict": host.verdict.name(),
            "cause": host.first.as_ref().map(|(id, _, _)| id),
            "confidence": host.first.as_ref().map(|(_, _, confidence)| confidence))
    };
    let row = |row: &Common| {
        object!(row => lift, alike;
            "kind": row.is.kind.name(), "name": row.is.name, "value": row.is.value,
            "here": {"having": row.ill.0, "known": row.ill.1},
            "elsewhere": {"having": row.others.0, "known": row.others.1})
    };
    let group = |group: &Group| {
        object!(group => id, title;
            "verdict": group.verdict.name(),
            "hosts": group.hosts.iter().map(|at| &fleet.hosts[*at].name).collect::<Vec<_>>(),
            "common": group.common.iter().map(row).collect::<Vec<_>>())
    };
    json!({
        "version": FLEET_VERSION,
        "sentence": fleet.sentence(),
        "hosts": fleet.hosts.iter().map(host).collect::<Vec<_>>(),
        "groups": fleet.groups.iter().map(group).collect::<Vec<_>>(),
        "unread": fleet.unread.iter().map(|one| object!(one => name, reason)).collect::<Vec<_>>(),
    })
}

/// The fleet as a page.
pub fn fleet_html(fleet: &Fleet) -> String {
    let mut out = format!("<h1>{}</h1>\n", escape(&fleet.sentence()));
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
        group.hosts.iter().for_each(|at| host_html(&mut out, &fleet.hosts[*at]));
        out.push_str("</table>\n");
    }
    let unread = fleet.unread.iter();
    let unread = unread.map(|one| format!("{}: {}", escape(&one.name), escape(&one.reason)));
    section(&mut out, "Not read", unread);
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                  style-src 'unsafe-inline'\">";
    page(&format!("ogive doctor: {}", hosts(fleet.hosts.len())), policy, &out)
}

fn common_html(out: &mut String, rows: &[Common]) {
    if rows.is_empty() {
        return;
    }
    out.push_str(
        "<table><tr><th>in common</th><th></th><th class=\"n\">here</th>\
<th class=\"n\">elsewhere</th><th class=\"n\">lift</th></tr>\n",
    );
    for Common { is, alike, ill, others, lift } in rows {
        let alike = if *alike > 0 { format!(" and {alike} alike") } else { String::new() };
        let lift = lift.map(|lift| format!("{lift:.1}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}{alike}</td><td class=\"n\">{} of {}</td><td class=\"n\">{} of {}\
</td><td class=\"n\">{lift}</td></tr>",
            escape(&is.name),
            escape(&is.value),
            ill.0,
            ill.1,
            others.0,
            others.1
        );
    }
    out.push_str("</table>\n");
}

fn host_html(out: &mut String, host: &Host) {
    let percent =
        |value: Option<f64>| value.map(|one| Format::Percent.write(one)).unwrap_or_default();
    let sure = host.first.as_ref().map(|(_, _, confidence)| confidence * 100.0);
    let trouble = host.trouble.as_ref();
    let trouble =
        trouble.map(|trouble| format!(" <span class=\"dim\">({})</span>", escape(trouble)));
    let _ = writeln!(
        out,
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
<td>{}{}</td></tr>",
        escape(&host.name),
        percent(host.busy_percent),
        percent(host.share_percent),
        percent(sure),
        escape(&host.sentence),
        trouble.unwrap_or_default()
    );
}
