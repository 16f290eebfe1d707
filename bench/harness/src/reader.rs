//! The reader of the `caching` group: Zipf reads of a working set, alone and together with a scan.
//!
//! It is a separate process, so that it can be in the cgroup of the daemon. One thread makes both
//! kinds of reads in turns, so their sequence is the same for every peer and every speed. Before each
//! phase it prints the name of the phase and waits for a line, so that the harness can read counters.
//! After each phase it prints the seconds that the phase took.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::error::{Context, Result};
use crate::fileset;
use crate::random::{Random, Zipf};

/// Files of the working set.
pub const WORKING_FILES: usize = 32;
/// The unit that is popular as a whole when reads are clustered: ogive's record by default.
pub const RECORD_BYTES: u64 = 128 << 10;
/// Bytes of one read of the scan.
const SCAN_BLOCK_BYTES: usize = 128 << 10;
const EXPONENT: f64 = 0.9;

/// The sizes of the reads.
#[derive(Clone, Copy)]
pub struct Workload {
    /// Bytes of the working set.
    pub working_bytes: u64,
    /// Bytes of the file that is scanned.
    pub scan_bytes: u64,
    /// Bytes of one read of the working set.
    pub read_bytes: u64,
    /// Bytes that are popular together: the read's own size, or a record.
    pub popular_bytes: u64,
}

/// Phases in their order: the first is not measured.
pub const PHASES: [&str; 3] = ["warming", "alone", "beside a scan"];

impl Workload {
    /// Reads of the working set in `phase`: twice its size to warm up, then once.
    pub fn reads(&self, phase: &str) -> u64 {
        let once = self.working_bytes / self.read_bytes;
        if phase == PHASES[0] { 2 * once } else { once }
    }

    /// As arguments of the `reader` command.
    pub fn arguments(&self) -> [String; 4] {
        [self.working_bytes, self.scan_bytes, self.read_bytes, self.popular_bytes]
            .map(|number| number.to_string())
    }

    /// The reverse of [`Workload::arguments`].
    pub fn parse(words: &[String]) -> Result<Self> {
        let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let [working_bytes, scan_bytes, read_bytes, popular_bytes] = numbers[..] else {
            return Err("reader: four numbers are needed".into());
        };
        Ok(Self { working_bytes, scan_bytes, read_bytes, popular_bytes })
    }
}

/// Reads `working` and `scan` (the folder with the large file) by the protocol above.
pub fn run(working: &Path, scan: &Path, workload: Workload) -> Result<()> {
    let open = |path: &Path| File::open(path).context(|| format!("cannot open {}", path.display()));
    let files: Vec<File> = (0..WORKING_FILES)
        .map(|index| open(&fileset::data_file(working, index)))
        .collect::<Result<_>>()?;
    let scan = open(&fileset::data_file(scan, 0))?;
    let file_bytes = workload.working_bytes / WORKING_FILES as u64;
    let zipf = Zipf::new((workload.working_bytes / workload.popular_bytes) as usize, EXPONENT, 11);
    let mut random = Random::new(17);
    let mut buffer = vec![0; (workload.read_bytes as usize).max(SCAN_BLOCK_BYTES)];
    for phase in PHASES {
        await_start(phase)?;
        let started = Instant::now();
        let reads = workload.reads(phase);
        let scanning = phase == PHASES[2];
        let mut scanned = 0;
        for done in 0..reads {
            let popular = zipf.draw(&mut random) as u64 * workload.popular_bytes;
            let within = random.below((workload.popular_bytes / workload.read_bytes) as usize);
            let position = popular + within as u64 * workload.read_bytes;
            let file = &files[(position / file_bytes) as usize];
            let block = &mut buffer[..workload.read_bytes as usize];
            file.read_exact_at(block, position % file_bytes)
                .context(|| "cannot read the working set".into())?;
            // The scan keeps pace, so that it ends with the last read.
            let due = workload.scan_bytes * (done + 1) / reads;
            while scanning && scanned + SCAN_BLOCK_BYTES as u64 <= due {
                scan.read_exact_at(&mut buffer[..SCAN_BLOCK_BYTES], scanned)
                    .context(|| "cannot read the scanned file".into())?;
                scanned += SCAN_BLOCK_BYTES as u64;
            }
        }
        say(&format!("done {}", started.elapsed().as_secs_f64()))?;
    }
    await_start("end")
}

fn await_start(phase: &str) -> Result<()> {
    say(&format!("ready {phase}"))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context(|| "cannot read from the harness".into())?;
    Ok(())
}

fn say(words: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{words}").and_then(|()| out.flush());
    written.context(|| "cannot write to the harness".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_there_and_back() {
        let workload =
            Workload { working_bytes: 1, scan_bytes: 2, read_bytes: 3, popular_bytes: 4 };
        let back = Workload::parse(&workload.arguments());
        assert_eq!(back.map(|back| back.arguments()), Ok(workload.arguments()));
        assert!(Workload::parse(&["1".to_owned()]).is_err());
    }
}
