//! Commands that set properties: `zfs set`, `zfs create -o`, `zpool create -o -O`, `zpool set`.
//! Also settings that people list as `recordsize=8k`, without a dataset.
//!
//! A property that was set is in force until a later `zfs get` says otherwise; both are kept, with
//! their lines. Short names (`compress`, `recsize`) are expanded, because ZFS accepts them. A name
//! that is no property of ZFS sets nothing here.

use super::properties;
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Names that other programs use too, each with the values that only a ZFS property has.
const BY_VALUE: [(&str, &str); 8] = [
    ("sync", "standard always disabled"),
    ("direct", "standard always disabled"),
    ("prefetch", "all none metadata"),
    ("exec", "on off"),
    ("devices", "on off"),
    ("readonly", "on off"),
    ("encryption", "on off"),
    ("copies", "1 2 3"),
];

/// Names that are too common to mean ZFS without a dataset.
const TOO_COMMON: &str = "type size free used version health creation available capacity allocated mounted written \
     quota";

/// `name=value` with a name that ZFS knows. Names of user properties contain a colon.
fn pair(word: &str) -> Option<(String, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = properties::whole_name(name);
    let value = value.trim_matches(['"', '\'', '`']);
    (!value.is_empty() && (properties::is_known(&name) || name.contains(':')))
        .then_some((name, value))
}

/// Properties that `zpool create -o` sets on the pool.
fn is_of_pool(name: &str) -> bool {
    properties::is_of_pool(name) || name.starts_with("feature@")
}

/// The properties that a command sets: name, value, whether the pool has it; and their owners.
#[derive(Debug, Default, PartialEq)]
struct Sets {
    pairs: Vec<(String, String, bool)>,
    owners: Vec<String>,
}

/// The words from `zfs` or `zpool` on, without the prompt.
fn words_of(command: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_tool = |word: &str| matches!(word.rsplit('/').next(), Some("zfs" | "zpool"));
    let at = words.iter().take(6).position(|word| is_tool(word))?;
    Some(words[at..].to_vec())
}

/// The properties that `command` sets; `None` if it sets none.
fn parse(command: &str) -> Option<Sets> {
    let words = words_of(command)?;
    let of_pool = words[0].ends_with("zpool");
    let mut rest = words[1..].iter().copied();
    let verb = rest.next()?;
    let mut sets = Sets::default();
    match (of_pool, verb) {
        (_, "set") => {
            for word in rest {
                match pair(word) {
                    Some((name, value)) => sets.pairs.push((name, value.to_owned(), of_pool)),
                    None if word.starts_with('-') || word.contains('=') => {}
                    None if is_end(word) => break,
                    None => sets.owners.push(word.to_owned()),
                }
            }
        }
        (true, "create" | "import" | "split")
        | (false, "create" | "clone" | "receive" | "recv") => {
            options(rest, of_pool, verb, &mut sets);
        }
        _ => return None,
    }
    (!sets.pairs.is_empty()).then_some(sets)
}

/// Whether a word ends the command.
fn is_end(word: &str) -> bool {
    word.starts_with(['|', '>', ';', '&', '#', '<']) || word.ends_with(';')
}

/// The options of a command that creates: `-o name=value`, `-O name=value`, `-V size`, `-b size`.
fn options<'a>(words: impl Iterator<Item = &'a str>, of_pool: bool, verb: &str, sets: &mut Sets) {
    let mut words = words;
    while let Some(word) = words.next() {
        if is_end(word) {
            break;
        }
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            // `clone` names the new dataset last, the other commands first.
            if verb != "clone" || !word.contains('@') {
                sets.owners.push(word.to_owned());
                break;
            }
            continue;
        };
        let takes = match (of_pool, verb) {
            (true, "create") => "oOmRt",
            (true, _) => "oOmR",
            (false, _) => "oVbx",
        };
        let Some(at) = option.find(|letter| takes.contains(letter)) else { continue };
        let value = match &option[at + 1..] {
            "" => words.next().unwrap_or_default(),
            joined => joined,
        };
        set_by_option(&option[at..=at], value, of_pool, sets);
    }
}

fn set_by_option(flag: &str, value: &str, of_pool: bool, sets: &mut Sets) {
    let (name, value) = match (of_pool, flag) {
        (_, "o" | "O") => match pair(value) {
            Some((name, value)) => (name, value),
            None => return,
        },
        (false, "V") => ("volsize".to_owned(), value),
        (false, "b") => ("volblocksize".to_owned(), value),
        (true, "m") => ("mountpoint".to_owned(), value),
        _ => return,
    };
    let of_pool = of_pool && flag == "o" && is_of_pool(&name);
    sets.pairs.push((name, value.to_owned(), of_pool));
}

/// Takes the properties that a command sets; `false` if it sets none.
pub(crate) fn take(command: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let mut taken = false;
    for sets in command.split("&&").flat_map(|part| part.split(';')).filter_map(parse) {
        let unnamed = [String::new()];
        let owners = if sets.owners.is_empty() { &unnamed[..] } else { &sets.owners };
        for owner in owners {
            for (name, value, of_pool) in &sets.pairs {
                reading.property(owner, *of_pool, name, value, line);
            }
        }
        taken = true;
    }
    taken
}

/// Whether a line is such a command, with or without a prompt.
pub(crate) fn is_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_prompt = |word: &&str| {
        matches!(*word, "sudo" | "doas" | "time" | "#" | "$" | "%" | ">" | "~")
            || word.ends_with(['$', '#', '%', '>', '\u{276f}', '\u{279c}'])
    };
    let first = words.find(|word| !is_prompt(word)).unwrap_or_default();
    matches!(first.rsplit('/').next(), Some("zfs" | "zpool"))
        && !first.starts_with('.')
        && parse(text).is_some()
}

/// Reads such commands. A backslash at the end of a line continues the command.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut lines = section.lines.iter();
    while let Some(line) = lines.next() {
        if !take(&joined(line.text.trim(), &mut lines), line, reading) {
            reading.leave(line);
        }
    }
}

/// Lines of one command at most.
const MAX_LINES: usize = 64;

/// The whole command: a line that ends with a backslash continues in the next.
pub(crate) fn joined<'a>(first: &str, next: &mut impl Iterator<Item = &'a Line<'a>>) -> String {
    let mut command = first.to_owned();
    for _ in 1..MAX_LINES {
        let Some(open) = command.strip_suffix('\\') else { break };
        let Some(line) = next.next() else { break };
        command = format!("{} {}", open.trim_end(), line.text.trim());
    }
    command
}

/// `name=value` in a list, if no other program uses that name.
fn listed(word: &str) -> Option<(String, &str)> {
    let (name, value) = pair(word)?;
    let by_value = BY_VALUE.iter().find(|(known, _)| *known == name);
    let ours = by_value.is_none_or(|(_, values)| word_lists::has(values, value));
    (ours && !word_lists::has(TOO_COMMON, &name) && !name.contains([':', '@']))
        .then_some((name, value))
}

/// The pairs of a line that holds only pairs.
fn all_listed(text: &str) -> Option<Vec<(String, &str)>> {
    let text = text.trim_start_matches(['*', '-', '•', '–', ' ']).trim_end_matches([',', ';', ' ']);
    if let Some((name, value)) = text.split_once(" = ") {
        let (name, value) = (name.trim(), value.trim());
        let single = !name.contains(char::is_whitespace) && !value.contains(char::is_whitespace);
        let word = properties::whole_name(name);
        let ours = properties::is_known(&word) && !word_lists::has(TOO_COMMON, &word);
        return (single && ours).then_some(vec![(word, value)]);
    }
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty() && *word != "-o");
    let pairs: Option<Vec<_>> = words.map(listed).collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

/// Whether a line holds settings without the name of their dataset.
pub(crate) fn is_listed(text: &str) -> bool {
    text.contains('=') && all_listed(text).is_some()
}

/// Reads such lines.
pub(crate) fn read_listed(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        match all_listed(&line.text) {
            Some(pairs) => {
                for (name, value) in pairs {
                    reading.property("", properties::is_of_pool(&name), &name, value, line);
                }
            }
            None => reading.leave(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(command: &str) -> (Vec<String>, Vec<String>) {
        let sets = parse(command).unwrap_or_default();
        let pairs = sets.pairs.iter().map(|(name, value, of_pool)| {
            format!("{}{name}={value}", if *of_pool { "pool " } else { "" })
        });
        (pairs.collect(), sets.owners)
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn commands_set_properties_of_datasets_and_pools() {
        for (command, pairs, owners) in [
            ("zfs set compress=lz4 tank/a", &["compression=lz4"][..], &["tank/a"][..]),
            (
                "sudo zfs set sync=disabled atime=off tank/a tank/b",
                &["sync=disabled", "atime=off"],
                &["tank/a", "tank/b"],
            ),
            ("zfs create -p -o recsize=16K tank/a", &["recordsize=16K"], &["tank/a"]),
            (
                "/sbin/zfs create -sV 10G -b 16k tank/v",
                &["volsize=10G", "volblocksize=16k"],
                &["tank/v"],
            ),
            ("zfs create -V10G tank/v", &["volsize=10G"], &["tank/v"]),
            (
                "zpool create -f -o ashift=12 -O atime=off -m /srv tank mirror sda sdb",
                &["pool ashift=12", "atime=off", "mountpoint=/srv"],
                &["tank"],
            ),
            ("zpool set autotrim=on tank", &["pool autotrim=on"], &["tank"]),
            ("zfs clone -o sync=always tank/a@s tank/b", &["sync=always"], &["tank/b"]),
            ("zfs list -o name", &[], &[]),
            ("zfs set", &[], &[]),
            ("zfs set nothing=known tank", &[], &[]),
        ] {
            assert_eq!(sets(command), (owned(pairs), owned(owners)), "{command}");
        }
    }

    #[test]
    fn settings_of_other_programs_are_not_properties_of_zfs() {
        assert!(is_listed("recordsize=8k"));
        assert!(is_listed("- compression=lz4, atime=off"));
        assert!(is_listed("sync=disabled"));
        assert!(is_listed("recordsize = 128K"));
        for text in ["sync=1", "direct=1", "size=10G", "rw=randread", "a=b", "=", "type=disk"] {
            assert!(!is_listed(text), "{text}");
        }
        assert!(is_command("\u{276f} sudo zfs set atime=off tank"));
        assert!(!is_command("zfs set: the command was wrong"));
        assert!(!is_command("we said zfs set atime=off tank and waited"));
    }
}
