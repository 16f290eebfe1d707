//! Measures ogive and its peers in the same rounds, and writes the results. `bench/run.sh` builds the
//! programs, sets the variables and starts this one; see `bench/README.md`.

#![deny(missing_docs)]

mod cgroup;
mod client;
mod counters;
mod error;
mod fileset;
mod groups;
mod machine;
mod mounted;
mod pagecache;
mod peer;
mod process;
mod random;
mod reader;
mod report;
mod requests;
mod session;
mod spread;

use std::path::Path;
use std::process::ExitCode;

use crate::error::Result;
use crate::groups::GROUPS;
use crate::reader::Workload;
use crate::session::{Mode, Session};

const USAGE: &str = "\
usage: bench/run.sh [quick|full] [GROUP...]     measure (default: quick, all groups)
       bench/run.sh clean                       remove file sets and what a run left behind
groups: arc sequential metadata idle caching workloads
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("reader") if words.len() == 7 => {
            let workload = Workload::parse(&words[3..])?;
            reader::run(Path::new(&words[1]), Path::new(&words[2]), workload)
        }
        Some("leftovers") => {
            let work = session::folder("BENCH_WORK")?;
            let _lock = session::lock(&work)?;
            remove_leftovers(&work);
            Ok(())
        }
        Some("full") => measure(Mode::Full, &words[1..]),
        Some("quick") => measure(Mode::Quick, &words[1..]),
        _ => measure(Mode::Quick, words),
    }
}

fn measure(mode: Mode, names: &[String]) -> Result<()> {
    let mut chosen = Vec::new();
    for name in names {
        let group = GROUPS.iter().find(|(known, _)| known == name);
        chosen.push(*group.ok_or_else(|| format!("no group {name}\n{USAGE}"))?);
    }
    if chosen.is_empty() {
        chosen.extend(GROUPS);
    }
    if !nix::unistd::geteuid().is_root() {
        return Err("the benchmarks mount, drop caches and make cgroups: run them as root".into());
    }
    let session = Session::begin(mode, names)?;
    remove_leftovers(&session.work);
    let mut failed = Vec::new();
    for (name, group) in chosen {
        if let Err(error) = group(&session) {
            eprintln!("bench: {name}: {error}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not finished: {}", failed.join(", "))) }
}

fn remove_leftovers(work: &Path) {
    mounted::remove_leftovers(work);
    cgroup::remove_leftovers();
}
