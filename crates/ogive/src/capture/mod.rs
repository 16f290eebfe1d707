//! `ogive capture`: what the doctor needs, taken from this host and packed.
//!
//! Two snapshots with the profile between them; paths inside mirror the paths outside
//! (`start/proc/meminfo`). Reading is all that is done to the host. What cannot be read is noted,
//! never an error: half a capture is better than none.

pub(crate) mod args;
mod commands;
mod files;
mod redact;
mod samples;

use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use ogive_doctor::bundle::{BUNDLE_VERSION, BundleWriter};
use ogive_profile::write::Output;
use serde_json::json;

use self::args::CaptureArgs;

/// What to look at.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// This host.
    Host,
    /// This host, and an ogive mount above all.
    Mount(PathBuf),
}

/// What to take.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// What to look at.
    pub(crate) subject: Subject,
    /// How long.
    pub(crate) duration: Duration,
    /// Whether to say on standard error what is being done.
    pub(crate) progress: bool,
}

/// What was taken.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    /// Name inside the bundle, and content.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// The profile.
    pub(crate) profile: Option<ogive_profile::Profile>,
    /// What could not be taken, and what would allow it.
    pub(crate) notes: Vec<String>,
    /// CPU seconds that taking it has cost, commands included.
    pub(crate) cpu_seconds: Option<f64>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &CaptureArgs) -> Result<()> {
    let subject = args.mount_point.clone().map_or(Subject::Host, Subject::Mount);
    let progress = std::io::stderr().is_terminal();
    let mut bundle = take(&Request { subject, duration: args.duration, progress });
    if args.redact {
        redact::redact(&mut bundle, &redact::Secrets::of_this_host());
    }
    if let Some(profile) = &bundle.profile {
        for (name, output) in [("profile.folded", Output::Folded), ("profile.pb.gz", Output::Pprof)]
        {
            let written = samples::written(profile, output).context("cannot write the profile")?;
            bundle.files.push((name.to_owned(), written));
        }
    }
    let manifest = manifest(&bundle, args);
    let taken_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let mut writer = BundleWriter::new(Vec::new(), taken_s).context("cannot pack the capture")?;
    writer.add("manifest.json", manifest.as_bytes()).context("cannot pack the capture")?;
    for (name, content) in &bundle.files {
        writer.add(name, content).with_context(|| format!("cannot pack {name}"))?;
    }
    let packed = writer.finish().context("cannot pack the capture")?;
    write_out(&args.output, &packed)?;
    let mut err = std::io::stderr().lock();
    for note in &bundle.notes {
        let _ = writeln!(err, "ogive: {note}");
    }
    if args.output.as_os_str() != "-" {
        let _ = writeln!(
            err,
            "ogive: wrote {} ({} files, {} KiB); \"ogive doctor {0}\" diagnoses it",
            args.output.display(),
            bundle.files.len() + 1,
            packed.len().div_ceil(1024),
        );
    }
    Ok(())
}

/// Looks at the host.
pub(crate) fn take(request: &Request) -> Bundle {
    let mut bundle = Bundle::default();
    let say = |what: &str| {
        if request.progress {
            let _ = writeln!(std::io::stderr().lock(), "ogive: {what}");
        }
    };
    say(&format!("looking at this host for {}", humantime::format_duration(request.duration)));
    let before = files::own_cpu_seconds();
    files::snapshot(&mut bundle, "start", &request.subject);
    bundle.profile = samples::take(&mut bundle.notes, request.duration);
    files::snapshot(&mut bundle, "end", &request.subject);
    files::once(&mut bundle);
    if matches!(request.subject, Subject::Host) {
        commands::run_all(&mut bundle);
    }
    let after = files::own_cpu_seconds();
    bundle.cpu_seconds = before.zip(after).map(|(before, after)| after - before);
    bundle
}

/// Writes to a new file that only its owner can read: a capture shows what every user runs.
fn write_out(path: &Path, packed: &[u8]) -> Result<()> {
    if path.as_os_str() == "-" {
        return std::io::stdout().lock().write_all(packed).context("cannot write the capture");
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file =
        file.with_context(|| format!("cannot create {}; name a new file with -o", path.display()))?;
    file.write_all(packed).with_context(|| format!("cannot write {}", path.display()))
}

fn manifest(bundle: &Bundle, args: &CaptureArgs) -> String {
    let files: Vec<_> = bundle
        .files
        .iter()
        .map(|(name, content)| json!({"name": name, "bytes": content.len()}))
        .collect();
    let manifest = json!({
        "format": "ogive capture",
        "version": BUNDLE_VERSION,
        "ogive": env!("CARGO_PKG_VERSION"),
        "seconds": args.duration.as_secs_f64(),
        "looking_cpu_seconds": bundle.cpu_seconds,
        "root": rustix::process::geteuid().is_root(),
        "redacted": args.redact,
        "not_taken": bundle.notes,
        "files": files,
    });
    format!("{manifest:#}\n")
}
