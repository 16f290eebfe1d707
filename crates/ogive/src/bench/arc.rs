//! `ogive bench arc`: cached random reads of 8 KiB by many threads.
//!
//! The classic measurement of a cache's locks: everything is in memory, every read finds its
//! record and copies it. Beside ogive's engine stand the same policy behind one lock, the same
//! in 64 parts with a lock each, and the copy alone.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use ogive_arc::policy::{Balance, Sublist, transition};
use ogive_arc::{Access, Cache, Kind, List};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::exit::{self, Refusal};
use crate::quantity::Size;

const RECORD_BYTES: usize = 8 << 10;
const PARTS: usize = 64;
type Record = [u8; RECORD_BYTES];

/// Cached random 8 KiB reads: the engine, the same policy behind locks, and the bare copy
///
/// Threads look up random records that are all in the cache and copy them. Printed are the bytes
/// copied a second by all threads, the median of the rounds, and the CPU time of one read.
#[derive(Debug, Args)]
pub(crate) struct ArcArgs {
    /// How many records, as bytes; each of the four candidates has its own
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    size: Size,

    /// Numbers of threads, separated by commas
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    threads: Vec<usize>,

    /// Rounds; each measures every candidate with every number of threads
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,

    /// How long each measurement of a round takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200)]
    millis: u64,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Finds a record and copies it.
trait Candidate: Sync {
    fn name(&self) -> &'static str;
    fn read(&self, key: u64, into: &mut Record);
}

struct Ogive(Cache<u64, Record>);

impl Candidate for Ogive {
    fn name(&self) -> &'static str {
        "ogive"
    }

    fn read(&self, key: u64, into: &mut Record) {
        if let Some(record) = self.0.get(&key, Access::Demand) {
            into.copy_from_slice(&*record);
        }
    }
}

/// What one lock guards: lists, their balance, and the clock of their stamps.
type Part = Mutex<(Sublist<u64, Arc<Record>>, Balance, u64)>;

/// The policy of the paper, with its lists behind locks: one, or one a part.
struct Locked {
    name: &'static str,
    parts: Vec<Part>,
}

const fn scattered(key: u64) -> u64 {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 29)
}

impl Locked {
    fn new(name: &'static str, parts: usize, records: u64) -> Self {
        let bytes = records * RECORD_BYTES as u64;
        let part = |_| Mutex::new((Sublist::new(), Balance::new(0, bytes, bytes), 0));
        let locked = Self { name, parts: (0..parts).map(part).collect() };
        for key in 0..records {
            let mut part = locked.part(key).lock().unwrap_or_else(PoisonError::into_inner);
            let (sublist, balance, clock) = &mut *part;
            let id = sublist.add(scattered(key), key, Kind::Data);
            let weight_bytes = RECORD_BYTES as u64;
            balance.add_anon(Kind::Data, weight_bytes);
            let record = Arc::new([key as u8; RECORD_BYTES]);
            transition::arrive(sublist, balance, id, List::Mru, weight_bytes, record);
            *clock += 1;
            sublist.link(id, *clock);
        }
        locked
    }

    fn part(&self, key: u64) -> &Part {
        &self.parts[(scattered(key) >> 40) as usize % self.parts.len()]
    }

    fn find(&self, key: u64) -> Option<Arc<Record>> {
        let mut part = self.part(key).lock().unwrap_or_else(PoisonError::into_inner);
        let (sublist, balance, clock) = &mut *part;
        let id = sublist.find(scattered(key), &key)?;
        let touch = transition::touch(sublist, id, Access::Demand);
        sublist.unlink(id);
        if touch.promote {
            transition::promote(sublist, balance, id);
        }
        *clock += 1;
        sublist.link(id, *clock);
        sublist.payload(id).map(Arc::clone)
    }
}

impl Candidate for Locked {
    fn name(&self) -> &'static str {
        self.name
    }

    fn read(&self, key: u64, into: &mut Record) {
        if let Some(record) = self.find(key) {
            into.copy_from_slice(&*record);
        }
    }
}

struct Copy(Vec<Box<Record>>);

impl Candidate for Copy {
    fn name(&self) -> &'static str {
        "copy alone"
    }

    fn read(&self, key: u64, into: &mut Record) {
        into.copy_from_slice(&*self.0[key as usize]);
    }
}

/// One measurement: bytes a second, and nanoseconds of CPU a read.
#[derive(Clone, Copy)]
struct Sample {
    bytes_per_second: f64,
    cpu_ns: f64,
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn measure(candidate: &dyn Candidate, records: u64, threads: usize, span: Duration) -> Sample {
    let (stop, start) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let (reads, cpu_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut seconds = 0.0;
    thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, start, all_reads, all_cpu_ns) = (&stop, &start, &reads, &cpu_ns);
            scope.spawn(move || {
                let mut into = Box::new([0; RECORD_BYTES]);
                let mut state = scattered(thread as u64 + 1) | 1;
                start.wait();
                let (before_ns, mut reads) = (thread_cpu_ns(), 0);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..16 {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        candidate.read(state % records, &mut into);
                        std::hint::black_box(&mut into);
                    }
                    reads += 16;
                }
                all_cpu_ns.fetch_add(thread_cpu_ns() - before_ns, Ordering::Relaxed);
                all_reads.fetch_add(reads, Ordering::Relaxed);
            });
        }
        start.wait();
        let started = Instant::now();
        thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
        seconds = started.elapsed().as_secs_f64();
    });
    let reads = reads.into_inner() as f64;
    Sample {
        bytes_per_second: reads * RECORD_BYTES as f64 / seconds,
        cpu_ns: cpu_ns.into_inner() as f64 / reads.max(1.0),
    }
}

fn median(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn candidates(records: u64) -> Vec<Box<dyn Candidate>> {
    let bytes = records * RECORD_BYTES as u64;
    let cache = Cache::builder(bytes).expected_weight_bytes(RECORD_BYTES as u64).build();
    for key in 0..records {
        let record = [key as u8; RECORD_BYTES];
        drop(cache.insert(key, record, RECORD_BYTES as u64, Kind::Data, Access::Demand));
    }
    vec![
        Box::new(Ogive(cache)),
        Box::new(Locked::new("one lock", 1, records)),
        Box::new(Locked::new("split locks", PARTS, records)),
        Box::new(Copy((0..records).map(|key| Box::new([key as u8; RECORD_BYTES])).collect())),
    ]
}

/// Runs the benchmark.
pub(super) fn run(args: &ArcArgs) -> Result<()> {
    let records = args.size.0 / RECORD_BYTES as u64;
    let sensible = records > 0
        && args.rounds > 0
        && args.millis > 0
        && args.threads.iter().all(|&threads| (1..=4096).contains(&threads));
    if !sensible {
        let message = "--size must be 8KiB or more, --rounds and --millis 1 or more, --threads \
                       between 1 and 4096";
        return Err(Refusal::new(exit::USAGE, message).into());
    }
    let candidates = candidates(records);
    let span = Duration::from_millis(args.millis);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut out = io::stdout().lock();
    if !args.json {
        writeln!(
            out,
            "cached random reads of 8 KiB from {}, {processors} processors; MB/s (ns of CPU a \
             read), medians of {}",
            args.size, args.rounds
        )?;
        let names = candidates.iter().map(|candidate| format!("{:>20}", candidate.name()));
        writeln!(out, "{:>7}{}", "threads", names.collect::<String>())?;
    }
    let mut rows = Vec::new();
    for &threads in &args.threads {
        let mut samples = vec![Vec::new(); candidates.len()];
        for _ in 0..args.rounds {
            for (candidate, samples) in candidates.iter().zip(&mut samples) {
                samples.push(measure(&**candidate, records, threads, span));
            }
        }
        let mut line = format!("{threads:>7}");
        for (candidate, samples) in candidates.iter().zip(&samples) {
            let (rate, low, high) = median(samples.iter().map(|s| s.bytes_per_second / 1e6));
            let (cpu_ns, ..) = median(samples.iter().map(|s| s.cpu_ns));
            line += &format!("{:>20}", format!("{rate:.0} ({cpu_ns:.0})"));
            rows.push(json!({
                "candidate": candidate.name(), "threads": threads, "megabytes_per_second": rate,
                "lowest": low, "highest": high, "cpu_ns_per_read": cpu_ns,
            }));
        }
        if !args.json {
            writeln!(out, "{line}")?;
            out.flush()?;
        }
    }
    if args.json {
        let all = json!({ "record_bytes": RECORD_BYTES, "records": records,
            "processors": processors, "rounds": args.rounds, "rows": rows });
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}
