//! What was given, as a flat list of named inputs, whether it came as files, directories, standard
//! input or a bundle of `ogive capture` (a tar archive, compressed or not).
//!
//! Everything outside is bounded: number of inputs, their size, how far they unpack, how deep a
//! directory goes. Links are not followed. What is left out is said.

mod pack;
mod sampled;
mod unpack;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::evidence::{Evidence, Input};
use crate::read;

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
}

/// Why an input cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {path}: {source}; name a file, a directory, a bundle of \"ogive capture\", or - for standard input"
)]
pub struct LoadError {
    path: String,
    source: io::Error,
}

/// Collects inputs and reads them.
#[derive(Debug, Default)]
pub struct Loader {
    inputs: Vec<RawInput>,
    left_out: Vec<(String, String)>,
    total_bytes: u64,
}

/// One input in memory.
#[derive(Debug)]
struct RawInput {
    name: String,
    bytes: Vec<u8>,
}

impl Loader {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a path: a file, a directory with all its files, or `-` for standard input.
    ///
    /// # Errors
    /// [`LoadError`] if it cannot be opened or read at all.
    pub fn add_path(&mut self, path: &Path) -> Result<(), LoadError> {
        let fault = |source| LoadError { path: path.display().to_string(), source };
        if path.as_os_str() == "-" {
            return self.add_stream("standard input", io::stdin().lock()).map_err(fault);
        }
        let metadata = std::fs::metadata(path).map_err(fault)?;
        if metadata.is_dir() {
            return self.add_directory(path, "", 0).map_err(fault);
        }
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let file = File::open(path).map_err(fault)?;
        self.add_stream(&name, file).map_err(fault)
    }

    /// Adds an input by name, unpacking what is packed.
    ///
    /// # Errors
    /// Those of reading the source.
    pub fn add_stream(&mut self, name: &str, source: impl Read) -> io::Result<()> {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes).min(MAX_INPUT_BYTES);
        if room == 0 || self.inputs.len() >= MAX_INPUTS {
            self.left_out.push((
                name.to_owned(),
                "left out: there are too many or too large inputs".to_owned(),
            ));
            return Ok(());
        }
        let unpacked = unpack::unpack(name, source, room)?;
        for (name, reason) in unpacked.left_out {
            self.left_out.push((name, reason));
        }
        for (name, bytes) in unpacked.files {
            self.total_bytes += bytes.len() as u64;
            if self.inputs.len() >= MAX_INPUTS {
                self.left_out.push((name, format!("left out: more than {MAX_INPUTS} inputs")));
                break;
            }
            self.inputs.push(RawInput { name, bytes });
        }
        Ok(())
    }

    /// Adds bytes that are in memory, as they are.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.total_bytes += bytes.len() as u64;
        self.inputs.push(RawInput { name: name.to_owned(), bytes });
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            self.left_out.push((
                prefix.to_owned(),
                format!("left out: deeper than {MAX_DEPTH} directories"),
            ));
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
                self.add_directory(&path, &name, depth + 1)?;
            } else if metadata.is_file() {
                let added = File::open(&path).and_then(|file| self.add_stream(&name, file));
                if let Err(error) = added {
                    self.left_out.push((name, format!("left out: {error}")));
                }
            } else {
                self.left_out.push((name, "left out: neither a file nor a directory".to_owned()));
            }
        }
        Ok(())
    }

    /// Reads everything into evidence.
    pub fn read(mut self) -> Loaded {
        let mut loaded = Loaded::default();
        // Names of kernel functions, where somebody saved them.
        let kallsyms = self.inputs.iter().find(|input| {
            input.name.rsplit('/').next().is_some_and(|name| name.starts_with("kallsyms"))
        });
        let kallsyms: Option<Vec<u8>> = kallsyms.map(|input| input.bytes.clone());
        self.inputs.sort_by_key(|input| order(&input.name));
        for input in std::mem::take(&mut self.inputs) {
            if input.name.rsplit('/').next().is_some_and(|name| name.starts_with("kallsyms")) {
                self.note(&mut loaded.evidence, &input.name, "kallsyms", input.bytes.len());
                continue;
            }
            let sampled = sampled::read(&input.name, &input.bytes, kallsyms.as_deref());
            match sampled {
                Some(Ok(profile)) => sampled::add(&mut loaded, &input.name, profile),
                Some(Err(trouble)) => loaded.evidence.inputs.push(Input {
                    name: Arc::from(input.name.as_str()),
                    formats: Vec::new(),
                    facts: 0,
                    trouble: Some(trouble),
                }),
                None => read::read_bytes(&mut loaded.evidence, &input.name, &input.bytes),
            }
        }
        read::finish(&mut loaded.evidence);
        for (name, reason) in self.left_out {
            loaded.evidence.inputs.push(Input {
                name: Arc::from(name.as_str()),
                formats: Vec::new(),
                facts: 0,
                trouble: Some(reason),
            });
        }
        loaded
    }

    fn note(&self, evidence: &mut Evidence, name: &str, format: &str, bytes: usize) {
        let trouble = (bytes == 0).then(|| "it is empty".to_owned());
        evidence.inputs.push(Input {
            name: Arc::from(name),
            formats: vec![format.to_owned()],
            facts: 0,
            trouble,
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
