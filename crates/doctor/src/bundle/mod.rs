//! The inputs as a flat list with names. They come from files, directories, standard input, or a
//! bundle of `ogive capture` (a tar archive, compressed or not).
//!
//! The number of inputs, their size, their unpacked size and the depth of directories are bounded.
//! Links are not followed. Omitted inputs are reported. A perf recording in a file is read in one
//! pass and not held in memory, so its length does not matter.

mod manifest;
mod pack;
mod profiles;
mod unpack;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::evidence::{Evidence, Input};
use crate::read;

use unpack::whole;

pub use pack::{BUNDLE_VERSION, BundleWriter};
pub use profiles::add_profile;

/// Bytes of one input that are unpacked, at most.
pub const MAX_INPUT_BYTES: u64 = 512 << 20;
/// Bytes of all inputs together that are unpacked, at most.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;
/// Inputs that are read, at most.
pub const MAX_INPUTS: usize = 20_000;
/// Depth of directories that is entered, at most.
const MAX_DEPTH: usize = 12;

/// The loaded inputs.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The facts.
    pub evidence: Evidence,
    /// The profile with the most samples, for the flame graph.
    pub profile: Option<ogive_profile::Profile>,
    /// The CPU cost of the capture, in percent of one CPU, if its manifest has it.
    pub looking_percent: Option<f64>,
}

/// An input that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {path}: {source}; name a file, a directory, a bundle of \"ogive capture\", or - \
     for standard input"
)]
pub struct LoadError {
    path: String,
    source: io::Error,
}

/// Whether a file begins like a capture of `ogive capture`: an archive whose first file is the
/// manifest. Only its beginning is read.
pub fn is_capture(path: &Path) -> bool {
    let mut prefix = Vec::new();
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || File::open(path)?.take(profiles::PREFIX_BYTES).read_to_end(&mut prefix);
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
    left_out: Vec<Input>,
    total_bytes: u64,
    input_bytes_max: u64,
}

/// One input.
#[derive(Debug)]
struct RawInput {
    name: String,
    content: Content,
}

/// The content of an input until it is read.
#[derive(Debug)]
enum Content {
    /// In memory.
    Bytes(Vec<u8>),
    /// A recording of perf, compressed or not, in a file or a directory.
    Recording(PathBuf),
    /// A recording that came as a stream and was read at once.
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

    /// An empty collection that holds at most this many bytes of one input.
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
        source.by_ref().take(profiles::PREFIX_BYTES).read_to_end(&mut prefix)?;
        let is_recording = profiles::begins_recording(&prefix);
        let stream = io::Cursor::new(prefix).chain(source);
        if !is_recording {
            return self.add_stream(name, stream);
        }
        self.push(name, Content::Read(Box::new(profiles::pipe(name, stream))));
        Ok(())
    }

    fn add_file(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        // A recording must be opened a second time, which excludes pipes and devices.
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && self.inputs.len() < MAX_INPUTS && profiles::is_recording(&mut file)? {
            self.push(name, Content::Recording(path.to_owned()));
            return Ok(());
        }
        self.add_stream(name, file)
    }

    /// Adds an input by name; packed inputs are unpacked.
    ///
    /// # Errors
    /// Those of reading the source.
    pub fn add_stream(&mut self, name: &str, source: impl Read) -> io::Result<()> {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes).min(self.input_bytes_max);
        if room == 0 || self.inputs.len() >= MAX_INPUTS {
            let why = "left out: there are too many or too large inputs";
            self.left_out.push(whole(name, why));
            return Ok(());
        }
        let unpacked = unpack::unpack(name, source, room)?;
        self.left_out.extend(unpacked.left_out);
        for (name, bytes) in unpacked.files {
            self.total_bytes += bytes.len() as u64;
            if self.inputs.len() >= MAX_INPUTS {
                let why = format!("left out: more than {MAX_INPUTS} inputs");
                self.left_out.push(whole(&name, why));
                break;
            }
            self.push(&name, Content::Bytes(bytes));
        }
        Ok(())
    }

    fn push(&mut self, name: &str, content: Content) {
        self.inputs.push(RawInput { name: name.to_owned(), content });
    }

    /// Adds bytes in memory, unchanged.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.total_bytes += bytes.len() as u64;
        self.push(name, Content::Bytes(bytes));
    }

    /// Adds a directory that is a recording of perf; `false` if it is not one.
    fn add_recording_directory(&mut self, name: &str, path: &Path) -> bool {
        let is_recording =
            self.inputs.len() < MAX_INPUTS && ogive_profile::read::is_recording_directory(path);
        if is_recording {
            self.push(name, Content::Recording(path.to_owned()));
        }
        is_recording
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            let why = format!("left out: deeper than {MAX_DEPTH} directories");
            self.left_out.push(whole(prefix, why));
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
                    self.left_out.push(whole(&name, format!("left out: {error}")));
                }
            } else {
                let why = "left out: neither a file nor a directory";
                self.left_out.push(whole(&name, why));
            }
        }
        Ok(())
    }

    /// Reads everything into evidence.
    pub fn read(self) -> Loaded {
        self.read_telling(&mut |_| {})
    }

    /// Reads everything into evidence, and calls `progress` with each number of further bytes of a
    /// recording.
    pub fn read_telling(mut self, progress: &mut dyn FnMut(u64)) -> Loaded {
        let mut loaded = Loaded::default();
        // Names of kernel functions, if they were saved.
        let kallsyms = self.inputs.iter().find_map(|input| match &input.content {
            Content::Bytes(bytes) if is_kallsyms(&input.name) => Some(bytes.clone()),
            _ => None,
        });
        let kallsyms = kallsyms.as_deref();
        self.inputs.sort_by_key(|input| order(&input.name));
        self.leave_out_folded();
        for RawInput { name, content } in std::mem::take(&mut self.inputs) {
            let sampled = match content {
                Content::Bytes(bytes) => self.read_bytes(&name, &bytes, kallsyms, &mut loaded),
                Content::Recording(path) => Some(profiles::stream(&path, kallsyms, progress)),
                Content::Read(sampled) => Some(*sampled),
            };
            match sampled {
                Some(Ok(profile)) => profiles::add(&mut loaded, &name, profile),
                Some(Err(trouble)) => loaded.evidence.inputs.push(Input {
                    name: Arc::from(name),
                    trouble: Some(trouble),
                    ..Input::default()
                }),
                None => {}
            }
        }
        read::finish(&mut loaded.evidence);
        loaded.evidence.inputs.extend(self.left_out);
        loaded
    }

    /// Reads an input in memory; a profile of samples is returned.
    fn read_bytes(
        &mut self,
        name: &str,
        bytes: &[u8],
        kallsyms: Option<&[u8]>,
        loaded: &mut Loaded,
    ) -> Option<Result<ogive_profile::Profile, String>> {
        let format = if let Some(manifest) = manifest::read(name, bytes) {
            loaded.looking_percent = manifest.looking_percent.or(loaded.looking_percent);
            let not_taken = manifest.not_taken.into_iter();
            self.left_out.extend(not_taken.map(|why| whole(name, why)));
            "manifest"
        } else if is_kallsyms(name) {
            "kallsyms"
        } else {
            let sampled = profiles::read(name, bytes, kallsyms);
            if sampled.is_none() {
                read::read_bytes(&mut loaded.evidence, name, bytes);
            }
            return sampled;
        };
        loaded.evidence.inputs.push(Input {
            name: Arc::from(name),
            formats: vec![format.to_owned()],
            trouble: bytes.is_empty().then(|| "it is empty".to_owned()),
            ..Input::default()
        });
        None
    }

    /// Drops the folded profile of a capture that also has it as pprof. The folded one is for
    /// people and has names of threads; pprof also has their processes. The same samples must not
    /// count twice.
    fn leave_out_folded(&mut self) {
        let place = |input: &RawInput| match &input.content {
            Content::Bytes(bytes) if profiles::is_pprof(bytes) => {
                input.name.strip_suffix("profile.pb").map(str::to_owned)
            }
            _ => None,
        };
        let pprof: Vec<String> = self.inputs.iter().filter_map(place).collect();
        self.inputs.retain(|input| {
            let folded = input.name.strip_suffix("profile.folded");
            folded.is_none_or(|place| !pprof.iter().any(|known| known == place))
        });
    }
}

/// Whether a file is the kernel's list of its functions.
fn is_kallsyms(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| name.starts_with("kallsyms"))
}

/// Orders the first of two readings before the second, by the names in use.
fn order(name: &str) -> (u8, String) {
    let early = name.starts_with("start/")
        || name.contains("/start/")
        || name.ends_with(".prev")
        || name.contains("before");
    (u8::from(!early), name.to_owned())
}
