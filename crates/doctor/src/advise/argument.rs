//! A name from the evidence as one word of a command that an operator may type.
//!
//! The author of the evidence chose its names, and root may type the printed commands. Every name
//! in a command is therefore an [`Argument`], which a shell reads back as this one name. A name
//! that no shell should read is refused, and its slot stays open.

use std::ffi::OsStr;
use std::fmt;

use ogive_text::{ShellWord, one_line};

/// No name of a pool, data set or device path is longer.
const MAX_BYTES: usize = 1024;

/// A name, quoted if a shell needs that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    text: String,
    is_plain: bool,
}

impl Argument {
    /// A name as a word. `None` for a name that a tool would read as an option, or that ends the
    /// backquotes around a command. Also for one that recalls an older command even in quotes
    /// (csh), or has invisible characters or lost bytes.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let lost = name.contains([char::REPLACEMENT_CHARACTER, '`', '!']);
        let wrong = name.is_empty() || name.len() > MAX_BYTES || name.starts_with('-');
        if lost || wrong || one_line(name) != name {
            return None;
        }
        let text = ShellWord(OsStr::new(name)).to_string();
        Some(Self { is_plain: text == name, text })
    }

    /// The word behind `before` in a command. A script in quotes takes only a word that needs no
    /// quotes of its own.
    pub(crate) fn behind(&self, before: &str) -> Option<&str> {
        (self.is_plain || !ends_in_quotes(before)).then_some(&self.text)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether quotes are open at the end of a text. Only its last command counts.
fn ends_in_quotes(text: &str) -> bool {
    let mut open = None;
    for letter in text.rsplit('`').next().unwrap_or(text).chars() {
        match open {
            Some(quote) if quote == letter => open = None,
            None if letter == '\'' || letter == '"' => open = Some(letter),
            _ => {}
        }
    }
    open.is_some()
}

#[cfg(test)]
mod tests {
    use super::Argument;

    #[test]
    fn a_name_is_one_word_or_none() {
        let word = |name| Argument::of(name).map(|word| word.to_string());
        assert_eq!(word("tank/a-b").as_deref(), Some("tank/a-b"));
        assert_eq!(word("tank/My Documents").as_deref(), Some("'tank/My Documents'"));
        assert_eq!(word("tank/$(id)").as_deref(), Some("'tank/$(id)'"));
        for none in ["", "-rf", "a`id`", "a!b", "a\nb", "a\u{1b}[31m", "a\u{202e}b", "caf\u{fffd}"]
        {
            assert_eq!(word(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_script_in_quotes_takes_only_plain_words() {
        let blank = Argument::of("a b").expect("it is one");
        let plain = Argument::of("ab").expect("it is one");
        assert_eq!(blank.behind("it's `zfs get all "), Some("'a b'"));
        assert_eq!(blank.behind("dtrace -n 'x == "), None);
        assert_eq!(plain.behind("dtrace -n 'x == "), Some("ab"));
    }
}
