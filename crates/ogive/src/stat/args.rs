//! The options of `ogive stat`, and their meaning.
//!
//! Like arcstat, the command takes an interval and a count without flags. It also takes a mount
//! point. In any order, numbers are the interval and then the count, and another word is the mount
//! point.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use ogive_kstat::arcstat::{ColumnError, Columns};

use super::cached_files::Order;
use crate::exit::{self, Refusal};
use crate::help::{self, Section};

/// Show cache statistics, one line per interval, as arcstat prints them
///
/// The first line covers the time since the mount, and each later one its interval. Without MNT the
/// only ogive mount is shown, or the kernel's own ZFS if there is none; standard error says which.
/// For a bucket the last column, $/h, is the cost of requests per hour by the price list of the
/// mount.
#[derive(Debug, Args)]
#[command(
    override_usage = "ogive stat [OPTIONS] [MNT] [INTERVAL [COUNT]]",
    after_long_help = help::render(&sections())
)]
pub(crate) struct StatArgs {
    /// The mount point; seconds between lines, 0.1 or more; and how many lines
    ///
    /// Without INTERVAL one line is printed, and without COUNT lines continue until interrupted. A
    /// mount point whose name is a number is written as a path, ./7.
    #[arg(value_name = "MNT|INTERVAL|COUNT", num_args = 0..=3, value_hint = ValueHint::DirPath)]
    pub(crate) words: Vec<OsString>,

    /// Show these columns, separated by commas (-v lists them)
    #[arg(
        short,
        long,
        value_name = "COLUMNS",
        help_heading = "Column options",
        conflicts_with_all = ["extended", "prefetch", "all"]
    )]
    pub(crate) fields: Option<String>,

    /// Show the extended columns: hits by list, ghost hits, skips
    #[arg(
        short = 'x',
        long,
        help_heading = "Column options",
        conflicts_with_all = ["prefetch", "all"]
    )]
    pub(crate) extended: bool,

    /// Show the columns of prefetch streams
    #[arg(short = 'z', long, help_heading = "Column options", conflicts_with = "all")]
    pub(crate) prefetch: bool,

    /// Show all columns
    #[arg(short, long, help_heading = "Column options")]
    pub(crate) all: bool,

    /// Show the content of the cache instead, by file and directory
    ///
    /// Bytes are exact. Reads, hits and misses are estimated from a sample of reads, which the
    /// mount takes for 30 seconds after each call: give an interval, or call again within that
    /// time.
    #[arg(
        long,
        help_heading = "Object options",
        conflicts_with_all = ["fields", "extended", "prefetch", "all", "list", "separator"]
    )]
    pub(crate) objects: bool,

    /// The order of the tables of objects
    #[arg(
        long,
        value_name = "ORDER",
        value_enum,
        requires = "objects",
        conflicts_with = "json",
        help_heading = "Object options"
    )]
    pub(crate) by: Option<Order>,

    /// List the columns and their meaning, and stop
    #[arg(short = 'v', long, help_heading = "Column options")]
    pub(crate) list: bool,

    /// Print one JSON object per line, with the unrounded values of the columns
    #[arg(short, long, help_heading = "Output options", conflicts_with_all = ["separator", "raw"])]
    pub(crate) json: bool,

    /// Print plain numbers instead of scaling them to K, M, G
    #[arg(short = 'p', long = "raw", help_heading = "Output options")]
    pub(crate) raw: bool,

    /// The text between two columns
    #[arg(short, long, value_name = "TEXT", default_value = "  ", help_heading = "Output options")]
    pub(crate) separator: String,

    /// Write to this file instead of standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Output options"
    )]
    pub(crate) output: Option<PathBuf>,

    /// Read kstats below this directory instead of a mount or the kernel
    ///
    /// The directory has a file arcstats, like a copy of /proc/spl/kstat/zfs or of a control
    /// directory, or the file spl/kstat/zfs/arcstats, like one of "ogive kstat --dir".
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        help_heading = "Output options"
    )]
    pub(crate) kstat: Option<PathBuf>,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive stat", "The figures since the mount."),
            ("ogive stat /mnt/fast 5", "A line every five seconds."),
            ("ogive stat -f time,read,hit%,size,c 1 60", "Some columns, for a minute."),
            ("ogive stat --objects /mnt/fast 5", "The files that fill the cache, and their reads."),
            ("ogive stat --json 10 -o /var/log/ogive.json", "For a program to read."),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("MNT/.ogive/arcstats", "The counters of a mount."),
                ("MNT/.ogive/objects", "The objects in its cache."),
                ("/proc/spl/kstat/zfs/arcstats", "The counters of OpenZFS in the kernel."),
            ],
        ),
        help::terms("Environment", &[("TZ", "The time zone of the column \"time\".")]),
    ]
}

/// The request in the words and flags.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The mount point, if it is given.
    pub(crate) mount_point: Option<PathBuf>,
    /// The time between lines.
    pub(crate) interval: Duration,
    /// The number of lines; `None` continues until interrupted.
    pub(crate) count: Option<u64>,
    /// The columns, which also depend on the source.
    pub(crate) columns: Choice,
}

/// The choice of columns.
#[derive(Debug)]
pub(crate) enum Choice {
    /// Exactly these columns.
    These(Columns),
    /// arcstat's columns, and for a bucket the cost.
    Usual,
    /// All columns that the source has counters for.
    All,
}

/// In shorter intervals the measurement itself would dominate.
const INTERVAL_SECONDS_MIN: f64 = 0.1;
/// A day. A longer interval is a typing error.
const INTERVAL_SECONDS_MAX: f64 = 86_400.0;

impl Selection {
    /// Interprets the options.
    pub(crate) fn new(args: &StatArgs) -> Result<Self, Refusal> {
        let refuse =
            |reason: String| Refusal::new(exit::USAGE, format!("cannot show statistics: {reason}"));
        let mut mount_point = None;
        let mut numbers = Vec::new();
        for word in &args.words {
            match word.to_str().filter(|text| is_number(text)) {
                Some(number) => numbers.push(number),
                None if mount_point.is_none() => mount_point = Some(PathBuf::from(word)),
                None => {
                    return Err(refuse(format!(
                        "\"{}\" is neither a number nor the only mount point",
                        word.display()
                    )));
                }
            }
        }
        let interval = numbers.first().map(|text| interval(text)).transpose().map_err(refuse)?;
        let count = match numbers.get(1) {
            Some(text) => Some(count(text).map_err(refuse)?),
            None if interval.is_none() => Some(1),
            None => None,
        };
        if numbers.len() > 2 {
            return Err(refuse("give at most an interval and a count".to_owned()));
        }
        let columns = match &args.fields {
            Some(list) => Choice::These(Columns::parse(list).map_err(|error| {
                refuse(column_reason(&error)).hint("\"ogive stat --list\" lists the columns")
            })?),
            None if args.all => Choice::All,
            None if args.extended => Choice::These(Columns::extended()),
            None if args.prefetch => Choice::These(Columns::prefetch()),
            None => Choice::Usual,
        };
        Ok(Self {
            mount_point,
            interval: interval.unwrap_or(Duration::from_secs(1)),
            count,
            columns,
        })
    }
}

/// The fault in a list of columns, without the list of all two hundred.
fn column_reason(error: &ColumnError) -> String {
    match error {
        ColumnError::Unknown { name, near } if near.is_empty() => {
            format!("there is no column \"{name}\"")
        }
        ColumnError::Unknown { name, near } => {
            format!("there is no column \"{name}\"; did you mean {}?", near.join(" or "))
        }
        other => other.to_string(),
    }
}

/// Whether a word is meant as a number: digits with points and a minus. Invalid numbers are refused
/// later with a message.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (INTERVAL_SECONDS_MIN..=INTERVAL_SECONDS_MAX).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "the interval {text} is not between {INTERVAL_SECONDS_MIN} and {INTERVAL_SECONDS_MAX} \
             seconds"
        )),
    }
}

fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("the count {text} is not a whole number of at least 1")),
        Ok(count) => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use proptest::prelude::*;

    fn selection(line: &str) -> Result<Selection, String> {
        let line = format!("ogive stat {line}");
        let cli =
            Cli::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        let Command::Stat(args) = cli.command else { panic!("not stat") };
        Selection::new(&args).map_err(|refusal| refusal.to_string())
    }

    fn meaning(line: &str) -> (Option<String>, f64, Option<u64>) {
        let found = selection(line).unwrap();
        let mount_point = found.mount_point.map(|path| path.to_str().unwrap().to_owned());
        (mount_point, found.interval.as_secs_f64(), found.count)
    }

    #[test]
    fn mount_point_interval_and_count_are_distinguished() {
        let m = || Some("/m".to_owned());
        assert_eq!(meaning(""), (None, 1.0, Some(1)));
        assert_eq!(meaning("/m"), (m(), 1.0, Some(1)));
        assert_eq!(meaning("5"), (None, 5.0, None));
        assert_eq!(meaning("1 5"), (None, 1.0, Some(5)));
        assert_eq!(meaning("/m 0.5 3"), (m(), 0.5, Some(3)));
        assert_eq!(meaning("1 5 /m"), (m(), 1.0, Some(5)));
        assert_eq!(meaning("2 /m -x"), (m(), 2.0, None));
        assert_eq!(meaning("./7 1"), (Some("./7".to_owned()), 1.0, None));
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in ["/a /b", "1 2 3", "0", "0.05 1", "1 0", "1 1.5", "100000", "1 2 3 4", "1.2.3"]
        {
            assert!(selection(line).is_err(), "{line}");
        }
        assert!(selection("-f time,nonsense").unwrap_err().contains("nonsense"));
        for line in ["-x -a", "-f time -a", "-x -z", "--json -p", "--json -s ,"] {
            assert!(selection(line).unwrap_err().contains("cannot be used with"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_words_panic(words in proptest::collection::vec("[-0-9./a]{0,6}", 0..4)) {
            let _ = selection(&words.join(" "));
        }
    }
}
