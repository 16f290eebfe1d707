//! The control directory: `MNT/.ogive/`, with files that are not in the origin.
//!
//! - `arcstats`, `zfetchstats`: counters, byte for byte in OpenZFS's format
//! - `dmu_tx`, `zil`, `vdev_cache_stats`, `vdev_mirror_stats`: zeroes, for tools that need these
//!   files
//! - `ogivestats`: counters without a name in OpenZFS, in the same format
//! - `mount`: the source, the options, the process, and whether the source has gone (JSON)
//! - `memory`: the memory pressure that the mount reads
//! - `objects`: the contents of the cache by file and directory, and how it is read (JSON)
//! - `reads`: the last reads of a sample of the records (`docs/objects.md`)
//! - `hidden`: keys of a bucket that no directory can show, with the reason
//! - `trace`: records of what is read, from opening to closing (`docs/trace-format.md`)
//! - `arc_max`: largest size of the cache in bytes; writing sets it
//! - `reclaim`: the outcome of the last request; writing asks for bytes of cache to give back, or
//!   `all`
//! - `prune`: the outcome of the last request; writing asks for bytes of inodes to forget, or `all`
//! - `l2`: the devices of the second level, and the outcome of the last request (JSON); writing
//!   takes `add PATH` or `remove PATH`
//! - `proc/`, `sys/`: the trees in which OpenZFS's own tools look ([`tree`])
//!
//! A program can enter the directory and open its files by name, but no listing of the root shows
//! it. A value that `--arc-max` refuses is `EINVAL` here, and the log gives the reason.
//!
//! A file's contents are made when it is opened, so a reader sees one moment. The exception is
//! `trace`: a read returns the records since the last read, and never waits. Only one program at a
//! time can have it open. `trace`, `reads` and `objects` are readable by the daemon's user alone.
//!
//! Open files take [`HELD_BYTES_MAX`] at most, which `control_held_bytes` in `ogivestats` counts.
//! Beyond it an open gets `ENFILE`. One thread at a time makes `objects`, which takes as long as a
//! walk of the cache. Another open meanwhile gets `EBUSY`.

mod tree;

use crate::handle::Handles;
use crate::mount::RECORDS_MIN;
use crate::second_level;
use crate::statistics::{INODE_BYTES, Statistics};
use crate::view::{Result, View};
use ogive_origin::{Availability, Errno, FileKind, OFlags, Origin};
use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// The kinds of files in the directory.
#[derive(Clone, Copy, Debug)]
enum File {
    Arcstats,
    /// The same with the rows that tools older than OpenZFS 2.2 also need.
    ArcstatsForAll,
    Zfetchstats,
    Companion(&'static ogive_kstat::Table),
    /// The mount, as a dataset of a pool.
    Dataset,
    /// The mount's state, as that of a pool.
    State,
    /// The version file of OpenZFS, for tools that read it.
    Version,
    /// Like `ArcMax`, but read-only.
    ArcMaxShown,
    /// The size of a cache that does not exist here.
    None,
    Ogivestats,
    Mount,
    Memory,
    ArcMax,
    Reclaim,
    Prune,
    Trace,
    Objects,
    Reads,
    /// The devices of the second level.
    L2,
    /// Keys and names that the origin cannot show.
    Hidden,
}

/// Longest request that can be written, except for requests about devices.
const REQUEST_MAX_BYTES: usize = 64;

/// Memory at which no further file can be opened, in bytes.
const HELD_BYTES_MAX: u64 = 64 << 20;
/// Memory of an open file without its contents, in bytes.
const HANDLE_BYTES: u64 = 128;

/// The control directory of a mount.
pub(crate) struct Control<O: Origin> {
    view: Weak<View<O>>,
    name: OsString,
    statistics: Statistics,
    /// The description of the mount, for the file `mount`.
    description: serde_json::Value,
    /// The transport of requests, once it is known.
    transport: OnceLock<&'static str>,
    owner: (u32, u32),
    release_memory: fn(),
    /// A program is having the cache walked.
    is_walked: AtomicBool,
    handles: Handles<Handle>,
    /// Memory of the handles, in bytes.
    held_bytes: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// The outcomes of the last requests. A leaf lock: requests are carried out after it is released.
#[derive(Default)]
struct Outcome {
    reclaimed: String,
    pruned: String,
}

/// A file of the directory that a program has open.
struct Handle {
    file: File,
    contents: Box<[u8]>,
    writable: bool,
}

impl Handle {
    fn bytes(&self) -> u64 {
        HANDLE_BYTES + self.contents.len() as u64
    }
}

impl<O: Origin> Control<O> {
    /// `name` is empty for a mount without a control directory.
    pub(crate) fn new(
        view: &Arc<View<O>>,
        name: OsString,
        statistics: Statistics,
        description: serde_json::Value,
        release_memory: fn(),
    ) -> Self {
        Self {
            view: Arc::downgrade(view),
            name,
            statistics,
            description,
            transport: OnceLock::new(),
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            release_memory,
            is_walked: AtomicBool::new(false),
            handles: Handles::new(),
            held_bytes: AtomicU64::new(0),
            outcome: Mutex::default(),
        }
    }

    /// Sets the transport of requests, which does not change while the file system is mounted.
    pub(crate) fn set_transport(&self, transport: &'static str) {
        let _ = self.transport.set(transport);
    }

    /// The source, the options, and the availability of the source.
    fn describe(&self, view: &View<O>) -> String {
        let standing: Availability = view.origin.availability();
        let mut description = self.description.clone();
        if let Some(members) = description.as_object_mut() {
            let gone = standing.gone.map(|(errno, since)| {
                serde_json::json!({
                    "error": errno.to_string(),
                    "since_unix_seconds": since.seconds,
                    "shows_stale": standing.shows_stale,
                })
            });
            members.insert("pid".to_owned(), std::process::id().into());
            members.insert("source_gone".to_owned(), gone.into());
            let mut doubted = Vec::new();
            view.origin.untrusted_times(&mut |file_system, why| {
                doubted.push(serde_json::json!({ "file_system": file_system, "why": why }));
            });
            members.insert("times_doubted".to_owned(), doubted.into());
            let second_level = view.second_level.as_ref().map(|level| level.describe());
            members.insert("second_level".to_owned(), second_level.into());
            if let Some(transport) = self.transport.get() {
                members.insert("transport".to_owned(), (*transport).into());
            }
            let passthrough = self.view.upgrade().map(|view| view.passthrough.is_agreed());
            members.insert("passthrough".to_owned(), passthrough.unwrap_or_default().into());
        }
        format!("{description:#}\n")
    }

    /// The path of the source.
    fn source(&self) -> &str {
        self.description.get("source").and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// Whether this is the name of the control directory.
    pub(crate) fn is_named(&self, name: &OsStr) -> bool {
        !self.name.is_empty() && self.name == name
    }

    /// The number of the entry with this name in the directory `parent`.
    pub(crate) fn find(&self, parent: u64, name: &OsStr) -> Option<u64> {
        tree::find(parent, name)
    }

    /// Whether this is the number of the control directory or of a directory in it.
    pub(crate) fn is_directory(&self, number: u64) -> bool {
        tree::is_directory(number)
    }

    /// Permission bits of the directory or of a file in it.
    pub(crate) fn permissions(&self, number: u64) -> Option<u16> {
        if tree::is_directory(number) {
            return Some(0o555);
        }
        Some(match tree::file(number)? {
            // No other user may see which files are read, and by which name.
            File::Trace | File::Objects | File::Reads | File::Hidden => 0o400,
            file if file.is_writable() => 0o644,
            _ => 0o444,
        })
    }

    /// The directory's owner: user and group of the daemon.
    pub(crate) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Name, number and kind of every entry of the directory or of one in it.
    pub(crate) fn entries(&self, directory: u64) -> Vec<(&'static str, u64, FileKind)> {
        tree::entries(directory)
    }

    /// Opens a file and makes its contents.
    pub(crate) fn open(&self, number: u64, flags: OFlags) -> Result<u64> {
        let file = tree::file(number).ok_or(Errno::ISDIR)?;
        let writable = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        if writable && !file.is_writable() {
            return Err(Errno::ACCESS);
        }
        if self.held_bytes.load(Ordering::Relaxed) >= HELD_BYTES_MAX {
            return Err(Errno::NFILE);
        }
        let contents = self.contents(file)?.into_boxed_slice();
        let handle = Handle { file, contents, writable };
        self.held_bytes.fetch_add(handle.bytes(), Ordering::Relaxed);
        Ok(self.handles.insert(Arc::new(handle)))
    }

    fn contents(&self, file: File) -> Result<Vec<u8>> {
        let view = self.view.upgrade().ok_or(Errno::NODEV)?;
        let text = match file {
            File::Arcstats => self.statistics.arcstats(&view),
            File::ArcstatsForAll => self.statistics.arcstats_for_all(&view),
            File::Zfetchstats => self.statistics.zfetchstats(&view),
            File::Companion(table) => self.statistics.zeroes(table),
            File::Dataset => self.statistics.dataset(&view, self.source()),
            File::State => format!("{}\n", state(&view.origin.availability())),
            File::Ogivestats => {
                let held_bytes = self.held_bytes.load(Ordering::Relaxed);
                self.statistics.ogivestats(&view, held_bytes)
            }
            File::Mount => self.describe(&view),
            File::Memory => self.statistics.memory(),
            File::Version => concat!("ogive ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
            File::None => "0\n".to_owned(),
            File::ArcMax | File::ArcMaxShown => format!("{}\n", view.cache.max_bytes()),
            File::Reclaim => self.outcome.lock().reclaimed.clone(),
            File::Prune => self.outcome.lock().pruned.clone(),
            // A recording would lack everything that the kernel reads itself.
            File::Trace if view.passthrough.is_agreed() => return Err(Errno::NOTSUP),
            File::Trace => {
                view.observers.start_recording(view.settings.record_size_bytes)?;
                String::new()
            }
            File::Objects => self.objects(&view)?,
            File::Reads => return self.reads(&view),
            File::Hidden => {
                let mut lines = String::new();
                // One line each, whatever they contain.
                view.origin.hidden(&mut |what, why| {
                    lines.extend(what.escape_debug());
                    lines.push('\t');
                    lines.push_str(why);
                    lines.push('\n');
                });
                lines
            }
            File::L2 => match &view.second_level {
                Some(level) => level.status(),
                None => "{}\n".to_owned(),
            },
        };
        Ok(text.into_bytes())
    }

    /// The last reads of a sample of the records.
    fn reads(&self, view: &View<O>) -> Result<Vec<u8>> {
        if view.passthrough.is_agreed() {
            // For the same reason as with the trace.
            return Err(Errno::NOTSUP);
        }
        let stats = view.cache.stats();
        let reads = stats.demand_data_hits + stats.demand_data_iohits + stats.demand_data_misses;
        Ok(view.observers.sampled_reads(Instant::now(), reads))
    }

    /// The contents of the cache by object. One walk at a time.
    fn objects(&self, view: &View<O>) -> Result<String> {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.is_walked.swap(true, Ordering::Acquire) {
            return Err(Errno::BUSY);
        }
        let _end = End(&self.is_walked);
        Ok(crate::cached_objects::json(view, Instant::now()))
    }

    /// Whether opening this file takes as long as a walk of the cache.
    pub(crate) fn takes_time(&self, number: u64) -> bool {
        matches!(tree::file(number), Some(File::Objects))
    }

    /// The contents of a counter file; none of another file, or after the mount's end.
    pub(crate) fn kstat(&self, name: &str) -> Option<String> {
        let file = tree::file(self.find(crate::inode_number::CONTROL_FIRST, OsStr::new(name))?)?;
        match file {
            File::Arcstats | File::Zfetchstats | File::Ogivestats => {
                String::from_utf8(self.contents(file).ok()?).ok()
            }
            _ => None,
        }
    }

    /// Bytes of an open file.
    pub(crate) fn read(&self, handle: u64, offset: u64, length_bytes: u32) -> Result<Vec<u8>> {
        let handle = self.handles.get(handle).ok_or(Errno::BADF)?;
        if matches!(handle.file, File::Trace) {
            let view = self.view.upgrade().ok_or(Errno::NODEV)?;
            return Ok(view.observers.take_recorded(length_bytes));
        }
        let bytes = &handle.contents;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length_bytes as usize).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    /// Carries out a request.
    pub(crate) fn write(&self, handle: u64, request: &[u8]) -> Result<usize> {
        let handle = self.handles.get(handle).ok_or(Errno::BADF)?;
        if !handle.writable {
            return Err(Errno::BADF);
        }
        let view = self.view.upgrade().ok_or(Errno::NODEV)?;
        if matches!(handle.file, File::L2) {
            return change_devices(&view, request);
        }
        let amount_bytes = amount(request)?;
        match handle.file {
            File::ArcMax => {
                let record_size_bytes = view.settings.record_size_bytes;
                let total_bytes = self.statistics.memory_bytes();
                if let Err(why) = check_arc_max(amount_bytes, record_size_bytes, total_bytes) {
                    log::warn!("arc_max stays at {} bytes: {why}", view.cache.max_bytes());
                    return Err(Errno::INVAL);
                }
                view.cache.resize(amount_bytes);
            }
            File::Reclaim => {
                let freed_bytes = view.cache.reclaim(amount_bytes);
                self.outcome.lock().reclaimed = format!("freed_bytes {freed_bytes}\n");
            }
            File::Prune => {
                let wanted = usize::try_from(amount_bytes.div_ceil(INODE_BYTES));
                let result = view.prune_inodes(wanted.unwrap_or(usize::MAX));
                self.outcome.lock().pruned = format!(
                    "examined {}\nfreed_objects {}\nfreed_bytes {}\nheld {}\n",
                    result.examined, result.freed_objects, result.freed_bytes, result.held
                );
            }
            _ => return Err(Errno::BADF),
        }
        (self.release_memory)();
        view.memory_bell.ring();
        Ok(request.len())
    }

    /// Called when a descriptor is closed.
    pub(crate) fn flush(&self, _handle: u64) -> Result<()> {
        Ok(())
    }

    /// Releases a handle.
    pub(crate) fn release(&self, handle: u64) {
        let Some(removed) = self.handles.remove(handle) else { return };
        self.held_bytes.fetch_sub(removed.bytes(), Ordering::Relaxed);
        if let (File::Trace, Some(view)) = (removed.file, self.view.upgrade()) {
            view.observers.stop_recording();
        }
    }
}

impl File {
    fn is_writable(self) -> bool {
        matches!(self, Self::ArcMax | Self::Reclaim | Self::Prune | Self::L2)
    }
}

/// Adds a device to the second level, or removes one.
fn change_devices<O: Origin>(view: &View<O>, request: &[u8]) -> Result<usize> {
    if request.len() > second_level::REQUEST_MAX_BYTES {
        return Err(Errno::INVAL);
    }
    let Some(level) = &view.second_level else {
        log::warn!("there is no second level to change: the mount was started without --l2");
        return Err(Errno::OPNOTSUPP);
    };
    level.change(request)?;
    Ok(request.len())
}

/// The state of a pool with this availability, in OpenZFS's words (`zpool_get_state_str`).
fn state(standing: &Availability) -> &'static str {
    if standing.gone.is_some() { "UNAVAIL" } else { "ONLINE" }
}

/// Checks the size of a cache: later settings have the same limits as `--arc-max`.
fn check_arc_max(
    max_bytes: u64,
    record_size_bytes: u64,
    total_bytes: Option<u64>,
) -> std::result::Result<(), String> {
    if max_bytes < RECORDS_MIN * record_size_bytes {
        return Err(format!(
            "{max_bytes} bytes have no room for {RECORDS_MIN} records of {record_size_bytes}"
        ));
    }
    match total_bytes {
        Some(total_bytes) if max_bytes > total_bytes => Err(format!(
            "{max_bytes} bytes are more than the memory of this machine, {total_bytes} bytes"
        )),
        _ => Ok(()),
    }
}

/// Bytes in a request: a decimal number, with K, M, G or T for powers of 1024, or `all`.
fn amount(request: &[u8]) -> Result<u64> {
    if request.len() > REQUEST_MAX_BYTES {
        return Err(Errno::INVAL);
    }
    let text = std::str::from_utf8(request).map_err(|_| Errno::INVAL)?.trim();
    if text == "all" {
        return Ok(u64::MAX);
    }
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| Errno::INVAL)?;
    number.checked_mul(1 << shift).ok_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_no_mount_could_start_with_is_refused_later_too() {
        let check = |max_bytes| check_arc_max(max_bytes, 4096, Some(1 << 30));
        assert_eq!(check(16 * 4096), Ok(()));
        assert_eq!(check(1 << 30), Ok(()));
        assert!(check(16 * 4096 - 1).unwrap_err().contains("no room for 16 records of 4096"));
        let refusal = check(u64::MAX).unwrap_err();
        assert!(refusal.contains("the memory of this machine, 1073741824 bytes"), "{refusal}");
        assert_eq!(check_arc_max(u64::MAX, 4096, None), Ok(()), "the memory is not known");
    }

    #[test]
    fn amounts_are_numbers_with_units_or_all() {
        assert_eq!(amount(b"4096\n"), Ok(4096));
        assert_eq!(amount(b" 3G "), Ok(3 << 30));
        assert_eq!(amount(b"all\n"), Ok(u64::MAX));
        for wrong in [&b""[..], b"-1", b"K", b"1KK", b"1.5G", b"99999999T", b"\xff", &[b'1'; 65]] {
            assert_eq!(amount(wrong), Err(Errno::INVAL), "{wrong:?}");
        }
    }
}
