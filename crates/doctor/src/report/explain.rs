//! A rule for people.

use std::fmt::Write as _;

use crate::rule::{Rule, RuleSet, SignKind};

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
            kind(sign.kind),
            written.text
        );
        let _ = writeln!(out, "  {:>25}{}", "", written.when);
    }
    if let Some(share) = &text.share {
        let _ = writeln!(out, "\nShare of the CPU: {share}");
    }
    if !rule.lookalikes.is_empty() {
        out.push_str("\nNot to be confused with:\n");
        for neighbour in &rule.lookalikes {
            let ask = neighbour.ask.as_ref().map(|ask| format!("; ask: {ask}")).unwrap_or_default();
            let _ = writeln!(out, "  {}: {}{ask}", neighbour.cause, neighbour.because.outline());
        }
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
                let _ = writeln!(out, "  {}", line.text);
                for (word, condition) in line.conditions() {
                    let _ = writeln!(out, "    {word} {condition}");
                }
            });
        }
    }
    let _ = writeln!(out, "\nWhat settles it: {}", text.ask);
    if !text.references.is_empty() {
        out.push_str("\nReferences:\n");
        text.references.iter().for_each(|reference| {
            let _ = writeln!(out, "  {reference}");
        });
    }
    out
}

fn kind(kind: SignKind) -> &'static str {
    match kind {
        SignKind::Symbol => "symbol",
        SignKind::Lock => "lock",
        SignKind::Counter => "counter",
        SignKind::Log => "log",
        SignKind::Thread => "thread",
        SignKind::Config => "config",
        SignKind::Host => "host",
        SignKind::Version => "version",
        SignKind::Words => "words",
    }
}
