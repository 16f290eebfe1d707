//! A rule's remedy, made for the host at hand.
//!
//! A rule says `zfs set compression=lz4 DATASET` and `echo 90 > /sys/module/zfs/parameters/NAME`.
//! Here DATASET becomes the data set that the traffic implicates, or the only one there is; a
//! percentage that a fixed limit beats becomes that limit; the command is that of the operating
//! system; pools, disks and programs have their names (`named`); and behind each command stands how
//! to take it back, with the value that was set.
//!
//! A clause goes where it advises what is so already, what this host has not got (a pool, the
//! system's command, a release that is not newer), or names what nobody knows. If nothing is left
//! of what is to be done now, that is said.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::argument::Argument;
use super::{clause, named, native};
use crate::atlas;
use crate::evidence::Property;
use crate::expression::{Environment, ExpressionError};
use crate::facts::Facts;
use crate::rule::{Remedy, RemedyLine, Rule};

static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    let command = r"`echo (?P<value>\S+) > /sys/module/\w+/parameters/(?P<name>\w+)`";
    Regex::new(&format!(r"{command}(?P<undo> \((?:old value|default|undo|note)[^)]*\))?"))
        .expect("a constant pattern")
});
static PROPERTY: LazyLock<Regex> = LazyLock::new(|| {
    let command = r"`(?P<tool>zfs|zpool) set (?P<name>\w+)=(?P<value>[\w.-]+) (?:DATASET|POOL)`";
    Regex::new(&format!(r"{command}(?P<undo> \([^)]*undo:[^)]*\))?")).expect("a constant pattern")
});
/// Releases, and the commits that they brought.
static RELEASES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d+\.\d+\.\d+(?:(?:,| and) \d+\.\d+\.\d+)* \((?P<commit>[0-9a-f]{10})\b")
        .expect("a constant pattern")
});
static OR_NEWER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?P<release>\d+\.\d+\.\d+) (?:or|and) (?:newer|later)\b")
        .expect("a constant pattern")
});
/// Commands and words that are about pools and data sets.
static OF_POOLS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`(?:zpool|zfs) |\b(?:POOL|DATASET)\b").expect("a constant"));

/// What a line was made of a host, or why it was not.
#[derive(Default)]
struct Made {
    /// What it advises and is so already.
    already: Vec<String>,
    /// Names and values of the evidence that belong into its commands.
    arguments: Vec<Argument>,
}

/// The first of the characters that stand for an argument: no text of a rule has such.
const FIRST_PLACE: char = '\u{e000}';

impl Made {
    /// The place of an argument: what follows cuts and translates the rule's own words, and is to
    /// see none of the evidence's.
    fn place(&mut self, argument: Argument) -> char {
        let known = self.arguments.iter().position(|known| *known == argument);
        let at = known.unwrap_or_else(|| {
            self.arguments.push(argument);
            self.arguments.len() - 1
        });
        u32::try_from(at)
            .ok()
            .and_then(|at| char::from_u32(u32::from(FIRST_PLACE) + at))
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// The text with all arguments in their places.
    fn with_arguments(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for letter in text.chars() {
            let at = u32::from(letter).checked_sub(u32::from(FIRST_PLACE));
            match at.and_then(|at| self.arguments.get(usize::try_from(at).ok()?)) {
                Some(argument) => out.push_str(&argument.to_string()),
                None => out.push(letter),
            }
        }
        out
    }
}

/// The remedy for what the evidence shows.
pub(super) fn made_for(rule: &Rule, environment: &Environment) -> Result<Remedy, ExpressionError> {
    let facts = environment.facts();
    let pools = named::has_pool(facts).unwrap_or(named::is_of_zfs(rule));
    let mut made = Made::default();
    let mut all = |lines: &[RemedyLine]| -> Result<Vec<String>, ExpressionError> {
        let mut out = Vec::new();
        for line in lines {
            if fits(line, environment)? {
                out.extend(line_for(&line.text, facts, pools, &mut made));
            }
        }
        Ok(out)
    };
    let lines = &rule.remedy;
    let (mut now, mut lasting) = (all(&lines.now)?, all(&lines.lasting)?);
    let (verify, dont) = (all(&lines.verify)?, all(&lines.dont)?);
    if !made.already.is_empty() {
        now.insert(0, format!("Set already, so not advised: {}.", made.already.join(", ")));
    }
    let mut said = Vec::new();
    for lines in [&mut now, &mut lasting] {
        let mut hints = named::how_to_find(&lines.join(" "), facts);
        hints.retain(|hint| !said.contains(hint));
        said.extend(hints.iter().cloned());
        let hints = hints.join(" ");
        if let Some(last) = lines.last_mut().filter(|_| !hints.is_empty()) {
            *last = format!("{} {hints}", sentence(last));
        }
    }
    Ok(Remedy { now, lasting, verify, dont })
}

fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

/// Whether a line is one for this host, by its conditions.
fn fits(line: &RemedyLine, environment: &Environment) -> Result<bool, ExpressionError> {
    let holds = |condition| Ok::<_, ExpressionError>(environment.truth(condition)?.0 == Some(true));
    let wanted = line.when.as_ref().map_or(Ok(true), holds)?;
    Ok(wanted && !line.unless.as_ref().map_or(Ok(false), holds)?)
}

fn line_for(line: &str, facts: &Facts, pools: bool, made: &mut Made) -> Option<String> {
    let system = native::system(facts);
    clause::kept(line, |text| {
        if !pools && OF_POOLS.is_match(text) || has_release(text, facts) {
            return None;
        }
        let text = with_parameters(text, facts, made)?;
        let text = with_properties(&text, facts, made)?;
        if named::lacks_program(&text, facts, None) {
            return None;
        }
        // Names come last: what stands in one decides nothing.
        let text = named::fill(&native::advice(&text, &system)?, facts, None);
        Some(made.with_arguments(&text))
    })
}

/// Whether a clause advises releases that are not newer than the installed one.
fn has_release(text: &str, facts: &Facts) -> bool {
    if let Some(found) = OR_NEWER.captures(text) {
        return facts.zfs_at_least(&found["release"]) == Ok(true);
    }
    // What such a release does is told of where it is not advised, too: "0.8.0 has ...".
    let mut commits = RELEASES.captures_iter(text).peekable();
    let begins = RELEASES.find(text).is_some_and(|found| found.start() == 0);
    begins
        && commits.peek().is_some()
        && commits.all(|found| facts.zfs_before(&found["commit"]) == Ok(false))
}

/// What a rule itself says of how to take a command back.
fn said<'t>(found: &Captures<'t>) -> &'t str {
    found.name("undo").map_or("", |undo| undo.as_str())
}

/// The clause with the commands that set parameters here; `None` if it advises what is set.
fn with_parameters(text: &str, facts: &Facts, made: &mut Made) -> Option<String> {
    let (mut same, mut other) = (Vec::new(), false);
    let out = PARAMETER.replace_all(text, |found: &Captures<'_>| {
        let (value, name) = (&found["value"], &found["name"]);
        let Some(set) = parameter(facts, value, name, made) else {
            other = true;
            return found[0].to_owned();
        };
        let raises = text[..found.get(0).map_or(0, |whole| whole.start())].contains("aise");
        if set.is_so(raises) {
            let now = set.now.as_deref().filter(|now| !now.contains('['));
            let now = now.filter(|now| Argument::of(now).is_some());
            same.push(format!("{} is {}", set.name, now.unwrap_or(value)));
        } else {
            other = true;
        }
        format!("`{}`{}", set.command, set.undo.as_deref().unwrap_or(said(found)))
    });
    if !same.is_empty() && !other {
        made.already.extend(same);
        return None;
    }
    Some(out.into_owned())
}

/// The clause with the data set or pool whose property is to be set; `None` if all have the value.
fn with_properties(text: &str, facts: &Facts, made: &mut Made) -> Option<String> {
    let (mut same, mut other) = (Vec::new(), false);
    let out = PROPERTY.replace_all(text, |found: &Captures<'_>| {
        let (tool, name, value) = (&found["tool"], &found["name"], &found["value"]);
        let now = match implicated(facts, tool == "zpool", name, value) {
            Whose::This(now) => now,
            Whose::HasIt { owner, others } => {
                let on = match Argument::of(&owner) {
                    Some(_) if others => format!(" on {owner} and others"),
                    Some(_) => format!(" on {owner}"),
                    None => String::new(),
                };
                same.push(format!("{name}={value}{on}"));
                return found[0].to_owned();
            }
            Whose::Unknown => {
                other = true;
                return found[0].to_owned();
            }
        };
        other = true;
        let Some(owner) = Argument::of(&now.owner).map(|owner| made.place(owner)) else {
            return found[0].to_owned();
        };
        let own = now.origin.as_deref().is_none_or(|origin| matches!(origin, "local" | "received"));
        let before = Argument::of(&format!("{name}={}", now.value));
        let undo = match before {
            _ if !own && tool != "zpool" => format!("zfs inherit {name} {owner}"),
            Some(before) => format!("{tool} set {} {owner}", made.place(before)),
            // What it was cannot be typed, so that the rule's words stay.
            None => return format!("`{tool} set {name}={value} {owner}`{}", said(found)),
        };
        format!("`{tool} set {name}={value} {owner}` (undo: `{undo}`)")
    });
    if !same.is_empty() && !other {
        made.already.extend(same);
        return None;
    }
    Some(out.into_owned())
}

/// A command that sets a parameter here.
struct Set {
    name: String,
    value: String,
    now: Option<String>,
    command: String,
    /// How to take it back, where the value is known.
    undo: Option<String>,
}

impl Set {
    /// Whether it is set so already; where it is to be raised, or higher.
    fn is_so(&self, raises: bool) -> bool {
        let Some(now) = &self.now else { return false };
        match (now.parse::<f64>(), self.value.parse::<f64>()) {
            (Ok(now), Ok(wanted)) => (now - wanted).abs() < 1e-9 || raises && now > wanted,
            _ => *now == self.value || now.contains(&format!("[{}]", self.value)),
        }
    }
}

/// The command that sets a parameter here, and how to take it back where its value is known.
fn parameter(facts: &Facts, value: &str, name: &str, made: &mut Made) -> Option<Set> {
    let value = &amount(facts, value, name);
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
    let now = now.map(|text| text.trim().to_owned());
    let beaten =
        beats.map_or_else(String::new, |percent| format!("; it is set and beats {percent}"));
    // A list with the chosen one marked is no value that can be written back.
    let back = now.as_ref().filter(|text| !text.contains(' '));
    let back = back.and_then(|now| Argument::of(now)).map(|now| made.place(now).to_string());
    let undo = back.map(|now| format!(" (undo: `{}`{beaten})", set(&now)));
    Some(Set { command: set(&value), name: there.clone(), value, now, undo })
}

/// A value that depends on the host: parts of RAM, and so many times what is set.
fn amount(facts: &Facts, value: &str, name: &str) -> String {
    let of_ram = |part: f64| facts.ram_bytes().ok().map(|bytes| bytes * part);
    let number = match value {
        "RAM/8" => of_ram(0.125),
        "RAM/2" => of_ram(0.5),
        "85%" => facts.arc("c_max").ok().map(|bytes| bytes * 0.85),
        "2x" => facts.param(name).ok().map(|now| now * 2.0),
        "1/2x" => facts.param(name).ok().map(|now| now / 2.0),
        plain => return plain.to_owned(),
    };
    number.filter(|bytes| *bytes >= 1.0).map_or("BYTES".to_owned(), |bytes| format!("{bytes:.0}"))
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

/// Whose property is to be set.
enum Whose<'f> {
    /// This one's.
    This(&'f Property),
    /// Nobody's: this one, or all, have the value.
    HasIt { owner: String, others: bool },
    /// It cannot be told.
    Unknown,
}

/// The data set or pool that is meant: of those whose property is shown the one with most traffic,
/// else, of those that have another value, the only one that set it for itself, or the only one.
fn implicated<'f>(facts: &'f Facts, of_pool: bool, name: &str, value: &str) -> Whose<'f> {
    let all = &facts.evidence().properties;
    let shown: Vec<&Property> = all
        .iter()
        .filter(|property| property.of_pool == of_pool && property.name == name)
        .filter(|property| property.value != "-")
        .collect();
    let busiest = facts
        .datasets_by_traffic()
        .into_iter()
        .find_map(|(dataset, _)| shown.iter().copied().find(|property| property.owner == dataset));
    if let Some(busiest) = busiest {
        let has_it = is_value(name, &busiest.value, value);
        let it = Whose::HasIt { owner: busiest.owner.clone(), others: false };
        return if has_it { it } else { Whose::This(busiest) };
    }
    let differ: Vec<&Property> =
        shown.iter().copied().filter(|one| !is_value(name, &one.value, value)).collect();
    if let (true, Some(first)) = (differ.is_empty(), shown.first()) {
        return Whose::HasIt { owner: first.owner.clone(), others: shown.len() > 1 };
    }
    let only = |found: Vec<&'f Property>| if let [one] = found[..] { Some(one) } else { None };
    let own = differ.iter().copied().filter(|one| one.origin.as_deref() == Some("local")).collect();
    let this = only(own).or_else(|| only(differ)).filter(|one| !one.owner.is_empty());
    this.map_or(Whose::Unknown, Whose::This)
}

/// Whether a property has a value, also where it is called `on`.
fn is_value(name: &str, now: &str, wanted: &str) -> bool {
    let on = match name {
        "compression" => "lz4",
        "checksum" => "fletcher4",
        _ => "on",
    };
    let plain = |value: &str| if value == "on" { on.to_owned() } else { value.to_owned() };
    plain(now) == plain(wanted)
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

    /// The line for a host; one of which nothing is left is empty.
    fn line(line: &str, facts: &Facts) -> String {
        line_for(line, facts, true, &mut Made::default()).unwrap_or_default()
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
        let text = "`zfs set compression=lz4 DATASET` (undo: set the old value); new blocks only.";
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
            line(text, &facts(&files)),
            "`zfs set compression=lz4 tank/busy` (undo: `zfs inherit compression tank/busy`); new \
             blocks only."
        );
        // One reading says nothing about now: two could be meant, one of them set it for itself.
        assert_eq!(
            line(text, &facts(&files[..3])),
            "`zfs set compression=lz4 tank/idle` (undo: `zfs set compression=gzip-9 tank/idle`); \
             new blocks only."
        );
        assert_eq!(line(text, &facts(&[])), text);
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
            line(LIMIT, &facts(&files)),
            "`echo 900000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit` (undo: `echo \
             500000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit`; it is set and beats \
             zfs_arc_meta_limit_percent), or more."
        );
    }

    #[test]
    fn what_takes_it_back_is_the_value_that_was_set() {
        let files = [("parameters", "/sys/module/zfs/parameters/zfs_arc_meta_limit_percent:60\n")];
        assert_eq!(
            line(LIMIT, &facts(&files)),
            "`echo 90 > /sys/module/zfs/parameters/zfs_arc_meta_limit_percent` (undo: `echo 60 > \
             /sys/module/zfs/parameters/zfs_arc_meta_limit_percent`), or more."
        );
        assert_eq!(line(LIMIT, &facts(&[])), LIMIT);
    }

    #[test]
    fn the_program_and_the_only_pool_are_called_by_their_names() {
        let top = "\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
   1371 user      20   0   30000   4000   3000 R  99.8  0.0  29:13.91 python3
";
        let text = "`renice 10 -p $(pgrep -x PROCESS)`; `zpool status POOL`";
        let files = [("top.txt", top), ("zfs-get.txt", PROPERTIES)];
        assert_eq!(
            line(text, &facts(&files)),
            "`renice 10 -p $(pgrep -x python3)`; `zpool status tank`"
        );
        assert_eq!(line(text, &facts(&[])), "`zpool status POOL`");
    }

    #[test]
    fn the_command_is_that_of_the_system() {
        let files = [
            ("uname.txt", "FreeBSD host 13.2-RELEASE FreeBSD 13.2-RELEASE GENERIC amd64\n"),
            ("sysctl.txt", "vfs.zfs.arc.meta_limit_percent: 75\n"),
        ];
        assert_eq!(
            line(LIMIT, &facts(&files)),
            "`sysctl vfs.zfs.arc.meta_limit_percent=90` (undo: `sysctl \
             vfs.zfs.arc.meta_limit_percent=75`), or more."
        );
    }
}
