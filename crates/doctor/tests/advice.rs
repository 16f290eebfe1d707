//! Advice depends on the host's evidence: it omits settings already in force and objects that the
//! host lacks, and fills slots with names.

use ogive_doctor::bundle::Loader;
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose};

fn of_files(files: &[(&str, &str)]) -> Diagnosis {
    let rules = RuleSet::bundled().expect("they compile");
    let mut loader = Loader::new();
    for (name, content) in files {
        loader.add_bytes(name, content.as_bytes().to_vec());
    }
    diagnose(&rules, loader.read().evidence)
}

/// The remedies for a cause, now and for good.
fn advice(diagnosis: &Diagnosis, id: &str) -> String {
    let found = diagnosis.findings.iter().find(|finding| finding.id == id);
    let found = found.unwrap_or_else(|| {
        let all: Vec<_> = diagnosis.findings.iter().map(|one| &one.id).collect();
        panic!("{id} is not among {all:?}")
    });
    format!("{}\n{}", found.remedy.now.join("\n"), found.remedy.lasting.join("\n"))
}

const COMPRESSES: &str = "\
  77.46%  [kernel]             [k] longest_match
   5.74%  [kernel]             [k] deflate_slow
   1.52%  [kernel]             [k] compress_block
";

#[test]
fn settings_already_in_force_are_not_advised() {
    let with = |value: &str| {
        let properties =
            format!("NAME  PROPERTY     VALUE   SOURCE\ntank  compression  {value}  local\n");
        of_files(&[("perf-top.txt", COMPRESSES), ("zfs-get.txt", &properties)])
    };
    let text = advice(&with("gzip-9"), "compression-cost");
    assert!(text.contains("`zfs set compression=lz4 tank` (undo: `zfs set compression=gzip-9"));
    for same in ["lz4", "on"] {
        let text = advice(&with(same), "compression-cost");
        assert!(!text.contains("zfs set compression=lz4"), "{text}");
        assert!(text.contains("Set already, so not advised: compression=lz4 on tank."), "{text}");
        assert!(!text.contains("lz4, or zstd-1"), "{text}");
    }
}

#[test]
fn advice_names_the_dataset_that_differs() {
    let properties = "\
NAME    PROPERTY     VALUE   SOURCE
tank/a  compression  lz4     local
tank/b  compression  gzip-9  local
";
    let diagnosis = of_files(&[("perf-top.txt", COMPRESSES), ("zfs-get.txt", properties)]);
    let text = advice(&diagnosis, "compression-cost");
    assert!(text.contains("`zfs set compression=lz4 tank/b`"), "{text}");
}

const WAITS: &str = "\
top - 10:11:01 up 14:51,  2 users,  load average: 9.03, 7.77, 2.61
%Cpu(s):  1.0 us,  2.0 sy,  0.0 ni, 52.0 id, 45.0 wa,  0.0 hi,  0.0 si,  0.0 st
";

const DISKS: &str = "\
Linux 3.10.0 (host) 01/02/23 _x86_64_ (8 CPU)

Device: rrqm/s wrqm/s   r/s   w/s  rkB/s  wkB/s avgrq-sz avgqu-sz  await r_await w_await svctm %util
sda       0.00   0.00  2.00  3.00 100.00  60.00    64.00     0.10   4.60    4.00    5.00  1.00  3.00
sdb       0.00   0.00 40.00 33.00 900.00 460.00    37.00    26.00 360.00  310.00  420.00 13.70 99.80
sdc       0.00   0.00  2.00  3.00 100.00  60.00    64.00     0.10   4.60    4.00    5.00  1.00  3.00
";

#[test]
fn advice_names_a_slow_disk_and_a_pool_only_if_there_is_one() {
    let diagnosis = of_files(&[("top.txt", WAITS), ("iostat.txt", DISKS)]);
    let text = advice(&diagnosis, "slow-device");
    assert!(text.contains("`smartctl -a /dev/sdb`"), "{text}");
    assert!(
        !text.contains("zpool") && !text.contains("POOL") && !text.contains("DEVICE"),
        "{text}"
    );
    let mdstat = "\
Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0]
      976630464 blocks super 1.2 [2/2] [UU]

unused devices: <none>
";
    let diagnosis = of_files(&[("top.txt", WAITS), ("iostat.txt", DISKS), ("mdstat", mdstat)]);
    let text = advice(&diagnosis, "slow-device");
    assert!(text.contains("`mdadm --detail /dev/md0`"), "{text}");
    let status = "\
  pool: tank
 state: ONLINE
  scan: none requested
config:

        NAME        STATE     READ WRITE CKSUM
        tank        ONLINE       0     0     0
          mirror-0  ONLINE       0     0     0
            sda     ONLINE       0     0     0
            sdb     ONLINE       0     0     0

errors: No known data errors
";
    let files = [("top.txt", WAITS), ("iostat.txt", DISKS), ("zpool-status.txt", status)];
    let text = advice(&of_files(&files), "slow-device");
    assert!(text.contains("`zpool offline tank sdb`"), "{text}");
    assert!(text.contains("sdb of tank, with zpool replace"), "{text}");
}

const SCANS: &str = "\
dsl_scan_iss;taskq_thread;scan_io_queues_run_one;scan_exec_io;zio_nowait 20
z_rd_int;taskq_thread;zio_execute;zio_checksum_verify;fletcher_4_native 200
bash;main 200
";

#[test]
fn a_finished_scrub_is_not_running() {
    let says =
        "The load is high, perhaps because of a scrub of the pool. It is slow during a scrub.";
    let of_scan = |scan: &str| {
        let status = format!("  pool: tank\n state: ONLINE\n  scan: {scan}\n");
        let files =
            [("stacks.folded", SCANS), ("zpool-status.txt", status.as_str()), ("notes.txt", says)];
        of_files(&files)
    };
    let confidence = |diagnosis: &Diagnosis| {
        let found = diagnosis.findings.iter().find(|finding| finding.id == "scrub-cost");
        found.map_or(0.0, |finding| finding.confidence)
    };
    let running = of_scan("scrub in progress since Sun Jul 25 16:07:49 2021");
    assert!(confidence(&running) > 0.9, "{}", confidence(&running));
    for ended in [
        "none requested",
        "scrub repaired 0B in 01:10:00 with 0 errors on Sun Jul 25 17:17:49 2021",
        "resilvered 1.2G in 00:10:00 with 0 errors on Sun Jul 25 17:17:49 2021",
    ] {
        let diagnosis = of_scan(ended);
        assert!(confidence(&diagnosis) < 0.45, "{ended}: {}", confidence(&diagnosis));
        assert!(diagnosis.running.is_empty(), "{ended}");
    }
    for denied in ["No scrub runs now.", "The last scrub has finished.", "scan: none requested"] {
        let notes = format!("It is slow and the load is high during a scrub, usually. {denied}");
        let diagnosis = of_files(&[("notes.txt", &notes)]);
        assert!(confidence(&diagnosis) < 0.45, "{denied}: {}", confidence(&diagnosis));
    }
}

#[test]
fn a_running_resilver_is_reported_even_if_it_explains_nothing() {
    let status = "\
  pool: tank
 state: DEGRADED
  scan: resilver in progress since Sun Jul 25 16:07:49 2021
        403M scanned at 100M/s, 68.4M issued at 10.0M/s, 405M total
        0B resilvered, 16.88% done, 00:00:33 to go
";
    let diagnosis = of_files(&[("zpool-status.txt", status)]);
    let short = report::short(&diagnosis, Style::default());
    let running = "a resilver of tank is running, 16.88% done, 00:00:33 to go [zpool-status.txt:3]";
    assert!(short.contains(running), "{short}");
    assert!(report::text(&diagnosis, Style::default()).contains(running));
    assert_eq!(report::json(&diagnosis)["running"][0]["source"]["line"], 3);
    // Lines that two readers read are reported once.
    let twice = of_files(&[("zpool-status.txt", status), ("again.txt", status)]);
    assert_eq!(twice.running.len(), 1);
}

#[test]
fn advice_on_sleeping_threads_mentions_trim_only_with_evidence_of_trim() {
    let ps = |name: &str| {
        format!(
            "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n{}",
            (0..3)
                .map(|at| format!(
                    "root        {at}80  0.0  0.0   0   0 ?        D<   10:52   0:00 [{name}]\n"
                ))
                .collect::<String>()
        )
    };
    let uptime = " 16:12:25 up  5:20,  3 users,  load average: 3.29, 3.32, 3.19\n";
    let of = |name: &str| of_files(&[("ps.txt", &ps(name)), ("uptime.txt", uptime)]);
    let diagnosis = of("nfsd");
    let text = advice(&diagnosis, "innocent-loadavg-dstate");
    assert!(!text.contains("trim"), "{text}");
    assert!(diagnosis.findings[0].versions.fixed.is_empty());
    let text = advice(&of("vdev_autotrim"), "innocent-loadavg-dstate");
    assert!(text.contains("autotrim=off"), "{text}");
}

#[test]
fn without_threads_the_next_step_on_freebsd_is_its_top() {
    let top = "\
last pid: 12345;  load averages:  4.20,  4.10,  3.90    up 12+03:04:05  10:11:12
120 processes: 2 running, 118 sleeping
CPU:  1.0% user,  0.0% nice, 48.0% system,  1.0% interrupt, 50.0% idle
Mem: 1024M Active, 2048M Inact, 9000M Wired, 1000M Free
ARC: 6000M Total, 4000M MFU, 1500M MRU, 1024K Anon, 100M Header, 400M Other
Swap: 4096M Total, 4096M Free

  PID USERNAME    THR PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND
  901 root          1  20    0    20M    10M select   1   0:09   0.20% sshd
";
    let uname = "FreeBSD host 13.2-RELEASE FreeBSD 13.2-RELEASE GENERIC amd64\n";
    let diagnosis = of_files(&[("top.txt", top), ("uname.txt", uname)]);
    let step = diagnosis.verdict.step.expect("something is open");
    assert!(step.run.contains("top -SH") || step.run.starts_with("dtrace"), "{}", step.run);
    assert!(!step.run.contains("top -H -b") && !step.run.contains("perf"), "{}", step.run);
}

#[test]
fn outcomes_of_a_probe_use_the_words_of_the_sign() {
    let top = "\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
    801 root      20   0       0      0      0 R  91.0  0.0  12:00.00 arc_prune
    802 root      20   0       0      0      0 R  71.0  0.0  12:00.00 arc_evict
";
    let uname = "Linux host 5.4.0-42-generic #46-Ubuntu SMP x86_64 GNU/Linux\n";
    let diagnosis = of_files(&[("top.txt", top), ("uname.txt", uname)]);
    let step = diagnosis.verdict.step.expect("something is open");
    let outcomes = step.outcomes.join("\n");
    assert!(!outcomes.contains("looked for"), "{outcomes}");
    assert!(outcomes.contains("it fits if almost no metadata can be evicted"));
    assert!(!outcomes.contains('?') && !outcomes.contains("arcstats."), "{outcomes}");
}
