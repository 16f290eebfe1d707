//! `atopsar`: reports of atop's recordings, one an option: CPUs (`-c`), disks (`-d`), the three
//! programs that used most (`-O`), processes (`-P`).
//!
//! The last name of each heading says what it is of (`_cpu_`, `_dsk_`, `_top3_`, `_procs_`). The
//! time stands only where it changes. Percents of all CPUs together are sums over them, as atop
//! counts.

use super::interval_tools;
use crate::evidence::{CpuUse, OneCpu};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// What a report is of, by its heading.
fn report(text: &str) -> Option<&str> {
    let last = text.split_whitespace().next_back()?;
    let (_, name) = last.strip_suffix('_')?.rsplit_once('_')?;
    let timed = text.split_whitespace().next().is_some_and(|word| word.contains(':'));
    (timed && matches!(name, "cpu" | "dsk" | "lvm" | "mdd" | "top3" | "procs")).then_some(name)
}

/// Whether a line is the heading of a report.
pub(crate) fn is_heading(text: &str) -> bool {
    report(text).is_some() || text.contains(" busy ") && text.contains("_dsk_")
}

/// Reads one report or several.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut start = 0;
    while start < section.lines.len() {
        let next = section.lines[start + 1..].iter().position(|line| is_heading(&line.text));
        let end = next.map_or(section.lines.len(), |at| start + 1 + at);
        let lines = &section.lines[start..end];
        let heading = lines[0].text.trim();
        match report(heading) {
            Some("cpu") => cpus(heading, &lines[1..], reading),
            Some("top3") if heading.contains("cpu%") => programs(&lines[1..], reading),
            Some("procs") => processes(heading, &lines[1..], reading),
            Some("top3") => lines[1..].iter().for_each(|line| reading.leave(line)),
            _ => interval_tools::read_atopsar(
                &Section { lines, hint: section.hint.clone() },
                reading,
            ),
        }
        start = end;
    }
}

/// The words of a row behind its time.
fn cells<'t>(line: &'t Line<'_>) -> Vec<&'t str> {
    let mut words: Vec<&str> = line.text.split_whitespace().collect();
    if words.first().is_some_and(|word| number::time_of_day(word).is_some()) {
        words.remove(0);
    }
    words
}

/// A row a CPU: `all` is their sum, which with the idle parts tells how many there are.
fn cpus(heading: &str, lines: &[Line<'_>], reading: &mut Reading<'_>) {
    let names: Vec<&str> = heading.split_whitespace().skip(2).collect();
    let begun = reading.evidence.single_cpus.len();
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let words = cells(line);
        let figures: Vec<f64> =
            words.iter().skip(1).filter_map(|word| number::percent(word)).collect();
        let columns = names.len().saturating_sub(1);
        // No machine has more CPUs.
        let is_cpu =
            |name: &&&str| **name == "all" || name.parse::<u16>().is_ok_and(|at| at < 4096);
        let whole = figures.len() == columns && columns > 0;
        let Some(name) = words.first().filter(|_| whole).filter(is_cpu) else {
            reading.leave(line);
            continue;
        };
        let sum: f64 = names
            .iter()
            .zip(&figures)
            .filter(|(name, _)| **name != "%guest")
            .map(|(_, value)| value)
            .sum();
        let count = if *name == "all" { (sum / 100.0).round().max(1.0) } else { 1.0 };
        let part = |wanted: &str| {
            let found = names.iter().zip(&figures).find(|(name, _)| **name == wanted);
            found.map_or(0.0, |(_, value)| value / count)
        };
        let used = CpuUse {
            user: part("%usr") + part("%nice"),
            system: part("%sys"),
            idle: part("%idle"),
            iowait: part("%wait"),
            interrupt: part("%irq") + part("%softirq"),
            steal: part("%steal"),
            ..CpuUse::none(reading.at(line))
        };
        if *name == "all" {
            reading.evidence.cpu.push(used);
            continue;
        }
        let singles = &mut reading.evidence.single_cpus;
        match singles[begun..].iter_mut().find(|one| one.name == **name) {
            Some(one) => one.used = used,
            None => singles.push(OneCpu { name: (*name).to_owned(), used }),
        }
    }
}

/// Three programs a row: number, name and percent of one CPU each.
fn programs(lines: &[Line<'_>], reading: &mut Reading<'_>) {
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let text = line.text.trim();
        let timed = text.split_once(char::is_whitespace);
        let rest = timed.filter(|(time, _)| number::time_of_day(time).is_some());
        let rest = rest.map_or(text, |(_, rest)| rest);
        let mut found = Vec::new();
        for part in rest.split('|') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let [id, name @ .., percent] = &words[..] else { continue };
            let figure = percent.strip_suffix('%').and_then(number::percent);
            if let (Ok(id), Some(percent)) = (id.parse::<u64>(), figure)
                && !name.is_empty()
            {
                let mut thread = reading.thread(name.join(" "), line);
                (thread.id, thread.cpu_percent) = (Some(id), Some(percent));
                found.push(thread);
            }
        }
        if found.is_empty() {
            reading.leave(line);
        } else {
            // Each interval is a list of its own.
            reading.list += 1;
            let list = reading.list;
            found.iter_mut().for_each(|thread| thread.list = list);
            reading.evidence.threads.extend(found);
        }
    }
}

/// Threads by state: of those that cannot be interrupted the largest number counts.
fn processes(heading: &str, lines: &[Line<'_>], reading: &mut Reading<'_>) {
    let names: Vec<&str> = heading.split_whitespace().skip(1).collect();
    let at = names.iter().position(|name| *name == "thrslpu");
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let words = cells(line);
        match at.and_then(|at| number::plain(words.get(at)?)) {
            Some(blocked) => {
                let mut table = reading.table("stat");
                table.gauge("procs_blocked", Some(blocked), line);
                reading.push(table);
            }
            None => reading.leave(line),
        }
    }
}
