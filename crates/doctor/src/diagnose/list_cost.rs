//! Tests: a long list of threads is scanned about once, however many rules ask about it. The test
//! counts rows and names, and reads no clock.

use crate::answers::Answers;
use crate::evidence::{Evidence, Source, Thread};
use crate::expression::Environment;
use crate::facts::Facts;
use crate::rule::RuleSet;

use super::weigh;

/// Rows and names that all rules together visit in a list with this many threads.
fn work(rules: &RuleSet, threads: usize, name: impl Fn(usize) -> String) -> u64 {
    let row = |at: usize| {
        let source = Source { input: "ps.txt".into(), line: u32::try_from(at).ok() };
        Thread {
            id: Some(at as u64),
            cpu_percent: Some(0.1),
            cpu_time_s: Some(1.0),
            state: Some('S'),
            ..Thread::named(name(at), 0, source)
        }
    };
    let threads = (0..threads).map(row).collect();
    let facts = Facts::with_patterns(Evidence { threads, ..Evidence::default() }, rules.patterns());
    let environment = Environment::new(facts);
    Answers::of(environment.facts());
    for rule in rules.iter() {
        let _ = weigh::weigh(rule, &environment);
    }
    environment.facts().work()
}

#[test]
fn a_long_list_of_threads_is_scanned_a_few_times_for_all_rules_together() {
    let rules = RuleSet::bundled().expect("the rules compile");
    // Names repeat, as in workers and in a server's threads.
    let usual = |at: usize| ["java", "z_wr_iss", "nginx", "kworker/3:1"][at % 4].to_owned();
    let few = work(&rules, 3_000, usual);
    let many = work(&rules, 6_000, usual);
    assert!(many < 6_000 * 40, "{many} for 6000 rows");
    assert!(many < 3 * few, "{few} for 3000 rows, {many} for 6000");
    // Where each thread has its own name, each name meets each pattern once.
    let few = work(&rules, 3_000, |at| format!("worker-{at}"));
    let many = work(&rules, 6_000, |at| format!("worker-{at}"));
    assert!(many < 3 * few, "{few} for 3000 names, {many} for 6000");
}
