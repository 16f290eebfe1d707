//! Write amplification: bytes written for each byte admitted, while the log wraps around and carries
//! over records with hits.

use crate::measure::wait_for;
use crate::{Failure, RECORD, tier};
use ogive_arc::{Access, Cache, Kind};
use ogive_l2::device::MemoryDevice;
use ogive_l2::{Compression, Offered, SharedBytes, Tier};
use ogive_sim::{ReadOptions, TraceReader};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Accesses of the made-up workload, and most of a trace that are replayed.
const ACCESSES: usize = 60_000;
const TRACE_REQUESTS_MAX: usize = 400_000;
/// Shares of a workload's records that memory and the device hold.
const MEMORY_SHARE: u64 = 20;
const DEVICE_SHARE: u64 = 5;

pub(crate) fn run(traces: &[String]) -> Result<(), Failure> {
    println!();
    // The product of two draws is near to Zipf's law with exponent one.
    let mut random = fastrand::Rng::with_seed(1);
    let mut skewed = |objects: f64| (random.f64() * random.f64() * objects) as u64;
    let large: Vec<u64> = (0..ACCESSES).map(|_| skewed(8192.0)).collect();
    replay("skewed, 128 KiB", &large, RECORD)?;
    let small: Vec<u64> = (0..ACCESSES * 3).map(|_| skewed(65_536.0)).collect();
    replay("skewed, 16 KiB", &small, 16 << 10)?;
    for trace in traces {
        let name = Path::new(trace).file_name().unwrap_or_default().to_string_lossy();
        let keys = read(Path::new(trace))?;
        replay(&format!("{name}, 16 KiB"), &keys, 16 << 10)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u64>, Failure> {
    let options = ReadOptions { entries: true, ..ReadOptions::default() };
    let mut reader = TraceReader::open(path, &options, Arc::default())?;
    let mut requests = Vec::new();
    reader.read(&mut requests, TRACE_REQUESTS_MAX)?;
    Ok(requests.into_iter().map(|request| request.key).collect())
}

/// Half of it compresses.
fn contents(key: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![key as u8; length];
    fastrand::Rng::with_seed(key).fill(&mut bytes[length / 2..]);
    bytes
}

/// A value of the first level, shared with the second.
struct Value(Arc<Vec<u8>>);

/// Replays keys through both levels, as in a mount: memory offers evicted records to the second.
fn replay(name: &str, keys: &[u64], length: usize) -> Result<(), Failure> {
    let objects = keys.iter().collect::<HashSet<_>>().len() as u64;
    let device_bytes = (objects * length as u64 / DEVICE_SHARE).max(64 << 20);
    let device = Arc::new(MemoryDevice::new(device_bytes));
    let level = Arc::new(tier(device, length as u64 / 2, Compression::Lz4)?);
    let hook = level.clone();
    let memory = Cache::<u64, Value>::builder(objects * length as u64 / MEMORY_SHARE)
        .on_evict(move |gone| {
            let bytes: SharedBytes = gone.value.0.clone();
            let frequent = gone.list == ogive_arc::List::Mfu;
            let offered = Offered { frequent, ..Offered::default() };
            hook.offer(&gone.key.to_le_bytes(), bytes, offered);
        })
        .build();
    for (access, key) in keys.iter().enumerate() {
        if memory.get(key, Access::Demand).is_none() {
            let bytes = level.read(&key.to_le_bytes()).unwrap_or_else(|| contents(*key, length));
            let value = Value(Arc::new(bytes));
            drop(memory.insert(*key, value, length as u64, Kind::Data, Access::Demand));
        }
        if access % 256 == 0 {
            wait_for("the end of writing", || level.settle())?;
        }
    }
    wait_for("the end of writing", || level.settle())?;
    report(name, &level, device_bytes);
    Ok(())
}

fn report(name: &str, level: &Tier, device_bytes: u64) {
    let counts = level.counts();
    let written = counts.l2_write_bytes as f64;
    println!(
        "write amplification, {name:<31} {:>10.3}        ({:.3} of the bytes before compression, \
         {:.1} times round, {:.1}% carried over, {:.0}% of L2 reads are hits)",
        written / counts.l2_stored_bytes_written as f64,
        written / counts.l2_plain_bytes_written as f64,
        written / device_bytes as f64,
        100.0 * counts.l2_reinserted_bytes as f64 / written,
        100.0 * counts.l2_hits as f64 / (counts.l2_hits + counts.l2_misses).max(1) as f64,
    );
}
