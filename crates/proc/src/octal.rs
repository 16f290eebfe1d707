//! The kernel's escapes in tables of mounts: `\` and three octal digits stand for a byte
//! (proc_pid_mountinfo(5)).

/// Undoes the kernel's escapes in a field. Other text is unchanged.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, behind @ ..] = rest {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] = rest {
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = behind;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_text_is_unchanged() {
        for plain in [&b"a\\04"[..], b"a\\049", b"a\\777", b"\\", b""] {
            assert_eq!(unescaped(plain), plain);
        }
        assert_eq!(unescaped(b"\\040\\043\\377"), b" #\xff");
        assert_eq!(unescaped(b"\\134040"), b"\\040");
    }
}
