//! Replays traces through replacement policies and prints how good each one's judgement is:
//! hits as a share of Belady's optimum, against ARC, against the best of the others.

#[path = "../../../crates/arc/tests/common/mod.rs"]
mod common;
mod candidates;
mod lists;
mod ours;
mod peers;

use peers::Replacement;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Mutex, atomic::{AtomicUsize, Ordering}};

#[derive(Clone, Debug)]
struct Row {
    trace: String,
    entries: usize,
    requests: u64,
    golden: BTreeMap<String, u64>,
}

fn rows() -> Vec<Row> {
    let file = common::folder().expect("a folder with traces: set OGIVE_TRACES").join("golden.csv");
    let text = std::fs::read_to_string(file).expect("golden.csv can be read");
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().skip(1) {
        let c: Vec<_> = line.split(',').collect();
        let (entries, hits) = (c[1].parse().expect("entries"), c[3].parse().expect("hits"));
        let fits = |row: &&mut Row| row.trace == c[0] && row.entries == entries;
        match rows.iter_mut().find(fits) {
            Some(row) => {
                row.golden.insert(c[2].to_owned(), hits);
            }
            None => rows.push(Row {
                trace: c[0].to_owned(),
                entries,
                requests: c[4].parse().expect("requests"),
                golden: BTreeMap::from([(c[2].to_owned(), hits)]),
            }),
        }
    }
    rows
}

fn dense(keys: Vec<u64>) -> (Vec<u32>, usize) {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let all = keys
        .into_iter()
        .map(|key| {
            let new = numbers.len() as u32;
            *numbers.entry(key).or_insert(new)
        })
        .collect();
    (all, numbers.len())
}

/// Dense numbers of a trace, from a cache file where `JUDGEMENT_CACHE` names a folder.
fn load(trace: &str) -> (Vec<u32>, usize) {
    let cached = std::env::var_os("JUDGEMENT_CACHE")
        .map(|folder| std::path::PathBuf::from(folder).join(format!("{trace}.u32")));
    if let Some(bytes) = cached.as_ref().and_then(|file| std::fs::read(file).ok()) {
        let all: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let numbers = all.iter().max().map_or(0, |&m| m as usize + 1);
        return (all, numbers);
    }
    let (all, numbers) = dense(common::keys(trace));
    if let Some(file) = cached {
        let bytes: Vec<u8> = all.iter().flat_map(|n| n.to_le_bytes()).collect();
        let _ = std::fs::write(file, bytes);
    }
    (all, numbers)
}

fn make(name: &str, numbers: usize, entries: usize) -> Box<dyn Replacement> {
    match name {
        "lru" => Box::new(peers::Lru::new(numbers, entries)),
        "fifo" => Box::new(peers::Fifo::new(numbers, entries)),
        "clock" => Box::new(peers::Clock::new(numbers, entries)),
        "sieve" => Box::new(peers::Sieve::new(numbers, entries)),
        "2q" => Box::new(peers::TwoQ::new(numbers, entries)),
        "arc" => Box::new(peers::Arc::new(numbers, entries)),
        "lirs" => Box::new(peers::Lirs::new(numbers, entries)),
        "s3fifo" => Box::new(peers::S3Fifo::new(numbers, entries)),
        "wtinylfu" => Box::new(peers::WTinyLfu::new(numbers, entries)),
        other => ours::make(other, entries).unwrap_or_else(|| candidates::make(other, numbers, entries)),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let policies: Vec<String> = arguments
        .next()
        .unwrap_or_else(|| "lru,clock,sieve,2q,arc,lirs,s3fifo,wtinylfu".into())
        .split(',')
        .map(str::to_owned)
        .collect();
    let requests_max: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let only = arguments.next().unwrap_or_default();
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|r| r.requests <= requests_max && r.golden.contains_key("opt"))
        .filter(|r| r.trace.contains(&only))
        .collect();
    let mut traces: Vec<String> = rows.iter().map(|r| r.trace.clone()).collect();
    traces.dedup();
    let results: Mutex<HashMap<(String, usize, String), (u64, String)>> = Mutex::default();
    for trace in traces {
        let (keys, numbers) = load(&trace);
        let jobs: Vec<(usize, &String)> = rows
            .iter()
            .filter(|r| r.trace == trace)
            .flat_map(|r| policies.iter().map(move |p| (r.entries, p)))
            .collect();
        let next = AtomicUsize::new(0);
        let workers: usize = std::env::var("WORKERS").ok().and_then(|w| w.parse().ok()).unwrap_or(2);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(&(entries, policy)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut cache = make(policy, numbers, entries);
                        let hits = keys.iter().filter(|&&key| cache.access(key)).count() as u64;
                        let mut all = results.lock().expect("no panic");
                        all.insert((trace.clone(), entries, policy.clone()), (hits, cache.tell()));
                    }
                });
            }
        });
    }
    let results = results.into_inner().expect("no panic");
    let out = std::io::stdout();
    let mut out = out.lock();
    let _ = writeln!(out, "trace,entries,requests,opt,{}", policies.join(","));
    for row in &rows {
        let _ = write!(out, "{},{},{},{}", row.trace, row.entries, row.requests, row.golden["opt"]);
        for p in &policies {
            let (hits, tell) = &results[&(row.trace.clone(), row.entries, p.clone())];
            if let Some(golden) = row.golden.get(p) {
                assert_eq!(golden, hits, "{p} {} {}", row.trace, row.entries);
            }
            let _ = write!(out, ",{hits}");
            if !tell.is_empty() {
                eprintln!("{} {} {p}: {tell}", row.trace, row.entries);
            }
        }
        let _ = writeln!(out);
    }
}
