//! `ogive capture`: takes the doctor's evidence from this host and packs it ([`ogive_capture`]).

pub(crate) mod args;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ogive_capture::Subject;

use self::args::CaptureArgs;

/// Runs the subcommand.
pub(crate) fn run(args: &CaptureArgs) -> Result<()> {
    let subject = args.mount_point.clone().map_or(Subject::Host, Subject::Mount);
    say_looking(args.duration);
    let mut bundle = ogive_capture::take(&subject, args.duration);
    let packed = ogive_capture::pack(&mut bundle, args.duration, args.redact)?;
    write_out(&args.output, &packed)?;
    let mut err = std::io::stderr().lock();
    for note in &bundle.notes {
        let _ = writeln!(err, "ogive: {}", ogive_text::one_line(note));
    }
    if args.output.as_os_str() != "-" {
        let _ = writeln!(
            err,
            "ogive: wrote {0} ({1} files, {2} KiB); \"ogive doctor {0}\" diagnoses it",
            ogive_text::ShellWord(args.output.as_os_str()),
            bundle.files.len() + 1,
            packed.len().div_ceil(1024),
        );
    }
    Ok(())
}

/// Reports on a terminal how long the observation will take.
pub(crate) fn say_looking(duration: Duration) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let duration = humantime::format_duration(duration);
        // If standard error is closed, there is no place to report to.
        let _ = writeln!(err, "ogive: observing this host for {duration}");
    }
}

/// Writes to a new file for its owner only, because a capture shows the programs of every user.
fn write_out(path: &Path, packed: &[u8]) -> Result<()> {
    if path.as_os_str() == "-" {
        return std::io::stdout().lock().write_all(packed).context("cannot write the capture");
    }
    let mut file = ogive_private::create_new(path)
        .with_context(|| format!("cannot create {}; name a new file with -o", path.display()))?;
    file.write_all(packed).with_context(|| format!("cannot write {}", path.display()))
}
