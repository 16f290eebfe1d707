//! The tables of lockstat: one for each kind of lock, longest total wait first.

use std::fmt::Write as _;

use ogive_profile::locks::{LockRow, LockTable};

use crate::profile::tables::printable;

/// Prints the tables, with at most `rows` rows of each kind.
pub(super) fn lockstat(table: &LockTable, rows: usize) -> String {
    let mut out = String::new();
    let seconds = table.seconds.unwrap_or(0.0);
    let mut kinds: Vec<(u64, &str, Vec<&LockRow>)> = Vec::new();
    for row in table.ranked() {
        let waited = row.total_wait_ns.unwrap_or(0);
        match kinds.iter_mut().find(|(_, kind, _)| *kind == row.kind) {
            Some((all, _, of_kind)) => {
                *all += waited;
                of_kind.push(row);
            }
            None => kinds.push((waited, &row.kind, vec![row])),
        }
    }
    kinds.sort_by_key(|(waited, ..)| std::cmp::Reverse(*waited));
    for (waited, kind, of_kind) in &kinds {
        let events: u64 = of_kind.iter().map(|row| row.waits).sum();
        let rate = if seconds > 0.0 { events as f64 / seconds } else { 0.0 };
        let _ = writeln!(
            out,
            "{kind}: {events} events in {seconds:.3} seconds ({rate:.0} events/sec)\n\n\
             {:>9} indv cuml rcnt {:>11} {:<40} Caller\n{}",
            "Count",
            "nsec",
            "Lock",
            "-".repeat(79)
        );
        let mut sum = 0u64;
        for row in of_kind.iter().take(rows) {
            let total = row.total_wait_ns.unwrap_or(0);
            sum += total;
            let part = |ns: u64| 100.0 * ns as f64 / (*waited).max(1) as f64;
            let caller = if row.caller.is_empty() { "(unknown)" } else { &row.caller };
            let _ = writeln!(
                out,
                "{:>9} {:>3.0}% {:>3.0}% 0.00 {:>11.0} {:<40} {}",
                row.waits,
                part(total),
                part(sum),
                row.mean_wait_ns.unwrap_or(0.0),
                printable(&row.lock),
                printable(caller)
            );
        }
        let _ = writeln!(out, "{}", "-".repeat(79));
        if of_kind.len() > rows {
            let _ = writeln!(out, "({} more rows: --top)", of_kind.len() - rows);
        }
        out.push('\n');
    }
    if kinds.is_empty() {
        let _ = writeln!(out, "no thread waited for a lock in {seconds:.3} seconds");
    }
    for note in &table.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_profile::locks;

    fn table() -> LockTable {
        let text = "\
Adaptive mutex block: 33 events in 10.000 seconds (3 events/sec)

Count indv cuml rcnt     nsec Lock                   Caller
-------------------------------------------------------------------------------
    3  10%  10% 0.00      100 0xffff1                do_unlinkat
   30  90% 100% 0.00     9000 hash_mutexes (one of the dbuf hash table) dbuf_find
-------------------------------------------------------------------------------
";
        locks::read(text).expect("a table of lockstat")
    }

    #[test]
    fn printed_tables_are_read_back_as_lockstat() {
        let text = lockstat(&table(), 20);
        let again = locks::read(&text).unwrap();
        assert_eq!(again.rows.len(), 2, "{text}");
        let first = again.ranked()[0];
        assert_eq!((first.waits, first.mean_wait_ns), (30, Some(9000.0)));
        assert_eq!(first.lock, "hash_mutexes (one of the dbuf hash table)");
        assert_eq!(
            (first.caller.as_str(), first.kind.as_str()),
            ("dbuf_find", "Adaptive mutex block")
        );
        assert_eq!(again.seconds, Some(10.0));
        assert!(again.notes.is_empty(), "{:?}", again.notes);
    }

    #[test]
    fn hidden_rows_are_counted_and_an_empty_table_is_reported() {
        assert!(lockstat(&table(), 1).contains("(1 more rows: --top)"));
        let mut none = table();
        none.rows.clear();
        assert_eq!(lockstat(&none, 5), "no thread waited for a lock in 10.000 seconds\n");
    }
}
