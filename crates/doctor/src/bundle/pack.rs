//! Writes a bundle: a tar archive compressed with Zstandard. `docs/capture-format.md` describes its
//! contents.

use std::io::{self, Write};

/// Version of the format, in the manifest.
pub const BUNDLE_VERSION: u32 = 1;

/// Writes a bundle, file by file.
pub struct BundleWriter<W: Write> {
    archive: tar::Builder<zstd::Encoder<'static, W>>,
    taken_s: u64,
}

impl<W: Write> std::fmt::Debug for BundleWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BundleWriter").field("taken_s", &self.taken_s).finish_non_exhaustive()
    }
}

impl<W: Write> BundleWriter<W> {
    /// Begins a bundle; `taken_s` (seconds since 1970) becomes the date of its files.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn new(sink: W, taken_s: u64) -> io::Result<Self> {
        let encoder = zstd::Encoder::new(sink, 6)?;
        Ok(Self { archive: tar::Builder::new(encoder), taken_s })
    }

    /// Adds a file; `name` is a relative path with slashes.
    ///
    /// # Errors
    /// Those of the sink, or of a name that tar cannot hold.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.taken_s);
        self.archive.append_data(&mut header, name, content)
    }

    /// Ends the bundle and returns the sink.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(self) -> io::Result<W> {
        self.archive.into_inner()?.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_bundle_unpacks_to_the_same_files() {
        let mut writer = BundleWriter::new(Vec::new(), 1).unwrap();
        writer.add("start/proc/uptime", b"1.0 2.0\n").unwrap();
        writer.add("manifest.json", b"{}").unwrap();
        let bytes = writer.finish().unwrap();
        let out = crate::bundle::unpack::unpack("b.tar.zst", &bytes[..], 1 << 20).unwrap();
        let names: Vec<&str> = out.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["start/proc/uptime", "manifest.json"]);
        assert_eq!(out.files[0].1, b"1.0 2.0\n");
    }
}
