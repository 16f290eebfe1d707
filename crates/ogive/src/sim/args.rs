//! The options of `ogive sim`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use ogive_sim::{Format, PolicyName, ReadOptions, SizeSpec};

use crate::help::{self, Section};
use crate::value::{Count, Size, Span};

/// Replay traces through caches: the hit ratio of each policy at each size
///
/// One pass over the traces runs every policy at every size. A size is a number of bytes (1GiB), or
/// a percentage of the weight of all different keys (10%). If a trace has no sizes, every key
/// weighs 1 and sizes are in entries, unless --block-size gives the weight of a key.
#[derive(Debug, Args)]
#[command(
    override_usage = "ogive sim [OPTIONS] TRACE...\n       ogive sim --paper [--traces DIR]\n       \
                      ogive sim --record MNT -o FILE [--for TIME]",
    after_long_help = help::render(&sections())
)]
pub(crate) struct SimArgs {
    /// Trace files, plain or compressed with gzip, xz or zstd; - for standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Policies, separated by commas, or "all"
    ///
    /// ogive is the engine as it ships; ogive/8 the same with 8 sublists.
    #[arg(short, long, value_name = "LIST", default_value = "lru,arc,ogive")]
    pub(crate) policy: String,

    /// Sizes, separated by commas: 1%, 512MiB, or entries
    #[arg(
        short,
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1%,5%,10%,20%,40%"
    )]
    pub(crate) size: Vec<SimSize>,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Replay only this share of the keys, through caches smaller by as much, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    pub(crate) sample: f64,

    /// Replay with this many sublists of the engine, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) sublists: Vec<Count>,

    /// Threads that replay
    #[arg(long, value_name = "NUMBER")]
    pub(crate) threads: Option<Count>,

    /// Draw the hit ratio over the size, with the whole LRU curve
    #[arg(long, help_heading = "Curve options")]
    pub(crate) curve: bool,

    /// Keys that the LRU curve keeps (SHARDS); "exact" for all
    #[arg(long, value_name = "KEYS", default_value = "65536", help_heading = "Curve options")]
    pub(crate) curve_keys: CurveKeys,

    /// Write the curve as SVG
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Curve options",
    )]
    pub(crate) svg: Option<PathBuf>,

    /// Write curve and table as one HTML page
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Curve options",
    )]
    pub(crate) html: Option<PathBuf>,

    /// Print JSON instead of a table
    #[arg(short, long, help_heading = "Output options", conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print comma-separated values instead of a table
    #[arg(long, help_heading = "Output options")]
    pub(crate) csv: bool,

    /// Show no progress bar
    #[arg(short, long, help_heading = "Output options")]
    pub(crate) quiet: bool,

    /// Print the tables of the ARC paper next to ogive's results
    ///
    /// Uses the traces that it finds. The exit code is 1 if a cell differs by more than 0.02
    /// percentage points.
    #[arg(long, conflicts_with_all = ["traces", "record"], help_heading = "Other things to do")]
    pub(crate) paper: bool,

    /// The directory with the paper's traces (OLTP.lis, P3.lis..., optionally compressed)
    #[arg(
        long = "traces",
        id = "paper_traces",
        value_name = "DIR",
        env = "OGIVE_TRACES",
        hide_env_values = true,
        value_hint = ValueHint::DirPath,
        help_heading = "Other things to do"
    )]
    pub(crate) paper_traces: Option<PathBuf>,

    /// Record the reads of this mount, until interrupted, into the file named with -o
    #[arg(
        long,
        value_name = "MNT",
        conflicts_with = "traces",
        requires = "output",
        value_hint = ValueHint::DirPath,
        help_heading = "Other things to do"
    )]
    pub(crate) record: Option<PathBuf>,

    /// The file for the recording; - for standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "record",
        value_hint = ValueHint::FilePath,
        help_heading = "Other things to do"
    )]
    pub(crate) output: Option<PathBuf>,

    /// Stop recording after this time
    #[arg(
        long = "for",
        value_name = "TIME",
        requires = "record",
        help_heading = "Other things to do"
    )]
    pub(crate) during: Option<Span>,
}

/// The options of reading traces, for `ogive sim` and `ogive size`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct ReadingArgs {
    /// Format of the traces, if ogive cannot recognize it
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Bytes in a block: the unit of ranges (default 4K), and the weight of a key without a size
    /// (default 1)
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) block_size: Option<Size>,

    /// Count every key as 1, whatever its weight: sizes are in entries
    #[arg(short, long)]
    pub(crate) entries: bool,

    /// Skip writes
    #[arg(long)]
    pub(crate) reads_only: bool,

    /// Count prefetches as requests
    #[arg(long)]
    pub(crate) with_prefetch: bool,

    /// Count bad records and continue, instead of stopping at the first
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Read at most this many requests
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub(crate) limit: Option<Count>,
}

impl ReadingArgs {
    /// The options for the library.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            block_bytes: self.block_size.map(|Size(bytes)| bytes.max(1)),
            entries: self.entries,
            reads_only: self.reads_only,
            with_prefetch: self.with_prefetch,
            skip_bad: self.skip_bad,
            requests_max: self.limit.map(|Count(limit)| limit),
        }
    }
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    let policies: Vec<(&str, &'static str)> =
        PolicyName::all().map(|(_, name, meaning)| (name, meaning)).collect();
    let formats: Vec<(&str, &'static str)> =
        Format::all().map(|(_, name, meaning)| (name, meaning)).collect();
    vec![
        help::examples(&[
            (
                "ogive sim trace.zst --policy all --size 1%,10%",
                "Every policy at two sizes, in percent of the footprint.",
            ),
            (
                "ogive sim disk.blkparse --size 1GiB,8GiB --curve",
                "Two sizes in bytes, and the curve on the terminal.",
            ),
            (
                "zcat keys.gz | ogive sim --format keys - --html curve.html",
                "From a pipe, into a page with curve and table.",
            ),
            (
                "ogive sim --record /mnt/fast -o reads.ogt --for 1h",
                "Record an hour of a mount's reads.",
            ),
        ]),
        help::terms("Policies", &policies),
        help::terms("Formats", &formats),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[("TMPDIR", "Where ogive stores requests for MIN and from standard input.")],
        ),
    ]
}

/// The size of a cache: bytes, or a percent of the footprint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SimSize(pub(crate) SizeSpec);

impl FromStr for SimSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            let Size(bytes) = text.parse().map_err(|reason: String| {
                format!("{reason}, or a percent of the footprint, as in 10%")
            })?;
            return Ok(Self(SizeSpec::Bytes(bytes)));
        };
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 1000.0 => {
                Ok(Self(SizeSpec::Percent(percent)))
            }
            _ => Err("a percent is a number above 0 and up to 1000".to_owned()),
        }
    }
}

impl fmt::Display for SimSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SizeSpec::Bytes(bytes) => Size(bytes).fmt(f),
            SizeSpec::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The number of keys of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurveKeys {
    Exact,
    Sampled(usize),
}

impl FromStr for CurveKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "exact" {
            return Ok(Self::Exact);
        }
        match text.parse() {
            Ok(keys @ 1024..=1_073_741_824) => Ok(Self::Sampled(keys)),
            _ => Err("give a number of keys from 1024 to 2^30, or the word exact".to_owned()),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("a share is above 0 and at most 1 (or 100%)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_percents() {
        assert_eq!("1GiB".parse(), Ok(SimSize(SizeSpec::Bytes(1 << 30))));
        assert_eq!("0.5%".parse(), Ok(SimSize(SizeSpec::Percent(0.5))));
        for text in ["0%", "-1%", "nan%", "inf%", "%", "x", ""] {
            assert!(text.parse::<SimSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_numbers_or_percents() {
        assert_eq!((share("1%"), share("0.25")), (Ok(0.01), Ok(0.25)));
        assert!(share("0").is_err() && share("2").is_err() && share("nan").is_err());
        assert_eq!("exact".parse(), Ok(CurveKeys::Exact));
        assert!("5".parse::<CurveKeys>().is_err());
    }
}
