//! Buckets that keep versions. The versions of our own probe objects are deleted, and a directory
//! that has only deleted objects is not shown.
//!
//! Amazon lists a prefix as long as an object is below it. Some other stores list it as long as a
//! version or a delete marker is, and then `ls` shows directories that do not exist. The probe of a
//! writable bucket finds out which. On a store that lists them, each prefix in a listing costs one
//! more request, which asks for one key below it.

use super::{RemoteBucket, StoreKind};
use crate::{Bucket as _, Entry, Listing, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use opendal::options::{DeleteOptions, ListOptions};
use opendal::{Metadata, Operator};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Prefixes of a listing that are asked for at once.
const ASKED_AT_ONCE: usize = 16;

/// What is known of the versions of a bucket.
#[derive(Debug, Default)]
pub(super) struct Versions {
    are_kept: AtomicBool,
    /// Prefixes are listed below which nothing but deleted objects is.
    are_listed: AtomicBool,
}

impl Versions {
    /// Looks at the answer to a write, which names the version where the bucket keeps them.
    pub(super) fn look_at(&self, kind: StoreKind, written: &Metadata) {
        if kind == StoreKind::S3 && written.version().is_some() {
            self.are_kept.store(true, Relaxed);
        }
    }

    /// The same entries of a listing, less the prefixes below which there is nothing.
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

    /// Whether a directory of that name is listed that was made and removed again.
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
