//! Sets a property of data sets or pools, or explains why not.
//!
//! The advice names the data sets with traffic whose property is shown. Otherwise it names the only
//! one that sets the property itself, or the only one at all. If none is known, the advice names
//! none and shows how to find it.

use std::fmt::Write as _;

use super::argument::Argument;
use super::parameter::{Done, Setting};
use crate::atlas;
use crate::evidence::Property;
use crate::facts::Facts;
use crate::rule::Change;

/// Data sets with less than this part of the largest traffic are ignored.
const WORTH: f64 = 0.2;
/// The most data sets that are named.
const MAX_OWNERS: usize = 3;
/// Records that are too large by less than this factor stay as they are.
const TIMES_TOO_LARGE: f64 = 2.0;
/// The record size where the size of reads and writes is unknown.
const SMALL_RECORD: &str = "16K";
/// A rule's value that stands for the size of programs' reads and writes.
const IO_SIZE: &str = "io-size";

/// The changes, with their undo.
pub(super) fn set(name: &str, value: &str, of_pool: bool, facts: &Facts) -> Option<Setting> {
    let has = |runs| facts.openzfs_range().is_none_or(|range| atlas::may_include(runs, range));
    if !atlas::brought(name).is_none_or(has) {
        return Some(Setting::No);
    }
    let meant = implicated(facts, of_pool, name, value);
    let (mut made, mut already) = (Vec::new(), Vec::new());
    for now in &meant {
        let Some(new) = value_for(value, now, facts) else {
            already.push(*now);
            continue;
        };
        if is_value(name, &now.value, &new) {
            already.push(*now);
        } else {
            made.extend(command(name, &new, now));
        }
    }
    if !made.is_empty() {
        let (texts, changes): (Vec<String>, Vec<Change>) = made.into_iter().unzip();
        return Some(Setting::Made(Done { text: texts.join("; "), changes }));
    }
    let first = already.first()?;
    let on = match Argument::of(&first.owner) {
        Some(owner) if already.len() > 1 => format!(" on {owner} and others"),
        Some(owner) => format!(" on {owner}"),
        None => String::new(),
    };
    let value = if value == IO_SIZE { first.value.as_str() } else { value };
    let value = Argument::of(value).map_or_else(String::new, |value| format!("={value}"));
    Some(Setting::Already(format!("{name}{value}{on}")))
}

/// The value as text, where no owner is known.
pub(super) fn in_words(value: &str) -> &str {
    if value == IO_SIZE { SMALL_RECORD } else { value }
}

/// The command for one owner, as text and as a change.
fn command(name: &str, value: &str, now: &Property) -> Option<(String, Change)> {
    let owner = Argument::of(&now.owner)?;
    let tool = if now.of_pool { "zpool" } else { "zfs" };
    let own = now.origin.as_deref().is_none_or(|origin| matches!(origin, "local" | "received"));
    let undo = match Argument::of(&format!("{name}={}", now.value)) {
        _ if !own && !now.of_pool => Some(format!("zfs inherit {name} {owner}")),
        before => before.map(|before| format!("{tool} set {before} {owner}")),
    };
    let command = Change { run: format!("{tool} set {name}={value} {owner}"), undo };
    let mut text = command.in_words();
    if command.undo.is_none() {
        let _ = write!(text, " (note the old value first: `{tool} get {name} {owner}`)");
    }
    Some((text, command))
}

/// The value for this data set; `None` where its records have about the right size.
fn value_for(value: &str, now: &Property, facts: &Facts) -> Option<String> {
    if value != IO_SIZE {
        return Some(value.to_owned());
    }
    let Some(bytes) = facts.io_size(&now.owner) else { return Some(SMALL_RECORD.to_owned()) };
    let record = facts.dataset_number(&now.owner, &now.name)?;
    let mut size = 4096.0;
    while size < bytes && size < record {
        size *= 2.0;
    }
    (size * TIMES_TOO_LARGE <= record).then(|| format!("{:.0}K", size / 1024.0))
}

/// The data sets or pools to change; none where the evidence does not show them.
fn implicated<'f>(facts: &'f Facts, of_pool: bool, name: &str, value: &str) -> Vec<&'f Property> {
    let all = &facts.evidence().properties;
    let shown: Vec<&Property> = all
        .iter()
        .filter(|property| property.of_pool == of_pool && property.name == name)
        .filter(|property| property.value != "-" && !property.owner.is_empty())
        .collect();
    let used = facts.datasets_by_traffic();
    let most = used.first().map_or(0.0, |(_, bytes)| *bytes);
    let used = used.iter().filter(|(_, bytes)| *bytes >= WORTH * most);
    let owner = |name: &str| {
        if of_pool { name.split('/').next() } else { Some(name) }.unwrap_or_default().to_owned()
    };
    let mut busy: Vec<&Property> = Vec::new();
    for (dataset, _) in used {
        let owner = owner(dataset);
        let found = shown.iter().copied().find(|property| property.owner == owner);
        let is_new = |found: &&Property| !busy.iter().any(|known| known.owner == found.owner);
        busy.extend(found.filter(is_new));
    }
    if !busy.is_empty() {
        busy.truncate(MAX_OWNERS);
        return busy;
    }
    // Among large records, take the largest.
    let differs = |one: &&Property| match value {
        IO_SIZE => facts.dataset_number(&one.owner, name).is_some_and(|size| size > 131_072.0),
        value => !is_value(name, &one.value, value),
    };
    let differ: Vec<&Property> = shown.iter().copied().filter(differs).collect();
    if differ.is_empty() {
        return shown;
    }
    let only = |found: Vec<&'f Property>| if let [one] = found[..] { Some(one) } else { None };
    let own = differ.iter().copied().filter(|one| one.origin.as_deref() == Some("local")).collect();
    only(own).or_else(|| only(differ)).into_iter().collect()
}

/// Whether a property has a value, also where it is written as `on`.
fn is_value(name: &str, now: &str, new: &str) -> bool {
    let on = match name {
        "compression" => "lz4",
        "checksum" => "fletcher4",
        _ => "on",
    };
    let plain = |value: &str| if value == "on" { on.to_owned() } else { value.to_owned() };
    plain(now) == plain(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    fn made(name: &str, value: &str, files: &[(&str, &str)]) -> Option<String> {
        let mut evidence = Evidence::default();
        for (name, text) in files {
            read_bytes(&mut evidence, name, text.as_bytes());
        }
        finish(&mut evidence);
        match set(name, value, false, &Facts::new(evidence))? {
            Setting::Made(done) => Some(done.text),
            other => Some(format!("{other:?}")),
        }
    }

    const PROPERTIES: &str = "\
NAME        PROPERTY     VALUE   SOURCE
tank/idle   compression  gzip-9  local
tank/busy   compression  zstd-19 inherited from tank
tank/idle   recordsize   128K    default
tank/busy   recordsize   1M      local
";

    fn objset(name: &str, read: u64, written: u64, taken: u64) -> String {
        format!(
            "30 1 0x01 7 2160 1000000000 {taken}\nname type data\ndataset_name 7 {name}\n\
             writes 4 {}\nnwritten 4 {written}\nreads 4 1\nnread 4 {read}\nnunlinks 4 0\n\
             nunlinked 4 0\n",
            written / 6000
        )
    }

    #[test]
    fn the_advice_names_the_dataset_with_traffic() {
        let texts = [
            objset("tank/idle", 9_000_000, 0, 2_000_000_000),
            objset("tank/busy", 0, 6_000, 2_000_000_000),
            objset("tank/idle", 9_000_000, 0, 9_000_000_000),
            objset("tank/busy", 0, 900_000, 9_000_000_000),
        ];
        let files = [
            ("zfs-get.txt", PROPERTIES),
            ("start/proc/spl/kstat/zfs/tank/objset-0x36", texts[0].as_str()),
            ("start/proc/spl/kstat/zfs/tank/objset-0x40", texts[1].as_str()),
            ("end/proc/spl/kstat/zfs/tank/objset-0x36", texts[2].as_str()),
            ("end/proc/spl/kstat/zfs/tank/objset-0x40", texts[3].as_str()),
        ];
        let made_of = |value: &str| Some(value.to_owned());
        assert_eq!(
            made("compression", "lz4", &files),
            made_of(
                "`zfs set compression=lz4 tank/busy` (undo: `zfs inherit compression tank/busy`)"
            )
        );
        // One reading proves nothing about now: there are two candidates, and one of them set it
        // locally.
        assert_eq!(
            made("compression", "lz4", &files[..3]),
            made_of(
                "`zfs set compression=lz4 tank/idle` (undo: `zfs set compression=gzip-9 tank/idle`)"
            )
        );
        assert_eq!(made("compression", "lz4", &[]), None);
        // Writes of 6,000 bytes ask for records of 8 KiB.
        assert_eq!(
            made("recordsize", "io-size", &files),
            made_of("`zfs set recordsize=8K tank/busy` (undo: `zfs set recordsize=1M tank/busy`)")
        );
    }
}
