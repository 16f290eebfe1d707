//! Reads `perf lock contention`: by caller, by lock (`-l`), by thread (`-t`), and as values with a
//! separator (`-x`). Times have units: ns, us, ms, s, m.

use super::{LockRow, LockTable, Source, number};

/// The content of the last columns.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Names {
    TypeCaller,
    AddressSymbol,
    Thread,
}

/// Reads the table; `None` if the text is another one.
pub(super) fn read(text: &str) -> Option<LockTable> {
    let mut table = LockTable::new(Source::PerfLock);
    let (mut names, mut separator) = (None, None);
    for (number, line) in (1..).zip(text.lines()) {
        if line.contains("contended") && line.contains("total wait") {
            names = Some(names_of(line));
            // "# output: contended, total wait": the separator follows the first word.
            separator =
                line.strip_prefix("# output: contended").and_then(|rest| rest.chars().next());
            continue;
        }
        let Some(names) = names else { continue };
        // The stacks of -v are indented addresses, and a summary follows after an empty line.
        if line.trim().is_empty() || line.starts_with(['#', '=']) {
            continue;
        }
        if line.trim().starts_with("0x") {
            let function = line.trim().split_once(' ').map(|(_, function)| function.trim());
            if let (Some(row), Some(function)) = (table.rows.last_mut(), function) {
                row.follow(function);
            }
            continue;
        }
        let row = match separator {
            Some(separator) => separated(line, separator, names),
            None => aligned(line, names),
        };
        match row {
            Some(row) => table.add(LockRow { line: number, ..row }),
            None => table.leave(number),
        }
    }
    table.end()
}

fn names_of(head: &str) -> Names {
    if head.contains("address") {
        Names::AddressSymbol
    } else if head.contains("comm") {
        Names::Thread
    } else {
        Names::TypeCaller
    }
}

fn aligned(line: &str, names: Names) -> Option<LockRow> {
    let mut words = line.split_ascii_whitespace();
    let waits = number(words.next()?)?;
    let mut times = [0.0; 3];
    for time in &mut times {
        *time = number(words.next()?)? * unit_ns(words.next()?)?;
    }
    let rest: Vec<&str> = words.collect();
    named(waits, times, &rest, names)
}

fn separated(line: &str, separator: char, names: Names) -> Option<LockRow> {
    let mut fields = line.split(separator).map(str::trim);
    let waits = number(fields.next()?)?;
    let mut times = [0.0; 3];
    for time in &mut times {
        *time = number(fields.next()?)?;
    }
    let rest: Vec<&str> = fields.collect();
    named(waits, times, &rest, names)
}

fn named(waits: f64, times: [f64; 3], rest: &[&str], names: Names) -> Option<LockRow> {
    let (first, others) = rest.split_first()?;
    let other = others.join(" ");
    let [total, max, mean] = times;
    let mut row = LockRow {
        waits: waits as u64,
        total_wait_ns: Some(total as u64),
        max_wait_ns: Some(max as u64),
        mean_wait_ns: Some(mean),
        ..LockRow::default()
    };
    match names {
        Names::TypeCaller => {
            (*first).clone_into(&mut row.kind);
            row.caller = other.split("+0x").next().unwrap_or_default().trim().to_owned();
        }
        Names::AddressSymbol => {
            let (symbol, kind) = match other.rsplit_once(" (") {
                Some((symbol, kind)) => (symbol.trim(), kind.trim_end_matches(')')),
                None => (other.trim_matches(['(', ')']), ""),
            };
            row.lock = if symbol.is_empty() { (*first).to_owned() } else { symbol.to_owned() };
            kind.clone_into(&mut row.kind);
        }
        Names::Thread => row.caller = format!("{other} ({first})"),
    }
    Some(row)
}

fn unit_ns(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        _ => return None,
    })
}
