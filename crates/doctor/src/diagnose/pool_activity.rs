//! Work in a pool, as `zpool status` reports it, one line each.
//!
//! A scrub or resilver may slow down everything else, or not. It is reported in both cases, so that
//! users need not search their own paste for it.

use crate::evidence::{PoolLine, Source};
use crate::facts::Facts;
use crate::pattern::Pattern;

/// The most lines that are reported.
const MAX_RUNNING: usize = 4;

/// Work in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolActivity {
    /// The work and its progress, as a sentence.
    pub text: String,
    /// The same without its progress.
    pub what: String,
    /// Where it was read.
    pub source: Source,
}

/// The work in the pools of the evidence.
pub(super) fn running(facts: &Facts) -> Vec<PoolActivity> {
    let mut all: Vec<PoolActivity> = Vec::new();
    for line in &facts.evidence().pools {
        let Some((what, more)) = sentence(line) else { continue };
        let text = format!("{what}{more}");
        if all.iter().all(|one| one.text != text) {
            all.push(PoolActivity { text, what, source: line.source.clone() });
        }
    }
    all.truncate(MAX_RUNNING);
    all
}

/// The work and its progress.
fn sentence(line: &PoolLine) -> Option<(String, String)> {
    static SCAN: Pattern = Pattern::new(r"(?i)\b(scrub|resilver|rebuild)\b.{0,30}\bin progress\b");
    static DEVICE: Pattern = Pattern::new(r"\((\d+% (?:trimmed|initialized)), started");
    static MOVED: Pattern =
        Pattern::new(r"(?i)\b(evacuation|removal|expansion)\b.{0,60}\bin progress\b");
    let pool = match line.pool.as_str() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    match line.field.as_str() {
        "scan" => {
            let name = SCAN.captures(&line.text)?[1].to_lowercase();
            let paused = if line.text.contains("paused") { " is paused" } else { " is running" };
            Some((format!("a {name}{pool}{paused}"), progress(&line.text)))
        }
        "config" => {
            let found = DEVICE.captures(&line.text)?;
            let device = line.text.split_whitespace().next()?;
            Some((format!("{device}{pool} is being worked on: {}", &found[1]), String::new()))
        }
        "remove" | "expand" => {
            let name = MOVED.captures(&line.text)?[1].to_lowercase();
            Some((format!("a {name}{pool} is running"), progress(&line.text)))
        }
        _ => None,
    }
}

/// The progress and the time left, where the line has them.
fn progress(text: &str) -> String {
    static DONE: Pattern = Pattern::new(r"(\d+(?:[.,]\d+)?)% done");
    static LEFT: Pattern =
        Pattern::new(r"((?:\d+ days? )?\d+[\d:hms]*) to go|(no estimated (?:completion )?time)");
    let mut out = String::new();
    if let Some(found) = DONE.captures(text) {
        out.push_str(&format!(", {}% done", &found[1]));
    }
    match LEFT.captures(text) {
        Some(found) if found.get(1).is_some() => out.push_str(&format!(", {} to go", &found[1])),
        Some(_) => out.push_str(", no end in sight"),
        None => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    fn texts(status: &str) -> Vec<String> {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "zpool-status.txt", status.as_bytes());
        finish(&mut evidence);
        running(&Facts::new(evidence)).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn running_scans_are_reported_and_ended_ones_are_not() {
        let status = "\
  pool: tank
 state: DEGRADED
  scan: resilver in progress since Sun Jul 25 16:07:49 2021
        403M scanned at 100M/s, 68.4M issued at 10.0M/s, 405M total
        0B resilvered, 16.88% done, 00:00:33 to go
config:
        NAME        STATE     READ WRITE CKSUM
        tank        DEGRADED     0     0     0
          sda       ONLINE       0     0     0  (39% trimmed, started at Wed Mar  2 10:00:00 2022)
";
        assert_eq!(
            texts(status),
            [
                "a resilver of tank is running, 16.88% done, 00:00:33 to go",
                "sda of tank is being worked on: 39% trimmed"
            ]
        );
        for scan in ["none requested", "scrub repaired 0B in 01:10:00 with 0 errors on Sun Jul 25"]
        {
            let ended = format!("  pool: tank\n state: ONLINE\n  scan: {scan}\n");
            assert!(texts(&ended).is_empty(), "{scan}");
        }
    }
}
