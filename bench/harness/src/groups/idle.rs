//! Idle daemons: CPU seconds and wake-ups without requests.
//!
//! Every daemon first serves files and a walk, then rests for a moment, and then is watched. A thread
//! that never wakes up makes no context switch, so the switches of all threads are counted. No
//! program uses a mount meanwhile. All daemons are watched at once, because idle daemons do not
//! disturb each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::client::FioPlan;
use crate::error::Result;
use crate::fileset;
use crate::mounted::Mounted;
use crate::peer::{self, Peer};
use crate::process::{self, ThreadSwitches};
use crate::report::Report;
use crate::session::Session;

const FILES: usize = 4;
const FILE_BYTES: u64 = 8 << 20;
/// Time for work that the use before has started.
const SETTLE: Duration = Duration::from_secs(5);

struct Watched {
    peer: Peer,
    mounted: Mounted,
    pid: u32,
    cpu_before: f64,
    switches_before: BTreeMap<u32, ThreadSwitches>,
}

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "idle")?;
    let source = fileset::data(session, "idle", FILES, FILE_BYTES)?;
    let (peers, absent) = peer::present(
        vec![
            Peer::Passthrough { direct: false },
            Peer::ogive(false, 64 << 20),
            Peer::ogive(true, 64 << 20),
            Peer::Bindfs,
            Peer::Gocryptfs,
            Peer::Rclone,
        ],
        session,
    );
    absent.into_iter().for_each(|note| report.note(note));
    let mut watched = Vec::new();
    for peer in peers {
        eprintln!("  using {}", peer.name());
        match mount_and_use(session, &peer, &source) {
            Ok((mounted, pid)) => watched.push(Watched {
                peer,
                mounted,
                pid,
                cpu_before: 0.0,
                switches_before: BTreeMap::new(),
            }),
            Err(error) => report.note(format!("{}: not run: {error}", peer.name())),
        }
    }
    sleep(SETTLE);
    for one in &mut watched {
        one.cpu_before = process::cpu_seconds(one.pid)?;
        one.switches_before = process::switches(one.pid)?;
    }
    eprintln!("  watching for {} s", session.plan.idle_seconds);
    sleep(Duration::from_secs(session.plan.idle_seconds));
    let mut rows = Vec::new();
    for one in &watched {
        rows.push(judge(session, &mut report, one)?);
    }
    let title = format!("{} s idle after use", session.plan.idle_seconds);
    report.table(&title, &["", "CPU s", "wake-ups a minute", "which threads"], &rows);
    report.finish()
}

fn mount_and_use(session: &Session, peer: &Peer, source: &Path) -> Result<(Mounted, u32)> {
    peer.prepare(session, source)?;
    let mounted = peer.mount(session, source, None)?;
    let pid = mounted.pid().ok_or("no daemon")?;
    FioPlan { jobs: FILES, file_bytes: FILE_BYTES, seconds: 1 }
        .random_reads(Some(&mounted.root))?;
    Ok((mounted, pid))
}

fn judge(session: &Session, report: &mut Report, one: &Watched) -> Result<Vec<String>> {
    if !one.mounted.alive() {
        return Err(format!("{} ended while idle", one.peer.name()));
    }
    let after = process::switches(one.pid)?;
    let cpu = process::cpu_seconds(one.pid)? - one.cpu_before;
    let mut by_thread: BTreeMap<String, u64> = BTreeMap::new();
    for (id, thread) in &after {
        let before = one.switches_before.get(id).map_or(0, |thread| thread.switches);
        let woken = thread.switches.saturating_sub(before);
        if woken > 0 {
            *by_thread.entry(thread.name.clone()).or_default() += woken;
        }
    }
    let woken: u64 = by_thread.values().sum();
    let per_minute = woken as f64 * 60.0 / session.plan.idle_seconds as f64;
    report.sample(
        json!({ "peer": one.peer.name(), "seconds": session.plan.idle_seconds }),
        json!({
            "cpu_s": cpu,
            "wakeups": woken,
            "wakeups_per_minute": per_minute,
            "threads": by_thread,
        }),
    )?;
    let threads: Vec<_> = by_thread.iter().map(|(name, count)| format!("{name} {count}")).collect();
    Ok(vec![
        one.peer.name().to_owned(),
        format!("{cpu:.2}"),
        format!("{per_minute:.0}"),
        if threads.is_empty() { "none".into() } else { threads.join(", ") },
    ])
}
