//! Takes evidence for the doctor from a host, and packs it into one file.
//!
//! A capture is two snapshots with a profile between them ([`take`]). Paths inside it mirror the
//! paths of the host (`start/proc/meminfo`). A capture only reads. A missing part becomes a note
//! and not an error, because half a capture is better than none. Every wait ends: work that hangs
//! is abandoned (`detached`).
//!
//! The doctor reads evidence and never samples. A live diagnosis is a capture that stays in memory
//! and is read like any other ([`look`]). A capture for others is packed ([`pack()`]), on request
//! without the names of hosts, people, programs, paths and data sets.
#![forbid(unsafe_code)]

mod cgroups;
mod commands;
mod detached;
mod files;
mod pack;
mod redact;
mod samples;
mod waits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ogive_doctor::bundle::{self, Loaded, Loader};
use ogive_profile::Profile;

pub use pack::{Error, pack};

/// The subject of a capture.
#[derive(Clone, Debug)]
pub enum Subject {
    /// This host.
    Host,
    /// This host and in particular an ogive mount, by its mount point.
    Mount(PathBuf),
}

/// The content of a capture.
#[derive(Debug, Default)]
pub struct Bundle {
    /// Files: the name inside the bundle, and the content.
    pub files: Vec<(String, Vec<u8>)>,
    /// The profile.
    pub profile: Option<Profile>,
    /// Notes on missing parts, and how to get them.
    pub notes: Vec<String>,
    /// CPU seconds of the capture, including its commands.
    pub cpu_seconds: Option<f64>,
}

/// The result of a live diagnosis.
#[derive(Debug)]
pub struct Look {
    /// The evidence, and the profile if there is one.
    pub loaded: Loaded,
    /// The cost of the capture, in percent of one CPU.
    pub looking_percent: Option<f64>,
    /// Notes on missing parts, and how to get them.
    pub notes: Vec<String>,
}

/// Captures the host for `duration`, and a little longer to read the snapshots.
#[must_use]
pub fn take(subject: &Subject, duration: Duration) -> Bundle {
    let mut bundle = Bundle::default();
    let before = files::own_cpu_seconds();
    let commands = matches!(subject, Subject::Host).then(|| commands::start(duration));
    files::snapshot(&mut bundle, "start", subject);
    let begun = Instant::now();
    let sampling = samples::begin(duration);
    // The snapshots are always the requested time apart, even without samples. Functions are
    // symbolised after it.
    std::thread::sleep(duration.saturating_sub(begun.elapsed()));
    files::snapshot(&mut bundle, "end", subject);
    bundle.profile = samples::end(sampling, &mut bundle.notes);
    files::once(&mut bundle);
    if let Some(commands) = commands {
        commands.finish(&mut bundle);
    }
    let after = files::own_cpu_seconds();
    bundle.cpu_seconds = before.zip(after).map(|(before, after)| after - before);
    bundle
}

/// Captures the host like [`take`] and reads the evidence at once.
#[must_use]
pub fn look(subject: &Subject, duration: Duration) -> Look {
    read(take(subject, duration), duration)
}

/// The capture as the doctor's evidence.
fn read(bundle: Bundle, duration: Duration) -> Look {
    let looking_percent =
        bundle.cpu_seconds.map(|seconds| seconds * 100.0 / duration.as_secs_f64());
    let mut loader = Loader::new();
    for (name, content) in bundle.files {
        loader.add_bytes(&name, content);
    }
    let mut loaded = loader.read();
    if let Some(profile) = bundle.profile {
        bundle::add_profile(&mut loaded.evidence, "samples", &profile);
        loaded.profile = Some(profile);
    }
    Look { loaded, looking_percent, notes: bundle.notes }
}
