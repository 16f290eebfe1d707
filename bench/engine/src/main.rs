//! The engine next to other caches, in one run.
//!
//! Repeats are interleaved, and results are medians with their spread. CPU time of the threads
//! counts, not wall-clock time, because the machine may be busy.
//!
//! `ogive-bench-engine names quick|full` prints the workloads of a plan. `ogive-bench-engine table
//! quick|full WORKLOAD FILE` measures one, prints its table, and appends its rows to the file as
//! JSON, one a line. Each workload runs in a process of its own, so none starts with the memory of
//! another, and a long plan can run in pieces. Ratios are to the first candidate, which is ours.
//!
//! `ogive-bench-engine once WORKLOAD CANDIDATE OPERATIONS` runs one candidate once, for callgrind.
//! `ogive-bench-engine rss CANDIDATE` inserts a million 1-byte entries and prints their memory.
//! `ogive-bench-engine some WORKLOADS CANDIDATES THREADS` prints a part of the quick tables; `;`
//! separates names.

#![deny(unsafe_code)]

mod caches;
#[cfg(feature = "hyperclock")]
mod hyperclock;
mod locked;
mod measure;
mod workload;

use measure::{Plan, Sample};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use workload::Workload;

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    match values {
        [] => (0.0, 0.0, 0.0),
        values => (values[values.len() / 2], values[0], values[values.len() - 1]),
    }
}

fn pick(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> (f64, f64, f64) {
    median(&mut samples.iter().map(of).collect::<Vec<_>>())
}

/// One workload, every candidate, every number of threads.
fn table(workload: &Workload, plan: &Plan, only: &[&str]) -> Vec<Value> {
    println!("\n{} ({} entries)", workload.name, workload.entries);
    println!(
        "{:24}{:>8}{:>10}{:>24}{:>20}{:>11}{:>10}{:>8}{:>7}",
        "",
        "threads",
        "M op/s",
        "CPU ns/op (spread)",
        "times as ours",
        "p99.9 ns",
        "locks/op",
        "hits %",
        "hot %"
    );
    let mut rows = Vec::new();
    let candidates = workload.filled(only);
    for &threads in &plan.threads {
        let mut samples = vec![Vec::new(); candidates.len()];
        for round in 0..plan.rounds {
            let keys = workload.round(threads, round, plan.operations);
            // Another begins each round, so that none always comes first.
            for turn in 0..candidates.len() {
                let at = (round + turn) % candidates.len();
                samples[at].push(measure::run(&*candidates[at], workload, &keys));
            }
        }
        let ours: Vec<f64> = samples[0].iter().map(|sample| sample.cpu_ns).collect();
        for (candidate, samples) in candidates.iter().zip(&samples) {
            let (rate, ..) = pick(samples, |s| s.rate / 1e6);
            let (cpu, low, high) = pick(samples, |s| s.cpu_ns);
            let (tail, ..) = pick(samples, |s| s.tail_ns);
            let (hits, ..) = pick(samples, |s| s.hits * 100.0);
            let (hot, ..) = pick(samples, |s| s.hot_hits * 100.0);
            // Round by round, so that both figures stood next to each other.
            let mut times: Vec<f64> =
                samples.iter().zip(&ours).map(|(s, ours)| s.cpu_ns / ours).collect();
            let (times, times_low, times_high) = median(&mut times);
            let locks = samples[0].locks.map(|_| pick(samples, |s| s.locks.unwrap_or(0.0)).0);
            println!(
                "{:24}{threads:>8}{rate:>10.2}{:>24}{:>20}{tail:>11.0}{:>10}{hits:>8.2}{hot:>7.2}",
                candidate.name(),
                format!("{cpu:.1} ({low:.1}-{high:.1})"),
                format!("{times:.2} ({times_low:.2}-{times_high:.2})"),
                locks.map_or_else(|| "-".to_owned(), |locks| format!("{locks:.4}")),
            );
            rows.push(json!({
                "workload": workload.name, "candidate": candidate.name(), "threads": threads,
                "million_operations_per_second": rate, "cpu_ns": cpu, "cpu_ns_lowest": low,
                "cpu_ns_highest": high, "times_ours": times, "times_ours_lowest": times_low,
                "times_ours_highest": times_high, "p999_ns": tail, "locks_per_operation": locks,
                "hit_percent": hits, "hot_hit_percent": hot,
                "cpu_ns_of_rounds": samples.iter().map(|s| s.cpu_ns).collect::<Vec<_>>(),
            }));
        }
    }
    rows
}

/// Measures one workload and adds its rows to `file`.
fn add_table(full: bool, name: &str, file: &str) -> std::io::Result<()> {
    let plan = if full { Plan::full() } else { Plan::quick() };
    let workloads = workload::all(full);
    let Some(workload) = workloads.iter().find(|workload| workload.name == name) else {
        return Err(std::io::Error::other(format!("no workload is named {name}")));
    };
    let mut lines = String::new();
    for row in table(workload, &plan, &[]) {
        lines += &format!("{row}\n");
    }
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(lines.as_bytes())
}

fn print_names(full: bool) {
    workload::all(full).iter().for_each(|workload| println!("{}", workload.name));
}

/// Prints the rows of some workloads, candidates and numbers of threads.
fn some(workloads: &str, candidates: &str, threads: &str) {
    let names = |list: &str| list.split(';').map(str::to_owned).collect::<Vec<_>>();
    let (workloads, candidates) = (names(workloads), names(candidates));
    let wanted =
        |names: &[String], name: &str| names[0].is_empty() || names.iter().any(|n| n == name);
    let threads = threads.split(';').filter_map(|count| count.parse().ok()).collect();
    let plan = Plan { threads, ..Plan::quick() };
    let only: Vec<&str> = candidates.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
    for workload in workload::all(true).iter().filter(|w| wanted(&workloads, w.name)) {
        table(workload, &plan, &only);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["names", plan @ ("quick" | "full")] => {
            print_names(plan == "full");
            Ok(())
        }
        ["table", plan @ ("quick" | "full"), workload, file] => {
            add_table(plan == "full", workload, file)
        }
        ["once", workload, candidate, operations] => {
            workload::once(workload, candidate, operations.parse().unwrap_or(0));
            Ok(())
        }
        ["some", workloads, candidates, threads] => {
            some(workloads, candidates, threads);
            Ok(())
        }
        ["rss", candidate] => {
            measure::resident(candidate);
            Ok(())
        }
        _ => {
            eprintln!(
                "names PLAN | table PLAN WORKLOAD FILE | some WORKLOADS CANDIDATES THREADS | \
                 once WORKLOAD CANDIDATE COUNT | rss CANDIDATE"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the results: {error}");
            ExitCode::FAILURE
        }
    }
}
