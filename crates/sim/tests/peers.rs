//! Promise: the reference policies equal those of the published simulators, hit for hit.
//!
//! `peer_counts.csv` has the hits of two simulators, with every key weighing 1. They are
//! libCacheSim 0.3.5 (github.com/1a1a11a/libCacheSim, by S3-FIFO's and SIEVE's authors) and that of
//! Caffeine 3.2.0 (github.com/ben-manes/caffeine, by an author of W-TinyLFU).
//! `bench/simulator/counts.py` generates it. `s3_fifo_printed.csv` has the miss ratios, with four
//! digits, that libCacheSim printed before S3-FIFO was changed (aa0fc409, October 2024).
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::collections::BTreeMap;

/// In a debug build the long traces take too long; a release build has no bound.
const REQUESTS_MAX: Option<u64> = if cfg!(debug_assertions) { Some(600_000) } else { None };

struct Row {
    entries: u64,
    policy: String,
    requests: u64,
    /// The last column.
    figure: f64,
}

/// Rows by trace, for traces that are available and short enough, with their requests.
fn rows(
    text: &str,
    policy: impl Fn(&[&str]) -> String,
) -> Vec<(Vec<ogive_sim::Request>, Vec<Row>)> {
    let mut traces: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let [requests, figure] = columns[columns.len() - 2..] else { panic!("{line}") };
        traces.entry(columns[0]).or_default().push(Row {
            entries: columns[1].parse().unwrap(),
            policy: policy(&columns),
            requests: requests.parse().unwrap(),
            figure: figure.parse().unwrap(),
        });
    }
    let mut all = Vec::new();
    for (trace, rows) in traces {
        let is_short = REQUESTS_MAX.is_none_or(|most| rows[0].requests <= most);
        let Some(requests) = is_short.then(|| common::requests(trace)).flatten() else {
            skipped(format_args!(
                "{trace} needs --release, and OGIVE_TRACES if it is not in the tree"
            ));
            continue;
        };
        assert!(rows.iter().all(|row| row.requests == requests.len() as u64), "{trace}");
        all.push((requests, rows));
    }
    all
}

/// Whether a policy depends on a hash function, because it counts in a sketch.
fn has_a_sketch(policy: &str) -> bool {
    matches!(policy, "w-tinylfu" | "w-tinylfu-fixed")
}

#[test]
fn policies_have_the_hits_of_the_published_simulators() {
    let mut cells: BTreeMap<String, u32> = BTreeMap::new();
    let counts = rows(include_str!("peer_counts.csv"), |columns| columns[3].to_owned());
    for (requests, rows) in counts {
        for row in rows.iter().filter(|row| !has_a_sketch(&row.policy)) {
            let hits = common::hits(&row.policy, row.entries, &requests);
            assert_eq!(hits as f64, row.figure, "{} at {}", row.policy, row.entries);
            *cells.entry(row.policy.clone()).or_default() += 1;
        }
    }
    eprintln!("cells that are equal: {cells:?}");
    assert_eq!(cells.len(), 10);
    // The minimum is that of the traces in the tree, in a debug build.
    assert!(cells.values().all(|&cells| cells >= 40), "{cells:?}");
}

/// The policy with exact counts equals Caffeine's to the last hit (above). With a sketch its hash
/// and its random numbers differ: the mean is the same, single cells are not.
#[test]
fn w_tinylfu_with_a_sketch_equals_caffeines_on_average() {
    let mut differences = Vec::new();
    let counts = rows(include_str!("peer_counts.csv"), |columns| columns[3].to_owned());
    for (requests, rows) in counts {
        for row in rows.iter().filter(|row| has_a_sketch(&row.policy)) {
            let hits = common::hits(&row.policy, row.entries, &requests) as f64;
            let points = 100.0 * (hits - row.figure) / row.requests as f64;
            differences.push((points, format!("{} at {}", row.policy, row.entries)));
        }
    }
    let mean = differences.iter().map(|(points, _)| points).sum::<f64>() / differences.len() as f64;
    let worst = differences.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap();
    eprintln!("{mean:+.3} points on the mean of {}, worst {worst:?}", differences.len());
    assert!(mean.abs() < 0.25, "{mean} points on the mean");
    assert!(worst.0.abs() < 10.0, "{worst:?}");
}

#[test]
fn s3_fifo_as_printed_has_the_misses_of_its_authors_first_library() {
    let ratios = rows(include_str!("s3_fifo_printed.csv"), |_| "s3-fifo-printed".to_owned());
    assert!(!ratios.is_empty());
    for (requests, rows) in ratios {
        for row in rows {
            let hits = common::hits(&row.policy, row.entries, &requests);
            let ratio = 1.0 - hits as f64 / row.requests as f64;
            // A rounded digit is off by at most half of its last place.
            assert!((ratio - row.figure).abs() <= 0.000_050_1, "{} at {}", row.policy, row.entries);
        }
    }
}

/// LIRS's loop of 1,011 keys in 404 entries. Whether the main queue is used before the first
/// eviction decides between no hits and a third.
#[test]
fn s3_fifo_keeps_a_part_of_a_loop() {
    let requests: Vec<_> = (0..50 * 1011).map(|n| ogive_sim::Request::new(n % 1011, 1)).collect();
    let percent =
        |policy| 100.0 * common::hits(policy, 404, &requests) as f64 / requests.len() as f64;
    assert!((35.0..36.0).contains(&percent("s3-fifo")), "{}", percent("s3-fifo"));
    assert_eq!(percent("s3-fifo-printed"), 0.0);
}

/// The row of LIRS for OLTP in Table IV of the ARC paper (FAST '03). The cell at 5000 is left out:
/// it says 47.14, which is below half way between its neighbours and below LFU's trend, and no
/// known implementation gives it.
#[test]
fn lirs_has_the_printed_row_of_oltp() {
    let Some(requests) = (!cfg!(debug_assertions)).then(|| common::requests("arc-OLTP")).flatten()
    else {
        skipped("arc-OLTP needs --release, and OGIVE_TRACES");
        return;
    };
    for (entries, printed) in [(1000, 34.80), (2000, 42.51), (10_000, 60.35), (15_000, 63.99)] {
        let percent = 100.0 * common::hits("lirs", entries, &requests) as f64 / 914_145.0;
        assert!((percent - printed).abs() < 0.03, "{entries}: {percent}, printed {printed}");
    }
}
