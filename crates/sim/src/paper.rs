//! The tables of the ARC paper, and the same cells from ogive's replay.
//!
//! The numbers are those of Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement
//! Cache", FAST '03. The tables are IV (OLTP), V (P8, P12), VII (P4) and VIII (at a glance), with a
//! cold start, in percent.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::policy::PolicyName;
use crate::replay::{CurvePlan, OnProgress, Plan, ReplayError, SizeSpec, replay};
use crate::trace::ReadOptions;

/// Percentage points by which a cell may differ, because the paper does not print how it represents
/// `p`.
pub const TOLERANCE_POINTS: f64 = 0.02;

/// A printed row: trace, entries, then percent for LRU, ARC and MIN if printed.
type Printed = (&'static str, u64, f64, f64, Option<f64>);

const PRINTED: [Printed; 35] = [
    ("OLTP", 1000, 32.83, 38.93, Some(53.61)),
    ("OLTP", 2000, 42.47, 46.08, Some(60.40)),
    ("OLTP", 5000, 53.65, 55.25, Some(68.27)),
    ("OLTP", 10_000, 60.70, 61.87, Some(73.02)),
    ("OLTP", 15_000, 64.63, 65.40, Some(75.13)),
    ("P1", 32_768, 16.55, 28.26, None),
    ("P3", 32_768, 3.57, 17.12, None),
    ("P4", 1024, 2.68, 2.69, None),
    ("P4", 8192, 3.65, 4.17, None),
    ("P4", 32_768, 5.24, 11.24, None),
    ("P4", 131_072, 21.43, 27.42, None),
    ("P4", 524_288, 48.19, 53.37, None),
    ("P5", 32_768, 6.73, 14.27, None),
    ("P6", 32_768, 4.24, 23.84, None),
    ("P7", 32_768, 3.45, 13.77, None),
    ("P8", 1024, 0.35, 1.22, None),
    ("P8", 8192, 2.30, 9.19, None),
    ("P8", 32_768, 17.18, 27.51, None),
    ("P8", 131_072, 62.10, 66.35, None),
    ("P8", 524_288, 96.77, 97.30, None),
    ("P9", 32_768, 8.28, 19.73, None),
    ("P10", 32_768, 2.48, 9.46, None),
    ("P11", 32_768, 20.92, 26.48, None),
    ("P12", 1024, 4.09, 4.16, None),
    ("P12", 2048, 4.84, 4.89, None),
    ("P12", 4096, 5.61, 5.76, None),
    ("P12", 8192, 6.22, 7.14, None),
    ("P12", 16_384, 7.09, 10.12, None),
    ("P12", 32_768, 8.93, 15.94, None),
    ("P12", 65_536, 14.43, 26.09, None),
    ("P12", 131_072, 29.21, 38.68, None),
    ("P12", 262_144, 49.11, 53.47, None),
    ("P12", 524_288, 60.91, 63.56, None),
    ("P13", 32_768, 7.83, 16.60, None),
    ("P14", 32_768, 15.73, 20.52, None),
];

/// One cell: the printed value and ogive's.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The trace, by the paper's name.
    pub trace: &'static str,
    /// Size of the cache in pages.
    pub entries: u64,
    /// The policy.
    pub policy: String,
    /// Hit ratio as printed, in percent.
    pub printed_percent: f64,
    /// ogive's hits.
    pub hits: u64,
    /// Requests of the trace.
    pub requests: u64,
}

impl Cell {
    /// ogive's hit ratio, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * crate::simulation::ratio(self.hits, self.requests)
    }

    /// Whether it agrees with the printed value, within [`TOLERANCE_POINTS`].
    #[must_use]
    pub fn agrees(&self) -> bool {
        (self.percent() - self.printed_percent).abs() <= TOLERANCE_POINTS
    }
}

/// The traces in the tables.
pub fn traces() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = PRINTED.iter().map(|row| row.0).collect();
    names.dedup();
    names.into_iter()
}

/// The file of a trace in a directory or its `arc` subdirectory: `NAME.lis`, optionally with a
/// compression's suffix.
#[must_use]
pub fn find(directory: &Path, trace: &str) -> Option<PathBuf> {
    let endings = ["", ".zst", ".xz", ".gz"];
    let folders = [directory.to_owned(), directory.join("arc")];
    folders
        .iter()
        .flat_map(|folder| endings.map(|ending| folder.join(format!("{trace}.lis{ending}"))))
        .find(|path| path.is_file())
}

/// Replays one trace at the sizes of the tables.
///
/// # Errors
/// As [`replay`].
pub fn cells(
    trace: &'static str,
    path: &Path,
    threads: usize,
    on_progress: OnProgress<'_>,
) -> Result<Vec<Cell>, ReplayError> {
    let rows: Vec<&Printed> = PRINTED.iter().filter(|row| row.0 == trace).collect();
    let mut policies = vec![PolicyName::Lru, PolicyName::Arc];
    if rows.iter().any(|row| row.4.is_some()) {
        policies.push(PolicyName::Min);
    }
    let plan = Plan {
        traces: vec![path.to_owned()],
        read: ReadOptions { entries: true, ..ReadOptions::default() },
        policies: policies.clone(),
        sizes: rows.iter().map(|row| SizeSpec::Bytes(row.1)).collect(),
        curve: CurvePlan::None,
        sample: 1.0,
        threads,
    };
    let replayed = replay(&plan, on_progress)?;
    let mut cells = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        for (column, policy) in policies.iter().enumerate() {
            let printed = [Some(row.2), Some(row.3), row.4][column];
            let Some(printed_percent) = printed else { continue };
            let tally = replayed.rows[column * rows.len() + at].tally();
            cells.push(Cell {
                trace,
                entries: row.1,
                policy: policy.to_string(),
                printed_percent,
                hits: tally.hits,
                requests: tally.requests,
            });
        }
    }
    Ok(cells)
}
