//! CPUs that did not come back from the kernel, by its log: a soft lockup names the CPU, the seconds
//! and the thread; a stall of RCU names them in the dump that follows.

use std::sync::LazyLock;

use regex::Regex;

use super::Facts;
use crate::evidence::Source;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// What the kernel says of a CPU that did not come back from a thread.
static LOCKUP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"soft lockup(?: - | on |: )CPU#?(\d+) stuck for (\d+)s!?(?: \[([^\]]+?)(?::\d+)?\])?",
        r"|(?:self-detected stall on|detected stalls? on) CPUs?",
    ))
});
/// The thread that a CPU runs while it stalls: a line of the dump.
static RUNNING: LazyLock<Regex> = LazyLock::new(|| compiled(r"^(\S+)\s+R\s+running task\b"));

/// A CPU that was in the kernel without an end in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockup {
    /// Its number, where said.
    pub cpu: Option<String>,
    /// Seconds, where said.
    pub seconds: Option<String>,
    /// The thread it was in, where said.
    pub thread: Option<String>,
    /// Where it was read.
    pub source: Source,
}

impl Facts {
    /// The lockup or stall that the log tells of: one that names its thread first.
    pub fn lockup(&self) -> Option<Lockup> {
        let log = &self.evidence().log;
        let mut running = log.iter().filter_map(|line| RUNNING.captures(line.value.trim()));
        let running = running.next().map(|found| found[1].to_owned());
        let mut first = None;
        for line in log {
            let Some(found) = LOCKUP.captures(&line.value) else { continue };
            let part = |at: usize| found.get(at).map(|part| part.as_str().to_owned());
            let lockup = Lockup {
                cpu: part(1),
                seconds: part(2),
                thread: part(3).or_else(|| running.clone()),
                source: line.source.clone(),
            };
            if lockup.thread.is_some() {
                return Some(lockup);
            }
            first = first.or(Some(lockup));
        }
        first
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
        assert!(lockup("sd 0:0:0:0: [sda] Attached SCSI disk").is_none());
    }
}
