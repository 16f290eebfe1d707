//! Reads ogive's own counters from a named kstat: `lock_NAME_waits`, `lock_NAME_wait_ns`,
//! `lock_NAME_wait_max_ns`. `lock_waits` and `lock_wait_ns` are sums over the engine. The form
//! `NAME: VALUE` with a prefix of modules, as sysctl prints it, is read too.

use std::collections::BTreeMap;

use super::{LockRow, LockTable, Source, number};

/// Reads the counters; `None` if the text has none.
pub(super) fn read(text: &str) -> Option<LockTable> {
    let mut rows: BTreeMap<String, LockRow> = BTreeMap::new();
    for line in text.lines().take(1_000_000) {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next_back()) else { continue };
        let name = name.trim_end_matches(':');
        let name = name.rsplit('.').next().unwrap_or(name);
        let Some(counter) = name.strip_prefix("lock") else { continue };
        let Some(value) = number(value) else { continue };
        let suffixes = ["_wait_max_ns", "_wait_ns", "_waits"];
        let Some((lock, suffix)) =
            suffixes.into_iter().find_map(|suffix| Some((counter.strip_suffix(suffix)?, suffix)))
        else {
            continue;
        };
        let lock = match lock.strip_prefix('_') {
            Some(lock) => lock,
            None if lock.is_empty() => "all of the engine",
            None => continue,
        };
        let row = rows.entry(lock.to_owned()).or_insert_with(|| LockRow {
            lock: lock.to_owned(),
            kind: "mutex".to_owned(),
            ..LockRow::default()
        });
        match suffix {
            "_waits" => row.waits = value as u64,
            "_wait_ns" => row.total_wait_ns = Some(value as u64),
            _ => row.max_wait_ns = Some(value as u64),
        }
    }
    let mut table = LockTable::new(Source::Ogive);
    for row in rows.into_values() {
        table.add(row);
    }
    table.end()
}
