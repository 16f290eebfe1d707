//! Mounts that a daemon or a server serves (FUSE, NFS, SMB). A capture lists one mount per line:
//! `TYPE SOURCE MOUNT WAITING PID STATE`, with `-` for an unknown value.
//!
//! [`finish`] makes two tables from two readings: `fuse_wait` (a daemon that answers nothing) and
//! `server_wait` (threads that wait for file servers, and the possible servers).

use super::{Moment, moment_of};
use crate::evidence::{Evidence, Number, Source, Table};
use crate::read::lines::{FORMAT, Format};

/// Name of the tables of single mounts.
const TABLE: &str = "served_mount";
/// A daemon with less CPU than this percent of one CPU does nothing.
const NEXT_TO_NOTHING: f64 = 1.0;
/// Servers that are named, at most.
const MOST_SERVERS: usize = 3;
/// Kinds of file servers: the beginning of their mount types, and the kind of wait of their
/// threads.
const SERVERS: [(&str, &str); 3] = [("nfs", "nfs"), ("cifs", "cifs"), ("smb3", "cifs")];

/// One mount per line. Names are escaped as in /proc/mounts.
pub(crate) static SERVED: Format = Format {
    name: "served mounts",
    heading: "TYPE SOURCE MOUNT WAITING PID STATE",
    shapes: &[concat!(
        r"^(?<text_type>\S+)\s+(?<text_source>\S+)\s+(?<scope>\S+)\s+(?<waiting>\S+)",
        r"\s+(?<pid>\S+)\s+(?:-|(?<text_state>\S+))$",
    )],
    table: TABLE,
    each: true,
    then: Some(|mount| {
        mount.scope = mount.scope.as_deref().map(plain);
        for figure in mount.figures.iter_mut().filter(|figure| figure.name == "source") {
            if let Number::Text(source) = &mut figure.value {
                *source = plain(source);
            }
        }
    }),
    ..FORMAT
};

/// A name without the kernel's escapes.
fn plain(name: &str) -> String {
    String::from_utf8_lossy(&ogive_proc::unescaped(name.as_bytes())).into_owned()
}

/// Adds the results of two readings.
pub(crate) fn finish(evidence: &mut Evidence) {
    let of_moment = |moment| {
        let tables = evidence.tables.iter().filter(|table| table.name == TABLE);
        tables.filter(move |table| moment_of(table) == Some(moment)).collect::<Vec<&Table>>()
    };
    let (start, end) = (of_moment(Moment::Start), of_moment(Moment::End));
    // The number of waiting requests may be unknown if the daemon is stopped.
    let waits = |table: &Table| match table.value("waiting") {
        Some(waiting) => waiting > 0.0,
        None => is_stopped(table),
    };
    let waited = |end: &&&Table| {
        waits(end) && start.iter().any(|start| start.scope == end.scope && waits(start))
    };
    // Stopped daemons come first: a daemon that waits for a stopped one stands still too, but is
    // not the cause.
    let mut all: Vec<&&Table> = end.iter().filter(waited).collect();
    all.sort_by_key(|end| !is_stopped(end));
    let stands = all.into_iter().find_map(|end| fuse_wait(end, evidence));
    let served: Vec<Table> = SERVERS
        .iter()
        .filter_map(|(kind, waits)| server_wait(kind, waits, &end, evidence))
        .collect();
    evidence.tables.extend(stands.into_iter().chain(served));
}

/// Whether the daemon of a mount is stopped, or dead.
fn is_stopped(mount: &Table) -> bool {
    mount.word("state").is_some_and(|state| matches!(state, "T" | "t" | "Z" | "X"))
}

/// A daemon that stands still while requests wait for it.
fn fuse_wait(mount: &Table, evidence: &Evidence) -> Option<Table> {
    let source = &mount.figures.first()?.source;
    let pid = mount.value("pid");
    // Process numbers are whole, so this comparison is exact.
    let is_its = |process: u64| pid.is_some_and(|pid| (pid - process as f64).abs() < 0.5);
    let threads = evidence.threads.iter().filter(|one| one.process.is_some_and(is_its));
    let used: f64 = threads.filter_map(|one| one.cpu_percent).sum();
    let is_stopped = is_stopped(mount);
    if !is_stopped && used >= NEXT_TO_NOTHING {
        return None;
    }
    let mut table = Table::named("fuse_wait");
    table.add("mount", Some(mount.scope.as_deref().unwrap_or("?")), source);
    for name in ["type", "source", "state"] {
        table.add(name, mount.word(name), source);
    }
    table.add("pid", pid, source);
    table.add("waiting", mount.value("waiting"), source);
    table.add("stopped", Some(f64::from(u8::from(is_stopped))), source);
    let first =
        evidence.tasks.iter().rev().find(|task| is_its(task.id) && task.id == task.process());
    table.add("daemon", first.map(|task| task.name.as_str()), source);
    Some(table)
}

/// Threads that wait for file servers of a kind, and the servers that are mounted.
fn server_wait(kind: &str, waits: &str, end: &[&Table], evidence: &Evidence) -> Option<Table> {
    let is_wait = |table: &&Table| table.name == "waits" && table.scope.as_deref() == Some(waits);
    let waiting = evidence.tables.iter().find(is_wait)?;
    let source: &Source = &waiting.figures.first()?.source;
    let of_kind =
        end.iter().filter(|mount| mount.word("type").is_some_and(|it| it.starts_with(kind)));
    let mut servers: Vec<&str> = of_kind.filter_map(|mount| mount.word("source")).collect();
    servers.sort_unstable();
    servers.dedup();
    if servers.is_empty() {
        return None;
    }
    let more = servers.len().saturating_sub(MOST_SERVERS);
    servers.truncate(MOST_SERVERS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let mut table = Table::named("server_wait");
    table.add("threads", waiting.value("threads"), source);
    table.add("names", waiting.word("names"), source);
    table.add("servers", Some((servers.join(", ") + &more).as_str()), source);
    Some(table)
}
