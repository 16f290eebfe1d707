//! Facts that a host prints about itself.

use crate::read::lines::{FORMAT, Format};

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
    heading: "# ========",
    shapes: &[
        r"^#\s*os release : (?<host_kernel>.*)$",
        r"^#\s*nrcpus online : (?<host_cpus>\d+)$",
        r"^#\s*arch : (?<host_architecture>.*)$",
        r"^#\s*cpudesc : (?<host_cpu_model>.*)$",
        r"^#\s*total memory : (?<host_ram_kib>\d+) kB$",
    ],
    more: &[r"^#"],
    ..FORMAT
};

/// `modinfo` of zfs: the version. It prints descriptions of parameters, not values.
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

/// The table at the head of OpenZFS's form for bug reports. Each year's form has other words for
/// the same rows, with bars around the cells or a colon between them. An empty cell has no
/// information.
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

/// `NAME="value"`: settings of programs, and the system's name in os-release.
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

/// `uname`, `zfs version`, and the first lines of tools with the same information.
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
        r"^ogive \d+\.\d+\.\d+\S*$",
    ],
    more: &[
        r"^v?(?<host_zfs_version>[0-2]\.\d+\.\d+[\w.+~-]*)$",
        r"^(?<host_os>Linux) \S+ \S+(?<host_architecture>\s.*)$",
    ],
    ..FORMAT
};

/// The output of `uname -m` or `arch`, or the platform of an image.
pub(crate) static ARCHITECTURE: Format = Format {
    name: "architecture",
    shapes: &[concat!(
        r"^(?<host_architecture>(?:(?:linux|freebsd)/)?(?:x86_64|amd64|aarch64|arm64|i[3-6]86",
        r"|armv[678]l|(?:ppc|powerpc)64(?:le)?|riscv64|s390x|sparc64|loongarch64|mips64))$",
    )],
    ..FORMAT
};

/// `df` and `lsblk`: the places of file systems, which no rule needs.
pub(crate) static LAYOUT: Format = Format {
    name: "disk layout",
    heading: "NAME MAJ:MIN|Filesystem Size|Filesystem 1K-blocks|Filesystem Inodes\
              |Filesystem 1024-blocks|Filesystem Type Size|Filesystem Type 1K-blocks\
              |Filesystem Type Inodes|Filesystem Type 1024-blocks",
    shapes: &[r"^(?:Filesystem|NAME)\s|\s\d+:\d+\s|\d%\s+/|\s-\s+/|^/\S+$"],
    ..FORMAT
};

/// `/proc/mounts` or `mount`: the number of mounts of each type.
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

/// `udevadm monitor`: the number of changes of each device.
pub(crate) static UDEV: Format = Format {
    name: "udevadm monitor",
    shapes: &[r"^(?:KERNEL|UDEV)\s*\[\s*\d+\.\d+\]\s+(?<scope>\w+\s+\S+)\s+\(\w+\)"],
    more: &[r"^monitor will print|^UDEV - |^KERNEL - "],
    table: "udev_events",
    count: "count",
    is_logged: true,
    ..FORMAT
};

/// Logged-in users in the output of `w`: terminals and times, which do not describe the host.
pub(crate) static LOGINS: Format = Format {
    name: "w",
    heading: "USER TTY FROM LOGIN@|USER TTY LOGIN@",
    shapes: &[r"^\S+\s+(?:pts/|tty|console|seat|hvc|v0|:|-)\S*(?:\s+\S+){3,}$"],
    ..FORMAT
};

/// `/proc/loadavg`.
pub(crate) static LOADAVG: Format = Format {
    name: "loadavg",
    shapes: &[concat!(
        r"^(?<host_load>\d+\.\d\d \d+\.\d\d \d+\.\d\d) (?<running>\d+)/(?<threads>\d+)",
        r" (?<last_pid>\d+)$",
    )],
    table: "loadavg",
    ..FORMAT
};

/// `uptime`, the first line of `w`, and the line above the list of `top`: load and uptime, in any
/// language and with any decimal mark.
pub(crate) static UPTIME: Format = Format {
    name: "uptime",
    words: "up average: averages: average averages",
    is_joint: true,
    shapes: &[
        concat!(
            r"load averages?:\s*(?<host_load>\d+[.,]\d+(?:,\s*|\s+)\d+[.,]\d+(?:,\s*|\s+)\d+[.,]\d+)",
            r"|\p{L}\s?:\s*(?<host_load_any>\d+[.,]\d\d(?:,\s*|\s+)\d+[.,]\d\d(?:,\s*|\s+)\d+[.,]\d\d)$",
        ),
        // `up 90 days, 1:05`, FreeBSD's `up 3+04:05:06`.
        concat!(
            r"\bup\s+(?:(?<host_up_d>\d+)\s*(?:days?\(?s?\)?|\+)[,\s]*)?",
            r"(?:(?<host_up_h>\d+):(?<host_up_m>\d\d)(?::(?<host_up_s>\d\d))?",
            r"|(?<host_up_minutes>\d+)\s*min|(?<host_up_hours>\d+)\s*hrs?|(?<host_up_seconds>\d+)\s*secs?)?",
        ),
    ],
    ..FORMAT
};

/// `/proc/uptime`, and times of capture.
pub(crate) static PROC_UPTIME: Format = Format {
    name: "proc uptime",
    shapes: &[r"^(?<host_up_s>\d+\.\d\d) \d+\.\d\d$", r"^begin (?<begin_s>\d+\.\d+) end \d+\.\d+$"],
    table: "captured",
    each: true,
    ..FORMAT
};

/// `/proc/stat`, which counts since boot.
pub(crate) static PROC_STAT: Format = Format {
    name: "proc stat",
    heading: "",
    shapes: &[
        concat!(
            r"^cpu\s+(?<counter_user_ticks>\d+) (?<counter_nice_ticks>\d+) (?<counter_system_ticks>\d+)",
            r" (?<counter_idle_ticks>\d+) (?<counter_iowait_ticks>\d+) (?<counter_irq_ticks>\d+)",
            r"(?: (?<counter_softirq_ticks>\d+))?(?: (?<counter_steal_ticks>\d+))?",
        ),
        r"^cpu(?<host_processor>\d+) ",
        r"^(?<key>ctxt|processes|intr|softirq) (?<counter_value>\d+)",
        r"^(?<key>procs_running|procs_blocked) (?<value>\d+)",
        r"^btime ",
    ],
    table: "proc_stat",
    ..FORMAT
};

/// ZFS's own log.
pub(crate) static DBGMSG: Format = Format {
    name: "dbgmsg",
    heading: "timestamp message",
    shapes: &[r"^\d{9,}\s+(?<message>\S.*)$", r"^\d+ \d+ 0x"],
    more: &[r"^\d{9,}\s+\S"],
    ..FORMAT
};
