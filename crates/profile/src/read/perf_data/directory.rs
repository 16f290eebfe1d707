//! Opens a recording that is a directory. `perf record --threads` writes one stream per recording
//! thread next to the file with the header. `perf record --kcore` adds a copy of the kernel's
//! symbols.
//!
//! Layout: Linux `tools/perf/Documentation/perf.data-directory-format.txt`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::is_perf_data;

/// Streams at most: a recorder has one for each CPU.
const STREAMS_MAX: usize = 4096;
/// Bytes of the symbols at most.
const KALLSYMS_BYTES_MAX: u64 = 256 << 20;

/// A recording directory.
pub(crate) struct Directory {
    /// The file with the header.
    pub(crate) file: File,
    /// The other streams.
    pub(crate) streams: Vec<File>,
    /// A copy of /proc/kallsyms.
    pub(crate) kallsyms: Option<Vec<u8>>,
}

impl Directory {
    /// Whether a directory is a recording.
    pub(crate) fn is_at(path: &Path) -> bool {
        let mut magic = [0; 8];
        let is_file = std::fs::metadata(path.join("data")).is_ok_and(|data| data.is_file());
        is_file
            && File::open(path.join("data"))
                .is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && is_perf_data(&magic))
    }

    /// Opens a recording directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path.join("data"))?;
        let names = std::fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut numbered: Vec<(u32, PathBuf)> = names
            .filter_map(|path| {
                let number = path.file_name()?.to_str()?.strip_prefix("data.")?.parse().ok()?;
                path.is_file().then_some((number, path))
            })
            .take(STREAMS_MAX)
            .collect();
        numbered.sort();
        let streams = numbered.iter().map(|(_, path)| File::open(path));
        let streams = streams.collect::<io::Result<Vec<File>>>()?;
        Ok(Self { file, streams, kallsyms: kallsyms(path) })
    }
}

fn kallsyms(path: &Path) -> Option<Vec<u8>> {
    let path = path.join("kcore_dir/kallsyms");
    if !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(KALLSYMS_BYTES_MAX).read_to_end(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}
