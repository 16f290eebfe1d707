//! The classic ARC test: jobs with a file of their own each, cached random 8 KiB reads, by fio.
//!
//! All peers stay mounted. Each round runs them one after another, ogive next to the passthrough that
//! it is compared with. Before the first round, every file is read twice through every peer, so that
//! an ARC counts it as used more than once. After the last round, the page caches and ogive's misses
//! show whether the set was warm throughout.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::FioPlan;
use crate::counters::{self, Counters};
use crate::error::Result;
use crate::fileset;
use crate::mounted::Mounted;
use crate::pagecache;
use crate::peer::{self, Peer};
use crate::report::{Report, verdict};
use crate::session::Session;

const FILES: usize = 32;
const JOBS: [usize; 3] = [32, 2, 1];
/// ogive with the page cache on must reach this share of the passthrough's reads.
const TARGET_PAGE_CACHE: f64 = 0.95;
/// ogive by direct I/O must do this many times the passthrough's reads.
const TARGET_DIRECT: f64 = 1.2;
const FIO_ALONE: &str = "fio alone (null engine)";

struct Contestant {
    peer: Peer,
    mounted: Mounted,
    before: Option<Counters>,
}

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "arc")?;
    let file_bytes = session.plan.arc_file_bytes;
    let source = fileset::data(session, "arc", FILES, file_bytes)?;
    let arc_max = FILES as u64 * file_bytes * 3 / 2;
    let peers = vec![
        Peer::Bare,
        Peer::Passthrough { direct: false },
        Peer::ogive(false, arc_max),
        Peer::Passthrough { direct: true },
        Peer::ogive(true, arc_max),
        Peer::ogive_uring(arc_max),
        Peer::Memory,
        Peer::Bindfs,
        Peer::Gocryptfs,
        Peer::Rclone,
    ];
    let (peers, absent) = peer::present(peers, session);
    absent.into_iter().for_each(|note| report.note(note));
    let mut contestants = Vec::new();
    for peer in peers {
        match warm(session, &peer, &source) {
            Ok(mounted) => contestants.push(Contestant { peer, mounted, before: None }),
            Err(error) => report.note(format!("{}: not run: {error}", peer.name())),
        }
    }
    for contestant in &mut contestants {
        contestant.before = counters::ogive(&contestant.mounted.root, "arcstats").ok();
    }
    for jobs in JOBS {
        for round in 0..session.plan.rounds {
            eprintln!("  {jobs} jobs, round {}", round + 1);
            one_round(session, &mut report, &contestants, jobs, round)?;
        }
    }
    check_residency(&mut report, &contestants);
    for jobs in JOBS {
        render(&mut report, &contestants, jobs);
    }
    render_targets(&mut report);
    report.finish()
}

fn warm(session: &Session, peer: &Peer, source: &Path) -> Result<Mounted> {
    eprintln!("  warming {}", peer.name());
    peer.prepare(session, source)?;
    let mounted = peer.mount(session, source, None)?;
    for _ in 0..2 {
        for index in 0..FILES {
            pagecache::read_through(&fileset::data_file(&mounted.root, index))?;
        }
    }
    Ok(mounted)
}

fn one_round(
    session: &Session,
    report: &mut Report,
    contestants: &[Contestant],
    jobs: usize,
    round: usize,
) -> Result<()> {
    let plan = FioPlan {
        jobs,
        file_bytes: session.plan.arc_file_bytes,
        seconds: session.plan.fio_seconds,
    };
    let alone = plan.random_reads(None)?;
    let gigabytes = alone.bytes / 1e9;
    report.sample(
        json!({ "peer": FIO_ALONE, "jobs": jobs, "round": round }),
        json!({
            "kreads_per_s": alone.reads_per_second / 1e3,
            "client_cpu_s_per_gb": alone.cpu_seconds / gigabytes,
        }),
    )?;
    for contestant in contestants {
        let slow = matches!(contestant.peer, Peer::Bindfs | Peer::Gocryptfs | Peer::Rclone);
        if slow && jobs != JOBS[0] {
            continue; // these peers run only in the classic case, to save time
        }
        let mounted = &contestant.mounted;
        let cpu_before = mounted.cpu_seconds()?;
        let fio = match plan.random_reads(Some(&mounted.root)) {
            Ok(fio) => fio,
            Err(error) => {
                report.note(format!("{}, {jobs} jobs: {error}", contestant.peer.name()));
                continue;
            }
        };
        let daemon_cpu = mounted.cpu_seconds()? - cpu_before;
        let gigabytes = fio.bytes / 1e9;
        report.sample(
            key(contestant.peer.name(), jobs, Some(round)),
            json!({
                "kreads_per_s": fio.reads_per_second / 1e3,
                "daemon_cpu_s_per_gb": daemon_cpu / gigabytes,
                "client_cpu_s_per_gb": fio.cpu_seconds / gigabytes,
                "cpu_s_per_gb": (daemon_cpu + fio.cpu_seconds) / gigabytes,
                "p99_us": fio.p99_us,
            }),
        )?;
    }
    Ok(())
}

fn key(peer: &str, jobs: usize, round: Option<usize>) -> Value {
    let mut key = json!({ "peer": peer, "jobs": jobs });
    if let Some(round) = round {
        key["round"] = json!(round);
    }
    key
}

/// Notes how much of the set each page cache holds at the end, and ogive's loads since the warming.
fn check_residency(report: &mut Report, contestants: &[Contestant]) {
    for contestant in contestants {
        let root = &contestant.mounted.root;
        let files: Vec<_> = (0..FILES).map(|index| fileset::data_file(root, index)).collect();
        let Some(share) = pagecache::resident_share(files.iter().map(|path| path.as_path())) else {
            report.note("this kernel has no cachestat(2): residency was not checked");
            break;
        };
        let mut text = format!(
            "{}: {:.1}% of the set in its page cache at the end",
            contestant.peer.name(),
            share * 100.0
        );
        let after = counters::ogive(root, "arcstats").ok();
        if let (Some(before), Some(after)) = (&contestant.before, &after) {
            let misses = counters::delta(before, after, "misses");
            let hits = counters::delta(before, after, "hits");
            text += &format!("; ARC hits {hits}, misses {misses} during the rounds");
        }
        report.note(text);
    }
}

fn render(report: &mut Report, contestants: &[Contestant], jobs: usize) {
    let names = contestants.iter().map(|contestant| contestant.peer.name());
    let names: Vec<&str> = names.chain([FIO_ALONE]).collect();
    let mut rows = Vec::new();
    for name in names {
        let key = key(name, jobs, None);
        if report.values(&key, "kreads_per_s").is_empty() {
            continue;
        }
        let figures = ["kreads_per_s", "daemon_cpu_s_per_gb", "client_cpu_s_per_gb", "p99_us"];
        let mut row = vec![name.to_owned()];
        row.extend(figures.iter().map(|figure| report.cell(&key, figure)));
        rows.push(row);
    }
    let title = format!("{jobs} job{}", if jobs == 1 { "" } else { "s" });
    let columns = ["", "k reads/s", "daemon CPU s/GB", "client CPU s/GB", "p99 us"];
    report.table(&title, &columns, &rows);
}

fn render_targets(report: &mut Report) {
    let mut rows = Vec::new();
    for jobs in JOBS {
        for (way, target) in [("page cache", TARGET_PAGE_CACHE), ("direct I/O", TARGET_DIRECT)] {
            let ogive = key(&format!("ogive, {way}"), jobs, None);
            let passthrough = key(&format!("passthrough, {way}"), jobs, None);
            let speed = report.ratio(&ogive, &passthrough, "kreads_per_s");
            let daemon = report.ratio(&ogive, &passthrough, "daemon_cpu_s_per_gb");
            let all = report.ratio(&ogive, &passthrough, "cpu_s_per_gb");
            let cell = |ratio: Option<crate::spread::Spread>| {
                ratio.map_or("-".into(), |ratio| ratio.render())
            };
            rows.push(vec![
                format!("{way}, {jobs} jobs"),
                cell(speed),
                verdict(speed, target),
                cell(daemon),
                cell(all),
            ]);
        }
    }
    // Over io_uring; and over the device, the limit that an answer without the origin could reach.
    for (peer, name, target) in [
        (peer::OVER_URING, "direct I/O over io_uring", Some(TARGET_DIRECT)),
        (Peer::Memory.name(), "FUSE limit", None),
    ] {
        for jobs in JOBS {
            let other = key(peer, jobs, None);
            let passthrough = key("passthrough, direct I/O", jobs, None);
            let ratio = |figure: &str| report.ratio(&other, &passthrough, figure);
            let cell = |figure: &str| ratio(figure).map_or("-".into(), |ratio| ratio.render());
            rows.push(vec![
                format!("{name}, {jobs} jobs"),
                cell("kreads_per_s"),
                target.map_or("-".into(), |target| verdict(ratio("kreads_per_s"), target)),
                cell("daemon_cpu_s_per_gb"),
                cell("cpu_s_per_gb"),
            ]);
        }
    }
    let columns =
        ["ogive / passthrough", "reads/s", "target", "daemon CPU per byte", "all CPU per byte"];
    report.table("Ratios, paired round by round", &columns, &rows);
}
