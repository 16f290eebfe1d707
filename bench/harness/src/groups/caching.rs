//! Two caches on top of each other: the page cache over the ARC, under one memory limit.
//!
//! Daemon and reader are in one memory cgroup. The reader reads a working set of twice the limit
//! by the Zipf law: first alone, then with a scan of eight times the limit. A process
//! outside the cgroup has read the origin's pages before, so they are not charged to it. The origin
//! is thus like a store elsewhere, with its own memory. The figure that counts is the bytes read
//! from it.
//!
//! A hit is a read of the working set that did not wait for the origin. For the passthrough, every
//! read that reaches it is a miss; it counts the large scanned file apart. For ogive, the misses are
//! the ARC's demand misses, including any of the scan.
//!
//! The table also has the bytes read from the origin beyond one reading of the scan. Unused prefetch
//! and records larger than the read raise this figure, so it shows hits bought by reading too much.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::cgroup::Cgroup;
use crate::counters::{self, Counters};
use crate::error::{Context, Result};
use crate::fileset;
use crate::mounted::{self, Mounted};
use crate::pagecache;
use crate::peer::{self, Peer};
use crate::process;
use crate::reader::{PHASES, RECORD_BYTES, WORKING_FILES, Workload};
use crate::report::Report;
use crate::session::{Mode, Session};

/// Share of the origin's pages that must be in memory before a run.
const ORIGIN_WARM: f64 = 0.999;

/// Runs the group.
pub fn run(session: &Session) -> Result<()> {
    let mut report = Report::begin(session, "caching")?;
    let limit = session.plan.limit_bytes;
    let (working_bytes, scan_bytes) = (2 * limit, 8 * limit);
    let source = session.folder("sets")?;
    let file_bytes = working_bytes / WORKING_FILES as u64;
    fileset::data(session, "working", WORKING_FILES, file_bytes)?;
    fileset::data(session, "scan", 1, scan_bytes)?;
    let (peers, absent) = peer::present(modes(session, limit), session);
    absent.into_iter().for_each(|note| report.note(note));
    let workloads = workloads(session, working_bytes, scan_bytes);
    for (name, workload) in &workloads {
        for round in 0..session.plan.caching_rounds {
            for peer in &peers {
                eprintln!("  {name}, round {}: {}", round + 1, peer.name());
                let key = json!({ "peer": peer.name(), "workload": name, "round": round });
                if let Err(error) = one_run(session, &mut report, peer, &source, *workload, key) {
                    report.note(format!("{}, {name}: {error}", peer.name()));
                }
            }
        }
    }
    for (name, _) in &workloads {
        render(&mut report, &peers, name);
    }
    super::dropped::measure(session, &mut report)?;
    report.note(format!(
        "limit {} MiB for daemon and reader; working set {} MiB, scan {} MiB, Zipf 0.9; \
         hits below 0: the scan missed more often than the working set was read",
        limit >> 20,
        working_bytes >> 20,
        scan_bytes >> 20
    ));
    report.finish()
}

/// The ways to share the memory.
fn modes(session: &Session, limit: u64) -> Vec<Peer> {
    let ogive = |name: &str, options: &[&str], arc_max: Option<u64>| {
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        if let Some(bytes) = arc_max {
            options.extend(["--arc-max".to_owned(), bytes.to_string()]);
        }
        Peer::Ogive { name: name.to_owned(), options }
    };
    let mut modes = vec![
        Peer::Passthrough { direct: false },
        ogive("page cache over a tiny ARC (1/16)", &[], Some(limit / 16)),
        ogive("ARC alone (--direct-io, 7/8)", &["--direct-io"], Some(limit / 8 * 7)),
        ogive("both, ARC 1/4", &[], Some(limit / 4)),
        ogive("both, ARC 1/2", &[], Some(limit / 2)),
        ogive("both, ARC 3/4", &[], Some(limit / 4 * 3)),
        ogive("ogive as it comes", &[], None),
        ogive("ogive, records of 8 KiB", &["--recordsize", "8K"], None),
        ogive(
            "ARC alone, 7/8, records of 8 KiB",
            &["--direct-io", "--recordsize", "8K"],
            Some(limit / 8 * 7),
        ),
    ];
    if session.ogive_knows("--caching") {
        for mode in ["exclusive", "inclusive"] {
            let name = format!("both, {mode}, ARC 1/2");
            modes.push(ogive(&name, &["--caching", mode], Some(limit / 2)));
        }
    }
    modes
}

fn workloads(session: &Session, working_bytes: u64, scan_bytes: u64) -> Vec<(String, Workload)> {
    let workload = |read_bytes, popular_bytes| Workload {
        working_bytes,
        scan_bytes,
        read_bytes,
        popular_bytes,
    };
    let mut workloads = vec![
        ("128 KiB reads".to_owned(), workload(RECORD_BYTES, RECORD_BYTES)),
        ("8 KiB reads, clustered".to_owned(), workload(8 << 10, RECORD_BYTES)),
    ];
    if session.mode == Mode::Full {
        workloads.push(("8 KiB reads, scattered".to_owned(), workload(8 << 10, 8 << 10)));
    }
    workloads
}

fn one_run(
    session: &Session,
    report: &mut Report,
    peer: &Peer,
    source: &Path,
    workload: Workload,
    key: Value,
) -> Result<()> {
    warm_origin(source)?;
    let cgroup = Cgroup::new(session.plan.limit_bytes)?;
    let mounted = peer.mount(session, source, Some(&cgroup))?;
    let pid = mounted.pid().ok_or("no daemon")?;
    let mut reader = Reader::start(&mounted.root, workload, &cgroup)?;
    for phase in PHASES {
        reader.expect_ready(phase)?;
        let before = Asked::by(peer, &mounted)?;
        let read_before = process::read_bytes(pid)?;
        let seconds = reader.go().map_err(|error| {
            format!("{error}; daemon alive: {}, killed: {}", mounted.alive(), cgroup.killed())
        })?;
        let asked = Asked::by(peer, &mounted)?.since(&before);
        if phase == PHASES[0] {
            continue;
        }
        let daemon_read = process::read_bytes(pid)? - read_before;
        let scanned = if phase == PHASES[2] { workload.scan_bytes } else { 0 };
        let reads = workload.reads(phase) as f64;
        let read_bytes = reads * workload.read_bytes as f64;
        let mut sample = key.clone();
        sample["phase"] = json!(phase);
        report.sample(
            sample,
            json!({
                "hit_percent": 100.0 * (1.0 - asked.misses / reads),
                "origin_bytes_per_byte": asked.beyond(scanned) / read_bytes,
                "daemon_read_bytes": daemon_read,
                "seconds": seconds,
                "peak_mb": cgroup.peak_bytes().map(|bytes| bytes as f64 / 1e6),
                "daemon_peak_mb": process::memory(pid)?.peak_bytes as f64 / 1e6,
                "killed": cgroup.killed(),
            }),
        )?;
    }
    reader.finish()
}

/// Reads all files of both sets outside the cgroup, if any of their pages are missing.
fn warm_origin(source: &Path) -> Result<()> {
    let working = source.join("working");
    let mut files: Vec<_> =
        (0..WORKING_FILES).map(|index| fileset::data_file(&working, index)).collect();
    files.push(fileset::data_file(&source.join("scan"), 0));
    let warm = pagecache::resident_share(files.iter().map(|path| path.as_path()));
    if warm.is_none_or(|share| share < ORIGIN_WARM) {
        for path in &files {
            pagecache::read_through(path)?;
        }
    }
    Ok(())
}

/// The reads of a daemon from its origin.
struct Asked {
    /// All bytes; only those of the working set if `without_scan`.
    bytes: f64,
    /// Whether the daemon counts the scan's bytes apart.
    without_scan: bool,
    /// Reads that had to wait for the origin.
    misses: f64,
}

impl Asked {
    fn by(peer: &Peer, mounted: &Mounted) -> Result<Self> {
        let get = |counters: &Counters, name: &str| {
            let value = counters.get(name).map(|&value| value as f64);
            value.ok_or_else(|| format!("{} does not count {name}", peer.name()))
        };
        if matches!(peer, Peer::Passthrough { .. }) {
            let counters = counters::passthrough(&mounted.root)?;
            return Ok(Self {
                bytes: get(&counters, "bytes_small")?,
                without_scan: true,
                misses: get(&counters, "reads_small")?,
            });
        }
        let own = counters::ogive(&mounted.root, "ogivestats")?;
        let arc = counters::ogive(&mounted.root, "arcstats")?;
        Ok(Self {
            bytes: get(&own, "origin_bytes")?,
            without_scan: false,
            misses: get(&arc, "demand_data_misses")?,
        })
    }

    fn since(self, before: &Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            without_scan: self.without_scan,
            misses: self.misses - before.misses,
        }
    }

    /// Bytes beyond one reading of the `scanned` ones.
    fn beyond(&self, scanned: u64) -> f64 {
        if self.without_scan { self.bytes } else { self.bytes - scanned as f64 }
    }
}

/// The reader, in the cgroup.
struct Reader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reader {
    fn start(root: &Path, workload: Workload, cgroup: &Cgroup) -> Result<Self> {
        let this = std::env::current_exe().context(|| "cannot find this program".into())?;
        let mut command = Command::new(this);
        command.arg("reader").args([root.join("working"), root.join("scan")]);
        command.args(workload.arguments());
        let mut command = mounted::inside(command, Some(cgroup));
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.context(|| "cannot start the reader".into())?;
        let input = child.stdin.take().ok_or("the reader has no input")?;
        let output = child.stdout.take().ok_or("the reader has no output")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn expect_ready(&mut self, phase: &str) -> Result<()> {
        let line = self.line()?;
        if line == format!("ready {phase}") {
            return Ok(());
        }
        Err(format!("the reader says \"{line}\" before {phase}"))
    }

    /// Lets the phase begin and waits for its end: its seconds.
    fn go(&mut self) -> Result<f64> {
        self.nod()?;
        let line = self.line()?;
        let seconds = line.strip_prefix("done ").and_then(|word| word.parse().ok());
        seconds.ok_or_else(|| format!("the reader says \"{line}\""))
    }

    fn finish(mut self) -> Result<()> {
        self.expect_ready("end")?;
        self.nod()?;
        let status = self.child.wait().context(|| "cannot wait for the reader".into())?;
        if status.success() { Ok(()) } else { Err(format!("the reader ended with {status}")) }
    }

    fn nod(&mut self) -> Result<()> {
        let written = self.input.write_all(b"\n").and_then(|()| self.input.flush());
        written.context(|| "cannot write to the reader".into())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).context(|| "cannot read from the reader".into())?;
        if line.is_empty() {
            return Err(format!("the reader ended early: {:?}", self.child.try_wait()));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn render(report: &mut Report, peers: &[Peer], workload: &str) {
    for phase in &PHASES[1..] {
        let mut rows = Vec::new();
        for peer in peers {
            let key = json!({ "peer": peer.name(), "workload": workload, "phase": phase });
            let figures =
                ["hit_percent", "origin_bytes_per_byte", "seconds", "peak_mb", "daemon_peak_mb"];
            let name = match peer {
                Peer::Passthrough { .. } => "page cache alone (passthrough)",
                other => other.name(),
            };
            let mut row = vec![name.to_owned()];
            row.extend(figures.iter().map(|figure| report.cell(&key, figure)));
            rows.push(row);
        }
        let columns = [
            "",
            "hits % of working-set reads",
            "origin bytes per byte read, scan taken off",
            "s",
            "cgroup peak MB",
            "daemon peak MB",
        ];
        report.table(&format!("{workload}, {phase}"), &columns, &rows);
    }
}
