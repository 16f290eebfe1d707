//! Tables of functions that implement locking and of OpenZFS's locks by the waiting function, and
//! the kernel variables that are locks.

/// Prefixes of functions that implement locking, and of those that a tracepoint adds to a stack.
const LOCKING: [&str; 31] = [
    "__traceiter_",
    "trace_",
    "__bpf_trace",
    "perf_",
    "bpf_",
    "native_queued_",
    "queued_",
    "__pv_queued_",
    "pv_queued_",
    "kvm_wait",
    "_raw_",
    "__raw_",
    "do_raw_",
    "raw_spin_",
    "mutex_lock",
    "mutex_trylock",
    "__mutex_",
    "ww_mutex_",
    "__ww_mutex_",
    "osq_",
    "rwsem_",
    "down_",
    "__down",
    "up_",
    "rt_mutex_",
    "rt_spin_",
    "rtlock_",
    "__rt_mutex_",
    "percpu_",
    "__percpu_",
    "schedule",
];

/// Whether a function is part of locking instead of a caller of it.
pub(super) fn is_locking(function: &str) -> bool {
    matches!(function, "down" | "up" | "__schedule" | "preempt_schedule")
        || LOCKING.iter().any(|head| function.starts_with(head))
}

/// OpenZFS's locks by the prefix of the waiting function; the longest match counts. From the
/// sources of all releases since 0.6.5: the lock that each function takes first or holds longest.
const ZFS: &[(&str, &str)] = &[
    ("abd_", "an ABD's lock"),
    ("arc_access", "b_l1hdr.b_freeze_lock or a sublist's lock (ARC)"),
    ("arc_adapt", "arc_evict_lock (ARC)"),
    ("arc_buf_", "hash_lock (one of the ARC's hash table)"),
    ("arc_evict_state", "mls_lock (a sublist of an ARC list)"),
    ("arc_evict", "arc_evict_lock (ARC)"),
    ("arc_get_data", "arc_evict_lock (ARC waits for eviction)"),
    ("arc_read", "hash_lock (one of the ARC's hash table)"),
    ("arc_release", "hash_lock (one of the ARC's hash table)"),
    ("arc_wait_for_eviction", "arc_evict_lock (ARC waits for eviction)"),
    ("brt_", "brt_lock (block cloning)"),
    ("buf_hash_", "hash_lock (one of the ARC's hash table)"),
    ("bpobj_", "bpo_lock (a list of freed blocks)"),
    ("dbuf_evict", "dbuf_evict_lock or a sublist's lock (dbuf cache)"),
    ("dbuf_find", "hash_mutexes (one of the dbuf hash table)"),
    ("dbuf_hash_", "hash_mutexes (one of the dbuf hash table)"),
    ("dbuf_", "db_mtx (a dbuf)"),
    ("ddt_", "ddt_lock (deduplication table)"),
    ("dmu_buf_", "db_mtx (a dbuf)"),
    ("dmu_object_alloc", "os_obj_lock (object allocator of a file system)"),
    ("dmu_objset_", "os_lock or os_user_ptr_lock (an object set)"),
    ("dmu_tx_", "tc_lock or tx_sync_lock (transactions)"),
    ("dmu_zfetch", "zf_lock (prefetch streams of a file)"),
    ("dnode_", "dn_mtx or dn_struct_rwlock (a dnode)"),
    ("dsl_dataset_", "ds_lock (a dataset)"),
    ("dsl_dir_", "dd_lock (a dataset's directory)"),
    ("dsl_pool_", "dp_lock or dp_config_rwlock (a pool)"),
    ("dsl_scan_", "scn_queue lock (scrub or resilver)"),
    ("l2arc_", "l2arc_dev_mtx or l2ad_mtx (L2ARC)"),
    ("metaslab_class_", "mc_lock (allocation class)"),
    ("metaslab_group_", "mg_lock (metaslabs of a vdev)"),
    ("metaslab_", "ms_lock (a metaslab)"),
    ("multilist_", "mls_lock (a sublist of an ARC or dbuf list)"),
    ("rrm_", "z_teardown_lock (a mounted file system)"),
    ("rrw_", "z_teardown_lock (a mounted file system)"),
    ("sa_", "sa_lock (system attributes)"),
    ("spa_config_", "scl_lock (configuration of a pool)"),
    ("spa_taskq_", "tq_lock (a task queue)"),
    ("spa_", "a lock of the pool"),
    ("spl_cache_", "skc_lock (a cache of the SPL)"),
    ("spl_kmem_", "skc_lock (a cache of the SPL)"),
    ("spl_slab_", "skc_lock (a cache of the SPL)"),
    ("taskq_", "tq_lock (a task queue)"),
    ("txg_", "tc_lock or tx_sync_lock (transactions)"),
    ("vdev_queue_", "vq_lock (queue of a device)"),
    ("vdev_stat_", "vdev_stat_lock (counters of a device)"),
    ("vdev_", "a lock of the device"),
    ("zap_", "zap_rwlock (a directory or other ZAP object)"),
    ("zfs_dirent_lock", "z_lock (names in a directory)"),
    ("zfs_rangelock_", "rl_lock (ranges of a file)"),
    ("zfs_zget", "z_hold_locks (one of the znodes of a file system)"),
    ("zfs_znode_hold", "z_hold_locks (one of the znodes of a file system)"),
    ("zil_commit", "zl_issuer_lock (intent log)"),
    ("zil_", "zl_lock (intent log)"),
    ("zio_", "io_lock (an I/O)"),
    ("zvol_", "zv_state_lock or zv_suspend_lock (a volume)"),
];

/// The OpenZFS lock that a function of its modules waits for.
pub(super) fn zfs_lock(caller: &str, module: &str) -> Option<&'static str> {
    if !matches!(module, "zfs" | "spl") {
        return None;
    }
    let fitting = ZFS.iter().filter(|(head, _)| caller.starts_with(head));
    fitting.max_by_key(|(head, _)| head.len()).map(|(_, lock)| *lock)
}

/// The largest distance from a variable's address to a lock in it.
const VARIABLE_BYTES_MAX: u64 = 4096;
/// Variables at most.
const VARIABLES_MAX: usize = 1_000_000;

/// Variables of the kernel and its modules, by address.
pub(super) struct Variables(Vec<(u64, String)>);

impl Variables {
    /// Parses the text of /proc/kallsyms. A kernel without CONFIG_KALLSYMS_ALL shows no variables.
    pub(super) fn parse(kallsyms: &[u8]) -> Self {
        let mut all = Vec::new();
        for line in kallsyms.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some("b" | "B" | "d" | "D"), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address != 0 && name.len() <= 256 && all.len() < VARIABLES_MAX {
                all.push((address, name.to_owned()));
            }
        }
        all.sort();
        Self(all)
    }

    /// The variable that contains an address, with the distance from its start.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.0.get(after.checked_sub(1)?)?;
        match address - start {
            0 => Some(name.clone()),
            inside @ 1..VARIABLE_BYTES_MAX => Some(format!("{name}+{inside:#x}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_names_the_lock_and_only_in_openzfs() {
        assert!(zfs_lock("dbuf_find", "zfs").unwrap().starts_with("hash_mutexes"));
        assert!(zfs_lock("dbuf_read", "zfs").unwrap().starts_with("db_mtx"));
        assert!(zfs_lock("taskq_thread", "spl").unwrap().starts_with("tq_lock"));
        assert_eq!(zfs_lock("zap_device", "other"), None);
        assert_eq!(zfs_lock("vdev_x", ""), None);
        let mut heads: Vec<_> = ZFS.iter().map(|(head, _)| head).collect();
        heads.dedup();
        assert_eq!(heads.len(), ZFS.len());
    }

    #[test]
    fn locking_functions_are_not_callers() {
        for taker in ["__mutex_lock.constprop.0", "_raw_spin_lock_irqsave", "down_read", "schedule"]
        {
            assert!(is_locking(taker), "{taker}");
        }
        for caller in ["dbuf_find", "do_unlinkat", "downgrade_x", "cv_wait_common"] {
            assert!(!is_locking(caller), "{caller}");
        }
    }

    #[test]
    fn only_an_address_in_a_variable_is_named_by_it() {
        let variables = Variables::parse(b"ffff8000 D one\nffff9000 t code\nffffa000 b two\n");
        assert_eq!(variables.find(0xffff_8000).as_deref(), Some("one"));
        assert_eq!(variables.find(0xffff_a010).as_deref(), Some("two+0x10"));
        assert_eq!(variables.find(0xffff_9000 + 8), None);
        assert_eq!(variables.find(0x10), None);
    }
}
