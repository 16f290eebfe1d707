//! Interrupts: `/proc/interrupts`, `/proc/softirqs`.
//!
//! One table has the sums that rules ask for by name (`tlb`, `cal`, `net_rx`). Each line also has a
//! table of its own, with the CPU that took most of its interrupts. All counts are since boot.

use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

/// Hosts with thousands of queues have more lines; the first ones suffice.
const MAX_LINES: usize = 512;

/// Whether a line names only CPUs.
pub(crate) fn is_heading(text: &str) -> bool {
    let is_cpu =
        |word: &str| word.strip_prefix("CPU").is_some_and(|number| number.parse::<u16>().is_ok());
    text.starts_with("CPU0") && text.split_whitespace().all(is_cpu)
}

/// Reads `/proc/interrupts` and `/proc/softirqs`: calls between CPUs, TLB shootdowns, devices.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let soft = section.lines.iter().any(|line| line.text.trim_start().starts_with("NET_RX:"));
    let name = if soft { "softirqs" } else { "interrupts" };
    let mut table = reading.table(name).taken(section.hint.time_s);
    let mut lines: Vec<Rows> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("CPU0") {
            continue;
        }
        let row = text.split_once(':').filter(|(label, _)| !label.contains(char::is_whitespace));
        let Some((label, rest)) = row else {
            reading.leave(line);
            continue;
        };
        let counts: Vec<f64> = rest.split_whitespace().map_while(number::plain).collect();
        if counts.is_empty() {
            reading.leave(line);
            continue;
        }
        let sum: f64 = counts.iter().sum();
        if !label.bytes().all(|byte| byte.is_ascii_digit()) {
            table.counter(&label.to_lowercase(), Some(sum), line);
        }
        let hottest = counts.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((cpu, most)) = hottest.filter(|_| sum > 0.0 && lines.len() < MAX_LINES) else {
            continue;
        };
        let mut one = reading.table(name).scope(label.to_lowercase()).taken(section.hint.time_s);
        one.counter("sum", Some(sum), line);
        if counts.len() > 1 {
            one.gauge("hottest_cpu", Some(cpu as f64), line);
            one.gauge("hottest_cpu_percent", Some(most * 100.0 / sum), line);
        }
        let what: Vec<&str> = rest.split_whitespace().skip(counts.len()).collect();
        if !what.is_empty() {
            one.text("what", &what.join(" "), line);
        }
        lines.push(one);
    }
    reading.push(table);
    for one in lines {
        reading.push(one);
    }
}
