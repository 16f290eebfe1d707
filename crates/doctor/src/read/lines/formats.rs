//! The formats of lines, as data.

use super::{FORMAT, Format, add, gauge};
use crate::evidence::{Number, Table};

const KIB: f64 = 1024.0;

/// Attributes of a disk: `smartctl -A`.
pub(crate) static SMARTCTL: Format = Format {
    name: "smartctl",
    heading: "ID# ATTRIBUTE_NAME",
    shapes: &[concat!(
        r"^\d+\s+(?<key>[A-Z][A-Za-z0-9_-]+)\s+0x[0-9a-f]{4}\s+\d+\s+\d+\s+(?:\d+|---)",
        r"\s+.*?\s(?<value>\d+)(?:\s+\(.*\))?$",
    )],
    table: "smart",
    bare: true,
    ..FORMAT
};

/// How many synchronous writes a second: `pg_test_fsync`.
pub(crate) static PG_TEST_FSYNC: Format = Format {
    name: "pg_test_fsync",
    words: "open_datasync fdatasync fsync fsync_writethrough open_sync",
    shapes: &[concat!(
        r"^(?<scope>open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)",
        r"\s+(?<ops_per_s>[\d.]+)(?: ops/sec)?\s+(\d+)(?: usecs/op)?$",
    )],
    table: "pg_test_fsync",
    each: true,
    ..FORMAT
};

/// The part of the time that each system call took: `strace -c`, whose heading looks like a prompt.
pub(crate) static STRACE_C: Format = Format {
    name: "strace -c",
    shapes: &[
        r"^\d+[.,]\d+\s+\d+[.,]\d+\s[\d\s]+ total$",
        concat!(
            r"^(?<time_percent>\d+[.,]\d+)\s+(?<seconds>\d+[.,]\d+)\s+(?:(?<usecs_per_call>\d+)\s+)?",
            r"(?<calls>\d+)\s+(?:(?<errors>\d+)\s+)?(?<scope>[a-z_0-9]+)$",
        ),
    ],
    more: &[r"^% time|^[- ]+$"],
    table: "strace_c",
    each: true,
    ..FORMAT
};

/// `/proc/spl/kmem/slab`. Caches that the kernel's own allocator backs show no size: what is
/// allocated is all.
pub(crate) static SPL_SLAB: Format = Format {
    name: "spl slab",
    heading: "* cache * * slab|name flags size alloc slabsize",
    shapes: &[concat!(
        r"^(?<scope>\S+)\s+0x[0-9a-f]+\s+(?<size_bytes>-|\d+)\s+(?<alloc_bytes>-|\d+)",
        r"\s+(?<slab_bytes>-|\d+)\s+(?<object_bytes>-|\d+)\s+(?<slabs>-|\d+)",
        r"\s+(?<slabs_alloc>-|\d+)\s+(?<slabs_max>-|\d+)\s+(?<objects>-|\d+)",
        r"\s+(?<objects_alloc>-|\d+)\s+(?<objects_max>-|\d+)",
        r"(?:\s+(?<emergency_dlock>-|\d+)\s+(?<emergency_alloc>-|\d+)\s+(?<emergency_max>-|\d+))?$",
    )],
    table: "slab",
    each: true,
    bare: true,
    then: Some(|slab| {
        if gauge(slab, "size_bytes").is_none() {
            add(slab, "size_bytes", gauge(slab, "alloc_bytes"));
        }
    }),
    ..FORMAT
};

/// `/proc/slabinfo`, which counts objects.
pub(crate) static SLABINFO: Format = Format {
    name: "slabinfo",
    heading: "slabinfo - version:|# name <active_objs>",
    shapes: &[concat!(
        r"^(?<scope>\S+)\s+(?<objects_active>\d+)\s+(?<objects>\d+)\s+(?<object_bytes>\d+)",
        r"\s+(?<objects_per_slab>\d+)\s+(?<pages_per_slab>\d+)(?:\s*:\s*tunables\s+(?<limit>\d+)",
        r"\s+(?<batchcount>\d+)\s+(?<sharedfactor>\d+)\s*:\s*slabdata\s+(?<slabs_active>\d+)",
        r"\s+(?<slabs>\d+)\s+(?<sharedavail>\d+))?$",
    )],
    table: "slab",
    each: true,
    then: Some(|slab| {
        for (sum, count) in [("size_bytes", "objects"), ("alloc_bytes", "objects_active")] {
            let bytes = gauge(slab, count).zip(gauge(slab, "object_bytes"));
            add(slab, sum, bytes.map(|(count, bytes)| count * bytes));
        }
    }),
    ..FORMAT
};

/// The SPL's `taskq/summary` (OpenZFS 2.3): threads and tasks of each queue.
pub(crate) static TASKQS: Format = Format {
    name: "task queue summary",
    shapes: &[concat!(
        r"^(?<scope>\S+)\s*\|\s*(?<threads>\d+)\s*\[\s*(?<active>\d+)\s+(?<idle>\d+)\s*\]",
        r"\s*(?<threads_max>\d+)\s*\|\s*(?<pending>\d+)\s*\[\s*(?<normal>\d+)\s+(?<high>\d+)\s*\]",
        r"\s*(?<delayed>\d+)$",
    )],
    more: &[r"^taskq name|^\||^-[- |]*$|^\d+ \d+ 0x"],
    table: "taskq",
    each: true,
    ..FORMAT
};

/// Interrupts of FreeBSD and illumos: how many since boot, and how many a second on average.
pub(crate) static VMSTAT_I: Format = Format {
    name: "vmstat -i",
    heading: "interrupt total rate",
    shapes: &[
        r"^(?<scope>\S.*?)\s{2,}(?<counter_sum>\d+)\s+(?<mean_per_second>\d+)$",
        r"^(?<scope>(?:irq|cpu)\d+:\s?\S+)\s+(?<counter_sum>\d+)\s+(?<mean_per_second>\d+)$",
        r"^[- ]+$",
    ],
    table: "interrupts",
    each: true,
    ..FORMAT
};

/// `/proc/pressure`; the resource is in the path, or before the colon of `grep`.
pub(crate) static PRESSURE: Format = Format {
    name: "pressure",
    shapes: &[
        concat!(
            r"^(?:.{0,60}?(?<scope>cpu|io|memory|irq)(?:\.pressure)?[: ]+|.{1,60}[: ])?some",
            r" avg10=(?<some_avg10_percent>[\d.]+) avg60=(?<some_avg60_percent>[\d.]+)",
            r" avg300=(?<some_avg300_percent>[\d.]+)(?: total=(?<counter_some_total_us>\d+))?",
        ),
        concat!(
            r"^(?:.{0,60}?(?<scope>cpu|io|memory|irq)(?:\.pressure)?[: ]+|.{1,60}[: ])?full",
            r" avg10=(?<full_avg10_percent>[\d.]+) avg60=(?<full_avg60_percent>[\d.]+)",
            r" avg300=(?<full_avg300_percent>[\d.]+)(?: total=(?<counter_full_total_us>\d+))?",
        ),
    ],
    table: "pressure",
    each: true,
    files: "cpu io memory irq",
    ..FORMAT
};

/// Arrays of Linux's own RAID, and which of them is being resynced, rebuilt, checked or reshaped:
/// that is work of the kernel that is not ZFS's. A table of an array has its state; progress and
/// speed are there only while something runs.
pub(crate) static MDSTAT: Format = Format {
    name: "mdstat",
    shapes: &[
        r"^Personalities :",
        concat!(
            r"^(?<scope>md\S*?)\s*: (?<text_state>active|inactive)(?: \((?:auto-read-only|read-only)\))?",
            r"\s+(?:(?<text_level>raid\S+)\s)?(?:.*?(?<text_failed>\w+\[\d+\]\(F\)))?",
        ),
        concat!(
            r"^\[[=>.]*\]\s+(?<text_action>resync|recovery|check|repair|reshape)",
            r"\s*=\s*(?<progress_percent>\d+(?:[.,]\d+)?)%(?:\s+\(\d+/\d+\))?",
            r"(?:\s+finish=(?<finish_s>[\d.]+)min)?(?:\s+speed=(?<speed_bytes>\d+)K/sec)?",
        ),
    ],
    more: &[
        r"^(?<text_waits>(?:resync|recovery|check|repair|reshape)\s*=\s*(?:DELAYED|PENDING|REMOTE))$",
        r" blocks.*\[(?<members>\d+)/(?<members_working>\d+)\] \[[U_]+\]",
        r"^unused devices:|^bitmap:|^read_ahead| blocks",
    ],
    table: "mdstat",
    scales: &[("finish_s", 60.0), ("speed_bytes", KIB)],
    ..FORMAT
};

/// `procinfo`: use of the CPUs since boot with paging beside it, memory, swap and load, and the
/// interrupts by line. What guests use is in the user's part.
pub(crate) static PROCINFO: Format = Format {
    name: "procinfo",
    shapes: &[
        r"^Memory:\s+Total\s+Used\s+Free\s+Buffers$",
        concat!(
            r"^(?:(?:user|nice)\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_user>[\d.,]+)%",
            r"|system\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_system>[\d.,]+)%",
            r"|IOwait\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_iowait>[\d.,]+)%",
            r"|[hs]w irq\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_interrupt>[\d.,]+)%",
            r"|steal\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_steal>[\d.,]+)%",
            r"|guest\s*:\s+[\dwd :]+[.,]\d+\s+[\d.,]+%",
            r"|idle\s*:\s+[\dwd :]+[.,]\d+\s+(?<cpu_idle>[\d.,]+)%",
            r"|uptime\s*:\s+(?:(?<host_up_w>\d+)w )?(?:(?<host_up_d>\d+)d )?",
            r"(?<host_up_h>\d+):(?<host_up_m>\d\d):(?<host_up_s>\d\d[.,]\d+))",
            r"(?:\s+(?<key>(?:page|swap) [a-z]+|context|intr|procs)\s*:\s*(?<counter_value>\d+))?$",
        ),
        concat!(
            r"^Bootup: .*Load average:\s+(?<host_load>\d+[.,]\d+ \d+[.,]\d+ \d+[.,]\d+)",
            r"\s+(?<running>\d+)/(?<threads>\d+)",
        ),
        concat!(
            r"^RAM:\s+(?<meminfo.MemTotal_bytes>\d+)\s+(?<meminfo.used_bytes>\d+)",
            r"\s+(?<meminfo.MemFree_bytes>\d+)(?:\s+(?<meminfo.Buffers_bytes>\d+))?$",
        ),
        IRQ,
    ],
    more: &[concat!(
        r"^Swap:\s+(?<meminfo.SwapTotal_bytes>\d+)\s+(?<meminfo.swap_used_bytes>\d+)",
        r"\s+(?<meminfo.SwapFree_bytes>\d+)\s*$",
    )],
    table: "procinfo",
    scales: &[
        ("MemTotal_bytes", KIB),
        ("used_bytes", KIB),
        ("MemFree_bytes", KIB),
        ("Buffers_bytes", KIB),
        ("SwapTotal_bytes", KIB),
        ("swap_used_bytes", KIB),
        ("SwapFree_bytes", KIB),
    ],
    ..FORMAT
};
const IRQ: &str = concat!(
    r"\birq\s*(?<interrupts.scope>\d+):\s+(?<interrupts.counter_sum>\d+)",
    r"\s+(?<interrupts.text_what>\S.*?)(?:\s{2,}|$)",
);

/// `vmstat -s`: sums since boot.
pub(crate) static VMSTAT_SUMS: Format = Format {
    name: "vmstat -s",
    words: "memory swap cache ticks in out interrupts switches time forks",
    shapes: &[
        r"^(?<meminfo.MemTotal_bytes>\d+ [KkMm]?)\s?total memory$",
        r"^(?<meminfo.MemFree_bytes>\d+ [KkMm]?)\s?free memory$",
        r"^(?<meminfo.Buffers_bytes>\d+ [KkMm]?)\s?buffer memory$",
        r"^(?<meminfo.SwapTotal_bytes>\d+ [KkMm]?)\s?total swap$",
        r"^(?<meminfo.SwapFree_bytes>\d+ [KkMm]?)\s?free swap$",
        r"^(?<cpu_user>\d+) (?:non-nice|nice) user cpu ticks$",
        r"^(?<cpu_system>\d+) system cpu ticks$",
        r"^(?<cpu_idle>\d+) idle cpu ticks$",
        r"^(?<cpu_iowait>\d+) IO-wait cpu ticks$",
        r"^(?<cpu_interrupt>\d+) (?:IRQ|softirq) cpu ticks$",
        r"^(?<cpu_steal>\d+) stolen cpu ticks$",
        r"^\d+ (?:non-nice|nice) guest cpu ticks$",
        concat!(
            r"^(?<counter_value>\d+) (?:[KkMm] )?(?<key>(?:used|active|inactive) memory|used swap|swap cache",
            r"|pages (?:paged|swapped) (?:in|out)|[KM] (?:paged|swapped) (?:in|out)|interrupts",
            r"|CPU context switches|boot time|forks)$",
        ),
    ],
    table: "vmstat_sums",
    ..FORMAT
};

/// The maps that bpftrace prints at the end: numbers and histograms.
pub(crate) static BPFTRACE: Format = Format {
    name: "bpftrace",
    shapes: &[
        r"^@(?<scope>\w*(?:\[.*\])?)\s*:\s*(?<value>-?\d+)?$",
        r"^(?<key>[\[(][-\d.KMGTP, ]+[)\]]|\(\.\.\., \S+\))\s+(?<value>\d+)\s+\|[@ ]*\|$",
    ],
    more: &[r"^Attaching |^\^C$"],
    table: "histogram",
    then: Some(histogram),
    ..FORMAT
};

/// How many there are in all, and the part of zero.
fn histogram(table: &mut Table) {
    let counts = || {
        let buckets = table.figures.iter().filter(|figure| figure.name != "value");
        buckets.filter_map(|one| match one.value {
            Number::Gauge(count) => Some((one.name.starts_with("[0]"), count)),
            _ => None,
        })
    };
    let all: f64 = counts().map(|(_, count)| count).sum();
    let zeros: f64 = counts().filter(|(is_zero, _)| *is_zero).map(|(_, count)| count).sum();
    if all > 0.0 {
        add(table, "count", Some(all));
        add(table, "zero_percent", Some(zeros * 100.0 / all));
    }
}

/// DTrace: aggregations (name and count), and probes with a text.
pub(crate) static DTRACE: Format = Format {
    name: "dtrace",
    heading: "CPU ID FUNCTION:NAME",
    shapes: &[
        r"^\d{4} [A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d$",
        concat!(
            r"^(?<dtrace_probe.cpu>\d+)\s+(?<dtrace_probe.id>\d+)",
            r"\s+(?<log>(?<dtrace_probe.scope>[^\s:]+:\S+)\s.*)$",
        ),
        r"^(?<key>\S.*?)\s{2,}(?<value>\d+)$",
        r"^dtrace:",
    ],
    table: "dtrace",
    ..FORMAT
};

/// Rows by which `/proc/meminfo` is known.
pub(crate) static MEMINFO: Format = Format {
    name: "meminfo",
    words: "MemTotal: MemFree: MemAvailable: Buffers: Cached: SwapTotal: SwapFree: SwapCached: Slab: \
            SReclaimable: SUnreclaim: Shmem: AnonPages: Dirty: Writeback: Active: Inactive: \
            HugePages_Total: VmallocUsed: AnonHugePages: Percpu: Active(anon):",
    shapes: &[r"^(?<key>[A-Z][A-Za-z0-9_()]+):\s+(?<value>\d[\d.,]*)\s*(?<unit>[kMG]i?B)?$"],
    table: "meminfo",
    ..FORMAT
};

/// `/proc/vmstat`: `nr_*` are levels, the rest counts since boot.
pub(crate) static PROC_VMSTAT: Format = Format {
    name: "vmstat file",
    shapes: &[
        r"^(?<key>nr_\S+)\s+(?<value>\d+)$",
        concat!(
            r"^(?<key>(?:pgscan|pgsteal|pgfault|pgmajfault|pgpgin|pgpgout|pswp|compact_|allocstall",
            r"|kswapd_|slabs_scanned|workingset_|thp_|numa_hit)\S*)\s+(?<counter_value>\d+)$",
        ),
    ],
    more: &[r"^(?<key>[a-z]\S*)\s+(?<counter_value>\d+)$"],
    table: "proc_vmstat",
    bare: true,
    ..FORMAT
};

/// `lscpu` and `/proc/cpuinfo`. The latter names hypervisors by a flag, not by a line.
pub(crate) static LSCPU: Format = Format {
    name: "lscpu",
    shapes: &[
        r"^CPU\(s\):\s*(?<host_cpus>\d*)",
        r"^Architecture:\s*(?<host_architecture>.*)$",
        r"^[Mm]odel name\s*:\s*(?<host_cpu_model>.*)$",
        r"^(?:Flags|flags)\s*:\s*(?<host_cpu_flags>.*)$",
        r"^Hypervisor vendor:\s*(?<host_virtual>.*)$",
        r"^NUMA node\(s\):\s*(?<numa_nodes>(?<host_numa_nodes>\d+))$",
        r"^Socket\(s\):\s*(?<sockets>\d+)$",
        r"^Thread\(s\) per core:\s*(?<threads_per_core>\d+)$",
        r"^(?:Core\(s\) per socket|Vendor ID|On-line CPU\(s\) list|CPU op-mode\(s\)):",
        r"^processor\s*:\s*(?<host_processor>\d+)$",
        r"^(?:vendor_id|cpu family|cpu MHz)\s*:\s*\S",
    ],
    more: &[
        r"^Virtualization type:\s*(?<host_virtual>.*)$",
        r"^Features\s*:\s*(?<host_cpu_flags>.*)$",
        concat!(
            r"^(?:Address sizes|Byte Order|Off-line CPU\(s\) list|Model|CPU family|Stepping|CPU M?",
            r"|CPU\(s\) scaling MHz|BogoMIPS|Virtualization|Hypervisor|L[1-4]|NUMA|Vulnerabilit|Caches",
            r"|Frequency boost|Cluster\(s\)|Book\(s\)|Drawer\(s\)|Dispatching mode|BIOS|Thread|Core",
            r"|Itlb|Gather|processor|model|vendor_id|cpu |stepping|microcode|cache|physical id|siblings",
            r"|core id|apicid|initial apicid|fpu|wp|flags|power management|bugs|bogomips|clflush size",
            r"|address sizes|vmx flags|TLB size|Hardware|Revision|Serial)[^:]*:",
        ),
        r":\s*(?:Not affected|Mitigation|Vulnerable|Mitigated)",
    ],
    table: "lscpu",
    ..FORMAT
};

/// The header that `perf report --header-only` prints.
pub(crate) static PERF_HEADER: Format = Format {
    name: "perf header",
    shapes: &[
        r"^#\s*os release : (?<host_kernel>.*)$",
        r"^#\s*nrcpus online : (?<host_cpus>\d+)$",
        r"^#\s*arch : (?<host_architecture>.*)$",
        r"^#\s*cpudesc : (?<host_cpu_model>.*)$",
        r"^#\s*total memory : (?<host_ram_kib>\d+) kB$",
        r"^#",
    ],
    ..FORMAT
};

/// `modinfo` of zfs: the version; parameters there are descriptions, not values.
pub(crate) static MODINFO: Format = Format {
    name: "modinfo",
    shapes: &[
        r"^version:\s{2,}v?(?<host_zfs_version>\S.*)$",
        concat!(
            r"^filename:\s+\S|^(?:srcversion|vermagic|description|license|author|alias|depends",
            r"|retpoline|name|parm):\s+\S.*  |^(?:srcversion|vermagic|description|license|author|alias",
            r"|depends|retpoline|name|parm):\s{2,}\S",
        ),
    ],
    more: &[
        r"^(?:srcversion|vermagic|description|license|author|alias|depends|retpoline|name|parm):\s",
    ],
    ..FORMAT
};

/// `/proc/buddyinfo`: free blocks by order.
pub(crate) static BUDDYINFO: Format = Format {
    name: "buddyinfo",
    words: "zone",
    shapes: &[concat!(
        r"^(?<scope>Node\s+\d+, zone\s+\S+)\s+(?<order0>\d+)",
        r"(?:\s+(?<order1>\d+))?(?:\s+(?<order2>\d+))?(?:\s+(?<order3>\d+))?",
        r"(?:\s+(?<order4>\d+))?(?:\s+(?<order5>\d+))?(?:\s+(?<order6>\d+))?",
        r"(?:\s+(?<order7>\d+))?(?:\s+(?<order8>\d+))?(?:\s+(?<order9>\d+))?",
        r"(?:\s+(?<order10>\d+))?(?:\s+\d+)*$",
    )],
    table: "buddyinfo",
    each: true,
    ..FORMAT
};

/// The table at the head of OpenZFS's own form for reports: every year's has other words for the
/// same rows, with bars around the cells or a colon between them. What is left empty says nothing.
pub(crate) static BUG_FORM: Format = Format {
    name: "bug form",
    shapes: &[
        r"^(?:[|*-]\s*)?\**Distribution Name\**\s*(?:\||:\**\s)\s*(?<host_distribution>.*)$",
        r"^(?:[|*-]\s*)?\**Distribution Version\**\s*(?:\||:\**\s)\s*(?<host_distribution_version>.*)$",
        concat!(
            r"^(?:[|*-]\s*)?\**(?:(?:Linux Kernel|Kernel Version)\**\s*(?:\||:\**\s)|Kernel\**\s*\|)",
            r"[\s`]*(?:(?:Linux|FreeBSD) )?(?<host_kernel>\d.*)$",
        ),
        r"^(?:[|*-]\s*)?\**Architecture\**\s*\|\s*(?<host_architecture>.*)$",
        concat!(
            r"^(?:[|*-]\s*)?\**(?:OpenZFS|ZFS) Version\**\s*(?:\||:\**\s)[\s`]*(?:zfs-)?(?:kmod-)?v?",
            r"(?<host_zfs_version>\d.*)$",
        ),
        r"^(?:[|*-]\s*)?\**SPL Version\**\s*(?:\||:\**\s)",
        r"^(?:[|*-]\s*)?\**Type\**\s*\|.*ersion",
        concat!(
            r"^(?:[|*-]\s*)?\**(?:Linux Kernel|Kernel Version|OpenZFS Version|ZFS Version)\**",
            r"\s*(?:\||:\**\s)[\s`|]*(?:<!--.*)?$|^(?:[|*-]\s*)?\**Kernel\**\s*\|[\s`|]*$",
        ),
    ],
    more: &[r"^(?:[|*-]\s*)?\**Architecture\**\s*:\**\s*(?<host_architecture>.*)$"],
    ..FORMAT
};

/// `NAME="value"`: settings of programs, and what os-release says of the system.
pub(crate) static SETTINGS: Format = Format {
    name: "settings",
    shapes: &[
        r#"^(?:PRETTY_NAME|DISTRIB_DESCRIPTION)=["']?(?<host_pretty_name>[^"']*)["']?$"#,
        r#"^NAME=["']?(?<host_distribution>[^"']*)["']?$"#,
        r#"^VERSION=["']?(?<host_distribution_version>[^"']*)["']?$"#,
        concat!(
            r"^(?:ID|VERSION_ID|ID_LIKE|VERSION_CODENAME|HOME_URL|SUPPORT_URL|BUG_REPORT_URL",
            r"|PRIVACY_POLICY_URL|UBUNTU_CODENAME|LOGO|ANSI_COLOR|CPE_NAME|DISTRIB_ID|DISTRIB_RELEASE",
            r"|DISTRIB_CODENAME|BUILD_ID|VARIANT|VARIANT_ID|DOCUMENTATION_URL)=",
        ),
        r#"^(?:export\s+)?(?<key>[A-Z][A-Z0-9_]+)="(?<parameter_value>[^"]*)"$"#,
        r#"^(?:export\s+)?(?<key>[A-Z][A-Z0-9_]+)='(?<parameter_value>[^']*)'$"#,
        r#"^(?:export\s+)?(?<key>[A-Z][A-Z0-9_]+)=(?<parameter_value>\S*)$"#,
    ],
    more: &[r"^#"],
    ..FORMAT
};

/// `uname`, `zfs version`, and the first lines of tools that say the same.
pub(crate) static VERSION: Format = Format {
    name: "version",
    shapes: &[
        r"^zfs-kmod-(?<host_zfs_module>\d[\w.+~-]*)$",
        r"^(?:zfs-|(?:ZFS|OpenZFS)\s+(?:version\s+)?v?)(?<host_zfs_version>\d[\w.+~-]*)$",
        r"^(?<host_os>Linux)\s+(?<host_kernel>\d+\.\d+\S*)\s+v?(?<host_zfs_version>[0-2]\.\d+\.\d+[\w.+~-]*)$",
        concat!(
            r"^(?<host_os>Linux)(?:\s+(?:version\s+)?(?:[A-Za-z][\w.-]*\s+)?(?<host_kernel>\d+\.\d+\S*)",
            r"(?<host_architecture>\s.*?)??(?:\s+\((?<host_cpus>\d+) CPUs?\))?)?$",
        ),
        r"^(?<host_os>FreeBSD)(?:\s+\S+)?\s+(?<host_kernel>\d+\.\d+\S*)(?<host_architecture>.*)$",
        r"^(?<host_os>FreeBSD)(?: host.*)?$",
        concat!(
            r"^(?<host_os>SunOS)(?:\s+\S+\s+(?:\S+\s+)?(?<host_kernel>\S+)",
            r"(?<host_architecture>\s.*)?)?$",
        ),
        r"^(?<host_os>Darwin)(?:\S*\s+\S+\s+(?<host_kernel>\S+)(?<host_architecture>.*))?",
    ],
    more: &[r"^v?(?<host_zfs_version>[0-2]\.\d+\.\d+[\w.+~-]*)$"],
    ..FORMAT
};

/// The answer of `uname -m` or `arch`, or the platform of an image.
pub(crate) static ARCHITECTURE: Format = Format {
    name: "architecture",
    shapes: &[concat!(
        r"^(?<host_architecture>(?:(?:linux|freebsd)/)?(?:x86_64|amd64|aarch64|arm64|i[3-6]86",
        r"|armv[678]l|(?:ppc|powerpc)64(?:le)?|riscv64|s390x|sparc64|loongarch64|mips64))$",
    )],
    ..FORMAT
};

/// `df` and `lsblk`: they say where file systems are, which nothing asks for.
pub(crate) static LAYOUT: Format = Format {
    name: "disk layout",
    heading: "NAME MAJ:MIN|Filesystem Size|Filesystem 1K-blocks|Filesystem Inodes\
              |Filesystem 1024-blocks|Filesystem Type Size|Filesystem Type 1K-blocks\
              |Filesystem Type Inodes|Filesystem Type 1024-blocks",
    shapes: &[r"^(?:Filesystem|NAME)\s|\s\d+:\d+\s|\d%\s+/|\s-\s+/|^/\S+$"],
    ..FORMAT
};

/// `/proc/mounts` or `mount`: how many of each type.
pub(crate) static MOUNTS: Format = Format {
    name: "mounts",
    shapes: &[
        concat!(
            r"^\S+(?: on)? (?<host_ogive_mount>/\S*)(?: type)? (?<scope>fuse\.ogive[a-z0-9_.]*)",
            r" \(?[a-z]{2}[,\w=.:/+-]*\)?(?: \d \d)?$",
        ),
        concat!(
            r"^\S+(?: on)? /\S*(?: type)? (?<scope>[a-z0-9_.]+)",
            r" \(?[a-z]{2}[,\w=.:/+-]*\)?(?: \d \d)?$",
        ),
    ],
    table: "mounts",
    count: "count",
    ..FORMAT
};

/// `udevadm monitor`: how often each device changed.
pub(crate) static UDEV: Format = Format {
    name: "udevadm monitor",
    words: "KERNEL UDEV",
    shapes: &[r"^(?:KERNEL|UDEV)\s*\[\s*\d+\.\d+\]\s+(?<scope>\w+\s+\S+)\s+\(\w+\)"],
    more: &[r"^monitor will print|^UDEV - |^KERNEL - "],
    table: "udev_events",
    count: "count",
    is_logged: true,
    ..FORMAT
};

/// `strace`: calls by name and error.
pub(crate) static STRACE: Format = Format {
    name: "strace",
    shapes: &[concat!(
        r"^(?:\[pid\s+\d+\]\s+|\d+\s+)?(?:\d+[:.][\d:.]+\s+)?(?<scope>[a-z_][a-z0-9_]*)\(.*\)",
        r"\s*=\s*(?:-?\d+|\?|0x[0-9a-f]+)(?:\s+(?<error>E[A-Z0-9]+)\b)?",
    )],
    more: &[r"^strace: |^\+\+\+|^---"],
    table: "strace",
    count: "calls",
    is_logged: true,
    ..FORMAT
};

/// `time` in any shell and any language: bash and `time -p`, zsh, csh, fish, GNU time with and
/// without `-v`. A bare number is what `| wc -l` printed.
pub(crate) static TIME: Format = Format {
    name: "time",
    shapes: &[
        r"^real\s+(?<run_real>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        r"^user\s+(?<run_user>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        r"^sys\s+(?<run_system>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        concat!(
            r"^(?<run_command>\S.*?)\s+(?<run_user>[\d.,]+)s? user\s+(?<run_system>[\d.,]+)s? system",
            r"\s+\d+% cpu\s+(?<run_real>[\d:.,]+) total$",
        ),
        r"^(?<run_user>[\d.,]+)user (?<run_system>[\d.,]+)system (?<run_real>[\d:.,]+)elapsed",
        r"^(?<run_user>[\d.,]+)u (?<run_system>[\d.,]+)s (?<run_real>[\d:.,]+) [\d.,]+%\s",
        r"^Executed in\s+(?<run_real>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r"^usr time\s+(?<run_user>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r"^sys time\s+(?<run_system>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r#"^Command being timed: *"?(?<run_command>\S.*?)"?$"#,
    ],
    more: &[
        r"^User time \(seconds\): *(?<run_user>\S+)$",
        r"^System time \(seconds\): *(?<run_system>\S+)$",
        r"^Elapsed \(wall clock\) time[^)]*\): *(?<run_real>\S+)$",
        concat!(
            r"^(?:Percent of CPU this job got|Average|Maximum|Major|Minor|Voluntary|Involuntary|Swaps",
            r"|File system|Socket messages|Signals delivered|Page size|Exit status)[^:]*: *\S",
        ),
        r"^\d+inputs\+\d+outputs \(\d+major\+\d+minor\)pagefaults \d+swaps$|^\d+$",
    ],
    ..FORMAT
};

/// `perf stat`: counters of a command, a process or the machine.
pub(crate) static PERF_STAT: Format = Format {
    name: "perf stat",
    words: "Performance",
    shapes: &[
        r"^Performance counter stats for '(?<run_command>[^']*)'",
        r"^Performance counter stats for (?<run_watched>(?:process|thread) id '\d+')",
        r"^Performance counter",
    ],
    more: &[
        r"^(?<run_real>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds time elapsed",
        r"^(?<run_user>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds user",
        r"^(?<run_system>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds sys",
        concat!(
            r"^(?<value>\d[\d., ']*)\s+(?:(?:msec|Joules|ns)\s+)?(?<key>[A-Za-z][\w./:=,-]*)",
            r"(?:.*#\s+(?<run_cpus>[\d.,]+)\s+CPUs utilized)?",
        ),
        r"^<not \w+>|^#",
    ],
    table: "perf_stat",
    ..FORMAT
};

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    fn gauge(text: &str, table: &str, scope: &str, figure: &str) -> Option<f64> {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "x.txt", text.as_bytes());
        finish(&mut evidence);
        Facts::new(evidence).gauge_of(table, scope, figure).ok()
    }

    #[test]
    fn the_figures_of_disks_are_read() {
        let gstat = "dT: 1.001s  w: 1.000s\n L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   \
                     ms/w   %busy Name\n   10     95     15    300  120.5     80   1000   99.1  \
                     100.2| ada3\n    0      3      1      4    0.5      2     16    0.2    0.1| \
                     ada0\n";
        assert_eq!(gauge(gstat, "iostat", "ada3", "util_percent"), Some(100.2));
        assert_eq!(gauge(gstat, "iostat", "ada", "r_await"), Some(120.5));
        let smart = "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  \
                     WHEN_FAILED RAW_VALUE\n197 Current_Pending_Sector  0x0032   200   200   000   \
                      Old_age   Always       -       48\n";
        assert_eq!(gauge(smart, "smart", ".*", "Current_Pending_Sector"), Some(48.0));
        let syncs = "        fdatasync                           120.5 ops/sec    8298 usecs/op\n";
        assert_eq!(gauge(syncs, "pg_test_fsync", "sync", "ops_per_s"), Some(120.5));
    }

    #[test]
    fn the_share_of_each_call_is_read() {
        let calls = concat!(
            "% time     seconds  usecs/call     calls    errors syscall\n",
            "------ ----------- ----------- --------- --------- ----------------\n",
            " 97.50   12.345678        2300      5367        12 fsync\n",
            "  2.50    0.300000           3    100000           read\n",
            "------ ----------- ----------- --------- --------- ----------------\n",
            "100.00   12.645678                105367        12 total\n",
        );
        assert_eq!(gauge(calls, "strace_c", "^fsync$", "time_percent"), Some(97.5));
    }
}
