//! Limits of control groups (units, containers, pods), version 1 and 2, as `grep .
//! /sys/fs/cgroup/…/cpu.stat` prints them: `PATH/cpu.stat:nr_throttled 5`.
//!
//! Counters cover the life of the group, so two readings are needed. [`finish`] makes the tables
//! `cpu_limit` and `memory_limit` from them, each with the name of the group that its limit
//! restricts most.

use std::collections::BTreeMap;

use super::{Difference, Moment, moment_of};
use crate::evidence::{Evidence, Source, Table};
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

/// Name of the tables of single groups.
const TABLE: &str = "cgroup";
/// Groups of one input at most.
const MOST_GROUPS: usize = 2000;
/// Version 1 writes a larger number for "no limit".
const NO_LIMIT: f64 = 4e18;
/// Fewer periods than these give no reliable share of throttled periods.
const FEWEST_PERIODS: f64 = 5.0;
/// Below this percent of throttled periods, throttling is incidental.
const HELD_PERCENT: f64 = 5.0;

static ROW: Pattern = Pattern::new(
    r"^/sys/fs/cgroup(?P<group>/.*)?/(?P<file>(?:cpu|cpuacct|memory|io)\.[a-z_.]+):(?P<text>.*)$",
);

/// Whether a line is from a file of a group.
pub(crate) fn is_row(text: &str) -> bool {
    text.starts_with("/sys/fs/cgroup") && ROW.is_match(text)
}

/// Quota and period of a limit, by name.
type Limits = Vec<(&'static str, f64)>;

/// Reads such lines into one table per group.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut groups: BTreeMap<String, (Rows, Limits)> = BTreeMap::new();
    for line in section.lines {
        let text = line.text.trim();
        let Some(found) = ROW.captures(text) else {
            reading.leave(line);
            continue;
        };
        let group = without_hierarchy(found.name("group").map_or("", |group| group.as_str()));
        if groups.len() >= MOST_GROUPS && !groups.contains_key(group) {
            continue;
        }
        let (rows, limits) = groups.entry(group.to_owned()).or_insert_with(|| {
            let rows = reading.table(TABLE).scope(group).taken(section.hint.time_s);
            (rows, Vec::new())
        });
        read_row(&found["file"], &found["text"], line, rows, limits);
    }
    for (mut rows, limits) in groups.into_values() {
        let part = |name| limits.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        if let (Some(quota), Some(period)) = (part("quota"), part("period"))
            && quota > 0.0
            && period > 0.0
            && let Some(source) = rows.table.figures.first().map(|figure| figure.source.clone())
        {
            rows.table.add("limit_cpus", Some(quota / period), &source);
        }
        reading.push(rows);
    }
}

/// A row `name value` of a group's file: its file, name, figure and factor.
const KEYED: [(&str, &str, &str, f64); 12] = [
    ("cpu.stat", "usage_usec", "used_us", 1.0),
    ("cpu.stat", "nr_periods", "periods", 1.0),
    ("cpu.stat", "nr_throttled", "held_periods", 1.0),
    ("cpu.stat", "throttled_usec", "held_us", 1.0),
    ("cpu.stat", "throttled_time", "held_us", 1e-3),
    ("memory.events", "high", "memory_high", 1.0),
    ("memory.events", "max", "memory_max", 1.0),
    ("memory.events", "oom_kill", "oom_kills", 1.0),
    ("memory.stat", "workingset_refault_file", "refaults", 1.0),
    ("memory.stat", "pgscan", "scanned_pages", 1.0),
    ("memory.stat", "pgsteal", "reclaimed_pages", 1.0),
    ("memory.oom_control", "oom_kill", "oom_kills", 1.0),
];
/// A file with one figure: its name, its figure, whether it is a counter, and its factor.
const SINGLE: [(&str, &str, bool, f64); 7] = [
    ("cpuacct.usage", "used_us", true, 1e-3),
    ("memory.current", "memory_bytes", false, 1.0),
    ("memory.usage_in_bytes", "memory_bytes", false, 1.0),
    ("memory.failcnt", "memory_max", true, 1.0),
    ("memory.max", "memory_max_bytes", false, 1.0),
    ("memory.limit_in_bytes", "memory_max_bytes", false, 1.0),
    ("memory.high", "memory_high_bytes", false, 1.0),
];

fn read_row(file: &str, text: &str, line: &Line<'_>, rows: &mut Rows, limits: &mut Limits) {
    let words: Vec<&str> = text.split_whitespace().collect();
    match (file, words.as_slice()) {
        ("cpu.max" | "cpu.cfs_quota_us" | "cpu.cfs_period_us", words) => {
            let names = ["quota", "period"].iter().skip(usize::from(file.contains("period")));
            let parts = names.zip(words);
            limits.extend(parts.filter_map(|(name, word)| Some((*name, number::plain(word)?))));
        }
        (file, [kind @ ("some" | "full"), averages @ ..]) if file.ends_with(".pressure") => {
            let of = file.strip_suffix(".pressure").unwrap_or(file);
            let now = averages.iter().find_map(|word| word.strip_prefix("avg10="));
            rows.gauge(&format!("{of}_{kind}_percent"), now.and_then(number::plain), line);
        }
        (file, [value]) => {
            let known = SINGLE.iter().find(|(known, ..)| *known == file);
            if let Some((_, name, counts, factor)) = known
                && let Some(value) = number::plain(value).filter(|number| *number < NO_LIMIT)
            {
                match counts {
                    true => rows.counter(name, Some(value * factor), line),
                    false => rows.gauge(name, Some(value * factor), line),
                }
            }
        }
        (file, [key, value]) => {
            let known = KEYED.iter().find(|(of, name, ..)| *of == file && name == key);
            if let Some((_, _, name, factor)) = known {
                rows.counter(name, number::plain(value).map(|value| value * factor), line);
            }
        }
        _ => {}
    }
}

/// The path of a group without the hierarchy that version 1 puts before it.
fn without_hierarchy(group: &str) -> &str {
    const HIERARCHIES: [&str; 6] =
        ["cpu,cpuacct", "cpuacct,cpu", "cpuacct", "cpu", "memory", "unified"];
    let rest = group.strip_prefix('/').unwrap_or(group);
    let (first, below) = rest.split_once('/').unwrap_or((rest, ""));
    if HIERARCHIES.contains(&first) { below } else { rest }
}

/// Adds the difference of two readings: the group that each kind of limit restricts most.
pub(crate) fn finish(evidence: &mut Evidence, seconds: f64) {
    let of_moment = |moment| {
        let tables = evidence.tables.iter().filter(|table| table.name == TABLE);
        let these = tables.filter(move |table| moment_of(table) == Some(moment));
        these.filter_map(|table| Some((table.scope.as_deref()?, table)))
    };
    let start: BTreeMap<&str, &Table> = of_moment(Moment::Start).collect();
    if start.is_empty() {
        return;
    }
    // A group that the first reading lacks is new.
    let groups: Vec<Difference<'_>> = of_moment(Moment::End)
        .map(|(path, end)| Difference { start: start.get(path).copied(), end })
        .collect();
    let most = |score: fn(Difference<'_>, f64) -> Option<(f64, Table)>| {
        let scored = groups.iter().filter_map(|group| score(*group, seconds));
        scored.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, table)| table)
    };
    let found: Vec<Table> = [most(cpu_limit), most(memory_limit)].into_iter().flatten().collect();
    evidence.tables.extend(found);
}

/// A table about a group, with its name.
fn named(name: &str, group: Difference<'_>, source: &Source) -> Table {
    let (kind, own) = called(group.end.scope.as_deref().unwrap_or_default());
    let mut table = Table::named(name);
    table.add("name", Some(own.as_str()), source);
    table.add("kind", Some(kind), source);
    table
}

/// A group that its CPU limit throttled, and the CPU time that it lost; the worst group is chosen
/// by that time.
fn cpu_limit(group: Difference<'_>, seconds: f64) -> Option<(f64, Table)> {
    let source = &group.end.figures.first()?.source;
    let periods = group.growth("periods").filter(|periods| *periods >= FEWEST_PERIODS)?;
    let held = 100.0 * group.growth("held_periods")? / periods;
    if held < HELD_PERCENT {
        return None;
    }
    let lost = group.growth("held_us").unwrap_or(0.0) / 1e6 / seconds;
    let used = group.growth("used_us").map(|used| used / 1e6 / seconds);
    let mut table = named("cpu_limit", group, source);
    table.add("held_percent", Some(held.min(100.0)), source);
    table.add("lost_cpus", Some(lost), source);
    table.add("limit_cpus", group.end.value("limit_cpus"), source);
    table.add("used_cpus", used, source);
    Some((lost, table))
}

/// A group that reached its memory limit, and how often; the worst group is chosen by that number.
fn memory_limit(group: Difference<'_>, seconds: f64) -> Option<(f64, Table)> {
    let source = &group.end.figures.first()?.source;
    let [high, most] = ["memory_high", "memory_max"].map(|name| group.growth(name).unwrap_or(0.0));
    let (hits, of) =
        if most > 0.0 { (most, "memory_max_bytes") } else { (high, "memory_high_bytes") };
    let limit = group.end.value(of).or_else(|| group.end.value("memory_max_bytes"))?;
    let used = group.end.value("memory_bytes")?;
    if hits <= 0.0 || limit <= 0.0 {
        return None;
    }
    let mut table = named("memory_limit", group, source);
    table.add("limit_bytes", Some(limit), source);
    table.add("used_bytes", Some(used), source);
    table.add("used_percent", Some(100.0 * used / limit), source);
    table.add("hits_per_s", Some(hits / seconds), source);
    table.add("stalled_percent", group.end.value("memory_full_percent"), source);
    let killed = group.growth("oom_kills").filter(|killed| *killed > 0.0);
    table.add("oom_kills", killed, source);
    table.add("refaults_per_s", group.growth("refaults").map(|pages| pages / seconds), source);
    Some((hits, table))
}

/// How managers name their groups: the kind, and the text before and after the name.
const NAMES: [(&str, &str, &str); 11] = [
    ("container", "docker-", ".scope"),
    ("container", "cri-containerd-", ".scope"),
    ("container", "crio-", ".scope"),
    ("container", "libpod-", ".scope"),
    ("container", "lxc.payload.", ""),
    ("virtual machine", "machine-qemu", ".scope"),
    ("pod", "kubepods-", ".slice"),
    ("pod", "pod", ""),
    ("unit", "", ".service"),
    ("unit", "", ".scope"),
    ("unit", "", ".slice"),
];
/// Managers of containers that give each one a directory below their own.
const ABOVE_CONTAINERS: [&str; 5] = ["docker", "lxc", "libpod", "libpod_parent", "garden"];
/// This many letters of a container's number identify it.
const NUMBER_LETTERS: usize = 12;

/// The kind and the name of a group: `unit`, `nginx.service`; `container`, `3f2a9c0d1e4b`.
fn called(path: &str) -> (&'static str, String) {
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let Some(last) = parts.next() else { return ("group", "/".to_owned()) };
    let above = parts.next().unwrap_or_default();
    let is_number = last.len() >= 32 && last.bytes().all(|byte| byte.is_ascii_hexdigit());
    if ABOVE_CONTAINERS.contains(&above) || is_number {
        return ("container", shortened(last));
    }
    for (kind, before, behind) in NAMES {
        if let Some(name) = last.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)) {
            let is_unit = kind == "unit";
            return (kind, if is_unit { unescaped(last) } else { shortened(name) });
        }
    }
    ("group", unescaped(last))
}

fn shortened(name: &str) -> String {
    let is_number = name.len() >= 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    unescaped(if is_number { &name[..NUMBER_LETTERS] } else { name })
}

/// A systemd name without its escapes (`\x2d`).
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii_graphic) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[2..]);
            }
            None => {
                plain.push_str("\\x");
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_the_names_of_their_managers() {
        let number = "3f2a9c0d1e4b5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c";
        for (path, kind, name) in [
            ("system.slice/nginx.service", "unit", "nginx.service"),
            (r"system.slice/my\x2dapp.service", "unit", "my-app.service"),
            (&format!("system.slice/docker-{number}.scope"), "container", "3f2a9c0d1e4b"),
            (&format!("docker/{number}"), "container", "3f2a9c0d1e4b"),
            ("lxc/web", "container", "web"),
            ("kubepods/burstable/pod12-34", "pod", "12-34"),
            ("batch", "group", "batch"),
            ("", "group", "/"),
            (r"odd\xzz.service", "unit", r"odd\xzz.service"),
        ] {
            assert_eq!(called(path), (kind, name.to_owned()), "{path}");
        }
    }
}
