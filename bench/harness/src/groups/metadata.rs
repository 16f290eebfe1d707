//! Metadata: walks and stat storms over many files, and what the daemon's memory does.
//!
//! Each peer gets a new mount, with the origin's own inodes warm. `find` walks the tree twice, first
//! with an empty cache. Then `lstat` visits every file by name in random order. The cost of an inode
//! is the growth of the daemon's memory from the first walk to the end, over the inodes seen.
//!
//! Then the daemon must give memory back, first through ogive's control file, then because the kernel
//! drops its inodes. Each time its memory is measured again once it rests.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client;
use crate::error::{Context, Result};
use crate::fileset;
use crate::mounted::Mounted;
use crate::pagecache;
use crate::peer::{self, Peer};
use crate::process;
use crate::random::Random;
use crate::report::Report;
use crate::session::Session;

/// Most bytes of daemon memory an inode may cost with ogive.
const TARGET_BYTES_PER_INODE: f64 = 300.0;
const ARC_MAX: u64 = 512 << 20;
/// All peers let the kernel use names and attributes for one second. A walk or storm begins only
/// after that time. Otherwise a fast peer would get fewer requests than a slow one.
const EXPIRY: Duration = Duration::from_millis(1500);
/// Memory is at rest when it has not changed for this long. Allocators return freed pages in steps,
/// seconds apart; with a shorter wait, the first pause would count as the end.
const REST: Duration = Duration::from_secs(6);
const REST_PATIENCE: Duration = Duration::from_secs(40);
/// ogive returns all memory that it can after a write to this file.
const PRUNE_FILE: &str = ".ogive/prune";
const ARCSTATS_FILE: &str = ".ogive/arcstats";

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "metadata")?;
    for &files in session.plan.tree_files {
        let source = fileset::tree(session, files)?;
        let mut peers =
            vec![Peer::Bare, Peer::Passthrough { direct: false }, Peer::ogive(false, ARC_MAX)];
        peers.push(Peer::Bindfs);
        if session.plan.slow_peers_walk && files == session.plan.tree_files[0] {
            peers.extend([Peer::Gocryptfs, Peer::Rclone]);
        }
        let (mut peers, absent) = peer::present(peers, session);
        absent.into_iter().for_each(|note| report.note(note));
        for peer in &peers {
            peer.prepare(session, &source)?;
        }
        for round in 0..session.plan.tree_rounds {
            let mut failed = Vec::new();
            for peer in &peers {
                eprintln!("  {files} files, round {}: {}", round + 1, peer.name());
                if let Err(error) = storm(session, &mut report, peer, &source, files, round) {
                    report.note(format!("{}, {files} files: {error}", peer.name()));
                    failed.push(peer.clone());
                }
            }
            peers.retain(|peer| !failed.contains(peer));
        }
        render(&mut report, &peers, files);
    }
    report.finish()
}

fn storm(
    session: &Session,
    report: &mut Report,
    peer: &Peer,
    source: &Path,
    files: usize,
    round: usize,
) -> Result<()> {
    let warm_inodes = walk(source)?;
    let mounted = peer.mount(session, source, None)?;
    let before = resident(&mounted)?;
    let cpu_before = mounted.cpu_seconds()?;
    let first = walk(&mounted.root)?;
    sleep(EXPIRY);
    let second = walk(&mounted.root)?;
    if first.entries != warm_inodes.entries || second.entries != first.entries {
        return Err(format!(
            "walks differ: {} entries at the origin, {} and {} through the mount",
            warm_inodes.entries, first.entries, second.entries
        ));
    }
    sleep(EXPIRY);
    let stats_per_second = stat_in_random_order(&mounted.root, files)?;
    let daemon_cpu = mounted.cpu_seconds()? - cpu_before;
    let during = resident(&mounted)?;
    let mut figures = json!({
        "entries": first.entries,
        "first_walk_s": first.seconds,
        "second_walk_s": second.seconds,
        "kstats_per_s": stats_per_second / 1e3,
        "daemon_cpu_s": daemon_cpu,
    });
    if let (Some(before), Some(during)) = (before, during) {
        figures["rss_before_mb"] = json!(before as f64 / 1e6);
        figures["rss_during_mb"] = json!(during as f64 / 1e6);
        figures["bytes_per_inode"] = json!((during as f64 - before as f64) / first.entries as f64);
        if let Some((after, seconds)) = prune(&mounted)? {
            figures["rss_after_prune_mb"] = json!(after as f64 / 1e6);
            figures["prune_s"] = json!(seconds);
            if let Some(cached) = cached(&mounted)? {
                figures["cached_after_prune_mb"] = json!(cached as f64 / 1e6);
            }
        }
        let started = Instant::now();
        pagecache::drop_caches(2)?;
        let after = at_rest(&mounted, started)?.0;
        figures["rss_after_drop_mb"] = json!(after as f64 / 1e6);
        let kept = (after as f64 - before as f64).max(0.0);
        let growth = (during as f64 - before as f64).max(1.0);
        figures["given_back_percent"] = json!(100.0 * (1.0 - kept / growth));
    }
    report.sample(json!({ "peer": peer.name(), "files": files, "round": round }), figures)
}

struct Walk {
    entries: usize,
    seconds: f64,
}

/// `find` with a test that needs each entry's attributes.
fn walk(root: &Path) -> Result<Walk> {
    let mut find = Command::new("find");
    find.arg(root).args(["-size", "-1000000k", "-printf", "."]);
    let ran = client::run(find)?;
    Ok(Walk { entries: ran.output.len(), seconds: ran.seconds })
}

/// `lstat` of every file by its full path, in the same random order for every peer: calls a second.
fn stat_in_random_order(root: &Path, files: usize) -> Result<f64> {
    let mut order: Vec<usize> = (0..files).collect();
    Random::new(42).shuffle(&mut order);
    let started = Instant::now();
    for index in order {
        let path = fileset::tree_file(root, index);
        fs::symlink_metadata(&path).context(|| format!("cannot stat {}", path.display()))?;
    }
    Ok(files as f64 / started.elapsed().as_secs_f64())
}

/// Asks ogive for its memory; `None` for a peer that cannot be asked.
fn prune(mounted: &Mounted) -> Result<Option<(u64, f64)>> {
    let file = mounted.root.join(PRUNE_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let started = Instant::now();
    fs::write(&file, "all\n").context(|| format!("cannot write {}", file.display()))?;
    at_rest(mounted, started).map(Some)
}

/// Bytes in ogive's cache, mostly listings, which a prune does not free; `None` for other peers.
fn cached(mounted: &Mounted) -> Result<Option<u64>> {
    let file = mounted.root.join(ARCSTATS_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).context(|| format!("cannot read {}", file.display()))?;
    let size = text.lines().find_map(|line| line.strip_prefix("size "));
    Ok(size.and_then(|rest| rest.split_whitespace().last()?.parse().ok()))
}

/// Waits until the daemon's memory rests: its bytes then, and the seconds from `started` to the
/// last change.
fn at_rest(mounted: &Mounted, started: Instant) -> Result<(u64, f64)> {
    let mut last = resident(mounted)?.unwrap_or(0);
    let mut changed = Instant::now();
    while changed.elapsed() < REST && started.elapsed() < REST_PATIENCE {
        sleep(Duration::from_millis(50));
        let now = resident(mounted)?.unwrap_or(0);
        if now != last {
            last = now;
            changed = Instant::now();
        }
    }
    Ok((last, changed.duration_since(started).as_secs_f64()))
}

fn resident(mounted: &Mounted) -> Result<Option<u64>> {
    mounted.pid().map(|pid| process::memory(pid).map(|memory| memory.resident_bytes)).transpose()
}

fn render(report: &mut Report, peers: &[Peer], files: usize) {
    let key = |peer: &Peer| -> Value { json!({ "peer": peer.name(), "files": files }) };
    let rows = |report: &Report, figures: &[&str]| -> Vec<Vec<String>> {
        let row = |peer: &Peer| {
            let mut row = vec![peer.name().to_owned()];
            row.extend(figures.iter().map(|figure| report.cell(&key(peer), figure)));
            row
        };
        peers.iter().map(row).collect()
    };
    let times = ["first_walk_s", "second_walk_s", "kstats_per_s", "daemon_cpu_s"];
    let table = rows(report, &times);
    let columns = ["", "first find s", "second find s", "k stats/s", "daemon CPU s"];
    report.table(&format!("{files} files: time"), &columns, &table);
    let memory = [
        "rss_before_mb",
        "rss_during_mb",
        "bytes_per_inode",
        "rss_after_prune_mb",
        "cached_after_prune_mb",
        "prune_s",
        "rss_after_drop_mb",
        "given_back_percent",
    ];
    let table = rows(report, &memory);
    let columns = [
        "",
        "MB before",
        "MB during",
        "bytes per inode",
        "MB after prune",
        "MB of it in the ARC",
        "prune s",
        "MB after drop_caches",
        "% given back",
    ];
    report.table(&format!("{files} files: daemon memory"), &columns, &table);
    let ogive = peers.iter().find(|peer| matches!(peer, Peer::Ogive { .. }));
    if let Some(peer) = ogive {
        let growth = crate::spread::Spread::of(report.values(&key(peer), "bytes_per_inode"));
        if let Some(growth) = growth {
            let met = if growth.median <= TARGET_BYTES_PER_INODE { "met" } else { "MISSED" };
            report.note(format!(
                "ogive, {files} files: {} bytes per inode, target at most \
                 {TARGET_BYTES_PER_INODE}: {met}",
                growth.render()
            ));
        }
    }
}
