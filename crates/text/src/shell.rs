//! A word of a shell command that a user types or pastes.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;

/// A path or another word as a shell reads it: plain if possible, quoted if necessary. The text is
/// one line, and no part of it is a command, whatever the path contains.
///
/// Bytes that are not UTF-8, and control characters, need the `$'...'` quotes of POSIX 2024, which
/// bash, zsh and ksh have long had.
#[derive(Clone, Copy, Debug)]
pub struct ShellWord<'a>(pub &'a OsStr);

impl fmt::Display for ShellWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_bytes();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%^".contains(byte);
        match self.0.to_str() {
            // zsh takes a word that begins with an equals sign for the name of a command.
            Some(text)
                if bytes.iter().all(is_plain) && !text.is_empty() && !text.starts_with('=') =>
            {
                f.write_str(text)
            }
            Some(text) if crate::one_line(text) == text => {
                write!(f, "'{}'", text.replace('\'', "'\\''"))
            }
            _ => {
                f.write_str("$'")?;
                for byte in bytes {
                    match byte {
                        b'\'' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                        b' '..=b'~' => f.write_char(char::from(*byte))?,
                        // Three digits, so that a following digit does not extend the number.
                        other => write!(f, "\\{other:03o}")?,
                    }
                }
                f.write_str("'")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8]) -> String {
        ShellWord(OsStr::from_bytes(bytes)).to_string()
    }

    #[test]
    fn a_plain_path_is_unchanged() {
        for plain in ["/mnt/fast", "/srv/a-b_c.d,e=f:g@h", "s3://bucket/a+b"] {
            assert_eq!(word(plain.as_bytes()), plain);
        }
        assert_eq!(word("/mnt/näme".as_bytes()), "'/mnt/näme'");
    }

    #[test]
    fn a_shell_reads_every_path_back_to_the_byte() {
        let names = [
            &b"/mnt/my photos"[..],
            b"/mnt/x; rm -rf $HOME",
            b"/mnt/$(id)`id`",
            b"/mnt/it's \"here\"",
            b"/mnt/ends\\",
            b"/mnt/a\nb\t\x1b[31m7",
            b"/mnt/\xff\xc3'7\\",
            "/mnt/\u{202e}gpj".as_bytes(),
            b"~",
            b"=ls",
            b"*",
            b"",
        ];
        for name in names {
            let word = word(name);
            assert_eq!(crate::one_line(&word), word);
            let output = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {word}")])
                .output()
                .expect("bash, which the checks of this repository run in, can be started");
            assert_eq!(output.stdout, name, "{word}");
        }
    }
}
