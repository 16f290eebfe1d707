//! The roles of threads: a dictionary of thread names by version of OpenZFS, kept as data
//! (`data/thread-roles.toml`). Users can add their own.
//!
//! A name is cleaned before the lookup. Brackets and `zfskern{...}` are removed. The lookup allows
//! for the CPU (`/3`), the number of a taskq (`_3`, `-3`) and the cut that Linux makes after 15
//! bytes.

use regex::Regex;
use serde::{Deserialize, Serialize};

/// The bundled dictionary.
const BUNDLED: &str = include_str!("../data/thread-roles.toml");
/// Bytes of a thread's name on Linux.
const LINUX_NAME_BYTES: usize = 15;

/// The role of threads with matching names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The names, as a regular expression over the whole name.
    pub name: String,
    /// The group in which these threads are counted.
    pub role: String,
    /// A description of their work.
    pub what: String,
    /// The first version of OpenZFS that has them, if other entries are older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The last version that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The system that owns them: `zfs`, `kernel`, `freebsd`, `ogive`.
    pub system: String,
    /// Whether the entry only applies to names that match no other entry in any cut or numbered
    /// form.
    #[serde(default, skip_serializing)]
    pub fallback: bool,
}

/// A dictionary is invalid.
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
    /// The dictionary that is part of ogive.
    pub fn bundled() -> Self {
        Self::parse("the bundled dictionary", BUNDLED).expect("a test reads the bundled dictionary")
    }

    /// Reads a dictionary; `name` is for the error message.
    ///
    /// # Errors
    ///
    /// The text is not valid TOML of a dictionary, or a name is not a regular expression.
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

    /// This dictionary, with `other` as the fallback.
    pub fn before(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// The role of a thread with this name; `None` for a thread of a program.
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

    /// The group of a thread: its role, or its own name for a thread of a program.
    pub fn group(&self, thread: &str) -> String {
        match self.of(thread) {
            Some(role) => role.role.clone(),
            None if thread.is_empty() => "unknown".to_owned(),
            None => clean(thread).to_owned(),
        }
    }

    /// All entries in the order of lookup.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.entries.iter().map(|(.., role)| role)
    }
}

/// The name without the decorations of tools and kernels.
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

/// The literal names over 15 bytes in an expression, which Linux cuts.
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
    fn names_are_recognised_in_every_spelling() {
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
    fn own_roles_come_first_and_faults_are_reported() {
        let own = "[[role]]\nname = \"mysqld\"\nrole = \"database\"\nwhat = \"queries\"\nsystem = \"site\"\n";
        let roles = Roles::parse("own", own).unwrap().before(Roles::bundled());
        assert_eq!(roles.group("mysqld"), "database");
        assert_eq!(roles.group("mmp"), "multihost");
        let error = Roles::parse("own", &own.replace("mysqld", "(")).unwrap_err();
        assert!(error.to_string().contains("own"), "{error}");
        assert!(Roles::parse("own", "[[role]]\nnme = 1\n").is_err());
    }
}
