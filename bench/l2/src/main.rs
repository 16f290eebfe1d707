//! The cost of the second level, compared with the bare device, the bare cipher and other caches.
//!
//! Each comparison is one run with several interleaved rounds, and gives medians with their spread.
//! On a busy machine, trust only the ratios.

mod amplification;
mod measure;
mod peers;
mod reads;
mod recovery;
mod seals;

use ogive_l2::device::Device;
use ogive_l2::{
    Admission, Cipher, Compression, KeySource, MasterKey, OpenOptions, StoreOptions, Tier,
    TierOptions,
};
use std::path::Path;
use std::sync::Arc;

/// The allocator of the program itself.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn std::error::Error>;

/// Bytes of a record.
const RECORD: usize = 128 << 10;
/// Rounds of each comparison.
const ROUNDS: usize = 5;

const USAGE: &str = "usage: ogive-bench-l2 DIRECTORY [reads|seals|recovery|amplification]... \
    [--trace FILE]...";

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or(USAGE)?;
    let (mut parts, mut traces) = (Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--trace" => traces.push(arguments.next().ok_or(USAGE)?),
            "reads" | "seals" | "recovery" | "amplification" => parts.push(argument),
            _ => return Err(USAGE.into()),
        }
    }
    let work = Path::new(&directory).join(format!("ogive-bench-l2.{}", std::process::id()));
    std::fs::create_dir(&work)?;
    let result = run(&work, &parts, &traces);
    std::fs::remove_dir_all(&work)?;
    result
}

fn run(work: &Path, parts: &[String], traces: &[String]) -> Result<(), Failure> {
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|one| one == part);
    if wanted("reads") {
        reads::run(work)?;
    }
    if wanted("seals") {
        seals::run();
    }
    if wanted("recovery") {
        recovery::run(work)?;
    }
    if wanted("amplification") {
        amplification::run(traces)?;
    }
    Ok(())
}

/// A second level on one device, sealed by AES-256-GCM, that admits every record.
fn tier(device: Arc<dyn Device>, record_bytes: u64, how: Compression) -> Result<Tier, Failure> {
    let open = OpenOptions {
        cipher: Some(Cipher::Gcm),
        key: KeySource::Master(MasterKey::from_material(&[1; 32])?),
        ..OpenOptions::default()
    };
    let store = StoreOptions {
        compression: how,
        admission: Admission::All,
        expected_record_bytes: record_bytes,
        ..StoreOptions::default()
    };
    let options = TierOptions { store, ..TierOptions::default() };
    let tier = Tier::open(vec![(device, open)], options).map_err(|(_, error)| error)?;
    measure::wait_for("recovery", || tier.settle())?;
    Ok(tier)
}
