//! Passes over a set on a slow source, with the page cache dropped before each.
//!
//! The source is our pass-through with a delay for each request, a new one below every peer. Before
//! each pass, the pages of the peer's files, of the slow source and of the folder below are dropped.
//! Then the client reads every file from end to end, as `cat` does. The source counts its requests.
//! The first pass fills the cache. The goal for passes 2 to 5 is the speed of memory, with no bytes
//! read from the source.
//!
//! ogive does not trust the times of this type of source, so it runs with `--trust-times always`.
//! rclone's full cache always trusts times.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::counters;
use crate::error::Result;
use crate::fileset;
use crate::pagecache;
use crate::peer::{self, Peer};
use crate::report::Report;
use crate::session::Session;

/// Files of the set, and the bytes of each.
const FILES: usize = 16;
const FILE_BYTES: u64 = 16 << 20;
const PASSES: usize = 5;

/// Measures, and adds its table to the report.
pub fn measure(session: &Session, report: &mut Report) -> Result<()> {
    let set = fileset::data(session, "dropped", FILES, FILE_BYTES)?;
    let ogive = |name: &str, options: &[&str]| Peer::Ogive {
        name: name.to_owned(),
        options: ["--trust-times", "always"]
            .iter()
            .chain(options)
            .map(|&option| option.to_owned())
            .collect(),
    };
    let peers = vec![
        Peer::Bare,
        ogive("ogive as it comes", &[]),
        ogive("ogive, --caching inclusive", &["--caching", "inclusive"]),
        ogive("ogive, --direct-io", &["--direct-io"]),
        Peer::Bindfs,
        Peer::Mergerfs,
        Peer::Rclone,
    ];
    let (peers, absent) = peer::present(peers, session);
    absent.into_iter().for_each(|note| report.note(note));
    for round in 0..session.plan.dropped_rounds {
        for peer in &peers {
            eprintln!("  page cache dropped, round {}: {}", round + 1, peer.name());
            if let Err(error) = passes(session, report, peer, &set, round) {
                report.note(format!("{}, page cache dropped: {error}", peer.name()));
            }
        }
    }
    let mut rows = Vec::new();
    for peer in &peers {
        let key = |pass: &str| json!({ "part": "dropped", "peer": peer.name(), "pass": pass });
        let mut row = vec![peer.name().to_owned()];
        for figure in ["gb_per_s", "source_bytes_per_byte"] {
            row.extend(["first", "second", "later"].map(|pass| report.cell(&key(pass), figure)));
        }
        rows.push(row);
    }
    let columns = [
        "",
        "GB/s, pass 1",
        "pass 2",
        "passes 3 to 5",
        "bytes of the source for each read, pass 1",
        "pass 2",
        "passes 3 to 5",
    ];
    report.table(
        "Five passes over a slow source, the page cache dropped before each",
        &columns,
        &rows,
    );
    report.note(format!(
        "page cache dropped: {FILES} files of {} MiB read one after the other, each request of the \
         source takes {} s",
        FILE_BYTES >> 20,
        Peer::DELAY_SECONDS,
    ));
    Ok(())
}

fn passes(
    session: &Session,
    report: &mut Report,
    peer: &Peer,
    set: &Path,
    round: usize,
) -> Result<()> {
    peer::forget_copies(session, peer)?;
    let slow = Peer::Slow.mount(session, set, None)?;
    let mounted = peer.mount(session, &slow.root, None)?;
    for pass in 0..PASSES {
        for index in 0..FILES {
            for root in [&mounted.root, &slow.root, set] {
                pagecache::evict(&fileset::data_file(root, index))?;
            }
        }
        let before = counters::passthrough(&slow.root)?;
        let start = Instant::now();
        let mut bytes = 0;
        for index in 0..FILES {
            bytes += pagecache::read_through(&fileset::data_file(&mounted.root, index))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let after = counters::passthrough(&slow.root)?;
        let asked: i128 = ["bytes_small", "bytes_large"]
            .iter()
            .map(|name| counters::delta(&before, &after, name))
            .sum();
        let name = match pass {
            0 => "first",
            1 => "second",
            _ => "later",
        };
        report.sample(
            json!({ "part": "dropped", "peer": peer.name(), "round": round, "pass": name }),
            json!({
                "gb_per_s": bytes as f64 / 1e9 / seconds,
                "source_bytes_per_byte": asked as f64 / bytes as f64,
            }),
        )?;
    }
    Ok(())
}
