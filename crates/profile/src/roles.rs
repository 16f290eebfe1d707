//! What threads do: a dictionary of names by version of OpenZFS, kept as data
//! (`data/thread-roles.toml`), to which users can add their own.
//!
//! A name as tools print it is cleaned first. Brackets and `zfskern{...}` go. The CPU (`/3`), the
//! number of a taskq (`_3`, `-3`) and what Linux cut off after 15 bytes are allowed for.

use regex::Regex;
use serde::{Deserialize, Serialize};

/// The bundled dictionary.
const BUNDLED: &str = include_str!("../data/thread-roles.toml");
/// Bytes of a thread's name on Linux.
const LINUX_NAME_BYTES: usize = 15;

/// What threads of one name do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The names, as a regular expression over the whole name.
    pub name: String,
    /// The group these threads are counted in.
    pub role: String,
    /// What they do.
    pub what: String,
    /// The first version of OpenZFS that has them, where they are not as old as the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The last version that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whose: `zfs`, `kernel`, `freebsd`, `ogive`.
    pub system: String,
    /// Only for names that no other entry has, however they were cut off or numbered.
    #[serde(default, skip_serializing)]
    pub fallback: bool,
}

/// A dictionary that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("the thread roles in {name} cannot be used: {reason}")]
pub struct RolesError {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    role: Vec<Role>,
}

/// A dictionary.
#[derive(Debug, Clone)]
pub struct Roles {
    entries: Vec<(Regex, Vec<String>, Role)>,
}

impl Roles {
    /// The dictionary that comes with ogive.
    pub fn bundled() -> Self {
        Self::parse("the bundled dictionary", BUNDLED).expect("a test reads the bundled dictionary")
    }

    /// Reads a dictionary; `name` is for the message.
    ///
    /// # Errors
    ///
    /// The text is no such TOML, or a name no regular expression.
    pub fn parse(name: &str, text: &str) -> Result<Self, RolesError> {
        let fail = |reason: String| RolesError { name: name.to_owned(), reason };
        let file: File = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        let mut entries = Vec::new();
        for role in file.role {
            let regex = Regex::new(&format!("^(?:{})$", role.name))
                .map_err(|error| fail(error.to_string()))?;
            entries.push((regex, long_names(&role.name), role));
        }
        Ok(Self { entries })
    }

    /// This dictionary, asked before another.
    pub fn before(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// What a thread of this name does; `None` for a program's thread.
    pub fn of(&self, thread: &str) -> Option<&Role> {
        let name = clean(thread);
        let found = self.entries.iter().find(|(regex, ..)| regex.is_match(name));
        if let Some((.., role)) = found
            && !role.fallback
        {
            return Some(role);
        }
        let numberless = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numberless = numberless.strip_suffix(['_', '-']).unwrap_or(name);
        let by_number = self
            .entries
            .iter()
            .find(|(regex, _, role)| !role.fallback && regex.is_match(numberless));
        if let Some((.., role)) = by_number {
            return Some(role);
        }
        if name.len() == LINUX_NAME_BYTES
            && let Some((.., role)) = self
                .entries
                .iter()
                .find(|(_, long, _)| long.iter().any(|long| long.starts_with(name)))
        {
            return Some(role);
        }
        found.map(|(.., role)| role)
    }

    /// The group a thread is counted in: its role, or its own name for a program's.
    pub fn group(&self, thread: &str) -> String {
        match self.of(thread) {
            Some(role) => role.role.clone(),
            None if thread.is_empty() => "unknown".to_owned(),
            None => clean(thread).to_owned(),
        }
    }

    /// All entries, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.entries.iter().map(|(.., role)| role)
    }
}

/// The name without what tools and kernels put around it.
fn clean(thread: &str) -> &str {
    let mut name = thread.trim();
    for (before, after) in [("zfskern{", "}"), ("kernel{", "}"), ("[", "]"), ("{", "}"), ("(", ")")]
    {
        if let Some(inner) =
            name.strip_prefix(before).and_then(|name| name.strip_suffix(after).or(Some(name)))
        {
            name = inner;
        }
    }
    match name.rsplit_once('/') {
        Some((before, number))
            if !before.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b':') =>
        {
            before
        }
        _ => name,
    }
}

/// The literal names over 15 bytes among the alternatives of an expression, which Linux cuts.
fn long_names(expression: &str) -> Vec<String> {
    expression
        .split('|')
        .filter(|name| name.len() > LINUX_NAME_BYTES)
        .filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_however_they_are_written() {
        let roles = Roles::bundled();
        let what = |name: &str| roles.of(name).map(|role| role.what.as_str()).unwrap_or("none");
        let read = "read completion: checksum, decrypt, decompress";
        for name in [
            "z_rd_int",
            "z_rd_int_3",
            "[z_rd_int/1]",
            "z_rd_int-12",
            "z_rd_int_h",
            "zfskern{z_rd_int_0}",
        ] {
            assert_eq!(what(name), read, "{name}");
        }
        let group = |name: &str| roles.group(name);
        assert_eq!(group("z_unlinked_drai"), "unlinked drain");
        assert_eq!(group("metaslab_group_"), "metaslab load");
        assert_eq!(group("zfskern{arc_prune}"), "ARC prune");
        assert_eq!(group("arc_prune/0"), "ARC prune");
        assert_eq!(group("dbu_evict"), "dbuf users' eviction");
        assert_ne!(group("dbuf_evict"), group("dbu_evict"));
        assert_eq!(group("kworker/u4:1-events"), "kworker");
        assert_eq!(group("ksoftirqd/0"), "soft interrupts");
        assert_eq!(group("z_new_thing"), "ZFS other");
        assert_eq!(group("mysqld"), "mysqld");
        assert_eq!(roles.of("arc_adapt").and_then(|role| role.until.as_deref()), Some("0.6.4"));
    }

    #[test]
    fn own_roles_come_first_and_faults_are_told() {
        let own = "[[role]]\nname = \"mysqld\"\nrole = \"database\"\nwhat = \"queries\"\nsystem = \"site\"\n";
        let roles = Roles::parse("own", own).unwrap().before(Roles::bundled());
        assert_eq!(roles.group("mysqld"), "database");
        assert_eq!(roles.group("mmp"), "multihost");
        let error = Roles::parse("own", &own.replace("mysqld", "(")).unwrap_err();
        assert!(error.to_string().contains("own"), "{error}");
        assert!(Roles::parse("own", "[[role]]\nnme = 1\n").is_err());
    }
}
