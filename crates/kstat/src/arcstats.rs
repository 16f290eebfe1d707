//! The 148 rows of OpenZFS's `arcstats`, in OpenZFS's order, and four rows that older tools need.
//!
//! Source: `arc_stats` in `module/zfs/arc.c`, OpenZFS 2.4. Older releases only lack rows (2.1 has
//! 123 on Linux, 2.2 has 147). So a file with all rows satisfies the tools of every release from
//! 0.8 on. If a number is narrower than its name, its description says so.

use crate::table::{Field, Rows, Table, UnknownField};

/// `/proc/spl/kstat/zfs/arcstats`.
pub static ARCSTATS: Table =
    Table { module: "zfs", name: "arcstats", kid: 12, fields: ogive_stats::ARCSTATS };

/// Rows that OpenZFS 2.2 removed and that `arc_summary` of 2.0 and 2.1 and `htop` still read.
pub static REMOVED_ROWS: [Field; 4] = [
    Field::bytes("p", "Target of the MRU list (its share of `c`), before 2.2"),
    Field::bytes("arc_meta_limit", "Limit of metadata in the cache, before 2.2"),
    Field::bytes("arc_meta_max", "Largest metadata so far, before 2.2"),
    Field::bytes("arc_meta_min", "Metadata below which none is evicted, before 2.2"),
];

/// The exact `arcstats` file for `counters`: all 148 rows; rows without a counter are 0.
///
/// ```
/// let text = ogive_kstat::arcstats::file(1, 2, [("hits", 7_u64), ("size", 4096)]).unwrap();
/// assert!(text.starts_with("12 1 0x01 148 40256 1 2\nname                            type data\n"));
/// assert!(text.contains("\nhits                            4    7\n"));
/// ```
///
/// # Errors
/// A name is not one of the 148.
pub fn file<'a, Number: Into<i128>>(
    crtime_ns: i64,
    snaptime_ns: i64,
    counters: impl IntoIterator<Item = (&'a str, Number)>,
) -> Result<String, UnknownField> {
    let mut rows = ARCSTATS.rows(crtime_ns, snaptime_ns);
    rows.fill(counters)?;
    Ok(rows.to_text())
}

/// Appends [`REMOVED_ROWS`] to a filling, from values in their order.
pub fn append_removed_rows(rows: &mut Rows, values: [u64; 4]) {
    for (field, value) in REMOVED_ROWS.iter().zip(values) {
        rows.append(field, value);
    }
}
