//! `ogive kstat`: one directory of kstats for all mounts, for OpenZFS's tools.
//!
//! `ogive-kstat` writes the directory ([`ogive_kstat::tree`]). This module finds the mounts and
//! chooses the times.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use ogive_kstat::tree::{self, Member, Tree};

use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::mountinfo;
use crate::stat;
use crate::value::Span;

/// Keep a directory of kstats of all mounts, for OpenZFS's own tools and exporters
///
/// DIR replaces /proc: it contains spl/kstat/zfs/arcstats and the other files that arcstat,
/// arc_summary and node_exporter's zfs collector read. They are sums over all mounts. Each mount is
/// also a pool, named after its mount point. A single mount has the same tree in MNT/.ogive/proc,
/// always up to date. Without --every the files are written once.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct KstatArgs {
    /// The mounts; by default all that exist at the time
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mounts: Vec<PathBuf>,

    /// The directory that replaces /proc; it is created if missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Write the files this often until interrupted, and then remove them
    #[arg(long, value_name = "TIME", value_parser = Span::sampling())]
    pub(crate) every: Option<Duration>,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive kstat --dir /run/ogive/proc --every 10s",
                "Keep the directory until interrupted.",
            ),
            (
                "node_exporter --path.procfs=/run/ogive/proc --collector.disable-defaults \
                 --collector.zfs --web.listen-address=127.0.0.1:9134",
                "Metrics of all mounts under the names of OpenZFS hosts.",
            ),
            (
                "unshare --mount sh -c 'mount --bind /mnt/fast/.ogive/proc /proc && arcstat 1'",
                "OpenZFS's arcstat (zarcstat since 2.4) on a mount: its path is built in.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("MNT/.ogive/proc", "The same tree of one mount."),
                ("DIR/spl/kstat/zfs/POOL/objset-0x1", "The reads and writes of a mount."),
                ("DIR/spl/kstat/zfs/POOL/state", "ONLINE, or UNAVAIL if its source has gone."),
            ],
        ),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &KstatArgs) -> Result<()> {
    let tree = Tree::new(&args.dir);
    let Some(every) = args.every else { return Ok(write(&tree, args)?) };
    let stop = stat::stop_on_signal()?;
    // A vanished mount does not end the loop, and is reported once.
    let mut printed = HashSet::new();
    let start = Instant::now();
    for times in 1.. {
        match write(&tree, args) {
            Ok(()) => printed.clear(),
            Err(error) => {
                tree.remove();
                let text = error.to_string();
                if printed.insert(text.clone()) {
                    crate::logger::print(&text);
                }
            }
        }
        if stat::waited_for_signal(&stop, start + every.saturating_mul(times)) {
            break;
        }
    }
    tree.remove();
    Ok(())
}

fn write(tree: &Tree, args: &KstatArgs) -> Result<(), Refusal> {
    let refuse = |reason: String| {
        Refusal::new(
            exit::FAILURE,
            format!("cannot write kstats to {}: {reason}", args.dir.display()),
        )
    };
    let mounts = mountinfo::read()
        .context("cannot read /proc/self/mountinfo")
        .map_err(|error| refuse(format!("{error:#}")))?;
    let mount_points: Vec<PathBuf> = if args.mounts.is_empty() {
        // A mount without its process does not count.
        let living = |point: &&Path| stat::check_alive(stat::SHOW, point).is_ok();
        stat::visible(&mounts).into_iter().filter(living).map(Path::to_owned).collect()
    } else {
        let named = args.mounts.iter().map(|path| {
            let point = stat::named_mount(&mounts, path)?;
            stat::check_alive(stat::SHOW, &point).map(|()| point)
        });
        named.collect::<Result<_, Refusal>>()?
    };
    let mut members: Vec<Member> = Vec::new();
    for point in mount_points {
        let directory = point.join(".ogive/proc").join(tree::BELOW_PROC);
        // A mount without a control directory has no counters.
        if args.mounts.is_empty() && !directory.exists() {
            continue;
        }
        members.push(Member { name: tree::pool_name(&point, &members), directory });
    }
    tree.write(&members).map_err(|error| refuse(error.to_string()))
}
