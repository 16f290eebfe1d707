//! A rule's remedy, made for the host at hand.
//!
//! A rule says `zfs set compression=lz4 DATASET` and `echo 90 > /sys/module/zfs/parameters/NAME`.
//! Here DATASET becomes the data set that the traffic implicates, or the only one there is; a
//! percentage that a fixed limit beats becomes that limit; the command is that of the operating
//! system; POOL becomes the only pool there is, and PROCESS the program that uses most CPU; and
//! behind each command stands how to take it back, with the value that was set. What the evidence
//! does not show stays as the rule has it, and PROCESS becomes words.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::atlas;
use crate::evidence::Property;
use crate::facts::Facts;
use crate::rule::Remedy;

static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    let command = r"`echo (?P<value>\S+) > /sys/module/\w+/parameters/(?P<name>\w+)`";
    Regex::new(&format!(r"{command}(?P<undo> \((?:old value|default|undo)[^)]*\))?"))
        .expect("a constant pattern")
});
static PROPERTY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"`zfs set (?P<name>\w+)=(?P<value>[\w.-]+) DATASET`(?P<undo> \([^)]*undo:[^)]*\))?")
        .expect("a constant pattern")
});

static PROCESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bPROCESS\b").expect("a constant pattern"));
static POOL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bPOOL\b").expect("a constant pattern"));
/// The kernel cuts names of programs after so many characters, and pgrep compares what is left.
const NAME_CHARS: usize = 15;

/// The remedy with what the evidence shows.
pub(super) fn made_for(remedy: &Remedy, facts: &Facts) -> Remedy {
    let all = |lines: &[String]| lines.iter().map(|line| line_for(line, facts)).collect();
    Remedy {
        now: all(&remedy.now),
        lasting: all(&remedy.lasting),
        verify: remedy.verify.clone(),
        dont: remedy.dont.clone(),
    }
}

fn line_for(line: &str, facts: &Facts) -> String {
    let with_parameters = PARAMETER.replace_all(line, |found: &Captures<'_>| {
        parameter(facts, &found["value"], &found["name"]).map_or_else(
            || found[0].to_owned(),
            |(command, undo)| {
                let said = found.name("undo").map_or("", |undo| undo.as_str());
                format!("`{command}`{}", undo.as_deref().unwrap_or(said))
            },
        )
    });
    let with_properties = PROPERTY.replace_all(&with_parameters, |found: &Captures<'_>| {
        let (name, value) = (&found["name"], &found["value"]);
        let Some(now) = implicated(facts, name) else { return found[0].to_owned() };
        let owner = &now.owner;
        let own = now.origin.as_deref().is_none_or(|origin| matches!(origin, "local" | "received"));
        let undo = if own {
            format!("zfs set {name}={} {owner}", now.value)
        } else {
            format!("zfs inherit {name} {owner}")
        };
        format!("`zfs set {name}={value} {owner}` (undo: `{undo}`)")
    });
    let with_pools = match facts.only_pool() {
        Some(pool) => POOL.replace_all(&with_properties, regex::NoExpand(pool)).into_owned(),
        None => with_properties.into_owned(),
    };
    PROCESS.replace_all(&with_pools, regex::NoExpand(&process(facts))).into_owned()
}

/// The program that uses most CPU, as pgrep knows it, or words for it.
fn process(facts: &Facts) -> String {
    let plain = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
    };
    match facts.top_process() {
        Ok(user) if plain(&user.name) => user.name.chars().take(NAME_CHARS).collect(),
        _ => "<its name>".to_owned(),
    }
}

/// The command that sets a parameter here, and how to take it back where its value is known.
fn parameter(facts: &Facts, value: &str, name: &str) -> Option<(String, Option<String>)> {
    let (name, value, beats) = match in_force(facts, name, value) {
        Some((fixed, bytes)) => (fixed, bytes, Some(name)),
        None => (name.to_owned(), value.to_owned(), None),
    };
    let freebsd = facts.os().is_ok_and(|os| os == "freebsd");
    let known = atlas::tunables(&name).last();
    let there = match (freebsd, known.and_then(|tunable| tunable.sysctl)) {
        (true, Some(sysctl)) => sysctl.to_owned(),
        // It has no such sysctl, so that the rule's words stay.
        (true, None) => return None,
        (false, _) => name.clone(),
    };
    let set = |value: &str| match freebsd {
        true => format!("sysctl {there}={value}"),
        false => format!("echo {value} > /sys/module/{}/parameters/{there}", module(&there)),
    };
    let now = facts.param_text(&there).or_else(|_| facts.param_text(&name)).ok();
    let now = now.map(|text| text.trim().to_owned()).filter(|text| !text.contains(' '));
    let beaten =
        beats.map_or_else(String::new, |percent| format!("; it is set and beats {percent}"));
    let undo = now.map(|now| format!(" (undo: `{}`{beaten})", set(&now)));
    Some((set(&value), undo))
}

/// The fixed limit that beats a percentage, where it is set, and as many bytes as the percentage
/// would be of the ARC's limit.
fn in_force(facts: &Facts, name: &str, value: &str) -> Option<(String, String)> {
    let fixed = name.strip_suffix("_percent")?;
    let beats = atlas::tunables(fixed).last()?.wins_over == Some(name);
    let sysctl = atlas::tunables(fixed).last()?.sysctl;
    let set =
        facts.param(fixed).or_else(|missing| sysctl.map_or(Err(missing), |name| facts.param(name)));
    let percent: f64 = value.parse().ok()?;
    let limit = facts.arc("c_max").ok()?;
    let more = percent / 100.0 * limit;
    // A limit that is lower than what is set would make it worse.
    let set = set.ok().filter(|set| beats && *set > 0.0 && *set < more)?;
    debug_assert!(set.is_finite());
    Some((fixed.to_owned(), format!("{more:.0}")))
}

fn module(name: &str) -> &'static str {
    if name.starts_with("spl_") {
        "spl"
    } else if name.starts_with("icp_") {
        "icp"
    } else {
        "zfs"
    }
}

/// The data set that is meant: of those whose property is shown the one with most traffic, else the
/// only one that set it for itself, else the only one at all.
fn implicated<'f>(facts: &'f Facts, name: &str) -> Option<&'f Property> {
    let all = &facts.evidence().properties;
    let shown: Vec<&Property> =
        all.iter().filter(|property| !property.of_pool && property.name == name).collect();
    let busiest = facts
        .datasets_by_traffic()
        .into_iter()
        .find_map(|(dataset, _)| shown.iter().copied().find(|property| property.owner == dataset));
    let only = |found: Vec<&'f Property>| if let [one] = found[..] { Some(one) } else { None };
    let own =
        || shown.iter().copied().filter(|one| one.origin.as_deref() == Some("local")).collect();
    busiest.or_else(|| only(own())).or_else(|| only(shown.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    fn facts(files: &[(&str, &str)]) -> Facts {
        let mut evidence = Evidence::default();
        for (name, text) in files {
            read_bytes(&mut evidence, name, text.as_bytes());
        }
        finish(&mut evidence);
        Facts::new(evidence)
    }

    const PROPERTIES: &str = "\
NAME        PROPERTY     VALUE   SOURCE
tank/idle   compression  gzip-9  local
tank/busy   compression  zstd-19 inherited from tank
tank/busy   recordsize   1M      local
";

    fn objset(name: &str, read: u64, written: u64, taken: u64) -> String {
        format!(
            "30 1 0x01 7 2160 1000000000 {taken}\nname type data\ndataset_name 7 {name}\n\
             writes 4 1\nnwritten 4 {written}\nreads 4 1\nnread 4 {read}\nnunlinks 4 0\nnunlinked 4 0\n"
        )
    }

    #[test]
    fn the_dataset_is_the_one_that_is_used_and_not_the_first_of_the_list() {
        let line = "`zfs set compression=lz4 DATASET` (undo: set the old value); new blocks only.";
        let files = [
            ("zfs-get.txt", PROPERTIES.to_owned()),
            (
                "start/proc/spl/kstat/zfs/tank/objset-0x36",
                objset("tank/idle", 9_000_000, 0, 2_000_000_000),
            ),
            (
                "start/proc/spl/kstat/zfs/tank/objset-0x40",
                objset("tank/busy", 0, 1_000, 2_000_000_000),
            ),
            (
                "end/proc/spl/kstat/zfs/tank/objset-0x36",
                objset("tank/idle", 9_000_000, 0, 9_000_000_000),
            ),
            (
                "end/proc/spl/kstat/zfs/tank/objset-0x40",
                objset("tank/busy", 0, 900_000, 9_000_000_000),
            ),
        ];
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(
            line_for(line, &facts(&files)),
            "`zfs set compression=lz4 tank/busy` (undo: `zfs inherit compression tank/busy`); new \
             blocks only."
        );
        // One reading says nothing about now: two could be meant, one of them set it for itself.
        assert_eq!(
            line_for(line, &facts(&files[..3])),
            "`zfs set compression=lz4 tank/idle` (undo: `zfs set compression=gzip-9 tank/idle`); \
             new blocks only."
        );
        assert_eq!(line_for(line, &facts(&[])), line);
    }

    const LIMIT: &str = "`echo 90 > /sys/module/zfs/parameters/zfs_arc_meta_limit_percent` (old value: 75), or more.";

    #[test]
    fn a_fixed_limit_beats_its_percentage_and_is_the_one_to_change() {
        let files = [
            ("arcstats", "13 1 0x01 2 96 1 2\nname type data\nc_max 4 1000000000\nsize 4 9\n"),
            (
                "parameters",
                "/sys/module/zfs/parameters/zfs_arc_meta_limit:500000000\n\
                 /sys/module/zfs/parameters/zfs_arc_meta_limit_percent:75\n",
            ),
        ];
        assert_eq!(
            line_for(LIMIT, &facts(&files)),
            "`echo 900000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit` (undo: `echo \
             500000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit`; it is set and beats \
             zfs_arc_meta_limit_percent), or more."
        );
    }

    #[test]
    fn what_takes_it_back_is_the_value_that_was_set() {
        let files = [("parameters", "/sys/module/zfs/parameters/zfs_arc_meta_limit_percent:60\n")];
        assert_eq!(
            line_for(LIMIT, &facts(&files)),
            "`echo 90 > /sys/module/zfs/parameters/zfs_arc_meta_limit_percent` (undo: `echo 60 > \
             /sys/module/zfs/parameters/zfs_arc_meta_limit_percent`), or more."
        );
        assert_eq!(line_for(LIMIT, &facts(&[])), LIMIT);
    }

    #[test]
    fn the_program_and_the_only_pool_are_called_by_their_names() {
        let top = "\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
   1371 user      20   0   30000   4000   3000 R  99.8  0.0  29:13.91 python3
";
        let line = "`renice 10 -p $(pgrep -x PROCESS)`; `zpool status POOL`";
        let files = [("top.txt", top), ("zfs-get.txt", PROPERTIES)];
        assert_eq!(
            line_for(line, &facts(&files)),
            "`renice 10 -p $(pgrep -x python3)`; `zpool status tank`"
        );
        assert_eq!(
            line_for(line, &facts(&[])),
            "`renice 10 -p $(pgrep -x <its name>)`; `zpool status POOL`"
        );
    }

    #[test]
    fn the_command_is_that_of_the_system() {
        let files = [
            ("uname.txt", "FreeBSD host 13.2-RELEASE FreeBSD 13.2-RELEASE GENERIC amd64\n"),
            ("sysctl.txt", "vfs.zfs.arc.meta_limit_percent: 75\n"),
        ];
        assert_eq!(
            line_for(LIMIT, &facts(&files)),
            "`sysctl vfs.zfs.arc.meta_limit_percent=90` (undo: `sysctl \
             vfs.zfs.arc.meta_limit_percent=75`), or more."
        );
    }
}
