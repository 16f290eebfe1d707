//! Facts about the host that one line alone does not show: answers to commands, whether ZFS is
//! loaded, ogive's description of a mount.

use crate::pattern::Pattern;
use crate::read::lines::{note_fact, set_once};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Reads a line that only its command explains (`uname -r`, `nproc`); `false` if it explains
/// nothing.
pub(crate) fn read_answer(command: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    static RELEASE: Pattern = Pattern::new(r"^\d{1,2}\.\d{1,3}(?:\.\d+)?[\w.+~-]*$");
    let text = line.text.trim();
    if command.contains("uname -r") && RELEASE.is_match(text) {
        let release = reading.statement(text.to_owned(), line);
        set_once(&mut reading.evidence.host.kernel, release);
        return true;
    }
    let counts = command.contains("nproc") || command.contains("_NPROCESSORS_ONLN");
    let is_count = counts && text.parse().is_ok_and(|cpus| (1..=65_536).contains(&cpus));
    if is_count {
        note_fact("cpus", text, line, reading);
    }
    is_count
}

/// Reads lsmod and `/proc/modules`: whether ZFS is loaded.
pub(crate) fn read_modules(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut zfs = None;
    let mut last = None;
    let mut modules = 0;
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.is_empty() || words.first() == Some(&"Module") {
            continue;
        }
        if words.len() < 3 || number::integer(words[1]).is_none() {
            reading.leave(line);
            continue;
        }
        modules += 1;
        last = Some(line);
        if words[0] == "zfs" {
            zfs = Some(line);
        }
    }
    // A short list may be `lsmod | grep`; only a whole list proves that a module is missing.
    let said = match (zfs, last) {
        (Some(line), _) => Some((true, line)),
        (None, Some(line)) if modules >= 10 => Some((false, line)),
        _ => None,
    };
    if let Some((loaded, line)) = said {
        reading.evidence.host.zfs_loaded = Some(reading.statement(loaded, line));
    }
}

/// Reads ogive's `mount` file: the description of a mount, in JSON.
pub(crate) fn read_ogive_mount(section: &Section<'_>, reading: &mut Reading<'_>) {
    let Some(first) = section.lines.first() else { return };
    let mut directory = None;
    for line in section.lines {
        let text = line.text.trim().trim_end_matches(',');
        let Some((key, value)) =
            text.split_once("\": ").and_then(|(key, value)| Some((key.strip_prefix('"')?, value)))
        else {
            // Names in a list (devices, doubted file systems) belong to the key above.
            let is_of_list = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
            if !is_of_list && !text.bytes().all(|byte| b"{}[]\" ".contains(&byte)) {
                reading.leave(line);
            }
            continue;
        };
        let value = value.trim_matches('"');
        if matches!(value, "{" | "[") {
            continue;
        }
        if matches!(key, "mountpoint" | "mount_point" | "mnt") {
            directory = Some(value.to_owned());
        }
        reading.parameter(&format!("ogive.{key}"), value, line);
    }
    let directory = directory.unwrap_or_else(|| "ogive".to_owned());
    reading.evidence.host.ogive_mount = Some(reading.statement(directory, first));
}
