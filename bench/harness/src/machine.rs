//! The header of every result: date, machine, versions, and load.

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

/// Touches so many bytes of free memory twice: in small pages, as for a page cache, and in huge ones,
/// as for caches. A virtual machine returns memory that was free for some seconds to its host, and
/// the next touch waits for the host. Without this, only programs that cache would pay for that.
pub fn take_memory_back(bytes: u64) {
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_HUGEPAGE] {
        let length = usize::try_from(bytes).unwrap_or(0);
        let mut memory = vec![0_u8; length];
        let page = 2 << 20;
        let start = memory.as_mut_ptr().align_offset(page).min(length);
        let whole = (length - start) / page * page;
        // SAFETY: the range lies within `memory`, and advice does not change its bytes. After an
        // error, pages have their default size.
        unsafe {
            libc::madvise(memory.as_mut_ptr().add(start).cast(), whole, advice);
        }
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&memory);
    }
}

/// The load average of the last minute.
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

/// The first line of a program's output.
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
