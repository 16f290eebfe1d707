//! Names out of a capture: pools, data sets, host names, user programs and their arguments.
//!
//! The same name always becomes the same number, so that what belongs together still does. Names
//! of kernel threads, functions, counters and properties are the evidence, and stay.

use std::collections::BTreeMap;

use ogive_doctor::facts::is_zfs_thread;
use regex::Regex;

/// Programs that are evidence by their name, and give nobody away.
const KEPT: [&str; 27] = [
    "zfs",
    "zpool",
    "zdb",
    "zed",
    "ztest",
    "systemd-udevd",
    "udevd",
    "nfsd",
    "kswapd",
    "kcompactd",
    "ksoftirqd",
    "kworker",
    "migration",
    "swapper",
    "rcu_",
    "khugepaged",
    "kthreadd",
    "ogive",
    "arc_",
    "fuser-",
    "fuse_",
    "origin_read",
    "request",
    "spl_",
    "watchdog",
    "jbd2",
    "perf",
];

/// Replaces names in all files.
pub(super) fn redact(files: &mut [(String, Vec<u8>)]) {
    let mut names = Names::default();
    for (name, content) in files.iter() {
        names.learn(name, &String::from_utf8_lossy(content));
    }
    let rules = names.rules();
    for (name, content) in files.iter_mut() {
        let mut text = String::from_utf8_lossy(content).into_owned();
        for (pattern, replacement) in &rules {
            text = pattern.replace_all(&text, replacement.as_str()).into_owned();
            *name = pattern.replace_all(name, replacement.as_str()).into_owned();
        }
        *content = text.into_bytes();
    }
}

#[derive(Default)]
struct Names {
    pools: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
    hosts: BTreeMap<String, String>,
}

impl Names {
    /// Finds the names that a file gives away.
    fn learn(&mut self, file: &str, text: &str) {
        if file.ends_with("zpool-list.txt") {
            for line in text.lines().skip(1) {
                if let Some(pool) = line.split_whitespace().next() {
                    add(&mut self.pools, pool, "pool");
                }
            }
        }
        if file.ends_with("uname.txt")
            && let Some(host) = text.split_whitespace().nth(1)
        {
            add(&mut self.hosts, host, "host");
        }
        if file.ends_with("thread-stats.txt") {
            for line in text.lines() {
                if let (Some(open), Some(close)) = (line.find('('), line.rfind(") ")) {
                    let kernel = line.split_whitespace().nth(0) == Some("2");
                    let name = &line[open + 1..close];
                    let kept = is_zfs_thread(name)
                        || KEPT.iter().any(|kept| name.starts_with(kept))
                        || kernel;
                    if !kept && name.len() > 2 {
                        add(&mut self.programs, name, "program");
                    }
                }
            }
        }
    }

    /// Patterns and what they become. A pool's name takes the rest of its data sets with it.
    fn rules(&self) -> Vec<(Regex, String)> {
        let mut rules = Vec::new();
        let paths = r"(?:/(?:home|root|mnt|srv|media|export|data|Users)/)[^\s;,)]*";
        rules.extend(Regex::new(paths).ok().map(|pattern| (pattern, "/path".to_owned())));
        for (name, number) in &self.pools {
            let text = format!(r"\b{}((?:/[^\s@;,)]+)+)(@[^\s]+)?", regex::escape(name));
            rules.extend(
                Regex::new(&text).ok().map(|pattern| (pattern, format!("{number}/dataset"))),
            );
        }
        for (name, number) in self.pools.iter().chain(&self.hosts).chain(&self.programs) {
            let text = format!(r"(^|[^A-Za-z0-9_]){}($|[^A-Za-z0-9_])", regex::escape(name));
            rules.extend(
                Regex::new(&text).ok().map(|pattern| (pattern, format!("${{1}}{number}${{2}}"))),
            );
        }
        rules
    }
}

fn add(names: &mut BTreeMap<String, String>, name: &str, word: &str) {
    if !names.contains_key(name) {
        let number = names.len() + 1;
        names.insert(name.to_owned(), format!("{word}{number}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_and_evidence_stays() {
        let mut files = vec![
            ("commands/zpool-list.txt".to_owned(), b"NAME SIZE\nsecret 1T\n".to_vec()),
            ("commands/uname.txt".to_owned(), b"Linux payroll 6.1.0 x86_64\n".to_vec()),
            (
                "start/thread-stats.txt".to_owned(),
                b"2 9 (z_rd_int) R 2\n77 77 (salaryd) S 1\n".to_vec(),
            ),
            (
                "commands/zfs-get.txt".to_owned(),
                b"secret/ceo/mail encryption aes-256-ccm local\n".to_vec(),
            ),
        ];
        redact(&mut files);
        let all: String = files
            .iter()
            .map(|(_, content)| String::from_utf8_lossy(content).into_owned())
            .collect();
        for gone in ["secret", "payroll", "salaryd", "ceo"] {
            assert!(!all.contains(gone), "{gone} in {all}");
        }
        for kept in ["z_rd_int", "aes-256-ccm", "encryption", "pool1"] {
            assert!(all.contains(kept), "{kept} in {all}");
        }
    }
}
