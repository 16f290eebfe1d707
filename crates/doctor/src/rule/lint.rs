//! What is wrong with a rule beyond its syntax.

use super::{Role, Rule, RuleSet, SignKind};
use crate::expression::faults;

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
    if text.ask.trim().is_empty() {
        found.push("ask: one command that would settle it".to_owned());
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
    for fixed in &text.fixed {
        if crate::facts::parse_versions(fixed).is_none() {
            found.push(format!("fixed: {fixed:?} is no version"));
        }
    }
}

fn check_neighbours(rule: &Rule, rules: &RuleSet, found: &mut Vec<String>) {
    for neighbour in &rule.lookalikes {
        if rules.get(&neighbour.cause).is_none() {
            found.push(format!("lookalikes: there is no rule {}", neighbour.cause));
        }
        if neighbour.ruled_out.is_none() && neighbour.ask.is_none() {
            found.push(format!(
                "lookalikes: {}: say what rules it out, or what to ask",
                neighbour.cause
            ));
        }
    }
}
