//! What people say, in other words than those of the cases: `told.txt` has a sentence a line.
//!
//! The sentences and the signs that understand them were written by the same hand, so this shows
//! that it stays so, not how good it is on what nobody has seen.

use ogive_doctor::evidence::Evidence;
use ogive_doctor::read::{finish, read_bytes};
use ogive_doctor::rule::RuleSet;

/// The first cause that is named; `unknown` for none, and `~cause` where one is near.
fn answer(rules: &RuleSet, host: &str, text: &str) -> String {
    let mut evidence = Evidence::default();
    read_bytes(&mut evidence, "report.txt", format!("{text}\n").as_bytes());
    read_bytes(&mut evidence, "version.txt", host.as_bytes());
    finish(&mut evidence);
    let diagnosis = ogive_doctor::diagnose(rules, evidence);
    let near = || match diagnosis.considered.first() {
        Some((id, confidence)) if *confidence >= 0.30 => format!("~{id}"),
        _ => "unknown".to_owned(),
    };
    diagnosis.findings.first().map_or_else(near, |finding| finding.id.clone())
}

fn host(options: &[(&str, &str)]) -> String {
    let of = |name: &str, otherwise: &'static str| {
        options
            .iter()
            .find(|(key, _)| *key == name)
            .map_or(otherwise.to_owned(), |o| o.1.to_owned())
    };
    match of("os", "Linux").as_str() {
        "FreeBSD" => "FreeBSD host 14.0-RELEASE FreeBSD 14.0-RELEASE amd64\n".to_owned(),
        "illumos" => "SunOS host 5.11 joyent_20200101T000000Z i86pc i386 i86pc\n".to_owned(),
        _ => {
            let zfs = of("zfs", "2.1.5");
            format!("zfs-{zfs}\nzfs-kmod-{zfs}\nLinux host 5.15.0\n")
        }
    }
}

#[test]
fn what_people_say_is_understood_in_other_words_and_what_says_nothing_stays_open() {
    let rules = RuleSet::bundled().expect("the rules compile");
    let (mut told, mut open, mut wrong) = (0, 0, Vec::new());
    for line in include_str!("told.txt").lines().filter(|line| !line.starts_with('#')) {
        let (head, text) = line.split_once(": ").expect("a cause and a sentence");
        let mut parts = head.split('|');
        let cause = parts.next().unwrap_or_default();
        let options: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let mut said = answer(&rules, &host(&options), text);
        // What is open may have something near.
        if cause == "unknown" && said.starts_with('~') {
            "unknown".clone_into(&mut said);
        }
        told += usize::from(cause != "unknown");
        open += usize::from(cause == "unknown");
        if said != cause {
            wrong.push(format!("{cause}, not {said}: {text}"));
        }
    }
    assert!(told > 120 && open > 10, "{told} and {open}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
