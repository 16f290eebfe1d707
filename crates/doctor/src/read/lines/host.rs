//! What lines say of the host.

use crate::evidence::Statement;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::words;

/// Sets what was not said before.
pub(crate) fn set<T>(slot: &mut Option<Statement<T>>, value: Statement<T>) {
    slot.get_or_insert(value);
}

/// Architectures as uname, packages and images call them.
pub(crate) const ARCHITECTURES: &str = "x86_64 amd64 aarch64 arm64 i386 i486 i586 i686 armv6l armv7l armv8l ppc64 ppc64le powerpc64 \
     powerpc64le riscv64 s390x sparc64 loongarch64 mips64";

/// The architecture that a word names: `aarch64`, `linux/amd64`, sysstat's `_x86_64_`.
fn architecture_of(word: &str) -> Option<&str> {
    let name = word.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.rsplit('/').next().unwrap_or(name);
    words::has(ARCHITECTURES, name).then_some(name)
}

/// Notes a fact by its name; what was said before stands, but of figures that change.
pub(crate) fn say(fact: &str, value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let text = reading.said(value.to_owned(), line);
    let seconds = |unit: f64| number::plain(value).map_or(0.0, |value| value * unit);
    let whole = value.parse::<u32>().ok().filter(|count| (1..=65_536).contains(count));
    let count = whole.map(|count| reading.said(count, line));
    let linux = reading.said("linux".to_owned(), line);
    let source = reading.at(line);
    let host = &mut reading.evidence.host;
    let mut up = |seconds: f64| {
        let same = host.uptime_s.as_ref().filter(|up| up.source == source);
        let value = same.map_or(0.0, |up| up.value) + seconds;
        host.uptime_s = Some(Statement { value, source: source.clone() });
    };
    match fact {
        "cpus" => host.cpus = count.or(host.cpus.take()),
        // Processors are counted from zero.
        "processor" => {
            let next = value.parse::<u32>().ok().map(|last| last.saturating_add(1).min(65_536));
            host.cpus = next.map(|value| Statement { value, source }).or(host.cpus.take());
        }
        "numa_nodes" => host.numa_nodes = count.or(host.numa_nodes.take()),
        "cpu_model" => set(&mut host.cpu_model, text),
        "cpu_flags" => set(&mut host.cpu_flags, text),
        "virtual" => {
            let value = !value.eq_ignore_ascii_case("no");
            set(&mut host.is_virtual, Statement { value, source });
        }
        "architecture" => {
            if let Some(name) = value.split_whitespace().rev().find_map(architecture_of) {
                set(&mut host.architecture, Statement { value: name.to_owned(), source });
            }
        }
        "linux" => {
            set(&mut host.kernel, text);
            set(&mut host.os, linux);
        }
        "zfs_version" => set(&mut host.zfs_version, text),
        "ram_kib" => {
            let bytes = number::plain(value).map(|kibibytes| (kibibytes * 1024.0) as u64);
            host.ram_bytes =
                bytes.map(|value| Statement { value, source }).or(host.ram_bytes.take());
        }
        "load" => {
            let all: Vec<f64> = value.split_whitespace().filter_map(number::plain).collect();
            if let [one, five, fifteen] = all[..] {
                host.load = Some(Statement { value: [one, five, fifteen], source });
            }
        }
        "up_w" => up(seconds(604_800.0)),
        "up_d" => up(seconds(86_400.0)),
        "up_h" => up(seconds(3600.0)),
        "up_m" => up(seconds(60.0)),
        _ => up(seconds(1.0)),
    }
}
