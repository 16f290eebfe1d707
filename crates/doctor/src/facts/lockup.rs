//! CPUs that stay in the kernel, by its log. A soft lockup names the CPU, the seconds and the
//! thread. An RCU stall names them in the dump that follows.

use super::Facts;
use crate::evidence::Source;
use crate::pattern::Pattern;

/// The kernel's message about a CPU that stays in a thread.
static LOCKUP: Pattern = Pattern::new(concat!(
    r"soft lockup(?: - | on |: )CPU#?(\d+) stuck for (\d+)s!?(?: \[([^\]]+?)(?::\d+)?\])?",
    r"|(?:self-detected stall on|detected stalls? on) CPUs?",
));
/// The thread that a stalled CPU runs: a line of the dump.
static RUNNING: Pattern = Pattern::new(r"^(\S+)\s+R\s+running task\b");

/// The use of a CPU during a lockup. Newer kernels print it, one line an interval.
static UTILIZATION: Pattern =
    Pattern::new(r"^#\d+:\s*\d+% system,\s*(\d+)% softirq,\s*(\d+)% hardirq,");
/// Above this percent of a CPU, its interrupts hold it up, not the thread that they interrupt.
const MOST_PERCENT: f64 = 50.0;

/// A CPU that stayed in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Lockup {
    /// Its number, where the log has it.
    pub cpu: Option<String>,
    /// Seconds, where the log has them.
    pub seconds: Option<String>,
    /// The thread that ran, where the log has it.
    pub thread: Option<String>,
    /// The percent of interrupts, where they held it up.
    pub interrupts: Option<f64>,
    /// Where it was read.
    pub source: Source,
}

impl Facts {
    /// A lockup or stall from the log; first one that names its thread.
    pub fn lockup(&self) -> Option<Lockup> {
        let log = &self.evidence().log;
        let mut running = log.iter().filter_map(|line| RUNNING.captures(line.value.trim()));
        let running = running.next().map(|found| found[1].to_owned());
        let interrupts = self.interrupts_while_locked();
        let mut first = None;
        for line in log {
            let Some(found) = LOCKUP.captures(&line.value) else { continue };
            let part = |at: usize| found.get(at).map(|part| part.as_str().to_owned());
            let lockup = Lockup {
                cpu: part(1),
                seconds: part(2),
                thread: part(3).or_else(|| running.clone()).filter(|_| interrupts.is_none()),
                interrupts,
                source: line.source.clone(),
            };
            if lockup.thread.is_some() {
                return Some(lockup);
            }
            first = first.or(Some(lockup));
        }
        first
    }

    /// The percent of interrupts on the CPUs in a lockup, where that is the larger part.
    fn interrupts_while_locked(&self) -> Option<f64> {
        let log = self.evidence().log.iter();
        let rows = log.filter_map(|line| UTILIZATION.captures(line.value.trim()));
        let parts: Vec<f64> =
            rows.map(|row| (1..=2).filter_map(|at| row[at].parse::<f64>().ok()).sum()).collect();
        #[expect(clippy::cast_precision_loss, reason = "a number of lines")]
        let mean = parts.iter().sum::<f64>() / parts.len().max(1) as f64;
        (mean >= MOST_PERCENT).then_some(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Statement};

    #[test]
    fn a_lockup_names_its_thread() {
        let source = || Source { input: "dmesg.txt".into(), line: Some(1) };
        let lockup = |text: &str| {
            let log = vec![Statement { value: text.to_owned(), source: source() }];
            Facts::new(Evidence { log, ..Evidence::default() }).lockup()
        };
        let found = lockup("BUG: soft lockup - CPU#3 stuck for 26s! [kworker/3:1:812]").unwrap();
        assert_eq!(found.thread.as_deref(), Some("kworker/3:1"));
        let line = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [z_wr_iss:1234]";
        let found = lockup(line).unwrap();
        assert_eq!((found.thread.as_deref(), found.cpu.as_deref()), (Some("z_wr_iss"), Some("3")));
        let storm = |hard: u32| {
            let row = format!("  #1:   0% system,\t  0% softirq,\t{hard}% hardirq,\t  0% idle");
            let log =
                [line, &row].map(|text| Statement { value: text.to_owned(), source: source() });
            Facts::new(Evidence { log: log.to_vec(), ..Evidence::default() }).lockup().unwrap()
        };
        assert_eq!((storm(100).thread, storm(100).interrupts), (None, Some(100.0)));
        assert_eq!((storm(3).thread.as_deref(), storm(3).interrupts), (Some("z_wr_iss"), None));
        assert!(lockup("sd 0:0:0:0: [sda] Attached SCSI disk").is_none());
    }
}
