//! `turbostat`: how busy each CPU is, and the mean of all in the row whose CPU is `-`.
//!
//! It does not tell programs from the kernel.

use crate::evidence::OneCpu;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::threads::htop;

/// Whether a line names the columns.
pub(crate) fn is_heading(text: &str) -> bool {
    text.contains("Busy%") && text.contains("Bzy_MHz")
}

/// Reads it; a CPU that is shown again and again counts as it was shown last.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<(usize, usize)> = None;
    let begun = reading.evidence.single_cpus.len();
    for line in section.lines {
        let text = line.text.trim();
        if is_heading(text) {
            let position = |wanted: &str| text.split_whitespace().position(|name| name == wanted);
            columns = position("Busy%").map(|busy| (position("CPU").unwrap_or(usize::MAX), busy));
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let busy = columns.and_then(|(cpu, busy)| {
            let percent = number::percent(words.get(busy)?)?;
            Some((words.get(cpu).copied(), percent))
        });
        match busy {
            // Without the column there is only the mean.
            Some((None | Some("-"), percent)) => {
                let used = htop::busy(percent, line, reading);
                reading.evidence.cpu.push(used);
            }
            // More CPUs has no machine.
            Some((Some(name), percent)) if name.parse::<u16>().is_ok_and(|at| at < 4096) => {
                let used = htop::busy(percent, line, reading);
                let singles = &mut reading.evidence.single_cpus;
                match singles[begun..].iter_mut().find(|one| one.name == name) {
                    Some(one) => one.used = used,
                    None => singles.push(OneCpu { name: name.to_owned(), used }),
                }
            }
            _ => reading.leave(line),
        }
    }
}
