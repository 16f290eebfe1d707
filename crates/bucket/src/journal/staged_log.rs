//! A file being written: its log, and the state from its records.
//!
//! The location of each piece of a file is in memory. A program that writes line by line makes many
//! pieces, so small adjacent ones are merged. [`PIECES_MAX`] bounds the pieces of all files;
//! `staged_pieces` in `ogivestats` counts them.

use super::directory::JournalDirectory;
use super::error::JournalError;
use super::extents::{Piece, Span};
use super::format::{Base, LogKind, Record, is_size};
use super::log::{Log, LogFile, Place};
use super::state::State;
use parking_lot::RwLock;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The longest extent, in bytes: a longer write becomes several.
pub const EXTENT_BYTES_MAX: usize = 128 << 10;

/// A log is compacted when it exceeds twice its needed size by this many bytes, or when its record
/// numbers run out.
const GARBAGE_BYTES: u64 = 8 << 20;
const NUMBERS_MAX: u32 = 1 << 31;
/// How many pieces of all files of a journal may be in memory: some 300 MiB.
pub(super) const PIECES_MAX: u64 = if cfg!(test) { 1000 } else { 1 << 22 };
/// So many pieces within [`EXTENT_BYTES_MAX`] bytes are merged.
pub(super) const BESIDE_MAX: usize = 256;
/// The approximate overhead of a piece in a log.
const PIECE_BYTES: u64 = 128;

/// The id of a file's state, unique among all uploads of all journals: the log, and the last
/// revision. It goes into the object's metadata. After a lost reply it shows whether the upload has
/// arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteId {
    /// The log.
    pub log: [u8; 16],
    /// The last revision that the object holds.
    pub through: u64,
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:x}", u128::from_be_bytes(self.log), self.through)
    }
}

impl WriteId {
    /// Parses exactly the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let (log, through) = text.split_once('-')?;
        let log = u128::from_str_radix(log, 16).ok()?.to_be_bytes();
        let id = Self { log, through: u64::from_str_radix(through, 16).ok()? };
        (id.to_string() == text).then_some(id)
    }
}

/// Fills its buffer with bytes of the base object, from an offset.
pub type ReadBase<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// A staged file, for use by any number of threads.
#[derive(Debug)]
pub struct StagedLog {
    folder: Arc<JournalDirectory>,
    inner: RwLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: Log,
    state: State,
    /// The end of the log when a compaction failed, or freed too little. The next attempt waits
    /// until the log is much longer.
    failed_at: u64,
    /// How many of its pieces are counted in its folder.
    counted: u64,
}

/// A file as of one revision, unaffected by later changes.
#[derive(Debug, Clone)]
pub struct Snapshot {
    log: Arc<LogFile>,
    state: State,
    id: WriteId,
}

impl StagedLog {
    /// Starts the log of a file.
    pub(super) fn begin(
        folder: Arc<JournalDirectory>,
        key: &str,
        base: Base,
    ) -> Result<Self, JournalError> {
        let mut log = folder.new_log(LogKind::File)?;
        if let Err(error) = log.append(&Record::Begin { key, base: base.clone() }) {
            // A log without a first record is empty, and no call has returned for it.
            folder.delete(&log.file().path())?;
            return Err(error);
        }
        let state = State::new(key, base);
        Ok(Self::resumed(folder, log, state))
    }

    /// A file whose log was replayed.
    pub(super) fn resumed(folder: Arc<JournalDirectory>, log: Log, state: State) -> Self {
        let this =
            Self { folder, inner: RwLock::new(Inner { log, state, failed_at: 0, counted: 0 }) };
        this.change(|_| ());
        this
    }

    /// Changes the file, and counts its pieces.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.write();
        let done = change(&mut inner);
        let pieces = inner.state.pieces() as u64;
        let before = std::mem::replace(&mut inner.counted, pieces);
        self.folder.pieces.fetch_add(pieces, Ordering::Relaxed);
        self.folder.pieces.fetch_sub(before, Ordering::Relaxed);
        done
    }

    fn write_at(
        &self,
        offset: impl FnOnce(&State) -> u64,
        bytes: &[u8],
    ) -> Result<u64, (usize, JournalError)> {
        if self.folder.pieces.load(Ordering::Relaxed) >= PIECES_MAX {
            return Err((0, JournalError::Crowded(self.path())));
        }
        self.change(|inner| {
            let offset = offset(&inner.state);
            inner.write(offset, bytes).map(|()| offset)
        })
    }

    /// The path of the log.
    pub fn path(&self) -> PathBuf {
        self.inner.read().log.file().path()
    }

    /// Calls `look` with the current state.
    pub fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner.read().state)
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.inner.read().state.size
    }

    /// Length of the log in bytes.
    pub fn log_bytes(&self) -> u64 {
        self.inner.read().log.bytes()
    }

    /// Writes bytes. They are in the journal when this returns: they survive the process, and a
    /// power cut after the next [`Self::sync`].
    ///
    /// # Errors
    /// [`JournalError::Full`], with the number of bytes that were written, like a short write(2);
    /// earlier bytes are unchanged. [`JournalError::Crowded`], [`JournalError::TooLarge`],
    /// [`JournalError::Io`], likewise.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), (usize, JournalError)> {
        self.write_at(|_| offset, bytes).map(drop)
    }

    /// Appends bytes at the current end of the file, and returns their offset.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(&self, bytes: &[u8]) -> Result<u64, (usize, JournalError)> {
        self.write_at(|state| state.size, bytes)
    }

    /// Truncates or extends the file; new bytes are zero.
    ///
    /// # Errors
    /// [`JournalError::Full`] and others, after which the file is unchanged.
    pub fn resize(&self, size: u64) -> Result<(), JournalError> {
        let is_crowded = self.folder.pieces.load(Ordering::Relaxed) >= PIECES_MAX;
        self.change(|inner| {
            if is_crowded && size > inner.state.size {
                return Err(JournalError::Crowded(inner.log.file().path()));
            }
            if !is_size(size) {
                return Err(JournalError::TooLarge(inner.log.file().path()));
            }
            let revision = inner.state.revision + 1;
            inner.log.append(&Record::Size { revision, size })?;
            inner.state.resize(revision, size);
            Ok(())
        })
    }

    /// Gives the file another key.
    ///
    /// # Errors
    /// As [`Self::resize`].
    pub fn rename(&self, key: &str) -> Result<(), JournalError> {
        self.append_record(&Record::Key(key))
    }

    /// Records that the store has the file up to a revision, as this object. Later changes are
    /// changes of that object from now on.
    ///
    /// # Errors
    /// As [`Self::resize`].
    pub fn uploaded(&self, through: u64, base: Base) -> Result<(), JournalError> {
        self.append_record(&Record::Uploaded { through, base })
    }

    fn append_record(&self, record: &Record<'_>) -> Result<(), JournalError> {
        self.change(|inner| {
            let place = inner.log.append(record)?;
            let said = inner.state.apply(place, record.clone());
            said.expect("the record belongs in the log of a file");
            Ok(())
        })
    }

    /// Makes all earlier writes durable, and returns the revision.
    ///
    /// # Errors
    /// [`JournalError::Io`] at the first failed sync, [`JournalError::Unsynced`] from then on.
    pub fn sync(&self) -> Result<u64, JournalError> {
        let (revision, unsynced) = {
            let inner = self.inner.read();
            (inner.state.revision, inner.log.unsynced()?)
        };
        if let Some((file, count)) = unsynced {
            let done = file.sync();
            self.inner.write().log.synced(&file, count, done.is_err());
            done?;
        }
        Ok(revision)
    }

    /// The current file, made durable. An upload must not include changes that a power cut could
    /// undo: their revisions would be assigned again.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn snapshot(&self) -> Result<Snapshot, JournalError> {
        let view = self.view();
        self.sync()?;
        Ok(view)
    }

    /// Advances the file to a later revision without a change. Returns false if it is there
    /// already.
    ///
    /// # Errors
    /// As [`Self::resize`].
    pub fn advance(&self, revision: u64) -> Result<bool, JournalError> {
        self.change(|inner| {
            if inner.state.revision >= revision {
                return Ok(false);
            }
            let size = inner.state.size;
            inner.log.append(&Record::Size { revision, size })?;
            inner.state.resize(revision, size);
            Ok(true)
        })
    }

    /// The current file, for reading. It must not be uploaded before a [`Self::sync`].
    pub fn view(&self) -> Snapshot {
        self.inner.read().snapshot()
    }

    /// The part of the current file that a read of a range needs. The rest reads as if it had not
    /// been written.
    pub fn view_of(&self, range: Range<u64>) -> Snapshot {
        let inner = self.inner.read();
        let state = inner.state.within(range);
        Snapshot { log: Arc::clone(inner.log.file()), id: inner.id(), state }
    }

    /// Whether much of the log is no longer needed.
    pub fn wants_compaction(&self) -> bool {
        let inner = self.inner.read();
        let is_early = inner.failed_at > 0 && inner.log.bytes() < inner.failed_at + GARBAGE_BYTES;
        !is_early && inner.is_wasteful()
    }

    /// Writes the needed records into a new log with its own key, and replaces the log once that is
    /// durable. With `is_settled` no upload is in flight or of unknown outcome, and earlier sizes
    /// are dropped.
    ///
    /// # Errors
    /// Any; the log is unchanged.
    pub fn compact(&self, is_settled: bool) -> Result<(), JournalError> {
        self.change(|inner| {
            let done = self.compact_locked(inner, is_settled);
            let is_of_use = done.is_ok() && !inner.is_wasteful();
            inner.failed_at = if is_of_use { 0 } else { inner.log.bytes() };
            done
        })
    }

    fn compact_locked(&self, inner: &mut Inner, is_settled: bool) -> Result<(), JournalError> {
        let path = inner.log.file().path();
        let copy = self.folder.new_copy(inner.log.file().header(), &path)?;
        let (copy, state) = match inner.copied(copy, is_settled) {
            Ok(copied) => copied,
            Err(error) => {
                // If this fails, the next mount deletes the copy.
                let _ = self.folder.delete(&JournalDirectory::copy_of(&path));
                return Err(error);
            }
        };
        let is_linked = self.folder.put_in_place(&copy, &path)?;
        inner.log.replace(copy, is_linked);
        inner.state = state;
        Ok(())
    }

    /// Deletes the log if the store has all its changes. Returns whether it did.
    ///
    /// # Errors
    /// [`JournalError::Io`]. The log still exists. It does not cause a second upload, because the
    /// object has its [`WriteId`].
    pub fn retire(&self) -> Result<bool, JournalError> {
        let inner = self.inner.write();
        if inner.state.is_changed() {
            return Ok(false);
        }
        self.folder.delete(&inner.log.file().path())?;
        Ok(true)
    }

    /// Deletes the log of a file that lost its last name: only open handles can read it. It must
    /// not be compacted afterwards.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn unlinked(&self) -> Result<(), JournalError> {
        let inner = self.inner.write();
        self.folder.delete(&inner.log.file().path())
    }

    /// Moves the log to the conflicts, with all its records durable.
    ///
    /// # Errors
    /// [`JournalError::Io`], [`JournalError::Unsynced`]; the log stays where it was.
    pub fn set_aside(&self) -> Result<PathBuf, JournalError> {
        self.sync()?;
        let inner = self.inner.write();
        let path = self.folder.move_to_conflicts(&inner.log.file().path())?;
        inner.log.file().moved_to(path.clone());
        Ok(path)
    }
}

impl Drop for StagedLog {
    fn drop(&mut self) {
        self.folder.pieces.fetch_sub(self.inner.get_mut().counted, Ordering::Relaxed);
    }
}

impl Inner {
    /// Whether the log is much longer than its pieces need.
    fn is_wasteful(&self) -> bool {
        let needed = self.state.staged_bytes() + self.state.pieces() as u64 * PIECE_BYTES;
        self.log.bytes() > 2 * needed + GARBAGE_BYTES || self.log.next() > NUMBERS_MAX
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), (usize, JournalError)> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| !is_size(end)) {
            return Err((0, JournalError::TooLarge(self.log.file().path())));
        }
        let mut written = 0;
        for part in bytes.chunks(EXTENT_BYTES_MAX) {
            let offset = offset + written as u64;
            self.extent(offset, part).map_err(|error| (written, error))?;
            written += part.len();
        }
        // Only at some revisions, so that useless attempts cost next to nothing.
        let is_due = self.state.revision.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 == 0;
        if is_due && bytes.len() < EXTENT_BYTES_MAX / BESIDE_MAX {
            // The bytes are written already. If merging fails for lack of space, a later write
            // repeats it.
            let _ = self.put_together(offset);
        }
        Ok(())
    }

    fn extent(&mut self, offset: u64, bytes: &[u8]) -> Result<(), JournalError> {
        let revision = self.state.revision + 1;
        let place = self.log.append(&Record::Extent { revision, offset, bytes })?;
        self.state.write(offset, Piece { bytes: bytes.len() as u64, revision, place, skip: 0 });
        Ok(())
    }

    /// Merges adjacent pieces around an offset if there are many, as if a program had written the
    /// same bytes again at once.
    fn put_together(&mut self, offset: u64) -> Result<(), JournalError> {
        let start = offset - offset % EXTENT_BYTES_MAX as u64;
        let range = start..start + EXTENT_BYTES_MAX as u64;
        if self.state.extents.count_in(range.clone(), BESIDE_MAX) < BESIDE_MAX {
            return Ok(());
        }
        let (mut at, mut is_beside, mut runs) = (start, false, Vec::<(u64, Vec<Piece>)>::new());
        for span in self.state.spans(range) {
            if let Span::Staged(piece) = span {
                match runs.last_mut().filter(|_| is_beside) {
                    Some((_, run)) => run.push(piece),
                    None => runs.push((at, vec![piece])),
                }
            }
            is_beside = matches!(span, Span::Staged(_));
            at += span.bytes();
        }
        runs.retain(|(_, run)| run.len() > 1);
        let spared: usize = runs.iter().map(|(_, run)| run.len() - 1).sum();
        if spared < BESIDE_MAX / 2 {
            return Ok(());
        }
        for (at, run) in runs {
            let read = run.into_iter().map(|piece| read_piece(self.log.file(), piece));
            let bytes: Vec<Vec<u8>> = read.collect::<Result<_, _>>()?;
            self.extent(at, &bytes.concat())?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let log = Arc::clone(self.log.file());
        Snapshot { log, id: self.id(), state: self.state.clone() }
    }

    fn id(&self) -> WriteId {
        WriteId { log: self.log.file().header().log, through: self.state.revision }
    }

    /// Writes the needed records into a copy.
    fn copied(&self, mut copy: Log, is_settled: bool) -> Result<(Log, State), JournalError> {
        let now = &self.state;
        let mut state = State::new(&now.key, now.base.clone());
        copy.append(&Record::Begin { key: &now.key, base: now.base.clone() })?;
        let mut sizes = now.sizes.clone();
        if is_settled {
            sizes.clear();
            if now.shown < now.base.size() {
                sizes.push((0, now.shown));
            }
        }
        let mut sizes = sizes.into_iter().peekable();
        let mut pieces: Vec<_> = now.extents.iter().collect();
        pieces.sort_by_key(|(offset, piece)| (piece.revision, *offset));
        let resize = |copy: &mut Log, state: &mut State, (revision, size)| {
            copy.append(&Record::Size { revision, size })?;
            state.resize(revision, size);
            Ok::<_, JournalError>(())
        };
        for (offset, piece) in pieces {
            while let Some(set) = sizes.next_if(|(set, _)| *set < piece.revision) {
                resize(&mut copy, &mut state, set)?;
            }
            let bytes = read_piece(self.log.file(), piece)?;
            let record = Record::Extent { revision: piece.revision, offset, bytes: &bytes };
            let place = copy.append(&record)?;
            state.write(offset, Piece { place, skip: 0, ..piece });
        }
        for set in sizes {
            resize(&mut copy, &mut state, set)?;
        }
        // The last change keeps its revision, even if none of its bytes are left.
        resize(&mut copy, &mut state, (now.revision, now.size))?;
        copy.file().sync_data()?;
        Ok((copy, state))
    }
}

/// The bytes of a piece.
fn read_piece(log: &LogFile, piece: Piece) -> Result<Vec<u8>, JournalError> {
    let mut payload = log.payload(piece.place)?;
    let Some(Record::Extent { bytes, .. }) = Record::parse(&payload) else {
        return Err(not_an_extent(log, piece.place));
    };
    let start = payload.len() - bytes.len() + piece.skip as usize;
    let end = start + piece.bytes as usize;
    if end > payload.len() {
        return Err(not_an_extent(log, piece.place));
    }
    payload.truncate(end);
    payload.drain(..start);
    Ok(payload)
}

fn not_an_extent(log: &LogFile, place: Place) -> JournalError {
    JournalError::Damaged { path: log.path(), at: place.at, why: "there is no such extent" }
}

impl Snapshot {
    /// The state of a log that is no longer written.
    pub(super) fn of(log: Arc<LogFile>, state: State) -> Self {
        let id = WriteId { log: log.header().log, through: state.revision };
        Self { log, state, id }
    }

    /// The id of the state.
    pub fn id(&self) -> WriteId {
        self.id
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The sources of a range, up to the end of the file.
    pub fn spans(&self, range: Range<u64>) -> Vec<Span> {
        self.state.spans(range)
    }

    /// The bytes of a piece.
    ///
    /// # Errors
    /// [`JournalError::Damaged`], [`JournalError::Io`].
    pub fn piece(&self, piece: Piece) -> Result<Vec<u8>, JournalError> {
        read_piece(&self.log, piece)
    }

    /// Reads at an offset. Returns how many bytes were read.
    ///
    /// # Errors
    /// Those of [`Self::piece`] and of `base`.
    pub fn read<E: From<JournalError>>(
        &self,
        offset: u64,
        buffer: &mut [u8],
        base: &mut ReadBase<'_, E>,
    ) -> Result<usize, E> {
        let mut at = 0;
        for span in self.spans(offset..offset.saturating_add(buffer.len() as u64)) {
            let part = &mut buffer[at..at + span.bytes() as usize];
            match span {
                Span::Staged(piece) => part.copy_from_slice(&self.piece(piece)?),
                Span::Base(_) => base(offset + at as u64, part)?,
                Span::Hole(_) => part.fill(0),
            }
            at += part.len();
        }
        Ok(at)
    }
}
