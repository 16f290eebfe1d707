//! `ogive bench seal`: the cost of a cipher for a reader.
//!
//! This case made ZFS's choice of cipher famous. One large file is read again and again through a
//! cache with a sealed second level. The benchmark mounts the file once for each cipher, and reads
//! it until the second level holds it. Then it drops the file from memory and measures one more
//! read. It does so several times, with the ciphers in turn, so that all see the same disk.
//!
//! The readers, the session and the second level are threads of this process, so the kernel gives
//! their CPU time by name. A signal cannot simply end the process, because a reader that waits for a
//! file system of its own process cannot be killed. So readers check a flag between two reads, and
//! the benchmark then ends along its usual path.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueHint};
use ogive_fs::{Mount, MountOptions};
use ogive_l2::Cipher;

use super::ccm::Ccm;
use super::interrupt::{self, Stop};
use super::second_level;
use crate::value::Size;

/// Published figures in MB/s: a file of 20 GiB read from OpenZFS with each of the ciphers. With
/// CCM, half of the CPU went into saving and restoring the state of the FPU.
const PUBLISHED_MB_PER_SECOND: [(Candidate, f64); 3] =
    [(Candidate::Ccm, 200.0), (Candidate::Gcm, 1600.0), (Candidate::Off, 2400.0)];
/// Bytes without `--size`, where there is room for them.
const SIZE_BYTES: u64 = 2 << 30;
const SIZE_BYTES_MIN: u64 = 64 << 20;
/// Share of the free space that the file may take; each of the second levels takes a little more.
const SPACE_SHARE: u64 = 8;
/// Memory of the first level: a small part of the file.
const MEMORY_SHARE: u64 = 16;
/// Times the file may be read until the second level has it.
const PASSES_MAX: usize = 12;
const READ_BYTES: usize = 1 << 20;
/// While the second level fills, memory is reclaimed after this many bytes, and then the writer
/// gets some time. Nothing waits for the writer, and it drops records when it is too slow.
const FILL_BYTES: usize = 32 << 20;
const FILL_PAUSE: Duration = Duration::from_millis(100);
/// Timed reads of each cipher; the medians are printed.
const ROUNDS: usize = 5;

/// Read one file through AES-256-CCM, AES-256-GCM and no cipher
///
/// Reads a file of random bytes through two mounts whose second level has the file, but whose memory
/// does not: one is sealed with AES-256-GCM, the other is not sealed. The second level does not have
/// AES-256-CCM, so the reader applies it to its unsealed reads. Prints MB/s (millions of bytes), CPU
/// seconds per GiB by thread, the share of the cipher, the published figures for ZFS, and the cost
/// of each cipher on this machine. Needs FUSE, and room for the file and two copies.
#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    /// Where to create the working directory, which is removed at the end
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// Size of the file (default: 2G, or 1/8 of the free space if that is less)
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The compared ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    Ccm,
    Gcm,
    Off,
}

impl Candidate {
    const ALL: [Self; 3] = [Self::Ccm, Self::Gcm, Self::Off];

    /// The cipher of the second level that it reads.
    fn cipher(self) -> Cipher {
        match self {
            Self::Gcm => Cipher::Gcm,
            Self::Ccm | Self::Off => Cipher::Off,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ccm => "aes-256-ccm",
            Self::Gcm | Self::Off => self.cipher().name(),
        }
    }
}

/// One timed read.
#[derive(Clone, Debug, Default)]
struct Round {
    seconds: f64,
    /// CPU nanoseconds by name of thread.
    threads: BTreeMap<String, u64>,
    /// CPU nanoseconds of the cipher (for `off`: of the checksum).
    seal_ns: u64,
    /// Share of the bytes that came from the second level.
    warm_share: f64,
}

impl Round {
    fn cpu_seconds(&self) -> f64 {
        self.threads.values().sum::<u64>() as f64 / 1e9
    }

    fn seal_share(&self) -> f64 {
        self.seal_ns as f64 / 1e9 / self.cpu_seconds().max(1e-9)
    }
}

/// The rounds of a candidate.
struct Row {
    candidate: Candidate,
    rounds: Vec<Round>,
    size_bytes: u64,
}

impl Row {
    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    }

    fn mb_per_second(&self) -> f64 {
        self.median(|round| self.size_bytes as f64 / 1e6 / round.seconds)
    }

    fn spread(&self) -> (f64, f64) {
        let rates = self.rounds.iter().map(|round| self.size_bytes as f64 / 1e6 / round.seconds);
        rates.fold((f64::MAX, 0.0), |(low, high), rate| (low.min(rate), high.max(rate)))
    }

    fn cpu_per_gib(&self) -> f64 {
        let gib = self.size_bytes as f64 / (1u64 << 30) as f64;
        self.median(Round::cpu_seconds) / gib
    }

    fn thread_per_gib(&self, name: &str) -> f64 {
        let gib = self.size_bytes as f64 / (1u64 << 30) as f64;
        self.median(|round| round.threads.get(name).copied().unwrap_or(0) as f64 / 1e9) / gib
    }
}

/// Runs the benchmark.
pub(crate) fn run(args: &SealArgs) -> Result<()> {
    let size_bytes = size(args)?;
    let stop = interrupt::on_signals()?;
    let work = tempfile::Builder::new()
        .prefix("ogive-bench-seal.")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot work in {}", args.dir.display()))?;
    let source = work.path().join("source");
    std::fs::create_dir(&source)?;
    eprintln!("a file of {} in {}", Size(size_bytes), work.path().display());
    write_file(&source.join("file"), size_bytes, &stop)?;
    // The version of a file that has just been written is not settled.
    std::thread::sleep(Duration::from_millis(100));
    let mut mounted = Vec::new();
    let measured = measure(work.path(), &source, size_bytes, &mut mounted, &stop);
    // End all of them, even after an error; the first error is reported.
    let ended: Vec<_> = mounted.into_iter().map(Mounted::end).collect();
    let rows = measured?;
    ended.into_iter().collect::<Result<()>>()?;
    if args.json { print_json(&rows) } else { print(&rows) }
}

fn size(args: &SealArgs) -> Result<u64> {
    let space = rustix::fs::statvfs(&args.dir)
        .with_context(|| format!("cannot look at {}", args.dir.display()))?;
    let free_bytes = space.f_bavail * space.f_frsize;
    let size_bytes = match args.size {
        Some(size) => size.0,
        None => SIZE_BYTES.min(free_bytes / SPACE_SHARE),
    };
    let size_bytes = size_bytes >> 20 << 20;
    if size_bytes < SIZE_BYTES_MIN {
        let remedy = if args.size.is_some() {
            "give a larger --size".to_owned()
        } else {
            format!("{} has too little room: give another --dir", args.dir.display())
        };
        bail!("cannot measure with less than {}; {remedy}", Size(SIZE_BYTES_MIN));
    }
    if size_bytes / 2 * 7 > free_bytes {
        bail!(
            "cannot measure: {} and two copies of it do not fit into {} of free space in {}",
            Size(size_bytes),
            Size(free_bytes >> 20 << 20),
            args.dir.display()
        );
    }
    Ok(size_bytes)
}

/// Bytes that do not compress, so that only the cipher differs.
fn write_file(path: &Path, size_bytes: u64, stop: &Stop) -> Result<()> {
    let mut file = File::create(path)?;
    let mut block = vec![0_u8; READ_BYTES];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..size_bytes / READ_BYTES as u64 {
        interrupt::check(stop)?;
        for word in block.as_chunks_mut::<8>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        file.write_all(&block).context("cannot write the file")?;
    }
    file.sync_all()?;
    Ok(())
}

/// The file behind a second level that is sealed by one cipher.
struct Mounted {
    cipher: Cipher,
    mount: Mount,
    mount_point: PathBuf,
    device: PathBuf,
}

impl Mounted {
    fn start(work: &Path, source: &Path, cipher: Cipher, size_bytes: u64) -> Result<Self> {
        let mount_point = work.join(format!("mount-{}", cipher.name()));
        std::fs::create_dir(&mount_point)?;
        let device = work.join(format!("second-level-{}", cipher.name()));
        let options = MountOptions {
            source: source.into(),
            mount_point: mount_point.clone(),
            direct_io: true,
            arc_max_bytes: Some((size_bytes / MEMORY_SHARE).max(32 << 20)),
            racy_window: Some(Duration::from_millis(50)),
            second_level: Some(second_level::options(
                &device,
                cipher,
                size_bytes + size_bytes / 16 + (64 << 20),
            )?),
            release_memory: crate::allocator::release_memory,
            ..MountOptions::default()
        };
        let mount = Mount::start(options)?;
        Ok(Self { cipher, mount, mount_point, device })
    }

    fn end(self) -> Result<()> {
        self.mount.unmounter().unmount()?;
        self.mount.wait()?;
        std::fs::remove_file(&self.device)?;
        Ok(())
    }
}

/// Measures all candidates. Afterwards `mounted` has every mount, also after an error.
fn measure(
    work: &Path,
    source: &Path,
    size_bytes: u64,
    mounted: &mut Vec<Mounted>,
    stop: &Stop,
) -> Result<Vec<Row>> {
    for cipher in [Cipher::Gcm, Cipher::Off] {
        mounted.push(Mounted::start(work, source, cipher, size_bytes)?);
    }
    for one in &*mounted {
        fill_up(one, size_bytes, stop)?;
    }
    let row = |candidate| Row { candidate, rounds: Vec::new(), size_bytes };
    let mut rows = Candidate::ALL.map(row);
    for number in 0..ROUNDS {
        for row in &mut rows {
            let candidate = row.candidate;
            eprint!("\r{}: reading, {} of {ROUNDS}     ", candidate.name(), number + 1);
            let of_candidate = mounted.iter().find(|one| one.cipher == candidate.cipher());
            let mount_point = &of_candidate.context("its mount is there")?.mount_point;
            forget(mount_point)?;
            row.rounds.push(time(mount_point, candidate, size_bytes, stop)?);
        }
    }
    eprintln!();
    Ok(rows.into())
}

/// Reads the file until the second level has it.
fn fill_up(one: &Mounted, size_bytes: u64, stop: &Stop) -> Result<()> {
    let Mounted { cipher, mount_point, .. } = one;
    let needed = size_bytes / (128 << 10) * 98 / 100;
    let mut passes = 0;
    while statistic(mount_point, "ogivestats", "l2_records")? < needed {
        if passes == PASSES_MAX {
            bail!(
                "the second level did not take the file in {PASSES_MAX} passes; is --dir so slow?"
            );
        }
        eprint!("\r{cipher}: filling, pass {}  ", passes + 1);
        fill(mount_point, &mount_point.join("file"), stop)?;
        passes += 1;
    }
    eprintln!();
    Ok(())
}

fn time(mount_point: &Path, candidate: Candidate, size_bytes: u64, stop: &Stop) -> Result<Round> {
    let count = |name: &str| statistic(mount_point, "ogivestats", name);
    let sealed = || Ok::<_, anyhow::Error>(count("l2_unseal_cpu_ns")? + count("l2_copy_cpu_ns")?);
    let before = (sealed()?, count("l2_bytes")?, threads()?);
    let start = Instant::now();
    let mut ccm = (candidate == Candidate::Ccm).then(Ccm::new);
    read_through(&mount_point.join("file"), ccm.as_mut(), stop)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut spent = threads()?;
    for (name, ns) in &mut spent {
        *ns = ns.saturating_sub(before.2.get(name).copied().unwrap_or(0));
    }
    let warm_bytes = count("l2_bytes")? - before.1;
    Ok(Round {
        seconds,
        threads: spent,
        seal_ns: ccm.map_or(sealed()? - before.0, |ccm| ccm.spent_ns()),
        warm_share: warm_bytes as f64 / size_bytes as f64,
    })
}

fn fill(mount_point: &Path, path: &Path, stop: &Stop) -> Result<()> {
    let mut file = File::open(path).context("cannot open the mounted file")?;
    let mut block = vec![0; READ_BYTES];
    let mut since_pause = 0;
    loop {
        interrupt::check(stop)?;
        let read = file.read(&mut block).context("cannot read the mounted file")?;
        since_pause += read;
        if read == 0 || since_pause >= FILL_BYTES {
            forget(mount_point)?;
            std::thread::sleep(FILL_PAUSE);
            since_pause = 0;
        }
        if read == 0 {
            return Ok(());
        }
    }
}

fn read_through(path: &Path, mut ccm: Option<&mut Ccm>, stop: &Stop) -> Result<()> {
    let mut file = File::open(path).context("cannot open the mounted file")?;
    let mut block = vec![0; READ_BYTES];
    loop {
        let read = file.read(&mut block).context("cannot read the mounted file")?;
        if read == 0 {
            return Ok(());
        }
        if let Some(ccm) = &mut ccm {
            ccm.work(&mut block[..read])?;
        }
        interrupt::check(stop)?;
    }
}

fn forget(mount_point: &Path) -> Result<()> {
    std::fs::write(mount_point.join(".ogive/reclaim"), "all").context("cannot empty the cache")
}

/// A statistic of the mount, 0 if it has none of that name.
fn statistic(mount_point: &Path, file: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(mount_point.join(".ogive").join(file))?;
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    Ok(line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or(0))
}

/// CPU time of this process's threads, by name without numbers.
fn threads() -> Result<BTreeMap<String, u64>> {
    let mut spent = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/task")? {
        let task = entry?.path();
        // A thread may end while it is looked at.
        let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
        let Ok(times) = std::fs::read_to_string(task.join("schedstat")) else { continue };
        let ns: u64 = times.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        let name = name.trim().trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        *spent.entry(name.to_owned()).or_insert(0) += ns;
    }
    Ok(spent)
}

fn published(candidate: Candidate) -> f64 {
    let row = PUBLISHED_MB_PER_SECOND.iter().find(|(name, _)| *name == candidate);
    row.map_or(0.0, |(_, rate)| *rate)
}

const THREADS: [&str; 4] = ["ogive", "fuser", "l2_read", "origin_read"];

fn print(rows: &[Row]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<12} {:>8} {:>15} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>10}",
        "cipher",
        "MB/s",
        "spread",
        "CPU s/GiB",
        "reader",
        "session",
        "l2_read",
        "origin",
        "cipher",
        "warm",
        "published"
    )?;
    for row in rows {
        let (low, high) = row.spread();
        write!(
            out,
            "{:<12} {:>8.0} {:>15}",
            row.candidate.name(),
            row.mb_per_second(),
            format!("{low:.0}-{high:.0}")
        )?;
        write!(out, " {:>9.3}", row.cpu_per_gib())?;
        for name in THREADS {
            write!(out, " {:>8.3}", row.thread_per_gib(name))?;
        }
        writeln!(
            out,
            " {:>6.1}% {:>5.0}% {:>10}",
            100.0 * row.median(Round::seal_share),
            100.0 * row.median(|round| round.warm_share),
            format!("{:.0} MB/s", published(row.candidate))
        )?;
    }
    writeln!(out, "\n{}", verdict(rows))?;
    Ok(())
}

/// The sentence at the end.
fn verdict(rows: &[Row]) -> String {
    let find = |candidate| rows.iter().find(|row| row.candidate == candidate);
    let (Some(ccm), Some(gcm), Some(off)) =
        (find(Candidate::Ccm), find(Candidate::Gcm), find(Candidate::Off))
    else {
        return "not everything was measured".to_owned();
    };
    format!(
        "On this machine, AES-256-GCM changes the CPU time of a read from the second level by {} \
         against a checksum ({:.3} of {:.3} CPU s/GiB are the cipher's), and AES-256-CCM by {}. \
         They reach {:.0}% and {:.0}% of the unsealed MB/s.",
        cost(gcm, off),
        gcm.median(Round::seal_share) * gcm.cpu_per_gib(),
        gcm.cpu_per_gib(),
        cost(ccm, off),
        100.0 * gcm.mb_per_second() / off.mb_per_second(),
        100.0 * ccm.mb_per_second() / off.mb_per_second(),
    )
}

/// The extra cost of a row over another in percent: the median of adjacent rounds, with the
/// minimum and the maximum.
fn cost(row: &Row, other: &Row) -> String {
    let rounds = row.rounds.iter().zip(&other.rounds);
    let mut ratios: Vec<f64> = rounds
        .map(|(one, other)| 100.0 * (one.cpu_seconds() / other.cpu_seconds().max(1e-9) - 1.0))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |index: usize| ratios.get(index).copied().unwrap_or(0.0);
    let (middle, last) = (ratios.len() / 2, ratios.len().saturating_sub(1));
    format!("{:+.1}% ({:+.1} to {:+.1}%)", at(middle), at(0), at(last))
}

fn print_json(rows: &[Row]) -> Result<()> {
    let values: Vec<_> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "cipher": row.candidate.name(),
                "size_bytes": row.size_bytes,
                "mb_per_second": row.mb_per_second(),
                "mb_per_second_spread": row.spread(),
                "cpu_seconds_per_gib": row.cpu_per_gib(),
                "cpu_seconds_per_gib_by_thread":
                    THREADS.map(|name| (name, row.thread_per_gib(name))),
                "cipher_share_of_cpu": row.median(Round::seal_share),
                "warm_share": row.median(|round| round.warm_share),
                "published_mb_per_second": published(row.candidate),
            })
        })
        .collect();
    let value = serde_json::json!({ "rows": values, "verdict": verdict(rows) });
    writeln!(std::io::stdout().lock(), "{value:#}")?;
    Ok(())
}
