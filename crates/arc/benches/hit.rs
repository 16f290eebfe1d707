//! The cost of a hit and of a miss, in nanoseconds of wall time. It serves to compare two states of
//! the code on one machine, not two machines.
//!
//! Run it with `cargo bench -p ogive-arc --bench hit`.

use ogive_arc::policy::PlainArc;
use ogive_arc::{Access, Cache, Kind};
use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

const KEYS: u64 = 1 << 16;
const ROUNDS: usize = 9;

/// Prints the median and the spread over rounds of the time of one step.
fn measure(name: &str, steps: u64, mut round: impl FnMut()) {
    round();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_nanos() as f64 / steps as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (median, low, high) = (times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
    println!("{name:40} {median:8.1} ns ({low:.1} to {high:.1})");
}

/// Visits every key once, in an order that is not that of memory.
fn keys() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|n| n.wrapping_mul(40_503) % KEYS)
}

fn main() {
    let mut policy = PlainArc::new(KEYS);
    measure("policy, hit", KEYS, || {
        for key in keys() {
            black_box(policy.access(key, 1, Kind::Data));
        }
    });

    let cache: Cache<u64, u64> = Cache::builder(KEYS).expected_weight_bytes(1).build();
    keys().for_each(|key| drop(cache.insert(key, key, 1, Kind::Data, Access::Demand)));
    measure("cache, hit and release", KEYS, || {
        for key in keys() {
            black_box(cache.get(&key, Access::Demand));
        }
    });
    for threads in [2, 4] {
        let name = format!("cache, hit and release, {threads} threads");
        measure(&name, KEYS * threads, || {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for key in keys() {
                            black_box(cache.get(&key, Access::Demand));
                        }
                    });
                }
            });
        });
    }

    let mut next = KEYS;
    measure("cache, miss, load and eviction", KEYS, || {
        for _ in 0..KEYS {
            next += 1;
            let load = || Ok::<_, Infallible>((next, 1));
            black_box(cache.get_or_load(&next, Kind::Data, Access::Demand, load).is_ok());
        }
    });
}
