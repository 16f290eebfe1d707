//! Promise: our reference policies are those of their papers, as an independent implementation
//! has them.
//!
//! `peer_counts.csv` has what libCacheSim's `cachesim` (github.com/1a1a11a/libCacheSim,
//! aa0fc409, October 2024) prints: miss ratios with four digits.
//! `bench/simulator/check.sh` makes it anew. Where the algorithm is fully determined our miss
//! ratio, rounded, must be the printed one; elsewhere the tolerance and its reason stand below.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

/// In a debug build the long traces take too long; else there is no bound.
const REQUESTS_MAX: Option<u64> = if cfg!(debug_assertions) { Some(60_000) } else { None };

#[derive(Debug)]
struct Peer {
    entries: u64,
    policy: String,
    requests: u64,
    miss_ratio: f64,
}

fn peers() -> BTreeMap<String, Vec<Peer>> {
    let mut peers: BTreeMap<String, Vec<Peer>> = BTreeMap::new();
    for line in include_str!("peer_counts.csv").lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        peers.entry(columns[0].to_owned()).or_default().push(Peer {
            entries: columns[1].parse().unwrap(),
            policy: columns[2].to_owned(),
            requests: columns[3].parse().unwrap(),
            miss_ratio: columns[4].parse().unwrap(),
        });
    }
    peers
}

fn difference(peer: &Peer, requests: &[ogive_sim::Request]) -> f64 {
    assert_eq!(peer.requests, requests.len() as u64);
    let hits = common::hits(&peer.policy, peer.entries, requests);
    let ours = 1.0 - hits as f64 / peer.requests as f64;
    ours - peer.miss_ratio
}

/// Worst and mean difference that is allowed, by policy.
fn check(policy: &str, rows: &[(u64, f64, String)]) {
    let worst = rows.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap();
    // A printed digit that is rounded is off by at most half of its last place.
    let exact = rows.iter().filter(|row| row.1.abs() <= 0.000_050_1).count();
    eprintln!("{policy}: {exact} of {} as printed, worst {}", rows.len(), worst.2);
    match policy {
        // libCacheSim keeps no bound on non-resident blocks and rounds its 1% of HIR blocks
        // to what is too few in small caches, where it is up to 12 points behind; from 500
        // entries on both agree within a point.
        "lirs" => {
            let large = rows.iter().filter(|row| row.0 >= 500);
            for row in large {
                assert!(row.1.abs() < 0.01, "{}", row.2);
            }
            assert!(rows.iter().all(|row| row.1 < 0.025), "{}", worst.2);
        }
        // Its window of 1% is no entry at all in caches below 100, its sketch is another, and
        // on OLTP it is 2 to 8 points behind Caffeine's; ours must not be behind it there.
        "w-tinylfu-fixed" => {
            let oltp = rows.iter().filter(|row| row.2.starts_with("arc-OLTP"));
            for row in oltp {
                assert!((-0.06..0.0).contains(&row.1), "{}", row.2);
            }
            let mean = rows.iter().map(|row| row.1).sum::<f64>() / rows.len() as f64;
            assert!(mean < 0.0, "{mean}");
        }
        _ => assert_eq!(exact, rows.len(), "{policy}: {}", worst.2),
    }
}

#[test]
fn policies_are_what_libcachesim_has() {
    let mut differences: BTreeMap<String, Vec<(u64, f64, String)>> = BTreeMap::new();
    for (trace, rows) in peers() {
        let is_short = REQUESTS_MAX.is_none_or(|most| rows[0].requests <= most);
        let Some(requests) = is_short.then(|| common::requests(&trace)).flatten() else {
            eprintln!("left out: {trace} (run with --release, OGIVE_TRACES set)");
            continue;
        };
        for row in rows {
            let difference = difference(&row, &requests);
            let place = format!("{trace} at {}: {difference:+.4}", row.entries);
            differences.entry(row.policy).or_default().push((row.entries, difference, place));
        }
    }
    assert_eq!(differences.len(), 9);
    differences.iter().for_each(|(policy, rows)| check(policy, rows));
}

/// The row of LIRS for OLTP in Table IV of the ARC paper (FAST '03). The cell at 5000 is left
/// out: 47.14 stands there, less than half way from its neighbours and below LFU's trend, and no
/// implementation we know gives it.
#[test]
fn lirs_has_the_printed_row_of_oltp() {
    let Some(requests) = (!cfg!(debug_assertions)).then(|| common::requests("arc-OLTP")).flatten()
    else {
        eprintln!("left out: arc-OLTP (run with --release, OGIVE_TRACES set)");
        return;
    };
    for (entries, printed) in [(1000, 34.80), (2000, 42.51), (10_000, 60.35), (15_000, 63.99)] {
        let percent = 100.0 * common::hits("lirs", entries, &requests) as f64 / 914_145.0;
        assert!((percent - printed).abs() < 0.03, "{entries}: {percent}, printed {printed}");
    }
}

/// `caffeine_ratios.csv` has the hit ratios of Caffeine 3.2.2 itself, with maintenance on the
/// calling thread. Its sketch hashes otherwise and its main cache has a bit of luck on purpose
/// (it admits a losing candidate now and then), so single cells differ.
#[test]
fn w_tinylfu_is_near_caffeine() {
    let mut differences = Vec::new();
    for line in include_str!("caffeine_ratios.csv").lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let (trace, entries) = (columns[0], columns[1].parse().unwrap());
        let is_long = !trace.starts_with("lirs-") || trace == "lirs-loop";
        if cfg!(debug_assertions) && is_long || common::file(trace).is_none() {
            eprintln!("left out: {trace} (run with --release, OGIVE_TRACES set)");
            continue;
        }
        let requests = common::requests(trace).unwrap();
        let hits = common::hits("w-tinylfu", entries, &requests);
        let percent = 100.0 * hits as f64 / requests.len() as f64;
        let difference = percent - columns[2].parse::<f64>().unwrap();
        eprintln!("{trace} at {entries}: {percent:.2}, {difference:+.2}");
        differences.push(difference);
    }
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    assert!(mean.abs() < 1.0, "{mean} points on the mean");
    assert!(differences.iter().all(|difference| difference.abs() < 3.0), "{differences:?}");
}
