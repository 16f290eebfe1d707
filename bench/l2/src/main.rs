//! What the second level costs beside the bare device and the bare cipher.
//!
//! Each comparison is interleaved in one run, several rounds, medians and spread; on a busy machine
//! the ratios are what to look at.

use ogive_l2::device::{self, AlignedBuffer, Device, Engine, MemoryDevice, OpenMode, ReadRequest};
use ogive_l2::{
    Admission, Cipher, Compression, FormatPolicy, KeySource, MasterKey, Offered, OpenOptions, Seal,
    StoreOptions, Tier, TierOptions, nonce,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const RECORD: usize = 128 << 10;
const RECORDS: u64 = 4096;
const ROUNDS: usize = 5;

fn main() -> Result<(), Failure> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/var/tmp".to_owned());
    let path = Path::new(&directory).join(format!("ogive-bench-l2.{}", std::process::id()));
    let result = run(&path);
    std::fs::remove_file(&path)?;
    result
}

fn run(path: &Path) -> Result<(), Failure> {
    reads(path)?;
    seals();
    recovery()?;
    amplification()
}

fn tier(device: Arc<dyn Device>, record_bytes: u64, admission: Admission) -> Result<Tier, Failure> {
    let how = OpenOptions {
        size_bytes: None,
        cipher: Some(Cipher::Gcm),
        key: KeySource::Master(MasterKey::from_material(&[1; 32])?),
        format: FormatPolicy::IfEmpty,
    };
    let store = StoreOptions {
        compression: Compression::Off,
        admission,
        expected_record_bytes: record_bytes,
        ..StoreOptions::default()
    };
    let options = TierOptions { store, ..TierOptions::default() };
    let tier = Tier::open(vec![(device, how)], options).map_err(|(_, error)| error)?;
    tier.settle();
    Ok(tier)
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn show(what: &str, unit: &str, values: Vec<f64>) -> f64 {
    let (middle, low, high) = median(values);
    println!("{what:<46} {middle:>10.2} {unit:<10} ({low:.2} to {high:.2})");
    middle
}

/// Hits of the tier against reads of the same length at the same depth from the same device.
fn reads(path: &Path) -> Result<(), Failure> {
    let device = device::open(path, OpenMode::Create, Engine::Probe)?;
    device.set_len_bytes(1 << 30)?;
    let tier = tier(device.clone(), RECORD as u64, Admission::All)?;
    let mut bytes = vec![0; RECORD];
    for number in 0..RECORDS {
        fastrand::fill(&mut bytes);
        while !tier.offer(&number.to_le_bytes(), Arc::new(bytes.clone()), Offered::default()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    tier.settle();
    println!("{} records of 128 KiB, {}", RECORDS, device.engine());
    for depth in [1, 32] {
        let (mut bare, mut sealed) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(bare_rate(&*device, depth));
            sealed.push(sealed_rate(&tier, depth));
        }
        let bare = show(&format!("bare O_DIRECT read, depth {depth}"), "MB/s", bare);
        let sealed = show(&format!("second level hit, depth {depth}"), "MB/s", sealed);
        println!("{:<46} {:>10.1} %", "  of the bare read", 100.0 * sealed / bare);
    }
    let counts = tier.counts();
    let mean_us = counts.l2_read_wait_ns as f64 / counts.l2_reads.max(1) as f64 / 1e3;
    println!("{:<46} {mean_us:>10.1} us", "mean latency of all hits");
    let per = |ns: u64| ns as f64 / counts.l2_reads.max(1) as f64 / 1e3;
    println!(
        "{:<46} {:>10.1} us read, {:.1} us unseal",
        "CPU time a hit",
        per(counts.l2_read_cpu_ns),
        per(counts.l2_unseal_cpu_ns)
    );
    Ok(())
}

const READS: usize = 4096;

fn bare_rate(device: &dyn Device, depth: usize) -> f64 {
    let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuffer::zeroed(RECORD + 512)).collect();
    let records = (900 << 20) / RECORD as u64;
    let start = Instant::now();
    for _ in 0..READS / depth {
        let mut reads: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| ReadRequest {
                offset: (1 << 20) + fastrand::u64(..records) * RECORD as u64,
                buffer: buffer.first(RECORD + 512),
                result: Ok(()),
            })
            .collect();
        device.read_many(&mut reads);
    }
    (READS * RECORD) as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn sealed_rate(tier: &Tier, depth: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..depth {
            scope.spawn(|| {
                for _ in 0..READS / depth {
                    std::hint::black_box(tier.read(&fastrand::u64(..RECORDS).to_le_bytes()));
                }
            });
        }
    });
    (READS * RECORD) as f64 / 1e6 / start.elapsed().as_secs_f64()
}

/// The bare cipher, in CPU time of this thread.
fn seals() {
    println!();
    for cipher in Cipher::ALL {
        let seal = Seal::new(cipher, &[7; 32]);
        let (mut bytes, mut plain) = (vec![3; RECORD], vec![0; RECORD]);
        let (mut sealing, mut opening) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS as u64 {
            let (mut sealed_ns, mut opened_ns) = (0, 0);
            for number in 0..256 {
                let nonce = nonce(round + 1, number);
                let start = cpu_ns();
                let tag = seal.seal(nonce, &[0; 72], &mut bytes);
                let middle = cpu_ns();
                assert!(seal.open(nonce, &[0; 72], tag, &bytes, &mut plain));
                sealed_ns += middle - start;
                opened_ns += cpu_ns() - middle;
            }
            sealing.push((256 * RECORD) as f64 / sealed_ns as f64);
            opening.push((256 * RECORD) as f64 / opened_ns as f64);
        }
        show(&format!("{cipher}: seal 128 KiB"), "GB/s", sealing);
        show(&format!("{cipher}: open 128 KiB"), "GB/s", opening);
    }
}

fn cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A million small records: memory of the index, and the time to find them again.
fn recovery() -> Result<(), Failure> {
    println!();
    const MANY: u64 = 1_000_000;
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(640 << 20));
    let filled = tier(device.clone(), 600, Admission::All)?;
    for number in 0..MANY {
        let bytes = Arc::new(vec![number as u8; 400]);
        while !filled.offer(&number.to_le_bytes(), bytes.clone(), Offered::default()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    filled.settle();
    drop(filled);
    let again = tier(device, 600, Admission::All)?;
    let usage = again.usage()[0];
    let millions = usage.records as f64 / 1e6;
    println!(
        "{:<46} {:>10.2} s",
        "recovery of a million records",
        usage.recovery_ns as f64 / 1e9 / millions
    );
    println!(
        "{:<46} {:>10.2} B",
        "memory a record",
        usage.index_bytes as f64 / usage.records as f64
    );
    Ok(())
}

/// Skewed reads over four times what the device holds; misses are offered, as evictions are.
fn amplification() -> Result<(), Failure> {
    println!();
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(256 << 20));
    let tier = tier(device, RECORD as u64, Admission::All)?;
    let objects = 4 * (256 << 20) / RECORD as u64;
    let mut random = fastrand::Rng::with_seed(1);
    let mut hits = 0;
    const ACCESSES: u64 = 60_000;
    for access in 0..ACCESSES {
        // The product of two draws is near to Zipf's law with exponent one.
        let object = (random.f64() * random.f64() * objects as f64) as u64;
        let name = object.to_le_bytes();
        if tier.read(&name).is_some() {
            hits += 1;
        } else {
            let mut bytes = vec![0; RECORD];
            fastrand::Rng::with_seed(object).fill(&mut bytes);
            tier.offer(&name, Arc::new(bytes), Offered::default());
        }
        if access % 256 == 0 {
            tier.settle();
        }
    }
    let counts = tier.counts();
    println!(
        "{:<46} {:>10.3}   ({:.1} times round, {} records carried over, {:.0}% hits)",
        "write amplification",
        counts.l2_write_bytes as f64 / counts.l2_stored_bytes_written as f64,
        counts.l2_write_bytes as f64 / (256 << 20) as f64,
        counts.l2_reinserted,
        100.0 * hits as f64 / ACCESSES as f64
    );
    Ok(())
}
