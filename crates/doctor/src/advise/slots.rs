//! Fills the slots of a command with this host's names: pool, disk, data set, program, mount.
//!
//! A command has a slot for each name: `{pool}`. The evidence often has the name: a disk that is
//! slow or has errors, the pools in use, the top program. A command with an unknown name is not
//! printed. All slots of a text are filled at once, so a filled name is never searched for slots.
//! Each name is an [`Argument`].

use std::collections::BTreeMap;

use regex::Captures;

use super::argument::Argument;
use crate::atlas;
use crate::evidence::{Number, PoolLine};
use crate::facts::{Consumer, Facts, is_zfs_module};
use crate::pattern::Pattern;
use crate::rule::{Role, Rule};

/// Names of disks as systems give them.
static DISK: Pattern = Pattern::new(concat!(
    r"^(?:/dev/)?(?:(?:sd|hd|vd|xvd)[a-z]{1,3}\d*|nvme\d+n\d+(?:p\d+)?|mmcblk\d+",
    r"|(?:ada|da|nda|nvd|vtbd|nvme)\d+(?:p\d+|s\d+)?|c\d+t\w+d\d+(?:s\d+)?",
    r"|(?:ata|scsi|wwn|nvme|usb|virtio)-\S+|(?:gpt|gptid)/\S+|disk/by-\S+)$",
));

/// The kernel cuts names of programs at this length, and pgrep compares the rest.
const NAME_CHARS: usize = 15;
/// A program below this, percent of one CPU, is not the one that uses most.
const WORKS_PERCENT: f64 = 5.0;
/// A disk with requests of this many milliseconds is slow where its neighbours are faster.
const SLOW_MS: f64 = 20.0;
/// A slow disk takes this many times as long as the median of all.
const SLOWER: f64 = 2.0;
/// A saturated disk is busy for this percentage of the time.
const BUSY_PERCENT: f64 = 85.0;

/// With more names than this, one line of advice has none of them.
const MAX_POOLS: usize = 4;

/// Names that do not come from the evidence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names<'a> {
    /// The program that the answers name.
    pub(super) user: Option<&'a str>,
    /// A number that a rule computes, and the one that undoes it.
    pub(super) amount: Option<f64>,
    pub(super) old: Option<f64>,
}

/// The slot that stayed open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown<'t>(pub(super) &'t str);

/// The command with the names from the evidence, once for each pool to look at.
pub(super) fn fill<'t>(
    text: &'t str,
    facts: &Facts,
    names: &Names<'_>,
) -> Result<Vec<String>, Unknown<'t>> {
    static SLOT: Pattern =
        Pattern::new(r"\{(pool|dataset|device|disk|cache|process|mount|md|amount|old)\}");
    if !SLOT.is_match(text) {
        return Ok(vec![text.to_owned()]);
    }
    let of_disk = text.contains("{device}");
    let pools = if text.contains("{pool}") { pools(facts, of_disk) } else { vec![String::new()] };
    let mut all = Vec::new();
    for pool in &pools {
        let mut open = None;
        let with = |found: &Captures<'_>| {
            let slot = found.get(1).map_or("", |slot| slot.as_str());
            let start = found.get(0).map_or(0, |slot| slot.start());
            let name = one(slot, pool, facts, names);
            let name = name.as_deref().and_then(Argument::of);
            match name.as_ref().and_then(|name| name.behind(&text[..start])) {
                Some(name) => name.to_owned(),
                None => {
                    if open.is_none() {
                        open = found.get(1).map(|slot| slot.range());
                    }
                    String::new()
                }
            }
        };
        let command = SLOT.replace_all(text, with).into_owned();
        match open {
            None => all.push(command),
            Some(range) => return Err(Unknown(&text[range])),
        }
    }
    if all.is_empty() { Err(Unknown("pool")) } else { Ok(all) }
}

/// The name for one slot.
fn one(slot: &str, pool: &str, facts: &Facts, names: &Names<'_>) -> Option<String> {
    let number = |value: Option<f64>| value.filter(|value| *value >= 0.0 && *value < 1.8e19);
    match slot {
        "pool" => Some(pool.to_owned()),
        "dataset" => dataset(facts),
        "device" => disk_of_pool(facts),
        "disk" => slow_disk(facts).map(|disk| path(&disk)),
        "cache" => cache_device(facts),
        "process" => program(facts)
            .or_else(|| names.user.and_then(as_pgrep_knows))
            .filter(|name| lives(facts, name)),
        "mount" => mount(facts),
        "md" => md(facts).map(|name| format!("/dev/{name}")),
        "amount" => number(names.amount).map(|value| format!("{value:.0}")),
        "old" => number(names.old).map(|value| format!("{value:.0}")),
        _ => None,
    }
}

/// The mount point of the ogive mount in question.
fn mount(facts: &Facts) -> Option<String> {
    let mount = facts.evidence().host.ogive_mount.as_ref()?;
    mount.value.starts_with('/').then(|| mount.value.clone())
}

/// The pools to look at: the one of the slow disk, those with work in progress, those with traffic,
/// or all if they are few.
fn pools(facts: &Facts, of_disk: bool) -> Vec<String> {
    if let Some(only) = pool(facts) {
        return vec![only];
    }
    if of_disk {
        return Vec::new();
    }
    let lines = &facts.evidence().pools;
    let runs = lines.iter().filter(|line| line.text.contains("in progress"));
    let mut found: Vec<String> = runs.map(|line| line.pool.clone()).collect();
    if found.is_empty() {
        let used = facts.datasets_by_traffic().into_iter();
        found = used.filter_map(|(name, _)| Some(name.split('/').next()?.to_owned())).collect();
    }
    if found.is_empty() {
        let owners = facts.evidence().properties.iter();
        let owners = owners.filter(|known| known.of_pool).map(|known| known.owner.clone());
        found = owners.chain(lines.iter().map(|line| line.pool.clone())).collect();
    }
    found.retain(|name| !name.is_empty());
    found.sort_unstable();
    found.dedup();
    if found.len() > MAX_POOLS { Vec::new() } else { found }
}

/// Whether the finding of a rule shows ZFS. Innocents are found on hosts without ZFS, too.
pub(crate) fn is_of_zfs(rule: &Rule) -> bool {
    rule.text.family != "innocent"
}

/// Whether a rule is about the work of ZFS in its pools.
pub(crate) fn works_in_pools(rule: &Rule) -> bool {
    matches!(rule.text.role, Role::Cause | Role::LegitWork | Role::NotCpu)
        && is_of_zfs(rule)
        && rule.text.family != "ogive"
}

/// Whether there is a pool; `None` where the evidence does not show it.
pub(super) fn has_pool(facts: &Facts) -> Option<bool> {
    if facts.zfs_loaded() == Ok(false) {
        return Some(false);
    }
    if let Ok(pools) = facts.pools() {
        return Some(pools > 0.0);
    }
    let spoken = || facts.says(r"\b(zfs|zpools?|openzfs|raidz[123]?|zvols?)\b") == Ok(true);
    let stands = || {
        let frames = facts.evidence().kernel_stacks.iter().flat_map(|stack| &stack.frames);
        frames.filter_map(|frame| frame.module.as_deref()).any(is_zfs_module)
    };
    let tuned = || {
        let mut parameters = facts.evidence().parameters.iter();
        parameters.any(|parameter| atlas::tunables(&parameter.name).next().is_some())
    };
    let seen =
        facts.zfs_loaded() == Ok(true) || pool(facts).is_some() || tuned() || spoken() || stands();
    seen.then_some(true)
}

/// The pool to look at: the one of the slow disk, or the only one.
fn pool(facts: &Facts) -> Option<String> {
    if let Some(only) = facts.only_pool() {
        return Some(only.to_owned());
    }
    if let Some(line) = disk_of_pool(facts).and_then(|disk| config_line(facts, &disk)) {
        return Some(line.pool.clone());
    }
    if !facts.evidence().pools.is_empty() {
        return None;
    }
    // `zpool iostat` lists pools, and with -v their groups and disks below them.
    let mut rows = facts.evidence().tables.iter().filter(|table| table.name == "zpool_iostat");
    let is_pool = |name: &str| {
        !DISK.is_match(name)
            && !["mirror", "raidz", "draid", "spare", "replacing", "dm-", "zd", "loop", "file"]
                .iter()
                .any(|group| name.starts_with(group))
            && !name.contains(['/', ':'])
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let first = rows.next()?.scope.as_deref().filter(|name| is_pool(name))?;
    let others = rows.filter_map(|table| table.scope.as_deref()).filter(|name| is_pool(name));
    others.into_iter().all(|name| name == first).then(|| first.to_owned())
}

/// The data set with most traffic, or the only one that is named.
fn dataset(facts: &Facts) -> Option<String> {
    if let Some((busiest, _)) = facts.datasets_by_traffic().into_iter().next() {
        return Some(busiest);
    }
    let mut owners = facts
        .evidence()
        .properties
        .iter()
        .filter(|property| !property.of_pool && !property.owner.is_empty());
    let first = &owners.next()?.owner;
    owners.all(|property| property.owner == *first).then(|| first.clone())
}

/// The program that uses most CPU, by its name for pgrep.
fn program(facts: &Facts) -> Option<String> {
    facts.top_process().ok().and_then(|user| as_pgrep_knows(&user.name))
}

/// Whether a program lives long enough for a command to reach it: a list of current use shows that
/// it works through the whole interval. Without such a list it may.
fn lives(facts: &Facts, name: &str) -> bool {
    let listed = facts.listed_consumers();
    let is_it = |user: &&Consumer| as_pgrep_knows(&user.name).as_deref() == Some(name);
    let works = |user: &Consumer| user.cpu_percent.is_none_or(|percent| percent >= WORKS_PERCENT);
    listed.is_empty() || listed.iter().find(is_it).is_some_and(works)
}

/// A program's name for pgrep; `None` where no command can take it.
fn as_pgrep_knows(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let is_name = !name.is_empty() && !name.starts_with('-') && name.chars().all(plain);
    is_name.then(|| name.chars().take(NAME_CHARS).collect())
}

/// An array of Linux's RAID: the only one in a list or in a thread's name.
fn md(facts: &Facts) -> Option<String> {
    let evidence = facts.evidence();
    let listed = evidence.tables.iter().filter(|table| matches!(&*table.name, "mdstat" | "iostat"));
    let listed = listed.filter_map(|table| table.scope.as_deref());
    let threads = evidence.threads.iter().filter_map(|thread| thread.name.split('_').next());
    let is_md = |name: &&str| {
        name.strip_prefix("md")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    };
    let mut names = listed.chain(threads).filter(is_md);
    let first = names.next()?;
    names.all(|name| name == first).then(|| first.to_owned())
}

/// The only disk below `cache` in `zpool status`.
fn cache_device(facts: &Facts) -> Option<String> {
    let config = facts.evidence().pools.iter().filter(|line| line.field == "config");
    let names: Vec<&str> = config.filter_map(|line| line.text.split_whitespace().next()).collect();
    let at = names.iter().position(|name| *name == "cache")?;
    match &names[at + 1..] {
        [one] => Some((*one).to_owned()),
        [one, next, ..] if !DISK.is_match(next) => Some((*one).to_owned()),
        _ => None,
    }
}

/// The disk that failed, has errors or is slower than the others, where the evidence has one.
fn slow_disk(facts: &Facts) -> Option<String> {
    failed_of_pool(facts)
        .or_else(|| {
            slowest(facts, "zpool_iostat", &["disk_wait_read_ns", "disk_wait_write_ns"], 1e6)
        })
        .or_else(|| {
            slowest(facts, "iostat", &["await", "await_ms", "r_await", "w_await", "asvc_t"], 1.0)
        })
        .or_else(|| full(facts))
        .or_else(|| with_bad_sectors(facts))
        .or_else(|| of_log(facts))
}

/// A disk that failed according to `zpool status`, or the only one with errors.
fn failed_of_pool(facts: &Facts) -> Option<String> {
    let config = || facts.evidence().pools.iter().filter(|line| line.field == "config");
    let rows = || {
        config().filter_map(|line| {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let name = *words.first()?;
            DISK.is_match(name).then_some((name, words))
        })
    };
    let failed = rows().find(|(_, words)| {
        words.get(1).is_some_and(|state| matches!(*state, "FAULTED" | "UNAVAIL" | "REMOVED"))
    });
    if let Some((name, _)) = failed {
        return Some(name.to_owned());
    }
    let mut erring = rows().filter(|(_, words)| {
        words.iter().skip(2).take(3).any(|count| {
            count.starts_with(|c: char| c.is_ascii_digit()) && count.parse() != Ok(0.0)
        })
    });
    let first = erring.next()?.0;
    erring.next().is_none().then(|| first.to_owned())
}

/// The slow disk by its name in its pool.
fn disk_of_pool(facts: &Facts) -> Option<String> {
    let disk = slow_disk(facts)?;
    let listed = facts.evidence().pools.iter().any(|line| line.field == "config");
    if !listed {
        return Some(disk);
    }
    // The pool may have a partition of it.
    let part = |name: &str| {
        let rest = name.strip_prefix(&disk).map(|rest| rest.trim_start_matches(['p', 's']));
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
    };
    let config = facts.evidence().pools.iter().filter(|line| line.field == "config");
    let mut names = config.filter_map(|line| line.text.split_whitespace().next());
    names.find(|name| part(name)).map(ToOwned::to_owned)
}

fn config_line<'f>(facts: &'f Facts, disk: &str) -> Option<&'f PoolLine> {
    let is_it = |line: &&PoolLine| {
        line.field == "config" && line.text.split_whitespace().next() == Some(disk)
    };
    facts.evidence().pools.iter().find(is_it)
}

/// The largest figure of each disk, under any of these names.
fn of_disks(facts: &Facts, table: &str, figures: &[&str]) -> Vec<(String, f64)> {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for table in facts.evidence().tables.iter().filter(|known| known.name == table) {
        let Some(disk) = table.scope.as_deref().filter(|name| DISK.is_match(name)) else {
            continue;
        };
        // A later report replaces the first, which is the average since boot.
        let matching = table.figures.iter().filter(|figure| figures.contains(&&*figure.name));
        let most = matching.filter_map(|figure| match figure.value {
            Number::Gauge(value) | Number::Rate(value) => Some(value),
            _ => None,
        });
        if let Some(most) = most.reduce(f64::max) {
            all.insert(disk, most);
        }
    }
    let mut all: Vec<_> = all.into_iter().map(|(disk, most)| (disk.to_owned(), most)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// The disk with a request time many times that of the others, or the only disk if that is slow.
fn slowest(facts: &Facts, table: &str, figures: &[&str], unit_ms: f64) -> Option<String> {
    let all = of_disks(facts, table, figures);
    let (disk, most) = all.first()?;
    let alone = all.len() == 1;
    let median = all[all.len() / 2].1;
    (most / unit_ms >= SLOW_MS && (alone || *most >= SLOWER * median)).then(|| disk.clone())
}

/// The only disk that is busy all the time.
fn full(facts: &Facts) -> Option<String> {
    let all = of_disks(facts, "iostat", &["util_percent"]);
    let full: Vec<_> = all.iter().filter(|(_, busy)| *busy >= BUSY_PERCENT).collect();
    if let [(disk, _)] = full[..] { Some(disk.clone()) } else { None }
}

/// The disk with most unreadable sectors.
fn with_bad_sectors(facts: &Facts) -> Option<String> {
    let counts = ["Current_Pending_Sector", "Offline_Uncorrectable", "Reported_Uncorrect"];
    let all = of_disks(facts, "smart", &counts);
    all.into_iter().find(|(_, count)| *count > 0.0).map(|(disk, _)| disk)
}

/// The only disk with complaints in the kernel's log.
fn of_log(facts: &Facts) -> Option<String> {
    static COMPLAINT: Pattern =
        Pattern::new(r"I/O error, dev ([a-z]+[0-9a-z]*)|(nvme\d+)(?:n1)?: .*timeout");
    let log = &facts.evidence().log;
    let mut names = log.iter().filter_map(|line| {
        let found = COMPLAINT.captures(&line.value)?;
        let name = found.get(1).or_else(|| found.get(2))?.as_str();
        DISK.is_match(name).then_some(name)
    });
    let first = names.next()?;
    names.all(|name| name == first).then(|| first.to_owned())
}

/// The path of a disk.
fn path(disk: &str) -> String {
    let by_id = ["ata-", "scsi-", "wwn-", "nvme-", "usb-", "virtio-"];
    let solaris = disk.starts_with('c') && disk.contains('t') && disk.contains('d');
    match disk {
        whole if whole.starts_with("/dev/") => whole.to_owned(),
        id if by_id.iter().any(|start| id.starts_with(start)) => format!("/dev/disk/by-id/{id}"),
        disk if solaris && !disk.contains('/') => format!("/dev/rdsk/{disk}"),
        disk => format!("/dev/{disk}"),
    }
}
