//! Finds names in a text, in every spelling that the files of a capture use.
//!
//! Names are looked up instead of compiled into a pattern. So their number has no limit, and no
//! text stays unredacted because a pattern is too large.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Names with the words that replace them.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// Every spelling with its word.
    spellings: BTreeMap<String, String>,
    /// Bytes of the longest spelling.
    longest: usize,
}

impl Spellings {
    /// Adds a name in all its spellings. A name that was added before keeps its word.
    pub(super) fn add(&mut self, name: &str, word: &str) {
        for spelling in spellings(name).into_iter().filter(|spelling| !spelling.is_empty()) {
            self.longest = self.longest.max(spelling.len());
            self.spellings.entry(spelling).or_insert_with(|| word.to_owned());
        }
    }

    /// Replaces each name in a text by its word. `rest` receives the word and the text after the
    /// name. It returns the number of bytes after the name that are replaced too, and the
    /// replacement for both.
    pub(super) fn replaced(
        &self,
        text: &str,
        rest: impl Fn(&str, &str) -> (usize, String),
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            match self.name_at(text, at) {
                Some((length, word)) => {
                    let end = at + length;
                    let (more, written) = rest(word, &text[end..]);
                    out.push_str(&written);
                    at = text.floor_char_boundary(end + more);
                }
                None => {
                    out.push(letter);
                    at += letter.len_utf8();
                }
            }
        }
        out
    }

    /// The longest name at a position that is a whole word: its bytes and its word.
    fn name_at(&self, text: &str, at: usize) -> Option<(usize, &str)> {
        if !is_beginning(&text[..at]) {
            return None;
        }
        let end = text.floor_char_boundary(at.saturating_add(self.longest).min(text.len()));
        let mut bound = &text[at..end];
        // The greatest spelling up to `bound` shares the longest prefix with it.
        while !bound.is_empty() {
            let (spelling, word) = self.spellings.range::<str, _>(up_to(bound)).next_back()?;
            if !bound.starts_with(spelling.as_str()) {
                let same = bound.bytes().zip(spelling.bytes()).take_while(|(a, b)| a == b).count();
                bound = &bound[..bound.floor_char_boundary(same)];
                continue;
            }
            let behind = text[at + spelling.len()..].chars().next();
            if !(spelling.ends_with(is_of_word) && behind.is_some_and(is_of_word)) {
                return Some((spelling.len(), word));
            }
            bound = &bound[..bound.floor_char_boundary(spelling.len() - 1)];
        }
        None
    }
}

fn up_to(text: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Unbounded, Bound::Included(text))
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Whether a word may begin after a text: its end is not a letter, or is an escape for one.
fn is_beginning(before: &str) -> bool {
    if !before.ends_with(is_of_word) {
        return true;
    }
    let is_escape = |start: char, digits: usize, radix: u32| {
        let mut letters = before.chars().rev();
        letters.by_ref().take(digits).filter(|letter| letter.is_digit(radix)).count() == digits
            && letters.next() == Some(start)
            && (start != 'u' || letters.next() == Some('\\'))
    };
    let control = before.ends_with("\\n") || before.ends_with("\\t") || before.ends_with("\\r");
    control || is_escape('%', 2, 16) || is_escape('\\', 3, 8) || is_escape('u', 4, 16)
}

/// The spellings of a name: plain, and as the kernel, addresses, JSON and messages escape it.
fn spellings(name: &str) -> Vec<String> {
    let octal = |letter: char| match letter {
        ' ' | '\t' | '\n' | '\\' | '#' => format!("\\{:03o}", u32::from(letter)),
        plain => plain.into(),
    };
    let percent = |letter: char, kept: &str, is_upper: bool| {
        if letter.is_ascii_alphanumeric() || kept.contains(letter) {
            return letter.to_string();
        }
        let mut bytes = [0; 4];
        let bytes = letter.encode_utf8(&mut bytes).bytes();
        let hex = |byte| if is_upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        bytes.map(hex).collect()
    };
    let json = |letter: char, is_ascii: bool, is_upper: bool| match letter {
        '"' | '\\' => format!("\\{letter}"),
        '\n' | '\t' | '\r' => letter.escape_default().to_string(),
        other if other.is_control() || is_ascii && !other.is_ascii() => {
            let mut units = [0; 2];
            let units = other.encode_utf16(&mut units).iter();
            let hex =
                |unit| if is_upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            units.map(hex).collect()
        }
        other => other.into(),
    };
    let (safe, segment) = ("-._~/", "-._~");
    let mut all = vec![
        name.to_owned(),
        name.chars().map(octal).collect(),
        name.escape_debug().to_string(),
        name.escape_default().to_string(),
    ];
    for is_upper in [false, true] {
        for kept in [safe, segment] {
            all.push(name.chars().map(|letter| percent(letter, kept, is_upper)).collect());
        }
        for is_ascii in [false, true] {
            all.push(name.chars().map(|letter| json(letter, is_ascii, is_upper)).collect());
        }
    }
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(names: &[(&str, &str)], text: &str) -> String {
        let mut spelled = Spellings::default();
        for (name, word) in names {
            spelled.add(name, word);
        }
        spelled.replaced(text, |word, _| (0, word.to_owned()))
    }

    #[test]
    fn the_longest_name_that_is_a_whole_word_is_found() {
        let names = [("tank", "p1"), ("tank-a", "p2"), ("tank.", "p3"), ("ab", "h1")];
        for (text, expected) in [
            ("tank tank-a tank-ac", "p1 p2 p1-ac"),
            ("tanks xtank tank.x tank.", "tanks xtank p3x p3"),
            ("ab cab ab:", "h1 cab h1:"),
            ("étank", "ép1"),
            ("", ""),
        ] {
            assert_eq!(replaced(&names, text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_found_in_every_spelling_and_after_an_escape() {
        let names = [("/mnt/My Größe\"1", "/path1"), ("ann", "user1")];
        for text in [
            "/mnt/My Größe\"1",
            r#"/mnt/My\040Größe"1"#,
            "/mnt/My%20Gr%C3%B6%C3%9Fe%221",
            "%2fmnt%2fMy%20Gr%c3%b6%c3%9fe%221",
            r#"/mnt/My Gr\u00f6\u00dfe\"1"#,
            r#"/mnt/My Größe\"1"#,
            r#"/mnt/My Gr\u{f6}\u{df}e\"1"#,
        ] {
            assert_eq!(replaced(&names, text), "/path1", "{text}");
        }
        for before in ["%20", r"\040", r"\n", r"\u0020", "-", "/"] {
            assert_eq!(replaced(&names, &format!("x{before}ann")), format!("x{before}user1"));
        }
    }

    #[test]
    fn any_number_of_names_is_found() {
        let mut spelled = Spellings::default();
        for number in 0..50_000 {
            spelled.add(&format!("/srv/a long name of a mount point {number}"), "/path");
        }
        let text = "x /srv/a long name of a mount point 49999 y".repeat(100);
        let closed = spelled.replaced(&text, |word, _| (0, word.to_owned()));
        assert_eq!(closed, "x /path y".repeat(100));
    }
}
