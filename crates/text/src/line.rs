//! Text from outside inside a line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text as a part of one line: a log, or a terminal, is read by line, and a name in it may hold
/// whatever somebody chose.
///
/// Control characters, which end a line or speak to the terminal, are shown as Rust writes them
/// (`\n`, `\u{1b}`), and so is what ends a line or turns the direction of text in Unicode.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => line.extend(character.escape_default()),
            unseen if is_unseen(unseen) => {
                // Writing to a String cannot fail.
                let _ = write!(line, "{}", unseen.escape_unicode());
            }
            seen => line.push(seen),
        }
    }
    Cow::Owned(line)
}

/// Whether a character does something instead of being seen: the separators of lines and paragraphs
/// (Unicode, chapter 23), and the marks of direction of its annex 9.
fn is_unseen(character: char) -> bool {
    let marks = ['\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    character.is_control() || marks.iter().any(|marks| marks.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_name_holds_is_one_line_that_does_nothing() {
        let hostile = "a\nb\r\u{1b}[31m\0\u{7f}\u{85}\u{2028}\u{202e}\u{2066}z";
        let line = one_line(hostile);
        assert_eq!(line, "a\\nb\\r\\u{1b}[31m\\u{0}\\u{7f}\\u{85}\\u{2028}\\u{202e}\\u{2066}z");
        assert_eq!(one_line(&line), line, "and stays it");
    }

    #[test]
    fn what_is_seen_stays_as_it_is() {
        for plain in ["", "/srv/my photos", "näme 'é' \"文\" \\n", "100%"] {
            assert!(matches!(one_line(plain), Cow::Borrowed(same) if same == plain));
        }
    }
}
