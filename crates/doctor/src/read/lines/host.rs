//! Facts of the host in lines.

use crate::evidence::{Host, Source, Statement};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::word_lists;

/// Sets a fact if it is not yet set.
pub(crate) fn set_once<T>(slot: &mut Option<Statement<T>>, value: Statement<T>) {
    slot.get_or_insert(value);
}

/// Architectures as uname, packages and images name them.
const ARCHITECTURES: &str = "x86_64 amd64 aarch64 arm64 i386 i486 i586 i686 armv6l armv7l armv8l ppc64 ppc64le powerpc64 \
     powerpc64le riscv64 s390x sparc64 loongarch64 mips64";

/// The architecture that a word names: `aarch64`, `linux/amd64`, sysstat's `_x86_64_`.
fn architecture_of(word: &str) -> Option<&str> {
    let name = word.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.rsplit('/').next().unwrap_or(name);
    word_lists::has(ARCHITECTURES, name).then_some(name)
}

/// Suffixes of FreeBSD releases.
const FREEBSD: &str = "-RELEASE|-STABLE|-CURRENT";

/// Records a fact by its name. The first value stays, except for figures that change.
pub(crate) fn note_fact(fact: &str, value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let value = value.trim_matches([' ', '|', '`', '*', ',']);
    if value.is_empty() || value.starts_with("<!--") {
        return;
    }
    let text = reading.statement(value.to_owned(), line);
    let host = &mut reading.evidence.host;
    match fact {
        "cpu_model" => set_once(&mut host.cpu_model, text),
        "cpu_flags" => set_once(&mut host.cpu_flags, text),
        "zfs_version" => set_once(&mut host.zfs_version, text),
        // The module's version has priority over the commands'.
        "zfs_module" => host.zfs_version = Some(text),
        "zfs_release" => {
            let release = value.trim_start_matches('v').split(['-', ' ']).next();
            let value = release.unwrap_or(value).to_owned();
            host.zfs_version = Some(Statement { value, ..text });
        }
        "os" => set_once(&mut host.os, Statement { value: system(value), ..text }),
        "kernel" => {
            let release = value.split_whitespace().next().unwrap_or(value).to_owned();
            let is_freebsd = word_lists::contains(FREEBSD, &release);
            let system = if is_freebsd { "freebsd" } else { "linux" }.to_owned();
            set_once(&mut host.os, Statement { value: system, source: text.source.clone() });
            set_once(&mut host.kernel, Statement { value: release, ..text });
        }
        "distribution" => {
            if value.to_lowercase().contains("freebsd") {
                let value = "freebsd".to_owned();
                set_once(&mut host.os, Statement { value, source: text.source.clone() });
            }
            set_once(&mut host.distribution, text);
        }
        "distribution_version" => {
            let near = |line: Option<u32>| line.zip(text.source.line).map(|(a, b)| a.abs_diff(b));
            let name = host.distribution.as_mut().filter(|name| {
                name.source.input == text.source.input && near(name.source.line) <= Some(3)
            });
            if let Some(name) = name {
                name.value = format!("{} {value}", name.value);
            }
        }
        "pretty_name" => host.distribution = Some(text),
        "virtual" => {
            let value = !value.eq_ignore_ascii_case("no");
            set_once(&mut host.is_virtual, Statement { value, source: text.source });
        }
        "architecture" => {
            if let Some(name) = value.split_whitespace().rev().find_map(architecture_of) {
                set_once(&mut host.architecture, Statement { value: name.to_owned(), ..text });
            }
        }
        "command_line" => host.command_line = Some(text),
        "ogive_mount" => host.ogive_mount = Some(text),
        _ => note_figure(fact, value, text.source, host),
    }
}

/// The operating system of a kernel's name.
fn system(name: &str) -> String {
    match name {
        "SunOS" => "illumos".to_owned(),
        "Darwin" => "macos".to_owned(),
        name => name.to_lowercase(),
    }
}

fn note_figure(fact: &str, value: &str, source: Source, host: &mut Host) {
    let number = number::plain(value);
    let count = value.parse::<u32>().ok().filter(|count| *count <= 65_536);
    match (fact, number) {
        ("cpus", _) => put(&mut host.cpus, count.filter(|count| *count > 0), source),
        // Numbers begin at zero; processors that are switched off are missing.
        ("processor", _) => {
            let others = host.cpus.as_ref().filter(|cpus| {
                cpus.source.input == source.input && count.is_some_and(|number| number > 0)
            });
            let cpus = others.map_or(0, |cpus| cpus.value) + 1;
            put(&mut host.cpus, Some(cpus), source);
        }
        ("numa_nodes", _) => put(&mut host.numa_nodes, count, source),
        ("ram", number) => put(&mut host.ram_bytes, number.map(|bytes| bytes as u64), source),
        ("ram_kib", number) => {
            put(&mut host.ram_bytes, number.map(|kibibytes| (kibibytes * 1024.0) as u64), source);
        }
        ("load" | "load_any", _) => {
            // `12,34, 10,11, 9,87` has decimal commas.
            let parts = value.split_whitespace().map(|part| part.trim_end_matches(','));
            let all: Vec<f64> = parts.filter_map(number::plain).collect();
            if let [one, five, fifteen] = all[..] {
                put(&mut host.load, Some([one, five, fifteen]), source);
            }
        }
        (part, Some(number)) => {
            let unit = match part {
                "up_w" => 604_800.0,
                "up_d" => 86_400.0,
                "up_h" | "up_hours" => 3600.0,
                "up_m" | "up_minutes" => 60.0,
                _ => 1.0,
            };
            let same = host.uptime_s.as_ref().filter(|up| up.source == source);
            let sum = same.map_or(0.0, |up| up.value) + number * unit;
            put(&mut host.uptime_s, Some(sum), source);
        }
        _ => {}
    }
}

fn put<T>(slot: &mut Option<Statement<T>>, value: Option<T>, source: Source) {
    if let Some(value) = value {
        *slot = Some(Statement { value, source });
    }
}
