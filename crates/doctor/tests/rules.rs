//! Every rule has all its parts, and every rule passes its own tests.
//!
//! Authors of rules do not read this crate, so a fault names the rule and the missing text.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ogive_doctor::evidence::Evidence;
use ogive_doctor::rule::{Expectation, Role, Rule, RuleSet, lint, sign_key};
use ogive_doctor::{Diagnosis, diagnose, read};

/// Every cause that the doctor must know: those of ZFS by family, those outside ZFS, and ogive's
/// own.
const CAUSES: &str = "
    metaslab-fragmentation
    arc-evict-loop-bug arc-evict-random-sublist arc-prune-dnode-limit arc-prune-many-mounts arc-prune-meta-pinned
    arc-prune-numa-bug freebsd-arc-prune-dispatch
    arc-collapse l2arc-header-overload memory-overcommit-arc-min
    async-destroy-backlog background-free-or-scan background-upgrade free-storm-io quota-accounting snapshot-destroy-storm
    checksum-cost module-load-benchmark raidz-parity-cost scrub-cost simd-unavailable-raidz-fletcher
    arc-decompress-cost compression-cost recordsize-amplification
    bad-tunable cache-disabled dbuf-evict-contention
    brt-clone-delete dedup-arc-buf-chain dedup-ddt
    device-failure-spin
    encryption-ccm encryption-fpu-overhead encryption-no-simd
    recv-forced-txg seek-hole-forced-sync txg-forced-sync txg-sync-loop
    counter-misread innocent-firmware innocent-hardware innocent-kernel-thread innocent-kswapd innocent-loadavg-dstate innocent-user-process iotop-artifact
    latency-bound-single-stream workload-legit zfs-like-btrfs-qgroup idle-host
    cgroup-cpu-limit cgroup-memory-limit fuse-daemon-stands server-wait
    abd-scatter-fragmentation kernel-init-on-alloc kernel-shrinker-storm kmem-reap-tlb-storm page-reclaim-lru-lock
    spl-slab-reclaim
    arc-list-lock-contention dbuf-hash-contention lock-contention-unspecified prefetch-lock-contention
    vdev-queue-lock-contention zio-taskq-contention zvol-taskq-contention
    prefetch-waste readdir-prefetch-nfs
    recv-writer-cpu taskq-thread-churn metadata-path-overhead
    admin-command-scaling monitoring-poll udev-zvol-storm userland-zdb-debug zed-loop
    ogive-record-amplification ogive-arc-too-small ogive-prune-futile ogive-prefetch-wasted
    ogive-l2-slow ogive-origin-slow ogive-healthy
    ogive-bucket-listing ogive-bucket-small-records ogive-bucket-throttled ogive-bucket-credentials
    ogive-bucket-far ogive-bucket-budget ogive-times-doubted
    sync-write-latency slow-device write-throttle memory-shortage arc-memory-normal
    pool-import-work unlinked-set-drain swap-on-zvol object-alloc-contention dirent-scan mmap-read-path encryption-cost
    unknown
";

fn bundled() -> RuleSet {
    RuleSet::bundled().expect("the bundled rules compile")
}

fn none_of(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_known_cause_has_a_rule_and_every_rule_is_known() {
    let rules = bundled();
    let mut faults: Vec<String> = CAUSES
        .split_whitespace()
        .filter(|id| rules.get(id).is_none())
        .map(|id| format!("{id}: no rule"))
        .collect();
    let known: Vec<&str> = CAUSES.split_whitespace().collect();
    faults.extend(
        rules
            .iter()
            .filter(|rule| !known.contains(&rule.text.id.as_str()))
            .map(|rule| format!("{}: name the cause in the list of this test", rule.text.id)),
    );
    none_of(&faults);
}

#[test]
fn patterns_expressions_and_versions_are_sound() {
    none_of(&lint(&bundled()));
}

/// Weights are counted per key, so two signs of a rule with one key would share their weight.
#[test]
fn every_sign_of_a_rule_has_a_key_of_its_own() {
    let mut faults = Vec::new();
    for rule in bundled().iter() {
        let mut keys = BTreeSet::new();
        for sign in &rule.text.signs {
            if !keys.insert(sign_key(sign.kind, &sign.when)) {
                faults.push(format!("{}: two signs of `{}`", rule.text.id, sign.when));
            }
        }
    }
    none_of(&faults);
}

#[test]
fn a_weight_replaces_that_of_its_sign_and_unknown_signs_are_named() {
    let mut rules = bundled();
    let first = rules.iter().next().expect("there are rules");
    let (id, sign) = (first.text.id.clone(), first.text.signs[0].clone());
    let before: Vec<f64> = first.signs.iter().map(|sign| sign.weight).collect();
    let key = sign_key(sign.kind, &sign.when);
    let changed = sign_key(sign.kind, &format!("{} ", sign.when));
    let stale = rules.take_weights(&format!(
        "# a comment\n{id} {key} 1.25 -0.75 1/2 3/4\n{id} {changed} 5 5\nno-such-rule {key} 5 5\n"
    ));
    assert_eq!(stale, [format!("{id} {changed}"), format!("no-such-rule {key}")]);
    let rule = rules.get(&id).expect("it is still there");
    assert_eq!((rule.signs[0].weight, rule.signs[0].otherwise), (1.25, -0.75));
    let after: Vec<f64> = rule.signs.iter().map(|sign| sign.weight).collect();
    assert_eq!(before[1..], after[1..]);
    assert!((rule.text.signs[0].weight - sign.weight).abs() < 1e-9, "the text stays as written");
}

#[test]
fn texts_references_and_remedies_are_complete() {
    let mut faults = Vec::new();
    for rule in bundled().iter() {
        let text = &rule.text;
        let mut lacks = |there: bool, what: &str| {
            if !there {
                faults.push(format!("{}: {what}", text.id));
            }
        };
        lacks(
            text.mechanism.as_ref().is_some_and(|words| words.split_whitespace().count() >= 12),
            "say why it happens (mechanism)",
        );
        lacks(text.affected.is_some(), "say which versions are affected");
        lacks(!text.needs.is_empty(), "say which evidence would settle it (needs)");
        lacks(!text.references.is_empty(), "say where the knowledge is from (references)");
        lacks(
            text.references.iter().all(|at| at.starts_with("https://") || at.starts_with("docs/")),
            "a reference is an address or a document of ours",
        );
        lacks(!text.remedy.now.is_empty(), "a remedy for now, even if it is to wait");
        lacks(!text.remedy.lasting.is_empty(), "a lasting remedy");
        lacks(!text.remedy.verify.is_empty(), "how to see that it worked (verify)");
        lacks(
            text.verdict.ends_with('.') || text.verdict.ends_with('}'),
            "a verdict is a sentence",
        );
        lacks(
            text.tests.iter().any(|test| test.expect == Expectation::Absent),
            "a test in which it must not be found",
        );
        lacks(
            text.tests.iter().any(|test| test.expect != Expectation::Absent),
            "a test in which it must be found",
        );
    }
    none_of(&faults);
}

/// Look-alikes name each other, with two exceptions. A rule for an ogive mount names its
/// counterpart in OpenZFS, whose reports do not involve ogive. An unknown cause is not a useful
/// look-alike.
#[test]
fn look_alikes_know_each_other() {
    let rules = bundled();
    let mut faults = Vec::new();
    for rule in rules.iter() {
        let id = &rule.text.id;
        if rule.text.lookalikes.is_empty() {
            faults.push(format!("{id}: what is it confused with?"));
        }
        for neighbour in &rule.text.lookalikes {
            let other = rules.get(neighbour);
            let back = other.is_some_and(|other| other.text.lookalikes.contains(id));
            let one_way = rule.text.family == "ogive" || rule.text.role == Role::Unknown;
            if !back && !one_way {
                faults.push(format!("{id}: {neighbour} does not know that it looks like {id}"));
            }
        }
    }
    none_of(&faults);
}

/// A look-alike is excluded by its own signs.
#[test]
fn facts_rule_out_look_alikes_and_never_a_finding() {
    let rules = bundled();
    let (mut out, mut open, mut faults) = (0, 0, Vec::new());
    for rule in rules.iter() {
        let found = |expect| !matches!(expect, Expectation::Absent | Expectation::Insufficient);
        let Some(test) = rule.text.tests.iter().find(|test| found(test.expect)) else { continue };
        let mut evidence = Evidence::default();
        for (name, content) in &test.files {
            read::read_bytes(&mut evidence, name, content.as_bytes());
        }
        read::finish(&mut evidence);
        let diagnosis = diagnose::diagnose(&rules, evidence);
        for finding in &diagnosis.findings {
            open += finding.open.len();
            for neighbour in &finding.ruled_out {
                out += 1;
                let is_found = diagnosis.findings.iter().any(|one| one.id == neighbour.cause);
                let has_gap = neighbour.because.split(' ').any(|word| word == "?");
                if is_found || has_gap || neighbour.because.split(' ').count() < 3 {
                    faults.push(format!("{} at {}: {neighbour:?}", finding.id, rule.text.id));
                }
            }
        }
    }
    none_of(&faults);
    assert!(out > 40 && open > 40, "{out} ruled out, {open} open");
}

#[test]
fn a_cause_has_signs_of_more_than_one_kind() {
    let mut faults = Vec::new();
    for rule in bundled().iter().filter(|rule| rule.text.role != Role::Unknown) {
        let mut kinds: Vec<_> = rule
            .text
            .signs
            .iter()
            .filter(|sign| sign.weight >= 0.5)
            .map(|sign| sign.kind)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.len() < 2 && rule.text.signs.len() < 3 {
            faults.push(format!(
                "{}: another report of it may lack the one fact it rests on",
                rule.text.id
            ));
        }
    }
    none_of(&faults);
}

fn holds(expect: Expectation, id: &str, diagnosis: &Diagnosis) -> bool {
    let place = diagnosis.findings.iter().position(|finding| finding.id == id);
    let confidence = place.map_or(0.0, |place| diagnosis.findings[place].confidence);
    // The signs that a remedy worked must not hold while the cause is present.
    let is_found = !matches!(expect, Expectation::Absent | Expectation::Insufficient);
    if is_found && place.is_some_and(|at| diagnosis.findings[at].remedy.worked == Some(true)) {
        return false;
    }
    match expect {
        Expectation::First => place == Some(0),
        Expectation::Certain => confidence >= diagnose::CERTAIN,
        Expectation::Likely => confidence >= diagnose::LIKELY,
        Expectation::Possible => place.is_some(),
        Expectation::Absent => place.is_none(),
        Expectation::Insufficient => diagnosis.verdict.kind == diagnose::VerdictKind::Insufficient,
    }
}

/// A set with one rule.
fn alone(id: &str) -> RuleSet {
    let file = format!("{}/rules/{id}.toml", env!("CARGO_MANIFEST_DIR"));
    let content = std::fs::read_to_string(&file).expect("a rule has a file of its name");
    let mut rules = RuleSet::default();
    rules.add(Rule::parse(&file, &content).expect("a bundled rule compiles"));
    rules
}

#[test]
fn every_rule_passes_its_own_tests() {
    let rules = bundled();
    let cases: Vec<_> = rules
        .iter()
        .flat_map(|rule| rule.text.tests.iter().map(move |test| (rule.text.id.as_str(), test)))
        .collect();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((id, test)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut evidence = Evidence::default();
                    for (name, content) in &test.files {
                        read::read_bytes(&mut evidence, name, content.as_bytes());
                    }
                    read::finish(&mut evidence);
                    // Rules are independent, so a test for absence needs only its own rule.
                    let diagnosis = match test.expect {
                        Expectation::Absent => diagnose::diagnose(&alone(id), evidence),
                        _ => diagnose::diagnose(&rules, evidence),
                    };
                    if !holds(test.expect, id, &diagnosis) || !diagnosis.rule_faults.is_empty() {
                        let found: Vec<String> = diagnosis
                            .findings
                            .iter()
                            .map(|f| format!("{} {:.2}", f.id, f.confidence))
                            .collect();
                        let fault = format!(
                            "{id}: test {:?}: {found:?} {:?}",
                            test.name, diagnosis.rule_faults
                        );
                        faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
                    }
                }
            });
        }
    });
    none_of(&faults.into_inner().unwrap_or_else(PoisonError::into_inner));
}

/// A rule of this crate with a part of its file replaced.
fn changed(id: &str, from: &str, to: &str) -> Result<Rule, String> {
    let file = format!("{}/rules/{id}.toml", env!("CARGO_MANIFEST_DIR"));
    let content = std::fs::read_to_string(&file).expect("a rule has a file of its name");
    assert!(content.contains(from), "{id} has no {from:?}");
    Rule::parse("a.toml", &content.replace(from, to)).map_err(|error| error.to_string())
}

#[test]
fn the_name_of_a_pattern_is_replaced_everywhere() {
    let rules = bundled();
    let rule = rules.get("cache-disabled").expect("a rule of this crate");
    let sign = &rule.text.signs[0];
    assert_eq!(sign.when, r#"prop("primarycache", "^(none|metadata)$")"#);
    assert!(sign.text.contains(r#"{prop_value("primarycache", "^(none|metadata)$")} on {"#));
    assert_eq!(
        sign_key(sign.kind, sign.when.as_str()),
        sign_key(sign.kind, rule.signs[0].when.source())
    );
}

#[test]
fn a_missing_unused_or_wrong_pattern_is_named_with_its_file() {
    let named = "without_data = '^(none|metadata)$'";
    for (from, to, reported) in [
        (named, "", "patterns.without_data: there is no such pattern, used in signs[0].when"),
        (named, "without_data = 'a'\nnobody = 'b'", "patterns.nobody: is used in no expression"),
        (named, "without_data = '^(none'", "patterns.without_data: is no regular expression"),
        (named, "Without-data = 'a'", "patterns.Without-data: a name is a-z, 0-9 and _"),
        (named, "prop = 'a'", "patterns.prop: is a word of the language"),
        (
            "[remedy]\nnow = [",
            "[remedy]\nnow = [{ say = 'x', when = 'elsewhere' },",
            "used in remedy.when",
        ),
        ("verdict = \"", "verdict = \"{nowhere}", "patterns.nowhere: there is no such pattern"),
    ] {
        let fault = changed("cache-disabled", from, to).expect_err(reported);
        assert!(fault.starts_with("a.toml: patterns.") && fault.contains(reported), "{fault}");
    }
}
