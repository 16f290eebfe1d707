//! No innocent is accused. Each text of `innocents.txt` has a sign of an absent cause, or shows one
//! of two causes that look alike.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ogive_doctor::evidence::Evidence;
use ogive_doctor::read::{finish, read_bytes};
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose};

/// A cause with at least this confidence counts as named.
const NAMED: f64 = 0.6;

fn of(rules: &RuleSet, text: &str) -> Diagnosis {
    let mut evidence = Evidence::default();
    read_bytes(&mut evidence, "paste.txt", text.as_bytes());
    finish(&mut evidence);
    diagnose(rules, evidence)
}

/// The fault of an answer, measured by the title of its case.
fn fault(rules: &RuleSet, asked: &str, diagnosis: &Diagnosis) -> Option<String> {
    let found = &diagnosis.findings;
    let (kind, ids) = asked.split_once(' ').unwrap();
    let mut ids = ids.split(' ');
    assert!(ids.clone().all(|id| rules.get(id).is_some()), "{asked}");
    match kind {
        "first" => {
            let first = found.first().map_or("nothing", |finding| finding.id.as_str());
            ids.all(|id| id != first).then(|| format!("{first} is first"))
        }
        "not" => {
            let of = |id: &str| found.iter().find(|finding| finding.id == id);
            let named = ids.filter_map(of).find(|finding| finding.confidence >= NAMED)?;
            Some(format!("{} is {:.2}", named.id, named.confidence))
        }
        _ => Some(format!("{kind} is neither first nor not")),
    }
}

#[test]
fn no_innocent_is_accused_and_look_alikes_are_distinguished() {
    let rules = RuleSet::bundled().unwrap();
    let mut cases = include_str!("innocents.txt").split("\n=== ");
    cases.next();
    let mut faults = Vec::new();
    for case in cases {
        let (title, text) = case.split_once('\n').unwrap();
        let (name, asked) = title.split_once(": ").unwrap();
        let fault = fault(&rules, asked, &of(&rules, text));
        faults.extend(fault.map(|fault| format!("{name}: {fault}, want {asked}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
