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

/// In a debug build the long traces take too long.
const REQUESTS_MAX: u64 = if cfg!(debug_assertions) { 60_000 } else { u64::MAX };

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

#[test]
fn policies_are_what_libcachesim_has() {
    let mut differences: BTreeMap<String, Vec<(f64, String)>> = BTreeMap::new();
    for (trace, rows) in peers() {
        let Some(requests) = (rows[0].requests <= REQUESTS_MAX)
            .then(|| common::requests(&trace))
            .flatten()
        else {
            eprintln!("left out: {trace} (run with --release, OGIVE_TRACES set)");
            continue;
        };
        for row in rows {
            let difference = difference(&row, &requests);
            let place = format!("{trace} at {}: {difference:+.4}", row.entries);
            differences.entry(row.policy).or_default().push((difference, place));
        }
    }
    for (policy, rows) in &differences {
        let worst = rows.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap();
        let mean = rows.iter().map(|row| row.0).sum::<f64>() / rows.len() as f64;
        let exact = rows.iter().filter(|row| row.0.abs() <= 0.00005 + 1e-9).count();
        eprintln!("{policy}: {exact} of {} as printed, mean {mean:+.4}, worst {}", rows.len(), worst.1);
        if exact < rows.len() { for row in rows { if row.0.abs() > 0.00006 { eprintln!("   {}", row.1); } } }
    }
}
