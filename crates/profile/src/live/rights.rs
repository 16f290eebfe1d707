//! Tests which sampling is permitted to this user, and names the smallest permission that would
//! allow more.

use perf_event::Builder;
use perf_event::events::Software;
use serde::Serialize;

use crate::symbols::Kallsyms;

/// The kinds of sampling that are permitted.
#[derive(Debug, Clone, Serialize)]
pub struct Rights {
    /// Sampling stacks of the whole machine, kernel and user.
    pub system: bool,
    /// Sampling user stacks of the user's own processes.
    pub own_processes: bool,
    /// Whether kernel addresses are visible.
    pub kernel_names: bool,
    /// `kernel.perf_event_paranoid`, if it can be read.
    pub paranoid: Option<i32>,
    /// `kernel.kptr_restrict`, if it can be read.
    pub kptr_restrict: Option<i32>,
    /// How to get more permissions; empty if all are granted.
    pub advice: String,
}

/// Tests which sampling is permitted.
pub fn rights() -> Rights {
    let mut system = Builder::new(Software::CPU_CLOCK);
    system.any_pid().one_cpu(0).include_kernel().include_hv();
    let mut own = Builder::new(Software::CPU_CLOCK);
    own.observe_self().any_cpu().exclude_kernel(true);
    let system = system.build().is_ok();
    let kernel_names = kernel_names();
    let enough = system && kernel_names;
    Rights {
        system,
        own_processes: own.build().is_ok(),
        kernel_names,
        paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
        kptr_restrict: number("/proc/sys/kernel/kptr_restrict"),
        advice: if enough { String::new() } else { advice() },
    }
}

fn number(path: &str) -> Option<i32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel_names() -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read = std::fs::File::open("/proc/kallsyms")
        .and_then(|file| file.take(4096).read_to_end(&mut head));
    read.is_ok() && !head.is_empty() && !Kallsyms::parse(&head).is_hidden()
}

/// Advice that names the smallest grant first.
pub(super) fn advice() -> String {
    let program = std::env::current_exe()
        .map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string());
    let mut advice = format!("run it as root, or once: setcap cap_perfmon,cap_syslog+ep {program}");
    match number("/proc/sys/kernel/perf_event_paranoid") {
        Some(level) if level > 2 => advice.push_str(&format!(
            "; kernel.perf_event_paranoid is {level}, which this distribution uses to forbid even \
             own processes: sysctl kernel.perf_event_paranoid=2 allows those"
        )),
        Some(level) if level > 1 => advice.push_str(&format!(
            "; kernel.perf_event_paranoid is {level}: own processes can be sampled without the \
             kernel's part (-p PID)"
        )),
        _ => {}
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_tested_and_come_with_advice() {
        let rights = rights();
        assert_eq!(rights.advice.is_empty(), rights.system && rights.kernel_names);
        assert!(advice().contains("cap_perfmon"));
    }
}
