//! Adds several kstats of one table up: the statistics of all caches of a host.
//!
//! Counters and levels are added, with three exceptions. Rows about the machine are the same in all
//! kstats, so the largest value is taken, and so it is for flags and maxima. Shares and averages
//! are weighted with the target size of their cache. A missing row counts as 0.

use crate::kstat::Kstat;
use crate::table::{Rows, Table, Unit};

/// Rows whose largest value is taken, in addition to flags: they are about the machine or are
/// maxima.
const LARGEST: [&str; 6] = [
    "memory_all_bytes",
    "memory_free_bytes",
    "memory_available_bytes",
    "arc_sys_free",
    "hash_chain_max",
    "max_streams",
];

/// Moving averages, which cannot be added.
const AVERAGES: [&str; 2] = ["l2_log_blk_avg_asize", "l2_data_to_meta_ratio"];

/// The rows of `table` over all of `kstats`. The creation time is the oldest, and the reading time
/// the latest.
///
/// ```
/// use ogive_kstat::{arcstats, named, sum};
/// let one = |hits: u64| {
///     let text = arcstats::file(1, 2, [("hits", hits), ("memory_all_bytes", 64)]).unwrap();
///     named::parse("zfs", "arcstats", text.as_bytes()).unwrap()
/// };
/// let both = sum::rows(&arcstats::ARCSTATS, &[one(2), one(5)]);
/// assert_eq!(both.value("hits"), Some(7));
/// assert_eq!(both.value("memory_all_bytes"), Some(64));
/// ```
pub fn rows(table: &'static Table, kstats: &[Kstat]) -> Rows {
    let created_ns = kstats.iter().map(|kstat| kstat.crtime_ns).min().unwrap_or(0);
    let read_ns = kstats.iter().map(|kstat| kstat.snaptime_ns).max().unwrap_or(0);
    let mut rows = table.rows(created_ns, read_ns);
    for field in table.fields {
        let values = || kstats.iter().map(|kstat| number(kstat, field.name));
        let value = if field.unit == Unit::Flag || LARGEST.contains(&field.name) {
            values().max().unwrap_or(0)
        } else if field.unit == Unit::Fraction32 || AVERAGES.contains(&field.name) {
            weighted(kstats, field.name)
        } else {
            // A sum beyond the range stays at the end of the range.
            values().fold(0, i128::saturating_add)
        };
        let _ = rows.set(field.name, value);
    }
    rows
}

fn number(kstat: &Kstat, name: &str) -> i128 {
    kstat.get(name).and_then(crate::Value::as_integer).unwrap_or(0)
}

/// The mean of a row, weighted with the target size of each cache. Both factors have 64 bits, so
/// the products of any realistic number of caches fit in 128.
fn weighted(kstats: &[Kstat], name: &str) -> i128 {
    let weight = |kstat: &Kstat| number(kstat, "c").max(1);
    let total = kstats.iter().map(weight).fold(0, i128::saturating_add).max(1);
    let product = |kstat: &Kstat| number(kstat, name).saturating_mul(weight(kstat));
    kstats.iter().map(product).fold(0, i128::saturating_add) / total
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::arcstats::{self, ARCSTATS};
    use crate::named;

    fn arcstats(counters: &[(&str, u64)]) -> Kstat {
        let text = arcstats::file(3, 9, counters.iter().copied()).unwrap();
        named::parse("zfs", "arcstats", text.as_bytes()).unwrap()
    }

    #[test]
    fn counters_add_up_shares_are_weighted_and_the_machine_counts_once() {
        let half = 1_u64 << 31;
        let large = [("c", 300), ("size", 200), ("hits", 7), ("pd", half), ("arc_no_grow", 0)];
        let small = [("c", 100), ("size", 50), ("hits", 1), ("pd", 0), ("arc_no_grow", 1)];
        let mut both = [arcstats(&large), arcstats(&small)];
        both[1].crtime_ns = 1;
        for kstat in &mut both {
            let position = ARCSTATS.position("memory_free_bytes").unwrap();
            kstat.entries[position].value = crate::Value::U64(64);
        }
        let rows = rows(&ARCSTATS, &both);
        for (name, expected) in [
            ("hits", 8),
            ("size", 250),
            ("c", 400),
            ("pd", half * 3 / 4),
            ("arc_no_grow", 1),
            ("memory_free_bytes", 64),
        ] {
            assert_eq!(rows.value(name), Some(expected), "{name}");
        }
        assert!(rows.to_text().starts_with("12 1 0x01 148 40256 1 9\n"));
    }

    #[test]
    fn no_values_overflow_and_nothing_is_all_zeroes() {
        let full = arcstats(&[("hits", u64::MAX), ("c", u64::MAX), ("pd", u64::MAX)]);
        let rows_of_full = rows(&ARCSTATS, &vec![full; 300]);
        assert_eq!(rows_of_full.value("hits"), Some(u64::MAX));
        assert!(rows_of_full.value("pd").is_some());
        let none = rows(&ARCSTATS, &[]).to_kstat();
        assert!(none.entries.iter().all(|entry| entry.value.as_integer() == Some(0)));
        assert_eq!(none.entries.len(), 148);
    }
}
