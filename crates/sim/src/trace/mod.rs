//! Reads traces of many formats as a stream of [`Request`]s.
//!
//! A trace is opened from a file or standard input, decompressed by content and decoded by its
//! format, and its ranges are cut into blocks. Memory is one bounded buffer, so a trace may be
//! longer than memory. A bad record is an error with its line or offset, or is counted on request;
//! no input panics.

mod binary_formats;
mod block_formats;
mod decode;
mod detect;
mod error;
mod format;
mod input;
mod key_formats;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use self::error::{Place, TraceError};
pub use self::format::Format;

use self::decode::{Access, Decode, Step, What, mix};
use self::detect::Recognised;
use self::error::Fault;
use self::input::Input;
use crate::policy::Request;

/// Default block size of range formats, in bytes.
pub const BLOCK_BYTES_DEFAULT: u64 = 4096;
/// Blocks of one record at most: 64 GiB in blocks of 4 KiB.
const RUN_BLOCKS_MAX: u64 = 1 << 24;

/// Options of reading.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; `None` to detect it by content and name.
    pub format: Option<Format>,
    /// Size of a block in bytes: the unit of ranges, and the weight of a key in a format without
    /// sizes. `None` means 4096 for ranges and 1 for keys.
    pub block_bytes: Option<u64>,
    /// Every key weighs 1, whatever the trace contains: sizes are in entries.
    pub entries: bool,
    /// Writes are skipped.
    pub reads_only: bool,
    /// Prefetches count as accesses; otherwise they are skipped.
    pub with_prefetch: bool,
    /// Bad records are counted and skipped.
    pub skip_bad: bool,
    /// The number of requests to read at most, of all traces together.
    pub requests_max: Option<u64>,
}

/// Counts of requests that were read, and of records that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Requests, after ranges are cut into blocks.
    pub requests: u64,
    /// Bad records that were skipped.
    pub bad: u64,
    /// Write records that were skipped.
    pub writes: u64,
    /// Prefetch records that were skipped.
    pub prefetches: u64,
    /// Reads that the recorder reports as dropped.
    pub dropped: u64,
}

/// A run of blocks in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    space: u64,
    next: u64,
    left: u64,
    weight_bytes: u64,
}

/// A trace as a stream of requests.
pub struct TraceReader {
    name: String,
    input: Input,
    format: Format,
    decoder: Box<dyn Decode>,
    options: ReadOptions,
    run: Run,
    counts: ReadCounts,
}

impl TraceReader {
    /// Opens a file, or standard input for `-`. Compressed bytes read are added to `progress`.
    ///
    /// # Errors
    /// [`TraceError`] if it cannot be read or its format is not recognised.
    pub fn open(
        path: &Path,
        options: &ReadOptions,
        progress: Arc<AtomicU64>,
    ) -> Result<Self, TraceError> {
        let name = display_name(path);
        let failed = |error: std::io::Error| TraceError {
            name: name.clone(),
            place: Place::Whole,
            reason: format!("cannot read it: {error}"),
        };
        let input = Input::open(path, progress).map_err(failed)?;
        Self::with_input(path, input, options)
    }

    /// Reads from any reader; `name` helps to detect the format.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn from_reader(
        name: &Path,
        reader: impl std::io::Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let input = Input::new(reader, Arc::default()).map_err(|error| TraceError {
            name: display_name(name),
            place: Place::Whole,
            reason: format!("cannot read it: {error}"),
        })?;
        Self::with_input(name, input, options)
    }

    fn with_input(
        path: &Path,
        mut input: Input,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let name = display_name(path);
        let whole = |reason| TraceError { name: name.clone(), place: Place::Whole, reason };
        let beginning = input.peek(detect::LOOKED_AT_BYTES);
        let beginning = beginning.map_err(|error| whole(format!("cannot read it: {error}")))?;
        let Recognised { format, shape } = match options.format {
            Some(format) => Recognised { format, shape: None },
            None if beginning.is_empty() => return Err(whole("the trace is empty".to_owned())),
            None => detect::recognise(path, beginning).map_err(whole)?,
        };
        let decoder = format.decoder(shape);
        let (options, run) = (options.clone(), Run::default());
        Ok(Self { name, input, format, decoder, options, run, counts: ReadCounts::default() })
    }

    /// The format of the trace.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Adds requests to `requests` until there are `limit` or the trace ends. Returns whether
    /// it has ended.
    ///
    /// # Errors
    /// [`TraceError`] with the line or offset of the fault. With `skip_bad`, only a fault that
    /// prevents further reading is an error.
    pub fn read(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<bool, TraceError> {
        while requests.len() < limit {
            if self.options.requests_max.is_some_and(|max| self.counts.requests >= max) {
                return Ok(true);
            }
            if self.run.left > 0 {
                let key = mix(self.run.space, self.run.next);
                requests.push(Request::new(key, self.run.weight_bytes));
                // The largest block number has no successor, and no run goes beyond it.
                self.run.next = self.run.next.wrapping_add(1);
                self.run.left -= 1;
                self.counts.requests += 1;
                continue;
            }
            let offset = self.input.offset();
            let step = self.decoder.decode(&mut self.input);
            match step.and_then(|step| self.take(step).map_err(Fault::Record)) {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                Err(Fault::Record(_)) if self.options.skip_bad => self.counts.bad += 1,
                Err(Fault::Record(reason) | Fault::End(reason)) => {
                    return Err(self.error(offset, reason));
                }
            }
        }
        Ok(false)
    }

    fn error(&self, offset: u64, reason: String) -> TraceError {
        let place = if self.format.is_text() {
            Place::Line(self.input.line_number())
        } else {
            Place::Offset(offset)
        };
        let name = self.name.clone();
        let reason = format!(
            "{reason} (read as {}; --skip-bad counts such records and continues)",
            self.format
        );
        TraceError { name, place, reason }
    }

    /// Processes a step. Returns whether it is the last.
    fn take(&mut self, step: Step) -> Result<bool, String> {
        match step {
            Step::End => return Ok(true),
            Step::Nothing => {}
            Step::Dropped(reads) => self.counts.dropped = self.counts.dropped.saturating_add(reads),
            Step::Access(access) => self.access(access)?,
        }
        Ok(false)
    }

    fn access(&mut self, access: Access) -> Result<(), String> {
        if access.is_write && self.options.reads_only {
            self.counts.writes += 1;
            return Ok(());
        }
        if access.is_prefetch && !self.options.with_prefetch {
            self.counts.prefetches += 1;
            return Ok(());
        }
        let unit_bytes = self.options.block_bytes.unwrap_or(1).max(1);
        let block_bytes = self.options.block_bytes.unwrap_or(BLOCK_BYTES_DEFAULT).max(1);
        let mut run = match access.what {
            What::Key { key, bytes } => {
                let weight_bytes = bytes.unwrap_or(unit_bytes);
                Run { space: 0, next: key, left: 1, weight_bytes }
            }
            What::Blocks { first, count } => {
                Run { space: 0, next: first, left: count, weight_bytes: unit_bytes }
            }
            What::Range { space, offset_bytes, bytes } => {
                let end = offset_bytes.checked_add(bytes).ok_or("a range beyond 2^64")?;
                let first = offset_bytes / block_bytes;
                let left = if bytes == 0 { 0 } else { (end - 1) / block_bytes - first + 1 };
                Run { space, next: first, left, weight_bytes: block_bytes }
            }
        };
        if run.left > RUN_BLOCKS_MAX
            || run.next.checked_add(run.left - u64::from(run.left > 0)).is_none()
        {
            return Err(format!(
                "a record of {} blocks; at most {RUN_BLOCKS_MAX} are plausible",
                run.left
            ));
        }
        run.weight_bytes = if self.options.entries { 1 } else { run.weight_bytes.max(1) };
        self.run = run;
        Ok(())
    }
}

fn display_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Several traces in sequence.
pub struct Traces {
    paths: Vec<PathBuf>,
    at: usize,
    reader: Option<TraceReader>,
    options: ReadOptions,
    counts: ReadCounts,
    progress: Arc<AtomicU64>,
    formats: Vec<Format>,
}

impl Traces {
    /// The traces of these files, opened on demand.
    #[must_use]
    pub fn new(paths: &[PathBuf], options: &ReadOptions, progress: Arc<AtomicU64>) -> Self {
        Self {
            paths: paths.to_vec(),
            at: 0,
            reader: None,
            options: options.clone(),
            counts: ReadCounts::default(),
            progress,
            formats: Vec::new(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> ReadCounts {
        let now = self.reader.as_ref().map(TraceReader::counts).unwrap_or_default();
        ReadCounts {
            requests: self.counts.requests + now.requests,
            bad: self.counts.bad + now.bad,
            writes: self.counts.writes + now.writes,
            prefetches: self.counts.prefetches + now.prefetches,
            dropped: self.counts.dropped.saturating_add(now.dropped),
        }
    }

    /// The formats of the traces opened so far.
    #[must_use]
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Fills `requests` up to `limit`; it stays empty at the end.
    ///
    /// # Errors
    /// As [`TraceReader::open`] and [`TraceReader::read`].
    pub fn read(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<(), TraceError> {
        while requests.len() < limit {
            if self.reader.is_none() {
                let Some(path) = self.paths.get(self.at) else { return Ok(()) };
                let mut options = self.options.clone();
                options.requests_max =
                    options.requests_max.map(|max| max.saturating_sub(self.counts.requests));
                let reader = TraceReader::open(path, &options, Arc::clone(&self.progress))?;
                self.formats.push(reader.format());
                self.reader = Some(reader);
            }
            let Some(reader) = &mut self.reader else { return Ok(()) };
            if reader.read(requests, limit)? {
                self.counts = self.counts();
                self.reader = None;
                self.at += 1;
            }
        }
        Ok(())
    }
}
