//! `ogive bench sick`: a mount that is made ill on purpose.
//!
//! Each sickness is a source, options of a mount and a load (`sickness`), made in a directory of
//! its own. While the load runs (`load`), the mount can be looked at by `ogive doctor`, which must
//! name what was done to it. Everything is gone afterwards, also after Ctrl-C: the mount is served
//! by this process, so that not even a killed one leaves a server behind.

mod load;
mod sickness;
mod slow;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use ogive_fs::Mount;
use serde_json::json;

use super::stop::{self, Stop};

use self::sickness::Sickness;
use self::slow::SlowMount;
use crate::doctor::args::duration;
use crate::exit::{self, Refusal};
use crate::fuse::{self, Unmount};

/// Make a mount that is ill in a known way, for "ogive doctor" to find out
///
/// Makes a source and a mount in a directory of its own, runs the load that shows the sickness,
/// and says where the mount is and what the doctor should find. Everything is removed at the end
/// and after Ctrl-C. Needs FUSE and up to 600 MB of disk space.
///
/// The sicknesses: ccm (a second level sealed with AES-CCM), large-records (4 KiB reads of 1 MiB
/// records), pinned (inodes that cannot be let go of), small-arc (a cache smaller than what is read
/// again), prefetch (streams that end when prefetch has begun), slow-source, slow-l2; and healthy,
/// for which nothing may be accused.
#[derive(Debug, Args)]
pub(crate) struct SickArgs {
    /// The sickness
    #[arg(value_name = "NAME", value_enum)]
    sickness: Sickness,

    /// How long the load runs
    #[arg(long = "for", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    duration: Duration,

    /// Go on until Ctrl-C
    #[arg(long, conflicts_with = "duration")]
    keep: bool,

    /// Where to work; a directory is made there and removed at the end
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// Print one line of JSON once the load runs: mount_point, sickness, expect
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
pub(super) fn run(args: &SickArgs) -> Result<()> {
    let stop = stop::on_signals()?;
    fuse::check_available(false)?;
    let work = tempfile::Builder::new()
        .prefix("ogive-bench-sick.")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot work in {}", args.dir.display()))?;
    let result = in_directory(args, work.path(), &stop);
    if is_mounted_below(work.path()) {
        // Removing it would remove through the mount.
        let path = work.keep();
        return Err(result.err().unwrap_or_else(|| {
            Refusal::new(exit::BUSY, format!("{} is still in use", path.display()))
                .hint("unmount what is below it and remove it")
                .into()
        }));
    }
    result
}

fn in_directory(args: &SickArgs, work: &Path, stop: &Stop) -> Result<()> {
    let sickness = args.sickness;
    let (source, mount_point) = (work.join("source"), work.join("mount"));
    std::fs::create_dir(&source)?;
    std::fs::create_dir(&mount_point)?;
    say(&format!("making the source of {} in {}", sickness.name(), work.display()));
    sickness.fill_source(&source, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    // The version of a file that has just been written is not settled.
    std::thread::sleep(Duration::from_millis(100));
    let slow = sickness.slows().then(|| SlowMount::start(sickness, &source, work)).transpose()?;
    let options = sickness.options(&source, &mount_point, work, slow.as_ref())?;
    let mount = Mount::start(options)?;
    let ran = under_load(args, work, &mount_point, slow.as_ref(), stop);
    let unmounter = mount.unmounter();
    if unmounter.unmount().is_err() {
        // Somebody is inside; the mount goes when they do, its place in the tree goes now.
        fuse::unmount(&mount_point, Unmount::Detach)
            .with_context(|| format!("cannot unmount {}", mount_point.display()))?;
        say("somebody still uses the mount; it was taken out of the tree");
    } else {
        mount.wait()?;
    }
    if let Some(slow) = slow {
        slow.end()?;
    }
    ran
}

fn under_load(
    args: &SickArgs,
    work: &Path,
    mount_point: &Path,
    slow: Option<&SlowMount>,
    stop: &Stop,
) -> Result<()> {
    let sickness = args.sickness;
    load::prepare(sickness, mount_point, stop)?;
    let slowing = slow.map(|slow| slow.slow_down(stop)).transpose()?;
    let load = load::start(sickness, mount_point, stop)?;
    announce(args, mount_point)?;
    let end = (!args.keep).then(|| Instant::now() + args.duration);
    while !stop.load(Ordering::Relaxed)
        && end.is_none_or(|end| Instant::now() < end)
        && !load.has_ended()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    stop.store(true, Ordering::Relaxed);
    let operations = load.end();
    drop(slowing);
    say(&format!(
        "{} operations; removing {}",
        operations.as_ref().map_or(0, |count| *count),
        work.display()
    ));
    operations.map(drop)
}

fn announce(args: &SickArgs, mount_point: &Path) -> Result<()> {
    let sickness = args.sickness;
    let mut out = std::io::stdout().lock();
    if args.json {
        let line = json!({
            "sickness": sickness.name(),
            "mount_point": mount_point.to_string_lossy(),
            "expect": sickness.expect(),
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "mount point      {}", mount_point.display())?;
        writeln!(out, "what was done    {}", sickness.story())?;
        writeln!(out, "the doctor says  {}", sickness.expect().unwrap_or("that nothing is wrong"))?;
        writeln!(out, "look at it with  ogive doctor {} --for 10s", mount_point.display())?;
    }
    out.flush()?;
    Ok(())
}

/// Tells what is being done, on standard error.
fn say(text: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "ogive: {text}");
}

fn is_mounted_below(directory: &Path) -> bool {
    crate::mountinfo::read()
        .is_ok_and(|mounts| mounts.iter().any(|mount| mount.mount_point.starts_with(directory)))
}
