//! A file being written, from its first change until the store has all changes.

use super::plan::Limits;
use super::upload::{Attempt, Found, Outcome, StagedError, condition, found, read, refusal};
use super::uploads::{Held, PARTS_IN_MEMORY, Uploads};
use crate::journal::{Base, Journal, Snapshot, StagedLog, State, WriteId};
use crate::{Bucket, BucketError, ObjectMetadata, Upload, WriteMetadata};
use bytes::Bytes;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many uploads one sync makes. A further one is needed if an earlier upload turns out to have
/// arrived, or if the store asks for a repetition.
const ATTEMPTS_MAX: usize = 8;
/// The pause before the next attempt, multiplied by the number of attempts so far.
const PAUSE: Duration = Duration::from_millis(50);

/// A stream reserves this many revisions for changes made while it lasts. No stream has as many.
const STREAM_REVISIONS: u64 = 1 << 32;

/// How files are uploaded.
#[derive(Debug, Clone)]
pub struct Options {
    /// The limits of the store.
    pub limits: Limits,
    /// Whether no other client writes to the bucket, so that conditions are not needed.
    pub is_only_writer: bool,
    /// Files up to this size in bytes are uploaded in one request, from memory, if the store
    /// ignores the conditions of multipart uploads.
    pub put_instead_max_bytes: u64,
    /// Shared by all uploads of the mount.
    pub uploads: Uploads,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            is_only_writer: false,
            put_instead_max_bytes: 64 << 20,
            uploads: Uploads::default(),
        }
    }
}

impl Options {
    /// The limits of the store, with those learned from its errors.
    pub(super) fn limits(&self) -> Limits {
        let are_even = self.limits.are_even || self.uploads.are_parts_even();
        Limits { are_even, ..self.limits }
    }
}

/// When a close returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// When the store has the file.
    Store,
    /// When the journal has the file and survives a power cut. This is weaker: other clients do not
    /// see the file before its upload, and the loss of the disk loses it.
    Journal,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The store has all changes.
    Clean,
    /// It is written in order, and its parts are uploaded meanwhile.
    Streaming,
    /// It has changes that only the journal has.
    Staged,
    /// Another client changed the object first.
    Conflict,
}

/// A file being written, for use by any number of threads.
pub struct StagedFile {
    bucket: Arc<dyn Bucket>,
    log: StagedLog,
    options: Options,
    remote: Mutex<Remote>,
    order: Mutex<Order>,
    /// The metadata of the object.
    kept: Mutex<Metadata>,
    is_conflict: AtomicBool,
    /// Its log is deleted: nothing is uploaded any more.
    is_discarded: AtomicBool,
}

/// The metadata of the next upload.
#[derive(Clone, Debug)]
enum Metadata {
    /// Those of the changed object, which were not requested yet.
    OfBase,
    This(Option<Arc<ObjectMetadata>>),
}

/// The upload in flight.
#[derive(Default)]
struct Remote {
    stream: Option<Stream>,
    /// Whether an upload may have arrived whose outcome is unknown.
    is_in_doubt: bool,
}

/// A new file whose parts are uploaded while it is written.
pub(super) struct Stream {
    pub(super) upload: Box<dyn Upload>,
    id: WriteId,
    pub(super) parts: usize,
    /// The longest part for which it holds memory, in bytes.
    pub(super) part_bytes: u64,
    /// The memory of this upload.
    pub(super) memory: Held,
}

/// Memory for the next part of a stream.
enum Memory {
    OfTheStream,
    OfANewOne(Held),
}

/// Which writes the stream has missed.
#[derive(Debug, Default)]
struct Order {
    /// The stream has sent all bytes before this offset.
    sent: u64,
    /// Whether sent bytes were changed afterwards, or the stream failed.
    is_broken: bool,
}

impl fmt::Debug for StagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedFile").field("log", &self.log).finish_non_exhaustive()
    }
}

impl StagedFile {
    /// Starts to change an object, or a new one.
    ///
    /// # Errors
    /// If the store ignores a condition that protects other clients' objects; those of the journal.
    pub fn begin(
        bucket: Arc<dyn Bucket>,
        journal: &Journal,
        key: &str,
        base: Base,
        options: Options,
    ) -> Result<Self, StagedError> {
        if !options.is_only_writer {
            let promises = bucket.promises();
            let (one, parts) = (refusal(&promises, &base, false), refusal(&promises, &base, true));
            if let (Some(error), Some(_)) = (one, parts) {
                return Err(error.into());
            }
        }
        Ok(Self::over(bucket, journal.stage(key, base)?, options, Remote::default()))
    }

    /// Resumes a file that an earlier mount left in the journal.
    pub fn resume(bucket: Arc<dyn Bucket>, log: StagedLog, options: Options) -> Self {
        let remote = Remote { stream: None, is_in_doubt: true };
        Self::over(bucket, log, options, remote)
    }

    fn over(bucket: Arc<dyn Bucket>, log: StagedLog, options: Options, remote: Remote) -> Self {
        let metadata_to_store = match remote.is_in_doubt {
            true => Metadata::OfBase,
            false => Metadata::This(None),
        };
        let (remote, order, kept) =
            (Mutex::new(remote), Mutex::default(), Mutex::new(metadata_to_store));
        let (is_conflict, is_discarded) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { bucket, log, options, remote, order, kept, is_conflict, is_discarded }
    }

    /// The state of the file. An upload in flight does not change it.
    pub fn standing(&self) -> Standing {
        if self.is_conflict.load(Ordering::Acquire) {
            return Standing::Conflict;
        }
        let order = self.order.lock();
        if !self.log.with_state(|state| state.is_changed()) {
            Standing::Clean
        } else if order.sent > 0 && !order.is_broken {
            Standing::Streaming
        } else {
            Standing::Staged
        }
    }

    /// The object's key.
    pub fn key(&self) -> String {
        self.log.with_state(|state| state.key().to_owned())
    }

    /// The object that is being changed, as last known.
    pub fn base(&self) -> Base {
        self.log.with_state(|state| state.base().clone())
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.log.size()
    }

    /// Where the log is.
    pub fn path(&self) -> PathBuf {
        self.log.path()
    }

    /// The log, for a reader that has another source for the unchanged bytes.
    pub fn log(&self) -> &StagedLog {
        &self.log
    }

    /// Sets the metadata of the next upload. A stream in flight keeps those with which it started.
    pub fn keep(&self, kept: Option<Arc<ObjectMetadata>>) {
        *self.kept.lock() = Metadata::This(kept);
    }

    /// The metadata, if they are known.
    pub fn metadata_to_store(&self) -> Option<Arc<ObjectMetadata>> {
        match &*self.kept.lock() {
            Metadata::This(kept) => kept.clone(),
            Metadata::OfBase => None,
        }
    }

    /// Reads a range with all changes; unchanged bytes come from the store. Short at the end of the
    /// file.
    ///
    /// # Errors
    /// [`StagedError::Bucket`] with `ESTALE` if the unchanged bytes no longer exist.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes, StagedError> {
        read(&*self.bucket, &self.log.view_of(range.clone()), range)
    }

    /// Writes bytes. They are in the journal when this returns.
    ///
    /// # Errors
    /// [`StagedError::Short`] if the journal's disk is full; [`StagedError::Conflict`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), StagedError> {
        self.change(Some(offset), |log| {
            log.write(offset, bytes)
                .map_err(|(written, error)| StagedError::Short { written, error })
        })
    }

    /// Appends bytes, and returns their offset.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(&self, bytes: &[u8]) -> Result<u64, StagedError> {
        self.change(None, |log| {
            log.append(bytes).map_err(|(written, error)| StagedError::Short { written, error })
        })
    }

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn resize(&self, size: u64) -> Result<(), StagedError> {
        self.change(Some(size), |log| Ok(log.resize(size)?))
    }

    /// Makes a change that starts at `from`, or at the end of the file.
    fn change<T>(
        &self,
        from: Option<u64>,
        change: impl FnOnce(&StagedLog) -> Result<T, StagedError>,
    ) -> Result<T, StagedError> {
        self.refuse_conflict()?;
        let done = {
            let mut order = self.order.lock();
            // The file never ends before the sent bytes, so an append cannot break the stream.
            if from.is_some_and(|from| from < order.sent) {
                order.is_broken = true;
            }
            change(&self.log)
        };
        if let Some(mut remote) = self.remote.try_lock()
            && !self.is_discarded.load(Ordering::Acquire)
        {
            self.stream(&mut remote);
            if self.log.wants_compaction() {
                // A failure wastes disk space, but loses no bytes.
                let is_settled = !remote.is_in_doubt && remote.stream.is_none();
                let _ = self.log.compact(is_settled);
            }
        }
        done
    }

    fn refuse_conflict(&self) -> Result<(), StagedError> {
        if self.is_conflict.load(Ordering::Acquire) {
            return Err(StagedError::Conflict { key: self.key() });
        }
        Ok(())
    }

    /// Sends complete parts of a new file, as far as there is memory for them.
    fn stream(&self, remote: &mut Remote) {
        loop {
            let (parts, longest) =
                remote.stream.as_ref().map_or((0, 0), |stream| (stream.parts, stream.part_bytes));
            let next = self.options.limits().stream_part_bytes(parts);
            let bytes = next.unwrap_or(longest);
            let (view, range, memory) = {
                let mut order = self.order.lock();
                let range = order.sent..order.sent.saturating_add(bytes);
                // Keep some bytes for the last part, which must not be empty.
                let is_whole = |state: &State| state.size() > range.end && state.is_all_new();
                let is_whole = self.log.with_state(is_whole);
                // A file with too many parts is uploaded as a whole, in longer parts.
                order.is_broken |= is_whole && next.is_none();
                if order.is_broken {
                    remote.stream = None;
                    return;
                }
                if !is_whole {
                    return;
                }
                let Some(memory) = self.memory_for(remote, bytes) else { return };
                order.sent = range.end;
                (self.log.view_of(range.clone()), range, memory)
            };
            // If the upload of the whole file fails as well, that error is returned.
            if self.send_part(remote, memory, &view, range).is_err() {
                self.order.lock().is_broken = true;
                remote.stream = None;
                return;
            }
        }
    }

    /// Memory for parts of this length; a running stream extends its own.
    fn memory_for(&self, remote: &mut Remote, part_bytes: u64) -> Option<Memory> {
        let bytes = part_bytes.saturating_mul(PARTS_IN_MEMORY);
        match &mut remote.stream {
            Some(stream) => stream.memory.grow(bytes).then_some(Memory::OfTheStream),
            None => self.options.uploads.take_for_stream(bytes).map(Memory::OfANewOne),
        }
    }

    fn send_part(
        &self,
        remote: &mut Remote,
        memory: Memory,
        view: &Snapshot,
        range: Range<u64>,
    ) -> Result<(), StagedError> {
        if let Memory::OfANewOne(memory) = memory {
            let (key, base) = (self.key(), self.base());
            let promises = self.bucket.promises();
            if let (false, Some(error)) =
                (self.options.is_only_writer, refusal(&promises, &base, true))
            {
                return Err(error.into());
            }
            let now = view.id();
            let id = WriteId { through: now.through + STREAM_REVISIONS, ..now };
            let (mark, kept) = (id.to_string(), self.metadata_to_store());
            let beside = WriteMetadata::marked(&mark).with(kept.as_deref());
            let upload = self.bucket.upload(&key, &condition(&base), beside)?;
            remote.stream = Some(Stream { upload, id, parts: 0, part_bytes: 0, memory });
        }
        if let Some(stream) = &mut remote.stream {
            stream.part_bytes = range.end - range.start;
            stream.upload.part(read(&*self.bucket, view, range)?)?;
            stream.parts += 1;
        }
        Ok(())
    }

    /// Makes all that was written before the call durable in the store.
    ///
    /// # Errors
    /// [`StagedError::Conflict`] if another client changed the object: its bytes stay, ours are
    /// kept in the journal's `conflicts/`. After any other error the file stays in the journal,
    /// unchanged.
    pub fn sync(&self) -> Result<(), StagedError> {
        let mut remote = self.remote.lock();
        self.refuse_conflict()?;
        let wanted = self.log.with_state(|state| state.revision());
        let message = "earlier uploads of this file keep arriving; repeat the sync".to_owned();
        let mut last = BucketError::Busy { key: self.key(), message };
        for number in 1..=ATTEMPTS_MAX as u32 {
            if !self.log.with_state(|state| state.is_changed()) {
                return Ok(());
            }
            match self.attempt(&mut remote)? {
                Outcome::Holds(through, base) => {
                    self.log.uploaded(through, base)?;
                    // Clear this last: until then a compaction must keep the later changes.
                    remote.is_in_doubt = false;
                    if through >= wanted {
                        return Ok(());
                    }
                }
                Outcome::Again(error) => {
                    log::info!("repeating an upload: {error}");
                    last = error;
                    std::thread::sleep(PAUSE * number);
                }
                Outcome::Conflict => {
                    self.log.set_aside()?;
                    self.is_conflict.store(true, Ordering::Release);
                    return Err(StagedError::Conflict { key: self.key() });
                }
            }
        }
        Err(last.into())
    }

    /// One upload of the current file.
    fn attempt(&self, remote: &mut Remote) -> Result<Outcome, StagedError> {
        if remote.is_in_doubt {
            let snapshot = self.log.snapshot()?;
            match found(&*self.bucket, &snapshot, snapshot.id())? {
                Found::Base(there) => {
                    let mut kept = self.kept.lock();
                    if matches!(*kept, Metadata::OfBase) {
                        *kept = Metadata::This(there);
                    }
                }
                Found::Ours(through, base) => return Ok(Outcome::Holds(through, base)),
                Found::Foreign => return Ok(Outcome::Conflict),
            }
        }
        let (snapshot, stream) = self.freeze(remote)?;
        let (bucket, options) = (&*self.bucket, &self.options);
        let kept = self.metadata_to_store();
        let (id, kept) = (snapshot.id(), kept.as_deref());
        let limits = options.limits();
        let attempt = Attempt { bucket, options, limits, snapshot: &snapshot, id, kept };
        remote.is_in_doubt = true;
        match stream {
            Some((stream, sent)) => attempt.finish(stream, sent),
            None => attempt.run(),
        }
    }

    /// A snapshot of the file, durable in the journal, with the stream and how many bytes it has
    /// sent. Afterwards no stream is in flight.
    fn freeze(
        &self,
        remote: &mut Remote,
    ) -> Result<(Snapshot, Option<(Stream, u64)>), StagedError> {
        let (view, stream) = {
            let mut order = self.order.lock();
            let Order { sent, is_broken } = std::mem::take(&mut *order);
            let mut stream = remote.stream.take().filter(|_| !is_broken);
            if let Some(begun) = &stream
                && !self.log.advance(begun.id.through)?
            {
                stream = None;
            }
            (self.log.view(), stream.map(|stream| (stream, sent)))
        };
        // An upload must not include changes that a power cut could undo: their revisions would be
        // assigned again.
        self.log.sync()?;
        Ok((view, stream))
    }

    /// Makes the file durable and closes it. Returns the file if it has to be uploaded later,
    /// `None` if the journal has nothing left of it.
    ///
    /// # Errors
    /// As [`Self::sync`], with the file.
    pub fn close(self, durable: Durable) -> Result<Option<Self>, (Box<Self>, StagedError)> {
        let done = match durable {
            Durable::Store => self.sync(),
            Durable::Journal => {
                self.refuse_conflict().and_then(|()| Ok(self.log.sync().map(drop)?))
            }
        };
        match done.and_then(|()| Ok(self.log.retire()?)) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(self)),
            Err(error) => Err((Box::new(self), error)),
        }
    }

    /// Drops the changes of a file that lost its name. Programs that have it open can still read
    /// and write it, but it must not be synced, and the next mount does not find it.
    ///
    /// # Errors
    /// [`StagedError::Journal`] if the log cannot be deleted.
    pub fn discard(&self) -> Result<(), StagedError> {
        let mut remote = self.remote.lock();
        if self.is_discarded.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        remote.stream = None;
        Ok(self.log.unlinked()?)
    }
}
