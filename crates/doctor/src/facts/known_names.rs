//! Names with one meaning on every host: idle functions, spinning locks, modules and threads of
//! ZFS.
//!
//! Names of threads come from OpenZFS's `module/zfs/spa.c` (`zio_taskqs`), `arc.c`, `dbuf.c` and
//! `module/os/linux/spl`, of all releases since 0.6. Linux cuts them at 15 characters. A name says
//! which system owns the thread; it never says what is wrong.

use crate::pattern::Pattern;

/// The state of a sample, by its leaf function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// The CPU had nothing to do.
    Idle,
    /// It spun for a lock.
    Spin,
    /// It worked.
    Work,
}

static IDLE_SYMBOL: Pattern = Pattern::new(
    r"^(native_safe_halt|pv_native_safe_halt|default_idle(_call)?|intel_idle(_irq|_ibrs)?|mwait_idle(_with_hints)?|acpi_idle_(do_entry|enter.*)|acpi_safe_halt|acpi_processor_ffh_cstate_enter|poll_idle|cpuidle_(enter|idle).*|cpu_idle(_poll)?|do_idle|cpu_startup_entry|arch_cpu_idle|intel_idle_.*|psci_cpu_suspend_enter|cpu_do_idle|native_halt|acpi_cpu_(idle|c1)|cpu_idle_(acpi|mwait|hlt)|sched_idletd|i86_mwait|mach_cpu_idle|cpu_halt|xen_safe_halt|tdx_safe_halt)$",
);

static SPIN_SYMBOL: Pattern = Pattern::new(
    r"^(osq_lock|mutex_spin_on_owner|mutex_optimistic_spin|rwsem_(spin_on_owner|optimistic_spin|down_.*_slowpath)|__rwsem_.*|call_rwsem_.*|(__pv_|native_)?queued_(spin|read|write)_lock_slowpath|__ticket_spin_lock|do_raw_spin_lock|_raw_spin_lock.*|_raw_(read|write)_lock.*|_spin_lock.*|__mutex_lock.*|mutex_lock|__lock_text_start|down_(read|write)(_trylock|_killable)?|lock_delay|_*mtx_lock_(sleep|spin).*|__mtx_lock.*|_*sx_[xs]lock_hard|_*rw_[rw]lock_hard|mutex_delay_default|mutex_vector_enter|rw_enter_sleep|lock_set_spl_spin|lock_set_spin|futex_wait_setup|spl_mutex_.*|_atomic_dec_and_lock)$",
);

static ZFS_MODULE: Pattern = Pattern::new(
    r"^(zfs|spl|icp|zcommon|zavl|znvpair|zlua|zunicode|zzstd|zfs\.ko|opensolaris(\.ko)?)$",
);

static ZFS_THREAD: Pattern = Pattern::new(
    r"^\[?(arc_(reclaim|adapt|evict|reap|prune|flush)|zthr_procedure|dbu?f?_evict|l2arc_feed|z_(null|rd|wr|fr|cl|ioctl|trim|flush)_(iss|int)|z_(iput|zrele|upgrade|prefetch|metaslab|unlinked|vdev|livelist|indirect|checkpoint|rebuild|flush|zil|zvol|dp)|txg_(sync|quiesce)|dp_(sync|zil)|dsl_scan|metaslab_group|mmp|vdev_(autotrim|trim|initialize|rebuild|load|open)|receive_writer|send_(traverse|reader|merge)|redact_|raidz_expand|spl_(system|delay|dynamic|kmem)|spa_(async|checkpoint)|zvol(_tq|\b|$)|zfs_(iput|znode)|zrele|ddt_|system_delay|zfskern|zpool-)|flush-zfs",
);

static ZFS_FUNCTION: Pattern = Pattern::new(
    r"^(?:zfs|zpl|zio|dmu|dbuf|arc|l2arc|spa|dsl|zap|fzap|mzap|metaslab|vdev|txg|dnode|zil|zvol|ddt|abd|sa|zthr|bpobj|bptree|space_map|range_tree|zfs_btree|raidz|fletcher_[24]|lzjb|zstd_cctx|dva|refcount|zrl|rrw|rrm|multilist|aggsum|wmsum|taskq|spl_kmem|kcf|aes_impl|gcm_mode|ccm_mode|buf_hash|hdr_l2only|brt|blkptr|ztest|zdb|zpool|libzfs)_",
);

/// Whether a function without a module belongs to ZFS by its name.
pub(super) fn is_zfs_function(name: &str) -> bool {
    ZFS_FUNCTION.is_match(name)
}

/// Whether a program is one of ZFS's own commands or daemons.
pub fn is_zfs_program(name: &str) -> bool {
    let name = name.strip_prefix("lt-").unwrap_or(name);
    matches!(name, "zfs" | "zpool" | "zed" | "zdb" | "ztest" | "zsysd" | "zstreamdump" | "zfsd")
}

/// Whether an idle CPU is in this function.
pub fn is_idle_symbol(symbol: &str) -> bool {
    IDLE_SYMBOL.is_match(symbol)
}

/// Whether the thread is the idle loop of a CPU.
pub fn is_idle_thread(name: &str) -> bool {
    name == "swapper"
        || name.starts_with("swapper/")
        || name == "idle"
        || name == ":0"
        || name.starts_with("idle{")
        || name.starts_with("idle:")
}

/// Whether the function spins for a lock.
pub fn is_spin_symbol(symbol: &str) -> bool {
    SPIN_SYMBOL.is_match(symbol)
}

/// Whether the module belongs to OpenZFS.
pub fn is_zfs_module(module: &str) -> bool {
    ZFS_MODULE.is_match(module)
}

/// Whether OpenZFS gives this name to a thread.
pub fn is_zfs_thread(name: &str) -> bool {
    ZFS_THREAD.is_match(name)
}

/// The state that a leaf shows.
pub(super) fn leaf(symbol: &str) -> Leaf {
    if is_idle_symbol(symbol) {
        Leaf::Idle
    } else if is_spin_symbol(symbol) {
        Leaf::Spin
    } else {
        Leaf::Work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_functions_locks_and_threads_of_zfs_are_recognised() {
        assert_eq!(leaf("osq_lock"), Leaf::Spin);
        assert_eq!(leaf("intel_idle"), Leaf::Idle);
        assert_eq!(leaf("aes_encrypt_block"), Leaf::Work);
        assert_eq!(leaf("native_queued_spin_lock_slowpath"), Leaf::Spin);
        assert!(is_zfs_module("icp") && !is_zfs_module("xfs"));
        for name in [
            "z_wr_iss_h",
            "arc_prune",
            "dbuf_evict",
            "dbu_evict",
            "txg_sync",
            "zvol",
            "spl_kmem_cache/",
            "z_unlinked_drai",
        ] {
            assert!(is_zfs_thread(name), "{name}");
        }
        for name in ["kswapd0", "zed", "zpool", "zabbix_agentd", "kworker/0:1", "python3"] {
            assert!(!is_zfs_thread(name), "{name}");
        }
        assert!(is_idle_thread("swapper/3") && !is_idle_thread("idle-python"));
    }
}
