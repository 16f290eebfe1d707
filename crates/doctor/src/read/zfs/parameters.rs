//! Parameters: module parameters in any form, sysctls, sysfs files, the kernel's command line,
//! settings of programs (`NAME="value"`).

use std::sync::LazyLock;

use ogive_kstat::table::Kind;
use regex::Regex;

use super::kstat;
use crate::read::lines;
use crate::read::text::columns::without_bullet;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;
use crate::read::text::words;

static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:/sys/module/)?(?:zfs|spl|icp|zcommon|zlua|zzstd|zavl|znvpair|zunicode|kvm|l1tf)/(?:parameters/)?([a-z][a-z0-9_]+)(?::|\s*=\s*|\s+)(.*)$").expect("a constant pattern")
});
static SYSFS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^/(?:sys|proc/sys)/([\w./:+-]+?)(?::|\s*=\s*)\s*(.*)$")
        .expect("a constant pattern")
});
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:options\s+(?:zfs|spl|icp)\s+)?((?:zfs|zio|zvol|l2arc|spa|spl|dbuf|dmu|metaslab|zil|vdev|icp|brt|ddt|raidz|send|zstd|ignore_hole|reference)_[a-z0-9_]+)(?:\s*[=:]\s*|\s+)(-?\S+(?: \S+){0,12})$").expect("a constant pattern")
});
static SYSCTL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^((?:vfs|kern|vm|kstat|hw|debug|security|machdep|net|fs|dev|compat|user|p1003_1b)\.[A-Za-z0-9_.%/ -]*?[A-Za-z0-9_%-])\s*(?::\s|:$|=)\s*(.*)$").expect("a constant pattern")
});
/// Whether a line is a module parameter, with its path or by a name ZFS uses.
pub(crate) fn is_parameter(text: &str) -> bool {
    let text = text.trim();
    MODULE.is_match(text)
        || SYSFS.is_match(text)
        || BARE.is_match(text) && !text.ends_with('.') && !text.contains(" at ")
}

/// Whether a line is a sysctl.
pub(crate) fn is_sysctl(text: &str) -> bool {
    SYSCTL.is_match(text.trim())
}

/// Reads module parameters and files of sysfs.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = without_bullet(line).trim();
        if text.is_empty() {
            continue;
        }
        if let Some(found) = MODULE.captures(text) {
            reading.parameter(&found[1], &found[2], line);
        } else if let Some(found) = SYSFS.captures(text) {
            let name =
                found[1].rsplit_once("/parameters/").map_or(&found[1], |(_, name)| name).to_owned();
            reading.parameter(&name, &found[2], line);
        } else if let Some(options) = text.strip_prefix("options ") {
            for setting in options.split_whitespace().skip(1) {
                if let Some((name, value)) = setting.split_once('=') {
                    reading.parameter(name, value, line);
                }
            }
        } else if let Some(found) = BARE.captures(text) {
            reading.parameter(&found[1], &found[2], line);
        } else {
            reading.leave(line);
        }
    }
}

/// Parts of names of sysctls that count up. Those of vnodes are of FreeBSD's sys/kern/vfs_subr.c:
/// `vfs.vnode.stats.created`, `.skipped_requeues` and `.alloc_sleeps`, `vfs.vnode.vnlru.recycles`,
/// `.recycles_free`, `.direct_recycles_free` and `.failed_runs`, and their older names without
/// `vnode`; kernels with more counters of their own call them by what they count.
const COUNTER_MARKS: &str = "recycles|failed_runs|alloc_sleeps|deferred_inact|_free_calls|created|_count|vm.stats.\
     |_misses|_hits|evict|.calls|freed|skip|examined|pdwakeups";

fn sysctl_kind(name: &str) -> Kind {
    const LEVELS: &str = "max _min .min limit _size desired wanted numvnodes freevnodes page_count free_count \
         inactive_count active_count wire_count laundry_count _target can_skip_requeue";
    let level = LEVELS.split(' ').any(|mark| name.ends_with(mark));
    let counts = words::contains(COUNTER_MARKS, name);
    if counts && !level { Kind::Counter } else { Kind::Gauge }
}

/// Sysctls that say what the host is.
const OF_HOST: &str = "hw.ncpu=cpus hw.physmem=ram hw.realmem=ram hw.model=cpu_model kern.osrelease=kernel \
     kern.ostype=os vfs.zfs.version.module=zfs_release";

/// Reads sysctls: kstats become tables, the others parameters and, if numbers, a table `sysctl`.
pub(crate) fn read_sysctl(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut kstats: Vec<((String, Option<String>), Rows)> = Vec::new();
    let mut numbers = reading.table("sysctl").taken(section.hint.time_s);
    for line in section.lines {
        let text = without_bullet(line).trim();
        if text.is_empty() {
            continue;
        }
        if text.starts_with("kstat.")
            && let Some((name, pool, row, value)) = kstat::read_sysctl_row(text)
        {
            let key = (name, pool);
            let position = kstats.iter().position(|(other, _)| *other == key);
            let at = match position {
                Some(at) => at,
                None if kstats.len() < 4096 => {
                    let mut table = reading.table(&key.0).taken(section.hint.time_s);
                    table.table.scope = key.1.clone();
                    kstats.push((key.clone(), table));
                    kstats.len() - 1
                }
                None => continue,
            };
            let number = kstat::number_of(&key.0, &row, &value);
            kstats[at].1.number(&row, number, line);
            continue;
        }
        let Some(found) = SYSCTL.captures(text) else {
            reading.leave(line);
            continue;
        };
        let (name, value) = (&found[1], &found[2]);
        reading.parameter(name, value, line);
        if let Some(fact) = words::other(OF_HOST, name) {
            lines::say(fact, value, line, reading);
        }
        if let Some(value) = number::plain(value) {
            match sysctl_kind(name) {
                Kind::Counter => numbers.counter(name, Some(value), line),
                Kind::Gauge => numbers.gauge(name, Some(value), line),
            }
        }
    }
    for (_, table) in kstats {
        reading.push(table);
    }
    reading.push(numbers);
}

/// Reads `/proc/cmdline`: parameters of the kernel and, with a dot, of modules.
pub(crate) fn read_command_line(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        reading.evidence.host.command_line = Some(reading.said(text.to_owned(), line));
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let name =
                name.strip_prefix("zfs.").or_else(|| name.strip_prefix("spl.")).unwrap_or(name);
            reading.parameter(name, value, line);
        }
    }
}

/// Whether a line can be the kernel's command line.
pub(crate) fn is_command_line(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let settings = words.iter().filter(|word| word.contains('=')).count();
    text.trim().starts_with("BOOT_IMAGE=")
        || words.iter().any(|word| {
            word.starts_with("root=")
                || word.starts_with("init_on_alloc=")
                || word.starts_with("mitigations=")
                || word.starts_with("transparent_hugepage=")
        }) && settings >= 1
            && words.len() <= 64
            && !text.contains(": ")
}
