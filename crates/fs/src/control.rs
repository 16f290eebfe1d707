//! The control directory: `MNT/.ogive/`, files that are not in the origin.
//!
//! | file | read | write |
//! |---|---|---|
//! | `arcstats`, `zfetchstats` | counters, byte for byte in OpenZFS's format | |
//! | `dmu_tx`, `zil`, `vdev_cache_stats`, `vdev_mirror_stats` | zeroes, for tools that insist on them | |
//! | `ogivestats` | counters that OpenZFS has no name for, same format | |
//! | `mount` | what is mounted, how, by which process (JSON) | |
//! | `memory` | what tells the mount of memory pressure | |
//! | `trace` | records of what is read, from opening to closing (`docs/trace-format.md`) | |
//! | `arc_max` | largest size of the cache in bytes | another one |
//! | `reclaim` | what the last request gave | bytes of cache to give back, or `all` |
//! | `prune` | what the last request gave | bytes of inodes to let go of, or `all` |
//!
//! The directory can be entered and its files opened by name, but no listing of the root shows it.
//! A file's contents are made when it is opened, so a reader sees one moment. The exception is
//! `trace`: a read of it gives what has come in since the last one, and nothing if nothing has; it
//! never waits. One program at a time can have it open, and only the daemon's user.

use crate::number::CONTROL_FIRST;
use crate::statistics::{INODE_BYTES, Statistics};
use crate::view::{Result, View};
use hashbrown::HashMap;
use ogive_kstat::tables;
use ogive_origin::{Errno, FileKind, OFlags, Origin};
use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, OnceLock, Weak};

/// The files of the directory, in the order of their numbers.
#[derive(Clone, Copy, Debug)]
enum File {
    Arcstats,
    Zfetchstats,
    Companion(&'static ogive_kstat::Table),
    Ogivestats,
    Mount,
    Memory,
    ArcMax,
    Reclaim,
    Prune,
    Trace,
}

const FILES: [(&str, File); 13] = [
    ("arcstats", File::Arcstats),
    ("zfetchstats", File::Zfetchstats),
    ("dmu_tx", File::Companion(&tables::DMU_TX)),
    ("zil", File::Companion(&tables::ZIL)),
    ("vdev_cache_stats", File::Companion(&tables::VDEV_CACHE_STATS)),
    ("vdev_mirror_stats", File::Companion(&tables::VDEV_MIRROR_STATS)),
    ("ogivestats", File::Ogivestats),
    ("mount", File::Mount),
    ("memory", File::Memory),
    ("arc_max", File::ArcMax),
    ("reclaim", File::Reclaim),
    ("prune", File::Prune),
    ("trace", File::Trace),
];

/// Longest request that can be written.
const REQUEST_MAX_BYTES: usize = 64;

/// The control directory of a mount.
pub(crate) struct Control<O: Origin> {
    view: Weak<View<O>>,
    name: OsString,
    statistics: Statistics,
    /// What the mount is, for the file `mount`.
    description: serde_json::Value,
    /// How requests come from the kernel, once that is known.
    transport: OnceLock<&'static str>,
    owner: (u32, u32),
    release_memory: fn(),
    state: Mutex<State>,
}

/// A leaf lock: requests are carried out after it is released.
#[derive(Default)]
struct State {
    handles: HashMap<u64, Handle>,
    next: u64,
    reclaimed: String,
    pruned: String,
}

#[derive(Clone)]
struct Handle {
    file: File,
    contents: Arc<str>,
    writable: bool,
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
            state: Mutex::default(),
        }
    }

    /// Notes how requests come from the kernel. It does not change while it is mounted.
    pub(crate) fn set_transport(&self, transport: &'static str) {
        let _ = self.transport.set(transport);
    }

    /// What is mounted and how.
    fn describe(&self) -> String {
        let mut description = self.description.clone();
        if let (Some(members), Some(transport)) =
            (description.as_object_mut(), self.transport.get())
        {
            members.insert("transport".to_owned(), (*transport).into());
        }
        format!("{description:#}\n")
    }

    /// Whether this is the directory's name.
    pub(crate) fn is_named(&self, name: &OsStr) -> bool {
        !self.name.is_empty() && self.name == name
    }

    /// Number of the file of this name.
    pub(crate) fn find(&self, name: &OsStr) -> Option<u64> {
        let position = FILES.iter().position(|(file, _)| *file == name)?;
        Some(CONTROL_FIRST + 1 + position as u64)
    }

    fn file(number: u64) -> Option<File> {
        let position = number.checked_sub(CONTROL_FIRST + 1)?;
        FILES.get(usize::try_from(position).ok()?).map(|(_, file)| *file)
    }

    /// Permission bits of the directory or a file of it.
    pub(crate) fn permissions(&self, number: u64) -> Option<u16> {
        if number == CONTROL_FIRST {
            return Some(0o555);
        }
        Some(match Self::file(number)? {
            // What is read is told to nobody else.
            File::Trace => 0o400,
            file if file.is_writable() => 0o644,
            _ => 0o444,
        })
    }

    /// User and group that the directory belongs to: those of the daemon.
    pub(crate) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Name, number and kind of everything in the directory.
    pub(crate) fn entries(&self) -> Vec<(&'static str, u64, FileKind)> {
        let own = [
            (".", CONTROL_FIRST, FileKind::Directory),
            ("..", crate::number::ROOT, FileKind::Directory),
        ];
        let files = FILES.iter().zip(CONTROL_FIRST + 1..);
        own.into_iter()
            .chain(files.map(|((name, _), number)| (*name, number, FileKind::Regular)))
            .collect()
    }

    /// Opens a file, making its contents.
    pub(crate) fn open(&self, number: u64, flags: OFlags) -> Result<u64> {
        let file = Self::file(number).ok_or(Errno::ISDIR)?;
        let writable = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        if writable && !file.is_writable() {
            return Err(Errno::ACCESS);
        }
        let contents = self.contents(file)?.into();
        let mut state = self.state.lock();
        state.next += 1;
        let handle = state.next;
        state.handles.insert(handle, Handle { file, contents, writable });
        Ok(handle)
    }

    fn contents(&self, file: File) -> Result<String> {
        let view = self.view.upgrade().ok_or(Errno::NODEV)?;
        Ok(match file {
            File::Arcstats => self.statistics.arcstats(&view),
            File::Zfetchstats => self.statistics.zfetchstats(&view),
            File::Companion(table) => self.statistics.zeroes(table),
            File::Ogivestats => self.statistics.ogivestats(&view),
            File::Mount => self.describe(),
            File::Memory => self.statistics.memory(),
            File::ArcMax => format!("{}\n", view.cache.max_bytes()),
            File::Reclaim => self.state.lock().reclaimed.clone(),
            File::Prune => self.state.lock().pruned.clone(),
            File::Trace => {
                view.recording.start(view.settings.record_size_bytes)?;
                String::new()
            }
        })
    }

    /// Bytes of an open file.
    pub(crate) fn read(&self, handle: u64, offset: u64, length_bytes: u32) -> Result<Vec<u8>> {
        let handle = self.state.lock().handles.get(&handle).cloned().ok_or(Errno::BADF)?;
        if matches!(handle.file, File::Trace) {
            let view = self.view.upgrade().ok_or(Errno::NODEV)?;
            return Ok(view.recording.take(length_bytes));
        }
        let bytes = handle.contents.as_bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length_bytes as usize).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    /// Carries out a request.
    pub(crate) fn write(&self, handle: u64, request: &[u8]) -> Result<usize> {
        let handle = self.state.lock().handles.get(&handle).cloned().ok_or(Errno::BADF)?;
        if !handle.writable {
            return Err(Errno::BADF);
        }
        let amount_bytes = amount(request)?;
        let view = self.view.upgrade().ok_or(Errno::NODEV)?;
        match handle.file {
            File::ArcMax => view.cache.resize(amount_bytes),
            File::Reclaim => {
                let freed_bytes = view.cache.reclaim(amount_bytes);
                self.state.lock().reclaimed = format!("freed_bytes {freed_bytes}\n");
            }
            File::Prune => {
                let wanted = usize::try_from(amount_bytes.div_ceil(INODE_BYTES));
                let result = view.inode_limit.ask(&view, wanted.unwrap_or(usize::MAX));
                self.state.lock().pruned = format!(
                    "examined {}\nfreed_objects {}\nfreed_bytes {}\nheld {}\n",
                    result.examined, result.freed_objects, result.freed_bytes, result.held
                );
            }
            _ => return Err(Errno::BADF),
        }
        (self.release_memory)();
        view.wanted.ring();
        Ok(request.len())
    }

    /// Called when a descriptor is closed.
    pub(crate) fn flush(&self, _handle: u64) -> Result<()> {
        Ok(())
    }

    /// Lets go of a handle.
    pub(crate) fn release(&self, handle: u64) {
        let removed = self.state.lock().handles.remove(&handle);
        if let (Some(Handle { file: File::Trace, .. }), Some(view)) = (removed, self.view.upgrade())
        {
            view.recording.stop();
        }
    }
}

impl File {
    fn is_writable(self) -> bool {
        matches!(self, Self::ArcMax | Self::Reclaim | Self::Prune)
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
    fn amounts_are_numbers_with_units_or_all() {
        assert_eq!(amount(b"4096\n"), Ok(4096));
        assert_eq!(amount(b" 3G "), Ok(3 << 30));
        assert_eq!(amount(b"all\n"), Ok(u64::MAX));
        for wrong in [&b""[..], b"-1", b"K", b"1KK", b"1.5G", b"99999999T", b"\xff", &[b'1'; 65]] {
            assert_eq!(amount(wrong), Err(Errno::INVAL), "{wrong:?}");
        }
    }
}
