//! Reads `/proc/lock_stat` of a kernel with `CONFIG_LOCK_STAT`: a row for each class of locks, and
//! below it a row for each caller, in microseconds.

use super::{LockRow, LockTable, Source, number};

/// Reads the table; `None` if the text is another one.
pub(super) fn read(text: &str) -> Option<LockTable> {
    let mut table = LockTable::new(Source::LockStat);
    let mut begun = false;
    for (line, text) in (1..).zip(text.lines()) {
        begun |= text.starts_with("lock_stat version");
        let is_rule = text.bytes().all(|byte| b"-.: ".contains(&byte));
        let is_head = text.starts_with("lock_stat") || text.trim_start().starts_with("class name");
        if !begun || is_rule || is_head {
            continue;
        }
        match (class(text), caller(text), table.rows.last_mut()) {
            (Some(row), ..) => table.add(LockRow { line, ..row }),
            (None, Some(caller), Some(row)) => row.follow(caller),
            _ => table.leave(line),
        }
    }
    table.end()
}

/// `&mls->mls_lock-W: 12345 23456 0.10 950.20 789012.30 33.60 ...`: bounces, contentions, then
/// minimum, maximum and total time.
fn class(text: &str) -> Option<LockRow> {
    let (lock, figures) = text.rsplit_once(':')?;
    let mut figures = figures.split_ascii_whitespace().map(number);
    let [_bounces, waits, _least, most, all] = std::array::from_fn(|_| figures.next().flatten());
    let micros = |micros: f64| (micros * 1e3) as u64;
    Some(LockRow {
        lock: lock.trim().to_owned(),
        kind: "lock".to_owned(),
        waits: waits? as u64,
        total_wait_ns: Some(micros(all?)),
        max_wait_ns: most.map(micros),
        ..LockRow::default()
    })
}

/// `&mls->mls_lock 1234 [<ffffffffc0b05bca>] multilist_sublist_lock+0x18/0x30`.
fn caller(text: &str) -> Option<&str> {
    let (before, caller) = text.rsplit_once(">] ")?;
    let (_, address) = before.rsplit_once("[<")?;
    address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'x').then_some(caller.trim())
}
