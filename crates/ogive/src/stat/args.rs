//! What can be typed after `ogive stat`, and what it means.
//!
//! Like arcstat, the command takes an interval and a count without flags, and a mount point
//! besides: whatever is a number is interval, then count; whatever is not is the mount point, in
//! any order.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use ogive_kstat::arcstat::{ColumnError, Columns};

use super::cached_files::Order;
use crate::exit::{self, Refusal};
use crate::help::{self, Section};

/// Show cache statistics, one line an interval, as arcstat prints them
///
/// The first line covers the time since the mount; each later one the interval before it. Without
/// MNT the only mount of ogive is shown, or, where there is none, the kernel's own ZFS; standard
/// error says which. Of a bucket the last column, $/h, says what requests cost an hour by the price
/// list of the mount.
#[derive(Debug, Args)]
#[command(
    override_usage = "ogive stat [OPTIONS] [MNT] [INTERVAL [COUNT]]",
    after_long_help = help::render(&sections())
)]
pub(crate) struct StatArgs {
    /// The mount point; seconds between lines, 0.1 or more; and how many lines
    ///
    /// Without INTERVAL one line is printed, without COUNT they come until interrupted. A mount
    /// point whose name is a number is written as a path, ./7.
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

    /// Show what is in the cache instead, by file and directory
    ///
    /// Bytes are exact. Reads, hits and misses are counted while somebody looks, from a sample of
    /// the records that are read: give an interval, or look again within 30 seconds.
    #[arg(
        long,
        help_heading = "Object options",
        conflicts_with_all = ["fields", "extended", "prefetch", "all", "list", "separator"]
    )]
    pub(crate) objects: bool,

    /// What comes first in the tables of objects
    #[arg(
        long,
        value_name = "ORDER",
        value_enum,
        requires = "objects",
        conflicts_with = "json",
        help_heading = "Object options"
    )]
    pub(crate) by: Option<Order>,

    /// List the columns and what they mean, and stop
    #[arg(short = 'v', long, help_heading = "Column options")]
    pub(crate) list: bool,

    /// Print one JSON object a line, with the unrounded values of the columns
    #[arg(short, long, help_heading = "Output options", conflicts_with_all = ["separator", "raw"])]
    pub(crate) json: bool,

    /// Print plain numbers instead of scaling them to K, M, G
    #[arg(short = 'p', long = "raw", help_heading = "Output options")]
    pub(crate) raw: bool,

    /// What stands between two columns
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
    /// A directory with a file arcstats, such as a copy of /proc/spl/kstat/zfs or of a control
    /// directory, or one that "ogive kstat --dir" keeps, which has it in spl/kstat/zfs.
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        help_heading = "Output options"
    )]
    pub(crate) kstat: Option<PathBuf>,
}

/// What follows the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive stat", "The figures since the mount."),
            ("ogive stat /mnt/fast 5", "A line every five seconds."),
            ("ogive stat -f time,read,hit%,size,c 1 60", "Some columns, for a minute."),
            ("ogive stat --objects /mnt/fast 5", "What fills the cache, and who reads it."),
            ("ogive stat --json 10 -o /var/log/ogive.json", "For a program to read."),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("MNT/.ogive/arcstats", "Where the figures of a mount are read."),
                ("MNT/.ogive/objects", "Where it tells what is in its cache."),
                ("/proc/spl/kstat/zfs/arcstats", "Where those of OpenZFS in the kernel are read."),
            ],
        ),
        help::terms("Environment", &[("TZ", "The time zone of the column \"time\".")]),
    ]
}

/// What the words and flags mean.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The mount that was named, if one was.
    pub(crate) mount_point: Option<PathBuf>,
    /// The time between lines.
    pub(crate) interval: Duration,
    /// How many lines; `None` goes on until interrupted.
    pub(crate) count: Option<u64>,
    /// Which columns; all of them depend on what the source has.
    pub(crate) columns: Choice,
}

/// Which columns are wanted.
#[derive(Debug)]
pub(crate) enum Choice {
    /// Exactly these.
    These(Columns),
    /// Those of arcstat, and of a bucket what it costs.
    Usual,
    /// All that the source has figures for.
    All,
}

/// Shorter intervals would measure mostly the measuring.
const INTERVAL_SECONDS_MIN: f64 = 0.1;
/// A day; longer ones are typing errors.
const INTERVAL_SECONDS_MAX: f64 = 86_400.0;

impl Wanted {
    /// Works out what was meant.
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

/// What is wrong with a list of columns, without the list of all of them: there are two hundred.
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

/// Whether a word is meant as a number: digits, with at most a point and a minus that are then
/// refused in words.
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

    fn wanted(line: &str) -> Result<Wanted, String> {
        let line = format!("ogive stat {line}");
        let cli =
            Cli::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        let Command::Stat(args) = cli.command else { panic!("not stat") };
        Wanted::new(&args).map_err(|refusal| refusal.to_string())
    }

    fn meaning(line: &str) -> (Option<String>, f64, Option<u64>) {
        let wanted = wanted(line).unwrap();
        let mount_point = wanted.mount_point.map(|path| path.to_str().unwrap().to_owned());
        (mount_point, wanted.interval.as_secs_f64(), wanted.count)
    }

    #[test]
    fn mount_point_interval_and_count_are_told_apart() {
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
    fn what_makes_no_sense_is_refused() {
        for line in ["/a /b", "1 2 3", "0", "0.05 1", "1 0", "1 1.5", "100000", "1 2 3 4", "1.2.3"]
        {
            assert!(wanted(line).is_err(), "{line}");
        }
        assert!(wanted("-f time,nonsense").unwrap_err().contains("nonsense"));
        for line in ["-x -a", "-f time -a", "-x -z", "--json -p", "--json -s ,"] {
            assert!(wanted(line).unwrap_err().contains("cannot be used with"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_words_panic(words in proptest::collection::vec("[-0-9./a]{0,6}", 0..4)) {
            let _ = wanted(&words.join(" "));
        }
    }
}
