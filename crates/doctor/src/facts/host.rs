//! Facts of the host, and the meaning of its versions.

use super::{Facts, Fallback, Known, Missing, absent};
use crate::atlas;
use crate::atlas::fixes::versions;
use crate::atlas::version::{Version, parse_versions, range_lacks};
use crate::evidence::Statement;
use crate::pattern::Pattern;

/// Names that only ZFS has.
static NAMES_OF_ZFS: Pattern = Pattern::new(concat!(
    r"(?i)zfs|zpool|\bl2arc|\barc(?:stats?)?\b|\barc_|\btxg|\bzvols?\b|\bvdev|raid-?z",
    r"|\bspl_|\bdnode|\bdbuf|\bzio_|\bz_(?:rd|wr|fr|cl|null|ioctl)_|\bresilver",
    r"|\biocage\b|\bsanoid\b|\bsyncoid\b|\bzrepl\b|\btruenas\b",
));

/// Words of ZFS that other systems have as well.
static WORDS_OF_ZFS: Pattern = Pattern::new(concat!(
    r"(?i)\bl?2?arc(?:stats?)?\b|\bzil\b|\bslog\b|\bpools?\b|\bdataset|\brecordsize|\bsnapshots?\b",
    r"|\bsolaris\b|\billumos\b|\bsmartos\b",
));

/// A line of text that says that the host has no ZFS.
static WITHOUT_ZFS: Pattern = Pattern::new(concat!(
    r"(?i)\bzfs(?: kernel)?(?: module)?s?\b:?(?: (?:is|was|are))?",
    r" not (?:loaded|installed|used|in use)\b",
    r"|\b(?:without|no) zfs (?:module|at all|here|is|on)\b|\bdo(?:es)? not (?:use|have) zfs\b",
));

/// Names of systems in texts.
static SYSTEM_NAMES: [(&str, Pattern); 5] = [
    ("linux", Pattern::new(r"\b(?i:Linux|Ubuntu|Debian|CentOS|RHEL|Fedora|Proxmox|systemd)\b")),
    ("freebsd", Pattern::new(r"\b(?:FreeBSD|OPNsense|pfSense|TrueNAS CORE)\b")),
    ("illumos", Pattern::new(r"\b(?:illumos|SmartOS|OmniOS|OpenIndiana|Solaris)\b")),
    ("macos", Pattern::new(r"\b(?:macOS|OS X|MacBook|Activity Monitor)\b")),
    ("windows", Pattern::new(r"\b(?:Windows (?:\d+|Server)|Task Manager)\b")),
];

/// The number of functions of a profile that are checked for one of ZFS.
const FUNCTIONS: usize = 50;

impl Facts {
    fn stated<T: Clone>(&self, fact: Option<&Statement<T>>, what: &str) -> Known<T> {
        match fact {
            Some(statement) => {
                self.used(&statement.source);
                Ok(statement.value.clone())
            }
            None => absent(what),
        }
    }

    /// The operating system by uname, otherwise the one system whose tools printed the inputs.
    pub fn os(&self) -> Known<String> {
        let host = &self.evidence().host;
        let seen = if let [only] = host.os_seen.as_slice() { Some(only) } else { None };
        self.stated(host.os.as_ref().or(seen), "the operating system (uname -a)")
    }

    /// The operating system, otherwise the only one that names of processes or unread lines name.
    /// It decides only which commands are shown.
    pub fn os_or_named(&self) -> Option<String> {
        if let Ok(os) = self.os() {
            return Some(os);
        }
        let evidence = self.evidence();
        let runs = |names: &[&str]| {
            evidence.threads.iter().any(|thread| names.contains(&thread.name.as_str()))
        };
        if runs(&["svchost", "svchost.exe", "explorer.exe", "vmmem", "MsMpEng"]) {
            return Some("windows".to_owned());
        }
        if runs(&["kernel_task", "WindowServer", "launchd", "mds_stores"]) {
            return Some("macos".to_owned());
        }
        let unread = &evidence.not_understood;
        let named = |names: &Pattern| unread.iter().any(|line| names.is_match(&line.value));
        let mut systems = SYSTEM_NAMES.iter().filter(|(_, names)| named(names));
        let (only, another) = (systems.next()?, systems.next());
        another.is_none().then(|| only.0.to_owned())
    }

    /// Kernel or operating system release.
    pub fn kernel(&self) -> Known<String> {
        self.stated(self.evidence().host.kernel.as_ref(), "the kernel release (uname -r)")
    }

    /// Version of ZFS as printed.
    pub fn zfs_version(&self) -> Known<String> {
        self.stated(self.evidence().host.zfs_version.as_ref(), "the version of ZFS (zfs version)")
    }

    /// Number of CPUs.
    pub fn ncpu(&self) -> Known<f64> {
        self.stated(self.evidence().host.cpus.as_ref(), "the number of CPUs (nproc)").map(f64::from)
    }

    /// RAM, bytes.
    pub fn ram_bytes(&self) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "RAM to within a page")]
        let known = self
            .stated(self.evidence().host.ram_bytes.as_ref(), "RAM (/proc/meminfo)")
            .map(|bytes| bytes as f64);
        known.or_else(|_| self.gauge("meminfo.MemTotal_bytes"))
    }

    /// Seconds since boot.
    pub fn uptime_s(&self) -> Known<f64> {
        self.stated(self.evidence().host.uptime_s.as_ref(), "the time since boot (uptime)")
    }

    /// Load average of one minute.
    pub fn load1(&self) -> Known<f64> {
        self.stated(self.evidence().host.load.as_ref(), "the load average (uptime)")
            .map(|load| load[0])
    }

    /// Whether the ZFS module is loaded: a statement, or evidence from its kstats, threads, modules
    /// or pools.
    pub fn zfs_loaded(&self) -> Known<bool> {
        let evidence = self.evidence();
        if evidence.host.zfs_loaded.is_some() {
            return self.stated(evidence.host.zfs_loaded.as_ref(), "");
        }
        let kstats = ["arcstats", "dbufstats", "txgs", "zfetchstats", "spl_slab"];
        let seen = kstats.iter().any(|table| self.has_table(table))
            || !evidence.pools.is_empty()
            || evidence.host.zfs_version.is_some()
            || self.lists_zfs()
            || self.zfs_share().is_ok_and(|share| share > 0.0);
        if seen {
            return Ok(true);
        }
        if self.falls_back_to(Fallback::UnreadLines)
            && let Some(line) = self.statement_without_zfs()
        {
            self.used(&line.source);
            return Ok(false);
        }
        absent("whether ZFS is loaded (lsmod | grep zfs)")
    }

    /// The unread line that states that the host has no ZFS. It is no measurement. With it, a cause
    /// that needs ZFS is no hint, and a cause that needs its absence may be one.
    pub fn statement_without_zfs(&self) -> Option<&Statement<String>> {
        self.evidence().not_understood.iter().find(|line| WITHOUT_ZFS.is_match(&line.value))
    }

    /// Whether the evidence names ZFS by a word that no other system has.
    pub fn names_zfs(&self) -> bool {
        self.speaks_of(&|text| NAMES_OF_ZFS.is_match(text))
    }

    /// Whether the evidence mentions ZFS, or a word for one of its parts.
    pub fn hints_at_zfs(&self) -> bool {
        self.speaks_of(&|text| NAMES_OF_ZFS.is_match(text) || WORDS_OF_ZFS.is_match(text))
    }

    fn speaks_of(&self, is_of_zfs: &dyn Fn(&str) -> bool) -> bool {
        let evidence = self.evidence();
        let settings = || {
            let modules = evidence.parameters.iter().map(|one| one.name.as_str());
            !evidence.properties.is_empty() || modules.into_iter().any(is_of_zfs)
        };
        let frames = || {
            let stacks = evidence.kernel_stacks.iter().flat_map(|stack| &stack.frames);
            stacks.chain(evidence.locks.iter().flat_map(|one| &one.callers))
        };
        let on_stacks = || {
            frames().any(|frame| frame.module.as_deref().is_some_and(super::is_zfs_module))
                || frames().filter_map(|frame| frame.symbol.as_deref()).any(|symbol| {
                    let own = atlas::subsystem_of(symbol, None, None);
                    own.is_some_and(|own| !atlas::is_of_kernel(own))
                })
        };
        let tools = || {
            let formats = evidence.inputs.iter().flat_map(|input| &input.formats);
            let tables = evidence.tables.iter().map(|table| &table.name);
            let commands = evidence.timings.iter().map(|timing| &timing.command);
            let names = evidence.threads.iter().map(|thread| &thread.name);
            let locks = evidence.locks.iter().map(|one| &one.lock);
            formats
                .chain(tables)
                .chain(commands)
                .chain(names)
                .chain(locks)
                .any(|text| is_of_zfs(text))
        };
        let words = || {
            let mut lines = evidence.not_understood.iter().chain(&evidence.log);
            lines.any(|line| is_of_zfs(&line.value))
        };
        let profiled = || {
            self.top_symbols(FUNCTIONS).iter().any(|(symbol, module, _)| {
                let own = atlas::subsystem_of(symbol, Some(module), None);
                own.is_some_and(|own| !atlas::is_of_kernel(own))
            })
        };
        profiled()
            || self.zfs_loaded() == Ok(true)
            || settings()
            || on_stacks()
            || tools()
            || words()
    }

    /// Whether the CPU has a feature, by its name in /proc/cpuinfo.
    pub fn cpu_has(&self, flag: &str) -> Known<bool> {
        let flags =
            self.stated(self.evidence().host.cpu_flags.as_ref(), "CPU flags (/proc/cpuinfo)")?;
        Ok(flags.split_whitespace().any(|known| known.eq_ignore_ascii_case(flag)))
    }

    /// Model of the CPU.
    pub fn cpu_model(&self) -> Known<String> {
        self.stated(self.evidence().host.cpu_model.as_ref(), "the CPU (lscpu)")
    }

    /// Whether the host is a virtual machine.
    pub fn is_virtual(&self) -> Known<bool> {
        if let Ok(flags) = self.cpu_has("hypervisor") {
            return Ok(flags);
        }
        let statement = self.evidence().host.is_virtual.as_ref();
        self.stated(statement, "whether it is a virtual machine (systemd-detect-virt)")
    }

    /// Number of NUMA nodes.
    pub fn numa_nodes(&self) -> Known<f64> {
        if let Some(nodes) = &self.evidence().host.numa_nodes {
            self.used(&nodes.source);
            return Ok(f64::from(nodes.value));
        }
        let mut nodes = std::collections::BTreeSet::new();
        for table in self.evidence().tables.iter().filter(|table| table.name == "buddyinfo") {
            let scope = table.scope.as_deref().unwrap_or("").to_ascii_lowercase();
            if let Some(node) =
                scope.strip_prefix("node ").and_then(|rest| rest.split([' ', ',']).next())
            {
                nodes.insert(node.to_owned());
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of nodes")]
        if nodes.is_empty() { absent("NUMA nodes (lscpu)") } else { Ok(nodes.len() as f64) }
    }

    /// Whether the question is about an ogive mount.
    pub fn is_ogive(&self) -> bool {
        // A host with such a mount may be the question itself.
        self.has_table("ogivestats")
    }

    /// Whether the installed ZFS lacks a fix that first came with these releases (`2.1.3, 2.2.0`).
    pub fn zfs_before(&self, fixed: &str) -> Known<bool> {
        let fixed = versions(fixed)
            .ok_or_else(|| Missing::Wrong(format!("{fixed} is no list of versions")))?;
        let range = self.zfs_range()?;
        match range_lacks(range, &fixed) {
            Some(answer) => Ok(answer),
            None => absent("the exact version of ZFS (zfs version)"),
        }
    }

    /// Whether the installed ZFS is at least this release.
    pub fn zfs_at_least(&self, version: &str) -> Known<bool> {
        let release = versions(version).and_then(|list| list.first().copied());
        let release = release.ok_or_else(|| Missing::Wrong(format!("{version} is no version")))?;
        between(self.zfs_range()?, release, "the exact version of ZFS (zfs version)")
    }

    /// The lowest and highest possible version of ZFS.
    pub fn zfs_range(&self) -> Known<(Version, Version)> {
        let printed = self.zfs_version().ok().and_then(|text| parse_versions(&text));
        printed.map_or_else(|| absent("the version of ZFS (zfs version)"), Ok)
    }

    /// Whether the kernel is at least this release.
    pub fn kernel_at_least(&self, version: &str) -> Known<bool> {
        let release = versions(version).and_then(|list| list.first().copied());
        let release = release.ok_or_else(|| Missing::Wrong(format!("{version} is no version")))?;
        let kernel = self.kernel()?;
        match parse_versions(&kernel) {
            Some(range) => between(range, release, "the kernel release (uname -r)"),
            None => absent("the kernel release (uname -r)"),
        }
    }
}

fn between(range: (Version, Version), release: Version, what: &str) -> Known<bool> {
    match (range.0 >= release, range.1 >= release) {
        (true, _) => Ok(true),
        (false, false) => Ok(false),
        (false, true) => absent(what),
    }
}
