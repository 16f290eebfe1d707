//! What must not be read in a redacted capture, and the numbers that stand for it.

use std::collections::{BTreeMap, BTreeSet};

use ogive_doctor::facts::is_zfs_thread;
use regex::{Captures, Regex};

/// Programs that are evidence by their name, and give nobody away: these names and no others, for
/// what merely begins like one of them may be called after anybody.
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
    // Programs and threads of ogive's own.
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

/// Threads of which there are many: the name, and then a number, or what only kernels append.
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

/// Whether a program's name is evidence and no secret.
fn is_public(name: &str) -> bool {
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

/// Names of less than this many characters are found in too many other words.
const SHORT: usize = 3;

/// What this host calls itself, its users and its mount points.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Names of the host.
    pub(crate) hosts: Vec<String>,
    /// Names of people.
    pub(crate) users: Vec<String>,
    /// Where file systems are mounted.
    pub(crate) mount_points: Vec<String>,
}

impl Secrets {
    /// Asks this host. What cannot be read names nobody.
    pub(crate) fn of_this_host() -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let short = node.split('.').next().unwrap_or_default().to_owned();
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut users: Vec<String> = passwd
            .lines()
            .filter_map(|line| {
                let fields: Vec<&str> = line.split(':').collect();
                let number: u32 = fields.get(2)?.parse().ok()?;
                // People; users below are the same on every host.
                ((1000..65534).contains(&number)).then(|| (*fields.first()?).to_owned().into())?
            })
            .collect();
        for variable in ["SUDO_USER", "USER", "LOGNAME"] {
            users.extend(std::env::var(variable).ok().filter(|name| name != "root"));
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount_points =
            mounts.lines().filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect();
        Self { hosts: vec![node, short], users, mount_points }
    }
}

/// Names and their numbers.
pub(super) struct Names {
    words: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
    kernel_threads: BTreeSet<String>,
    pattern: Option<Regex>,
    log_pattern: Option<Regex>,
}

impl Names {
    pub(super) fn new(secrets: &Secrets) -> Self {
        let mut names = Self {
            words: BTreeMap::new(),
            programs: BTreeMap::new(),
            kernel_threads: BTreeSet::new(),
            pattern: None,
            log_pattern: None,
        };
        for host in &secrets.hosts {
            names.add(host, "host");
        }
        for user in &secrets.users {
            names.add(user, "user");
        }
        for path in &secrets.mount_points {
            // Those of every host say nothing of this one.
            let common = ["/proc", "/sys", "/dev", "/run", "/tmp", "/boot", "/usr", "/var/tmp"];
            let is_common = common.iter().any(|common| {
                path.strip_prefix(common)
                    .is_some_and(|rest| rest.is_empty() || *common == "/sys" || *common == "/proc")
            });
            if !is_common && path.len() > 1 {
                names.add(path, "/path");
            }
        }
        names
    }

    fn add(&mut self, name: &str, word: &str) {
        if name.len() >= SHORT && !self.words.contains_key(name) && !is_evidence(name) {
            let number = self.words.values().filter(|known| known.starts_with(word)).count() + 1;
            self.words.insert(name.to_owned(), format!("{word}{number}"));
        }
    }

    /// Finds the names that a file gives away.
    pub(super) fn learn(&mut self, file: &str, text: &str) {
        if file.ends_with("zpool-list.txt") || file.ends_with("zfs-get.txt") {
            for line in text.lines().skip(1) {
                let first = line.split_whitespace().next().unwrap_or_default();
                let pool = first.split(['/', '@', '#']).next().unwrap_or_default();
                self.add_pool(pool);
            }
        }
        // Kstats of a pool stand in a directory of its name.
        let parts: Vec<&str> = file.split('/').collect();
        if let Some(at) = parts.windows(2).position(|two| two == ["kstat", "zfs"])
            && parts.len() == at + 4
        {
            self.add_pool(parts[at + 2]);
        }
        if file.ends_with("uname.txt")
            && let Some(host) = text.split_whitespace().nth(1)
        {
            self.add(host, "host");
        }
        if file.ends_with("thread-stats.txt") {
            for (name, is_kernel) in text.lines().filter_map(task) {
                if is_kernel {
                    self.kernel_threads.insert(name.to_owned());
                } else {
                    let _ = self.program(name);
                }
            }
        }
    }

    fn add_pool(&mut self, pool: &str) {
        // Whatever a pool is called, its name goes.
        if !pool.is_empty() && !self.words.contains_key(pool) {
            let number = self.words.values().filter(|known| known.starts_with("pool")).count() + 1;
            self.words.insert(pool.to_owned(), format!("pool{number}"));
        }
    }

    /// What a program or a thread of one is called from now on.
    pub(super) fn program(&mut self, name: &str) -> String {
        let is_public_name =
            self.kernel_threads.contains(name) || is_zfs_thread(name) || is_public(name);
        if is_public_name || name.is_empty() {
            return name.to_owned();
        }
        let number = self.programs.len() + 1;
        self.programs.entry(name.to_owned()).or_insert_with(|| format!("program{number}")).clone()
    }

    /// To be called when everything was learned.
    pub(super) fn compile(&mut self) {
        self.pattern = words(self.words.keys(), r"(?:/[^\s@;,:)\x22']+)*(?:@[^\s]+)?");
        let programs = self.programs.keys().filter(|name| name.len() >= SHORT);
        self.log_pattern = words(programs, "");
    }

    /// Text without the names of hosts, users, pools and mount points. A pool takes the rest of its
    /// data sets with it, a directory what is below it.
    pub(super) fn in_text(&self, text: &str) -> String {
        let Some(pattern) = &self.pattern else { return text.to_owned() };
        let replaced = pattern.replace_all(text, |found: &Captures<'_>| {
            let number = self.words.get(&found[2]).map_or("name", String::as_str);
            let rest = &found[0][found[1].len() + found[2].len()..];
            match rest {
                _ if number.starts_with('/') => format!("{}{number}", &found[1]),
                rest if rest.starts_with('/') && number.starts_with("pool") => {
                    // A kstat's directory is named as its pool; what is in it are files.
                    let file = rest.trim_start_matches('/');
                    let is_kstat = !file.contains('/') && is_kstat_name(file);
                    let rest = if is_kstat { rest } else { "/dataset" };
                    format!("{}{number}{rest}", &found[1])
                }
                rest if rest.starts_with('@') => format!("{}{number}@snapshot", &found[1]),
                rest => format!("{}{number}{rest}", &found[1]),
            }
        });
        replaced.into_owned()
    }

    /// A line of the kernel's log without names of programs.
    pub(super) fn in_log(&self, line: &str) -> String {
        let Some(pattern) = &self.log_pattern else { return line.to_owned() };
        let replaced = pattern.replace_all(line, |found: &Captures<'_>| {
            let number = self.programs.get(&found[2]).map_or("program", String::as_str);
            format!("{}{number}", &found[1])
        });
        replaced.into_owned()
    }

    /// `stat` lines of threads with numbers for the names of programs.
    pub(super) fn threads(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            match (line.find('('), line.rfind(") ")) {
                (Some(open), Some(close)) if open < close => {
                    out.push_str(&line[..=open]);
                    out.push_str(&self.program(&line[open + 1..close]));
                    out.push_str(&line[close..]);
                }
                _ => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// Name of a thread in a line of `thread-stats.txt`, and whether it is the kernel's.
fn task(line: &str) -> Option<(&str, bool)> {
    let (open, close) = (line.find('(')?, line.rfind(") ")?);
    let name = line.get(open + 1..close)?;
    let parent = line[close + 2..].split_whitespace().nth(1)?;
    let number = line[..open].split_whitespace().last()?;
    Some((name, parent == "2" || number == "2"))
}

fn is_kstat_name(name: &str) -> bool {
    let known = ["state", "txgs", "iostats", "multihost", "reads", "dmu_tx_assign", "guid", "io"];
    known.contains(&name) || name.starts_with("objset-") || name.starts_with("metaslab")
}

/// Whether a word is one that evidence uses.
fn is_evidence(name: &str) -> bool {
    let words = ["zfs", "root", "nobody", "data", "name", "linux", "localhost", "none", "default"];
    words.contains(&name) || is_zfs_thread(name)
}

/// A pattern for any of these words, the longest first, with what may follow: the character before
/// is the first group, the word the second.
fn words<'n>(names: impl Iterator<Item = &'n String>, after: &str) -> Option<Regex> {
    let mut names: Vec<&String> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    if names.is_empty() {
        return None;
    }
    let any: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
    let text = format!(r"(^|[^A-Za-z0-9_])({}){after}\b", any.join("|"));
    // More names than a pattern can hold are not to be expected; then none is published either.
    regex::RegexBuilder::new(&text).multi_line(true).size_limit(256 << 20).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_names_of_public_programs_are_kept() {
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
            let mut names = Names::new(&Secrets::default());
            assert_eq!(names.program(name), "program1", "{name}");
        }
    }
}
