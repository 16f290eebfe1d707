//! The state before sampling: threads with their names, executable maps, modules. It is read from
//! /proc after the events are enabled, so nothing is missed in between.

use std::io::Read as _;

use super::Target;
use crate::assemble::Assembler;
use crate::symbols::Mapped;

/// Bytes of one /proc/PID/maps at most.
const MAPS_BYTES_MAX: u64 = 16 << 20;

/// Adds the current state to an assembler.
pub(super) fn take(assembler: &mut Assembler, target: &Target) {
    modules(assembler);
    let mut maps = Vec::new();
    let only = match target {
        Target::Processes(pids) => Some(pids),
        Target::System | Target::Threads(_) => None,
    };
    for pid in numbers("/proc") {
        if only.is_some_and(|pids| !pids.contains(&pid)) {
            continue;
        }
        for tid in numbers(&format!("/proc/{pid}/task")) {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            if let Ok(comm) = comm {
                assembler.add_thread(pid, tid, comm.trim_end_matches('\n'));
            }
        }
        maps.clear();
        if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/maps"))
            && file.take(MAPS_BYTES_MAX).read_to_end(&mut maps).is_ok()
        {
            for line in maps.split(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(line);
                if let Some((mapped, offset)) = mapping(pid, &line) {
                    assembler.map(&mapped, offset);
                }
            }
        }
    }
}

/// Adds the addresses of modules: `zfs 5976064 6 - Live 0xffffffffc0bd4000`.
fn modules(assembler: &mut Assembler) {
    let text = std::fs::read_to_string("/proc/modules").unwrap_or_default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(size)) = (words.next(), words.next()) else { continue };
        let address = words.nth(3).and_then(|word| word.strip_prefix("0x"));
        let address = address.and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(address), Ok(size)) = (address, size.parse())
            && address > 0
        {
            assembler.kernel_map(address, size, 0, &format!("[{name}]"));
        }
    }
}

/// The mapping in an executable line of /proc/PID/maps, and its offset in the file.
fn mapping(pid: i32, line: &str) -> Option<(Mapped<'_>, u64)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    if !words.next()?.contains('x') {
        return None;
    }
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let inode = words.nth(1)?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let path = if path.is_empty() { "//anon" } else { path };
    Some((Mapped { pid, path, inode, start, len: end.checked_sub(start)? }, offset))
}

/// The numeric names in a directory of /proc: processes, or threads of one.
pub(super) fn numbers(directory: &str) -> Vec<i32> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_maps_are_read() {
        let line = "7f0000001000-7f0000003000 r-xp 00001000 fe:00 123                        /usr/lib/a b.so";
        let read = |line| {
            let (mapped, offset) = mapping(7, line)?;
            Some((mapped.start, mapped.len, offset, mapped.path, mapped.inode))
        };
        assert_eq!(read(line), Some((0x7f00_0000_1000, 0x2000, 0x1000, "/usr/lib/a b.so", 123)));
        let anonymous = "7f0000001000-7f0000003000 rwxp 00000000 00:00 0 ";
        assert_eq!(read(anonymous), Some((0x7f00_0000_1000, 0x2000, 0, "//anon", 0)));
        assert_eq!(read("7f0000001000-7f0000003000 r--p 0 fe:00 1 /x"), None);
        assert_eq!(read("garbage"), None);
    }
}
