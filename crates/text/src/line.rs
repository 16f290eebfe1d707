//! Outside text in a line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text as a part of one line. Logs and terminals are read line by line, and a name in them may
/// contain any characters.
///
/// Control characters, which end a line or control the terminal, are escaped as in Rust (`\n`,
/// `\u{1b}`). So are Unicode characters that end a line or change the direction of text.
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

/// Whether a character acts instead of being visible: line and paragraph separators (Unicode,
/// chapter 23), and the direction marks of its annex 9.
fn is_unseen(character: char) -> bool {
    let marks = ['\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    character.is_control() || marks.iter().any(|marks| marks.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_harmless_line() {
        let hostile = "a\nb\r\u{1b}[31m\0\u{7f}\u{85}\u{2028}\u{202e}\u{2066}z";
        let line = one_line(hostile);
        assert_eq!(line, "a\\nb\\r\\u{1b}[31m\\u{0}\\u{7f}\\u{85}\\u{2028}\\u{202e}\\u{2066}z");
        assert_eq!(one_line(&line), line, "escaping it again changes nothing");
    }

    #[test]
    fn printable_text_is_unchanged() {
        for plain in ["", "/srv/my photos", "näme 'é' \"文\" \\n", "100%"] {
            assert!(matches!(one_line(plain), Cow::Borrowed(same) if same == plain));
        }
    }
}
