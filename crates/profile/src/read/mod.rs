//! Readers: from recordings of many tools to a [`Profile`]. Formats are recognised by content, also
//! when compressed.
//!
//! All input is untrusted: no length or count is believed, and no input makes a reader panic.
//! Memory is bounded, however long the input is. Damaged parts are left out with a note in
//! [`Meta::notes`](crate::Meta::notes). An error means that nothing could be used.

mod compressed;
mod error;
pub mod folded;
mod lines;
pub(crate) mod perf_data;
pub mod perf_script;
pub(crate) mod pprof;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write as _};
use std::path::Path;

pub use error::ReadError;

pub(crate) use compressed::decompress;
pub(crate) use lines::Lines;

use crate::model::{Format, Profile};
use crate::symbols::{SymbolOptions, Symbols};
use compressed::Compression;
use perf_data::Directory;

/// Bytes at the beginning that decide the format.
const PREFIX_BYTES: usize = 64 << 10;

/// Options of reading.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The allowed sources of symbols. By default nothing of this machine is used.
    pub symbols: SymbolOptions,
}

/// Called from time to time with the number of bytes read since the last call.
pub type Progress<'p> = &'p mut dyn FnMut(u64);

/// The format of a source, by its first bytes (4 KiB suffice); `None` if it is unknown. Compressed
/// sources must be decompressed first.
pub fn recognise(prefix: &[u8]) -> Option<Format> {
    if perf_data::is_perf_data(prefix) {
        let pipe = perf_data::is_pipe(prefix);
        return Some(if pipe { Format::PerfPipe } else { Format::PerfData });
    }
    if pprof::is_pprof(prefix) {
        return Some(Format::Pprof);
    }
    let text = String::from_utf8_lossy(prefix);
    if perf_script::is_perf_script(&text, false) {
        return Some(Format::PerfScript);
    }
    if folded::is_folded(&text) {
        return Some(Format::Folded);
    }
    perf_script::is_perf_script(&text, true).then_some(Format::PerfScript)
}

/// Reads a file, or a directory that perf wrote; `-` is standard input.
///
/// # Errors
///
/// See [`ReadError`].
pub fn open(path: &Path, options: &Options, progress: Progress<'_>) -> Result<Profile, ReadError> {
    let name = path.display().to_string();
    if path.as_os_str() == "-" {
        return stream("standard input", io::stdin().lock(), options, progress);
    }
    let file = File::open(path).map_err(|error| ReadError::io(&name, error))?;
    let data = file.metadata().map_err(|error| ReadError::io(&name, error))?;
    if data.is_dir() {
        directory(&name, path, options, progress)
    } else if data.is_file() {
        seekable(&name, file, options, progress)
    } else {
        stream(&name, file, options, progress)
    }
}

/// Whether a directory is a recording, as written by `perf record --threads` and `--kcore`.
pub fn is_recording_directory(path: &Path) -> bool {
    Directory::is_at(path)
}

fn directory(
    name: &str,
    path: &Path,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Profile, ReadError> {
    if !Directory::is_at(path) {
        return Err(ReadError::unusable(
            name,
            "a directory without a recording of perf; give a file",
        ));
    }
    let opened = Directory::open(path).map_err(|error| ReadError::io(name, error))?;
    let mut from = options.symbols.clone();
    from.kallsyms = from.kallsyms.or(opened.kallsyms);
    let profile = perf_data::read_file(opened.file, opened.streams, Symbols::new(from), progress)
        .map_err(|error| ReadError::unusable(name, error.to_string()))?;
    usable(name, profile)
}

/// Reads from memory; `name` is for messages.
///
/// # Errors
///
/// See [`ReadError`].
pub fn bytes(name: &str, bytes: &[u8], options: &Options) -> Result<Profile, ReadError> {
    seekable(name, Cursor::new(bytes), options, &mut |_| {})
}

/// Reads a stream that cannot seek. A perf.data file in it is first copied into an unnamed
/// temporary file, because its description is at its end.
///
/// # Errors
///
/// See [`ReadError`].
pub fn stream(
    name: &str,
    source: impl Read,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Profile, ReadError> {
    let mut source = BufReader::with_capacity(PREFIX_BYTES, source);
    let prefix = fill(&mut source).map_err(|error| ReadError::io(name, error))?;
    match Compression::of(&prefix) {
        Compression::None => plain(name, prefix, source, options, progress),
        compression => {
            let whole = BufReader::new(Cursor::new(prefix).chain(source));
            let inner = compression.reader(whole).map_err(|error| ReadError::io(name, error))?;
            let mut inner = BufReader::with_capacity(PREFIX_BYTES, inner);
            let prefix = fill(&mut inner).map_err(|error| ReadError::io(name, error))?;
            plain(name, prefix, inner, options, progress)
        }
    }
}

fn seekable(
    name: &str,
    mut source: impl Read + Seek,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Profile, ReadError> {
    let mut magic = [0; 16];
    let len = read_up_to(&mut source, &mut magic).map_err(|error| ReadError::io(name, error))?;
    source.seek(SeekFrom::Start(0)).map_err(|error| ReadError::io(name, error))?;
    let magic = &magic[..len];
    if perf_data::is_perf_data(magic) && !perf_data::is_pipe(magic) {
        let symbols = Symbols::new(options.symbols.clone());
        let profile = perf_data::read_file(source, Vec::new(), symbols, progress)
            .map_err(|error| ReadError::unusable(name, error.to_string()))?;
        return usable(name, profile);
    }
    stream(name, source, options, progress)
}

/// Reads an uncompressed stream, of which `prefix` is already read.
fn plain(
    name: &str,
    prefix: Vec<u8>,
    source: impl Read,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Profile, ReadError> {
    if prefix.is_empty() {
        return Err(ReadError::Empty { name: name.to_owned() });
    }
    let format = recognise(&prefix);
    let beginning = String::from_utf8_lossy(&prefix).into_owned();
    let mut whole = BufReader::with_capacity(1 << 20, Cursor::new(prefix).chain(source));
    let profile = match format {
        None => return Err(ReadError::Unrecognised { name: name.to_owned() }),
        Some(Format::PerfData) => {
            let mut copy = spool(&mut whole).map_err(|error| ReadError::io(name, error))?;
            return seekable(name, &mut copy, options, progress);
        }
        Some(Format::PerfPipe) => {
            let symbols = Symbols::new(options.symbols.clone());
            perf_data::read_pipe(whole, symbols, progress)
                .map_err(|error| ReadError::unusable(name, error.to_string()))?
        }
        Some(Format::PerfScript) => perf_script::read(&beginning, whole, progress),
        Some(Format::Folded | Format::Live) => folded::read(whole, progress),
        Some(Format::Pprof) => {
            pprof::read(&mut whole).map_err(|error| ReadError::unusable(name, error))?
        }
    };
    usable(name, profile)
}

fn usable(name: &str, profile: Profile) -> Result<Profile, ReadError> {
    if profile.samples().is_empty() {
        let reason = match profile.meta.notes.first() {
            Some(note) => note.clone(),
            None => "the recording has no sample".to_owned(),
        };
        return Err(ReadError::unusable(name, reason));
    }
    Ok(profile)
}

fn spool(source: &mut impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => file.write_all(&buffer[..len])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A compressed file is truncated; its content up to there is used.
            Err(_) => break,
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Takes the first bytes out of a stream, up to [`PREFIX_BYTES`].
fn fill(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut prefix = vec![0; PREFIX_BYTES];
    let len = read_up_to(source, &mut prefix)?;
    prefix.truncate(len);
    Ok(prefix)
}

/// Fills a buffer as far as the source goes. An error after the first byte counts as the end.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match source.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if len == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(len)
}
