//! A rule for people.

use std::fmt::Write as _;

use serde_json::json;

use crate::rule::{ActionText, Rule, RuleSet, probe};

/// All rules, a line each, by family.
pub fn list(rules: &RuleSet) -> String {
    let mut all: Vec<&Rule> = rules.iter().collect();
    all.sort_by(|a, b| (&a.text.family, &a.text.id).cmp(&(&b.text.family, &b.text.id)));
    let width = all.iter().map(|rule| rule.text.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut family = "";
    for rule in all {
        if rule.text.family != family {
            family = &rule.text.family;
            let _ = writeln!(out, "{family}:");
        }
        let _ = writeln!(out, "  {:width$}  {}", rule.text.id, rule.text.title);
    }
    out
}

/// One rule in full.
pub fn explain(rule: &Rule) -> String {
    let text = &rule.text;
    let mut out =
        format!("{} [{}], family {}, grade {}\n", text.title, text.id, text.family, text.grade);
    let _ = writeln!(out, "\n{}", rule.verdict.outline());
    if let Some(mechanism) = &text.mechanism {
        let _ = writeln!(out, "\n{}", mechanism.trim());
    }
    if let Some(affected) = &text.affected {
        let _ = writeln!(out, "\nAffected: {affected}");
    }
    if !text.fixed.is_empty() {
        let _ = writeln!(out, "First releases with the fix: {}", text.fixed.join(" and "));
        if let Some(condition) = &text.fix_when {
            let _ = writeln!(out, "  when {condition}");
        }
    }
    let _ =
        writeln!(out, "\nSigns (log-odds when true / when false; it starts at {}):", text.prior);
    if let Some(gate) = &text.applies {
        let _ = writeln!(out, "  only if  {gate}");
    }
    for (sign, written) in rule.signs.iter().zip(&text.signs) {
        let _ = writeln!(
            out,
            "  {:>+5.1} / {:>+5.1}  {:<8} {}",
            sign.weight,
            sign.otherwise,
            json!(sign.kind).as_str().unwrap_or_default(),
            written.text
        );
        let _ = writeln!(out, "  {:>25}{}", "", written.when);
    }
    if let Some(share) = &text.share {
        let _ = writeln!(out, "\nShare of the CPU: {share}");
    }
    if !text.lookalikes.is_empty() {
        let _ = writeln!(out, "\nNot to be confused with: {}", text.lookalikes.join(", "));
    }
    let parts = [
        ("Now", &text.remedy.now),
        ("Lasting", &text.remedy.lasting),
        ("It worked if", &text.remedy.verify),
        ("Do not", &text.remedy.dont),
    ];
    for (title, lines) in parts {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}:");
            lines.iter().for_each(|line| {
                let _ = writeln!(out, "  {}", outline(line));
                for (word, expression) in line.expressions() {
                    let _ = writeln!(out, "    {word} {expression}");
                }
            });
        }
    }
    out.push_str("\nProbes that decide it:\n");
    for probe in text.ask.iter().filter_map(|id| probe(id)) {
        let _ = writeln!(out, "  {} [{}]", probe.shows, probe.id);
    }
    if !text.references.is_empty() {
        out.push_str("\nReferences:\n");
        text.references.iter().for_each(|reference| {
            let _ = writeln!(out, "  {reference}");
        });
    }
    out
}

/// A line of a remedy as a rule has it, for any host.
fn outline(line: &ActionText) -> String {
    let value = line.value.as_deref().or(line.amount.as_deref()).unwrap_or("");
    let property = line.property.as_ref().or(line.pool_property.as_ref());
    let does = match (&line.parameter, property, &line.run, &line.probe) {
        (Some(name), ..) => format!("set the parameter {name} to {value}"),
        (_, Some(name), ..) => format!("set the property {name}={value}"),
        (_, _, Some(id), _) => format!("the action {id}"),
        (.., Some(id)) => format!("look with {id}"),
        _ if line.replace => "replace the disk".to_owned(),
        _ if !line.upgrade.is_empty() => format!("upgrade to {}", line.upgrade.join(", ")),
        _ => String::new(),
    };
    let words = line.say.as_deref().or(line.text.as_deref()).unwrap_or("");
    let system = if line.systems.is_empty() { String::new() } else { line.systems.join(", ") };
    let parts = [words, &does, &system];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}
