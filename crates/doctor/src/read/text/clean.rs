//! Saved or pasted bytes as clean lines with their numbers.
//!
//! Pastes have passed through terminals, mail, forums and Windows. They contain carriage returns,
//! colours, cursor movements, quoting, HTML entities, UTF-16 and invalid UTF-8. All of that is
//! removed here, once, so that readers need not handle it. A line keeps its leading blanks, because
//! they carry depth in call graphs and vdev trees.
//!
//! Invariants: each line of input gives one line, so numbers are those of the file.
//! [`MAX_TEXT_BYTES`] and [`MAX_LINE_BYTES`] bound the memory. No input panics.

use std::borrow::Cow;

/// Bytes of one file that are read at most; the rest is reported as not read.
pub const MAX_TEXT_BYTES: usize = 32 << 20;

/// Longer lines are cut here: no tool prints them, so they are binary data or damage.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// One cleaned line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Counted from 1, as in the file.
    pub(crate) number: u32,
    /// Without line end, colours, quoting and entities; trailing blanks removed.
    pub(crate) text: Cow<'a, str>,
}

/// Whether `head` (the first few KiB) is not text: compressed, an image, a core file.
///
/// Text with a few NULs (sparse pastes, `/proc` files) is still text, and so is UTF-16.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    if head.is_empty() || utf16_order(head).is_some() {
        return false;
    }
    let strange =
        head.iter().filter(|&&byte| byte < 32 && !b"\t\n\r\x1b\x08\x0c\0".contains(&byte));
    let nulls = head.iter().filter(|&&byte| byte == 0).count();
    strange.count() * 20 > head.len() || nulls * 4 > head.len()
}

/// The byte order of UTF-16 with a mark.
fn utf16_order(bytes: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    match bytes {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// UTF-16 with a mark (saved by a Windows shell) as UTF-8; other bytes unchanged.
pub(crate) fn to_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(unit) = utf16_order(bytes) else {
        return Cow::Borrowed(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Cow::Owned(text.into_bytes())
}

/// Splits `bytes` into cleaned lines.
pub(crate) fn lines(bytes: &[u8]) -> Vec<Line<'_>> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut number = 0;
    let lines = bytes.split(|&byte| byte == b'\n').map(|raw| {
        number += 1;
        Line { number, text: clean(&raw[..raw.len().min(MAX_LINE_BYTES)]) }
    });
    lines.collect()
}

/// Lines of a comment at most; a longer one was never closed.
const MAX_COMMENT_LINES: usize = 40;

/// Empties the comments of a form (`<!-- ... -->`): they are the form's words, not the reporter's.
pub(crate) fn without_comments(lines: &mut [Line<'_>]) {
    let mut at = 0;
    while at < lines.len() {
        let end = if lines[at].text.trim_start().starts_with("<!--") {
            let mut next = lines[at..].iter().take(MAX_COMMENT_LINES);
            next.position(|line| line.text.trim_end().ends_with("-->"))
        } else {
            None
        };
        let end = end.map_or(at, |end| at + end + 1);
        for line in &mut lines[at..end] {
            line.text = Cow::Borrowed("");
        }
        at = end.max(at + 1);
    }
}

/// Removes everything from a line that the tool did not print.
fn clean(raw: &[u8]) -> Cow<'_, str> {
    let plain = raw.iter().all(|&byte| (b' '..0x7f).contains(&byte) && !b"&<>".contains(&byte));
    if plain {
        // ASCII by the test above.
        return Cow::Borrowed(std::str::from_utf8(raw).unwrap_or_default().trim_end());
    }
    let text = String::from_utf8_lossy(raw);
    let text = without_terminal_codes(&text);
    let text = without_quoting(&text);
    let mut text = if text.contains(['&', '<']) { without_html(text) } else { text.to_owned() };
    if text.contains('<') {
        // Some tags were escaped twice.
        text = without_html(&text);
    }
    Cow::Owned(text.trim_end_matches(|c: char| c.is_whitespace() || is_decoration(c)).to_owned())
}

/// Scroll bars and marks that a terminal copy of `perf top` leaves at the right edge.
fn is_decoration(c: char) -> bool {
    matches!(c, '▒' | '◆' | '█' | '░' | '▓' | '▮' | '↑' | '↓' | '\u{fffd}')
}

/// Removes escape sequences, overstriking and control characters. Tabs stay, because they may be
/// the only mark between columns.
fn without_terminal_codes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => skip_escape(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{8}' => {
                out.pop();
            }
            '\t' => out.push('\t'),
            '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}' => out.push(' '),
            '\u{200b}' | '\u{feff}' | '\u{200e}' | '\u{200f}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => skip_control_sequence(characters),
        // An operating system command (a window title) ends with BEL or ESC \.
        Some(']') => {
            while let Some(c) = characters.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    characters.next();
                    break;
                }
            }
        }
        Some('(' | ')' | '#') => {
            characters.next();
        }
        _ => {}
    }
}

fn skip_control_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    // Parameters and intermediates are 0x20..0x40; the first other character ends the sequence.
    for c in characters.by_ref() {
        if !(' '..='?').contains(&c) {
            break;
        }
    }
}

/// Mail and forum quoting: `> `, also nested.
fn without_quoting(text: &str) -> &str {
    let mut rest = text;
    while let Some(inner) = rest.strip_prefix('>') {
        if !(inner.is_empty() || inner.starts_with([' ', '>', '\t'])) {
            break;
        }
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest
}

const TAGS: &str = "<pre>|</pre>|<code>|</code>|<br>|<br/>|<br />|<p>|</p>|<b>|</b>|<tt>|</tt>\
                    |<blockquote>";

fn without_html(text: &str) -> String {
    let has_tags = text.contains('<');
    let tags = TAGS.split('|').filter(|tag| has_tags && text.contains(tag));
    let text = tags.fold(text.to_owned(), |text, tag| text.replace(tag, ""));
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (c, length) = entity(part).unwrap_or(('&', 0));
        out.push(c);
        out.push_str(&part[length..]);
    }
    out
}

/// The character of the entity whose `text` follows the `&`, and its length in bytes.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(9).position(|byte| byte == b';')?;
    let c = match &text[..end] {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        name => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code).filter(|c| !c.is_control())?
        }
    };
    Some((c, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(raw: &[u8]) -> String {
        clean(raw).into_owned()
    }

    #[test]
    fn terminal_and_forum_marks_are_removed_from_lines() {
        assert_eq!(one(b"  12,34%  [zfs]\r"), "  12,34%  [zfs]");
        assert_eq!(one(b"\x1b[1;31mred\x1b[0m text\x1b[K"), "red text");
        assert_eq!(one(b"\x1b]0;title\x07after"), "after");
        assert_eq!(one(b"> > quoted &lt;&amp;&gt; &#x41;"), "quoted <&> A");
        assert_eq!(one(b">not a quote"), ">not a quote");
        assert_eq!(one("86% taskq_thread ▒".as_bytes()), "86% taskq_thread");
        assert_eq!(one("a\u{a0}b".as_bytes()), "a b");
        assert_eq!(one(b"ab\x08c"), "ac");
        assert_eq!(one(b"size\0 1"), "size 1");
        assert_eq!(one(b"x &unknown; & y"), "x &unknown; & y");
        assert_eq!(one(b"\xff\xfe bad"), "\u{fffd}\u{fffd} bad");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let found = lines(b"a\r\n\r\n  b\n");
        let numbers: Vec<_> = found.iter().map(|line| (line.number, &*line.text)).collect();
        assert_eq!(numbers, [(1, "a"), (2, ""), (3, "  b")]);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn utf16_is_text_and_an_archive_is_not() {
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("top\n".bytes().flat_map(|b| [b, 0])).collect();
        assert!(!is_binary(&wide));
        assert_eq!(&*to_utf8(&wide), b"top\n");
        assert!(is_binary(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 1, 2]));
        assert!(!is_binary(b"plain \x1b[0m text"));
        assert!(!is_binary(b""));
    }
}
