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

const PROCESSES_THEN_THREADS: &str = "\
top - 10:11:01 up 14:51,  2 users,  load average: 1.03, 1.77, 1.61
Tasks: 163 total,   1 running, 162 sleeping,   0 stopped,   0 zombie
%Cpu(s): 50.0 us,  2.0 sy,  0.0 ni, 48.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    500 user      20   0   30000   4000   3000 R  98.8   0.0  29:13.91 ogive
    700 user      20   0   30000   4000   3000 R   3.8   0.0  29:13.91 sshd

top - 10:11:05 up 14:51,  2 users,  load average: 1.03, 1.77, 1.61
Threads: 563 total,   1 running, 562 sleeping,   0 stopped,   0 zombie
%Cpu(s): 50.0 us,  2.0 sy,  0.0 ni, 48.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    500 user      20   0   30000   4000   3000 R   0.8   0.0  29:13.91 ogive
    501 user      20   0   30000   4000   3000 R  50.8   0.0  29:13.91 fuser-0
    502 user      20   0   30000   4000   3000 R  48.8   0.0  29:13.91 fuser-1
    700 user      20   0   30000   4000   3000 R   3.8   0.0  29:13.91 sshd
";

#[test]
fn a_process_and_its_threads_are_not_added_up() {
    let diagnosis = diagnosed("top.txt", PROCESSES_THEN_THREADS);
    let users = &diagnosis.overview.consumers;
    let all: f64 = users.iter().map(|user| user.share_percent).sum();
    assert!(all < 101.0, "{users:?}");
    assert_eq!(users[0].name, "fuser-0", "the list of threads says more than that of processes");
}

#[test]
fn threads_of_a_program_count_for_it_where_its_number_is_known() {
    let mut loader = Loader::new();
    let task = |pid: u32, tid: u32, name: &str, user: u32| {
        let zeroes = "0 ".repeat(30);
        format!("{pid} {tid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} 0 {zeroes}\n")
    };
    for (moment, user) in [("start", 0), ("end", 300)] {
        let mut text = task(500, 500, "ogive", user / 100);
        text += &task(500, 501, "fuser-0", user);
        text += &task(500, 502, "fuser-1", user);
        text += &task(700, 700, "sshd", user / 3);
        loader.add_bytes(&format!("{moment}/thread-stats.txt"), text.into_bytes());
        let stat =
            format!("cpu  {} 0 0 {} 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n", 8 * user / 3, user);
        loader.add_bytes(&format!("{moment}/proc/stat"), stat.into_bytes());
    }
    let rules = RuleSet::bundled().expect("they compile");
    let diagnosis = diagnose(&rules, loader.read().evidence);
    let users = &diagnosis.overview.consumers;
    let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["ogive", "sshd"], "{users:?}");
    assert_eq!(users[0].threads[0].0, "fuser");
    // 600 of the 800 busy ticks are its session threads', 3 its own.
    assert_eq!(users[0].threads[0].1, 75.0, "{users:?}");
    assert!(users[0].threads[1].1 < 1.0, "{users:?}");
}
