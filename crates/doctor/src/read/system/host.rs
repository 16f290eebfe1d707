//! What the host is: `uname`, `zfs version`, `modinfo`, `/proc/version`, lscpu, cpuinfo, nproc,
//! modules, mounts, the header of a perf.data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

pub(crate) use crate::read::lines::set;
use crate::read::lines::{ARCHITECTURES, say};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::words;

static ZFS_VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:zfs-(kmod-)?|(?:ZFS|OpenZFS)\s+(?:version\s+)?v?)(\d[\w.+~-]*)$")
        .expect("a constant pattern")
});
static BARE_VERSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^v?([0-2]\.\d+\.\d+[\w.+~-]*)$").expect("a constant pattern"));
static LINUX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Linux(?:\s+(?:version\s+)?(?:[A-Za-z][\w.-]*\s+)?(\d+\.\d+\S*)(?:\s+(.*))?)?$")
        .expect("a constant pattern")
});
static FREEBSD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^FreeBSD(?:\s+\S+)?\s+(\d+\.\d+\S*)").expect("a constant pattern")
});
/// Whether a line says what system or which ZFS this is.
pub(crate) fn is_version(text: &str) -> bool {
    let text = text.trim();
    ZFS_VERSION.is_match(text)
        || text == "Linux"
        || text.starts_with("Linux ") && LINUX.is_match(text)
        || FREEBSD.is_match(text)
        || text.starts_with("FreeBSD host")
        || text == "FreeBSD"
        || text.starts_with("SunOS ")
        || text == "SunOS"
        || text.starts_with("Darwin")
}

/// Whether a line is the answer of `uname -m` or `arch`, or the platform of an image.
pub(crate) fn is_architecture(text: &str) -> bool {
    let text = text.trim();
    words::has(ARCHITECTURES, text.rsplit('/').next().unwrap_or(text))
        && (!text.contains('/') || text.starts_with("linux/") || text.starts_with("freebsd/"))
}

/// Reads such lines.
pub(crate) fn read_architecture(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        if !is_architecture(&line.text) {
            reading.leave(line);
            continue;
        }
        said_architecture(&line.text, line, reading);
    }
}

/// Notes the last word of a text that names an architecture.
pub(crate) fn said_architecture(text: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    say("architecture", text, line, reading);
}

/// Reads a line that only its command explains: `uname -r`, `nproc`. Says whether it did.
pub(crate) fn read_answer(command: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    static RELEASE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\d{1,2}\.\d{1,3}(?:\.\d+)?[\w.+~-]*$").expect("a constant pattern")
    });
    let text = line.text.trim();
    if command.contains("uname -r") && RELEASE.is_match(text) {
        let release = reading.said(text.to_owned(), line);
        set(&mut reading.evidence.host.kernel, release);
        return true;
    }
    let counts = command.contains("nproc") || command.contains("_NPROCESSORS_ONLN");
    match text.parse().ok().filter(|cpus| counts && (1..=65_536).contains(cpus)) {
        Some(cpus) => {
            let cpus = reading.said(cpus, line);
            set(&mut reading.evidence.host.cpus, cpus);
            true
        }
        None => false,
    }
}

/// Reads uname and ZFS versions. The module's version stands before that of the commands.
pub(crate) fn read_version(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(found) = ZFS_VERSION.captures(text) {
            let value = reading.said(found[2].to_owned(), line);
            if found.get(1).is_some() {
                reading.evidence.host.zfs_version = Some(value);
            } else {
                set(&mut reading.evidence.host.zfs_version, value);
            }
            continue;
        }
        if let Some(found) = BARE_VERSION.captures(text) {
            let value = reading.said(found[1].to_owned(), line);
            set(&mut reading.evidence.host.zfs_version, value);
            continue;
        }
        let (os, release) = match text.split_whitespace().next().unwrap_or_default() {
            "Linux" => (
                "linux",
                LINUX.captures(text).and_then(|found| found.get(1)).map(|release| release.as_str()),
            ),
            "FreeBSD" => (
                "freebsd",
                FREEBSD
                    .captures(text)
                    .and_then(|found| found.get(1))
                    .map(|release| release.as_str()),
            ),
            "SunOS" => (
                "illumos",
                text.split_whitespace().nth(3).or_else(|| text.split_whitespace().nth(2)),
            ),
            "Darwin" => ("macos", text.split_whitespace().nth(2)),
            _ => {
                reading.leave(line);
                continue;
            }
        };
        said_architecture(text, line, reading);
        if os == "linux" {
            linux_rest(text, line, reading);
        }
        let os = reading.said(os.to_owned(), line);
        set(&mut reading.evidence.host.os, os);
        if let Some(release) = release {
            let release = reading.said(release.to_owned(), line);
            set(&mut reading.evidence.host.kernel, release);
        }
    }
}

/// What stands behind the release: sysstat prints the number of CPUs, arc_summary ZFS's version.
fn linux_rest(text: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    static CPUS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\((\d+) CPUs?\)").expect("a constant pattern"));
    if let Some(cpus) = CPUS.captures(text).and_then(|found| found[1].parse().ok()) {
        let cpus = reading.said(cpus, line);
        set(&mut reading.evidence.host.cpus, cpus);
    }
    let rest = LINUX.captures(text).and_then(|found| found.get(2)).map_or("", |rest| rest.as_str());
    if let Some(version) = BARE_VERSION.captures(rest.trim()) {
        let version = reading.said(version[1].to_owned(), line);
        set(&mut reading.evidence.host.zfs_version, version);
    }
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
    // A short list may be `lsmod | grep`; only a whole one shows that something is missing.
    let said = match (zfs, last) {
        (Some(line), _) => Some((true, line)),
        (None, Some(line)) if modules >= 10 => Some((false, line)),
        _ => None,
    };
    if let Some((loaded, line)) = said {
        reading.evidence.host.zfs_loaded = Some(reading.said(loaded, line));
    }
}

static MOUNT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(\S+)(?: on)? (/\S*)(?: type)? ([a-z0-9_.]+) \(?[a-z]{2}[,\w=.:/+-]*\)?(?: \d \d)?$",
    )
    .expect("a constant pattern")
});

/// Whether a line is one of `/proc/mounts` or `mount`.
pub(crate) fn is_mount(text: &str) -> bool {
    MOUNT.is_match(text.trim())
}

/// Reads mounts: how many of each type.
pub(crate) fn read_mounts(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut counts: BTreeMap<String, (f64, &Line<'_>)> = BTreeMap::new();
    for line in section.lines {
        match MOUNT.captures(line.text.trim()) {
            Some(found) => {
                counts.entry(found[3].to_owned()).or_insert((0.0, line)).0 += 1.0;
                if found[3].starts_with("fuse.ogive") {
                    reading.evidence.host.ogive_mount =
                        Some(reading.said(found[2].to_owned(), line));
                }
            }
            None => reading.leave(line),
        }
    }
    for (kind, (count, line)) in counts {
        let mut table = reading.table("mounts").scope(kind);
        table.gauge("count", Some(count), line);
        reading.push(table);
    }
}

/// Whether a line is the heading of `df` or `lsblk`.
pub(crate) fn is_layout(text: &str) -> bool {
    let text = text.replacen(" Type ", " ", 1);
    words::begin_words(
        "NAME MAJ:MIN|Filesystem Size|Filesystem 1K-blocks|Filesystem Inodes|Filesystem 1024-blocks",
        &text,
    )
}

/// Recognises rows of `df` and `lsblk`: they say where file systems are, which nothing asks for.
pub(crate) fn read_layout(section: &Section<'_>, reading: &mut Reading<'_>) {
    static ROW: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^(?:Filesystem|NAME)\s|\s\d+:\d+\s|\d%\s+/|\s-\s+/|^/\S+$")
            .expect("a constant pattern")
    });
    for line in section.lines.iter().filter(|line| !ROW.is_match(line.text.trim())) {
        reading.leave(line);
    }
}

/// Reads ogive's `mount` file: the description of a mount, JSON.
pub(crate) fn read_ogive_mount(section: &Section<'_>, reading: &mut Reading<'_>) {
    let Some(first) = section.lines.first() else { return };
    let mut directory = None;
    for line in section.lines {
        let text = line.text.trim().trim_end_matches(',');
        let Some((key, value)) =
            text.split_once("\": ").and_then(|(key, value)| Some((key.strip_prefix('"')?, value)))
        else {
            if !text.bytes().all(|byte| b"{}[]\" ".contains(&byte)) {
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
    reading.evidence.host.ogive_mount = Some(reading.said(directory, first));
}
