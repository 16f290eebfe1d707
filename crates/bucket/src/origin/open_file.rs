//! Open files of a bucket: the source of their bytes, and reads.
//!
//! On a read-only mount a file is pinned to the object that it was opened with. On a writable one
//! it is pinned to a lineage: that object, and the objects that this mount makes of it
//! ([`super::writing`]).

use super::BucketOrigin;
use super::directory::Item;
use super::nodes::Node;
use super::small_object_open::{IsCached, SmallObject};
use super::writing::{Handle, OpenMode, Source};
use crate::{Bucket, BucketError, ETag, Object};
use bytes::Bytes;
use ogive_origin::{Attributes, Errno, Identity, OFlags, Result, Whence};
use parking_lot::Mutex;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// An open file.
pub struct File {
    /// The object that was opened.
    pub(super) object: Object,
    attributes: Attributes,
    /// Generation of its node.
    generation: u64,
    /// Its changes, on a writable mount.
    handle: Option<Handle>,
    /// Bytes that arrived with the open.
    small_object: Mutex<Option<SmallObject>>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("object", &self.object).finish_non_exhaustive()
    }
}

/// The ETag that every read of an object requires.
pub(super) fn strong_etag(object: &Object) -> Option<&ETag> {
    object.etag.as_ref().filter(|etag| etag.is_strong())
}

impl File {
    /// Its size in bytes.
    fn size(&self) -> u64 {
        match &self.handle {
            Some(handle) => handle.look().object.size_bytes,
            None => self.object.size_bytes,
        }
    }

    /// Its changes, on a writable mount.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.handle.as_ref()
    }

    /// A range of the object, if its bytes arrived with the open. A read of the last range drops
    /// them: the caller caches what it read.
    pub(super) fn taken(&self, object: &Object, range: Range<u64>) -> Option<Bytes> {
        let mut small_object = self.small_object.lock();
        let is_last = range.end == object.size_bytes;
        let bytes = small_object.as_ref()?.range(object, range)?;
        if is_last {
            *small_object = None;
        }
        Some(bytes)
    }

    /// The current source of its bytes.
    pub(super) fn source(&self) -> Result<Source> {
        match &self.handle {
            Some(handle) => handle.source(),
            None => Ok(Source::Object(self.object.clone())),
        }
    }
}

impl<B: Bucket> BucketOrigin<B> {
    /// Opens the file of a node. `is_cached` is given if the first bytes are about to be read.
    pub(super) fn open_file(
        &self,
        node: &Node,
        flags: OFlags,
        is_cached: Option<IsCached<'_>>,
    ) -> Result<File> {
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let truncates = flags.contains(OFlags::TRUNC);
        if self.writing.is_none() && (writes || truncates) {
            return Err(Errno::ROFS);
        }
        if node.is_directory() {
            return Err(Errno::ISDIR);
        }
        if node.is_gone() {
            return Err(Errno::STALE);
        }
        let is_cached = is_cached.filter(|_| !writes && !truncates);
        if let Some(writing) = &self.writing {
            let mut small_object = None;
            let handle = writing.open_asking(node.key(), OpenMode::of(flags), &mut |key| {
                let (object, begun) = self.head_to_open(node, key, is_cached)?;
                small_object = begun;
                Ok(object)
            })?;
            return Ok(File { small_object: Mutex::new(small_object), ..self.file(node, handle) });
        }
        let (object, small_object) = self.object_to_open(node, is_cached)?;
        if self.verifier.is_corrupt(&object) {
            return Err(Errno::IO);
        }
        let (attributes, generation) = (self.file_attributes(&object), self.generation(node));
        let small_object = Mutex::new(small_object);
        Ok(File { attributes, object, generation, handle: None, small_object })
    }

    /// Whether the bytes of the opened object do not match the store's checksum.
    pub(super) fn spoilt(&self, file: &File) -> bool {
        self.verifier.is_corrupt(&file.object)
    }

    /// The object to open: the store's, or the last known one while the store is offline.
    fn object_to_open(
        &self,
        node: &Node,
        is_cached: Option<IsCached<'_>>,
    ) -> Result<(Object, Option<SmallObject>)> {
        let key = node.key();
        let remembered = || match self.remembered(key)? {
            Some(Item::File(object)) => Ok((object, None)),
            _ => Err(Errno::STALE),
        };
        if self.is_offline() {
            return remembered();
        }
        let answer = self.head_to_open(node, key, is_cached);
        if self.note_answer(&answer) {
            return remembered();
        }
        match answer {
            Ok((object, small_object)) => {
                self.listings.invalidate_if_changed(&object);
                self.remember(key, Item::File(object.clone()));
                Ok((object, small_object))
            }
            Err(BucketError::NotFound { .. }) => Err(Errno::STALE),
            Err(error) => Err(self.errno(&error)),
        }
    }

    /// A file for a handle of a writable mount.
    pub(super) fn file(&self, node: &Node, handle: Handle) -> File {
        let object = handle.look().object;
        let (attributes, generation) = (self.file_attributes(&object), self.generation(node));
        let small_object = Mutex::new(None);
        File { attributes, object, generation, handle: Some(handle), small_object }
    }

    /// Attributes of an open file: those at its open, unless it was changed here.
    pub(super) fn open_attributes(&self, file: &File) -> Attributes {
        let attributes = match file.handle.as_ref().map(Handle::look) {
            Some(look) if look.is_changing => self.file_attributes(&look.object),
            _ => file.attributes,
        };
        let has_name = file.handle.as_ref().is_none_or(|handle| !handle.is_removed());
        Attributes { links: u32::from(has_name), ..attributes }
    }

    /// The identity to which all bytes of the file belong; `None` while the file has local changes.
    pub(super) fn vouched(&self, file: &File) -> Option<Identity> {
        if file.handle.as_ref().is_some_and(|handle| handle.look().is_changing) {
            return None;
        }
        let is_replaced = file.handle.as_ref().is_some_and(Handle::is_replaced);
        let is_pinned = strong_etag(&file.object).is_some();
        (is_pinned || is_replaced).then(|| file.attributes.identity(file.generation))
    }

    /// Reads a range of an object in pieces. The range lies within it.
    fn stream(
        &self,
        object: &Object,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let (key, etag) = (&object.key, strong_etag(object));
        let wanted = range.end - range.start;
        let mut stopped = false;
        let given = self.bucket.get(key, range, etag, &mut |piece| {
            let flow = sink(&piece);
            stopped = flow.is_break();
            flow
        });
        match given {
            Ok(given) if stopped || given == wanted => Ok(()),
            Ok(given) => {
                let message = format!("received {given} of {wanted} bytes");
                Err(self.errno(&BucketError::Failed { key: key.clone(), message }))
            }
            // The opened object no longer exists.
            Err(BucketError::NotFound { .. } | BucketError::OutOfRange { .. }) => Err(Errno::STALE),
            Err(error) => Err(self.errno(&error)),
        }
    }

    /// Reads a range, up to the end of the file.
    pub(super) fn read(
        &self,
        file: &File,
        offset: u64,
        length_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let end = offset.saturating_add(length_bytes as u64);
        let object = match file.source()? {
            Source::Object(object) => object,
            Source::Staged(staged) => {
                let bytes = staged.read(offset..end).map_err(|error| {
                    match self.messages.of_staged(&error) {
                        // The changed object no longer exists.
                        Errno::NOENT => Errno::STALE,
                        errno => errno,
                    }
                })?;
                into.extend_from_slice(&bytes);
                return Ok(());
            }
        };
        let end = end.min(object.size_bytes);
        if offset >= end {
            return Ok(());
        }
        if let Some(bytes) = file.taken(&object, offset..end) {
            into.extend_from_slice(&bytes);
            return Ok(());
        }
        self.stream(&object, offset..end, &mut |piece| {
            into.extend_from_slice(piece);
            ControlFlow::Continue(())
        })
    }

    /// The next data or hole: an object's only hole is at its end.
    pub(super) fn sought(&self, file: &File, offset: u64, whence: Whence) -> Result<u64> {
        let size = file.size();
        match (offset < size, whence) {
            (false, _) => Err(Errno::NXIO),
            (true, Whence::Data) => Ok(offset),
            (true, Whence::Hole) => Ok(size),
        }
    }
}
