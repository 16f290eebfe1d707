//! The table of policies: the mean share of Belady's optimum and the worst row against ARC. It also
//! counts the rows within one point of the best of the others.

use crate::Row;
use std::collections::HashMap;

/// Hits by trace, entries and policy.
pub type Results = HashMap<(String, usize, String), u64>;

/// The policies of others; rows are compared with the best of them.
pub const PEERS: [&str; 7] = ["lru", "arc", "2q", "lirs", "s3-fifo", "sieve", "w-tinylfu"];

struct Summary {
    share_of_opt: f64,
    worst: (f64, String),
    below: Vec<String>,
    near_best: usize,
}

fn points(row: &Row, hits: u64, other: u64) -> f64 {
    100.0 * (hits as f64 - other as f64) / row.requests as f64
}

fn summarize(rows: &[Row], results: &Results, policy: &str) -> Summary {
    let mut summary =
        Summary { share_of_opt: 0.0, worst: (0.0, "none".into()), below: Vec::new(), near_best: 0 };
    for row in rows {
        let hits = |name: &str| results.get(&row.key(name)).copied();
        let own = hits(policy).unwrap_or(0);
        summary.share_of_opt += own as f64 / row.opt().max(1) as f64 / rows.len() as f64;
        if let Some(arc) = row.golden.get("arc") {
            let delta = points(row, own, *arc);
            if delta < summary.worst.0 {
                summary.worst = (delta, format!("{} at {}", row.trace, row.entries));
            }
            if delta < -0.5 {
                summary.below.push(format!("{} at {} ({delta:+.2})", row.trace, row.entries));
            }
        }
        let best = PEERS.iter().filter_map(|peer| hits(peer)).max().unwrap_or(0);
        summary.near_best += usize::from(points(row, own, best) >= -1.0);
    }
    summary
}

/// Prints rows and summaries as Markdown.
pub fn print(rows: &[Row], policies: &[String], results: &Results) {
    println!("| trace | entries | {} | opt |", policies.join(" | "));
    println!("|---|--:|{}--:|", "--:|".repeat(policies.len()));
    for row in rows {
        let percent = |hits: u64| format!("{:.2}", 100.0 * hits as f64 / row.requests as f64);
        let own = policies.iter().map(|p| percent(results[&row.key(p)])).collect::<Vec<_>>();
        println!(
            "| {} | {} | {} | {} |",
            row.trace,
            row.entries,
            own.join(" | "),
            percent(row.opt())
        );
    }
    println!();
    println!(
        "| policy | rows | share of OPT | worst row against ARC | rows below ARC | rows near the best |"
    );
    println!("|---|--:|--:|---|--:|--:|");
    for policy in policies {
        let s = summarize(rows, results, policy);
        println!(
            "| {policy} | {} | {:.2}% | {:+.2}, {} | {} | {} |",
            rows.len(),
            100.0 * s.share_of_opt,
            s.worst.0,
            s.worst.1,
            s.below.len(),
            s.near_best
        );
    }
    for policy in policies.iter().filter(|p| !PEERS.contains(&p.as_str())) {
        let below = summarize(rows, results, policy).below;
        println!("\n{policy} below ARC by more than half a point: {}", below.join(", "));
    }
}
