//! Events in the log of a mount: each event once, with its figures as members.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::{Place, assert_code, ogive};
use serde_json::Value;

/// The lines of a log that report an event.
fn events(log: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| !line["event"].is_null()).collect()
}

#[test]
fn a_change_of_rule_and_an_exhausted_budget_are_reported_once() {
    let Some(place) = Place::mountable() else { return };
    let (log, device) = (place.path("log"), place.path("l2"));
    fs::File::create(&device).unwrap().set_len(64 << 20).unwrap();
    // Not compressible, and larger than the sum of the cache's memory, the allowed burst of writes,
    // and the writes between two checks.
    let mut state = 1_u64;
    let bytes: Vec<u8> = (0..80 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    for (number, part) in bytes.chunks(1 << 20).enumerate() {
        fs::write(place.source().join(number.to_string()), part).unwrap();
    }
    let (log_argument, device) = (log.to_str().unwrap(), device.to_str().unwrap());
    let mut line = vec!["mount", "--direct-io", "--arc-max=8M", "--log-format=json"];
    line.extend(["--log-file", log_argument, "--l2", device, "--cipher=off", "--l2-admit=all"]);
    line.push("--l2-write-max=4k");
    let (source, mount_point) = (place.source(), place.mount_point());
    line.extend([source.to_str().unwrap(), mount_point.to_str().unwrap()]);
    assert_code(&ogive(line), 0);

    let mut found = Vec::new();
    let has = |found: &[Value], event| found.iter().any(|line| line["event"] == event);
    for round in 0..200 {
        // A working set that moves on, so the records that LIRS keeps are useless.
        for number in 0..80 {
            let near = (round * 4 + number % 4) % 80;
            assert_eq!(fs::read(mount_point.join(number.to_string())).unwrap().len(), 1 << 20);
            assert_eq!(fs::read(mount_point.join(near.to_string())).unwrap().len(), 1 << 20);
        }
        found = events(&fs::read_to_string(&log).unwrap());
        if has(&found, "rule_changed") && has(&found, "l2_budget_reached") {
            break;
        }
        thread::sleep(Duration::from_millis(200));
    }
    let of = |event: &str| found.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let (rules, budgets) = (of("rule_changed"), of("l2_budget_reached"));
    assert!(!rules.is_empty() && budgets.len() == 1, "{found:?}");
    for rule in &rules {
        let rules = ["lirs", "lru", "2q", "arc"];
        let name = |member: &str| rules.iter().find(|name| rule[member] == **name).unwrap();
        assert!(name("from") != name("to") && rule["content"].is_string(), "{rule}");
    }
    // A slow device of the machine may be reported as well, as a warning.
    let mut ours = rules.iter().chain(&budgets);
    assert!(ours.all(|line| line["level"] == "notice"), "{found:?}");
}
