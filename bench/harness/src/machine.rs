//! What stands above every result: when, where, with which versions, and how quiet it was.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::session::Session;

/// The header of a result file.
pub fn describe(session: &Session, group: &str) -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "group": group,
        "mode": session.mode.name(),
        "date": line_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        "kernel": line_of("uname", &["-srm"]),
        "cpu": format!("{cpus} x {}", model.map_or("unknown", |(_, name)| name)),
        "memory_gib": memory_gib(),
        "file_system": line_of("findmnt", &["-n", "-o", "FSTYPE", "-T", &session.work.to_string_lossy()]),
        "command": session.command,
        "load_before": load(),
        "versions": versions(session),
    })
}

/// Has so many bytes of free memory really there, twice: in small pages, as a page cache takes them,
/// and in huge ones, as caches do. A virtual machine gives memory that was free for some seconds back
/// to its host, and the first who touches it again waits for the host: a program that caches would
/// be measured by that, and one that keeps nothing would not.
pub fn take_memory_back(bytes: u64) {
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_HUGEPAGE] {
        let length = usize::try_from(bytes).unwrap_or(0);
        let mut memory = vec![0_u8; length];
        let page = 2 << 20;
        let start = memory.as_mut_ptr().align_offset(page).min(length);
        let whole = (length - start) / page * page;
        // SAFETY: the range lies within `memory`, whose bytes stay what they are; an error means
        // that pages are as they come.
        unsafe {
            libc::madvise(memory.as_mut_ptr().add(start).cast(), whole, advice);
        }
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&memory);
    }
}

/// Processes that ran or wanted to, mean of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

fn versions(session: &Session) -> Value {
    let ogive = session.ogive.as_ref().map_or_else(
        |reason| format!("none: {reason}"),
        |path| line_of(&path.to_string_lossy(), &["--version"]),
    );
    json!({
        "ogive": ogive,
        "commit": session.commit,
        "fio": line_of("fio", &["--version"]),
        "bindfs": line_of("bindfs", &["--version"]),
        "gocryptfs": line_of("gocryptfs", &["-version"]),
        "rclone": line_of("rclone", &["version"]),
    })
}

const UNKNOWN: &str = "unknown";

/// First line a program prints.
fn line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.ok().and_then(|text| text.lines().next().map(|line| line.trim().to_owned()));
    line.filter(|line| !line.is_empty()).unwrap_or_else(|| UNKNOWN.into())
}

fn memory_gib() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: f64 =
        total.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN);
    (kib / 1024.0 / 1024.0 * 10.0).round() / 10.0
}
