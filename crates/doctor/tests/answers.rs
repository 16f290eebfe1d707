//! Answers that name no cause, which are answers too.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose, report};

fn diagnosed(name: &str, content: &str) -> Diagnosis {
    let mut loader = Loader::new();
    loader.add_bytes(name, content.as_bytes().to_vec());
    diagnose(&RuleSet::bundled().expect("they compile"), loader.read().evidence)
}

#[test]
fn a_thread_name_alone_is_no_diagnosis() {
    let diagnosis = diagnosed(
        "top.txt",
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n    \
         803 root      20   0       0      0      0 R  99.7  0.0  41:38.33 arc_prune\n",
    );
    let sure: Vec<_> =
        diagnosis.findings.iter().filter(|finding| finding.confidence >= 0.7).collect();
    assert!(sure.is_empty(), "{sure:?}");
    assert!(diagnosis.verdict.ask.is_some());
}

#[test]
fn nothing_given_is_not_enough_evidence_and_says_what_to_run() {
    let diagnosis = diagnosed("report.txt", "The server is slow today.\n");
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Insufficient);
    assert!(diagnosis.verdict.ask.is_some() && diagnosis.findings.is_empty());
    let text = report::text(&diagnosis, report::Style::default());
    assert!(text.lines().next().is_some_and(|line| line.starts_with("Not enough evidence")));
}

#[test]
fn what_comes_from_outside_is_escaped_in_the_page_and_harmless_on_a_terminal() {
    let diagnosis = diagnosed("a<script>.txt", "zzz \x1b[31m <script>alert(1)</script> 7;;;\n");
    let page = report::html(&diagnosis, None);
    assert!(!page.contains("<script>"), "{page}");
    assert!(!report::text(&diagnosis, report::Style::default()).contains('\x1b'));
}
