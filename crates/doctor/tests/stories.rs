//! Five published stories, told by their own figures, must come out right; so must the answers that
//! are none.

use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::rule::{Role, RuleSet};
use ogive_doctor::{Diagnosis, diagnose};

fn diagnosed(files: &[(&str, &str)]) -> Diagnosis {
    let mut loader = Loader::new();
    for (name, content) in files {
        loader.add_bytes(name, content.as_bytes().to_vec());
    }
    diagnose(&RuleSet::bundled().unwrap(), loader.read().evidence)
}

fn first(diagnosis: &Diagnosis) -> &str {
    assert!(diagnosis.rule_faults.is_empty(), "{:?}", diagnosis.rule_faults);
    diagnosis.findings.first().map_or("nothing", |finding| &finding.id)
}

#[test]
fn the_idle_arc_and_the_random_sublist() {
    let diagnosis = diagnosed(&[
        ("zpool-list.txt", "no pools available\n"),
        ("version.txt", "zfs-0.6.5.6-0ubuntu16\nzfs-kmod-0.6.5.6-0ubuntu16\nLinux host 4.4.0-59-generic #80 SMP x86_64 GNU/Linux\n"),
        (
            "stacks.folded",
            "arc_reclaim;kthread;thread_generic_wrapper;arc_reclaim_thread;arc_adjust;arc_adjust_impl;arc_evict_state;multilist_get_random_index;random_get_pseudo_bytes;get_random_bytes;extract_entropy 3412\n\
             arc_reclaim;kthread;thread_generic_wrapper;arc_reclaim_thread;arc_adjust;arc_adjust_impl;arc_evict_state;multilist_sublist_lock 130\n\
             java;entry_SYSCALL_64;do_sys_poll 2204\n\
             java;page_fault;do_try_to_free_pages;shrink_zone;shrink_slab;super_cache_count 1900\n",
        ),
        ("report.txt", "System time is 38% of 4 CPUs on a host that has no ZFS pool at all.\n"),
    ]);
    assert_eq!(first(&diagnosis), "arc-evict-random-sublist");
    let finding = &diagnosis.findings[0];
    assert!(finding.confidence >= 0.9, "{}", finding.confidence);
    assert!(finding.share_percent.is_some_and(|share| share > 30.0), "{:?}", finding.share_percent);
    assert_eq!(finding.versions.has_fix, Some(false));
}

#[test]
fn aes_ccm_and_the_fpu_saves() {
    let diagnosis = diagnosed(&[
        ("zfs-get.txt", "NAME       PROPERTY    VALUE        SOURCE\ntank/home  encryption  aes-256-ccm  -\n"),
        ("version.txt", "zfs-0.8.4-1\nzfs-kmod-0.8.4-1\nLinux host 5.4.0 #1 SMP x86_64 GNU/Linux\n"),
        (
            "perf.txt",
            "Samples: 120K of event 'cycles', Event count (approx.): 90052972568\n\
             Overhead  Shared Object  Symbol\n  \
             38.12%  [kernel]  [k] kfpu_restore_xsave\n  \
             21.41%  [kernel]  [k] kfpu_save_xsave\n  \
             12.30%  [icp]     [k] aes_encrypt_block\n  \
             6.20%  [icp]     [k] ccm_mode_encrypt_contiguous_blocks\n  \
             4.90%  [icp]     [k] aes_xor_block\n  \
             2.10%  [icp]     [k] ccm_format_initial_blocks\n",
        ),
    ]);
    assert_eq!(first(&diagnosis), "encryption-ccm");
    let lasting = diagnosis.findings[0].remedy.lasting.join(" ");
    for words in ["aes-256-gcm", "new dataset and move", "no in-place change", "8 times"] {
        assert!(lasting.contains(words), "{words} in {lasting}");
    }
}

#[test]
fn arc_prune_of_freebsd_and_its_vnode_counters() {
    let diagnosis = diagnosed(&[
        ("version.txt", "zfs-2.2.0\nzfs-kmod-2.2.0\nFreeBSD host 14.0-RELEASE FreeBSD 14.0-RELEASE #0 amd64\n"),
        (
            "top.txt",
            "last pid: 12345;  load averages:  9.61,  9.05,  8.20  up 3+04:12:10    10:11:12\n\
             621 threads:   12 running, 580 sleeping, 29 waiting\n\n  \
             PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME     WCPU COMMAND\n    \
             0 root         -8    -      0B  1952K CPU3     3 812:41  99.98% kernel{arc_prune}\n   \
             19 root         -8    -      0B    16K RUN      1  61:10  21.10% vnlru\n",
        ),
        (
            "sysctl.txt",
            "vfs.vnode.vnlru.prune_examined: 9630000\nvfs.vnode.vnlru.prune_freed: 10000\n\
             vfs.vnode.vnlru.prune_skipped_held: 5100000\nvfs.vnode.vnlru.prune_skipped_wrong_filesystem: 4500000\n",
        ),
    ]);
    assert_eq!(first(&diagnosis), "freebsd-arc-prune-dispatch");
    let evidence: String = diagnosis.findings[0].evidence.iter().map(|line| format!("{}\n", line.text)).collect();
    assert!(evidence.contains("963"), "{evidence}");
    assert!(diagnosis.findings[0].confidence >= 0.9);
}

#[test]
fn the_list_locks_of_the_arc_from_lockstat() {
    let diagnosis = diagnosed(&[
        ("version.txt", "SunOS host 5.11 illumos\n"),
        (
            "lockstat.txt",
            "Adaptive mutex spin: 48190277 events in 30.114 seconds (1600261 events/sec)\n\n\
             Count indv cuml rcnt     nsec Lock                   Caller\n\
             -------------------------------------------------------------------------------\n\
             19274110  40%  40% 0.00     9204 ARC_mru+0x58           remove_reference+0x5b\n\
             18870421  39%  79% 0.00     8711 ARC_mru+0x58           add_reference+0x6b\n \
             4180000   9%  88% 0.00     7010 ARC_mfu+0x58           arc_access+0x1b7\n \
             1200000   2%  90% 0.00      512 0xffffff0d4bd9f4c0     dbuf_find+0x4e\n",
        ),
    ]);
    assert_eq!(first(&diagnosis), "arc-list-lock-contention");
}

#[test]
fn zfs_is_innocent_on_a_host_without_it() {
    let diagnosis = diagnosed(&[
        ("notes.txt", "zfs module: not loaded\nswap: none\n"),
        (
            "top.txt",
            "top - 10:00:00 up 3 days,  1:00,  1 user,  load average: 1.10, 1.05, 1.00\n\
             %Cpu(s):  0.3 us, 25.2 sy,  0.0 ni, 74.5 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\n\n    \
             PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n     \
             54 root      20   0       0      0      0 R 100.0  0.0  62:34.27 kswapd0\n  \
             22207 user      20   0    5024   1244    864 R   0.3  0.1   0:00.30 top\n",
        ),
    ]);
    assert_eq!(first(&diagnosis), "innocent-kswapd");
    assert_ne!(diagnosis.findings[0].role, Role::Cause);
    assert_ne!(diagnosis.verdict.kind, VerdictKind::Cause);
}

#[test]
fn a_thread_name_alone_is_no_diagnosis() {
    let diagnosis = diagnosed(&[(
        "top.txt",
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n    \
         803 root      20   0       0      0      0 R  99.7  0.0  41:38.33 arc_prune\n",
    )]);
    assert!(diagnosis.findings.iter().all(|finding| finding.confidence < 0.5), "{:?}", diagnosis.findings);
    assert!(diagnosis.verdict.ask.is_some());
}

#[test]
fn nothing_given_is_not_enough_evidence_and_says_what_to_run() {
    let diagnosis = diagnosed(&[("report.txt", "It is slow.\n")]);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Insufficient);
    assert!(diagnosis.verdict.ask.is_some() && diagnosis.findings.is_empty());
}
