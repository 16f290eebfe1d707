//! Running a workload and counting what it took.

use crate::caches::{Candidate, candidates};
use crate::workload::Workload;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

/// How much to do.
pub struct Plan {
    pub threads: Vec<usize>,
    pub rounds: usize,
    pub operations: usize,
}

impl Plan {
    pub fn quick() -> Self {
        Self { threads: vec![1, 2, 8], rounds: 5, operations: 200_000 }
    }
    pub fn full() -> Self {
        Self { threads: vec![1, 2, 8, 32], rounds: 7, operations: 300_000 }
    }
}

/// The cost of one run.
#[derive(Clone)]
pub struct Sample {
    /// Operations a second of the wall, by all threads, from when the first began to when the last
    /// was done.
    pub rate: f64,
    /// CPU time of an operation.
    pub cpu_ns: f64,
    /// 99.9 of 100 timed hits took less, by the wall clock and with the two looks at it.
    pub tail_ns: f64,
    pub hits: f64,
    pub hot_hits: f64,
    pub locks: Option<f64>,
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct Sums {
    began: Instant,
    ended: Instant,
    cpu_ns: u64,
    hits: u64,
    hot: u64,
    hot_hits: u64,
    timed_ns: Vec<u64>,
}

/// Every so many hits one is timed.
const TIMED_EVERY: usize = 64;

fn work(candidate: &dyn Candidate, workload: &Workload, keys: &[u64], start: &Barrier) -> Sums {
    let mut into = vec![0_u8; workload.page_bytes];
    let copies = workload.copies;
    let mut look = |key| {
        candidate.get(key, &mut |value| {
            if copies {
                into.copy_from_slice(value);
                black_box(&mut into);
            } else {
                black_box(value[0]);
            }
        })
    };
    start.wait();
    let began = Instant::now();
    let mut sums =
        Sums { began, ended: began, cpu_ns: 0, hits: 0, hot: 0, hot_hits: 0, timed_ns: Vec::new() };
    let before_ns = thread_cpu_ns();
    for &key in keys {
        let hit = look(key);
        sums.hits += u64::from(hit);
        if key < workload.hot {
            sums.hot += 1;
            sums.hot_hits += u64::from(hit);
        }
        if !hit {
            candidate.insert(key);
        }
    }
    sums.cpu_ns = thread_cpu_ns() - before_ns;
    sums.ended = Instant::now();
    for &key in keys.iter().step_by(TIMED_EVERY) {
        let before = Instant::now();
        let hit = look(key);
        let took = before.elapsed().as_nanos() as u64;
        if hit {
            sums.timed_ns.push(took);
        }
    }
    sums
}

/// One run: a thread for each of `keys`, all of one length.
pub fn run(candidate: &dyn Candidate, workload: &Workload, keys: &[Vec<u64>]) -> Sample {
    let threads = keys.len();
    let (start, all) = (Barrier::new(threads), Mutex::new(Vec::new()));
    let locks = candidate.locks();
    std::thread::scope(|scope| {
        for keys in keys {
            let (start, all) = (&start, &all);
            scope.spawn(move || {
                let sums = work(candidate, workload, keys, start);
                all.lock().expect("no panic").push(sums);
            });
        }
    });
    let after = candidate.locks();
    let sums = all.into_inner().expect("no panic");
    // By the threads' own clocks: on a busy machine they may be done before the one that started
    // them is on a processor again.
    let began = sums.iter().map(|sums| sums.began).min();
    let ended = sums.iter().map(|sums| sums.ended).max();
    let seconds = began.zip(ended).map_or(0.0, |(began, ended)| (ended - began).as_secs_f64());
    let count = keys.iter().map(Vec::len).sum::<usize>() as f64;
    let total = |of: fn(&Sums) -> u64| sums.iter().map(of).sum::<u64>() as f64;
    let mut timed: Vec<u64> = sums.iter().flat_map(|sums| sums.timed_ns.iter().copied()).collect();
    timed.sort_unstable();
    let tail = timed.get(timed.len() * 999 / 1000).copied().unwrap_or(0);
    Sample {
        rate: count / seconds,
        cpu_ns: total(|s| s.cpu_ns) / count,
        tail_ns: tail as f64,
        hits: total(|s| s.hits) / count,
        hot_hits: total(|s| s.hot_hits) / total(|s| s.hot).max(1.0),
        locks: after.zip(locks).map(|(after, before)| (after - before) as f64 / count),
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// The memory of each of a million entries of one byte, everything included. It is resident memory
/// when full, and after three times as many more have come.
pub fn resident(name: &str) {
    const COUNT: u64 = 1_000_000;
    // Before it is made: some have all their room from the beginning.
    let before = resident_bytes();
    let candidates = candidates(Some(name), COUNT as usize, 1);
    let Some(candidate) = candidates.first() else {
        eprintln!("no candidate {name}");
        return;
    };
    for key in 0..COUNT {
        candidate.insert(key);
    }
    let full = resident_bytes() - before;
    for key in COUNT..4 * COUNT {
        candidate.insert(key);
    }
    let churned = resident_bytes() - before;
    println!("{:.1} {:.1}", full as f64 / COUNT as f64, churned as f64 / COUNT as f64);
}
