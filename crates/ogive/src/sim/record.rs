//! `ogive sim --record`: writes the trace of a mount, `.ogive/trace`, to a file.
//!
//! Opening the control file starts the recording, and closing it stops it. A read returns the
//! present records, which may be none, so this module polls a few times a second. Between reads the
//! mount keeps a bounded number of records, and reports how many it dropped.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ogive_kstat::trace::{Event, HEADER_BYTES, RECORD_BYTES};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{self, Refusal};
use crate::stat;
use crate::value::Span;

/// The time between two reads.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of one read at most.
const TAKE_BYTES: usize = 1 << 20;

/// Records until interrupted, until the time is over or until the mount has gone.
pub(super) fn run(mount_point: &Path, output: &Path, during: Option<Span>) -> Result<()> {
    let control = mount_point.join(".ogive/trace");
    let mut source = File::open(&control).map_err(|error| refusal(mount_point, &error))?;
    let mut out: Box<dyn Write> = if output == Path::new("-") {
        Box::new(io::stdout())
    } else {
        let file = ogive_private::create(output);
        Box::new(file.with_context(|| format!("cannot write {}", output.display()))?)
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let end = during.map(|Span(time)| Instant::now() + time);
    let mut counts = Counts::default();
    let mut bytes = vec![0; TAKE_BYTES];
    let mut is_last = false;
    loop {
        let taken = match source.read(&mut bytes) {
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The mount has gone; the records so far are complete.
            Err(_) => break,
        };
        out.write_all(&bytes[..taken])
            .with_context(|| format!("cannot write {}", output.display()))?;
        counts.add(&bytes[..taken]);
        if taken > 0 {
            continue;
        }
        if is_last {
            break;
        }
        // One more read at the end, for records that arrived in the meantime.
        let is_over = end.is_some_and(|end| Instant::now() >= end);
        is_last = stop.load(Ordering::Relaxed) || is_over;
        if !is_last {
            thread::sleep(INTERVAL);
        }
    }
    out.flush().with_context(|| format!("cannot write {}", output.display()))?;
    let dropped = match counts.dropped {
        0 => String::new(),
        dropped => format!("; {dropped} more came too fast and were dropped"),
    };
    let reads = ogive_text::counted(counts.reads, "read", "reads");
    // Without standard error there is no place to report to.
    let _ = writeln!(io::stderr(), "ogive: recorded {reads}{dropped}");
    Ok(())
}

fn refusal(mount_point: &Path, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "it is not an ogive mount, or has no control directory",
        io::ErrorKind::ResourceBusy => "another recording of it is running",
        _ => "its control file cannot be opened",
    };
    let text = format!("cannot record {}: {reason} ({error})", mount_point.display());
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => stat::AS_MOUNTING_USER,
        _ => "\"findmnt --types fuse.ogive\" lists mounts",
    };
    Refusal::new(exit::MOUNT_POINT, text).hint(hint)
}

/// The requests so far.
#[derive(Default)]
struct Counts {
    seen_bytes: u64,
    reads: u64,
    dropped: u64,
}

impl Counts {
    /// Counts whole records; a mount never returns parts of them.
    fn add(&mut self, bytes: &[u8]) {
        let header = if self.seen_bytes == 0 { HEADER_BYTES.min(bytes.len()) } else { 0 };
        self.seen_bytes += bytes.len() as u64;
        for record in bytes[header..].chunks_exact(RECORD_BYTES) {
            let mut whole = [0; RECORD_BYTES];
            whole.copy_from_slice(record);
            match Event::decode(&whole) {
                Ok(Event::Read { .. }) => self.reads += 1,
                Ok(Event::Dropped { reads, .. }) => self.dropped += reads,
                Err(_) => {}
            }
        }
    }
}
