//! Sets a parameter on this host, or explains why not.
//!
//! A parameter is advised if this release has it and allows writes, and the system can set it. Its
//! value must fit the type and change something. The undo has the value from the evidence. Without
//! that value, the advice first shows how to read it. It also mentions what could not be checked.

use std::fmt::Write as _;

use super::argument::Argument;
use crate::atlas::{self, Tunable};
use crate::facts::Facts;
use crate::rule::{Change, Direction};

/// A list with this many parameters of a module is complete.
const WHOLE_LIST: usize = 20;
/// Parameters where 0 has no effect while the module runs, and the figure in force.
const IGNORE_ZERO: [(&str, &str); 2] = [("zfs_arc_max", "c_max"), ("zfs_arc_min", "c_min")];
/// Parameters with an effect that another parameter limits, and the figure in force.
const LIMITED: [(&str, &str); 1] = [("dbuf_cache_max_bytes", "dbufstats.cache_target_bytes")];

/// The result of an attempt to set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// The command with its undo, or the line of a file.
    Made(Done),
    /// It has this value already: name and value.
    Already(String),
    /// It is impossible here, or has no effect.
    No,
}

/// A line of a remedy: its words, and its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) text: String,
    pub(super) changes: Vec<Change>,
}

impl Done {
    /// Words without a command.
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), changes: Vec::new() }
    }

    /// A command alone.
    pub(super) fn command(command: Change) -> Self {
        Self { text: command.in_words(), changes: vec![command] }
    }
}

/// A parameter, its new value, and when to set it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) only: Option<Direction>,
    /// In the file of lasting settings, instead of at once.
    pub(super) lasting: bool,
}

/// The command for a host of this system.
pub(super) fn set(assignment: Assignment<'_>, facts: &Facts, system: &str) -> Setting {
    if assignment.name.contains('.') {
        return set_sysctl(assignment, facts, system);
    }
    let fixed = overriding(facts, assignment);
    let (name, value, overridden) = match &fixed {
        Some((name, bytes)) => (name.as_str(), bytes.as_str(), Some(assignment.name)),
        None => (assignment.name, assignment.value, None),
    };
    let now = read(facts, name);
    let Some((tunable, checked)) = known(facts, name, system, now.is_some()) else {
        return Setting::No;
    };
    if !fits(tunable.kind, value) || is_limited(facts, name, value, now.as_deref(), assignment.only)
    {
        return Setting::No;
    }
    let assignment = Assignment { name, value, ..assignment };
    if let Some(now) = &now
        && is_so(now, assignment, tunable.default == Some("0"))
    {
        let now = Argument::of(now).map_or_else(|| value.to_owned(), |now| now.to_string());
        let now = if now.contains('[') { value.to_owned() } else { now };
        return Setting::Already(format!("{name} is {now}"));
    }
    let Some(way) = Way::of(tunable, name, system, facts) else { return Setting::No };
    if assignment.lasting {
        return way.file(value).map_or(Setting::No, |line| Setting::Made(Done::words(line)));
    }
    if !tunable.writable {
        return Setting::No;
    }
    let undo = back(facts, name, now.as_deref()).map(|old| way.set(&old));
    let mut made = Done::command(Change { run: way.set(value), undo });
    if let (Some(overridden), Some(_)) = (overridden, &made.changes[0].undo) {
        // Inside the brackets of the undo.
        made.text.pop();
        let _ = write!(made.text, "; it is set and overrides {overridden})");
    } else if made.changes[0].undo.is_none() {
        let _ = write!(made.text, " (note the old value first: `{}`)", way.get());
    }
    if !checked {
        made.text.push_str(", if this release has it (not shown)");
    }
    Setting::Made(made)
}

/// The way in which a system sets it.
enum Way {
    /// A file of Linux's module.
    Module(&'static str, String),
    /// A sysctl, and the file in which it lasts.
    Sysctl(String, &'static str),
    /// A line of illumos's /etc/system.
    System(String),
}

impl Way {
    fn of(tunable: Tunable, name: &str, system: &str, facts: &Facts) -> Option<Self> {
        match system {
            "" | "linux" => Some(Self::Module(module(name, facts), name.to_owned())),
            "freebsd" => {
                let file = if tunable.writable { "/etc/sysctl.conf" } else { "/boot/loader.conf" };
                Some(Self::Sysctl(tunable.sysctl?.to_owned(), file))
            }
            "illumos" => Some(Self::System(name.to_owned())),
            _ => None,
        }
    }

    fn set(&self, value: &str) -> String {
        match self {
            Self::Module(module, name) => {
                format!("echo {value} > /sys/module/{module}/parameters/{name}")
            }
            Self::Sysctl(name, _) => format!("sysctl {name}={value}"),
            Self::System(name) => format!("set zfs:{name}={value}"),
        }
    }

    fn get(&self) -> String {
        match self {
            Self::Module(module, name) => format!("cat /sys/module/{module}/parameters/{name}"),
            Self::Sysctl(name, _) | Self::System(name) => format!("sysctl {name}"),
        }
    }

    /// The lasting line, and its file.
    fn file(&self, value: &str) -> Option<String> {
        Some(match self {
            Self::Module(module, name) => format!(
                "options {module} {name}={value} in /etc/modprobe.d/zfs.conf, and reload the \
                 module"
            ),
            Self::Sysctl(name, file) => format!("{name}={value} in {file}"),
            Self::System(name) => format!("set zfs:{name}={value} in /etc/system, and reboot"),
        })
    }
}

/// A sysctl of Linux itself.
fn set_sysctl(assignment: Assignment<'_>, facts: &Facts, system: &str) -> Setting {
    let Assignment { name, value, .. } = assignment;
    if !matches!(system, "" | "linux") {
        return Setting::No;
    }
    let now = read(facts, name);
    if let Some(now) = &now
        && is_so(now, assignment, false)
    {
        return Setting::Already(format!("{name} is {value}"));
    }
    if assignment.lasting {
        return Setting::Made(Done::words(format!("{name}={value} in /etc/sysctl.d")));
    }
    let old = now.as_deref().and_then(Argument::of);
    let undo = old.map(|old| format!("sysctl {name}={old}"));
    let mut made = Done::command(Change { run: format!("sysctl {name}={value}"), undo });
    if made.changes[0].undo.is_none() {
        let _ = write!(made.text, " (note the old value first: `sysctl {name}`)");
    }
    Setting::Made(made)
}

/// Its value in the evidence, by any of its names.
fn read(facts: &Facts, name: &str) -> Option<String> {
    let sysctl = atlas::tunables(name).filter_map(|tunable| tunable.sysctl).last();
    let text = facts.param_text(name).ok();
    let text = text.or_else(|| facts.param_text(sysctl?).ok());
    text.map(|text| text.trim().to_owned())
}

/// The tunable in this release, and whether that could be checked.
fn known(facts: &Facts, name: &str, system: &str, was_read: bool) -> Option<(Tunable, bool)> {
    let all: Vec<Tunable> = atlas::tunables(name).collect();
    let range = facts.openzfs_range();
    let has =
        |tunable: &&Tunable| range.is_none_or(|range| atlas::may_include(tunable.releases, range));
    let tunable = *all.iter().rev().find(has)?;
    if was_read {
        return Some((tunable, true));
    }
    // A whole list without it proves that it does not exist.
    let start = if system == "freebsd" { "vfs.zfs." } else { "zfs_" };
    let parameters = &facts.evidence().parameters;
    let listed = parameters.iter().filter(|known| known.name.starts_with(start)).count();
    if listed >= WHOLE_LIST {
        return None;
    }
    // illumos has the tunables of the oldest OpenZFS, and its own.
    let oldest = oldest()?;
    if system == "illumos" && !all.iter().any(|one| atlas::may_include(one.releases, oldest)) {
        return None;
    }
    Some((tunable, range.is_some()))
}

/// Whether a value fits a parameter of this type.
fn fits(kind: &str, value: &str) -> bool {
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    match kind {
        "i32" => value.parse::<i32>().is_ok(),
        "u32" => value.parse::<u32>().is_ok(),
        "u64" => value.parse::<u64>().is_ok(),
        _ => !is_number || value.parse::<u64>().is_ok(),
    }
}

/// Whether it has this value already, or is beyond it in the direction of the change.
fn is_so(now: &str, assignment: Assignment<'_>, zero_is_default: bool) -> bool {
    match (now.parse::<f64>(), assignment.value.parse::<f64>()) {
        (Ok(now), Ok(value)) if (now - value).abs() < 1e-9 => true,
        // 0 stands for a default that is not 0.
        (Ok(now), Ok(_)) if now == 0.0 && zero_is_default => false,
        (Ok(now), Ok(value)) => match assignment.only {
            Some(Direction::Up) => now > value,
            Some(Direction::Down) => now < value,
            None => false,
        },
        _ => now == assignment.value || now.contains(&format!("[{}]", assignment.value)),
    }
}

/// Whether another parameter prevents its effect.
fn is_limited(
    facts: &Facts,
    name: &str,
    value: &str,
    now: Option<&str>,
    only: Option<Direction>,
) -> bool {
    let Some((_, figure)) = LIMITED.iter().find(|(limited, _)| *limited == name) else {
        return false;
    };
    let Ok(value) = value.parse::<f64>() else { return true };
    let now = now.and_then(|now| now.parse::<f64>().ok());
    match (facts.gauge(figure), now, only) {
        // Something else holds it below the set value.
        (Ok(in_force), Some(now), Some(Direction::Up)) => now == 0.0 || now > in_force,
        (Ok(in_force), _, _) => value >= in_force,
        (Err(_), ..) => only == Some(Direction::Up),
    }
}

/// The value that undoes the change.
fn back(facts: &Facts, name: &str, now: Option<&str>) -> Option<String> {
    let ignores = IGNORE_ZERO.iter().find(|(ignores, _)| *ignores == name);
    if let Some((_, figure)) = ignores
        && now.is_none_or(|now| now == "0")
    {
        return facts.arc(figure).ok().map(|bytes| format!("{bytes:.0}"));
    }
    let now = now?;
    // In a list with a marked choice, the undo writes the choice.
    let chosen = now.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let now = chosen.map_or(now, |(chosen, _)| chosen);
    if now.contains(' ') {
        return None;
    }
    Argument::of(now).map(|now| now.to_string())
}

/// The fixed limit that overrides a percentage, where it is set, and the bytes that the percentage
/// would be of the ARC's limit.
fn overriding(facts: &Facts, assignment: Assignment<'_>) -> Option<(String, String)> {
    let fixed = assignment.name.strip_suffix("_percent")?;
    if atlas::tunables(fixed).last()?.wins_over != Some(assignment.name) {
        return None;
    }
    let set: f64 = read(facts, fixed)?.parse().ok()?;
    let percent: f64 = assignment.value.parse().ok()?;
    let more = percent / 100.0 * facts.arc("c_max").ok()?;
    // A limit lower than the set value would make it worse.
    (set > 0.0 && set < more).then(|| (fixed.to_owned(), format!("{more:.0}")))
}

/// The module of the parameter. From 2.2 on there are only `zfs` and `spl`.
fn module(name: &str, facts: &Facts) -> &'static str {
    if name.starts_with("spl_") {
        "spl"
    } else if name.starts_with("icp_") && facts.zfs_at_least("2.2.0") != Ok(true) {
        "icp"
    } else {
        "zfs"
    }
}

fn oldest() -> Option<(atlas::Version, atlas::Version)> {
    atlas::releases().first().and_then(|release| atlas::parse_versions(release))
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

    fn raise(name: &str, value: &str, files: &[(&str, &str)], system: &str) -> Setting {
        let only = Some(Direction::Up);
        set(Assignment { name, value, only, lasting: false }, &facts(files), system)
    }

    fn text(setting: Setting) -> String {
        match setting {
            Setting::Made(done) => done.text,
            other => format!("{other:?}"),
        }
    }

    const LIMIT: &str = "zfs_arc_meta_limit_percent";
    const PATH: &str = "/sys/module/zfs/parameters/zfs_arc_meta_limit_percent";

    #[test]
    fn a_fixed_limit_overrides_its_percentage_and_is_the_one_to_change() {
        let files = [
            ("arcstats", "13 1 0x01 2 96 1 2\nname type data\nc_max 4 1000000000\nsize 4 9\n"),
            (
                "parameters",
                "/sys/module/zfs/parameters/zfs_arc_meta_limit:500000000\n\
                 /sys/module/zfs/parameters/zfs_arc_meta_limit_percent:75\n",
            ),
        ];
        let made = "`echo 900000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit` (undo: `echo \
                    500000000 > /sys/module/zfs/parameters/zfs_arc_meta_limit`; it is set and \
                    overrides zfs_arc_meta_limit_percent)";
        assert_eq!(text(raise(LIMIT, "90", &files, "linux")), made);
    }

    #[test]
    fn the_undo_is_the_value_that_was_read() {
        let read = format!("{PATH}:60\n");
        let made = format!("`echo 90 > {PATH}` (undo: `echo 60 > {PATH}`)");
        let files = [("parameters", read.as_str())];
        assert_eq!(text(raise(LIMIT, "90", &files, "linux")), made);
        let made = format!("`echo 90 > {PATH}` (note the old value first: `cat {PATH}`)");
        let version = [("zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n")];
        assert_eq!(text(raise(LIMIT, "90", &version, "linux")), made);
        // A paste does not show whether the release has it.
        let unsure = format!("{made}, if this release has it (not shown)");
        assert_eq!(text(raise(LIMIT, "90", &[], "linux")), unsure);
    }

    #[test]
    fn a_parameter_that_the_release_lacks_is_not_advised() {
        let version = [("zfs-version.txt", "zfs-2.3.9-1\nzfs-kmod-2.3.9-1\n")];
        assert_eq!(raise(LIMIT, "90", &version, "linux"), Setting::No);
        let dynamic = [("zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n")];
        assert_eq!(raise("spl_taskq_thread_dynamic", "0", &dynamic, "linux"), Setting::No);
        for system in ["illumos", "macos", "windows"] {
            assert_eq!(raise("zfs_arc_dnode_limit_percent", "75", &[], system), Setting::No);
        }
    }

    #[test]
    fn a_value_that_does_not_fit_or_changes_nothing_is_not_advised() {
        let read =
            |value: &str| format!("/sys/module/zfs/parameters/dbuf_cache_max_bytes:{value}\n");
        let stats = "15 1 0x01 2 96 1 2\nname type data\ncache_target_bytes 4 17874944\n";
        // The default of all ones: the share of the ARC limits, and twice as much fits no type.
        let all_ones = read("18446744073709551615");
        let files = [("parameters", all_ones.as_str()), ("dbufstats", stats)];
        for value in ["36893488147419103232", "35749888"] {
            assert_eq!(raise("dbuf_cache_max_bytes", value, &files, "linux"), Setting::No);
        }
        let small = read("17874944");
        let files = [("parameters", small.as_str()), ("dbufstats", stats)];
        let made = raise("dbuf_cache_max_bytes", "35749888", &files, "linux");
        assert!(matches!(made, Setting::Made(_)), "{made:?}");
        let higher = format!("{PATH}:95\n");
        let files = [("parameters", higher.as_str())];
        let already = Setting::Already(format!("{LIMIT} is 95"));
        assert_eq!(raise(LIMIT, "90", &files, "linux"), already);
    }

    #[test]
    fn the_command_fits_the_system() {
        let files = [("sysctl.txt", "vfs.zfs.arc.meta_limit_percent: 75\n")];
        let made = "`sysctl vfs.zfs.arc.meta_limit_percent=90` (undo: `sysctl \
                    vfs.zfs.arc.meta_limit_percent=75`)";
        assert_eq!(text(raise(LIMIT, "90", &files, "freebsd")), made);
    }
}
