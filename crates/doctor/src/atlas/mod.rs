//! The atlas: facts about OpenZFS and the kernels it runs in, from their public histories.
//!
//! It knows the subsystem of each function and the releases that have it. `atlas/generate.py` reads
//! the histories and writes the text files next to it; `build.rs` sorts and packs them. They are
//! unpacked once, at the first question. Subsystems are paths from general to special:
//! `cipher/gcm/plain` is also `cipher/gcm` and `cipher`. Functions that only Linux has are below
//! `kernel/`.
//!
//! No file here knows evidence or a cause.

pub(crate) mod fixes;
mod functions;
mod releases;
mod system;
mod thread_roles;
mod tunables;
pub(crate) mod version;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use fixes::{first_releases, fixed_by, is_commit};
pub use functions::{Function, functions, subsystem_of};
pub use releases::{may_include, parse_runs};
pub use system::system_of;
pub use thread_roles::role_of;
pub use tunables::{Tunable, brought, tunables};
pub use version::{Version, parse_versions};

/// Sections of lines; the sections that are searched are sorted.
struct Atlas {
    sections: HashMap<&'static str, Vec<&'static str>>,
}

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/atlas.zst"));
/// Far above the size of the files.
const MAX_BYTES: usize = 64 << 20;

static ATLAS: LazyLock<Atlas> = LazyLock::new(|| {
    let bytes = zstd::bulk::decompress(PACKED, MAX_BYTES).expect("build.rs packed it");
    // The text lives as long as the program.
    let text: &'static str = String::from_utf8(bytes).expect("build.rs packed text").leak();
    let mut sections: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    let mut lines: &mut Vec<&'static str> = sections.entry("").or_default();
    for line in text.lines() {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => lines = sections.entry(name).or_default(),
            None => lines.push(line),
        }
    }
    Atlas { sections }
});

/// The lines of a section.
fn section(name: &str) -> &'static [&'static str] {
    ATLAS.sections.get(name).map_or(&[], Vec::as_slice)
}

/// Releases of OpenZFS that the atlas knows, oldest first.
pub fn releases() -> &'static [&'static str] {
    section("releases")
}

/// Names of all subsystems, sorted.
pub fn subsystems() -> impl Iterator<Item = &'static str> {
    section("subsystems").iter().filter_map(|line| Some(line.split_once(": ")?.0))
}

/// The name and the description of the subsystem with this number.
fn numbered(number: &str) -> Option<(&'static str, &'static str)> {
    section("subsystems").get(number.parse::<usize>().ok()?)?.split_once(": ")
}

/// The text of a name in a section of lines `name: text`.
fn text_of(lines: &'static [&'static str], name: &str) -> Option<&'static str> {
    let key = |line: &'static str| line.split_once(": ").map_or(line, |parts| parts.0);
    let at = lines.binary_search_by(|line| key(line).cmp(name)).ok()?;
    Some(lines[at].split_once(": ")?.1)
}

/// The work of a subsystem, as a predicate: "asks file systems to drop inodes".
pub fn does(subsystem: &str) -> Option<&'static str> {
    text_of(section("subsystems"), subsystem)
}

/// The work of the threads of a role, as a predicate.
pub fn role_does(role: &str) -> Option<&'static str> {
    text_of(section("roles"), role)
}

/// Whether any subsystem is this one or a part of it.
pub fn is_subsystem(name: &str) -> bool {
    subsystems().any(|one| is_within(one, name))
}

/// Whether any role is this one or a part of it.
pub fn is_role(name: &str) -> bool {
    section("roles")
        .iter()
        .filter_map(|line| line.split_once(": "))
        .any(|(one, _)| is_within(one, name))
}

/// Whether a subsystem is the kernel's own, not ZFS's.
pub fn is_of_kernel(subsystem: &str) -> bool {
    is_within(subsystem, "kernel")
}

/// Whether `subsystem` is `whole` or a part of it.
pub fn is_within(subsystem: &str, whole: &str) -> bool {
    subsystem.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsystems_are_sorted_and_described() {
        let names: Vec<_> = subsystems().collect();
        assert!(names.len() > 150 && names.is_sorted(), "{}", names.len());
        for name in names {
            assert!(does(name).is_some_and(|text| text.len() > 5), "{name}");
        }
        assert!(is_within("cipher/gcm/plain", "cipher/gcm") && is_within("ddt", "ddt"));
        assert!(!is_within("cipher/gcmx", "cipher/gcm") && does("nothing").is_none());
    }

    #[test]
    fn releases_are_in_order() {
        assert_eq!(releases().first(), Some(&"0.6.1"));
        assert!(releases().contains(&"2.1.16") && releases().len() >= 90);
    }
}
