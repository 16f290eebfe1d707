//! What was given, as a flat list of named inputs, whether it came as files, directories, standard
//! input or a bundle of `ogive capture` (a tar archive, compressed or not).
//!
//! Everything outside is bounded: number of inputs, their size, how far they unpack, how deep a
//! directory goes. Links are not followed. What is left out is said. A recording of perf that is a
//! file is not held: it is read as it stands, in one pass, however long it is.

mod manifest;
mod pack;
mod sampled;
mod unpack;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::evidence::{Evidence, Input};
use crate::read;

use unpack::LeftOut;

pub use pack::{BUNDLE_VERSION, BundleWriter};
pub use sampled::{add_profile, evidence_of};

/// As much of one input is unpacked.
pub const MAX_INPUT_BYTES: u64 = 512 << 20;
/// As much of all inputs together is unpacked.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;
/// As many inputs are looked at.
pub const MAX_INPUTS: usize = 20_000;
/// Directories are entered this deep.
const MAX_DEPTH: usize = 12;

/// What was loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The facts.
    pub evidence: Evidence,
    /// The profile with the most samples, for the flame graph.
    pub profile: Option<ogive_profile::Profile>,
    /// What looking at the host cost, percent of one CPU, where a capture says so.
    pub looking_percent: Option<f64>,
}

/// Why an input cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {path}: {source}; name a file, a directory, a bundle of \"ogive capture\", or - \
     for standard input"
)]
pub struct LoadError {
    path: String,
    source: io::Error,
}

/// Whether a file begins as what `ogive capture` writes: an archive whose first file is its
/// manifest. Only its beginning is read.
pub fn is_capture(path: &Path) -> bool {
    let mut prefix = Vec::new();
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || File::open(path)?.take(sampled::PREFIX_BYTES).read_to_end(&mut prefix);
    if !is_file || read().is_err() {
        return false;
    }
    let beginning = unpack::beginning(prefix);
    let header = b"manifest.json\0";
    unpack::is_tar(&beginning) && beginning.starts_with(header)
}

/// Collects inputs and reads them.
#[derive(Debug)]
pub struct Loader {
    inputs: Vec<RawInput>,
    left_out: Vec<LeftOut>,
    total_bytes: u64,
    input_bytes_max: u64,
}

/// One input.
#[derive(Debug)]
struct RawInput {
    name: String,
    content: Content,
}

/// Where an input is until it is read.
#[derive(Debug)]
enum Content {
    /// In memory.
    Bytes(Vec<u8>),
    /// A recording of perf, compressed or not, in a file or a directory.
    Recording(PathBuf),
    /// A recording that came as a stream and was read as it came.
    Read(Box<Result<ogive_profile::Profile, String>>),
}

impl Default for Loader {
    fn default() -> Self {
        Self::limited(MAX_INPUT_BYTES)
    }
}

impl Loader {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty collection that holds at most so many bytes of one input.
    pub fn limited(input_bytes_max: u64) -> Self {
        Self {
            inputs: Vec::new(),
            left_out: Vec::new(),
            total_bytes: 0,
            input_bytes_max: input_bytes_max.min(MAX_INPUT_BYTES),
        }
    }

    /// Adds a path: a file, a directory with all its files, or `-` for standard input.
    ///
    /// # Errors
    /// [`LoadError`] if it cannot be opened or read at all.
    pub fn add_path(&mut self, path: &Path) -> Result<(), LoadError> {
        let fault = |source| LoadError { path: path.display().to_string(), source };
        if path.as_os_str() == "-" {
            return self.add_pipe("standard input", io::stdin().lock()).map_err(fault);
        }
        let metadata = std::fs::metadata(path).map_err(fault)?;
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        if metadata.is_dir() && self.add_recording_directory(&name, path) {
            return Ok(());
        }
        if metadata.is_dir() {
            return self.add_directory(path, "", 0).map_err(fault);
        }
        self.add_file(&name, path).map_err(fault)
    }

    fn add_pipe(&mut self, name: &str, mut source: impl Read) -> io::Result<()> {
        let mut prefix = Vec::new();
        source.by_ref().take(sampled::PREFIX_BYTES).read_to_end(&mut prefix)?;
        let is_recording = sampled::begins_recording(&prefix);
        let whole = io::Cursor::new(prefix).chain(source);
        if !is_recording {
            return self.add_stream(name, whole);
        }
        let content = Content::Read(Box::new(sampled::pipe(name, whole)));
        self.inputs.push(RawInput { name: name.to_owned(), content });
        Ok(())
    }

    fn add_file(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        // Only what can be opened a second time: no pipe, no device.
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && self.inputs.len() < MAX_INPUTS && sampled::is_recording(&mut file)? {
            let content = Content::Recording(path.to_owned());
            self.inputs.push(RawInput { name: name.to_owned(), content });
            return Ok(());
        }
        self.add_stream(name, file)
    }

    /// Adds an input by name, unpacking what is packed.
    ///
    /// # Errors
    /// Those of reading the source.
    pub fn add_stream(&mut self, name: &str, source: impl Read) -> io::Result<()> {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes).min(self.input_bytes_max);
        if room == 0 || self.inputs.len() >= MAX_INPUTS {
            let why = "left out: there are too many or too large inputs";
            self.left_out.push(LeftOut::whole(name, why));
            return Ok(());
        }
        let unpacked = unpack::unpack(name, source, room)?;
        self.left_out.extend(unpacked.left_out);
        for (name, bytes) in unpacked.files {
            self.total_bytes += bytes.len() as u64;
            if self.inputs.len() >= MAX_INPUTS {
                let why = format!("left out: more than {MAX_INPUTS} inputs");
                self.left_out.push(LeftOut::whole(name, why));
                break;
            }
            self.inputs.push(RawInput { name, content: Content::Bytes(bytes) });
        }
        Ok(())
    }

    /// Adds bytes that are in memory, as they are.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.total_bytes += bytes.len() as u64;
        self.inputs.push(RawInput { name: name.to_owned(), content: Content::Bytes(bytes) });
    }

    /// Adds a directory that is one recording of perf; `false` if it is none.
    fn add_recording_directory(&mut self, name: &str, path: &Path) -> bool {
        let is_recording =
            self.inputs.len() < MAX_INPUTS && ogive_profile::read::is_recording_directory(path);
        if is_recording {
            let content = Content::Recording(path.to_owned());
            self.inputs.push(RawInput { name: name.to_owned(), content });
        }
        is_recording
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            let why = format!("left out: deeper than {MAX_DEPTH} directories");
            self.left_out.push(LeftOut::whole(prefix, why));
            return Ok(());
        }
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            entries.push(entry?.path());
        }
        entries.sort();
        for path in entries {
            let Some(file_name) = path.file_name().map(|name| name.to_string_lossy().into_owned())
            else {
                continue;
            };
            let name = if prefix.is_empty() { file_name } else { format!("{prefix}/{file_name}") };
            let metadata = std::fs::symlink_metadata(&path)?;
            if metadata.is_dir() {
                if !self.add_recording_directory(&name, &path) {
                    self.add_directory(&path, &name, depth + 1)?;
                }
            } else if metadata.is_file() {
                if let Err(error) = self.add_file(&name, &path) {
                    self.left_out.push(LeftOut::whole(name, format!("left out: {error}")));
                }
            } else {
                let why = "left out: neither a file nor a directory";
                self.left_out.push(LeftOut::whole(name, why));
            }
        }
        Ok(())
    }

    /// Reads everything into evidence.
    pub fn read(self) -> Loaded {
        self.read_telling(&mut |_| {})
    }

    /// The same; `progress` is told how many more bytes of a recording were read.
    pub fn read_telling(mut self, progress: &mut dyn FnMut(u64)) -> Loaded {
        let mut loaded = Loaded::default();
        // Names of kernel functions, where somebody saved them.
        let is_kallsyms = |input: &RawInput| {
            input.name.rsplit('/').next().is_some_and(|name| name.starts_with("kallsyms"))
        };
        let kallsyms = self.inputs.iter().filter(|input| is_kallsyms(input));
        let kallsyms: Option<Vec<u8>> = kallsyms
            .filter_map(|input| match &input.content {
                Content::Bytes(bytes) => Some(bytes.clone()),
                Content::Recording(_) | Content::Read(_) => None,
            })
            .next();
        self.inputs.sort_by_key(|input| order(&input.name));
        self.leave_out_folded();
        for input in std::mem::take(&mut self.inputs) {
            let names_symbols = is_kallsyms(&input);
            let name = input.name.as_str();
            if let Content::Bytes(bytes) = &input.content
                && let Some(manifest) = manifest::read(name, bytes)
            {
                loaded.looking_percent = manifest.looking_percent.or(loaded.looking_percent);
                self.note(&mut loaded.evidence, name, "manifest", bytes.len());
                let not_taken = manifest.not_taken.into_iter();
                self.left_out.extend(not_taken.map(|why| LeftOut::whole(name, why)));
                continue;
            }
            let sampled = match input.content {
                Content::Bytes(bytes) if names_symbols => {
                    self.note(&mut loaded.evidence, name, "kallsyms", bytes.len());
                    continue;
                }
                Content::Bytes(bytes) => match sampled::read(name, &bytes, kallsyms.as_deref()) {
                    Some(sampled) => sampled,
                    None => {
                        read::read_bytes(&mut loaded.evidence, name, &bytes);
                        continue;
                    }
                },
                Content::Recording(path) => sampled::stream(&path, kallsyms.as_deref(), progress),
                Content::Read(sampled) => *sampled,
            };
            match sampled {
                Ok(profile) => sampled::add(&mut loaded, name, profile),
                Err(trouble) => loaded.evidence.inputs.push(Input {
                    name: Arc::from(name),
                    formats: Vec::new(),
                    facts: 0,
                    trouble: Some(trouble),
                    ..Input::default()
                }),
            }
        }
        read::finish(&mut loaded.evidence);
        loaded.evidence.inputs.extend(self.left_out.into_iter().map(|one| Input {
            name: Arc::from(one.name.as_str()),
            trouble: Some(one.why),
            in_part: one.in_part,
            ..Input::default()
        }));
        loaded
    }

    /// A capture holds its profile twice: folded for people, which has names of threads, and as
    /// pprof, which knows whose threads they are. The same samples are not two profiles.
    fn leave_out_folded(&mut self) {
        let of_capture = |name: &str, what: &str| name.strip_suffix(what).map(str::to_owned);
        let is_whole = |input: &&RawInput| match &input.content {
            Content::Bytes(bytes) => sampled::is_pprof(bytes),
            Content::Recording(_) | Content::Read(_) => false,
        };
        let named = self.inputs.iter().filter(|input| input.name.ends_with("profile.pb"));
        let whole: Vec<String> = named
            .filter(is_whole)
            .filter_map(|input| of_capture(&input.name, "profile.pb"))
            .collect();
        self.inputs.retain(|input| {
            of_capture(&input.name, "profile.folded").is_none_or(|place| !whole.contains(&place))
        });
    }

    fn note(&self, evidence: &mut Evidence, name: &str, format: &str, bytes: usize) {
        let trouble = (bytes == 0).then(|| "it is empty".to_owned());
        evidence.inputs.push(Input {
            name: Arc::from(name),
            formats: vec![format.to_owned()],
            facts: 0,
            trouble,
            ..Input::default()
        });
    }
}

/// The first of two snapshots is read before the second, whatever they are called.
fn order(name: &str) -> (u8, String) {
    let early = name.starts_with("start/")
        || name.contains("/start/")
        || name.ends_with(".prev")
        || name.contains("before");
    (u8::from(!early), name.to_owned())
}
