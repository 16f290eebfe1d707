//! What a rule means by functions or threads: a pattern of names, subsystems, or roles.
//!
//! In the language of rules, `subsystem("ddt, brt")` and `role("read")` return a text that no
//! pattern can be. It is parsed here, so every question that takes a pattern takes these as well.

use regex::Regex;

use crate::atlas;

/// Begins the text of subsystems; no pattern does.
const SUBSYSTEMS: &str = "\u{1}subsystem ";
/// Begins the text of roles.
const ROLES: &str = "\u{1}role ";

/// A name that no thread has: a pattern that matches it means everybody.
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

    /// Its text, which tells it from others.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Pattern(pattern) => pattern.as_str(),
            Self::Subsystems(text, _) | Self::Roles(text, _) => text,
        }
    }

    /// Whether a subsystem is meant; `None` if subsystems are not what it goes by.
    pub(super) fn has_subsystem(&self, subsystem: Option<&str>) -> Option<bool> {
        let Self::Subsystems(_, wanted) = self else { return None };
        Some(subsystem.is_some_and(|own| wanted.iter().any(|name| atlas::is_within(own, name))))
    }

    /// Whether a thread is meant. One of a program that is called like the kernel's is meant only
    /// where everybody is.
    pub(super) fn means(&self, name: &str, is_disguised: bool) -> bool {
        self.is_match(if is_disguised { ANYBODY } else { name })
    }

    /// Whether a name of which no module is known, or a thread, is meant.
    pub(super) fn is_match(&self, name: &str) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.is_match(name),
            Self::Subsystems(..) => {
                self.has_subsystem(atlas::subsystem_of(name, None, None)).unwrap_or(false)
            }
            Self::Roles(_, wanted) => atlas::role_of(name)
                .is_some_and(|own| wanted.iter().any(|role| atlas::is_within(own, role))),
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
