//! Common programs on small files: requests by kind, daemon CPU and time, for ogive and its peers.
//!
//! Each workload has a new mount over a new source, so only the source's file system has anything in
//! memory. Each round runs all peers before the next, so other load of the machine affects all of
//! them. Compare ratios within a round. The kernel counts requests ([`crate::requests`]).
//!
//! The *least* is the number of requests, by kind, if the server lets the kernel keep every answer.
//! It follows from the numbers of files and directories. The tables have it next to the counts.

mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::error::{Context, Result};
use crate::mounted::Mounted;
use crate::peer::{self, Peer};
use crate::report::Report;
use crate::requests::{Kinds, Requests};
use crate::session::Session;
use crate::spread::Spread;
use programs::{PROGRAMS, Program};

const ARC_MAX: u64 = 512 << 20;
/// Most CPU of ogive, in multiples of libfuse's fastest pass-through.
const CPU_MAX: f64 = 1.1;

/// The least age of a source before it is mounted. ogive keeps no file that changed within the last
/// two seconds, because coarse times would hide another change.
const SETTLED: Duration = Duration::from_millis(2500);

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "workloads")?;
    let kept = ["--metadata-ttl", "1h", "--negative-ttl", "1h", "--sole-writer"];
    let ogive = Peer::ogive(false, ARC_MAX);
    let keeping = ogive.clone().with("ogive, names kept", &kept);
    let peers = vec![
        Peer::Bare,
        ogive.clone(),
        Peer::PassthroughHp,
        Peer::Bindfs,
        keeping.clone(),
        Peer::Passthrough { direct: false },
    ];
    let (present, absent) = peer::present(peers, session);
    absent.into_iter().for_each(|note| report.note(note));
    let trees = programs::trees(session)?;
    for program in &PROGRAMS {
        if let Some(tool) = program.needs.iter().find(|tool| !crate::session::on_path(tool)) {
            report.note(format!("{}: not run: {tool} is not installed", program.name));
            continue;
        }
        for round in 0..session.plan.workload_rounds {
            for peer in &present {
                if program.writes && *peer == (Peer::Passthrough { direct: false }) {
                    continue;
                }
                eprintln!("  {}, round {}: {}", program.name, round + 1, peer.name());
                if let Err(error) = once(session, &mut report, program, peer, &trees, round) {
                    report.note(format!("{}, {}: {error}", program.name, peer.name()));
                }
            }
        }
        render(&mut report, program, &present);
    }
    render_ratios(&mut report, &ogive);
    render_ratios(&mut report, &keeping);
    report.note(
        "passthrough_hp believes names for a day, and answers no request for extended attributes; \
         bindfs refuses FLUSH, so errors of writes that are found at closing are lost with it",
    );
    report.note("FORGET is not counted: the kernel does not trace it");
    report.finish()
}

fn once(
    session: &Session,
    report: &mut Report,
    program: &Program,
    peer: &Peer,
    trees: &Path,
    round: usize,
) -> Result<()> {
    let source = session.work.join("workload");
    clear(&source)?;
    shell(program.prepare, &source, trees)?;
    // Real trees are older than a moment.
    std::thread::sleep(SETTLED);
    let mounted = peer.mount(session, &source, None)?;
    let requests = match peer {
        Peer::Bare => None,
        _ => Some(Requests::begin(&session.work, &mounted.root)?),
    };
    let cpu = cpu(&mounted)?;
    let started = Instant::now();
    shell(program.run, &mounted.root, trees)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = self::cpu(&mounted)? - cpu;
    let kinds = requests.map(Requests::end).transpose()?.unwrap_or_default();
    drop(mounted);
    let all: u64 = kinds.values().sum();
    let key = json!({ "workload": program.name, "peer": peer.name(), "round": round });
    let figures = json!({ "s": seconds, "cpu_s": cpu, "requests": all });
    let mut figures = figures.as_object().cloned().unwrap_or_default();
    figures.extend(by_kind(&kinds));
    report.sample(key, Value::Object(figures))?;
    clear(&source)
}

fn by_kind(kinds: &Kinds) -> Map<String, Value> {
    kinds.iter().map(|(kind, count)| (format!("{kind}_requests"), json!(count))).collect()
}

/// CPU seconds of a daemon to the nanosecond, without ended threads.
fn cpu(mounted: &Mounted) -> Result<f64> {
    let Some(pid) = mounted.pid() else { return Ok(0.0) };
    let folder = PathBuf::from(format!("/proc/{pid}/task"));
    let tasks = fs::read_dir(&folder).context(|| format!("cannot read {}", folder.display()))?;
    let run = |task: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    let nanoseconds: u64 = tasks.flatten().filter_map(run).sum();
    Ok(nanoseconds as f64 / 1e9)
}

fn clear(source: &Path) -> Result<()> {
    match fs::remove_dir_all(source) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", source.display()));
        }
        _ => {}
    }
    fs::create_dir_all(source).context(|| format!("cannot make {}", source.display()))
}

/// Runs a script inside `folder`; `$TREES` is where the prepared trees are.
fn shell(script: &str, folder: &Path, trees: &Path) -> Result<()> {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder).env("TREES", trees);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", trees);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.context(|| "cannot start bash".into())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{script}: {}: {}", output.status, words.lines().last().unwrap_or_default()))
}

fn render(report: &mut Report, program: &Program, peers: &[Peer]) {
    let key = |peer: &str| json!({ "workload": program.name, "peer": peer });
    let mut kinds: Vec<String> = Vec::new();
    let least: Kinds = program.least.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
    kinds.extend(least.keys().cloned());
    for peer in peers {
        for kind in report.metrics(&key(peer.name())) {
            if let Some(kind) = kind.strip_suffix("_requests")
                && !kinds.iter().any(|known| known == kind)
            {
                kinds.push(kind.to_owned());
            }
        }
    }
    kinds.sort();
    let mut columns = vec!["", "s", "CPU s", "requests"];
    columns.extend(kinds.iter().map(String::as_str));
    let mut rows = Vec::new();
    if !least.is_empty() {
        let mut row = vec!["least".to_owned(), "-".into(), "-".into()];
        row.push(least.values().sum::<u64>().to_string());
        row.extend(kinds.iter().map(|kind| least.get(kind).copied().unwrap_or(0).to_string()));
        rows.push(row);
    }
    for peer in peers {
        let key = key(peer.name());
        if report.values(&key, "s").is_empty() {
            continue;
        }
        let mut row = vec![peer.name().to_owned()];
        row.extend(["s", "cpu_s", "requests"].map(|figure| report.cell(&key, figure)));
        row.extend(kinds.iter().map(|kind| report.cell(&key, &format!("{kind}_requests"))));
        rows.push(row);
    }
    report.table(&format!("{}: {}", program.name, program.what), &columns, &rows);
}

/// The goals: never slower than bindfs, never more than 1.1 times `passthrough_hp`'s CPU. That one
/// lets the kernel keep names for a day. So ogive runs twice: with its default TTL of a second, and
/// with the promise that it is the sole writer.
fn render_ratios(report: &mut Report, ogive: &Peer) {
    let mut rows = Vec::new();
    for program in &PROGRAMS {
        let key = |peer: &Peer| json!({ "workload": program.name, "peer": peer.name() });
        let ratio = |peer: &Peer, metric: &str| report.ratio(&key(ogive), &key(peer), metric);
        let slower = ratio(&Peer::Bindfs, "s");
        let dearer = ratio(&Peer::PassthroughHp, "cpu_s");
        let figures = [
            ratio(&Peer::Bare, "s"),
            slower,
            ratio(&Peer::PassthroughHp, "s"),
            ratio(&Peer::Bindfs, "cpu_s"),
            dearer,
            ratio(&Peer::PassthroughHp, "requests"),
            ratio(&Peer::Bindfs, "requests"),
        ];
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![program.name.to_owned()];
        row.extend(figures.map(|ratio| ratio.map_or("-".into(), |ratio| ratio.render())));
        let met = |ratio: Option<Spread>, most: f64| match ratio {
            Some(ratio) if ratio.median > most => "MISSED",
            Some(_) => "met",
            None => "not run",
        };
        row.push(met(slower, 1.0).into());
        row.push(met(dearer, CPU_MAX).into());
        rows.push(row);
    }
    let columns = [
        "",
        "time / bare file system",
        "time / bindfs",
        "time / passthrough_hp",
        "CPU / bindfs",
        "CPU / passthrough_hp",
        "requests / passthrough_hp",
        "requests / bindfs",
        "not slower than bindfs",
        "at most 1.1 times passthrough_hp's CPU",
    ];
    report.table(&format!("Ratios, round by round: {}", ogive.name()), &columns, &rows);
}
