//! `ogive size`: how large the cache should be, and whether a second level would help.
//!
//! `ogive-sim` computes the answer. This module recognises the argument: a trace, one or two
//! readings of arcstats, or a mount.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueHint};
use ogive_kstat::{Kstat, Source};
use ogive_sim::sizing::{self, SizingPlan};

use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::sim::args::ReadingArgs;
use crate::sim::size_text;
use crate::sim::watch::Watch;
use crate::value::{Size, Span};

/// Say how large a cache should be, and whether a second level would help
///
/// With a trace, ogive replays its engine at several sizes, and once with an SSD below it. With
/// arcstats alone, of a mount or of OpenZFS, it reports what the ghost hits show and what they
/// cannot show.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct SizeArgs {
    /// A trace, a mount point, or a file with arcstats; two files for two readings, the older
    /// first
    ///
    /// Without an argument, the OpenZFS counters of this host.
    #[arg(value_name = "TRACE|MNT|ARCSTATS", num_args = 0..=2, value_hint = ValueHint::AnyPath)]
    pub(crate) sources: Vec<PathBuf>,

    /// Sizes of memory to try with a trace, separated by commas
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) memory: Vec<Size>,

    /// Size of the second level to try with a trace
    #[arg(long, value_name = "SIZE")]
    pub(crate) l2: Option<Size>,

    /// Take two readings of a mount or of OpenZFS, this time apart
    #[arg(short, long, value_name = "TIME")]
    pub(crate) during: Option<Span>,

    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,

    /// Show no progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive size reads.ogt --memory 8GiB,16GiB --l2 100GiB", "From a recorded trace."),
            ("ogive size /mnt/fast --during 10m", "From a mount's counters over ten minutes."),
            ("ogive size /proc/spl/kstat/zfs/arcstats", "From OpenZFS's counters since boot."),
            (
                "ogive size monday.txt friday.txt",
                "From two copies of arcstats and the time between them.",
            ),
        ]),
        help::exit_codes(),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &SizeArgs) -> Result<()> {
    match &args.sources[..] {
        [] => live(args, &Source::kernel()),
        [path] if path.is_dir() => live(args, &control_directory(path)?),
        [path] => match arcstats(path)? {
            Some(now) => tell(args, None, &now),
            None => from_trace(args, path),
        },
        [before, now, ..] => {
            let need = |path: &Path| -> Result<Kstat> {
                arcstats(path)?.ok_or_else(|| {
                    let text = format!("{} is not a file of arcstats", path.display());
                    Refusal::new(exit::USAGE, text)
                        .hint("two readings are two files of arcstats")
                        .into()
                })
            };
            tell(args, Some(&need(before)?), &need(now)?)
        }
    }
}

fn control_directory(path: &Path) -> Result<Source, Refusal> {
    for directory in [path.join(".ogive"), path.to_owned()] {
        let file = directory.join("arcstats");
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => return Ok(Source::directory(directory)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let text = format!("cannot read {}: {error}", file.display());
                return Err(Refusal::new(exit::MOUNT_POINT, text).hint("run it as its owner"));
            }
            _ => {}
        }
    }
    let text = format!("{} is not an ogive mount and has no arcstats", path.display());
    Err(Refusal::new(exit::MOUNT_POINT, text).hint("name a mount point, arcstats, or a trace"))
}

/// One reading now, or two some time apart.
fn live(args: &SizeArgs, source: &Source) -> Result<()> {
    let read = || source.kstat("arcstats").context("cannot read the counters");
    let before = args.during.map(|_| read()).transpose()?;
    if let Some(Span(time)) = args.during {
        std::thread::sleep(time.max(Duration::from_millis(100)));
    }
    tell(args, before.as_ref(), &read()?)
}

/// The arcstats in a file, if it contains them.
fn arcstats(path: &Path) -> Result<Option<Kstat>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    // Many times the length of arcstats, and little of a trace.
    const LIMIT_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT_BYTES).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let kstats = ogive_kstat::parse(&bytes).unwrap_or_default();
    Ok(kstats.into_iter().find(|kstat| kstat.get("mru_ghost_hits").is_some()))
}

fn tell(args: &SizeArgs, before: Option<&Kstat>, now: &Kstat) -> Result<()> {
    let answer = sizing::from_arcstats(before, now);
    let answer = answer.map_err(|reason| anyhow!("cannot compute sizes: {reason}"))?;
    let sentences = answer.sentences(&|bytes| size_text(bytes, false));
    let text = if args.json {
        let whole = serde_json::json!({ "arcstats": answer, "sentences": sentences });
        serde_json::to_string_pretty(&whole)?
    } else {
        sentences.join("\n")
    };
    print(&text)
}

fn from_trace(args: &SizeArgs, path: &Path) -> Result<()> {
    if path == Path::new("-") {
        let text = "cannot compute sizes from standard input: a trace is read twice";
        return Err(Refusal::new(exit::USAGE, text).hint("write it into a file first").into());
    }
    let plan = SizingPlan {
        traces: vec![path.to_owned()],
        read: args.reading.options(),
        memory_bytes: args.memory.iter().map(|Size(bytes)| (*bytes).max(1)).collect(),
        device_bytes: args.l2.map(|Size(bytes)| bytes),
    };
    let watch = Watch::new(&plan.traces, args.quiet);
    let answer = sizing::from_trace(&plan, &mut |progress| watch.show(progress));
    watch.finish();
    let answer = answer.context("cannot compute sizes")?;
    let in_entries = answer.in_entries;
    let size = |size: u64| match in_entries {
        true => ogive_text::counted(size, "entry", "entries"),
        false => size_text(size, false),
    };
    let sentence = answer.sentence(&size);
    let text = if args.json {
        let whole = serde_json::json!({ "trace": answer, "sentence": sentence });
        serde_json::to_string_pretty(&whole)?
    } else {
        format!(
            "{sentence}.\nThe trace has {} for {} of different keys; {} of the requests are first \
             uses, which no cache has.",
            ogive_text::counted(answer.requests, "request", "requests"),
            size(answer.footprint_bytes),
            sizing::percent(answer.first_use_ratio)
        )
    };
    print(&text)
}

fn print(text: &str) -> Result<()> {
    writeln!(io::stdout().lock(), "{text}").context("cannot write the answer")
}
