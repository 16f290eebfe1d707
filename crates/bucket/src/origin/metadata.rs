//! The metadata of objects as attributes of files (`--metadata`).
//!
//! A listing does not include metadata. So the attributes of a file cost one request for each ETag.
//! A program that lists a directory usually goes through its names in order, so the metadata of the
//! next names are prefetched in the background. [`super::object_cache`] keeps the answers.

use super::BucketOrigin;
use super::directory::{Item, Snapshot};
use super::posix::Posix;
use crate::{Bucket, BucketError, Object};
use ogive_origin::{Attributes, FileKind, Result};
use std::sync::Arc;

/// How many names of a listing are prefetched.
const AHEAD: usize = 32;

impl<B: Bucket> BucketOrigin<B> {
    /// Attributes of an object, with those of its metadata if they are present.
    pub(super) fn overlaid(&self, object: &Object, plain: Attributes) -> Attributes {
        let convention = self.options.convention;
        let kept = object.kept.as_deref().filter(|_| convention.is_on());
        kept.map_or(plain, |kept| overlay(&convention.read(kept), plain))
    }

    /// An object with its metadata. If the convention needs metadata and the cache has none, they
    /// are requested.
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
        // A staged file has no ETag, and carries its metadata.
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
            // As listed: its next open fails.
            Err(BucketError::NotFound { .. }) => Ok(object),
            Err(error) => Err(self.errno(&error)),
        }
    }

    /// Requests the metadata of the names that follow `name` in a listing, in the background.
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
            self.read_threads.queue(
                true,
                Box::new(move || {
                    // The request that needs the metadata reports the error.
                    if let Ok(object) = bucket.head(&key) {
                        objects.insert_object(&object);
                    }
                    objects.end(&key);
                }),
            );
        }
    }

    /// The file type of a listed name, if it is known without a request.
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

/// Attributes in which those of the metadata replace the defaults.
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
