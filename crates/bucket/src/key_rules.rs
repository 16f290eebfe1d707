//! Which keys a store keeps unchanged: one row for each kind of store.
//!
//! A key passes through the client library, the address of the request, and the store. The library
//! trims white space at both ends and joins empty parts. An address drops `.` and `..`. The row of
//! a store lists its other changes.
//!
//! - A key that would reach another object is not [sendable](KeyRules::sendable). It is never sent,
//!   and hidden if a listing has it.
//! - A key that the store rejects is not [creatable](KeyRules::creatable). If a listing has it, the
//!   store is more generous than its row, and the key is shown.
//!
//! Sources:
//!
//! - Azure: "Naming and Referencing Containers, Blobs, and Metadata", and tests against the
//!   service. It drops dots at the end and treats a backslash as a slash.
//! - Google: "Naming objects".
//! - Amazon: "Creating object key names".

use crate::{BucketError, Result};
use std::ops::RangeInclusive;

/// The longest name a directory entry can have on Linux (NAME_MAX), in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// A pattern of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Empty,
    /// White space at the start or end.
    Spaced,
    /// Two slashes in a row, or one at the start.
    EmptyPart,
    /// A part `.` or `..`.
    DotPart,
    /// A part with this character at its end.
    PartEndsIn(char),
    /// One of these characters.
    Has(&'static [RangeInclusive<char>]),
    /// This text at the start.
    Begins(&'static str),
    /// More than this many parts between slashes.
    MoreParts(usize),
}

impl Form {
    fn is_of(&self, key: &str) -> bool {
        match self {
            Self::Empty => key.is_empty(),
            Self::Spaced => key.trim() != key,
            Self::EmptyPart => key.starts_with('/') || key.contains("//"),
            Self::DotPart => key.split('/').any(|part| part == "." || part == ".."),
            Self::PartEndsIn(letter) => key.split('/').any(|part| part.ends_with(*letter)),
            Self::Has(ranges) => {
                key.chars().any(|letter| ranges.iter().any(|range| range.contains(&letter)))
            }
            Self::Begins(start) => key.starts_with(start),
            Self::MoreParts(most) => key.split('/').count() > *most,
        }
    }
}

/// A pattern, and why keys must not match it.
type Rule = (Form, &'static str);

/// Never sent to any store: the library or the address would change such a key to another one.
const NEVER_SENT: &[Rule] = &[
    (Form::Empty, "it is empty"),
    (Form::Spaced, "it begins or ends with white space"),
    (Form::EmptyPart, "it has an empty part"),
    (Form::DotPart, "it has a part . or .."),
];

/// The keys that a store changes or rejects.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyRules {
    /// The length of the longest key.
    longest: usize,
    /// Whether that is in UTF-16 code units, and not in bytes.
    counts_utf16: bool,
    /// Keys that the store treats as other keys.
    mistaken: &'static [Rule],
    /// Keys that the store rejects.
    refused: &'static [Rule],
}

impl KeyRules {
    /// Amazon S3 and compatible stores. Amazon accepts a carriage return. Other stores list it
    /// unescaped, and XML reads it as a newline: another key.
    pub const S3: Self = Self {
        longest: 1024,
        counts_utf16: false,
        mistaken: &[],
        refused: &[(Form::Has(&['\r'..='\r']), "listings turn a carriage return into a newline")],
    };
    /// Azure Blob Storage.
    pub const AZURE: Self = Self {
        longest: 1024,
        counts_utf16: true,
        mistaken: &[
            (Form::Has(&['\\'..='\\']), "Azure treats a backslash as a slash"),
            (Form::PartEndsIn('.'), "Azure drops a dot at the end of a part"),
        ],
        refused: &[
            (
                Form::Has(&[
                    '\0'..='\u{1f}',
                    '\u{7f}'..='\u{7f}',
                    '\u{81}'..='\u{81}',
                    '\u{8d}'..='\u{8d}',
                    '\u{8f}'..='\u{90}',
                    '\u{9d}'..='\u{9d}',
                    '\u{e000}'..='\u{e000}',
                    '\u{fdd0}'..='\u{fdef}',
                    '\u{fff0}'..='\u{ffff}',
                ]),
                "it has a character that Azure rejects",
            ),
            (Form::MoreParts(254), "Azure allows at most 254 parts"),
        ],
    };
    /// Google Cloud Storage.
    pub const GOOGLE: Self = Self {
        refused: &[
            (
                Form::Has(&['\n'..='\n', '\r'..='\r', '\u{fffe}'..='\u{ffff}']),
                "it has a character that Google rejects",
            ),
            (
                Form::Begins(".well-known/acme-challenge/"),
                "Google reserves .well-known/acme-challenge/",
            ),
        ],
        ..Self::S3
    };
    /// A web server, whose rules are unknown.
    pub const WEB: Self = Self { refused: &[], ..Self::S3 };

    /// Checks that a key reaches the store unchanged.
    ///
    /// # Errors
    /// [`BucketError::KeyTooLong`], [`BucketError::BadKey`].
    pub fn sendable<'a>(&self, key: &'a str) -> Result<&'a str> {
        let length = if self.counts_utf16 { key.encode_utf16().count() } else { key.len() };
        if length > self.longest {
            return Err(BucketError::KeyTooLong { key: key.to_owned() });
        }
        check(key, NEVER_SENT)?;
        check(key, self.mistaken)
    }

    /// Checks that the store accepts an object under a key.
    ///
    /// # Errors
    /// Those of [`Self::sendable`].
    pub fn creatable<'a>(&self, key: &'a str) -> Result<&'a str> {
        self.sendable(key)?;
        check(key, self.refused)
    }

    /// The name of a key or common prefix in a directory; `None` if it cannot be a name.
    pub(crate) fn name_in<'a>(&self, directory: &str, key: &'a str) -> Option<&'a str> {
        let name = key.strip_prefix(directory)?;
        let name = name.strip_suffix('/').unwrap_or(name);
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.contains(['/', '\0'])
            && self.sendable(key).is_ok();
        is_name.then_some(name)
    }

    /// Why a key or common prefix cannot be a name in a directory.
    pub(crate) fn why_nameless(&self, directory: &str, key: &str) -> &'static str {
        match self.sendable(key) {
            Err(BucketError::BadKey { why, .. }) => why,
            Err(_) => "it is too long for the store",
            Ok(_) => match key.strip_prefix(directory) {
                Some(name) if name.contains('\0') => "it has a NUL",
                _ => "a part of it is longer than 255 bytes",
            },
        }
    }
}

/// Checks that a key matches none of the patterns.
fn check<'a>(key: &'a str, rules: &[Rule]) -> Result<&'a str> {
    match rules.iter().find(|(form, _)| form.is_of(key)) {
        Some((_, why)) => Err(BucketError::BadKey { key: key.to_owned(), why }),
        None => Ok(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [KeyRules; 4] = [KeyRules::S3, KeyRules::AZURE, KeyRules::GOOGLE, KeyRules::WEB];

    #[test]
    fn keys_that_would_reach_another_object_are_refused_everywhere() {
        let long = "x".repeat(1025);
        for rules in ALL {
            for key in ["", "/a", "a//b", " a", "a ", "a\n", ".", "a/./b", "a/..", "//", "a//"] {
                assert!(rules.sendable(key).is_err(), "{key:?}");
            }
            assert!(matches!(rules.sendable(&long), Err(BucketError::KeyTooLong { .. })));
            for key in ["a", "a/", "a b", "a/ b/c", "...a", "a/.b", "ä", "%2e", "a+b?c#d&e"] {
                assert_eq!(rules.creatable(key), Ok(key));
            }
            let longest = "x".repeat(1024);
            assert_eq!(rules.creatable(&longest), Ok(&*longest));
        }
    }

    #[test]
    fn keys_that_a_store_changes_or_refuses_are_in_its_row() {
        let no = |rules: &KeyRules, key: &str| rules.sendable(key).is_err();
        for key in ["a\\b", "a./b", "a.", "a../", "\\"] {
            assert!(no(&KeyRules::AZURE, key), "{key:?}");
            assert!(!no(&KeyRules::S3, key) && !no(&KeyRules::GOOGLE, key), "{key:?}");
        }
        for key in ["a\u{1}b", "a\nb", "\u{81}", "\u{fffe}", "\u{fdd0}", "\u{7f}"] {
            assert!(!no(&KeyRules::AZURE, key), "an existing one is shown");
            assert!(
                KeyRules::AZURE.creatable(key).is_err() && KeyRules::S3.creatable(key).is_ok(),
                "{key:?}"
            );
        }
        assert!(KeyRules::S3.creatable("a\rb").is_err() && !no(&KeyRules::S3, "a\rb"));
        for key in ["a\nb", "\u{ffff}", ".well-known/acme-challenge/x"] {
            assert!(
                KeyRules::GOOGLE.creatable(key).is_err() && KeyRules::S3.creatable(key).is_ok(),
                "{key:?}"
            );
        }
        let deep = |parts| vec!["d"; parts].join("/");
        assert!(
            KeyRules::AZURE.creatable(&deep(254)).is_ok()
                && KeyRules::AZURE.creatable(&deep(255)).is_err()
        );
        // Azure counts characters, the other stores count bytes.
        let wide = "ä".repeat(1024);
        assert!(
            KeyRules::AZURE.creatable(&wide).is_ok() && KeyRules::GOOGLE.creatable(&wide).is_err()
        );
    }

    #[test]
    fn only_keys_that_fit_a_directory_entry_are_names() {
        let rules = KeyRules::S3;
        let long = format!("d/{}", "x".repeat(256));
        assert_eq!(rules.name_in("d/", "d/a"), Some("a"));
        assert_eq!(rules.name_in("d/", "d/a/"), Some("a"));
        assert_eq!(rules.name_in("", "a"), Some("a"));
        for key in ["d/", "d//", "e/a", "d/a/b", "d/.", "d/..", "d/../", "d/a\0", "d/a ", &long] {
            assert_eq!(rules.name_in("d/", key), None, "{key:?}");
        }
    }

    /// The key after the library, the address and the store have changed it.
    fn understood(key: &str, is_azure: bool) -> String {
        let sent = key.trim();
        let sent = if is_azure { sent.replace('\\', "/") } else { sent.to_owned() };
        let mut parts: Vec<&str> = Vec::new();
        for part in sent.split('/') {
            let part = if is_azure && part != ".." { part.trim_end_matches('.') } else { part };
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let end = if sent.ends_with('/') && !parts.is_empty() { "/" } else { "" };
        format!("{}{end}", parts.join("/"))
    }

    proptest! {
        #[test]
        fn a_key_that_is_sent_reaches_the_store_unchanged(
            key in prop_oneof![r"[a./\\ %\n]{1,9}", r"\PC{1,9}", any::<String>()],
        ) {
            for rules in ALL {
                let is_azure = rules == KeyRules::AZURE;
                match rules.sendable(&key) {
                    Ok(sent) => prop_assert_eq!(understood(sent, is_azure), sent),
                    Err(_) => prop_assert!(rules.creatable(&key).is_err()),
                }
            }
        }

        #[test]
        fn a_key_that_reaches_the_store_unchanged_is_sent(key in r"[a./\\ %\n]{1,9}") {
            for rules in ALL {
                let is_itself = understood(&key, rules == KeyRules::AZURE) == key;
                prop_assert_eq!(rules.sendable(&key).is_ok(), is_itself);
            }
        }
    }
}
