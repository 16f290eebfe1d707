//! What `atop` and `iotop` print above their lists.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{CpuUse, OneCpu};
use crate::read::table::formats::lists::{ATOP, IOTOP};
use crate::read::table::{self, Table};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static IOTOP_TOTAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(Total|Actual|Current) DISK (READ|WRITE)\s*:\s*([\d.,]+)\s+([BKMGT])/s")
        .expect("a constant pattern")
});

/// Reads iotop: its totals, and the list.
pub(crate) fn read_iotop(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines.iter().filter(|line| line.text.contains("DISK READ")) {
        let mut totals = reading.table("iotop");
        for found in IOTOP_TOTAL.captures_iter(&line.text) {
            let name = format!("{}_{}_bytes", found[1].to_lowercase(), found[2].to_lowercase());
            totals.rate(&name, number::bytes(&format!("{}{}", &found[3], &found[4])), line);
        }
        reading.push(totals);
    }
    table::read(&IOTOP, section, reading);
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
    let mut table = Table::new(&ATOP, section);
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
        if !text.starts_with("ATOP") && !table.take(line, reading) {
            reading.leave(line);
        }
    }
    table.end(reading);
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
