//! Promise: LRU, ARC and MIN have exactly the published or counted hits for every available trace,
//! decoded by this crate.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::collections::BTreeMap;

/// Longest trace to use: in a debug build only quick ones.
const REQUESTS_MAX: Option<u64> = if cfg!(debug_assertions) { Some(600_000) } else { None };

#[test]
fn every_golden_count_is_exact() {
    let text = common::golden();
    let mut traces: BTreeMap<&str, Vec<(u64, &str, u64, u64)>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let number = |at: usize| columns[at].parse::<u64>().unwrap();
        traces.entry(columns[0]).or_default().push((number(1), columns[2], number(3), number(4)));
    }
    let mut checked = 0;
    for (trace, rows) in traces {
        let expected = rows[0].3;
        if REQUESTS_MAX.is_some_and(|most| expected > most) {
            skipped(format_args!("{trace} has {expected} requests, which needs --release"));
            continue;
        }
        let requests = common::requests(trace).unwrap();
        assert_eq!(requests.len() as u64, expected, "requests of {trace}");
        for (entries, policy, hits, _) in rows {
            let policy = if policy == "opt" { "min" } else { policy };
            assert_eq!(
                common::hits(policy, entries, &requests),
                hits,
                "{trace} {policy} {entries}"
            );
            checked += 1;
        }
    }
    if common::folder().is_none() {
        skipped("the traces outside the tree: OGIVE_TRACES does not name their folder");
    }
    eprintln!("{checked} counts are exact");
    assert!(checked >= 40, "only {checked} counts were checked");
}
