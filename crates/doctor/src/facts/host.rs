//! What the host is, and what its versions mean.

use super::{Facts, Known, Missing, absent};
use crate::atlas::version::{Version, list, parse_versions, range_lacks};
use crate::evidence::Statement;

impl Facts {
    fn said<T: Clone>(&self, fact: Option<&Statement<T>>, what: &str) -> Known<T> {
        match fact {
            Some(said) => {
                self.used(&said.source);
                Ok(said.value.clone())
            }
            None => absent(what),
        }
    }

    /// Operating system: as uname says, or else the one system whose tools printed what is there.
    pub fn os(&self) -> Known<String> {
        let host = &self.evidence().host;
        let seen = if let [only] = host.os_seen.as_slice() { Some(only) } else { None };
        self.said(host.os.as_ref().or(seen), "the operating system (uname -a)")
    }

    /// Distribution.
    pub fn distribution(&self) -> Known<String> {
        self.said(self.evidence().host.distribution.as_ref(), "the distribution (/etc/os-release)")
    }

    /// Kernel or operating system release.
    pub fn kernel(&self) -> Known<String> {
        self.said(self.evidence().host.kernel.as_ref(), "the kernel release (uname -r)")
    }

    /// Version of ZFS as printed.
    pub fn zfs_version(&self) -> Known<String> {
        self.said(self.evidence().host.zfs_version.as_ref(), "the version of ZFS (zfs version)")
    }

    /// Number of CPUs.
    pub fn ncpu(&self) -> Known<f64> {
        self.said(self.evidence().host.cpus.as_ref(), "the number of CPUs (nproc)").map(f64::from)
    }

    /// RAM, bytes.
    pub fn ram_bytes(&self) -> Known<f64> {
        #[expect(clippy::cast_precision_loss, reason = "RAM to within a page")]
        let known = self
            .said(self.evidence().host.ram_bytes.as_ref(), "RAM (/proc/meminfo)")
            .map(|bytes| bytes as f64);
        known.or_else(|_| self.gauge("meminfo.MemTotal_bytes"))
    }

    /// Seconds since boot.
    pub fn uptime_s(&self) -> Known<f64> {
        self.said(self.evidence().host.uptime_s.as_ref(), "the time since boot (uptime)")
    }

    /// Load average of one minute.
    pub fn load1(&self) -> Known<f64> {
        self.said(self.evidence().host.load.as_ref(), "the load average (uptime)")
            .map(|load| load[0])
    }

    /// Load average of fifteen minutes.
    pub fn load15(&self) -> Known<f64> {
        self.said(self.evidence().host.load.as_ref(), "the load average (uptime)")
            .map(|load| load[2])
    }

    /// Whether the ZFS module is loaded: said, or to be seen from its kstats, threads, modules or
    /// pools.
    pub fn zfs_loaded(&self) -> Known<bool> {
        let evidence = self.evidence();
        if evidence.host.zfs_loaded.is_some() {
            return self.said(evidence.host.zfs_loaded.as_ref(), "");
        }
        let kstats = ["arcstats", "dbufstats", "txgs", "zfetchstats", "spl_slab"];
        let seen = kstats.iter().any(|table| self.has_table(table))
            || !evidence.pools.is_empty()
            || evidence.host.zfs_version.is_some()
            || evidence.threads.iter().any(|thread| super::is_zfs_thread(&thread.name))
            || self.zfs_share().is_ok_and(|share| share > 0.0);
        if seen { Ok(true) } else { absent("whether ZFS is loaded (lsmod | grep zfs)") }
    }

    /// Whether the CPU has a feature, by /proc/cpuinfo's name.
    pub fn cpu_has(&self, flag: &str) -> Known<bool> {
        let flags =
            self.said(self.evidence().host.cpu_flags.as_ref(), "CPU flags (/proc/cpuinfo)")?;
        Ok(flags.split_whitespace().any(|known| known.eq_ignore_ascii_case(flag)))
    }

    /// Model of the CPU.
    pub fn cpu_model(&self) -> Known<String> {
        self.said(self.evidence().host.cpu_model.as_ref(), "the CPU (lscpu)")
    }

    /// Whether the host is a virtual machine.
    pub fn is_virtual(&self) -> Known<bool> {
        if let Ok(flags) = self.cpu_has("hypervisor") {
            return Ok(flags);
        }
        match self.note("virtual") {
            Ok(text) => Ok(!text.eq_ignore_ascii_case("no")),
            Err(_) => absent("whether it is a virtual machine (systemd-detect-virt)"),
        }
    }

    /// Number of NUMA nodes: at least, where "more than one" is all that was said.
    pub fn numa_nodes(&self) -> Known<f64> {
        if let Ok(text) = self.note("numa nodes") {
            let first = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            return Ok(first.unwrap_or(if text.contains("more than one") { 2.0 } else { 1.0 }));
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

    /// Whether it is an ogive mount that is asked about.
    pub fn is_ogive(&self) -> bool {
        // A host may well have such a mount and be asked about for itself.
        self.has_table("ogivestats")
    }

    /// Whether the installed ZFS lacks a fix that first came with these releases (`2.1.3, 2.2.0`).
    pub fn zfs_before(&self, fixed: &str) -> Known<bool> {
        let fixed =
            list(fixed).ok_or_else(|| Missing::Wrong(format!("{fixed} is no list of versions")))?;
        let range = self.zfs_range()?;
        match range_lacks(range, &fixed) {
            Some(answer) => Ok(answer),
            None => absent("the exact version of ZFS (zfs version)"),
        }
    }

    /// Whether the installed ZFS is at least this release.
    pub fn zfs_at_least(&self, version: &str) -> Known<bool> {
        let wanted = list(version).and_then(|list| list.first().copied());
        let wanted = wanted.ok_or_else(|| Missing::Wrong(format!("{version} is no version")))?;
        between(self.zfs_range()?, wanted, "the exact version of ZFS (zfs version)")
    }

    /// Lowest and highest version of ZFS it can be.
    pub fn zfs_range(&self) -> Known<(Version, Version)> {
        // What a person says may be more exact than `0.8.x`; the narrower of the two counts.
        let printed = self.zfs_version().ok().and_then(|text| parse_versions(&text));
        let noted = self.note("zfs version").ok().and_then(|text| parse_versions(&text));
        match (printed, noted) {
            (Some(printed), Some(noted)) if noted.0 >= printed.0 && noted.1 <= printed.1 => {
                Ok(noted)
            }
            (Some(range), _) | (None, Some(range)) => Ok(range),
            (None, None) => absent("the version of ZFS (zfs version)"),
        }
    }

    /// Whether the kernel is at least this release.
    pub fn kernel_at_least(&self, version: &str) -> Known<bool> {
        let wanted = list(version).and_then(|list| list.first().copied());
        let wanted = wanted.ok_or_else(|| Missing::Wrong(format!("{version} is no version")))?;
        let kernel = self.kernel()?;
        match parse_versions(&kernel) {
            Some(range) => between(range, wanted, "the kernel release (uname -r)"),
            None => absent("the kernel release (uname -r)"),
        }
    }
}

fn between(range: (Version, Version), wanted: Version, what: &str) -> Known<bool> {
    match (range.0 >= wanted, range.1 >= wanted) {
        (true, _) => Ok(true),
        (false, false) => Ok(false),
        (false, true) => absent(what),
    }
}
