//! Traces for tests, read by the decoders under test.
//!
//! The small traces are with the engine's tests, and the large ones in the folder of
//! `OGIVE_TRACES`. No other place outside the tree is searched, so every clone runs the same tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use ogive_sim::{Format, ReadOptions, Request, Simulation, TraceReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../arc/tests/data")
}

/// The folder with all traces, if it is named.
pub fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("OGIVE_TRACES")?);
    assert!(folder.join("golden.csv").is_file(), "OGIVE_TRACES has no golden.csv: {folder:?}");
    Some(folder)
}

/// Text of the table of hit counts.
pub fn golden() -> String {
    let file = folder().unwrap_or_else(bundled).join("golden.csv");
    eprintln!("golden counts: {}", file.display());
    std::fs::read_to_string(file).unwrap()
}

/// The file of a trace, and its format if it cannot be detected; `None` if it is missing.
pub fn file(trace: &str) -> Option<(PathBuf, Option<Format>)> {
    let (family, name) = trace.split_once('-').unwrap_or((trace, ""));
    let (path, format) = match family {
        "lirs" => (format!("lirs/{name}.trace.gz"), None),
        "arc" => (format!("arc/{name}.lis.zst"), None),
        "c2k" => (format!("cache2k/{name}.trace.xz"), Some(Format::Be32)),
        "cp" => (format!("cloudphysics/{name}.trace.xz"), Some(Format::Be32)),
        "scarab" => ("scarab/scarab-recs.trace.xz".to_owned(), Some(Format::Be64)),
        "adaptsize" => ("adaptsize/request.trace.xz".to_owned(), None),
        "mq" => ("block/mqsim-tpcc-small.trace.xz".to_owned(), None),
        "msr" => ("block/msr-cambridge1-sample.csv.xz".to_owned(), None),
        _ => panic!("no trace {trace}"),
    };
    let here = folder().map(|folder| folder.join(&path)).filter(|path| path.is_file());
    let path = here.or_else(|| Some(bundled().join(path)).filter(|path| path.is_file()))?;
    Some((path, format))
}

/// All requests of a trace, every key weighing 1.
pub fn requests(trace: &str) -> Option<Vec<Request>> {
    let (path, format) = file(trace)?;
    let options = ReadOptions { format, entries: true, ..ReadOptions::default() };
    let mut reader = TraceReader::open(&path, &options, Arc::default()).unwrap();
    let mut requests = Vec::new();
    while !reader.read(&mut requests, usize::MAX).unwrap() {}
    let mut used = std::collections::HashMap::new();
    for (position, request) in requests.iter_mut().enumerate().rev() {
        request.next_use = used.insert(request.key, position as u64).unwrap_or(u64::MAX);
    }
    Some(requests)
}

/// Hits of a policy.
pub fn hits(policy: &str, entries: u64, requests: &[Request]) -> u64 {
    let mut simulation = Simulation::new(policy.parse().unwrap(), entries, 1);
    simulation.run(requests);
    assert!(simulation.resident_bytes() <= entries, "{policy} holds more than {entries}");
    simulation.tally().hits
}
