//! The names that a redacted capture must not show, and the pseudonyms that replace them.

use std::collections::{BTreeMap, BTreeSet};

use ogive_doctor::facts::is_zfs_thread;
use ogive_proc::stat::Stat;

use super::host_names::Secrets;
use super::patterns::ADDRESS;
use super::public_names::is_public;
use super::spellings::Spellings;

/// The characters that end a path or a data set in a text.
const ENDS: [char; 12] = ['\n', '\t', ' ', '"', '\'', ';', ',', ')', ']', ':', '>', '='];

/// Names and their pseudonyms.
#[derive(Default)]
pub(super) struct Pseudonyms {
    words: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
    kernel_threads: BTreeSet<String>,
    /// The names with pseudonyms, and the programs, in all their spellings.
    spelled: Spellings,
    spelled_programs: Spellings,
    /// Control groups by path.
    groups: BTreeMap<String, String>,
    /// The number of pseudonyms of each kind.
    counts: BTreeMap<&'static str, usize>,
    /// Whether a data set or a mount point has a blank in its name. Then the end of an unknown one
    /// cannot be found.
    has_blanks: bool,
}

impl Pseudonyms {
    pub(super) fn new(secrets: &Secrets) -> Self {
        let mut names = Self::default();
        for host in &secrets.hosts {
            names.add(host, "host");
        }
        for user in &secrets.users {
            names.add(user, "user");
        }
        for path in &secrets.mount_points {
            // Mount points that every host has are not secret.
            let common = ["/proc", "/sys", "/dev", "/run", "/tmp", "/boot", "/usr", "/var/tmp"];
            let is_common = common.iter().any(|common| {
                path.strip_prefix(common)
                    .is_some_and(|rest| rest.is_empty() || *common == "/sys" || *common == "/proc")
            });
            if !is_common && path.len() > 1 {
                names.has_blanks |= path.contains(' ');
                names.add(path, "/path");
            }
        }
        names
    }

    fn add(&mut self, name: &str, word: &'static str) {
        if !is_evidence(name) {
            self.add_whatever(name, word);
        }
    }

    /// Adds a name that is replaced even if evidence uses the same word.
    fn add_whatever(&mut self, name: &str, word: &'static str) {
        if name.is_empty() || self.words.contains_key(name) {
            return;
        }
        let count = self.counts.entry(word).or_insert(0);
        *count += 1;
        let word = format!("{word}{count}");
        self.spelled.add(name, &word);
        self.words.insert(name.to_owned(), word);
    }

    /// Collects the names in a file.
    pub(super) fn learn(&mut self, file: &str, text: &str) {
        if file.ends_with("zpool-list.txt") || file.contains("zfs-get") {
            let column = text.lines().next().and_then(|heading| heading.find("PROPERTY"));
            for name in text.lines().skip(1).map(|line| first_cell(line, column)) {
                self.add_data_set(name);
            }
        }
        // The kstats of a pool are in a directory with its name.
        let parts: Vec<&str> = file.split('/').collect();
        if let Some(at) = parts.windows(2).position(|two| two == ["kstat", "zfs"])
            && parts.len() == at + 4
        {
            self.add_data_set(parts[at + 2]);
            let names = text.lines().filter_map(|line| line.strip_prefix("dataset_name"));
            for name in names.filter_map(|rest| rest.trim_start().split_once(' ')) {
                self.add_data_set(name.1.trim());
            }
        }
        if file.ends_with("zpool-status.txt") {
            for pool in text.lines().filter_map(|line| line.trim_start().strip_prefix("pool: ")) {
                self.add_data_set(pool.trim());
            }
        }
        if file.ends_with("uname.txt")
            && let Some(host) = text.split_whitespace().nth(1)
        {
            self.add(host, "host");
        }
        if file.ends_with("-stats.txt") {
            for (name, is_kernel) in text.lines().filter_map(task) {
                if is_kernel {
                    self.kernel_threads.insert(name.to_owned());
                } else {
                    let _ = self.program(name);
                }
            }
        }
    }

    /// Adds a pool and a data set in it. Their names are replaced whatever they are.
    fn add_data_set(&mut self, name: &str) {
        let pool = name.split(['/', '@', '#']).next().unwrap_or_default();
        self.add_whatever(pool, "pool");
        self.has_blanks |= name.contains(' ');
        if pool.len() < name.len()
            && let Some(word) = self.words.get(pool)
        {
            let word = format!("{word}/dataset");
            self.spelled.add(name, &word);
        }
    }

    /// The pseudonym of a program or of one of its threads.
    pub(super) fn program(&mut self, name: &str) -> String {
        // The kernel names some threads after the server that they serve.
        let gives_away = ADDRESS.is_match(name) || self.in_text(name) != name;
        let is_public_name = self.kernel_threads.contains(name) && !gives_away
            || is_zfs_thread(name)
            || is_public(name);
        if is_public_name || name.is_empty() {
            return name.to_owned();
        }
        if let Some(known) = self.programs.get(name) {
            return known.clone();
        }
        let word = format!("program{}", self.programs.len() + 1);
        self.spelled_programs.add(name, &word);
        self.programs.insert(name.to_owned(), word.clone());
        word
    }

    /// The pseudonym of a control group.
    pub(super) fn group(&mut self, path: &str) -> String {
        let number = self.groups.len() + 1;
        self.groups.entry(path.to_owned()).or_insert_with(|| format!("group{number}")).clone()
    }

    /// Replaces the names of hosts, users, pools and mount points in a text. The rest of a data set
    /// after its pool, and of a path after its directory, is removed too.
    pub(super) fn in_text(&self, text: &str) -> String {
        self.spelled.replaced(text, |word, behind| {
            if word.starts_with('/') {
                let more = if behind.starts_with('/') { self.end(behind) } else { 0 };
                return (more, word.to_owned());
            }
            let of_pool = word.starts_with("pool");
            if of_pool && behind.starts_with('/') {
                // The directory of a kstat has the name of its pool and contains files.
                let file = behind[1..].split(ENDS).next().unwrap_or_default();
                if is_kstat_name(file) && !word.contains('/') {
                    return (0, word.to_owned());
                }
                let pool = word.split('/').next().unwrap_or(word);
                let end = self.end(behind);
                let is_snapshot = behind[..end].contains('@');
                let snapshot = if is_snapshot { "@snapshot" } else { "" };
                return (end, format!("{pool}/dataset{snapshot}"));
            }
            if of_pool && behind.starts_with(['@', '#']) {
                return (self.end(behind), format!("{word}@snapshot"));
            }
            if behind.starts_with('/') {
                return (self.end(behind), format!("{word}/path"));
            }
            (0, word.to_owned())
        })
    }

    /// The end of a path, or of the text after a pool, in a text.
    fn end(&self, text: &str) -> usize {
        let ends = |letter: char| match letter {
            // A blank in a name cannot be distinguished from one after it.
            ' ' if self.has_blanks => false,
            other => ENDS.contains(&other),
        };
        let end = text.find(ends).unwrap_or(text.len());
        // Columns are two blanks apart.
        text[..end].find("  ").unwrap_or(end)
    }

    /// A line of the kernel's log without names of programs.
    pub(super) fn in_log(&self, line: &str) -> String {
        self.spelled_programs.replaced(line, |word, _| (0, word.to_owned()))
    }

    /// `stat` lines of threads with pseudonyms of programs; all other lines are dropped.
    pub(super) fn threads(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            match (line.find('('), line.rfind(") ")) {
                _ if line.starts_with('#') => out.push_str(line),
                (Some(open), Some(close)) if open < close => {
                    out.push_str(&line[..=open]);
                    out.push_str(&self.program(&line[open + 1..close]));
                    out.push_str(&line[close..]);
                }
                _ => continue,
            }
            out.push('\n');
        }
        out
    }

    /// The kstat `reads` of a pool, whose last column contains programs.
    pub(super) fn reads(&mut self, text: &str) -> String {
        let mut column = None;
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let heading = words.last() == Some(&"process");
            if heading {
                column = Some(words.len() - 1);
            }
            match column.filter(|column| !heading && words.len() > *column) {
                Some(column) => {
                    let program = self.program(&words[column..].join(" "));
                    out.push_str(&words[..column].join(" "));
                    out.push(' ');
                    out.push_str(&program);
                }
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// The first cell of a table: up to the column of the next one, or to two blanks.
fn first_cell(line: &str, next: Option<usize>) -> &str {
    let is_cut = |at: &usize| line.get(..*at).is_some_and(|cell| cell.ends_with(' '));
    let end = next.filter(is_cut).or_else(|| line.find("  ")).or_else(|| line.find('\t'));
    match end {
        Some(end) => line[..end].trim(),
        None => line.split_whitespace().next().unwrap_or_default(),
    }
}

/// The name of a thread in a line of `thread-stats.txt`, and whether it is a kernel thread.
fn task(line: &str) -> Option<(&str, bool)> {
    let stat = Stat::parse(line.as_bytes())?;
    let name = std::str::from_utf8(stat.name).ok()?;
    Some((name, stat.parent()? == 2 || stat.number()? == 2))
}

fn is_kstat_name(name: &str) -> bool {
    let known = ["state", "txgs", "iostats", "multihost", "reads", "dmu_tx_assign", "guid", "io"];
    known.contains(&name) || name.starts_with("objset-") || name.starts_with("metaslab")
}

/// Whether evidence uses this word.
fn is_evidence(name: &str) -> bool {
    let words = ["zfs", "root", "nobody", "data", "name", "linux", "localhost", "none", "default"];
    words.contains(&name) || is_zfs_thread(name)
}
