//! A path as the value of a label.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The label of a path, which no other path has. Labels are UTF-8, and paths are bytes.
///
/// Text is unchanged. Each byte outside it is written like `\xe9`. A backslash is doubled, so that
/// each one begins one of the two escapes.
#[must_use]
pub fn path_label(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut label = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        label.push_str(&chunk.valid().replace('\\', "\\\\"));
        chunk.invalid().iter().for_each(|byte| label.push_str(&format!("\\x{byte:02x}")));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn label(bytes: &[u8]) -> String {
        path_label(Path::new(OsStr::from_bytes(bytes)))
    }

    #[test]
    fn different_paths_have_different_labels() {
        let paths = [&b"/caf\xe9"[..], b"/caf\xe8", b"/caf\\xe9", b"/caf\\\xe9", b"/caf\\\\xe9"];
        let labels: std::collections::BTreeSet<String> = paths.map(label).into();
        assert_eq!(labels.len(), paths.len(), "{labels:?}");
        assert_eq!(label(b"/caf\xe9"), r"/caf\xe9");
        assert_eq!(label(b"/caf\\xe9"), r"/caf\\xe9");
        assert_eq!(label("/mnt/My \"Gr\u{f6}\u{df}e\"\n".as_bytes()), "/mnt/My \"Größe\"\n");
    }
}
