//! The short answer: its length, its shares, and a first line that can be understood alone.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ogive_doctor::answers::Among;
use ogive_doctor::bundle::Loader;
use ogive_doctor::report::{self, SHORT_LINES, Style};
use ogive_doctor::rule::RuleSet;
use ogive_doctor::{Diagnosis, diagnose};

fn folders(below: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(below);
    let entries = fs::read_dir(&directory).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// The answers to the stories and to a quarter of the unseen cases, because a diagnosis takes time.
static ANSWERS: LazyLock<Vec<(PathBuf, Diagnosis)>> = LazyLock::new(|| {
    let rules = RuleSet::bundled().expect("they compile");
    let paths = folders("stories").into_iter().chain(folders("unseen").into_iter().step_by(4));
    paths.map(|path| (path.clone(), of_folder(&rules, &path))).collect()
});

fn of_folder(rules: &RuleSet, path: &Path) -> Diagnosis {
    let mut loader = Loader::new();
    loader.add_path(path).expect("it can be read");
    diagnose(rules, loader.read().evidence)
}

fn of_files(rules: &RuleSet, files: &[(&str, &str)]) -> Diagnosis {
    let mut loader = Loader::new();
    for (name, content) in files {
        loader.add_bytes(name, content.as_bytes().to_vec());
    }
    diagnose(rules, loader.read().evidence)
}

#[test]
fn no_line_of_evidence_is_printed_twice() {
    // Two signs with one text hold: the program uses more than 25 and more than 60 percent.
    let top = "    PID USER  PR  NI  VIRT  RES  SHR S  %CPU %MEM  TIME+ COMMAND\n   \
               8121 app  20  0  14.6g  11.1g  9000 R  98.0  71.1  931:11.77 java\n";
    let files = [("zfs-module.txt", "zfs module: not loaded\n"), ("top.txt", top)];
    let twice = of_files(&RuleSet::bundled().expect("they compile"), &files);
    let user = twice.findings.iter().find(|finding| finding.id == "innocent-user-process");
    let lines = &user.expect("the program is found").evidence;
    let texts: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    let about = texts.iter().filter(|text| text.ends_with("and ZFS is not loaded"));
    assert_eq!(about.count(), 1, "{texts:?}");
    for diagnosis in ANSWERS.iter().map(|(_, diagnosis)| diagnosis).chain([&twice]) {
        for finding in &diagnosis.findings {
            for lines in [&finding.evidence, &finding.against] {
                let texts: HashSet<&str> = lines.iter().map(|line| &*line.text).collect();
                assert_eq!(texts.len(), lines.len(), "{}: {lines:?}", finding.id);
            }
        }
    }
}

#[test]
fn the_first_answer_has_25_lines_at_most_on_any_terminal() {
    let mut longest = 0;
    for (path, diagnosis) in ANSWERS.iter() {
        for width in [60, 80, 100, 160] {
            let style = Style { width, colour: false };
            let text = report::short(diagnosis, style);
            // The terminal breaks the first line, not the report.
            let first = text.lines().next().unwrap_or("").chars().count().div_ceil(width);
            let lines = text.lines().count() - 1 + first;
            assert!(lines <= SHORT_LINES, "{} at {width}: {lines} lines\n{text}", path.display());
            assert!(
                text.lines().skip(1).all(|line| line.chars().count() <= width.max(90)),
                "{text}"
            );
            longest = longest.max(lines);
        }
    }
    assert!(longest > SHORT_LINES - 5, "the limit was never near: {longest}");
}

#[test]
fn the_first_line_says_whether_there_is_a_problem_and_asks_for_no_command() {
    for (path, diagnosis) in ANSWERS.iter() {
        let text = report::short(diagnosis, Style::default());
        let first = text.lines().next().unwrap_or("");
        assert!(first.ends_with('.') && !first.contains("Run:"), "{}: {first}", path.display());
        assert!(first.chars().next().is_some_and(char::is_uppercase), "{first}");
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.as_deref() == Some("aes-ccm-fpu") {
            assert!(first.starts_with("Problem found. AES-CCM encryption"), "{first}");
            assert!(text.contains("aes-256-gcm: create a new dataset and move"), "{text}");
        }
        if name.as_deref() == Some("zfs-free-host") {
            assert!(first.contains("Not ZFS") && !first.contains("Problem"), "{first}");
            assert!(!text.contains("with ?"), "{text}");
        }
        // Both agree about ZFS.
        let acquits = first.to_lowercase().contains("not zfs");
        assert!(!acquits || diagnosis.answers.zfs.among == Among::No, "{first}");
        if let Some(ask) = diagnosis.verdict.ask() {
            // The command to run is always present.
            let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let asked: String = ask.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(&asked), "{asked}\n{text}");
        }
    }
}

const HEAD: &str =
    "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n";

fn thread(id: usize, percent: f64, name: &str) -> String {
    format!(
        "{id:>7} root      20   0       0      0      0 R {percent:>5.1}  0.0   0:01.33 {name}\n"
    )
}

/// The share of ZFS in total, and the sum of the shares of its threads.
fn zfs_shares(diagnosis: &Diagnosis) -> (Option<f64>, f64) {
    let threads = diagnosis.overview.consumers.iter().filter(|user| user.is_zfs);
    (diagnosis.overview.zfs_share_percent, threads.filter_map(|user| user.share_percent).sum())
}

#[test]
fn the_total_of_zfs_is_never_less_than_the_sum_of_its_threads() {
    let rules = RuleSet::bundled().expect("they compile");
    let idle: String = (0..6).map(|at| thread(900 + at, 0.0, "bash")).collect();
    let whole = format!("{HEAD}{}{idle}", thread(803, 91.0, "z_rd_int"));
    let picked = format!("{HEAD}{}", thread(803, 91.0, "z_rd_int"));
    let without = "  52.64%  [kernel]  [k] copy_page\n   3.10%  [kernel]  [k] memcpy\n";
    let with = "  52.64%  [zfs]  [k] arc_evict_state\n   3.10%  [kernel]  [k] memcpy\n";
    let folded = "java;main;loop 900\njava;main;work 90\n";
    let unweighted = "z_rd_int;kthread;zio_done 1\nz_rd_int;kthread;lzjb_decompress 1\n";
    let mut withheld = 0;
    let profiles: [&[(&str, &str)]; 4] = [
        &[("perf-top.txt", without)],
        &[("perf-top.txt", with)],
        &[("stacks.folded", folded)],
        &[("stacks.folded", unweighted), ("perf-top.txt", without)],
    ];
    for list in [&whole, &picked] {
        for profiles in profiles {
            let mut files = profiles.to_vec();
            files.push(("top.txt", list));
            let diagnosis = of_files(&rules, &files);
            let (all, threads) = zfs_shares(&diagnosis);
            assert!(all.is_none_or(|all| all + 0.51 >= threads), "{all:?} of {threads}: {files:?}");
            assert!(all.is_none_or(f64::is_sign_positive), "{all:?}");
            withheld += usize::from(all.is_none() && threads > 0.0);
            for text in [
                report::short(&diagnosis, Style::default()),
                report::text(&diagnosis, Style::default()),
            ] {
                assert!(!text.contains("-0%"), "{text}");
                assert!(!(threads > 0.0 && text.contains("ZFS in all 0%")), "{text}");
            }
        }
    }
    assert!(withheld > 0, "the views never disagreed");
}

#[test]
fn shares_of_one_cpu_and_of_the_machine_are_never_mixed() {
    let rules = RuleSet::bundled().expect("they compile");
    let picked =
        format!("{HEAD}{}{}", thread(803, 91.0, "z_rd_int"), thread(804, 12.0, "txg_sync"));
    let diagnosis = of_files(&rules, &[("top.txt", &picked)]);
    let text = report::short(&diagnosis, Style::default());
    let line = text.lines().find(|line| line.starts_with("who uses it")).unwrap_or("");
    assert!(line.contains("z_rd_int 0.91 CPUs"), "{text}");
    assert!(!text.contains("of the busy CPU") && !text.contains("ZFS in all"), "{text}");
}

#[test]
fn control_sequences_are_not_printed() {
    let rules = RuleSet::bundled().expect("they compile");
    let list = format!("{HEAD}{}", thread(803, 91.0, "z\x1b[31mrd\u{7}"));
    let diagnosis = of_files(&rules, &[("to\x1b[2Jp.txt", &list)]);
    for text in
        [report::short(&diagnosis, Style::default()), report::text(&diagnosis, Style::default())]
    {
        assert!(!text.contains('\x1b') && !text.contains('\u{7}'), "{text}");
    }
}

#[test]
fn the_label_counts_for_the_length_of_the_first_line() {
    for (path, diagnosis) in ANSWERS.iter() {
        let text = report::short(diagnosis, Style::default());
        let first = text.lines().next().unwrap_or("");
        let length = first.chars().count();
        assert!(length <= 140, "{}: {length} characters: {first}", path.display());
    }
}

#[test]
fn the_answer_to_a_truncated_capture_says_which_part_was_read() {
    let mut builder = tar::Builder::new(Vec::new());
    let list: String = (0..40).map(|at| thread(900 + at, 0.1, "bash")).collect();
    let list = format!("{HEAD}{}{list}", thread(803, 91.0, "java"));
    for name in ["top.txt", "top-2.txt"] {
        let mut header = tar::Header::new_ustar();
        header.set_size(list.len() as u64);
        builder.append_data(&mut header, name, list.as_bytes()).expect("an archive");
    }
    let archive = builder.into_inner().expect("an archive");
    let packed = zstd::encode_all(&archive[..], 1).expect("it is packed");
    let of = |bytes: &[u8]| {
        let mut loader = Loader::new();
        loader.add_stream("capture.tar.zst", bytes).expect("it is read");
        let rules = RuleSet::bundled().expect("they compile");
        let text = report::short(&diagnose(&rules, loader.read().evidence), Style::default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let part = "this answer uses only the part that was read";
    let cut = of(&packed[..packed.len() - 20]);
    assert!(cut.contains("capture.tar.zst: it ends early") && cut.contains(part), "{cut}");
    let whole = of(&packed);
    assert!(whole.contains("java") && !whole.contains("early"), "{whole}");
}
