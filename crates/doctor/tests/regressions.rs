//! Answers that were once wrong or missing, each with the files of its report.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::evidence::Evidence;
use ogive_doctor::read::{finish, read_bytes};
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose};

fn of(files: &[(&str, &str)]) -> Diagnosis {
    let mut evidence = Evidence::default();
    for (name, text) in files {
        read_bytes(&mut evidence, name, text.as_bytes());
    }
    finish(&mut evidence);
    diagnose(&RuleSet::bundled().unwrap(), evidence)
}

fn first(diagnosis: &Diagnosis) -> &str {
    diagnosis.findings.first().map_or("nothing", |finding| finding.id.as_str())
}

const SPINS: &str = "\
Samples: 1M of event 'cycles', Event count (approx.): 661970552859
Overhead  Shared Object     Symbol
  61.20%  [kernel]          [k] native_queued_spin_lock_slowpath
   5.10%  [zfs]             [k] arc_evict_state
   3.10%  [kernel]          [k] _raw_spin_lock
";

#[test]
fn dnodes_at_four_times_their_limit_rank_above_a_lock_with_an_unknown_caller() {
    let arcstats = "\
13 1 0x01 98 26656 4000000000 90000000000000
name                            type data
size                            4    16847797336
c                               4    16847693824
c_max                           4    33694738432
dnode_size                      4    6688546000
arc_dnode_limit                 4    1684769382
arc_meta_used                   4    12847797336
arc_meta_limit                  4    25271053824
";
    let top = "\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
    803 root      20   0       0      0      0 R  99.7  0.0  41:38.33 arc_prune
    805 root      20   0       0      0      0 R  97.7  0.0  41:38.33 arc_evict
";
    let both = of(&[("arcstats", arcstats), ("perf-top.txt", SPINS), ("top.txt", top)]);
    assert_eq!(first(&both), "arc-prune-dnode-limit", "{}", both.verdict.sentence);
    // Without the counters, only the lock is known.
    let alone = of(&[("perf-top.txt", SPINS)]);
    assert_eq!(first(&alone), "lock-contention-unspecified");
}

#[test]
fn contention_below_zvol_submit_bio_is_in_the_queue_of_the_volumes() {
    let stacks = "\
fio;entry_SYSCALL_64;__x64_sys_io_submit;submit_bio;zvol_submit_bio;taskq_dispatch_ent;_raw_spin_lock_irqsave;native_queued_spin_lock_slowpath 5200
z_wr_iss;ret_from_fork;kthread;taskq_thread;zio_execute;lz4_compress 600
fio;main;thread_main 900
";
    let diagnosis = of(&[("stacks.folded", stacks)]);
    assert_eq!(first(&diagnosis), "zvol-taskq-contention", "{}", diagnosis.verdict.sentence);
}

#[test]
fn small_writes_to_records_of_a_mebibyte_cause_reads() {
    let properties = "\
NAME     PROPERTY    VALUE    SOURCE
tank     recordsize  128K     default
tank/db  recordsize  1M       local
";
    let iostat = "\
              capacity     operations     bandwidth
pool        alloc   free   read  write   read  write
----------  -----  -----  -----  -----  -----  -----
tank        3.10T  4.10T  2.10K    310  2.00G  31.0M
tank        3.10T  4.10T  2.10K    305  2.01G  30.8M
----------  -----  -----  -----  -----  -----  -----
";
    let diagnosis = of(&[("zfs-get.txt", properties), ("zpool-iostat.txt", iostat)]);
    assert_eq!(first(&diagnosis), "recordsize-amplification", "{}", diagnosis.verdict.sentence);
    let now = diagnosis.findings[0].remedy.now.join("\n");
    assert!(now.contains("zfs set recordsize=16K tank/db"), "{now}");
    assert!(now.contains("undo: `zfs set recordsize=1M tank/db`"), "{now}");
}

#[test]
fn ksmd_is_not_zfs_and_not_an_idle_cpu() {
    let top = "\
top - 18:01:00 up 20 days,  3:11,  2 users,  load average: 1.30, 1.21, 1.13
Tasks: 312 total,   2 running, 310 sleeping,   0 stopped,   0 zombie
%Cpu(s):  1.1 us, 24.8 sy,  0.0 ni, 73.9 id,  0.1 wa,  0.0 hi,  0.1 si,  0.0 st

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
     72 root      25   5       0      0      0 R  97.7  0.0   9021:38 ksmd
   4711 root      20   0 9172000   8.1g   3000 S   6.2 12.9 110:01.33 kvm
    912 root      20   0       0      0      0 S   0.3  0.0   0:11.33 txg_sync
";
    let diagnosis = of(&[("top.txt", top)]);
    assert_eq!(first(&diagnosis), "innocent-kernel-thread", "{}", diagnosis.verdict.sentence);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Kernel);
}

#[test]
fn memory_pressure_with_thousands_of_samples_is_an_answer_without_an_accusation() {
    let stacks = "\
kswapd0;ret_from_fork;kthread;kswapd;balance_pgdat;shrink_node;shrink_lruvec;shrink_inactive_list;shrink_page_list 2600
java;asm_exc_page_fault;handle_mm_fault;do_swap_page;__alloc_pages;__alloc_pages_slowpath;try_to_free_pages;shrink_node;shrink_lruvec 1200
java;asm_exc_page_fault;handle_mm_fault;do_swap_page;swap_readpage;submit_bio 300
java;Interpreter 300
";
    let meminfo = "\
MemTotal:       16318480 kB
MemFree:          181904 kB
MemAvailable:     221904 kB
SwapTotal:       8388604 kB
SwapFree:         412204 kB
";
    let vmstat = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 9  6 7976400 181904   2040 120400 9100 8800 19100 9900 9000 30000  8 81  2  9  0
 8  7 7976900 181004   2040 120400 9300 8600 18100 9700 9000 30000  7 82  2  9  0
";
    let files = [("stacks.folded", stacks), ("meminfo", meminfo), ("vmstat.txt", vmstat)];
    let diagnosis = of(&files);
    assert_ne!(diagnosis.verdict.kind, VerdictKind::Insufficient);
    assert_ne!(diagnosis.verdict.kind, VerdictKind::Cause, "{}", diagnosis.verdict.sentence);
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Kernel, "{}", diagnosis.verdict.sentence);
}

#[test]
fn the_dataset_in_use_is_named_among_several_with_a_costly_checksum() {
    let objset = |name: &str, written: u64, taken: u64| {
        format!(
            "30 1 0x01 7 2160 1000000000 {taken}\nname type data\ndataset_name 7 {name}\n\
             writes 4 1\nnwritten 4 {written}\nreads 4 1\nnread 4 1\nnunlinks 4 0\nnunlinked 4 0\n"
        )
    };
    let properties = "\
NAME       PROPERTY  VALUE   SOURCE
tank/idle  checksum  sha256  local
tank/busy  checksum  sha256  local
";
    let profile = "  52.64%  [zfs]     [k] SHA256TransformBlocks\n   3.10%  [kernel]  [k] memcpy\n";
    let idle = [objset("tank/idle", 7, 2_000_000_000), objset("tank/idle", 7, 9_000_000_000)];
    let busy = [objset("tank/busy", 7, 2_000_000_000), objset("tank/busy", 70_000, 9_000_000_000)];
    let diagnosis = of(&[
        ("zfs-get.txt", properties),
        ("perf-top.txt", profile),
        ("start/proc/spl/kstat/zfs/tank/objset-0x36", &idle[0]),
        ("start/proc/spl/kstat/zfs/tank/objset-0x40", &busy[0]),
        ("end/proc/spl/kstat/zfs/tank/objset-0x36", &idle[1]),
        ("end/proc/spl/kstat/zfs/tank/objset-0x40", &busy[1]),
    ]);
    assert_eq!(first(&diagnosis), "checksum-cost", "{}", diagnosis.verdict.sentence);
    let finding = &diagnosis.findings[0];
    let evidence: Vec<_> = finding.evidence.iter().map(|line| line.text.as_str()).collect();
    let answer = format!("{} {}", evidence.join("\n"), finding.remedy.now.join("\n"));
    assert!(answer.contains("tank/busy") && !answer.contains("tank/idle"), "{answer}");
}
