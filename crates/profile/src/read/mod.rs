//! Readers: from what people have to a [`Profile`]. Formats are known by content, compressed or
//! not.
//!
//! Everything that is read is outside input. No length or count of it is trusted, and nothing of it
//! makes these readers panic. Memory is bounded, however long the input is. What is damaged is left
//! out with a note in [`Meta::notes`](crate::Meta::notes). An error means that nothing could be
//! used.

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

/// Part of the beginning that shows the format.
const PREFIX_BYTES: usize = 64 << 10;

/// How to read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where names of addresses may come from. By default nothing of this machine is used.
    pub symbols: SymbolOptions,
}

/// Called from time to time with how many more bytes were read.
pub type Progress<'p> = &'p mut dyn FnMut(u64);

/// What a source is, by its first bytes (4 KiB are enough); `None` for nothing that is known here.
/// What is compressed must be decompressed first.
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

/// Whether a directory is a recording, as `perf record --threads` and `--kcore` write it.
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
            "it is a directory without a recording of perf in it; give a file",
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

/// Reads a stream that cannot be repositioned. A perf.data file in it is first copied into an
/// unnamed temporary file, because its description stands at its end.
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

/// A stream that is not compressed, of which `prefix` was read.
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
            None => "it was recorded without any sample".to_owned(),
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
            // A compressed file that is cut off: what came out of it is used.
            Err(_) => break,
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// The first bytes of a stream, taken out of it: as many as there are, up to [`PREFIX_BYTES`].
fn fill(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut prefix = vec![0; PREFIX_BYTES];
    let len = read_up_to(source, &mut prefix)?;
    prefix.truncate(len);
    Ok(prefix)
}

/// Fills a buffer as far as the source goes. An error after the first byte ends it like an end.
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
