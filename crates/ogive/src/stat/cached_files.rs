//! `ogive stat --objects`: the files and directories in the cache of a mount.
//!
//! The figures come from `MNT/.ogive/objects`; this module selects, formats and prints rows. Paths
//! are escaped, so a line feed in a name does not end the row.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde_json::Value;

use super::args::{Selection, StatArgs};
use crate::exit::{self, Refusal};
use crate::top::format;

/// Rows of a table.
const ROWS_MAX: usize = 20;
/// The tries while another program has the cache walked, and the time between two of them.
const TRIES_MAX: u32 = 100;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The order of a table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Bytes in the cache
    Bytes,
    /// Records that programs read
    Reads,
    /// Records that had to be loaded
    Misses,
    /// Bytes that came from the source
    Origin,
}

impl Order {
    /// The member of a row that it sorts by.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Reads => "reads",
            Self::Misses => "misses",
            Self::Origin => "origin_bytes",
        }
    }
}

/// Prints the content of the cache, repeatedly if an interval is given.
pub(super) fn run(
    args: &StatArgs,
    selection: &Selection,
    control: &Path,
    stop: &Receiver<()>,
) -> Result<()> {
    let file = control.join("objects");
    let mut out = super::output(args)?;
    let start = Instant::now();
    let mut printed = 0_u32;
    loop {
        let text = read(&file)?;
        let objects: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} has invalid content", file.display()))?;
        let text = if args.json { format!("{objects}\n") } else { tables(&objects, args) };
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .context("cannot write statistics")?;
        printed += 1;
        let due = start + selection.interval.mul_f64(f64::from(printed));
        let is_last = selection.count.is_some_and(|count| u64::from(printed) >= count);
        if is_last || super::waited_for_signal(stop, due) {
            return Ok(());
        }
    }
}

/// Reads the file, after waiting while another program has the cache walked.
pub(crate) fn read(file: &Path) -> Result<String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match std::fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES_MAX => {
                thread::sleep(TRY_AGAIN_AFTER);
            }
            Ok(text) => return Ok(text),
            Err(error) => return Err(refusal(file, &error).into()),
        }
    }
}

fn refusal(file: &Path, error: &io::Error) -> Refusal {
    let what = format!("cannot read {}: {error}", file.display());
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => super::AS_MOUNTING_USER,
        io::ErrorKind::NotFound => {
            "the process of this mount is of an earlier version; mount again"
        }
        _ => "\"ogive stat MNT\" shows whether the mount answers",
    };
    Refusal::new(exit::MOUNT_POINT, what).hint(hint)
}

fn tables(objects: &Value, args: &StatArgs) -> String {
    let mut text = String::new();
    let is_raw = args.raw;
    let number = |value: &Value, of: fn(Option<f64>) -> String| match is_raw {
        true => value.to_string(),
        false => of(value.as_f64()),
    };
    for title in ["directories", "files"] {
        let mut all: Vec<&Value> = objects[title].as_array().into_iter().flatten().collect();
        let member = args.by.unwrap_or(Order::Bytes).member();
        // The sort is stable, so equal rows keep the mount's order.
        all.sort_by_key(|row| std::cmp::Reverse(row[member].as_u64()));
        all.truncate(ROWS_MAX);
        let path = |row: &Value| row["path"].as_str().unwrap_or("?").to_owned();
        let cells: Vec<[String; 9]> = all.iter().map(|row| cells(row, path(row), number)).collect();
        lay_out(&mut text, title, &cells);
        text.push('\n');
    }
    let mut sums = vec![];
    for (name, words) in [
        ("total", "everything"),
        ("metadata", "(listings and links)"),
        ("unnamed", "(files that the kernel has forgotten, and earlier versions)"),
    ] {
        sums.push(cells(&objects[name], words.to_owned(), number));
    }
    lay_out(&mut text, "sums", &sums);
    let seconds = objects["sampled_seconds"].as_f64().unwrap_or(0.0);
    let lease = &objects["lease_seconds"];
    let _ = if seconds > 0.0 {
        let how = match objects["sampled_one_in"].as_u64() {
            Some(one_in @ 2..) => format!("estimated from one record in {one_in}"),
            _ => "from all records".to_owned(),
        };
        writeln!(text, "Reads, hits and misses are of the last {seconds:.0} seconds, {how}.")
    } else {
        writeln!(
            text,
            "Reads, hits and misses are counted from now on, for {lease} seconds after each call: \
             call again, or give an interval."
        )
    };
    if objects["undercount_max_bytes"].as_u64().is_some_and(|bytes| bytes > 0) {
        let bytes = format::bytes(objects["undercount_max_bytes"].as_f64());
        let _ =
            writeln!(text, "Because of very many objects, up to {bytes} of one may be missing.");
    }
    text
}

/// The cells of a row.
fn cells(
    row: &Value,
    path: String,
    number: impl Fn(&Value, fn(Option<f64>) -> String) -> String,
) -> [String; 9] {
    let hit_share = match (row["hits"].as_f64(), row["reads"].as_f64()) {
        (Some(hits), Some(reads)) if reads > 0.0 => format!("{:.1}", 100.0 * hits / reads),
        _ => "-".to_owned(),
    };
    [
        number(&row["bytes"], format::bytes),
        number(&row["mru_bytes"], format::bytes),
        number(&row["mfu_bytes"], format::bytes),
        number(&row["records"], format::count),
        number(&row["reads"], format::count),
        hit_share,
        number(&row["misses"], format::count),
        number(&row["origin_bytes"], format::bytes),
        path,
    ]
}

fn lay_out(text: &mut String, title: &str, rows: &[[String; 9]]) {
    let header = ["bytes", "mru", "mfu", "records", "reads", "hit%", "misses", "source", title]
        .map(str::to_owned);
    let lines: Vec<&[String; 9]> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    for line in &lines {
        for (cell, width) in line[..8].iter().zip(widths) {
            let _ = write!(text, "{cell:>width$}  ");
        }
        text.push_str(&line[8]);
        text.push('\n');
    }
    if rows.is_empty() {
        let _ = writeln!(text, "the cache contains no {title}");
    }
}
