//! One log: appends, reads and scans of its records.
//!
//! Disk space is allocated ahead of the writes, with a reserve for the small records that an upload
//! needs. So uploads can empty a full disk. On a file system without fallocate(2), a write fails
//! when the disk is full, and the log keeps its earlier end.

use super::error::JournalError;
use super::format::{
    LOG_HEADER_BYTES, LogHeader, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES, Record,
    RecordHeader,
};
use ogive_l2::SegmentKey;
use parking_lot::RwLock;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reserve for records other than extents, in bytes.
const RESERVE_BYTES: u64 = 8 << 10;
/// Space is allocated in steps of an eighth of the log, within these bounds in bytes.
const STEP_BYTES: [u64; 2] = [8 << 10, 16 << 20];
/// How many bytes a search for later records reads at a time.
const SEARCH_BYTES: u64 = 256 << 10;

/// The location of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its offset in the log.
    pub at: u64,
    /// Its number.
    pub number: u32,
    /// The length of its payload.
    pub payload_bytes: u32,
}

/// A log as a file that any thread can read and sync.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    directory: Arc<File>,
    header: LogHeader,
    keys: SegmentKey,
    path: RwLock<PathBuf>,
    is_linked: AtomicBool,
}

impl LogFile {
    /// A log in a directory, which is synced with the log's first sync.
    pub(super) fn new(
        (file, path): (File, PathBuf),
        directory: Arc<File>,
        header: LogHeader,
        keys: SegmentKey,
    ) -> Self {
        let (path, is_linked) = (RwLock::new(path), AtomicBool::new(false));
        Self { file, directory, header, keys, path, is_linked }
    }

    /// Its header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The path of the log.
    pub fn path(&self) -> PathBuf {
        self.path.read().clone()
    }

    pub(super) fn moved_to(&self, path: PathBuf) {
        *self.path.write() = path;
    }

    fn error(&self, what: &'static str, error: impl Into<io::Error>) -> JournalError {
        JournalError::io(what, &self.path.read(), error)
    }

    fn damaged(&self, at: u64, why: &'static str) -> JournalError {
        JournalError::Damaged { path: self.path(), at, why }
    }

    /// Reads the payload of a record.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] if it fails its verification, [`JournalError::Io`].
    pub fn payload(&self, place: Place) -> Result<Vec<u8>, JournalError> {
        let mut sealed = vec![0; RECORD_HEADER_BYTES + place.payload_bytes as usize];
        self.file.read_exact_at(&mut sealed, place.at).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                self.damaged(place.at, "the file ends there")
            } else {
                self.error("cannot read", error)
            }
        })?;
        open_record(&sealed, place.number, &self.keys).map_err(|why| self.damaged(place.at, why))
    }

    /// Makes all records durable, but not the log's name.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub(super) fn sync_data(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|error| self.error("cannot sync", error))
    }

    /// Makes all records and the log's name durable.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        self.sync_data()?;
        if !self.is_linked.load(Ordering::Acquire) {
            self.directory.sync_all().map_err(|error| self.error("cannot sync", error))?;
            self.is_linked.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Reads the log from its first record on.
    ///
    /// # Errors
    /// [`JournalError::Damaged`], [`JournalError::Io`].
    pub(super) fn scan(
        &self,
        each: &mut dyn FnMut(Place, Record<'_>) -> Result<(), &'static str>,
    ) -> Result<Scanned, JournalError> {
        let length = self.file.metadata().map_err(|error| self.error("cannot read", error))?.len();
        let mut read = |at, bytes: &mut [u8]| self.file.read_exact_at(bytes, at);
        scan(&mut read, length, &self.keys, each).map_err(|error| match error {
            ScanError::Damaged { at, why } => self.damaged(at, why),
            ScanError::Io(error) => self.error("cannot read", error),
        })
    }
}

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// Where the last complete record ends.
    pub end: u64,
    /// The number of the next record.
    pub next: u32,
    /// How many records are known to be durable.
    pub durable: u32,
    /// The length of a torn tail: bytes after `end` that are not a record.
    pub torn_bytes: u64,
}

/// Why a scan failed.
#[derive(Debug)]
pub enum ScanError {
    /// Durable bytes have changed.
    Damaged {
        /// The offset of the damage.
        at: u64,
        /// The kind of damage.
        why: &'static str,
    },
    /// The system reported an error.
    Io(io::Error),
}

/// Scans the records of a log, up to a torn tail. `read` fills its buffer from an offset below
/// `length`. `each` may refuse a record that does not belong there.
///
/// # Errors
/// [`ScanError`].
pub fn scan(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
    length: u64,
    keys: &SegmentKey,
    each: &mut dyn FnMut(Place, Record<'_>) -> Result<(), &'static str>,
) -> Result<Scanned, ScanError> {
    let mut found = Scanned { end: LOG_HEADER_BYTES as u64, next: 0, durable: 0, torn_bytes: 0 };
    let mut sealed = Vec::new();
    while found.end < length {
        let header = match next_record(read, length, found, keys, &mut sealed)? {
            Ok(header) => header,
            Err(why) => {
                if is_followed_by_proof(read, length, found, keys).map_err(ScanError::Io)? {
                    return Err(ScanError::Damaged { at: found.end, why });
                }
                found.torn_bytes = length - found.end;
                break;
            }
        };
        let payload = &sealed[RECORD_HEADER_BYTES..];
        let place =
            Place { at: found.end, number: found.next, payload_bytes: header.payload_bytes };
        let damaged = |why| ScanError::Damaged { at: place.at, why };
        let record =
            Record::parse(payload).ok_or_else(|| damaged("the record has an unknown kind"))?;
        each(place, record).map_err(damaged)?;
        found.durable = found.durable.max(header.durable);
        // The zeroes after the last payload may be missing.
        found.end += header.record_bytes();
        found.next += 1;
    }
    Ok(found)
}

/// Reads and opens the record at the end of the scanned ones, or says why there is none.
fn next_record(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
    length: u64,
    found: Scanned,
    keys: &SegmentKey,
    sealed: &mut Vec<u8>,
) -> Result<Result<RecordHeader, &'static str>, ScanError> {
    let left = length - found.end;
    sealed.clear();
    sealed.resize(left.min(RECORD_HEADER_BYTES as u64) as usize, 0);
    read(found.end, sealed).map_err(ScanError::Io)?;
    let Some(header) = RecordHeader::parse(sealed) else {
        return Ok(Err("no record begins there"));
    };
    if left < RECORD_HEADER_BYTES as u64 + u64::from(header.payload_bytes) {
        return Ok(Err("the file ends within the record"));
    }
    sealed.resize(RECORD_HEADER_BYTES + header.payload_bytes as usize, 0);
    let rest = found.end + RECORD_HEADER_BYTES as u64;
    read(rest, &mut sealed[RECORD_HEADER_BYTES..]).map_err(ScanError::Io)?;
    Ok(open_record(sealed, found.next, keys).map(|payload| {
        sealed[RECORD_HEADER_BYTES..].copy_from_slice(&payload);
        header
    }))
}

/// Whether a later record says that the unreadable one was durable.
fn is_followed_by_proof(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
    length: u64,
    found: Scanned,
    keys: &SegmentKey,
) -> io::Result<bool> {
    let mut at = found.end;
    let mut bytes = Vec::new();
    while at < length {
        bytes.resize((length - at).min(SEARCH_BYTES) as usize, 0);
        read(at, &mut bytes)?;
        let headers = bytes.as_chunks::<RECORD_HEADER_BYTES>().0;
        let proves = |bytes: &[u8; RECORD_HEADER_BYTES]| {
            RecordHeader::parse(bytes).is_some_and(|header| header.durable > found.next)
                && RecordHeader::is_authentic(bytes, keys)
        };
        if headers.iter().any(proves) {
            return Ok(true);
        }
        at += bytes.len() as u64;
    }
    Ok(false)
}

/// Verifies and decrypts the record with this number.
fn open_record(sealed: &[u8], number: u32, keys: &SegmentKey) -> Result<Vec<u8>, &'static str> {
    let header = RecordHeader::parse(sealed).ok_or("no record begins there")?;
    let (clear, sealed) = sealed.split_first_chunk().ok_or("no record begins there")?;
    if !RecordHeader::is_authentic(clear, keys) || header.number != number {
        return Err("the header of the record fails its verification");
    }
    let mut payload = vec![0; header.payload_bytes as usize];
    let nonce = (header.salt, header.number);
    keys.open(nonce, &header.additional(), header.tag, sealed, &mut payload)
        .then_some(payload)
        .ok_or("the record fails its verification")
}

/// The end of a log, for its writer.
#[derive(Debug)]
pub struct Log {
    file: Arc<LogFile>,
    end: u64,
    next: u32,
    durable: u32,
    /// The number of the next record when the log was last fully synced.
    clean: u32,
    /// Disk space is allocated up to this offset.
    allocated: u64,
    has_failed_to_sync: bool,
}

impl Log {
    /// Starts an empty log: writes its header.
    pub(super) fn begin(file: LogFile) -> Result<Self, JournalError> {
        let header = file.header.to_bytes(&file.keys);
        file.file.write_all_at(&header, 0).map_err(|error| file.error("cannot write to", error))?;
        let end = LOG_HEADER_BYTES as u64;
        Ok(Self::at(file, Scanned { end, next: 0, durable: 0, torn_bytes: 0 }))
    }

    /// Continues a scanned log: cuts off a torn tail.
    pub(super) fn resume(file: LogFile, scanned: Scanned) -> Result<Self, JournalError> {
        if scanned.torn_bytes > 0 {
            file.file.set_len(scanned.end).map_err(|error| file.error("cannot cut", error))?;
        }
        Ok(Self::at(file, scanned))
    }

    fn at(file: LogFile, scanned: Scanned) -> Self {
        let Scanned { end, next, durable, .. } = scanned;
        let file = Arc::new(file);
        Self { file, end, next, durable, clean: 0, allocated: end, has_failed_to_sync: false }
    }

    /// The log as a file.
    pub fn file(&self) -> &Arc<LogFile> {
        &self.file
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The number of the next record.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// How many records are known to be durable.
    pub fn durable(&self) -> u32 {
        self.durable
    }

    /// Appends a record. It is in the page cache when this returns, so it survives the process.
    ///
    /// # Errors
    /// [`JournalError::Full`] or [`JournalError::Io`], after which the log is unchanged;
    /// [`JournalError::NameTooLong`], [`JournalError::TooLarge`].
    pub fn append(&mut self, record: &Record<'_>) -> Result<Place, JournalError> {
        let mut bytes = vec![0; RECORD_HEADER_BYTES];
        record.encode(&mut bytes);
        let payload_bytes = bytes.len() - RECORD_HEADER_BYTES;
        let is_extent = matches!(record, Record::Extent { .. });
        let limit = if is_extent { PAYLOAD_BYTES_MAX } else { 2 * NAME_BYTES_MAX };
        if payload_bytes > limit {
            return Err(JournalError::NameTooLong(payload_bytes));
        }
        if self.next == u32::MAX {
            return Err(JournalError::TooLarge(self.file.path()));
        }
        let keys = &self.file.keys;
        let mut header = RecordHeader {
            number: self.next,
            payload_bytes: payload_bytes as u32,
            durable: self.durable,
            salt: [0; 8],
            tag: [0; 16],
        };
        let additional = header.additional();
        let payload = &mut bytes[RECORD_HEADER_BYTES..];
        header.salt = keys.salt_of(&additional, payload);
        header.tag = keys.seal(header.salt, header.number, &additional, payload);
        bytes[..RECORD_HEADER_BYTES].copy_from_slice(&header.to_bytes(keys));
        bytes.resize(header.record_bytes() as usize, 0);

        let reserve = if is_extent { RESERVE_BYTES } else { 0 };
        self.allocate(bytes.len() as u64, reserve)?;
        let place = Place { at: self.end, number: self.next, payload_bytes: header.payload_bytes };
        if let Err(error) = self.file.file.write_all_at(&bytes, self.end) {
            // A scan would stop at the end in any case; the cut only frees space.
            let _ = self.file.file.set_len(self.end);
            self.allocated = self.end;
            return Err(self.file.error("cannot write to", error));
        }
        self.end += bytes.len() as u64;
        self.next += 1;
        Ok(place)
    }

    /// Allocates disk space for a record and a reserve after it.
    fn allocate(&mut self, bytes: u64, reserve: u64) -> Result<(), JournalError> {
        let needed = self.end + bytes + reserve;
        if needed <= self.allocated {
            return Ok(());
        }
        let step = (self.end / 8).clamp(STEP_BYTES[0], STEP_BYTES[1]);
        for room in [step, 0] {
            let wanted = needed + room - self.end;
            match fallocate(&self.file.file, FallocateFlags::KEEP_SIZE, self.end, wanted) {
                Ok(()) => {
                    self.allocated = self.end + wanted;
                    return Ok(());
                }
                Err(Errno::NOSPC | Errno::DQUOT) => {}
                Err(Errno::INTR) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.allocated = u64::MAX;
                    return Ok(());
                }
                Err(error) => return Err(self.file.error("cannot allocate room in", error)),
            }
        }
        if reserve == 0 {
            // Such records use the reserve. If it is used up, the write itself fails.
            return Ok(());
        }
        Err(JournalError::Full(self.file.path()))
    }

    /// The records that a sync has to make durable, for [`Self::synced`].
    pub(super) fn unsynced(&self) -> Result<Option<(Arc<LogFile>, u32)>, JournalError> {
        if self.has_failed_to_sync {
            return Err(JournalError::Unsynced(self.file.path()));
        }
        Ok((self.clean < self.next).then(|| (Arc::clone(&self.file), self.next)))
    }

    /// Records the outcome of a sync. The new number of durable records is appended, and no caller
    /// waits for that record.
    pub(super) fn synced(&mut self, file: &Arc<LogFile>, count: u32, has_failed: bool) {
        if !Arc::ptr_eq(file, &self.file) {
            // A compaction has written and synced all records to another file.
            return;
        }
        if has_failed {
            // The kernel may have dropped the pages it failed to write, and reports that only once.
            self.has_failed_to_sync = true;
        } else if count > self.durable {
            self.durable = count;
            let is_all = count == self.next;
            // Without this record, damage to the synced records would pass for a torn tail. The
            // record itself becomes durable with the next sync; losing it loses no data.
            let is_said = self.append(&Record::Durable).is_ok();
            self.clean = if is_all && is_said { self.next } else { count };
        }
    }

    /// Replaces a log by its synced copy. `is_linked` says whether the copy's name is durable as
    /// well.
    pub(super) fn replace(&mut self, copy: Self, is_linked: bool) {
        let (durable, clean) = if is_linked { (copy.next, copy.next) } else { (0, 0) };
        copy.file.is_linked.store(is_linked, Ordering::Release);
        *self = Self { durable, clean, ..copy };
    }
}
