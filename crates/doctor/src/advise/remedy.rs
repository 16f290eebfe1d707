//! A rule's remedy for this host.
//!
//! Each list gives its first line that fits, and the lines next to it: one thing to do now, one
//! that lasts. A line fits if its conditions hold, its system is this one, and its action is
//! possible here (`parameter`, `property`, `host_probe`). A value that is already set is reported
//! and not advised.

use super::host_probe;
use super::parameter::{self, Assignment, Done, Setting};
use super::slots::{self, Names, Unknown};
use super::{property, system};
use crate::atlas;
use crate::expression::{Environment, Expression, ExpressionError};
use crate::facts::Facts;
use crate::rule::{Action, Change, Remedy, Rule, command, probe};

/// Properties that apply only to new data.
const FOR_NEW_DATA: [&str; 6] =
    ["checksum", "compression", "dedup", "dnodesize", "recordsize", "xattr"];
/// Those of them that a block keeps when a file is cloned.
const KEPT_BY_CLONES: [&str; 4] = ["checksum", "compression", "dedup", "recordsize"];
/// The first release that clones blocks.
const CLONES_BLOCKS: &str = "2.2.0";

/// The host, for the lines of one rule.
struct Host<'a> {
    environment: &'a Environment,
    system: String,
    /// Whether there may be a pool.
    pools: bool,
    user: Option<&'a str>,
}

/// The result for a line.
enum Made {
    Line(Done),
    Already(String),
    No,
}

impl Made {
    fn words(text: String) -> Self {
        Self::Line(Done::words(text))
    }
}

/// The remedy that the evidence supports; `user` is the program that the answers name.
pub(crate) fn remedy(
    rule: &Rule,
    environment: &Environment,
    user: Option<&str>,
) -> Result<Remedy, ExpressionError> {
    let facts = environment.facts();
    let pools = slots::has_pool(facts).unwrap_or(slots::is_of_zfs(rule));
    let host = Host { environment, system: system(facts), pools, user };
    let lines = &rule.remedy;
    let (now, mut already) = host.chosen(&lines.now, false)?;
    let (lasting, more) = host.chosen(&lines.lasting, true)?;
    already.extend(more);
    already.dedup();
    let texts = |lines: Vec<Done>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
    let changes = now.iter().flat_map(|line| line.changes.clone()).collect();
    let mut now = texts(now);
    if !already.is_empty() {
        now.push(format!("Set already, so not advised: {}.", already.join(", ")));
    }
    let one = |lines: Vec<String>| {
        Some(lines.join(" ")).filter(|line| !line.is_empty()).into_iter().collect()
    };
    Ok(Remedy {
        now: one(now),
        lasting: one(texts(lasting)),
        verify: one(texts(host.chosen(&lines.verify, false)?.0)),
        dont: one(texts(host.chosen(&lines.dont, false)?.0)),
        changes,
        worked: host.worked(&lines.verify)?,
    })
}

impl Host<'_> {
    fn facts(&self) -> &Facts {
        self.environment.facts()
    }

    /// The first line that fits, the lines next to it, and the values that are already set.
    fn chosen(
        &self,
        lines: &[Action],
        lasting: bool,
    ) -> Result<(Vec<Done>, Vec<String>), ExpressionError> {
        let (mut chosen, mut already) = (Vec::new(), Vec::new());
        for line in lines {
            if !chosen.is_empty() && !line.text.also || !self.fits(line)? {
                continue;
            }
            match self.made(line, lasting)? {
                Made::Line(line) => chosen.push(line),
                Made::Already(what) => already.push(what),
                Made::No => {}
            }
        }
        Ok((chosen, already))
    }

    /// Whether the condition for success holds now; unknown where no line can be tested.
    fn worked(&self, lines: &[Action]) -> Result<Option<bool>, ExpressionError> {
        let mut worked = None;
        for holds in lines.iter().filter_map(|line| line.holds.as_ref()) {
            if let Some(one) = self.environment.truth(holds)?.0 {
                worked = Some(worked.unwrap_or(true) && one);
            }
        }
        Ok(worked)
    }

    /// Whether a line fits this host, by its conditions.
    fn fits(&self, line: &Action) -> Result<bool, ExpressionError> {
        let holds = |condition: &Option<Expression>, otherwise| match condition {
            Some(condition) => {
                Ok::<_, ExpressionError>(self.environment.truth(condition)?.0 == Some(true))
            }
            None => Ok(otherwise),
        };
        let system = if self.system.is_empty() { "linux" } else { &self.system };
        let systems = &line.text.systems;
        let here = systems.is_empty() || systems.iter().any(|name| name == system);
        Ok(here && holds(&line.when, true)? && !holds(&line.unless, false)?)
    }

    fn made(&self, line: &Action, lasting: bool) -> Result<Made, ExpressionError> {
        let text = &line.text;
        let number = |of: &Option<Expression>| match of {
            Some(of) => self.environment.number(of),
            None => Ok(None),
        };
        if let Some(words) = &text.say {
            return Ok(Made::words(self.with_probe(words, text.probe.as_deref())));
        }
        if let Some(name) = &text.parameter {
            let computed = number(&line.amount)?.filter(|number| *number >= 0.0);
            let computed = computed.map(|number| format!("{number:.0}"));
            let Some(value) = text.value.clone().or(computed) else { return Ok(Made::No) };
            let assignment = Assignment { name, value: &value, only: text.only, lasting };
            return Ok(led(text, parameter::set(assignment, self.facts(), &self.system)));
        }
        if let Some((name, of_pool)) = property_of(line) {
            return Ok(self.property(line, name, of_pool));
        }
        if let Some(id) = &text.run {
            let names =
                Names { user: self.user, amount: number(&line.amount)?, old: number(&line.old)? };
            return Ok(self.command(line, id, &names));
        }
        if !text.upgrade.is_empty() {
            return Ok(self.upgrade(line));
        }
        if let Some(probe) = text.probe.as_deref().and_then(probe) {
            let names = Names { user: self.user, ..Names::default() };
            let run = host_probe::command(probe, self.facts(), self.pools, &names);
            return Ok(run.map_or(Made::No, |run| {
                Made::words(sentence(&format!("{}: `{run}`", lead(line, &probe.shows))))
            }));
        }
        Ok(if text.replace { self.replace(line) } else { Made::No })
    }

    /// Words, with the command that shows their subject.
    fn with_probe(&self, words: &str, id: Option<&str>) -> String {
        let names = Names { user: self.user, ..Names::default() };
        let run = id
            .and_then(probe)
            .and_then(|probe| host_probe::command(probe, self.facts(), self.pools, &names));
        let words = words.trim_end_matches('.');
        sentence(&run.map_or_else(|| words.to_owned(), |run| format!("{words} (`{run}`)")))
    }

    /// The scope of a property that does not change existing data. A copy within a pool may clone
    /// blocks, which keep their old properties.
    fn holds_for(&self, name: &str) -> &'static str {
        let facts = self.facts();
        if !FOR_NEW_DATA.contains(&name) {
            return "";
        }
        let never = self.system == "illumos" || facts.param("zfs_bclone_enabled") == Ok(0.0);
        match facts.zfs_before(CLONES_BLOCKS) {
            _ if never || !KEPT_BY_CLONES.contains(&name) => ", for new data",
            Ok(true) => ", for new data",
            Ok(false) => ", for new data; rewrite files with dd or rsync: cp clones blocks",
            Err(_) => {
                ", for new data; rewrite files with dd or rsync: \
                 from 2.2 on cp clones blocks"
            }
        }
    }

    fn property(&self, line: &Action, name: &str, of_pool: bool) -> Made {
        let Some(value) = line.text.value.as_deref().filter(|_| self.pools) else {
            return Made::No;
        };
        let later = self.holds_for(name);
        match property::set(name, value, of_pool, self.facts()) {
            Some(Setting::Made(made)) => {
                let text = sentence(&format!("{}: {}{later}", lead(line, name), made.text));
                Made::Line(Done { text, ..made })
            }
            Some(Setting::Already(what)) => Made::Already(what),
            Some(Setting::No) => Made::No,
            None => {
                let (on, finder) = if of_pool {
                    ("the pool", "pools")
                } else {
                    ("the data set in use", "busy-data-sets")
                };
                let value = property::in_words(value);
                let words = format!("{}: {name}={value} on {on}{later}", lead(line, name));
                Made::words(self.with_probe(&words, Some(finder)))
            }
        }
    }

    fn command(&self, line: &Action, id: &str, names: &Names<'_>) -> Made {
        let Some(action) = command(id).filter(|action| self.pools || !action.pool) else {
            return Made::No;
        };
        let Some(run) = action.run(&self.system) else { return Made::No };
        let all = match slots::fill(run, self.facts(), names) {
            Ok(all) => all,
            // Its words are the advice, and the probe shows the name.
            Err(Unknown("pool" | "device" | "cache")) => {
                return match &line.text.text {
                    Some(words) => Made::words(self.with_probe(words, Some("pool-status"))),
                    None => Made::No,
                };
            }
            Err(_) => return Made::No,
        };
        let undo = action.undo(&self.system);
        let undo = undo.and_then(|undo| slots::fill(undo, self.facts(), names).ok());
        let undo_of = |at: usize| undo.as_ref().and_then(|undo| undo.get(at).cloned());
        let all = all.into_iter().enumerate();
        let changes: Vec<_> = all.map(|(at, run)| Change { run, undo: undo_of(at) }).collect();
        let each = changes.iter().map(Change::in_words).collect::<Vec<_>>().join("; ");
        Made::Line(Done { text: sentence(&format!("{}: {each}", lead(line, id))), changes })
    }

    /// The first fix that the host lacks.
    fn upgrade(&self, line: &Action) -> Made {
        let lacks = |name: &&String| match atlas::is_commit(name) {
            true => self.facts().zfs_before(name) != Ok(false),
            false => self.facts().zfs_at_least(name) != Ok(true),
        };
        let Some(name) = line.text.upgrade.iter().find(lacks) else { return Made::No };
        let words = line.text.text.as_deref().unwrap_or("it has the fix");
        if !atlas::is_commit(name) {
            return Made::words(sentence(&format!("ZFS {name} or later: {words}")));
        }
        let releases = atlas::first_releases(name).unwrap_or_default();
        match releases.is_empty() {
            true => Made::No,
            false => {
                let releases = releases.join(" or ");
                Made::words(sentence(&format!("ZFS {releases} ({name}): {words}")))
            }
        }
    }

    /// The new disk has no name yet.
    fn replace(&self, line: &Action) -> Made {
        let words = lead(line, "Replace the disk");
        let disk = slots::fill("{device}", self.facts(), &Names::default());
        let disk = disk.ok().and_then(|all| all.into_iter().next());
        let Some(disk) = disk else { return Made::words(sentence(words)) };
        let pool = slots::fill("{pool}", self.facts(), &Names::default()).ok();
        let pool = pool.and_then(|all| all.into_iter().next());
        let place = pool.map_or(String::new(), |pool| format!(" of {pool}, with zpool replace"));
        Made::words(sentence(&format!("{words}: {disk}{place}")))
    }
}

/// The property that a line sets, and whether it is one of pools.
fn property_of(line: &Action) -> Option<(&str, bool)> {
    let (data_set, pool) = (line.text.property.as_deref(), line.text.pool_property.as_deref());
    data_set.map(|name| (name, false)).or_else(|| pool.map(|name| (name, true)))
}

/// The words before a command.
fn lead<'t>(line: &'t Action, otherwise: &'t str) -> &'t str {
    line.text.text.as_deref().unwrap_or(otherwise)
}

fn led(text: &crate::rule::ActionText, setting: Setting) -> Made {
    match setting {
        Setting::Made(made) => {
            let words = text.text.as_deref().unwrap_or("Set it");
            Made::Line(Done { text: sentence(&format!("{words}: {}", made.text)), ..made })
        }
        Setting::Already(what) => Made::Already(what),
        Setting::No => Made::No,
    }
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '?']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use regex::Regex;

    use super::*;
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};
    use crate::rule::RuleSet;

    const TOP: &str = "\
top - 18:01:00 up 20 days,  3:11,  2 users,  load average: 1.30, 1.21, 1.13
Tasks: 312 total,   2 running, 310 sleeping,   0 stopped,   0 zombie
%Cpu(s): 91.1 us,  4.8 sy,  0.0 ni,  3.9 id,  0.1 wa,  0.0 hi,  0.1 si,  0.0 st

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
   4711 max       20   0 9172000   8.1g   3000 R  96.2 12.9 110:01.33 python3
";
    const STATUS: &str = "\
  pool: tank
 state: DEGRADED
  scan: none requested
config:

        NAME        STATE     READ WRITE CKSUM
        tank        DEGRADED     0     0     0
          mirror-0  DEGRADED     0     0     0
            sda     ONLINE       0     0     0
            sdb     FAULTED      3     4     5
        cache
          nvme0n1   ONLINE       0     0     0
";
    const ARCSTATS: &str = "13 1 0x01 98 26656 4000000000 90000000000000\nname type data\n\
        size 4 4000000000\nc 4 4000000000\nc_min 4 900000000\nc_max 4 8000000000\n";
    const DBUFSTATS: &str = "15 1 0x01 2 96 1 2\nname type data\ncache_target_bytes 4 125000000\n";
    /// Values that each line changes.
    const PROPERTIES: &str = "\
NAME    PROPERTY      VALUE     SOURCE
tank/a  primarycache  metadata  local
tank/a  checksum      sha256    local
tank/a  compression   gzip-9    local
tank/a  dedup         on        local
tank/a  atime         on        local
tank/a  xattr         on        local
tank/a  sync          standard  local
tank/a  recordsize    1M        local
tank/a  snapdev       visible   local
tank/a  volmode       full      local
tank    autotrim      on        local
tank    autoexpand    on        local
";
    const MOUNT: &str = "{\n\"mount_point\": \"/mnt/my data\",\n\"arc_max_bytes\": 1,\n\"record_size_bytes\": 131072\n}\n";
    const MDSTAT: &str = "\
Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0]
      976630464 blocks super 1.2 [2/2] [UU]

unused devices: <none>
";

    /// A host with all names that an action may need, with this system and release of ZFS.
    fn host(uname: &str, zfs: &str, parameters: &[String]) -> Environment {
        let version = format!("zfs-{zfs}\nzfs-kmod-{zfs}\n");
        let files = [
            ("top.txt", TOP),
            ("zpool-status.txt", STATUS),
            ("arcstats", ARCSTATS),
            ("dbufstats", DBUFSTATS),
            ("zfs-get.txt", PROPERTIES),
            ("meminfo", "MemTotal:       16318480 kB\nMemFree:          181904 kB\n"),
            ("mount", MOUNT),
            ("mdstat", MDSTAT),
            ("uname.txt", uname),
            ("zfs-version.txt", &version),
            ("parameters", &parameters.join("\n")),
        ];
        let mut evidence = Evidence::default();
        for (name, text) in files {
            read_bytes(&mut evidence, name, text.as_bytes());
        }
        finish(&mut evidence);
        Environment::new(Facts::new(evidence))
    }

    const LINUX: &str = "Linux host 6.12.0-1-amd64 #1 SMP x86_64 GNU/Linux\n";
    const FREEBSD: &str = "FreeBSD host 14.1-RELEASE FreeBSD 14.1-RELEASE GENERIC amd64\n";

    /// Values that each line changes, by the release that has the parameter.
    fn parameters(rules: &RuleSet, freebsd: bool, zfs: &str) -> Vec<String> {
        let range = atlas::parse_versions(zfs).expect("a version");
        let lines = rules.iter().flat_map(|rule| rule.remedy.all());
        let names = lines.filter_map(|line| line.text.parameter.as_deref());
        let mut all: Vec<String> = names
            .filter_map(|name| {
                let has = |one: &atlas::Tunable| atlas::may_include(one.releases, range);
                let tunable = atlas::tunables(name).filter(has).last()?;
                let value = match name {
                    "zfs_arc_shrinker_limit"
                    | "zfs_bclone_enabled"
                    | "spl_taskq_thread_dynamic"
                    | "zfs_dmu_offset_next_sync" => "1",
                    "icp_aes_impl" | "icp_gcm_impl" => "cycle fastest [generic]",
                    "l2arc_feed_secs" => "9000000000",
                    "zfs_arc_min" | "zfs_arc_max" => "0",
                    "dbuf_cache_max_bytes" => "100000000",
                    "dbuf_cache_shift" => "5",
                    "zfs_txg_timeout" | "metaslab_df_use_largest_segment" => "0",
                    "zfs_prefetch_disable" | "zvol_request_sync" => "0",
                    "zfs_arc_meta_limit_percent" | "zfs_arc_dnode_limit_percent" => "10",
                    "zfs_vdev_aggregation_limit" | "zfs_free_min_time_ms" => "1048576",
                    _ => "80",
                };
                Some(if freebsd {
                    format!("{}: {value}", tunable.sysctl?)
                } else {
                    format!("/sys/module/zfs/parameters/{name}:{value}")
                })
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn each_action_is_made_somewhere_and_has_no_open_word() {
        static OPEN: LazyLock<Regex> = LazyLock::new(|| {
            let words = "POOL|DATASET|DEVICE|PROCESS|MOUNT|OLD|NEW|BYTES|SOURCE|DIRECTORY|NN";
            Regex::new(&format!(r"\{{[a-z]+\}}|\b({words})\b|<[a-z]+>|``")).expect("a pattern")
        });
        let rules = RuleSet::bundled().expect("they compile");
        let hosts = [
            (LINUX, "linux", "2.3.9-1"),
            (LINUX, "linux", "2.1.11-1"),
            (FREEBSD, "freebsd", "2.2.4-1"),
            (LINUX, "linux", "0.8.6-1"),
            (LINUX, "linux", "0.6.1-1"),
        ];
        let hosts = hosts.map(|(uname, system, zfs)| {
            let set = parameters(&rules, system == "freebsd", zfs);
            (system, zfs, host(uname, zfs, &set))
        });
        let mut dead = Vec::new();
        for rule in rules.iter() {
            let places = [(&rule.remedy.now, false), (&rule.remedy.lasting, true)];
            let lines = places
                .into_iter()
                .flat_map(|(all, lasting)| all.iter().map(move |line| (line, lasting)));
            for (line, lasting) in lines {
                let mut is_made = false;
                for (system, zfs, environment) in &hosts {
                    let host = Host {
                        environment,
                        system: (*system).to_owned(),
                        pools: true,
                        user: Some("python3"),
                    };
                    let made = host.made(line, lasting).expect("an expression of a rule is sound");
                    if let Made::Line(Done { text, .. }) = made {
                        is_made = true;
                        assert!(!OPEN.is_match(&text), "{} on {zfs}: {text}", rule.text.id);
                        assert!(text.ends_with(['.', '?']), "{} on {zfs}: {text}", rule.text.id);
                    }
                }
                if !is_made {
                    dead.push(format!("{}: {:?}", rule.text.id, line.text));
                }
            }
        }
        assert!(dead.is_empty(), "made on no host:\n{}", dead.join("\n"));
    }

    #[test]
    fn a_cause_has_one_thing_to_do_now_and_one_that_lasts() {
        let rules = RuleSet::bundled().expect("they compile");
        let set = parameters(&rules, false, "2.3.9-1");
        let environment = host(LINUX, "2.3.9-1", &set);
        for rule in rules.iter() {
            let made = remedy(rule, &environment, None).expect("it is sound");
            for lines in [&made.now, &made.lasting, &made.verify] {
                assert!(lines.len() <= 1, "{}: {lines:?}", rule.text.id);
            }
            // A mount's and another system's rules have nothing to do here.
            assert!(!made.now.is_empty(), "{}: nothing to do now", rule.text.id);
        }
    }

    #[test]
    fn an_upgrade_is_not_advised_where_the_fix_is_installed() {
        let rules = RuleSet::bundled().expect("they compile");
        let rule = rules.get("arc-prune-meta-pinned").expect("a rule");
        let lasting = |zfs: &str| {
            let made = remedy(rule, &host(LINUX, zfs, &[]), None).expect("it is sound");
            made.lasting.join("\n")
        };
        assert!(lasting("2.1.11-1").contains("ZFS 2.2.0 (a8d83e2a24)"), "{}", lasting("2.1.11-1"));
        assert!(!lasting("2.3.9-1").contains("ZFS "), "{}", lasting("2.3.9-1"));
    }
}
