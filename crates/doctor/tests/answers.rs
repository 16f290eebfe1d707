//! Answers that name no cause.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ogive_doctor::answers::State;
use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose, report};
use ogive_profile::roles::Roles;
use ogive_profile::write::{Output, Page, write};

fn diagnosed(name: &str, content: &str) -> Diagnosis {
    let mut loader = Loader::new();
    loader.add_bytes(name, content.as_bytes().to_vec());
    diagnose(&RuleSet::bundled().expect("they compile"), loader.read().evidence)
}

#[test]
fn a_thread_name_alone_gives_no_diagnosis() {
    let diagnosis = diagnosed(
        "top.txt",
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n    \
         803 root      20   0       0      0      0 R  99.7  0.0  41:38.33 arc_prune\n",
    );
    let sure: Vec<_> =
        diagnosis.findings.iter().filter(|finding| finding.confidence >= 0.7).collect();
    assert!(sure.is_empty(), "{sure:?}");
    assert!(diagnosis.verdict.step.is_some());
}

const HEAD: &str =
    "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n";

#[test]
fn two_pasted_rows_of_top_exclude_no_thread_and_have_no_shares() {
    let rows = "   4711 root      20   0  172000   4000   3000 R   6.2  0.0   0:01.33 top\n   \
         4000 root      20   0  172000   4000   3000 S   0.3  0.0   0:01.33 sshd\n";
    let diagnosis = diagnosed("top.txt", &format!("{HEAD}{rows}"));
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Insufficient, "{}", diagnosis.verdict.sentence);
    assert_eq!(diagnosis.overview.zfs_share_percent, None);
    let users = &diagnosis.overview.consumers;
    assert_eq!(users[0].share_percent, None, "{users:?}");
    assert_eq!(users[0].used(), "6% of one CPU");
}

#[test]
fn an_excerpt_does_not_prove_that_a_thread_is_missing() {
    let profile = "  52.64%  [zfs]     [k] SHA256TransformBlocks\n   3.10%  [kernel]  [k] memcpy\n";
    let alone = diagnosed("perf-top.txt", profile);
    let mut loader = Loader::new();
    loader.add_bytes("perf-top.txt", profile.as_bytes().to_vec());
    let rows = "   4711 root      20   0  172000   4000   3000 R  96.2  0.0   0:01.33 smbd\n";
    loader.add_bytes("top.txt", format!("{HEAD}{rows}").into_bytes());
    let rules = RuleSet::bundled().expect("they compile");
    let both = diagnose(&rules, loader.read().evidence);
    assert_eq!(alone.findings[0].id, both.findings[0].id);
    assert!(both.findings[0].confidence >= alone.findings[0].confidence);
}

#[test]
fn a_stack_without_weight_shows_a_place_but_no_share_of_the_cpu() {
    let stack = "[<0>] zap_lookup+0x10/0x40 [zfs]\n[<0>] zfs_purgedir+0x10/0x40 [zfs]\n\
         [<0>] zfs_rmnode+0x10/0x40 [zfs]\n";
    let diagnosis = diagnosed("stack.txt", stack);
    let known = diagnosis.findings.iter().find(|finding| finding.id == "unlinked-set-drain");
    let line = known.map(|finding| &finding.evidence[0]).unwrap_or_else(|| {
        panic!("{:?} {:?}", diagnosis.verdict, diagnosis.considered);
    });
    assert!(line.text.contains("zfs_purgedir") && !line.text.contains('%'), "{}", line.text);
    let diagnosis =
        diagnosed("report.txt", "The thread stands in zfs_purgedir below zfs_rmnode.\n");
    let words = diagnosis.findings.iter().flat_map(|finding| &finding.evidence);
    assert!(diagnosis.findings.iter().all(|finding| finding.confidence <= 0.69));
    assert!(
        words.clone().all(|line| !line.text.contains("on a stack")),
        "{:?}",
        diagnosis.findings
    );
}

#[test]
fn causes_without_evidence_are_not_named() {
    let diagnosis = diagnosed("version.txt", "zfs-0.6.5\nzfs-kmod-0.6.5\nLinux\n");
    let text = report::text(&diagnosis, report::Style::default());
    assert!(!text.contains("nearest") && !text.contains("Considered"), "{text}");
}

#[test]
fn zfs_is_not_accused_if_it_is_not_loaded() {
    let mut loader = Loader::new();
    let modules: String = (0..12).map(|at| format!("module_{at} 16384 0\n")).collect();
    let modules = format!("Module                  Size  Used by\n{modules}");
    loader.add_bytes("lsmod.txt", modules.into_bytes());
    loader.add_bytes("report.txt", b"Compression of a backup takes all CPUs, gzip.\n".to_vec());
    let profile = "  42.64%  [kernel]  [k] deflate_slow\n  23.10%  [kernel]  [k] longest_match\n";
    loader.add_bytes("perf-top.txt", profile.as_bytes().to_vec());
    let rules = RuleSet::bundled().expect("they compile");
    let diagnosis = diagnose(&rules, loader.read().evidence);
    assert_ne!(diagnosis.verdict.kind, VerdictKind::NormalCost, "{}", diagnosis.verdict.sentence);
    let named = diagnosis.findings.iter().any(|finding| finding.id == "compression-cost");
    assert!(!named && diagnosis.considered.iter().all(|(id, _)| id != "compression-cost"));
}

#[test]
fn without_evidence_the_answer_says_which_command_to_run() {
    let diagnosis = diagnosed("report.txt", "The server is slow today.\n");
    assert_eq!(diagnosis.verdict.kind, VerdictKind::Insufficient);
    assert!(diagnosis.verdict.step.is_some() && diagnosis.findings.is_empty());
    let text = report::text(&diagnosis, report::Style::default());
    assert!(text.lines().next().is_some_and(|line| line.starts_with("Not enough evidence")));
}

#[test]
fn outside_text_is_escaped_in_pages_and_on_terminals() {
    let diagnosis = diagnosed("a<script>.txt", "zzz \x1b[31m <script>alert(1)</script> 7;;;\n");
    let page = report::html(&diagnosis, None);
    assert!(!page.contains("<script>"), "{page}");
    assert!(!report::text(&diagnosis, report::Style::default()).contains('\x1b'));
}

const PROCESSES_THEN_THREADS: &str = "\
top - 10:11:01 up 14:51,  2 users,  load average: 1.03, 1.77, 1.61
Tasks: 163 total,   1 running, 162 sleeping,   0 stopped,   0 zombie
%Cpu(s): 50.0 us,  2.0 sy,  0.0 ni, 48.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    500 user      20   0   30000   4000   3000 R  98.8   0.0  29:13.91 ogive
    700 user      20   0   30000   4000   3000 R   3.8   0.0  29:13.91 sshd

top - 10:11:05 up 14:51,  2 users,  load average: 1.03, 1.77, 1.61
Threads: 563 total,   1 running, 562 sleeping,   0 stopped,   0 zombie
%Cpu(s): 50.0 us,  2.0 sy,  0.0 ni, 48.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    500 user      20   0   30000   4000   3000 R   0.8   0.0  29:13.91 ogive
    501 user      20   0   30000   4000   3000 R  50.8   0.0  29:13.91 fuser-0
    502 user      20   0   30000   4000   3000 R  48.8   0.0  29:13.91 fuser-1
    700 user      20   0   30000   4000   3000 R   3.8   0.0  29:13.91 sshd
";

#[test]
fn a_process_and_its_threads_are_not_added_up() {
    let diagnosis = diagnosed("top.txt", PROCESSES_THEN_THREADS);
    let users = &diagnosis.overview.consumers;
    let all: f64 = users.iter().filter_map(|user| user.share_percent).sum();
    assert!(all < 101.0, "{users:?}");
    assert_eq!(users[0].name, "fuser-0", "the list of threads says more than that of processes");
}

#[test]
fn threads_count_for_their_program_if_its_number_is_known() {
    let mut loader = Loader::new();
    let task = |pid: u32, tid: u32, name: &str, user: u32| {
        let zeroes = "0 ".repeat(30);
        format!("{pid} {tid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} 0 {zeroes}\n")
    };
    for (moment, user) in [("start", 0), ("end", 300)] {
        let mut text = task(500, 500, "ogive", user / 100);
        text += &task(500, 501, "fuser-0", user);
        text += &task(500, 502, "fuser-1", user);
        text += &task(700, 700, "sshd", user / 3);
        loader.add_bytes(&format!("{moment}/thread-stats.txt"), text.into_bytes());
        let stat =
            format!("cpu  {} 0 0 {} 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n", 8 * user / 3, user);
        loader.add_bytes(&format!("{moment}/proc/stat"), stat.into_bytes());
    }
    let rules = RuleSet::bundled().expect("they compile");
    let diagnosis = diagnose(&rules, loader.read().evidence);
    let users = &diagnosis.overview.consumers;
    let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["ogive", "sshd"], "{users:?}");
    assert_eq!(users[0].threads[0].0, "fuser");
    // The session threads used 600 of the 800 busy ticks, the program's first thread used 3.
    assert_eq!(users[0].threads[0].1, 75.0, "{users:?}");
    assert!(users[0].threads[1].1 < 1.0, "{users:?}");
}

#[test]
fn folded_stacks_without_numbers_do_not_share_one_program() {
    let diagnosis = diagnosed(
        "profile.folded",
        "md5sum;main;md5_process_block 1800\ncat;main;simple_cat 150\n",
    );
    let users = &diagnosis.overview.consumers;
    let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["md5sum", "cat"], "{users:?}");
}

/// A profile of two threads of process 500 in the format of `ogive capture`. Its first thread has
/// no sample.
fn captured(output: Output) -> Vec<u8> {
    let sample = |name: &str, tid: u32| {
        format!(
            "{name} 500/{tid} [000] 1.0: 10101010 cpu-clock:\n\tffff work+0x1 (/usr/bin/ogive)\n\n"
        )
    };
    let script = sample("fuser-0", 501).repeat(60) + &sample("fuser-1", 502).repeat(60);
    let profile =
        ogive_profile::read::bytes("perf.script", script.as_bytes(), &Default::default()).unwrap();
    let mut out = Vec::new();
    let page =
        Page { title: "captured", view: &profile.view(), baseline: None, roles: &Roles::bundled() };
    write(&mut out, output, &page).unwrap();
    out
}

#[test]
fn threads_of_a_captured_program_are_one_consumer_with_its_name() {
    let mut loader = Loader::new();
    loader.add_bytes("profile.folded", captured(Output::Folded));
    loader.add_stream("profile.pb.gz", captured(Output::Pprof).as_slice()).unwrap();
    for moment in ["start", "end"] {
        let zeroes = "0 ".repeat(30);
        let line = format!("500 500 (ogive) S 1 1 1 0 -1 0 0 0 0 0 5 0 {zeroes}\n");
        loader.add_bytes(&format!("{moment}/thread-stats.txt"), line.into_bytes());
    }
    let rules = RuleSet::bundled().expect("they compile");
    let diagnosis = diagnose(&rules, loader.read().evidence);
    let users = &diagnosis.overview.consumers;
    let names: Vec<(&str, Option<f64>)> =
        users.iter().map(|user| (user.name.as_str(), user.share_percent)).collect();
    assert_eq!(names, [("ogive", Some(100.0))], "{users:?}");
    // The same samples are counted once.
    assert_eq!(diagnosis.overview.samples, Some(120.0));
}

/// Two readings of /proc/stat and of the threads: 1.6 of 2 CPUs are busy, 0.6 of them in `tar`. Its
/// ended children used `children_cpus` CPUs.
fn short_lived(profile: Option<&str>, children_cpus: u64) -> Diagnosis {
    let mut loader = Loader::new();
    let zeroes = "0 ".repeat(30);
    for (moment, ticks) in [("start", 0), ("end", 1000)] {
        let own = 6 * ticks / 10;
        let task = |id, name, ticks, children| {
            format!("{id} {id} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 {children} {zeroes}\n")
        };
        let children = children_cpus * ticks;
        let task = task(700, "tar", own, children) + &task(800, "sshd", ticks / 1000, 0);
        loader.add_bytes(&format!("{moment}/thread-stats.txt"), task.into_bytes());
        let (busy, idle) = (16 * ticks / 10, 4 * ticks / 10);
        let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0 0 0 0 0\ncpu1 0 0 0 0 0\n");
        loader.add_bytes(&format!("{moment}/proc/stat"), stat.into_bytes());
    }
    if let Some(profile) = profile {
        loader.add_bytes("stacks.folded", profile.as_bytes().to_vec());
    }
    diagnose(&RuleSet::bundled().expect("they compile"), loader.read().evidence)
}

#[test]
fn samples_by_program_fill_the_gaps_of_a_list() {
    let users = |profile| short_lived(profile, 0).answers.users;
    let alone = users(None);
    assert_eq!(alone.first().map(|user| user.name.as_str()), Some("not shown by the list"));
    let filled = users(Some("find;main;lookup 500\ntar;main;copy 300\n"));
    let first = filled.first().expect("a user");
    assert_eq!((first.name.as_str(), first.used().as_str()), ("find", "1 CPU"));
    assert!(filled.list.iter().all(|user| user.name != "not shown by the list"), "{filled:?}");
    assert!(filled.sentence().contains("find by samples, in processes that came and went"));
    // Too few samples fill no gap.
    let few = users(Some("find;main;lookup 10\ntar;main;copy 6\n"));
    assert_eq!(few.first().map(|user| user.name.as_str()), Some("not shown by the list"));
}

#[test]
fn samples_name_children_that_have_ended() {
    let users = |profile| short_lived(profile, 1).answers.users;
    let alone = users(None);
    let first = alone.first().expect("a user");
    assert_eq!((first.name.as_str(), first.used().as_str()), ("finished children of tar", "1 CPU"));
    let named = users(Some("find;main;lookup 500\ntar;main;copy 300\n"));
    let first = named.first().expect("a user");
    assert_eq!((first.name.as_str(), first.used().as_str()), ("find", "1 CPU"));
    assert!(named.list.iter().all(|user| !user.is_ended), "{named:?}");
}

#[test]
fn words_alone_give_no_first_line_and_no_remedy() {
    let mut loader = Loader::new();
    let words = "A scrub has been running for days and everything crawls.\nThe scrub is slow.\n";
    loader.add_bytes("report.txt", words.as_bytes().to_vec());
    loader.add_bytes("version.txt", b"zfs-2.1.5\nzfs-kmod-2.1.5\n".to_vec());
    let diagnosis = diagnose(&RuleSet::bundled().expect("they compile"), loader.read().evidence);
    let hint = diagnosis.findings.first().expect("a hint");
    assert!(hint.is_hint && hint.confidence < diagnose::LIKELY, "{hint:?}");
    assert!(hint.remedy.now.is_empty() && hint.remedy.lasting.is_empty(), "{hint:?}");
    assert!(
        !diagnosis.verdict.sentence.to_lowercase().contains("scrub"),
        "{:?}",
        diagnosis.verdict
    );
    assert_eq!(diagnosis.answers.cpu.state, State::Unknown);
    assert!(diagnosis.answers.users.list.is_empty());
    assert!(diagnosis.verdict.step.is_some());
}

#[test]
fn the_first_report_of_a_tool_is_the_average_since_boot() {
    let busy = |name: &str, text: &str| diagnosed(name, text).answers.cpu.sentence();
    let heading = "UID PID %usr %system %guest %wait %CPU CPU Command\n";
    let rows = |time: &str| -> String {
        let row = |(pid, used, name): &(u32, &str, &str)| {
            format!("{time} 0 {pid} {used} 0.00 0.00 0.00 {used} 0 {name}\n")
        };
        let rows = [
            (1, "0.20", "init"),
            (2, "0.00", "kthreadd"),
            (30, "0.10", "sshd"),
            (40, "0.00", "cron"),
        ];
        rows.iter().map(row).collect()
    };
    let report = |at: &str, time: &str| format!("{at}   {heading}{}", rows(time));
    assert_eq!(busy("a.txt", &report("10:00:01", "10:00:01")), "not shown by the evidence");
    assert!(busy("a.txt", &report("10:00:01", "10:00:06")).starts_with("no: what is listed uses"));
    // If no time precedes the rows, the command decides.
    let whole = format!("$ pidstat -h\n# Time {heading}{}", rows("1692579199"));
    assert_eq!(busy("a.txt", &whole), "not shown by the evidence");
    let blocks = "CPU minf mjf xcal  intr ithr  csw icsw migr smtx  srw syscl  usr sys  wt idl\n  \
                  0    9   0   23  2663 1122  100   94  497  913    0 22367    5  14   0 81\n  \
                  1    9   0   23  2663 1122  100   94  497  913    0 22367    5  14   0 81\n";
    assert!(busy("mpstat.txt", blocks).starts_with("not shown of now: 19% of 2 CPUs"));
    let twice = format!("{blocks}{}", blocks.replace(" 14   0 81", " 90   0  5"));
    assert!(busy("mpstat.txt", &twice).starts_with("yes: 95% of 2 CPUs"));
}

#[test]
fn a_single_busy_figure_is_attributed_to_neither_programs_nor_kernel() {
    for (busy, words) in [("99.65", "yes: 100% of the CPUs is busy"), ("4.06", "no: 4.1% of the")] {
        let text = format!(
            "Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tTSC_MHz\n-\t-\t63\t{busy}\t1562\t2808\n\
             0\t0\t73\t{busy}\t1816\t2808\n"
        );
        let answers = diagnosed("turbostat.txt", &text).answers;
        let sentence = answers.cpu.sentence();
        assert!(sentence.starts_with(words) && !sentence.contains("user"), "{sentence}");
        assert!(!answers.zfs.sentence().contains("kernel as a whole"), "{:?}", answers.zfs);
    }
}

#[test]
fn idle_containers_do_not_show_an_idle_machine() {
    let row = |name: &str| {
        format!("{name:<20}0.01%               1 MiB/994 MiB       4.14%               0 B/0 B\n")
    };
    let rows: String = ["one", "two", "three", "four"].into_iter().map(row).collect();
    let heading = "CONTAINER           CPU %               MEM USAGE/LIMIT     MEM %               \
                   NET I/O\n";
    let answers = diagnosed("stats.txt", &format!("{heading}{rows}")).answers;
    assert_eq!(answers.cpu.state, State::Unknown);
    assert_eq!(answers.users.list.len(), 4);
}

#[test]
fn a_process_represents_its_threads_if_some_were_cut_off() {
    let text = "10:00:01 UID TGID TID %usr %system %guest %wait %CPU CPU Command\n\
         10:00:02 1000 26897 - 43.14 15.69 0.00 2.94 58.82 6 player\n\
         10:00:02 1000 - 26897 8.82 0.98 0.00 2.94 9.80 6 |__player\n\
         10:00:02 1000 - 26912 0.98 0.98 0.00 0.98 1.96 3 |__Binder\n";
    let first = diagnosed("pidstat.txt", text).answers.users;
    let first = first.first().expect("a user");
    assert_eq!((first.name.as_str(), first.used().as_str()), ("player", "0.59 CPUs"));
}
