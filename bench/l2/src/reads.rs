//! Hits of the second level against reads of the same length at the same depth from the same disk,
//! and against other caches on it.

use crate::measure::{Rounds, process_cpu_ns, show};
use crate::peers::{FilePerRecord, Foyer};
use crate::{Failure, RECORD, ROUNDS, tier};
use ogive_l2::device::{self, AlignedBuffer, Device, Engine, OpenMode, ReadRequest};
use ogive_l2::{Compression, Offered, Tier};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Records of every cache here: 512 MiB.
const RECORDS: u64 = 4096;
/// Reads of a round.
const READS: usize = 2048;
/// The length of a read of the bare device: a record and its header, as the second level reads it.
const BARE: usize = RECORD + 512;

/// A candidate that reads records.
pub(crate) trait Ask: Sync {
    /// Reads a record; whether it was there.
    fn ask(&self, number: u64) -> bool;
}

impl Ask for Tier {
    fn ask(&self, number: u64) -> bool {
        self.read(&number.to_le_bytes()).is_some_and(|bytes| bytes.len() == RECORD)
    }
}

/// The same through a reader thread of the second level, as in a mount.
struct Here<'a>(&'a Tier);

impl Ask for Here<'_> {
    fn ask(&self, number: u64) -> bool {
        self.0.read_here(&number.to_le_bytes()).is_some_and(|bytes| bytes.len() == RECORD)
    }
}

/// The bare device, one read a thread.
struct Bare(Arc<dyn Device>);

impl Ask for Bare {
    fn ask(&self, number: u64) -> bool {
        thread_local! {
            static BUFFER: std::cell::RefCell<AlignedBuffer> = std::cell::RefCell::default();
        }
        BUFFER.with_borrow_mut(|buffer| self.0.read_at(place(number), buffer.first(BARE)).is_ok())
    }
}

/// The offset of a number on the bare device, like that of a record.
fn place(number: u64) -> u64 {
    (1 << 20) + number * (RECORD as u64 + 512)
}

/// Bytes that differ from record to record.
pub(crate) fn contents(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; RECORD];
    fastrand::Rng::with_seed(number).fill(&mut bytes);
    bytes
}

pub(crate) fn run(work: &Path) -> Result<(), Failure> {
    let device = device::open(&work.join("ogive"), OpenMode::Create, Engine::Probe)?;
    let sealed = filled(device.clone())?;
    let plain = device::open(&work.join("ogive-pread"), OpenMode::Create, Engine::Pread)?;
    let plain = filled(plain)?;
    let bare = Bare(device.clone());
    let foyer = Foyer::open(&work.join("foyer"), RECORDS)?;
    let files = FilePerRecord::fill(&work.join("files"), RECORDS)?;
    println!("{RECORDS} records of 128 KiB, {}, {ROUNDS} rounds of {READS} reads", device.engine());
    for depth in [1, 32] {
        println!();
        let mut rates: [Rounds; 7] = std::array::from_fn(|_| Rounds::new());
        let mut costs: [Rounds; 7] = std::array::from_fn(|_| Rounds::new());
        let mut shares: [Rounds; 2] = std::array::from_fn(|_| Rounds::new());
        for _ in 0..ROUNDS {
            let threads = rate(&bare, depth)?;
            let here = rate(&Here(&sealed), depth)?;
            let handed_over = rate(&sealed, depth)?;
            let rounds = [
                threads,
                batched(&*device, depth)?,
                here,
                handed_over,
                rate(&plain, depth)?,
                rate(&foyer, depth)?,
                rate(&files, depth)?,
            ];
            for (number, round) in rounds.iter().enumerate() {
                rates[number].push(round.mb_per_second);
                costs[number].push(round.cpu_us);
            }
            for (share, hit) in shares.iter_mut().zip([here, handed_over]) {
                share.push(100.0 * hit.mb_per_second / threads.mb_per_second);
            }
        }
        let names = [
            "bare O_DIRECT pread",
            "bare io_uring, in batches",
            "second level, aes-256-gcm, read here",
            "second level, aes-256-gcm, handed over",
            "second level, aes-256-gcm, preadv",
            "foyer, no cipher",
            "a file a record, O_DIRECT, no cipher",
        ];
        for (name, rates) in names.iter().zip(&rates) {
            rates.show(&format!("depth {depth}: {name}"), "MB/s");
        }
        shares[0].show("  read here, of bare pread, round by round", "%");
        shares[1].show("  handed over, of bare pread, round by round", "%");
        for (name, costs) in names.iter().zip(&costs) {
            costs.show(&format!("depth {depth}: {name}, CPU"), "us");
        }
    }
    stages(&sealed)?;
    latencies(&bare, &sealed)
}

/// A second level with all records.
fn filled(device: Arc<dyn Device>) -> Result<Tier, Failure> {
    device.set_len_bytes(640 << 20)?;
    let tier = tier(device, RECORD as u64, Compression::Off)?;
    for number in 0..RECORDS {
        let bytes = Arc::new(contents(number));
        crate::measure::wait_for("room in the queue", || {
            tier.offer(&number.to_le_bytes(), bytes.clone(), Offered::default())
                || tier.may_have(&number.to_le_bytes())
        })?;
    }
    crate::measure::wait_for("the end of writing", || tier.settle())?;
    Ok(tier)
}

/// The result of a round.
#[derive(Clone, Copy)]
struct Round {
    mb_per_second: f64,
    /// CPU time of the whole process a read, in microseconds.
    cpu_us: f64,
}

fn timed(reads: impl FnOnce() -> Result<(), Failure>) -> Result<Round, Failure> {
    let (start, cpu_ns) = (Instant::now(), process_cpu_ns());
    reads()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_us = (process_cpu_ns() - cpu_ns) as f64 / 1e3 / READS as f64;
    Ok(Round { mb_per_second: (READS * RECORD) as f64 / 1e6 / seconds, cpu_us })
}

/// As many threads as the depth; each reads one record after another.
fn rate(peer: &impl Ask, depth: usize) -> Result<Round, Failure> {
    let missing = AtomicUsize::new(0);
    let round = timed(|| {
        std::thread::scope(|scope| {
            for _ in 0..depth {
                scope.spawn(|| {
                    for _ in 0..READS / depth {
                        let there = peer.ask(fastrand::u64(..RECORDS));
                        missing.fetch_add(usize::from(!there), Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(())
    })?;
    let missing = missing.into_inner();
    // A cache that has lost many records is an error; a few do not matter.
    if missing * 50 > READS {
        return Err(format!("{missing} of {READS} reads found nothing").into());
    }
    Ok(round)
}

fn batched(device: &dyn Device, depth: usize) -> Result<Round, Failure> {
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuffer::zeroed(BARE)).collect();
    timed(|| {
        for _ in 0..READS / depth {
            let mut reads: Vec<_> = buffers
                .iter_mut()
                .map(|buffer| ReadRequest {
                    offset: place(fastrand::u64(..RECORDS)),
                    buffer: buffer.first(BARE),
                    result: Ok(()),
                })
                .collect();
            device.read_many(&mut reads);
            reads.into_iter().try_for_each(|read| read.result)?;
        }
        Ok(())
    })
}

/// Where the CPU time of a hit goes, by the level's own counters.
fn stages(tier: &Tier) -> Result<(), Failure> {
    let counts = tier.counts();
    let us = |ns: u64| ns as f64 / counts.l2_hits.max(1) as f64 / 1e3;
    println!();
    show("CPU of a hit: reading", us(counts.l2_read_cpu_ns), "us");
    show("CPU of a hit: unsealing", us(counts.l2_unseal_cpu_ns), "us");
    Ok(())
}

/// Latencies at depth 1, alternating, so that both see the same disk.
fn latencies(bare: &Bare, tier: &Tier) -> Result<(), Failure> {
    let mut all: [_; 3] = std::array::from_fn(|_| Vec::with_capacity(READS));
    for _ in 0..READS {
        let number = fastrand::u64(..RECORDS);
        let asked: [&dyn Ask; 3] = [bare, &Here(tier), tier];
        for (peer, latencies) in asked.into_iter().zip(&mut all) {
            let start = Instant::now();
            let there = peer.ask(number);
            latencies.push(start.elapsed());
            if !there {
                return Err("a record was lost".into());
            }
        }
    }
    println!();
    let names = ["bare pread", "second level, here", "second level, handed over"];
    for (name, mut latencies) in names.into_iter().zip(all) {
        latencies.sort_unstable();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let us = |latency: Duration| latency.as_secs_f64() * 1e6;
        println!(
            "latency at depth 1, {name:<30} {:>10.1} us     (99%: {:.1} us, 99.9%: {:.1} us)",
            us(at(0.5)),
            us(at(0.99)),
            us(at(0.999))
        );
    }
    Ok(())
}
