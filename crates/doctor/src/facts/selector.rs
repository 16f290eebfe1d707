//! The functions or threads that a rule asks about: a pattern of names, subsystems, or roles.
//!
//! In the language of rules, `subsystem("ddt, brt")` and `role("read")` return a text that no
//! pattern can be. It is parsed here, so every question that takes a pattern also takes these.

use regex::Regex;

use crate::atlas;

/// The prefix of a text of subsystems; no pattern has it.
const SUBSYSTEMS: &str = "\u{1}subsystem ";
/// The prefix of a text of roles.
const ROLES: &str = "\u{1}role ";

/// A name that no thread has: a pattern that matches it selects every thread.
const ANYBODY: &str = "\u{1}";

/// Functions or threads that a rule asks about.
#[derive(Debug)]
pub(crate) enum Selector {
    /// Names that match a pattern.
    Pattern(Regex),
    /// Functions of these subsystems.
    Subsystems(String, Vec<String>),
    /// Threads of these roles.
    Roles(String, Vec<String>),
}

/// The text of a selector of subsystems.
pub(crate) fn subsystem(names: &str) -> String {
    format!("{SUBSYSTEMS}{names}")
}

/// The text of a selector of roles.
pub(crate) fn role(names: &str) -> String {
    format!("{ROLES}{names}")
}

fn list(names: &str) -> Vec<String> {
    names.split(',').map(|name| name.trim().to_owned()).collect()
}

impl Selector {
    /// The selector of a text, unless it is a pattern.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(names) = text.strip_prefix(SUBSYSTEMS) {
            return Some(Self::Subsystems(text.to_owned(), list(names)));
        }
        let names = text.strip_prefix(ROLES)?;
        Some(Self::Roles(text.to_owned(), list(names)))
    }

    /// Its text, which is unique.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Pattern(pattern) => pattern.as_str(),
            Self::Subsystems(text, _) | Self::Roles(text, _) => text,
        }
    }

    /// Whether it selects a subsystem; `None` if it does not select by subsystem.
    pub(super) fn has_subsystem(&self, subsystem: Option<&str>) -> Option<bool> {
        let Self::Subsystems(_, names) = self else { return None };
        Some(subsystem.is_some_and(|own| names.iter().any(|name| atlas::is_within(own, name))))
    }

    /// Whether it selects a thread. A program's thread with a name of the kernel's is selected only
    /// where every thread is.
    pub(super) fn means(&self, name: &str, is_disguised: bool) -> bool {
        self.is_match(if is_disguised { ANYBODY } else { name })
    }

    /// Whether it selects a thread, or a function without a known module.
    pub(super) fn is_match(&self, name: &str) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.is_match(name),
            Self::Subsystems(..) => {
                self.has_subsystem(atlas::subsystem_of(name, None, None)).unwrap_or(false)
            }
            Self::Roles(_, names) => atlas::role_of(name)
                .is_some_and(|own| names.iter().any(|role| atlas::is_within(own, role))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsystems_and_roles_mean_their_parts_too() {
        let ciphers = Selector::parse(&subsystem("cipher, ddt")).expect("it is no pattern");
        assert!(ciphers.is_match("gcm_generic_mul") && ciphers.is_match("ddt_lookup"));
        assert!(!ciphers.is_match("arc_read"));
        let readers = Selector::parse(&role("read")).expect("it is no pattern");
        assert!(readers.is_match("z_rd_int_3") && !readers.is_match("z_wr_iss"));
        assert!(Selector::parse("^ddt_").is_none());
    }
}
