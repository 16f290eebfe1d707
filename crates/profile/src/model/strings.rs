//! Interned strings: each text once, found by hash. Texts come from outside, so their length and
//! number are bounded. A text over the limit is replaced by a fixed text.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::ids::StringId;

/// Bytes of one text at most; the rest is cut off.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of all texts at most.
const ALL_BYTES_MAX: usize = 512 << 20;
/// Replaces a text that no longer fits.
const FULL: &str = "[too many names]";

/// The table of texts.
#[derive(Debug, Clone)]
pub(crate) struct Strings {
    bytes: String,
    ends: Vec<u32>,
    index: HashTable<u32>,
    hasher: FixedState,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self {
            bytes: String::new(),
            ends: Vec::new(),
            index: HashTable::new(),
            hasher: FixedState::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    pub(crate) fn get(&self, id: StringId) -> &str {
        let end = self.ends[id.index()] as usize;
        let start = match id.index() {
            0 => 0,
            index => self.ends[index - 1] as usize,
        };
        &self.bytes[start..end]
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn intern(&mut self, text: &str) -> StringId {
        let text = cut(text, TEXT_BYTES_MAX);
        let hash = self.hasher.hash_one(text);
        if let Some(found) = self.index.find(hash, |&id| self.get(StringId(id)) == text) {
            return StringId(*found);
        }
        if self.bytes.len() + text.len() > ALL_BYTES_MAX && text != FULL {
            return self.intern(FULL);
        }
        let id = u32::try_from(self.ends.len()).expect("512 MiB hold fewer than 2^32 texts");
        self.bytes.push_str(text);
        self.ends.push(u32::try_from(self.bytes.len()).expect("at most 512 MiB and one text"));
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.index.insert_unique(hash, id, |&id| {
            let start = if id == 0 { 0 } else { ends[id as usize - 1] as usize };
            hasher.hash_one(&bytes[start..ends[id as usize] as usize])
        });
        StringId(id)
    }
}

/// The first `bytes` bytes of a text, or fewer where that would cut a character in two.
fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes { text } else { &text[..text.floor_char_boundary(bytes)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number_and_is_found_by_it() {
        let mut strings = Strings::default();
        let ids: Vec<StringId> = (0..5000).map(|n| strings.intern(&format!("name {n}"))).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(strings.get(*id), format!("name {n}"));
            assert_eq!(strings.intern(&format!("name {n}")), *id);
        }
        assert_eq!(strings.intern(""), StringId::EMPTY);
        assert_eq!(strings.len(), 5001);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut strings = Strings::default();
        let id = strings.intern(&"ö".repeat(TEXT_BYTES_MAX));
        assert_eq!(strings.get(id).len(), TEXT_BYTES_MAX);
        let odd = strings.intern(&format!("x{}", "ö".repeat(TEXT_BYTES_MAX)));
        assert_eq!(strings.get(odd).len(), TEXT_BYTES_MAX - 1);
    }
}
