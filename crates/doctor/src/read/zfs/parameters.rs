//! Parameters: module parameters in any form, sysctls, sysfs files, the kernel's command line, and
//! settings of programs (`NAME="value"`).

use ogive_kstat::table::Kind;

use super::kstat::{self, Kstats};
use crate::pattern::Pattern;
use crate::read::lines::{self, FORMAT, Format};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Module parameters and sysfs files, by path or by a name that ZFS uses.
pub(crate) static PARAMETERS: Format = Format {
    name: "module parameters",
    shapes: &[
        concat!(
            r"^[*•–\s]*(?:/sys/module/)?(?:zfs|spl|icp|zcommon|zlua|zzstd|zavl|znvpair|zunicode|kvm|l1tf)/",
            r"(?:parameters/)?(?<key>[a-z][a-z0-9_]+)(?::|\s*=\s*|\s+)(?<parameter_value>.*)$",
        ),
        concat!(
            r"^[*•–\s]*/(?:sys|proc/sys)/(?:[\w./:+-]*/parameters/)?(?<key>[\w./:+-]+?)",
            r"(?::|\s*=\s*)\s*(?<parameter_value>.*)$",
        ),
        r"^[*•–\s]*options\s+(?:zfs|spl|icp)\s+(?<parameters>[a-z]\w*=[^#]*)",
        concat!(
            r"^[*•–\s]*(?<key>(?:zfs|zio|zvol|l2arc|spa|spl|dbuf|dmu|metaslab|zil|vdev|icp|brt|ddt",
            r"|raidz|send|zstd|ignore_hole|reference)_[a-z0-9_]+)(?:\s*[=:]\s*|\s+)",
            r"(?<parameter_value>-?\S+(?: \S+){0,12})$",
        ),
    ],
    ..FORMAT
};

/// Whether a line is a parameter, and not a sentence about one.
pub(crate) fn is_parameter(text: &str) -> bool {
    PARAMETERS.is_row(text) && !text.ends_with('.') && !text.contains(" at ")
}

/// The kernel's command line: parameters of the kernel and, with a dot, of modules.
pub(crate) static COMMAND_LINE: Format = Format {
    name: "kernel command line",
    shapes: &[r"^(?<host_command_line>(?<parameters>\S.*))$"],
    ..FORMAT
};

static SYSCTL: Pattern = Pattern::new(
    r"^[*•–\s]*((?:vfs|kern|vm|kstat|hw|debug|security|machdep|net|fs|dev|compat|user|p1003_1b)\.[A-Za-z0-9_.%/ -]*?[A-Za-z0-9_%-])\s*(?::\s|:$|=)\s*(.*)$",
);

/// Whether a line is a sysctl.
pub(crate) fn is_sysctl(text: &str) -> bool {
    SYSCTL.is_match(text.trim())
}

/// Parts of names of sysctls that count up. Those of vnodes are from FreeBSD's sys/kern/vfs_subr.c:
/// `vfs.vnode.stats.created`, `.skipped_requeues` and `.alloc_sleeps`; `vfs.vnode.vnlru.recycles`,
/// `.recycles_free`, `.direct_recycles_free` and `.failed_runs`; and their older names without
/// `vnode`. Kernels with more counters name each after the event that it counts.
const COUNTER_MARKS: &str = "recycles|failed_runs|alloc_sleeps|deferred_inact|_free_calls|created|_count|vm.stats.\
     |_misses|_hits|evict|.calls|freed|skip|examined|pdwakeups";

fn sysctl_kind(name: &str) -> Kind {
    const LEVELS: &str = "max _min .min limit _size desired wanted numvnodes freevnodes page_count free_count \
         inactive_count active_count wire_count laundry_count _target can_skip_requeue";
    let level = LEVELS.split(' ').any(|mark| name.ends_with(mark));
    let counts = word_lists::contains(COUNTER_MARKS, name);
    if counts && !level { Kind::Counter } else { Kind::Gauge }
}

/// Sysctls that describe the host.
const OF_HOST: &str = "hw.ncpu=cpus hw.physmem=ram hw.realmem=ram hw.model=cpu_model kern.osrelease=kernel \
     kern.ostype=os vfs.zfs.version.module=zfs_release";

/// Reads sysctls: kstats become tables, the others parameters. Numbers also go into the table
/// `sysctl`.
pub(crate) fn read_sysctl(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut kstats = Kstats::default();
    let mut numbers = reading.table("sysctl").taken(section.hint.time_s);
    for line in section.lines {
        if kstats.take_sysctl(line, section.hint.time_s, reading) {
            continue;
        }
        let Some(found) = SYSCTL.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let (name, value) = (&found[1], &found[2]);
        reading.parameter(name, value, line);
        if let Some(fact) = word_lists::other(OF_HOST, name) {
            lines::note_fact(fact, value, line, reading);
        }
        if let Some(value) = number::plain(value) {
            numbers.number(name, kstat::number(sysctl_kind(name), value), line);
        }
    }
    kstats.end(reading);
    reading.push(numbers);
}

/// Whether a line can be the kernel's command line.
pub(crate) fn is_command_line(text: &str) -> bool {
    const SURE: &str = "root=|init_on_alloc=|mitigations=|transparent_hugepage=";
    let mut words = text.split_whitespace();
    text.trim().starts_with("BOOT_IMAGE=")
        || words.clone().count() <= 64
            && !text.contains(": ")
            && words.any(|word| word_lists::begins(SURE, word))
}
