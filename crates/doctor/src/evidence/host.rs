//! The host, its processes, and how busy it is.

use super::Source;

/// A single statement with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<T> {
    /// The value.
    pub value: T,
    /// Where it was read.
    pub source: Source,
}

/// Facts about the host; `None` means "not shown".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// `linux`, `freebsd`, `illumos`, `macos` or `windows`.
    pub os: Option<Statement<String>>,
    /// Systems whose tools printed some line, each once; a single one is the host's.
    pub os_seen: Vec<Statement<String>>,
    /// Distribution with version, as printed (`Ubuntu 18.04.4`).
    pub distribution: Option<Statement<String>>,
    /// Kernel release (`4.15.0-74-generic`), or FreeBSD release (`14.0-RELEASE-p1`).
    pub kernel: Option<Statement<String>>,
    /// ZFS version text (`0.7.5-1ubuntu16.6`, `0.8.x`, `2.1 to 2.2`), without the `zfs-` prefix.
    /// The kernel module's version has priority.
    pub zfs_version: Option<Statement<String>>,
    /// `Some(false)` if a tool shows that no ZFS module is loaded.
    pub zfs_loaded: Option<Statement<bool>>,
    /// Number of CPUs.
    pub cpus: Option<Statement<u32>>,
    /// Architecture as uname prints it (`x86_64`, `aarch64`).
    pub architecture: Option<Statement<String>>,
    /// Model name of the CPU.
    pub cpu_model: Option<Statement<String>>,
    /// CPU flags, space separated as in /proc/cpuinfo.
    pub cpu_flags: Option<Statement<String>>,
    /// Whether it is a virtual machine.
    pub is_virtual: Option<Statement<bool>>,
    /// Number of NUMA nodes.
    pub numa_nodes: Option<Statement<u32>>,
    /// RAM in bytes.
    pub ram_bytes: Option<Statement<u64>>,
    /// Seconds since boot.
    pub uptime_s: Option<Statement<f64>>,
    /// Load averages of 1, 5 and 15 minutes.
    pub load: Option<Statement<[f64; 3]>>,
    /// Kernel command line.
    pub command_line: Option<Statement<String>>,
    /// The directory of the ogive mount in question, if there is one.
    pub ogive_mount: Option<Statement<String>>,
}

/// How the CPUs of the host were used over one interval, in percent of all CPUs (sums to about
/// 100).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// In user programs, including nice ones.
    pub user: f64,
    /// In the kernel, without interrupts.
    pub system: f64,
    /// Idle.
    pub idle: f64,
    /// Idle with an outstanding disk request.
    pub iowait: f64,
    /// Hard and soft interrupts.
    pub interrupt: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Whether the tool separates user and system. Otherwise `user` has the sum.
    pub is_split: bool,
    /// Whether it is the average since boot (first row of vmstat, first page of `top -n1`), which
    /// is weak evidence.
    pub since_boot: bool,
    /// Where it was read.
    pub source: Source,
}

impl CpuUse {
    /// No use yet, with its source.
    pub fn none(source: Source) -> Self {
        Self { is_split: true, source, ..Self::default() }
    }

    /// The mean of several; `None` if there are none. Its source is that of the first.
    pub fn mean<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let all: Vec<&Self> = all.into_iter().collect();
        let first = all.first()?;
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        let mean = |part: fn(&Self) -> f64| {
            all.iter().map(|one| part(one)).sum::<f64>() / all.len() as f64
        };
        Some(Self {
            user: mean(|one| one.user),
            system: mean(|one| one.system),
            idle: mean(|one| one.idle),
            iowait: mean(|one| one.iowait),
            interrupt: mean(|one| one.interrupt),
            steal: mean(|one| one.steal),
            is_split: all.iter().any(|one| one.is_split),
            since_boot: all.iter().all(|one| one.since_boot),
            source: first.source.clone(),
        })
    }
}

/// How one CPU of several was used.
#[derive(Clone, Debug, PartialEq)]
pub struct OneCpu {
    /// Its number, as printed (`3`).
    pub name: String,
    /// Its use, percent of this CPU.
    pub used: CpuUse,
}

impl OneCpu {
    /// The number of CPUs of the machine, if each is shown; CPUs 44 and 46 alone do not show it.
    pub fn number(shown: &[Self]) -> Option<usize> {
        let last = shown.iter().filter_map(|one| one.name.parse::<usize>().ok()).max();
        let all = shown.len() > 1 && last.is_none_or(|last| last <= shown.len());
        all.then_some(shown.len())
    }
}

/// One thread, or one process where the tool does not show threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Name without brackets; any CPU or queue number stays as printed (`z_fr_iss_3`).
    /// `zfskern{arc_prune}` becomes `arc_prune`.
    pub name: String,
    /// The whole command line or a printed suffix, if any.
    pub command: Option<String>,
    /// Number of the thread (TID) or process.
    pub id: Option<u64>,
    /// Whether it is a kernel thread, if known (brackets, VIRT 0, parent 2).
    pub kernel: Option<bool>,
    /// State letter (`R`, `S`, `D`, `Z`, ...).
    pub state: Option<char>,
    /// Percent of ONE CPU during an interval (`top`, `pidstat`, two readings); `None` if not shown.
    pub cpu_percent: Option<f64>,
    /// The system part of `cpu_percent`, in percent of ONE CPU, if the tool separates it.
    pub system_percent: Option<f64>,
    /// Percent of ALL CPUs during an interval, from tools that do not print the number of CPUs
    /// (Windows, busybox, illumos). Once that is known, `cpu_percent` replaces it.
    pub machine_percent: Option<f64>,
    /// Percent of one CPU averaged over its life (`ps`).
    pub life_percent: Option<f64>,
    /// CPU time used over its life, seconds.
    pub cpu_time_s: Option<f64>,
    /// Number of threads that this row represents (1, unless the source counts).
    pub count: u64,
    /// Number of the list within its input; each page of `top` is a list. A thread may be in
    /// several.
    pub list: u32,
    /// Number of its process, for a thread if the source prints it.
    pub process: Option<u64>,
    /// Set if the row represents processes that ended during the interval: the name of their
    /// parent.
    pub children_of: Option<String>,
    /// Where it was read.
    pub source: Source,
}

impl Thread {
    /// A row with only a name.
    pub fn named(name: String, list: u32, source: Source) -> Self {
        Self { name, count: 1, list, source, ..Self::default() }
    }
}

/// A command that was timed (`time zfs list`).
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The command line, or another description of the timed work.
    pub command: String,
    /// Wall clock, seconds.
    pub real_s: f64,
    /// CPU in user space, seconds.
    pub user_s: f64,
    /// CPU in the kernel, seconds.
    pub system_s: f64,
    /// Where it was read.
    pub source: Source,
}
