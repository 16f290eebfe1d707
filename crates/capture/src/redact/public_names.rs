//! Names of programs that are evidence and not secret.

/// Programs whose names are evidence and identify no one. Only the exact names count, because a
/// longer name may contain that of a person.
const KEPT: [&str; 31] = [
    "zfs",
    "zpool",
    "zdb",
    "zed",
    "ztest",
    "systemd",
    "systemd-udevd",
    "(udev-worker)",
    "udevd",
    "nfsd",
    "kthreadd",
    "khugepaged",
    "perf",
    "rsync",
    "cadvisor",
    "rngd",
    // ogive's own programs and threads.
    "ogive",
    "mount.ogive",
    "mount.fuse.ogiv",
    "ogive-signals",
    "ogive-unmount",
    "fuse_session",
    "fuse_watch",
    "origin_read",
    "origin_recent",
    "origin_mounts",
    "origin_asks",
    "arc_reclaim",
    "request",
    "l2_read",
    "l2_write",
];

/// Names of many threads: a prefix, then a number or a suffix that only kernels append.
const KEPT_FAMILIES: [&str; 16] = [
    "kswapd",
    "kcompactd",
    "ksoftirqd/",
    "kworker/",
    "migration/",
    "swapper/",
    "watchdog/",
    "rcu_sched",
    "rcu_preempt",
    "rcuos/",
    "jbd2/",
    "fuse-",
    "fuse_uring-",
    "l2_read-",
    "qemu-system-",
    "nfsd-",
];

/// Whether a program's name is evidence and not secret.
pub(super) fn is_public(name: &str) -> bool {
    let numbered = |rest: &str| {
        rest.chars()
            .all(|letter| letter.is_ascii_digit() || matches!(letter, ':' | '-' | 'u' | 'H'))
    };
    let machine = |rest: &str| matches!(rest, "x86" | "x86_64" | "aarch64" | "arm");
    KEPT.contains(&name)
        || KEPT_FAMILIES.iter().any(|family| {
            name.strip_prefix(family).is_some_and(|rest| match *family {
                "qemu-system-" => machine(rest),
                _ => numbered(rest),
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_of_public_programs_are_kept() {
        for name in
            ["ogive", "mount.ogive", "ogive-signals", "zfs", "fuse-3", "kworker/u8:2", "kswapd0"]
        {
            assert!(is_public(name), "{name}");
        }
        for name in [
            "ogive-payroll",
            "ogived",
            "zfs-acme",
            "requests-of-ann",
            "perfect",
            "fuse-acme",
            "rsyncer",
        ] {
            assert!(!is_public(name), "{name}");
        }
    }
}
