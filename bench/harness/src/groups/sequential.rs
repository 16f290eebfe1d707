//! One file read from end to end by `dd` with 1 MiB blocks: origin cold, origin warm, and again.
//!
//! Each peer gets a new mount for each read with empty caches. "Origin cold": the origin's pages are
//! dropped, and `cachestat` confirms it. "Origin warm": all of the origin's pages are in memory, and
//! the peer has none. "Again": the same read once more, from the caches of the peer and the kernel.
//! With `--passthrough` only the source's pages exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::client;
use crate::error::{Context, Result};
use crate::fileset;
use crate::machine;
use crate::mounted::Mounted;
use crate::pagecache;
use crate::peer::{self, Peer};
use crate::report::Report;
use crate::session::Session;

const STATES: [&str; 3] = ["origin cold", "origin warm", "again"];

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "sequential")?;
    let bytes = session.plan.sequential_bytes;
    let source = fileset::data(session, "sequential", 1, bytes)?;
    let arc_max = bytes * 3 / 2;
    let (mut peers, absent) = peer::present(
        vec![
            Peer::Bare,
            Peer::Passthrough { direct: false },
            Peer::ogive(false, arc_max),
            Peer::Passthrough { direct: true },
            Peer::ogive(true, arc_max),
            Peer::ogive(false, arc_max).with("ogive, --passthrough", &["--passthrough"]),
            Peer::Bindfs,
            Peer::Gocryptfs,
            Peer::Rclone,
        ],
        session,
    );
    absent.into_iter().for_each(|note| report.note(note));
    for peer in &peers {
        peer.prepare(session, &source)?;
    }
    for round in 0..session.plan.sequential_rounds {
        let mut failed = Vec::new();
        for peer in &peers {
            eprintln!("  round {}: {}", round + 1, peer.name());
            if let Err(error) = read_in_all_states(session, &mut report, peer, &source, round) {
                report.note(format!("{}: {error}", peer.name()));
                failed.push(peer.clone());
            }
        }
        peers.retain(|peer| !failed.contains(peer));
    }
    for state in STATES {
        let mut rows = Vec::new();
        for peer in &peers {
            let key = json!({ "peer": peer.name(), "state": state });
            let figures = ["gb_per_s", "daemon_cpu_s_per_gb", "client_cpu_s_per_gb"];
            let mut row = vec![peer.name().to_owned()];
            row.extend(figures.iter().map(|figure| report.cell(&key, figure)));
            rows.push(row);
        }
        report.table(state, &["", "GB/s", "daemon CPU s/GB", "client CPU s/GB"], &rows);
    }
    report.finish()
}

fn read_in_all_states(
    session: &Session,
    report: &mut Report,
    peer: &Peer,
    source: &Path,
    round: usize,
) -> Result<()> {
    for state in ["origin cold", "origin warm"] {
        peer::forget_copies(session, peer)?;
        let mounted = peer.mount(session, source, None)?;
        let origin = origin_file(session, peer, source);
        if state == "origin cold" {
            pagecache::evict(&origin)?;
            if pagecache::resident_bytes(&origin).is_some_and(|bytes| bytes > 0) {
                report.note(format!("{}: the origin was not cold", peer.name()));
            }
        } else {
            pagecache::read_through(&origin)?;
        }
        // Room for the peer's cache, the page cache twice, and a reserve.
        machine::take_memory_back(session.plan.sequential_bytes * 3);
        read(report, peer, &mounted, state, round)?;
        if state == "origin warm" {
            read(report, peer, &mounted, "again", round)?;
        }
    }
    Ok(())
}

fn read(
    report: &mut Report,
    peer: &Peer,
    mounted: &Mounted,
    state: &str,
    round: usize,
) -> Result<()> {
    let path = fileset::data_file(&mounted.root, 0);
    let bytes = fs::metadata(&path).context(|| format!("cannot stat {}", path.display()))?.len();
    let mut dd = Command::new("dd");
    let mut input = std::ffi::OsString::from("if=");
    input.push(&path);
    dd.arg(input).args(["of=/dev/null", "bs=1M", "status=none"]);
    let cpu_before = mounted.cpu_seconds()?;
    let ran = client::run(dd)?;
    let daemon_cpu = mounted.cpu_seconds()? - cpu_before;
    let gigabytes = bytes as f64 / 1e9;
    report.sample(
        json!({ "peer": peer.name(), "state": state, "round": round }),
        json!({
            "gb_per_s": gigabytes / ran.seconds,
            "daemon_cpu_s_per_gb": daemon_cpu / gigabytes,
            "client_cpu_s_per_gb": ran.cpu_seconds / gigabytes,
        }),
    )
}

/// The file that the peer itself reads: gocryptfs has an encrypted copy under another name.
fn origin_file(session: &Session, peer: &Peer, source: &Path) -> PathBuf {
    if *peer == Peer::Gocryptfs {
        let cipher = peer::cipher_folder(session, source);
        let largest = fs::read_dir(cipher)
            .into_iter()
            .flatten()
            .flatten()
            .max_by_key(|entry| entry.metadata().map_or(0, |metadata| metadata.len()));
        if let Some(entry) = largest {
            return entry.path();
        }
    }
    fileset::data_file(source, 0)
}
