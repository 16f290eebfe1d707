//! Faults of a rule beyond its syntax.

use super::{ActionText, Role, Rule, RuleSet, RuleText, SignKind, command, probe};
use crate::atlas::{self, fixes::versions};
use crate::expression::{asks_for_words, faults};
use crate::facts::{PROCESSORS, Requires, SYSTEMS};

/// Faults of all rules of a set, one line each, beginning with the rule's id.
pub fn lint(rules: &RuleSet) -> Vec<String> {
    let mut found = Vec::new();
    for rule in rules.iter() {
        let mut faults = Vec::new();
        check_expressions(rule, &mut faults);
        check_signs(rule, &mut faults);
        check_words(rule, &mut faults);
        check_neighbours(rule, rules, &mut faults);
        found.extend(faults.into_iter().map(|fault| format!("{}: {fault}", rule.text.id)));
    }
    found
}

fn check_expressions(rule: &Rule, found: &mut Vec<String>) {
    for (place, expression) in rule.expressions() {
        for fault in faults(expression) {
            found.push(format!("{place}: {fault} in {}", expression.source()));
        }
    }
    // Words are a hint: nothing else may depend on them.
    let measured = rule.signs.iter().enumerate().filter(|(_, one)| one.kind != SignKind::Words);
    let signs = measured.map(|(at, sign)| (format!("signs[{at}].when"), &sign.when));
    let others = rule.expressions().into_iter().filter(|(place, _)| !place.starts_with("signs"));
    for (place, _) in others.chain(signs).filter(|(_, one)| asks_for_words(one)) {
        found.push(format!("{place}: said() and tells() are for signs of kind words"));
    }
}

fn check_signs(rule: &Rule, found: &mut Vec<String>) {
    if rule.text.role == Role::Unknown {
        return;
    }
    if rule.signs.is_empty() {
        found.push("has no signs".to_owned());
    }
    let names_alone =
        rule.signs.iter().all(|sign| sign.kind == SignKind::Thread || sign.weight <= 0.0);
    if names_alone && rule.text.role == Role::Cause {
        found.push("stands on thread names alone: give one fact that separates it".to_owned());
    }
    for (at, sign) in rule.signs.iter().enumerate() {
        if !sign.weight.is_finite()
            || sign.weight.abs() > 10.0
            || !sign.otherwise.is_finite()
            || sign.otherwise.abs() > 10.0
        {
            found.push(format!("signs[{at}]: weights are log-odds between -10 and 10"));
        }
        if sign.weight == 0.0 && sign.otherwise == 0.0 {
            found.push(format!("signs[{at}]: weighs nothing either way"));
        }
    }
    for test in &rule.text.tests {
        if test.files.is_empty() {
            found.push(format!("test {:?} has no files", test.name));
        }
    }
    if rule.text.tests.is_empty() {
        found.push("has no test".to_owned());
    }
}

fn check_words(rule: &Rule, found: &mut Vec<String>) {
    let text = &rule.text;
    if !text.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        found.push("an id is made of a-z, 0-9 and -".to_owned());
    }
    if !["A", "B", "C"].contains(&text.grade.as_str()) {
        found.push(format!("grade {:?} is not A, B or C", text.grade));
    }
    if text.ask.is_empty() {
        found.push("ask: name a probe that would settle it".to_owned());
    }
    for id in text.ask.iter().filter(|id| probe(id).is_none()) {
        found.push(format!("ask: probes.toml has no {id}"));
    }
    let remedy = &text.remedy;
    if text.role == Role::Cause
        && (remedy.now.is_empty() && remedy.lasting.is_empty() || remedy.verify.is_empty())
    {
        found.push(
            "a cause needs a remedy (now or lasting) and how to see that it worked (verify)"
                .to_owned(),
        );
    }
    check_requires(&text.requires, found);
    // A release that cannot have the cause is a gate, not a weight.
    let versions = text.signs.iter().filter(|sign| sign.kind == SignKind::Version);
    found.extend(
        versions.filter(|sign| sign.otherwise < 0.0).map(|sign| {
            format!("{}: a release that cannot have it belongs into requires", sign.when)
        }),
    );
    check_fixes(text, found);
    for fixed in &text.fixed {
        if crate::facts::parse_versions(fixed).is_none() {
            found.push(format!("fixed: {fixed:?} is no version"));
        }
    }
}

/// Checks commits and releases of a rule against the history.
fn check_fixes(text: &RuleText, found: &mut Vec<String>) {
    for commit in &text.fix {
        if atlas::first_releases(commit).is_none() {
            found.push(format!("fix: the atlas has no {commit:?}: ten digits, then generate.py"));
        }
    }
    for line in text.remedy.lines() {
        check_action(line, found);
    }
}

/// Checks that the names in a line of a remedy exist.
fn check_action(line: &ActionText, found: &mut Vec<String>) {
    let words = line.say.iter().chain(&line.text);
    for clause in words.flat_map(|text| text.split(';')).flat_map(|part| part.split(". ")) {
        check_clause(clause, found);
    }
    let mut lacks =
        |what: &str, name: &str| found.push(format!("remedy: there is no {what} {name}"));
    if let Some(name) = &line.parameter
        && !name.contains('.')
        && atlas::tunables(name).next().is_none()
    {
        lacks("tunable", name);
    }
    if let Some(name) = &line.property
        && atlas::brought(name).is_none()
    {
        lacks("property", name);
    }
    if let Some(id) = line.run.as_deref().filter(|id| command(id).is_none()) {
        lacks("action", id);
    }
    if let Some(id) = line.probe.as_deref().filter(|id| probe(id).is_none()) {
        lacks("probe", id);
    }
    for name in &line.upgrade {
        let known = atlas::is_commit(name) && atlas::first_releases(name).is_some();
        if !known && !atlas::releases().contains(&name.as_str()) {
            lacks("commit or release", name);
        }
    }
    for system in line.systems.iter().filter(|system| !SYSTEMS.contains(&system.as_str())) {
        lacks("system", system);
    }
    if line.say.as_ref().is_some_and(|words| words.contains('`') && line.probe.is_none()) {
        found.push("remedy: words hold no command: name a probe or an action".to_owned());
    }
}

/// Releases in one clause with commits are the first that contain them.
fn check_clause(clause: &str, found: &mut Vec<String>) {
    let words = || {
        clause
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
            .map(|word| word.trim_end_matches('.'))
    };
    let hash = |word: &&str| atlas::is_commit(word) && !word.chars().all(|c| c.is_ascii_digit());
    let mut first = Vec::new();
    for commit in words().filter(hash) {
        match atlas::first_releases(commit) {
            Some(releases) => first.extend(releases),
            None => found.push(format!("remedy: the atlas has no {commit}: run generate.py")),
        }
    }
    let is_release = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        parts.len() >= 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    };
    if words().any(|word| hash(&word)) {
        for release in words().filter(is_release).filter(|word| !first.contains(word)) {
            found.push(format!("remedy: {release} is no first release of its fix in {clause:?}"));
        }
    }
}

fn check_requires(requires: &Requires, found: &mut Vec<String>) {
    let known = |names: &[String], all: &[&str]| {
        names.iter().find(|name| !all.contains(&name.as_str())).cloned()
    };
    let wrong = [
        ("system", known(&requires.systems, &SYSTEMS)),
        ("processor", known(&requires.processors, &PROCESSORS)),
        (
            "property or feature",
            requires.feature.clone().filter(|name| atlas::brought(name).is_none()),
        ),
        ("tunable", requires.tunable.clone().filter(|name| atlas::tunables(name).next().is_none())),
        ("release", requires.from.clone().filter(|text| atlas::parse_versions(text).is_none())),
        ("release or commit", requires.before.clone().filter(|text| versions(text).is_none())),
        ("row", requires.counter.clone().filter(|name| !name.contains('.'))),
        ("function", requires.code.clone().filter(|name| atlas::functions(name).next().is_none())),
    ];
    for (kind, name) in wrong {
        if let Some(name) = name {
            found.push(format!("requires: there is no {kind} {name}"));
        }
    }
}

fn check_neighbours(rule: &Rule, rules: &RuleSet, found: &mut Vec<String>) {
    for cause in rule.text.lookalikes.iter().filter(|cause| rules.get(cause).is_none()) {
        found.push(format!("lookalikes: there is no rule {cause}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_do_not_have_the_commit_named_with_them_are_found() {
        let faults = |clause: &str| {
            let mut found = Vec::new();
            check_clause(clause, &mut found);
            found
        };
        assert!(faults("2.1.3 and 2.2.0 (178c93f021) scan each node").is_empty());
        assert!(faults("2.1.3 or newer, on kernels from 3.12").is_empty());
        assert!(faults("0.8.2 (b88ca2acf5)")[0].contains("0.8.2 is no first release"));
        assert!(faults("in no release yet (90cdd9aef9)").is_empty());
        assert!(faults("2.0.0 (00000000aa)")[0].contains("has no 00000000aa"));
    }
}
