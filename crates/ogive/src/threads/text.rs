//! The report, the dictionary and lock tables as text.

use std::fmt::Write as _;

use ogive_profile::locks::LockTable;
use ogive_profile::roles::Roles;
use ogive_profile::threads::{CpuUse, Report};

use crate::profile::tables::{Table, printable};

/// CPUs listed one by one at most.
const CPUS_SHOWN: usize = 32;

/// A report.
pub(super) fn report(report: &Report, rows: usize) -> String {
    let mut out = String::new();
    let mut cpus = Table::new(&["CPU", "usr", "sys", "irq", "iowait", "steal", "idle"]);
    cpus.row(cpu("all", &report.total));
    for each in report.cpus.iter().take(CPUS_SHOWN) {
        cpus.row(cpu(&each.cpu.map_or_else(String::new, |number| number.to_string()), each));
    }
    cpus.end(&mut out, report.cpus.len(), report.cpus.len().min(CPUS_SHOWN));
    let mut roles =
        Table::new(&["CPU", "usr s", "sys s", "waiting s", "threads", "role", "what it does"]);
    for role in report.roles.iter().take(rows) {
        roles.row([
            format!("{:.1}%", role.cpu_percent),
            format!("{:.2}", role.usr_seconds),
            format!("{:.2}", role.sys_seconds),
            format!("{:.2}", role.wait_seconds),
            role.threads.to_string(),
            printable(&role.role),
            role.what.clone().unwrap_or_default(),
        ]);
    }
    roles.end(&mut out, report.roles.len(), rows);
    let _ = writeln!(
        out,
        "{:.1} s watched; 100% of CPU is one CPU. {} threads were started, {} that were read \
         ended; {:.2} s of CPU belong to no such thread (short-lived ones, interrupts). \
         The observation used {:.1}% of a CPU. CPU times are counted in ticks, so less than one \
         is missing there.",
        report.seconds,
        report.started,
        report.ended_seen,
        report.missed_cpu_seconds,
        report.own_cpu_percent
    );
    for note in &report.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

fn cpu(name: &str, part: &CpuUse) -> [String; 7] {
    let percent = |value: f64| format!("{value:.1}%");
    [
        name.to_owned(),
        percent(part.usr),
        percent(part.sys),
        percent(part.irq),
        percent(part.iowait),
        percent(part.steal),
        percent(part.idle),
    ]
}

/// The dictionary.
pub(super) fn roles(roles: &Roles) -> String {
    let mut table = Table::new(&["name", "role", "versions", "what it does"]);
    let mut rows = 0;
    for role in roles.iter() {
        let versions = match (&role.since, &role.until) {
            (Some(since), Some(until)) if since == until => since.clone(),
            (Some(since), Some(until)) => format!("{since} to {until}"),
            (Some(since), None) => format!("since {since}"),
            (None, Some(until)) => format!("until {until}"),
            (None, None) => String::new(),
        };
        table.row([role.name.clone(), role.role.clone(), versions, role.what.clone()]);
        rows += 1;
    }
    let mut out = String::new();
    table.end(&mut out, rows, rows);
    out
}

/// A lock table.
pub(super) fn locks(table: &LockTable, rows: usize) -> String {
    let mut out = String::new();
    let mut shown =
        Table::new(&["waited", "share", "waits", "mean", "longest", "kind", "lock", "caller"]);
    let time = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), duration);
    for row in table.ranked().into_iter().take(rows) {
        shown.row([
            time(row.total_wait_ns.map(|ns| ns as f64)),
            format!("{:.1}%", table.share(row) * 100.0),
            row.waits.to_string(),
            time(row.mean_wait_ns),
            time(row.max_wait_ns.map(|ns| ns as f64)),
            printable(&row.kind),
            printable(&row.lock),
            printable(&row.caller),
        ]);
    }
    shown.end(&mut out, table.rows.len(), rows);
    for note in &table.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

fn duration(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.2} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}
