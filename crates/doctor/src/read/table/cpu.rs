//! The use of CPUs in rows and words.

use std::collections::HashMap;

use super::format::To;
use super::layout::Layout;
use super::sink::Row;
use super::unit::MAX_CPUS;
use crate::evidence::{CpuUse, OneCpu, Source};
use crate::read::text::reading::Reading;

/// Records the use of CPUs: of all CPUs once per row, of each CPU the last row.
///
/// A label that is not a number names another host. The busiest host stands for all: if it is idle,
/// all are.
pub(super) fn cpus(layouts: &[Layout<'_>], rows: &[Row<'_, '_>], reading: &mut Reading<'_>) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut busiest: Option<(f64, Source)> = None;
    for row in rows {
        let layout = &layouts[row.layout];
        let Some(used) = cpu_use(layout, row, reading) else { continue };
        match layout.cell(To::Cpu, &row.cells) {
            None | Some("all") => reading.evidence.cpu.push(used),
            Some(label) if label.parse::<u16>().is_ok_and(|number| number < MAX_CPUS) => {
                let singles = &mut reading.evidence.single_cpus;
                let at = *places.entry(label).or_insert(singles.len());
                match singles.get_mut(at) {
                    Some(one) => one.used = used,
                    None => singles.push(OneCpu { name: label.to_owned(), used }),
                }
            }
            Some(_) if busiest.as_ref().is_none_or(|(most, _)| used.user > *most) => {
                busiest = Some((used.user, used.source));
            }
            Some(_) => {}
        }
    }
    if let Some((share, source)) = busiest {
        let none = CpuUse { is_split: false, ..CpuUse::none(source) };
        let used = CpuUse { user: share, idle: 100.0 - share, ..none };
        reading.evidence.cpu.push(used);
    }
}

/// The use of CPUs in a row; `None` if the row has none.
fn cpu_use(layout: &Layout<'_>, row: &Row<'_, '_>, reading: &Reading<'_>) -> Option<CpuUse> {
    if let Some(busy) = layout.figures(To::Busy, &row.cells).next() {
        return Some(CpuUse { since_boot: row.since_boot, ..reading.busy(busy, row.line) });
    }
    let mut used = CpuUse { since_boot: row.since_boot, ..CpuUse::none(reading.at(row.line)) };
    let mut has_idle = false;
    for at in layout.places(To::Used) {
        let name = layout.names[at].trim_matches('%');
        let Some(value) = layout.unit(at).figure(row.cells[at]) else { continue };
        has_idle |= name.starts_with("id");
        if let Some(part) = part(&mut used, name) {
            *part += value;
        }
    }
    has_idle.then(|| per_cpu(used))
}

/// The parts of a use of CPUs.
pub(crate) fn parts(used: &mut CpuUse) -> [&mut f64; 6] {
    let CpuUse { user, system, idle, iowait, interrupt, steal, .. } = used;
    [user, system, idle, iowait, interrupt, steal]
}

/// The sum of all parts, in percent.
pub(crate) fn sum(mut used: CpuUse) -> f64 {
    parts(&mut used).into_iter().map(|part| *part).sum()
}

/// The use of all CPUs as one average; some tools add the CPUs up to a multiple of 100.
pub(crate) fn per_cpu(mut used: CpuUse) -> CpuUse {
    let cpus = (sum(used.clone()) / 100.0).round().max(1.0);
    parts(&mut used).into_iter().for_each(|part| *part /= cpus);
    used
}

/// The part of a use that a tool calls by this word.
pub(crate) fn part<'u>(used: &'u mut CpuUse, word: &str) -> Option<&'u mut f64> {
    match word {
        "us" | "use" | "user" | "usr" | "ni" | "nic" | "nice" | "guest" | "gnice" => {
            Some(&mut used.user)
        }
        "sy" | "sys" | "system" | "kernel" => Some(&mut used.system),
        "id" | "idl" | "idle" => Some(&mut used.idle),
        "wa" | "wai" | "wt" | "wait" | "io" | "iowait" => Some(&mut used.iowait),
        "hi" | "si" | "hiq" | "siq" | "irq" | "sirq" | "soft" | "softirq" | "interrupt" => {
            Some(&mut used.interrupt)
        }
        "st" | "stl" | "steal" | "swap" => Some(&mut used.steal),
        _ => None,
    }
}
