//! Findings on a real host with OpenZFS: each kind once, with the few figures that decide it.

use ogive_doctor::Diagnosis;
use ogive_doctor::evidence::Evidence;
use ogive_doctor::read::{finish, read_bytes};
use ogive_doctor::rule::RuleSet;

const VERSION: &str = "zfs-2.3.9-0+deb13u1\nzfs-kmod-2.3.9-0+deb13u1\n\
    Linux host 6.12.118+deb13-amd64 #1 SMP x86_64 GNU/Linux\n";
const PROPERTIES: &str = "\
NAME        PROPERTY    VALUE  SOURCE
tank        recordsize  128K   default
tank/big    recordsize  1M     local
tank/plain  recordsize  128K   default
";
/// Ordinary work of ZFS.
const STACKS: &str = "\
fio;do_syscall_64;ksys_pwrite64;zpl_iter_write;zfs_write;dmu_write_uio_dnode;dbuf_dirty 200
z_wr_iss;taskq_thread;zio_execute;zio_checksum_generate;fletcher_4_native;memcpy 300
cat;do_syscall_64;ksys_read;zpl_iter_read;zfs_read;dmu_read_uio_dnode;_copy_to_iter 300
swapper;do_idle;pv_native_safe_halt 200
";

/// A kstat read at the start and at the end: its rows with both values.
fn twice(path: &str, rows: &[(&str, u64, u64)]) -> Vec<(String, String)> {
    let reading = |moment: &str, taken: u64, value: fn(&(&str, u64, u64)) -> u64| {
        let head = format!("9 1 0x01 {0} {0} 1 {taken}\nname type data\n", rows.len());
        let rows = rows.iter().map(|row| format!("{:<31} 4    {}\n", row.0, value(row)));
        let text = rows.fold(head, |text, row| text + &row);
        (format!("{moment}/proc/spl/kstat/zfs/{path}"), text)
    };
    let start = reading("start", 1_000_000_000, |row| row.1);
    let end = reading("end", 11_000_000_000, |row| row.2);
    vec![start, end]
}

/// Reads and writes of a dataset in ten seconds.
fn dataset(
    name: &str,
    object: u32,
    writes: (u64, u64),
    reads: (u64, u64),
) -> Vec<(String, String)> {
    let rows = [
        ("writes", 0, writes.0),
        ("nwritten", 0, writes.0 * writes.1),
        ("reads", 0, reads.0),
        ("nread", 0, reads.0 * reads.1),
    ];
    let mut files = twice(&format!("tank/objset-0x{object}"), &rows);
    for (_, text) in &mut files {
        *text = text.replace("data\n", &format!("data\ndataset_name 7 {name}\n"));
    }
    files
}

fn diagnosed(files: &[Vec<(String, String)>]) -> Diagnosis {
    let rules = RuleSet::bundled().expect("the rules compile");
    let mut evidence = Evidence::default();
    read_bytes(&mut evidence, "version.txt", VERSION.as_bytes());
    read_bytes(&mut evidence, "zfs-get.txt", PROPERTIES.as_bytes());
    read_bytes(&mut evidence, "profile.folded", STACKS.as_bytes());
    for (name, text) in files.iter().flatten() {
        read_bytes(&mut evidence, name, text.as_bytes());
    }
    finish(&mut evidence);
    ogive_doctor::diagnose(&rules, evidence)
}

fn found(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn small_writes_into_large_records_are_named_with_their_data_set() {
    let pool = [("arc_read_bytes", 0, 900_000_000), ("arc_write_bytes", 0, 4_000_000_000)];
    let answer = diagnosed(&[
        dataset("tank/big", 1, (20_000, 4096), (0, 0)),
        dataset("tank/plain", 2, (0, 0), (0, 0)),
        twice("tank/iostats", &pool),
    ]);
    assert_eq!(found(&answer).first(), Some(&"recordsize-amplification"), "{:?}", found(&answer));
    let evidence = format!("{:?}", answer.findings[0].evidence);
    assert!(evidence.contains("tank/big is written in pieces of 4 KiB"), "{evidence}");
    // Appending small pieces to a file writes each record once.
    let pool = [("arc_read_bytes", 0, 1000), ("arc_write_bytes", 0, 90_000_000)];
    let appended =
        diagnosed(&[dataset("tank/big", 1, (20_000, 4096), (0, 0)), twice("tank/iostats", &pool)]);
    assert!(!found(&appended).contains(&"recordsize-amplification"), "{:?}", found(&appended));
}

#[test]
fn sequential_reads_are_a_normal_cost_next_to_an_idle_dataset_of_large_records() {
    let iostat = "              capacity     operations     bandwidth\n\
        pool        alloc   free   read  write   read  write\n\
        ----------  -----  -----  -----  -----  -----  -----\n\
        tank         642M  9.4G  2.2K    90   280M  10.2M\n";
    let answer = diagnosed(&[
        dataset("tank/plain", 1, (0, 0), (22_000, 131_072)),
        dataset("tank/big", 2, (0, 0), (0, 0)),
        vec![("commands/zpool-iostat.txt".to_owned(), iostat.to_owned())],
    ]);
    assert!(!found(&answer).contains(&"recordsize-amplification"), "{:?}", found(&answer));
    assert_eq!(found(&answer).first(), Some(&"workload-legit"), "{:?}", found(&answer));
}

#[test]
fn commits_of_the_intent_log_are_a_requested_cost() {
    let answer = diagnosed(&[
        dataset("tank/plain", 1, (4000, 8192), (0, 0)),
        twice("zil", &[("zil_commit_count", 10, 4010)]),
    ]);
    assert_eq!(found(&answer).first(), Some(&"workload-legit"), "{:?}", found(&answer));
    let evidence = format!("{:?}", answer.findings[0].evidence);
    assert!(evidence.contains("400/s commits of the intent log"), "{evidence}");
}

#[test]
fn a_limit_that_this_release_lacks_is_not_weighed() {
    let arcstats = [
        ("size", 30_000_000, 30_000_000),
        ("c", 67_108_864, 67_108_864),
        ("c_max", 67_108_864, 67_108_864),
        ("dnode_size", 9_900_000, 9_932_000),
        ("arc_dnode_limit", 6_710_886, 6_710_886),
        ("arc_meta_used", 25_000_000, 25_000_000),
        ("arc_prune", 0, 13_880),
        ("evict_skip", 0, 9_000_000),
    ];
    let stacks = "arc_prune;taskq_thread;arc_prune_task;zpl_prune_sb;super_cache_scan;prune_icache_sb 200\n\
        find;do_syscall_64;vfs_statx;zpl_lookup;zfs_lookup;zfs_dirent_lock;zap_lookup 700\n";
    let top = "top - 10:11:01 up 1:51,  2 users,  load average: 3.03, 2.77, 2.61\n\
        %Cpu(s):  5.0 us, 77.0 sy,  0.0 ni, 17.0 id,  0.0 wa,  0.0 hi,  1.0 si,  0.0 st\n\
        \x20  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n\
        \x20 8121 root       0 -20       0      0      0 R  25.4  0.0   0:31.77 arc_prune\n\
        \x20 8122 root       0 -20       0      0      0 R   5.4  0.0   0:31.77 arc_evict\n";
    let answer = diagnosed(&[
        twice("arcstats", &arcstats),
        vec![("stacks.folded".to_owned(), stacks.to_owned())],
        vec![("top.txt".to_owned(), top.to_owned())],
    ]);
    assert_eq!(found(&answer).first(), Some(&"arc-prune-dnode-limit"), "{:?}", found(&answer));
    let weighed = answer.considered.iter().map(|(id, _)| id.as_str());
    assert!(weighed.chain(found(&answer)).all(|id| id != "arc-prune-meta-pinned"));
}
