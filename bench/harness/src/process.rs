//! Figures of a process from `/proc`: CPU time, memory, context switches, bytes read.

use std::collections::BTreeMap;
use std::fs;

use crate::error::{Context, Result};

/// CPU seconds (user and system) process `pid` has used, all threads, also ended ones.
/// Resolution is one clock tick, 10 ms as a rule.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {path}"))?;
    // The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .filter(|&ticks| ticks > 0)
        .unwrap_or(100);
    Ok(ticks as f64 / per_second as f64)
}

/// A process's memory, in bytes.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Resident now.
    pub resident_bytes: u64,
    /// Largest it ever was.
    pub peak_bytes: u64,
}

/// Memory of process `pid`.
pub fn memory(pid: u32) -> Result<Memory> {
    let status = status(&format!("/proc/{pid}/status"))?;
    let bytes = |field: &str| status.get(field).copied().unwrap_or(0) << 10;
    Ok(Memory { resident_bytes: bytes("VmRSS"), peak_bytes: bytes("VmHWM") })
}

/// Context switches of one thread. A thread that was never woken has no new ones.
pub struct ThreadSwitches {
    /// The thread's name.
    pub name: String,
    /// Voluntary and involuntary switches since it started.
    pub switches: u64,
}

/// Context switches by thread id.
pub fn switches(pid: u32) -> Result<BTreeMap<u32, ThreadSwitches>> {
    let folder = format!("/proc/{pid}/task");
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(&folder).context(|| format!("cannot read {folder}"))?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(status) = status(&format!("{folder}/{id}/status")) else {
            continue;
        };
        let switches = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
            .iter()
            .filter_map(|field| status.get(*field))
            .sum();
        let name = fs::read_to_string(format!("{folder}/{id}/comm")).unwrap_or_default();
        threads.insert(id, ThreadSwitches { name: name.trim().to_owned(), switches });
    }
    Ok(threads)
}

/// Bytes process `pid` has read by `read(2)` and its kin, from files and devices alike.
pub fn read_bytes(pid: u32) -> Result<u64> {
    let io = status(&format!("/proc/{pid}/io"))?;
    io.get("rchar").copied().ok_or_else(|| format!("/proc/{pid}/io has no rchar"))
}

/// Start time in clock ticks since boot: with the id it names one process for good.
pub fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The words process `pid` was started with.
pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Ids of all processes.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// `name: number ...` lines.
fn status(path: &str) -> Result<BTreeMap<String, u64>> {
    let text = fs::read_to_string(path).context(|| format!("cannot read {path}"))?;
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    });
    Ok(lines.collect())
}
