//! Buckets that keep versions. The versions of our own probe objects are deleted, and a directory
//! with only deleted objects is not shown.
//!
//! Amazon lists a prefix only while an object is below it. Some other stores also list it for a
//! version or a delete marker, so `ls` would show directories that do not exist. The probe of a
//! writable bucket detects that. On such a store each prefix in a listing costs one more request,
//! for one key below it.

use super::{RemoteBucket, StoreKind};
use crate::{Bucket as _, Entry, Listing, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use opendal::options::{DeleteOptions, ListOptions};
use opendal::{Metadata, Operator};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How many prefixes of a listing are checked at once.
const ASKED_AT_ONCE: usize = 16;

/// The versioning of a bucket, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Versions {
    are_kept: AtomicBool,
    /// The store lists prefixes with only deleted objects.
    are_listed: AtomicBool,
}

impl Versions {
    /// Detects versioning from the answer to a write, which then has a version.
    pub(super) fn look_at(&self, kind: StoreKind, written: &Metadata) {
        if kind == StoreKind::S3 && written.version().is_some() {
            self.are_kept.store(true, Relaxed);
        }
    }

    /// Removes prefixes without objects from a page.
    pub(super) async fn but_deleted(
        &self,
        operator: &Operator,
        entries: Vec<Entry>,
    ) -> opendal::Result<Vec<Entry>> {
        if !self.are_listed.load(Relaxed) {
            return Ok(entries);
        }
        let there = entries.into_iter().map(|entry| async move {
            let Entry::Prefix(prefix) = &entry else { return Ok(Some(entry)) };
            let options = ListOptions { limit: Some(1), recursive: true, ..ListOptions::default() };
            let mut lister = operator.lister_options(prefix, options).await?;
            Ok(lister.next().await.transpose()?.map(|_| entry))
        });
        let there = stream::iter(there).buffered(ASKED_AT_ONCE);
        there.try_filter_map(async |entry| Ok(entry)).try_collect().await
    }
}

impl RemoteBucket {
    /// See [`crate::Bucket::purge`].
    pub(super) fn purge_versions(&self, stem: &str) -> Result<()> {
        let shared = &self.shared;
        if !shared.versions.are_kept.load(Relaxed) {
            return Ok(());
        }
        let found = self.lists_deleted(stem);
        let options = ListOptions {
            recursive: true,
            versions: true,
            deleted: true,
            ..ListOptions::default()
        };
        for entry in shared.wait(stem, shared.operator.list_options(stem, options))? {
            let version = entry.metadata().version().map(str::to_owned);
            let Some(version) = version.filter(|_| entry.path().starts_with(stem)) else {
                continue;
            };
            let options = DeleteOptions { version: Some(version), ..DeleteOptions::default() };
            shared.wait(stem, shared.operator.delete_options(entry.path(), options))?;
        }
        shared.versions.are_listed.store(found?, Relaxed);
        Ok(())
    }

    /// Whether a directory is listed after it was created and removed.
    fn lists_deleted(&self, name: &str) -> Result<bool> {
        let (shared, directory) = (&self.shared, format!("{name}/"));
        shared.wait(name, shared.operator.create_dir(&directory))?;
        shared.wait(name, shared.operator.delete(&directory))?;
        let mut is_listed = false;
        self.list(&Listing { prefix: name, delimited: true, page: 10 }, &mut |entry| {
            is_listed |= entry.key() == directory;
            ControlFlow::Continue(())
        })?;
        Ok(is_listed)
    }
}
