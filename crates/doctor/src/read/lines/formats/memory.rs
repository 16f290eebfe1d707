//! Memory, interrupts, RAID arrays and task queues of kernels.

use crate::read::lines::{FORMAT, Format};

const KIB: f64 = 1024.0;

/// `/proc/spl/kmem/slab`. Caches that use the kernel's own allocator show no size; their allocated
/// bytes are the total.
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
        if slab.value("size_bytes").is_none() {
            slab.derive("size_bytes", slab.value("alloc_bytes"));
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
            let bytes = slab.value(count).zip(slab.value("object_bytes"));
            slab.derive(sum, bytes.map(|(count, bytes)| count * bytes));
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

/// Interrupts of FreeBSD and illumos: the number since boot, and the average per second.
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
/// kernel work that is not ZFS's. An array's table has its state; progress and speed only exist
/// during such work.
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

/// `procinfo`: use of the CPUs since boot with paging, memory, swap and load, and the interrupts by
/// line. User time includes guests.
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

/// Rows that identify `/proc/meminfo`.
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

/// The SPL's `taskq` and `taskq-all`: threads of each queue; waiting tasks come below.
pub(crate) static TASKQ: Format = Format {
    name: "task queues",
    heading: "taskq act nthr spwn",
    shapes: &[concat!(
        r"^(?<scope>\S+)\s+(?<active>\d+)\s+(?<threads>\d+)\s+(?<spawning>\d+)",
        r"\s+(?<threads_max>\d+)(?:\s+\S+){4,}$",
    )],
    more: &[r"^(?:active|pend|prio|delay|wait): |^\S*\(0x"],
    table: "taskq",
    each: true,
    ..FORMAT
};
