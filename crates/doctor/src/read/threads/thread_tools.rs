//! Other tools that list threads: illumos `prstat -mL`, `atop`, `iotop`.
//!
//! prstat shows percent of one CPU over an interval. iotop shows delays, not CPU: its
//! rows give threads without CPU, and figures of their own.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{CpuUse, OneCpu, Thread};
use crate::read::text::clean::Line;
use crate::read::text::columns::{self, Columns};
use crate::read::text::frame::{self, short_name};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Reads illumos `prstat -mL`: USR and SYS are percent of the thread's own time.
pub(crate) fn read_prstat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Columns<'_>> = None;
    for line in section.lines {
        let text = line.text.trim();
        if text.contains("PROCESS/") {
            columns = Some(Columns::of(text));
            continue;
        }
        if text.is_empty() || text.starts_with("Total:") || text.starts_with("NPROC") {
            continue;
        }
        let Some((columns, cells)) = columns::row_under(&columns, text) else {
            reading.leave(line);
            continue;
        };
        let figure =
            |names: &[&str]| columns::cell(columns, &cells, names).and_then(number::percent);
        let split = figure(&["USR"]).zip(figure(&["SYS"])).map(|(user, system)| user + system);
        let Some(percent) = split.or_else(|| figure(&["CPU"])) else {
            reading.leave(line);
            continue;
        };
        let process = cells[cells.len() - 1];
        let name = process.split('/').next().unwrap_or(process).to_owned();
        let id = columns::cell(columns, &cells, &["PID"]).and_then(|id| id.parse().ok());
        // Microstates are of one CPU, the column CPU of all of them.
        reading.evidence.threads.push(Thread {
            id,
            cpu_percent: split,
            machine_percent: split.is_none().then_some(percent),
            ..reading.thread(name, line)
        });
    }
}

static IOTOP_ROW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\s*(\d+)\s+((?:be|rt|id|idle)(?:/\d)?|\?\S*)\s+(\S+)\s+([\d.,]+)\s+([BKMGT])(?:/s)?\s+([\d.,]+)\s+([BKMGT])(/s)?\s+(?:([\d.,]+)\s*%|\?unavailable\?)?\s*(?:([\d.,]+)\s*%)?\s*(\S.*)$";
    Regex::new(pattern).expect("a constant pattern")
});
static IOTOP_TOTAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(Total|Actual|Current) DISK (READ|WRITE)\s*:\s*([\d.,]+)\s+([BKMGT])/s")
        .expect("a constant pattern")
});

/// Reads iotop.
pub(crate) fn read_iotop(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("TID") || text.starts_with("PID") {
            continue;
        }
        if IOTOP_TOTAL.is_match(text) {
            let mut totals = reading.table("iotop");
            for found in IOTOP_TOTAL.captures_iter(text) {
                let name = format!("{}_{}_bytes", found[1].to_lowercase(), found[2].to_lowercase());
                totals.rate(&name, number::bytes(&format!("{}{}", &found[3], &found[4])), line);
            }
            reading.push(totals);
            continue;
        }
        let Some(found) = IOTOP_ROW.captures(text) else {
            reading.leave(line);
            continue;
        };
        let (name, kernel) = frame::thread(&found[11]);
        let bytes = |at: usize| number::bytes(&format!("{}{}", &found[at], &found[at + 1]));
        let mut table = reading.table("iotop").scope(short_name(&name));
        table.gauge("id", number::plain(&found[1]), line);
        // With -a the bytes are those since iotop began, and no rates.
        if found.get(8).is_some() {
            table.rate("read_bytes", bytes(4), line);
            table.rate("write_bytes", bytes(6), line);
        } else {
            table.gauge("read_in_all_bytes", bytes(4), line);
            table.gauge("written_in_all_bytes", bytes(6), line);
        }
        table.gauge(
            "swapin_percent",
            found.get(9).and_then(|cell| number::percent(cell.as_str())),
            line,
        );
        table.gauge(
            "io_percent",
            found.get(10).and_then(|cell| number::percent(cell.as_str())),
            line,
        );
        reading.push(table);
        let id = found[1].parse().ok();
        reading.evidence.threads.push(Thread {
            id,
            kernel,
            ..reading.thread(short_name(&name), line)
        });
    }
}

static ATOP_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\|\s*#?([a-z]+\d*)\s+([\d.,]+)\s*([KMGT%s]?)").expect("a constant pattern")
});

/// The number of a single CPU, beside what it waited: `cpu003 w  0%`.
static ATOP_CPU: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\|\s*cpu(\d{1,4}) w\s+(\d+)%").expect("a constant pattern"));

/// The first screen is of all the time since the machine started: `1839d20h58m49 elapsed`.
static ATOP_DAYS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d+d\d{1,2}h\S* elapsed").expect("a constant pattern"));

/// Reads atop: the system lines (`PRC |`, `CPU |`, `MEM |`) and the list of processes.
pub(crate) fn read_atop(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Columns<'_>> = None;
    let mut since_boot = false;
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("ATOP") {
            since_boot = ATOP_DAYS.is_match(text);
        }
        let label = text.split('|').next().unwrap_or_default().trim();
        if text.contains('|')
            && label.len() >= 2
            && label.len() <= 4
            && label.chars().all(|c| c.is_ascii_alphabetic())
        {
            let mut table = reading.table("atop").scope(label.to_lowercase());
            let mut shares = std::collections::HashMap::new();
            for found in ATOP_PART.captures_iter(text) {
                let value =
                    number::bytes(&format!("{}{}", &found[2], found[3].replace(['s', '%'], "")));
                shares.insert(found[1].to_owned(), value.unwrap_or(0.0));
                table.gauge(&found[1], value, line);
            }
            reading.push(table);
            if label == "CPU" {
                let cpus = (shares_sum(&shares) / 100.0).round().max(1.0);
                let used = atop_cpu(&shares, cpus, line, reading);
                reading.evidence.cpu.push(CpuUse { since_boot, ..used });
            } else if let Some(found) = ATOP_CPU.captures(text).filter(|_| label == "cpu") {
                shares.insert("wait".to_owned(), number::plain(&found[2]).unwrap_or(0.0));
                let used = atop_cpu(&shares, 1.0, line, reading);
                let name = found[1].trim_start_matches('0');
                let name = if name.is_empty() { "0" } else { name }.to_owned();
                reading.evidence.single_cpus.push(OneCpu { name, used });
            }
            continue;
        }
        if text.contains("PID") && text.contains("CMD") {
            // The heading ends in the number of the page: `CMD   1/29`.
            let end = text.rfind("CMD").map_or(text.len(), |at| at + "CMD".len());
            columns = Some(Columns::of(&text[..end]));
            reading.list += 1;
            continue;
        }
        let found = columns.as_ref().and_then(|columns| atop_row(text, columns, line, reading));
        match found {
            Some(thread) => reading.evidence.threads.push(thread),
            None if text.starts_with("ATOP") => {}
            None => reading.leave(line),
        }
    }
}

fn atop_row(
    text: &str,
    columns: &Columns<'_>,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> Option<Thread> {
    let cells = columns.cells(text)?;
    let cell = |names: &[&str]| columns::cell(columns, &cells, names);
    let seconds =
        |names: &[&str]| cell(names).and_then(|cell| number::plain(cell.trim_end_matches('s')));
    // Lists of memory and disks have no column of CPU.
    let cpu_percent = match cell(&["CPU"]) {
        Some(cell) => Some(number::percent(cell)?),
        None => None,
    };
    let (name, kernel) = frame::thread(cell(&["CMD", "COMMAND"])?.split_whitespace().last()?);
    Some(Thread {
        id: cell(&["PID", "TID"]).and_then(|id| id.parse().ok()),
        kernel,
        state: cell(&["S"]).and_then(|state| state.chars().next()),
        cpu_percent,
        cpu_time_s: Some(seconds(&["SYSCPU"]).unwrap_or(0.0) + seconds(&["USRCPU"]).unwrap_or(0.0))
            .filter(|time| *time > 0.0),
        ..reading.thread(short_name(&name), line)
    })
}

/// atop shows percent of one CPU, summed over all; the sum of all parts gives their number.
fn shares_sum(shares: &std::collections::HashMap<String, f64>) -> f64 {
    let names = ["sys", "user", "irq", "idle", "wait", "steal"];
    names.iter().filter_map(|name| shares.get(*name)).sum()
}

fn atop_cpu(
    shares: &std::collections::HashMap<String, f64>,
    cpus: f64,
    line: &Line<'_>,
    reading: &Reading<'_>,
) -> CpuUse {
    let share = |name: &str| shares.get(name).copied().unwrap_or(0.0) / cpus;
    CpuUse {
        user: share("user"),
        system: share("sys"),
        idle: share("idle"),
        iowait: share("wait"),
        interrupt: share("irq"),
        steal: share("steal"),
        since_boot: false,
        source: reading.at(line),
    }
}
