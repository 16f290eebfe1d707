//! `ogive bench sick`: a mount with a known problem.
//!
//! Each sickness is a source, options of a mount and a load (`sickness`), in a directory of its
//! own. While the load runs (`load`), `ogive doctor` must name the problem. Nothing stays
//! afterwards, even after Ctrl-C or kill -9. A process of its own serves the mount (`served`), and
//! removes everything once this process has ended.

mod load;
mod served;
mod sickness;
mod slow;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use serde_json::json;

use super::interrupt::{self, Stop};

use self::served::{Order, Part, Served};
use self::sickness::Sickness;
use crate::exit::{self, Refusal};
use crate::fuse::{self, Unmount};
use crate::mount::paths;
use crate::value::Span;

/// Make a mount with a known problem, for "ogive doctor" to diagnose
///
/// Creates a source and a mount in a directory of its own, runs a load that shows the problem, and
/// prints the mount point and the expected diagnosis. Everything is removed at the end and after
/// Ctrl-C. Needs FUSE and up to 600 MB of disk space.
///
/// The problems: large-records (4 KiB reads of 1 MiB records), pinned (inodes that cannot be
/// pruned), small-arc (a cache smaller than the working set), prefetch (streams that end once
/// prefetch has begun), slow-source, slow-l2; and healthy, which has none.
#[derive(Debug, Args)]
pub(crate) struct SickArgs {
    /// The problem
    #[arg(value_name = "NAME", value_enum)]
    sickness: Sickness,

    /// How long the load runs
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "60s",
        value_parser = Span::observation()
    )]
    duration: Duration,

    /// Continue until Ctrl-C
    #[arg(long, conflicts_with = "duration")]
    keep: bool,

    /// Where to create the working directory, which is removed at the end
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// Print one line of JSON once the load runs: mount_point, sickness, expect
    #[arg(long)]
    json: bool,

    /// Set in the processes that serve the mounts: DIR is the directory of the benchmark that
    /// started them, standard input a pipe of its orders
    #[arg(long, hide = true)]
    part: Option<Part>,
}

/// Directories of the source and of the mount.
const SOURCE: &str = "source";
const MOUNT: &str = "mount";

/// Runs the benchmark.
pub(super) fn run(args: &SickArgs) -> Result<()> {
    if let Some(part) = args.part {
        return served::serve(part, args.sickness, &args.dir);
    }
    let stop = interrupt::on_signals()?;
    fuse::check_available(false)?;
    let work = tempfile::Builder::new()
        .prefix("ogive-bench-sick.")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot work in {}", args.dir.display()))?;
    let result = in_directory(args, work.path(), &stop);
    if !unmount_below(work.path()) {
        // Removing it would remove through the mount.
        let path = work.keep();
        return Err(result.err().unwrap_or_else(|| {
            Refusal::new(exit::BUSY, format!("{} is still in use", path.display()))
                .hint("unmount the mounts below it, and remove it")
                .into()
        }));
    }
    result
}

fn in_directory(args: &SickArgs, work: &Path, stop: &Stop) -> Result<()> {
    let sickness = args.sickness;
    let (source, mount_point) = (work.join(SOURCE), work.join(MOUNT));
    std::fs::create_dir(&source)?;
    std::fs::create_dir(&mount_point)?;
    say(&format!("making the source of {} in {}", sickness.name(), work.display()));
    sickness.fill_source(&source, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    // The version of a file that has just been written is not settled.
    std::thread::sleep(Duration::from_millis(100));
    let mut served = Served::start(Part::Ill, sickness, work)?;
    let ran = under_load(args, work, &mount_point, &mut served, stop);
    // An error of the load may only follow from an error of the mount.
    served.end().and(ran)
}

fn under_load(
    args: &SickArgs,
    work: &Path,
    mount_point: &Path,
    served: &mut Served,
    stop: &Stop,
) -> Result<()> {
    let sickness = args.sickness;
    load::prepare(sickness, mount_point, stop)?;
    served.order(Order::Slow)?;
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
    let quickened = served.order(Order::Fast);
    if !served::comes_true(|| load.is_done()) {
        say("the mount does not answer; the process that serves it is killed");
        served.kill();
    }
    let operations = load.end();
    say(&format!(
        "{} operations; removing {}",
        operations.as_ref().map_or(0, |count| *count),
        work.display()
    ));
    operations.map(drop).and(quickened)
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
        let word = paths::word(mount_point);
        writeln!(out, "look at it with  ogive doctor {word} --for 10s")?;
    }
    out.flush()?;
    Ok(())
}

/// Reports progress on standard error.
fn say(text: &str) {
    // Without standard error there is nowhere to report to.
    let _ = writeln!(std::io::stderr().lock(), "ogive: {text}");
}

/// Unmounts the mounts that a killed process has left below a directory; returns whether none is
/// left.
fn unmount_below(directory: &Path) -> bool {
    let below = || {
        let mounts = crate::mountinfo::read()?;
        let inside = mounts.into_iter().map(|mount| mount.mount_point);
        Ok::<_, std::io::Error>(
            inside.filter(|path| path.starts_with(directory)).collect::<Vec<_>>(),
        )
    };
    for mount_point in below().unwrap_or_default() {
        if let Err(error) = fuse::unmount(&mount_point, Unmount::Detach) {
            say(&format!("cannot unmount {}: {error}", mount_point.display()));
        }
    }
    below().is_ok_and(|left| left.is_empty())
}
