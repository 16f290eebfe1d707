//! Replays traces through replacement policies and prints how good each one's judgement is. It
//! gives hits as a share of Belady's optimum, against ARC, and against the best of the others.

#[path = "../../../crates/arc/tests/common/mod.rs"]
mod common;
mod replacement;
mod synthetic;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Clone, Debug)]
struct Row {
    trace: String,
    entries: usize,
    requests: u64,
    golden: BTreeMap<String, u64>,
}

impl Row {
    fn key(&self, policy: &str) -> (String, usize, String) {
        (self.trace.clone(), self.entries, policy.to_owned())
    }

    fn opt(&self) -> u64 {
        self.golden.get("opt").copied().unwrap_or(0)
    }
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
fn load(trace: &str) -> Vec<u32> {
    let cached = std::env::var_os("JUDGEMENT_CACHE")
        .map(|folder| std::path::PathBuf::from(folder).join(format!("{trace}.u32")));
    if let Some(bytes) = cached.as_ref().and_then(|file| std::fs::read(file).ok()) {
        let all: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        return all;
    }
    let (all, _) = dense(common::keys(trace));
    if let Some(file) = cached {
        let bytes: Vec<u8> = all.iter().flat_map(|n| n.to_le_bytes()).collect();
        let _ = std::fs::write(file, bytes);
    }
    all
}

/// Runs policies over rows of one trace on all processors.
fn replay(keys: &[u32], jobs: &[(Row, String)], results: &Mutex<table::Results>) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((row, policy)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut cache = replacement::make(policy, row.entries);
                    let hits = keys.iter().filter(|&&key| cache.access(key)).count() as u64;
                    if let Some(&golden) = row.golden.get(policy) {
                        assert_eq!(golden, hits, "{policy}, {} at {}", row.trace, row.entries);
                    }
                    let tell = cache.tell();
                    if !tell.is_empty() {
                        eprintln!("{} {} {policy}: {tell}", row.trace, row.entries);
                    }
                    results.lock().expect("no panic").insert(row.key(policy), hits);
                }
            });
        }
    });
}

/// Rows of the synthetic traces, with the optimum and ARC counted here.
fn synthetic_rows(results: &Mutex<table::Results>, policies: &[String]) -> Vec<Row> {
    let mut all = Vec::new();
    for name in synthetic::NAMES {
        for entries in synthetic::ENTRIES {
            let (keys, numbers) = dense(synthetic::keys(name, entries as u64));
            let mut arc = replacement::make("arc", entries);
            let golden = BTreeMap::from([
                ("opt".into(), replacement::min_hits(&keys, numbers, entries)),
                ("arc".into(), keys.iter().filter(|&&key| arc.access(key)).count() as u64),
            ]);
            let row = Row { trace: name.into(), entries, requests: keys.len() as u64, golden };
            let jobs: Vec<_> = policies.iter().map(|p| (row.clone(), p.clone())).collect();
            replay(&keys, &jobs, results);
            all.push(row);
        }
    }
    all
}

/// `ogive-judgement [POLICIES] [REQUESTS_MAX] [TRACE]`: a table over the golden rows of all traces
/// with at most so many requests and with `TRACE` in their name. With `synth` it is over the
/// synthetic traces.
fn main() {
    let mut arguments = std::env::args().skip(1);
    let policies = arguments.next().filter(|list| list != "all");
    let policies = policies.unwrap_or_else(|| format!("{},duel", table::PEERS.join(",")));
    let policies: Vec<String> = policies.split(',').map(str::to_owned).collect();
    let requests_max: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let only = arguments.next().unwrap_or_default();
    let results: Mutex<table::Results> = Mutex::default();
    if only == "synth" {
        let rows = synthetic_rows(&results, &policies);
        table::print(&rows, &policies, &results.into_inner().expect("no panic"));
        return;
    }
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|r| r.requests <= requests_max && r.golden.contains_key("opt"))
        .filter(|r| r.trace.contains(&only))
        .collect();
    let mut traces: Vec<String> = rows.iter().map(|r| r.trace.clone()).collect();
    traces.dedup();
    for trace in traces {
        let keys = load(&trace);
        let of_trace = rows.iter().filter(|r| r.trace == trace);
        let jobs: Vec<_> =
            of_trace.flat_map(|r| policies.iter().map(|p| (r.clone(), p.clone()))).collect();
        replay(&keys, &jobs, &results);
    }
    table::print(&rows, &policies, &results.into_inner().expect("no panic"));
}
