//! The contents of the cache by file and directory, for the file `objects` of the control
//! directory.
//!
//! Nothing is counted by file until a program asks. Then the resident records are walked one by one
//! ([`tally`]). The answer also has the samples since the first request ([`crate::sampling`]). A
//! record knows its object by version alone. The inodes that the kernel knows map versions to
//! files, so names need no memory either.
//!
//! Records of versions without an inode are added up as `unnamed`: files that the kernel has
//! forgotten, and earlier contents of files. No reader can ask for the latter, and eviction takes
//! them in turn. A file has the name of the kernel's last lookup.
//!
//! Memory is bounded by [`tally`], the inodes' directories, and [`ROWS_MAX`] rows per order. No
//! lock is held longer than for one step of a walk.

mod paths;
mod tally;

use crate::inode::InodeTable;
use crate::record::Version;
use crate::sampling::{Counts, LEASE, Sampled};
use crate::view::View;
use hashbrown::HashMap;
use ogive_arc::Kind;
use ogive_origin::Origin;
use paths::{Directories, Named};
use serde_json::{Value, json};
use std::time::Instant;
use tally::{Resident, Tally};

/// Rows per order: the files with most bytes, most reads, and so on.
const ROWS_MAX: usize = 100;

/// The figures of a file, a directory, or everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    resident: Resident,
    counts: Counts,
}

/// The orders by which rows are chosen.
const ORDERS: [fn(&Figures) -> u64; 4] = [
    |figures| figures.resident.bytes(),
    |figures| figures.counts.reads,
    |figures| figures.counts.misses,
    |figures| figures.counts.origin_bytes,
];

impl Figures {
    fn add(&mut self, other: &Self) {
        self.resident.add(&other.resident);
        self.counts.add(&other.counts);
    }

    fn json_object(&self) -> Value {
        let Self { resident, counts } = self;
        json!({
            "records": resident.records,
            "bytes": resident.bytes(),
            "mru_bytes": resident.mru_bytes,
            "mfu_bytes": resident.mfu_bytes,
            "reads": counts.reads,
            "hits": counts.reads.saturating_sub(counts.misses),
            "misses": counts.misses,
            "origin_bytes": counts.origin_bytes,
            "l2_bytes": counts.second_level_bytes,
        })
    }

    fn json_object_with_path(&self, path: String) -> Value {
        let mut object = self.json_object();
        object["path"] = path.into();
        object
    }
}

/// The present contents of the cache, and the samples since the first request: a JSON object.
pub(crate) fn json<O: Origin>(view: &View<O>, now: Instant) -> String {
    let sampled = view.observers.sampled(now);
    let mut tally = Tally::default();
    let mut metadata = Resident::default();
    view.cache.walk(|entry| match entry.kind {
        Kind::Data => tally.add(entry.key.version, entry.list, entry.weight_bytes),
        Kind::Metadata => metadata.note(entry.list, entry.weight_bytes),
    });
    format!("{:#}\n", report(&view.inodes, tally, metadata, &sampled))
}

fn report<O: Origin>(
    inodes: &InodeTable<O>,
    tally: Tally,
    metadata: Resident,
    sampled: &Sampled,
) -> Value {
    let (objects, undercount_max_bytes) = (tally.len(), tally.undercount_max_bytes());
    let mut total = Figures { resident: tally.total(), counts: sampled.total };
    let mut unnamed = total;
    let mut files = tally.into_objects();
    for (version, counts) in &sampled.counts {
        files.entry(*version).or_default().counts = *counts;
    }
    let (files, directories) = name(inodes, files, &mut unnamed);
    total.resident.add(&metadata);
    let file_rows = rows(&files, |named| &named.figures);
    let file_rows = file_rows.into_iter().filter_map(|named| {
        let inode = inodes.get(named.number)?;
        let path = directories.path(&inode.kernel_names.last())?;
        Some(named.figures.json_object_with_path(path))
    });
    let file_rows: Vec<Value> = file_rows.collect();
    let all = directories.figures();
    let directory_rows = rows(&all, |(_, figures)| figures);
    let directory_rows = directory_rows.into_iter().filter_map(|(number, figures)| {
        Some(figures.json_object_with_path(directories.path_of(*number)?))
    });
    let directory_rows: Vec<Value> = directory_rows.collect();
    json!({
        "objects": objects,
        "undercount_max_bytes": undercount_max_bytes,
        "sampled_seconds": sampled.elapsed.as_secs_f64(),
        "sampled_one_in": sampled.one_in,
        "lease_seconds": LEASE.as_secs(),
        "total": total.json_object(),
        "metadata": Figures { resident: metadata, ..Figures::default() }.json_object(),
        "unnamed": unnamed.json_object(),
        "files": file_rows,
        "directories": directory_rows,
    })
}

/// Finds the files of these versions, and moves their figures out of the unnamed ones.
fn name<O: Origin>(
    inodes: &InodeTable<O>,
    mut versions: HashMap<Version, Figures>,
    unnamed: &mut Figures,
) -> (Vec<Named>, Directories) {
    let mut files = Vec::new();
    let mut directories = Directories::default();
    inodes.walk(|inode| {
        let Some(contents) = inode.contents() else { return };
        let Some(figures) = versions.remove(&contents.version) else { return };
        if directories.add(inodes, &inode.kernel_names.last(), &figures) {
            unnamed.resident.sub(&figures.resident);
            unnamed.counts.sub(&figures.counts);
            files.push(Named { number: inode.number, figures });
        }
    });
    (files, directories)
}

/// The first rows by any order, the largest first.
fn rows<T>(all: &[T], figures: impl Fn(&T) -> &Figures) -> Vec<&T> {
    let mut chosen = vec![false; all.len()];
    let mut positions: Vec<usize> = (0..all.len()).collect();
    for order in ORDERS {
        let key = |position: &usize| std::cmp::Reverse(order(figures(&all[*position])));
        if positions.len() > ROWS_MAX {
            positions.select_nth_unstable_by_key(ROWS_MAX, key);
        }
        let first = positions.iter().take(ROWS_MAX);
        first.filter(|at| order(figures(&all[**at])) > 0).for_each(|at| chosen[*at] = true);
    }
    let mut rows: Vec<&T> =
        all.iter().zip(chosen).filter_map(|(row, chosen)| chosen.then_some(row)).collect();
    rows.sort_by_key(|row| ORDERS.map(|order| std::cmp::Reverse(order(figures(row)))));
    rows
}
