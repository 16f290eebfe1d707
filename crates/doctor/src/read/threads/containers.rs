//! Lists of containers and groups of processes: `docker stats`, `podman stats`, `kubectl top`,
//! `systemd-cgtop`.
//!
//! A container is a program with its percent of one CPU. Groups hold others: only those that hold
//! none that is shown stand for what runs in them.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{CpuUse, Source, Thread};
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// A row of `docker stats`: the container, perhaps its name, and its CPU.
static CONTAINER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([0-9a-f]{12}|\S+)\s+(?:(\S*[^\d.%\s]\S*)\s+)?([\d.]+)%\s")
        .expect("a constant pattern")
});

/// A row without its heading: the number of the container, its name, its CPU, and its memory of
/// what it may have.
static SURE_CONTAINER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[0-9a-f]{12}\s+\S+\s+[\d.]+%\s+[\d.]+[kKMGT]?i?B / [\d.]+[kKMGT]?i?B\s")
        .expect("a constant pattern")
});

/// Whether a line is a row of `docker stats` by itself.
pub(crate) fn is_container(text: &str) -> bool {
    SURE_CONTAINER.is_match(text.trim())
}

/// Reads `docker stats`: a container is a program, with its percent of one CPU.
pub(crate) fn read_docker_stats(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("CONTAINER") || text.starts_with("ID ") || text.starts_with("NAME ") {
            reading.list += 1;
            continue;
        }
        let Some(found) = CONTAINER.captures(text) else {
            if !text.is_empty() {
                reading.leave(line);
            }
            continue;
        };
        let name = found.get(2).or_else(|| found.get(1)).map_or("", |name| name.as_str());
        push(name, number::plain(&found[3]), line, reading);
    }
}

/// Adds a program.
fn push(name: &str, cpu_percent: Option<f64>, line: &Line<'_>, reading: &mut Reading<'_>) {
    let thread =
        Thread { kernel: Some(false), cpu_percent, ..reading.thread(name.to_owned(), line) };
    reading.evidence.threads.push(thread);
}

/// Whether a line names the columns of `kubectl top`.
pub(crate) fn is_kubectl_heading(text: &str) -> bool {
    text.contains("CPU(cores)") && text.contains("NAME")
}

/// Reads `kubectl top pods` and `kubectl top nodes`.
pub(crate) fn read_kubectl(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut found: Option<Columns<'_>> = None;
    let mut busiest: Option<(f64, Source)> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_kubectl_heading(text) {
            found = Some(Columns::of(text));
            reading.list += 1;
            continue;
        }
        let Some((columns, cells)) = columns::row_under(&found, text) else {
            reading.leave(line);
            continue;
        };
        let cell = |names: &[&str]| columns::cell(columns, &cells, names);
        let (name, cpus) = (cell(&["NAME"]), cell(&["CPU(cores)"]).and_then(cpus));
        let (Some(name), Some(cpus)) = (name, cpus) else {
            reading.leave(line);
            continue;
        };
        let share = cell(&["CPU%", "CPU(%)"]).and_then(number::percent);
        if share.is_some() && cell(&["POD"]).is_none() {
            // A node is a host, which is none that is asked about if there are others.
            let mut table = reading.table("nodes").scope(name);
            table.gauge("cpus_used", Some(cpus), line);
            table.gauge("cpu_percent", share, line);
            reading.push(table);
            let most = busiest.as_ref().map_or(-1.0, |(most, _)| *most);
            if let Some(share) = share.filter(|share| *share > most) {
                busiest = Some((share, reading.at(line)));
            }
        } else {
            push(name, Some(cpus * 100.0), line, reading);
        }
    }
    // If the busiest node is idle, all are.
    if let Some((share, source)) = busiest {
        let used = CpuUse { user: share, idle: 100.0 - share, ..CpuUse::none(source) };
        reading.evidence.cpu.push(used);
    }
}

/// `250m` is a quarter of a CPU.
fn cpus(text: &str) -> Option<f64> {
    for (unit, part) in [("m", 1e-3), ("u", 1e-6), ("n", 1e-9)] {
        if let Some(figure) = text.strip_suffix(unit) {
            return Some(number::plain(figure)? * part);
        }
    }
    number::plain(text)
}

/// Reads `systemd-cgtop`.
pub(crate) fn read_groups(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut rows: Vec<(&str, f64, &Line<'_>)> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_groups_heading(text) {
            close_groups(&mut rows, reading);
            reading.list += 1;
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            // A group that was not there before has no percent yet.
            [name, tasks, percent, ..] if number::plain(tasks).is_some() || tasks == "-" => {
                if let Some(percent) = number::percent(percent) {
                    rows.push((name, percent, line));
                }
            }
            _ => reading.leave(line),
        }
    }
    close_groups(&mut rows, reading);
}

/// Whether a line names the columns of systemd-cgtop.
pub(crate) fn is_groups_heading(text: &str) -> bool {
    (text.starts_with("Control Group ") || text.starts_with("CGroup ") || text.starts_with("Path "))
        && text.contains("Tasks")
        && text.contains("%CPU")
}

fn close_groups(rows: &mut Vec<(&str, f64, &Line<'_>)>, reading: &mut Reading<'_>) {
    let mut paths: Vec<&str> = rows.iter().map(|(path, ..)| path.trim_matches('/')).collect();
    paths.sort_unstable();
    for (path, percent, line) in std::mem::take(rows) {
        let path = path.trim_matches('/');
        let inner = format!("{path}/");
        let below = paths.partition_point(|other| *other < inner.as_str());
        let holds = paths.get(below).is_some_and(|other| other.starts_with(&inner));
        // The root holds all; what it holds beside is of the kernel and is not told.
        if !path.is_empty() && !holds {
            push(path.rsplit('/').next().unwrap_or(path), Some(percent), line, reading);
        }
    }
}
