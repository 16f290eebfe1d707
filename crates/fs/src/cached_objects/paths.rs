//! Paths of files that the kernel knows, and sums for each directory.
//!
//! A path is read upwards from the names of inodes. Files may be renamed meanwhile, so the result
//! may never have been a path. A path that does not reach the root within [`DEPTH_MAX`] steps is
//! dropped. Names are arbitrary bytes, so a path is escaped ([`escape`]).

use super::Figures;
use crate::inode::{InodeTable, Name};
use crate::inode_number::ROOT;
use hashbrown::HashMap;
use ogive_origin::Origin;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

/// Directories on a path at most: a path of 4096 bytes has no more.
const DEPTH_MAX: usize = 2048;

/// A file with its figures.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) number: u64,
    pub(super) figures: Figures,
}

/// Directories by number, with the figures of everything below them.
#[derive(Debug, Default)]
pub(super) struct Directories(HashMap<u64, Directory>);

#[derive(Debug)]
struct Directory {
    name: Name,
    figures: Figures,
}

impl Directories {
    /// Adds a file's figures to the directories above it. Returns whether they are all known.
    pub(super) fn add<O: Origin>(
        &mut self,
        inodes: &InodeTable<O>,
        file: &Name,
        figures: &Figures,
    ) -> bool {
        let Some(above) = self.above(inodes, file) else { return false };
        for number in above {
            if let Some(directory) = self.0.get_mut(&number) {
                directory.figures.add(figures);
            }
        }
        true
    }

    /// The directories above this name, up to the root.
    fn above<O: Origin>(&mut self, inodes: &InodeTable<O>, name: &Name) -> Option<Vec<u64>> {
        let mut above = Vec::new();
        let mut number = name.parent;
        while number != ROOT {
            if above.len() >= DEPTH_MAX || number == 0 {
                return None;
            }
            above.push(number);
            if !self.0.contains_key(&number) {
                let name = inodes.get(number)?.kernel_names.last();
                self.0.insert(number, Directory { name, figures: Figures::default() });
            }
            number = self.0.get(&number)?.name.parent;
        }
        let root = || Directory { name: Name::default(), figures: Figures::default() };
        self.0.entry(ROOT).or_insert_with(root);
        above.push(ROOT);
        Some(above)
    }

    /// All directories with figures.
    pub(super) fn figures(&self) -> Vec<(u64, Figures)> {
        let all = self.0.iter().map(|(number, directory)| (*number, directory.figures));
        let mut all: Vec<_> = all.filter(|(_, figures)| *figures != Figures::default()).collect();
        // The order must not depend on a hash table.
        all.sort_by_key(|(number, _)| *number);
        all
    }

    /// The path of a directory, from the root of the mount, escaped.
    pub(super) fn path_of(&self, number: u64) -> Option<String> {
        if number == ROOT {
            return Some("/".to_owned());
        }
        self.path(&self.0.get(&number)?.name)
    }

    /// The path of this name.
    pub(super) fn path(&self, name: &Name) -> Option<String> {
        let mut names = vec![&*name.name];
        let mut number = name.parent;
        while number != ROOT {
            let directory = self.0.get(&number).filter(|_| names.len() < DEPTH_MAX)?;
            names.push(&directory.name.name);
            number = directory.name.parent;
        }
        Some(names.iter().rev().fold(String::new(), |mut path, name| {
            path.push('/');
            escape(name, &mut path);
            path
        }))
    }
}

/// Adds a name to a path so that it can be shown anywhere and read back. A backslash is doubled,
/// and bytes that are not text become `\xNN`. Characters that do not print or that change the
/// direction of text become `\u{N}`.
fn escape(name: &OsStr, path: &mut String) {
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '"' => path.push(character),
                '\\' => path.push_str("\\\\"),
                other if other.is_control() => {
                    let _ = write!(path, "{}", other.escape_unicode());
                }
                other => path.extend(other.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(path, "\\x{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_shown_as_one_line_of_text_that_can_be_read_back() {
        let escaped = |name: &[u8]| {
            let mut path = String::new();
            escape(OsStr::from_bytes(name), &mut path);
            path
        };
        assert_eq!(escaped("plain näme 'é' \"文\"".as_bytes()), "plain näme 'é' \"文\"");
        assert_eq!(escaped(b"a\nb\x1b[31m"), "a\\u{a}b\\u{1b}[31m");
        assert_eq!(escaped(b"\\u{a}"), "\\\\u{a}");
        assert_eq!(escaped(b"\xffz\xc3"), "\\xffz\\xc3");
        assert_eq!(escaped("gpj.\u{202e}exe".as_bytes()), "gpj.\\u{202e}exe");
    }
}
