//! Removes figures that no machine can show.
//!
//! Pastes are damaged: digits run together, columns shift, a counter wraps. A share above the whole
//! or below zero is unreadable. Its row keeps the name and loses the figure, and its line is listed
//! as unread. Another input may state the number of CPUs, so this check runs after all inputs are
//! read.

use std::collections::BTreeSet;

use super::text::clean;
use super::text::reading::Reading;
use crate::evidence::{CpuUse, Evidence, Statement, Thread};

/// No machine has more CPUs.
const MAX_CPUS: f64 = 4096.0;
/// 100 percent after rounding.
const WHOLE_PERCENT: f64 = 101.0;
/// The sum of all parts of a whole, each rounded up.
const ALL_PARTS_PERCENT: f64 = 110.0;
/// Tools that read CPUs one after the other may show slightly more than there is.
const SLACK: f64 = 1.25;

/// Whether a machine of any size can show this percent of one CPU.
pub(crate) fn is_share_of_cpus(percent: f64) -> bool {
    (0.0..=100.0 * MAX_CPUS).contains(&percent)
}

/// The ends of the evidence before an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    cpu: usize,
    single_cpus: usize,
    threads: usize,
}

impl Begun {
    /// The present ends.
    pub(crate) fn at(evidence: &Evidence) -> Self {
        Self {
            cpu: evidence.cpu.len(),
            single_cpus: evidence.single_cpus.len(),
            threads: evidence.threads.len(),
        }
    }
}

/// Removes the impossible figures of an input; `text` is the input, for its lines.
pub(crate) fn remove(begun: Begun, text: &[u8], reading: &mut Reading<'_>) {
    let mut lines = BTreeSet::new();
    let evidence = &mut *reading.evidence;
    // Earlier evidence is searched only if a figure must go.
    if !evidence.cpu[begun.cpu..].iter().all(is_use) {
        let mut at = 0;
        evidence.cpu.retain(|used| {
            at += 1;
            keeps(at <= begun.cpu, used, &mut lines)
        });
    }
    if !evidence.single_cpus[begun.single_cpus..].iter().all(|one| is_use(&one.used)) {
        let mut at = 0;
        evidence.single_cpus.retain(|one| {
            at += 1;
            keeps(at <= begun.single_cpus, &one.used, &mut lines)
        });
    }
    for thread in &mut evidence.threads[begun.threads..] {
        if clear(thread, MAX_CPUS) {
            lines.extend(thread.source.line);
        }
    }
    if lines.is_empty() {
        return;
    }
    for line in clean::lines(text).iter().filter(|line| lines.contains(&line.number)) {
        let text = format!("an impossible figure: {}", line.text.trim());
        reading.not_understood(line.number, &text);
    }
}

/// Removes the figures that the number of CPUs makes impossible.
///
/// If a paste mixes two machines, the CPU count of one may remove figures of the other.
pub(crate) fn remove_by_cpus(evidence: &mut Evidence) {
    let Some(cpus) = evidence.host.cpus.as_ref().map(|cpus| f64::from(cpus.value)) else { return };
    for thread in &mut evidence.threads {
        if clear(thread, cpus.max(1.0) * SLACK + 1.0) {
            let value = format!("an impossible figure for {}", thread.name);
            evidence.not_understood.push(Statement { value, source: thread.source.clone() });
        }
    }
}

/// Whether a use of CPUs stays: it was there `before`, or it is possible. Otherwise its line is
/// noted.
fn keeps(before: bool, used: &CpuUse, lines: &mut BTreeSet<u32>) -> bool {
    let stays = before || is_use(used);
    if !stays {
        lines.extend(used.source.line);
    }
    stays
}

fn is_use(used: &CpuUse) -> bool {
    let parts = [used.user, used.system, used.idle, used.iowait, used.interrupt, used.steal];
    let each = |part: &f64| (-0.01..=WHOLE_PERCENT).contains(part);
    parts.iter().all(each) && parts.iter().sum::<f64>() <= ALL_PARTS_PERCENT
}

/// Clears the impossible figures of a row; `true` if it had any.
fn clear(thread: &mut Thread, cpus: f64) -> bool {
    let mut any = false;
    let mut check = |figure: &mut Option<f64>, most: f64| {
        if figure.is_some_and(|value| !(0.0..=most).contains(&value)) {
            *figure = None;
            any = true;
        }
    };
    check(&mut thread.cpu_percent, 100.0 * cpus);
    check(&mut thread.system_percent, 100.0 * cpus);
    check(&mut thread.life_percent, 100.0 * cpus);
    check(&mut thread.machine_percent, WHOLE_PERCENT);
    any
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    fn read(text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "list.txt", text.as_bytes());
        finish(&mut evidence);
        evidence
    }

    #[test]
    fn impossible_figures_are_unread() {
        let list = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n";
        let row =
            |share: &str| format!("{list} 1 root 20 0 0 0 0 R {share} 0.0 0:01.00 txg_sync\n");
        for share in ["99999999.9", "-3.0", "18446744073709551615.0"] {
            let evidence = read(&row(share));
            let figures: Vec<_> =
                evidence.threads.iter().filter_map(|one| one.cpu_percent).collect();
            assert!(figures.is_empty(), "{share}: {figures:?}");
            assert_eq!(evidence.not_understood.len(), 1, "{share}");
        }
        let whole = read("%Cpu(s): 120.0 us, 40.0 sy,  0.0 ni, 10.0 id,  0.0 wa\n");
        assert!(whole.cpu.is_empty());
        assert!(whole.not_understood[0].value.starts_with("an impossible figure"));
        assert_eq!(read(&row("4000.0")).threads[0].cpu_percent, Some(4000.0));
        let small = read(&format!("$ nproc\n4\n$ top -bn1\n{}", row("4000.0")));
        assert_eq!(small.threads[0].cpu_percent, None);
        assert_eq!(small.not_understood[0].value, "an impossible figure for txg_sync");
    }
}
