//! `atop` and `iotop`: the lines above their lists.

use crate::evidence::{CpuUse, OneCpu};
use crate::pattern::Pattern;
use crate::read::table::formats::lists::{ATOP, IOTOP};
use crate::read::table::{self, cpu};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static IOTOP_TOTAL: Pattern =
    Pattern::new(r"(Total|Actual|Current) DISK (READ|WRITE)\s*:\s*([\d.,]+)\s+([BKMGT])/s");

/// Reads iotop: its totals and its list.
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

static ATOP_PART: Pattern = Pattern::new(r"\|\s*#?([a-z]+\d*)\s+([\d.,]+)\s*([KMGT%s]?)");

/// The number of a single CPU, printed with its I/O wait: `cpu003 w  0%`.
static ATOP_CPU: Pattern = Pattern::new(r"\|\s*cpu0*(\d{1,4}) w\s+(\d+)%");

/// How busy a disk is: `DSK | sda | busy 96%`.
static ATOP_BUSY: Pattern = Pattern::new(r"\|\s*busy\s+(\d+)%");

/// The first screen covers the time since boot: `1839d20h58m49 elapsed`.
static ATOP_DAYS: Pattern = Pattern::new(r"\b\d+d\d{1,2}h\S* elapsed");

/// Reads atop: the system lines (`PRC |`, `CPU |`, `MEM |`) and the list of processes.
pub(crate) fn read_atop(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut since_boot = false;
    table::read_with(&ATOP, section, reading, |line, reading| {
        let text = line.text.trim();
        if text.starts_with("ATOP") {
            since_boot = ATOP_DAYS.is_match(text);
            return true;
        }
        let label = text.split_once('|').map_or("", |(label, _)| label.trim());
        let is_label = label.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_label || !(2..=4).contains(&label.len()) {
            return false;
        }
        let mut table = reading.table("atop").scope(label.to_lowercase());
        let mut used = CpuUse { since_boot, ..CpuUse::none(reading.at(line)) };
        for found in ATOP_PART.captures_iter(text) {
            let unit = found[3].trim_end_matches(['s', '%']);
            let value = number::bytes(&format!("{}{unit}", &found[2]));
            table.gauge(&found[1], value, line);
            if let Some(part) = cpu::part(&mut used, &found[1]) {
                *part = value.unwrap_or(0.0);
            }
        }
        reading.push(table);
        if matches!(label, "DSK" | "LVM" | "MDD") && !since_boot {
            let device = text.split('|').nth(1).unwrap_or_default().trim();
            let mut disk = reading.table("atopsar").scope(device.to_owned());
            let busy = ATOP_BUSY.captures(text).and_then(|found| number::plain(&found[1]));
            disk.gauge("busy_percent", busy, line);
            reading.push(disk);
        }
        if label == "CPU" {
            reading.evidence.cpu.push(cpu::per_cpu(used));
        } else if let Some(found) = ATOP_CPU.captures(text).filter(|_| label == "cpu") {
            used.iowait = number::plain(&found[2]).unwrap_or(0.0);
            let used = CpuUse { since_boot: false, ..used };
            reading.evidence.single_cpus.push(OneCpu { name: found[1].to_owned(), used });
        }
        true
    });
}
