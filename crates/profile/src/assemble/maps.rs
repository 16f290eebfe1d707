//! The address ranges of the kernel and its modules in a recording.

/// The kernel itself, as perf calls it.
pub(super) const KERNEL: &str = "[kernel.kallsyms]";
/// Modules at most.
const MAPS_MAX: usize = 65_536;

/// The kernel or a module in memory.
#[derive(Debug, Clone)]
pub(super) struct KernelMap {
    pub(super) start: u64,
    end: u64,
    /// `[kernel.kallsyms]`, `[zfs]`.
    pub(super) name: String,
    /// The path that the recording gives.
    pub(super) path: String,
}

/// The map of the kernel.
#[derive(Debug, Default)]
pub(super) struct KernelMaps {
    maps: Vec<KernelMap>,
}

impl KernelMaps {
    pub(super) fn add(&mut self, start: u64, len: u64, name: &str, path: &str) {
        let at = self.maps.partition_point(|map| map.start < start);
        let map = KernelMap {
            start,
            end: start.saturating_add(len),
            name: name.to_owned(),
            path: path.to_owned(),
        };
        if let Some(same) = self.maps.get_mut(at).filter(|same| same.start == start) {
            *same = map;
        } else if self.maps.len() < MAPS_MAX {
            self.maps.insert(at, map);
        }
    }

    pub(super) fn find(&self, address: u64) -> Option<&KernelMap> {
        let after = self.maps.partition_point(|map| map.start <= address);
        // The kernel's own map may overlap those of its modules.
        self.maps[..after].iter().rev().take(64).find(|map| address < map.end)
    }
}

/// perf's name for the kernel map of a path: `/lib/modules/6.1.0/extra/zfs.ko.xz` is `[zfs]`.
pub(crate) fn kernel_module_name(path: &str) -> String {
    if path.starts_with(KERNEL) || path.starts_with("[guest.kernel.kallsyms") {
        return KERNEL.to_owned();
    }
    if path.starts_with('[') {
        return path.replace('-', "_");
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.find(".ko") {
        Some(end) => format!("[{}]", file[..end].replace('-', "_")),
        None => KERNEL.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_found_by_address_under_perfs_name() {
        let mut maps = KernelMaps::default();
        maps.add(1000, 100, "[zfs]", "[zfs]");
        maps.add(0, 5000, KERNEL, "[kernel.kallsyms]_text");
        assert_eq!(maps.find(1050).unwrap().name, "[zfs]");
        assert_eq!(maps.find(1200).unwrap().name, KERNEL);
        assert!(maps.find(6000).is_none());
        for (path, name) in [
            ("[kernel.kallsyms]_stext", KERNEL),
            ("/lib/modules/6.1/extra/zfs.ko", "[zfs]"),
            ("/lib/modules/6.1/updates/dkms/snd-seq.ko.zst", "[snd_seq]"),
            ("[icp]", "[icp]"),
            ("/usr/lib/debug/boot/vmlinux-6.1", KERNEL),
        ] {
            assert_eq!(kernel_module_name(path), name, "{path}");
        }
    }
}
