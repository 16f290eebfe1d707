//! A cause that a host cannot have is never named: not as a finding, not as the nearest cause, not
//! as a look-alike. Every rule is tried on every release and system that excludes it.

use ogive_doctor::atlas;
use ogive_doctor::evidence::{Evidence, Source, Statement};
use ogive_doctor::facts::{Facts, SYSTEMS};
use ogive_doctor::read::{finish, read_bytes};
use ogive_doctor::rule::{Expectation, Rule, RuleSet};

fn stated(text: &str) -> Option<Statement<String>> {
    let source = Source { input: "host".into(), line: None };
    Some(Statement { value: text.to_owned(), source })
}

/// The evidence of a test of the rule in which the rule is found.
fn convincing(rule: &Rule) -> Option<Evidence> {
    let found = rule
        .text
        .tests
        .iter()
        .find(|test| !matches!(test.expect, Expectation::Absent | Expectation::Insufficient))?;
    let mut evidence = Evidence::default();
    for (name, content) in &found.files {
        read_bytes(&mut evidence, name, content.as_bytes());
    }
    finish(&mut evidence);
    Some(evidence)
}

/// The same evidence on another host.
fn moved(mut evidence: Evidence, system: &str, release: &str) -> Evidence {
    evidence.host.os = stated(system);
    evidence.host.zfs_version = stated(release);
    (evidence.host.kernel, evidence.host.distribution) = (None, None);

    evidence
}

#[test]
fn a_cause_that_a_host_cannot_have_is_never_named() {
    let rules = RuleSet::bundled().expect("the rules compile");
    let (mut tried, mut ruled_out) = (0, 0);
    for rule in rules.iter() {
        let Some(evidence) = convincing(rule) else { continue };
        for system in SYSTEMS {
            let is_out = |release: &&&str| {
                tried += 1;
                let host = moved(Evidence::default(), system, release);
                Facts::new(host).cannot_have(&rule.text.requires).is_some()
            };
            let out: Vec<&&str> = atlas::releases().iter().filter(is_out).collect();
            // The newest excluded release represents the older ones, whatever excludes them.
            if let Some(release) = out.last() {
                ruled_out += 1;
                let host = moved(evidence.clone(), system, release);
                let answer = ogive_doctor::diagnose(&rules, host);
                let text = format!("{answer:?}");
                // Evidence may mention the cause; the answer about the host may not.
                let id = format!("{:?}", rule.text.id);
                assert!(!text.contains(&id), "{id} on {system} with ZFS {release}");
                assert!(
                    !answer.verdict.sentence.contains(&rule.text.title),
                    "{id} on {system} with ZFS {release}: {}",
                    answer.verdict.sentence
                );
            }
        }
    }
    assert!(tried > 20_000 && ruled_out > 60, "{tried} tried, {ruled_out} ruled out");
}
