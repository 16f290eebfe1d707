//! What the host is: `uname`, `zfs version`, `modinfo`, `/proc/version`, lscpu, cpuinfo, nproc,
//! modules, mounts, the header of a perf.data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::Statement;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

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
static MODINFO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:version|filename|srcversion|vermagic|description|license|author|alias|depends|retpoline|name|parm):\s+\S").expect("a constant pattern")
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

/// Architectures as uname, packages and images call them.
const ARCHITECTURES: [&str; 20] = [
    "x86_64",
    "amd64",
    "aarch64",
    "arm64",
    "i386",
    "i486",
    "i586",
    "i686",
    "armv6l",
    "armv7l",
    "armv8l",
    "ppc64",
    "ppc64le",
    "powerpc64",
    "powerpc64le",
    "riscv64",
    "s390x",
    "sparc64",
    "loongarch64",
    "mips64",
];

/// The architecture that a word names: `aarch64`, `linux/amd64`, sysstat's `_x86_64_`.
fn architecture_of(word: &str) -> Option<&str> {
    let name = word.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.rsplit('/').next().unwrap_or(name);
    ARCHITECTURES.contains(&name).then_some(name)
}

/// Whether a line is the answer of `uname -m` or `arch`, or the platform of an image.
pub(crate) fn is_architecture(text: &str) -> bool {
    let text = text.trim();
    ARCHITECTURES.contains(&text.rsplit('/').next().unwrap_or(text))
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
    if let Some(name) = text.split_whitespace().rev().find_map(architecture_of) {
        let name = reading.said(name.to_owned(), line);
        set(&mut reading.evidence.host.architecture, name);
    }
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

/// Sets what was not said before.
pub(crate) fn set<T>(slot: &mut Option<Statement<T>>, value: Statement<T>) {
    slot.get_or_insert(value);
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

/// Whether a line is one of modinfo.
pub(crate) fn is_modinfo(text: &str) -> bool {
    MODINFO.is_match(text.trim()) && (text.trim().starts_with("filename:") || text.contains("  "))
}

/// Reads modinfo of zfs: the version; parameters there are descriptions, not values.
pub(crate) fn read_modinfo(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        let Some((key, value)) = text.split_once(':').filter(|_| MODINFO.is_match(text)) else {
            reading.leave(line);
            continue;
        };
        if key == "version" {
            let value = reading.said(value.trim().trim_start_matches('v').to_owned(), line);
            set(&mut reading.evidence.host.zfs_version, value);
        }
    }
}

/// Whether a line is one of lscpu.
pub(crate) fn is_lscpu(text: &str) -> bool {
    const KEYS: [&str; 12] = [
        "CPU(s):",
        "Socket(s):",
        "Model name:",
        "Flags:",
        "Architecture:",
        "NUMA node(s):",
        "Thread(s) per core:",
        "Core(s) per socket:",
        "Vendor ID:",
        "On-line CPU(s) list:",
        "Hypervisor vendor:",
        "CPU op-mode(s):",
    ];
    let text = text.trim();
    KEYS.iter().any(|key| text.starts_with(key))
}

/// Beginnings of the other lines of lscpu and cpuinfo: they belong to a list that has begun.
const CPU_KEYS: [&str; 51] = [
    "Address sizes",
    "Byte Order",
    "Off-line CPU(s) list",
    "Model",
    "CPU family",
    "Stepping",
    "CPU MHz",
    "CPU max MHz",
    "CPU min MHz",
    "CPU(s) scaling MHz",
    "CPU dynamic MHz",
    "BogoMIPS",
    "Virtualization",
    "Virtualization type",
    "Hypervisor",
    "L1d",
    "L1i",
    "L2",
    "L3",
    "L4",
    "NUMA",
    "Vulnerability",
    "Vulnerabilities",
    "Caches",
    "Frequency boost",
    "Cluster(s)",
    "Book(s)",
    "Drawer(s)",
    "Dispatching mode",
    "Features",
    "BIOS",
    "Thread",
    "Core",
    "Itlb",
    "Gather",
    "processor",
    "model",
    "vendor_id",
    "cpu ",
    "stepping",
    "microcode",
    "cache",
    "physical id",
    "siblings",
    "core id",
    "apicid",
    "initial apicid",
    "fpu",
    "wp",
    "flags",
    "power management",
];
const CPUINFO_KEYS: [&str; 14] = [
    "bugs",
    "bogomips",
    "clflush size",
    "address sizes",
    "vmx flags",
    "TLB size",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Hardware",
    "Revision",
    "Serial",
];

/// Whether a line surely belongs to a list of lscpu or cpuinfo that has begun.
pub(crate) fn is_of_cpu(text: &str) -> bool {
    let text = text.trim();
    let has = |keys: &[&str]| keys.iter().any(|key| text.starts_with(key));
    text.contains(':') && (is_lscpu(text) || has(&CPU_KEYS) || has(&CPUINFO_KEYS) || is_hole(text))
}

/// Weaknesses of processors by name, as newer lscpu lists them below `Vulnerabilities:`.
fn is_hole(text: &str) -> bool {
    ["Not affected", "Mitigation", "Vulnerable", "Mitigated"]
        .iter()
        .any(|state| text.split_once(':').is_some_and(|(_, rest)| rest.trim().starts_with(state)))
}

/// Whether a line is one of `/proc/cpuinfo`.
pub(crate) fn is_cpuinfo(text: &str) -> bool {
    static ROW: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^(?:processor|model name|vendor_id|cpu family|flags|cpu MHz)\s*:\s*\S")
            .expect("a constant pattern")
    });
    ROW.is_match(text.trim())
}

/// Reads lscpu and cpuinfo: both are `key : value`.
pub(crate) fn read_cpu(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut processors = 0;
    let mut table = reading.table("lscpu");
    for line in section.lines {
        let text = line.text.trim();
        let Some((key, value)) =
            text.split_once(':').map(|(key, value)| (key.trim(), value.trim()))
        else {
            if !text.is_empty() {
                reading.leave(line);
            }
            continue;
        };
        match key {
            "CPU(s)" => {
                reading.evidence.host.cpus = value.parse().ok().map(|cpus| reading.said(cpus, line))
            }
            "Architecture" => said_architecture(value, line, reading),
            "Model name" | "model name" => {
                reading.evidence.host.cpu_model = Some(reading.said(value.to_owned(), line))
            }
            "Flags" | "flags" | "Features" => {
                reading.evidence.host.cpu_flags = Some(reading.said(value.to_owned(), line))
            }
            "Hypervisor vendor" | "Virtualization type" => {
                let is_virtual = !value.eq_ignore_ascii_case("no");
                reading.evidence.host.is_virtual = Some(reading.said(is_virtual, line));
            }
            "NUMA node(s)" => {
                table.gauge("numa_nodes", number::plain(value), line);
                reading.evidence.host.numa_nodes =
                    value.parse().ok().map(|nodes| reading.said(nodes, line));
            }
            "Socket(s)" => table.gauge("sockets", number::plain(value), line),
            "Thread(s) per core" => table.gauge("threads_per_core", number::plain(value), line),
            "processor" => {
                processors += 1;
                reading.evidence.host.cpus = Some(reading.said(processors, line));
            }
            // cpuinfo names hypervisors by a flag, not by a line.
            _ if is_of_cpu(text) => {}
            _ => reading.leave(line),
        }
    }
    reading.push(table);
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

/// Reads the header `perf report --header-only` prints.
pub(crate) fn read_perf_header(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim().trim_start_matches('#').trim();
        let Some((key, value)) = text.split_once(" : ").or_else(|| text.split_once(": ")) else {
            if !line.text.trim_start().starts_with('#') {
                reading.leave(line);
            }
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "os release" => {
                let kernel = reading.said(value.to_owned(), line);
                set(&mut reading.evidence.host.kernel, kernel);
                let os = reading.said("linux".to_owned(), line);
                set(&mut reading.evidence.host.os, os);
            }
            "nrcpus online" => {
                if let Ok(cpus) = value.parse() {
                    let cpus = reading.said(cpus, line);
                    set(&mut reading.evidence.host.cpus, cpus);
                }
            }
            "arch" => said_architecture(value, line, reading),
            "cpudesc" => {
                let model = reading.said(value.to_owned(), line);
                set(&mut reading.evidence.host.cpu_model, model);
            }
            "total memory" => {
                if let Some(bytes) = value.strip_suffix(" kB").and_then(number::plain) {
                    let ram = reading.said((bytes * 1024.0) as u64, line);
                    set(&mut reading.evidence.host.ram_bytes, ram);
                }
            }
            _ => {}
        }
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
