//! The metadata of objects as attributes of files (`--metadata`).
//!
//! A listing does not include metadata. So each file whose attributes are shown costs a request,
//! once for each ETag. A program that lists a directory goes through its names in order: the
//! metadata of the next names are prefetched in the background. [`super::object_cache`] keeps the
//! answers.

use super::BucketOrigin;
use super::directory::{Item, Snapshot};
use super::posix::Posix;
use crate::{Bucket, BucketError, Object};
use ogive_origin::{Attributes, FileKind, Result};
use std::sync::Arc;

/// Names of a listing that are prefetched.
const AHEAD: usize = 32;

impl<B: Bucket> BucketOrigin<B> {
    /// Attributes of an object, with what is beside it as far as that is known.
    pub(super) fn overlaid(&self, object: &Object, plain: Attributes) -> Attributes {
        let convention = self.options.convention;
        let kept = object.kept.as_deref().filter(|_| convention.is_on());
        kept.map_or(plain, |kept| overlay(&convention.read(kept), plain))
    }

    /// An object with what is beside it, which is asked for if it is wanted and not known.
    pub(super) fn with_metadata(&self, object: &Object) -> Result<Object> {
        let mut object = object.clone();
        if !self.options.convention.is_on() {
            return Ok(object);
        }
        if object.kept.is_some() {
            if object.etag.is_some() {
                self.objects.insert_object(&object);
            }
            return Ok(object);
        }
        // A file that is changed here has no tag, and says itself what is beside it.
        if object.etag.is_none() || self.is_offline() {
            return Ok(object);
        }
        self.objects.wait(&object.key);
        if let Some(kept) = self.objects.metadata_of(&object) {
            object.kept = Some(kept);
            return Ok(object);
        }
        match self.bucket.head(&object.key) {
            Ok(found) => {
                self.objects.insert_object(&found);
                Ok(found)
            }
            // As it was listed: the next opening fails.
            Err(BucketError::NotFound { .. }) => Ok(object),
            Err(error) => Err(self.errno(&error)),
        }
    }

    /// Asks in the background for what is beside the names that follow one in a listing.
    pub(super) fn prefetch_metadata(&self, snapshot: &Snapshot, name: &str) {
        if !self.options.convention.is_on() || self.is_offline() {
            return;
        }
        for object in snapshot.files_from(name).take(AHEAD) {
            if self.objects.metadata_of(object).is_some() || !self.objects.begin(&object.key) {
                continue;
            }
            let (bucket, objects) = (Arc::clone(&self.bucket), Arc::clone(&self.objects));
            let key = object.key.clone();
            self.readers.queue(
                true,
                Box::new(move || {
                    // The request that needs the name reports the error.
                    if let Ok(object) = bucket.head(&key) {
                        objects.insert_object(&object);
                    }
                    objects.end(&key);
                }),
            );
        }
    }

    /// The kind that a name of a listing has, if that is known without asking.
    pub(super) fn listed_kind(&self, item: &Item) -> Option<FileKind> {
        match item {
            Item::Directory => Some(FileKind::Directory),
            Item::File(_) if !self.options.convention.is_on() => Some(FileKind::Regular),
            Item::File(object) => {
                let kept = self.objects.metadata_of(object)?;
                let found = self.options.convention.read(&kept);
                Some(found.kind.unwrap_or(FileKind::Regular))
            }
        }
    }
}

/// Attributes with what was found beside an object in place of what stands for it otherwise.
fn overlay(found: &Posix, plain: Attributes) -> Attributes {
    let kind = found.kind.unwrap_or(plain.kind);
    let is_link = kind == FileKind::Symlink;
    let size_bytes = match &found.target {
        Some(target) => target.len() as u64,
        None => plain.size_bytes,
    };
    Attributes {
        kind,
        permissions: match found.permissions {
            // Links have all permissions, whatever the metadata say.
            _ if is_link => 0o777,
            Some(permissions) => permissions,
            None => plain.permissions,
        },
        user: found.user.unwrap_or(plain.user),
        group: found.group.unwrap_or(plain.group),
        modified: found.modified.unwrap_or(plain.modified),
        accessed: found.accessed.or(found.modified).unwrap_or(plain.accessed),
        changed: found.changed.unwrap_or(plain.changed),
        size_bytes,
        ..plain
    }
}
