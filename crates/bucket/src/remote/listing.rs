//! Listings, and directory markers without a slash.
//!
//! blobfuse, AzCopy and Data Lake mark a directory of Azure by an empty blob of its name. The name
//! has no slash, and the metadata have `hdi_isfolder`. All layers above see a marker with a slash,
//! as on other stores. It is listed, looked up and deleted under that key, and no file has its
//! name.
//!
//! A listing does not include metadata. So each empty blob costs a request, once for each ETag. If
//! nothing is below a prefix, the blob that may mark it is requested.
//!
//! # Locks
//! One, of the known blobs; a leaf.

use super::{Shared, StoreKind};
use crate::bounded::Bounded;
use crate::{BucketError, ETag, Entry, Listing, Object, Pages, Result};
use futures_util::{StreamExt as _, stream};
use opendal::ErrorKind;
use opendal::Lister;
use opendal::options::{DeleteOptions, ListOptions};
use parking_lot::Mutex;
use std::sync::Arc;

/// The metadata name of a directory marker.
const FOLDER: &str = "hdi_isfolder";
/// How many empty blobs are requested at once.
const HEADS_AT_ONCE: usize = 16;
/// For how many empty blobs it is remembered whether they are markers.
const KNOWN_MAX: usize = 100_000;

/// Which empty blobs mark directories, by ETag.
#[derive(Debug)]
pub(super) struct DirectoryMarkers(Mutex<Bounded<ETag, bool>>);

impl Default for DirectoryMarkers {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(KNOWN_MAX)))
    }
}

fn is_folder(object: &Object) -> bool {
    let beside = object.kept.as_ref().and_then(|kept| kept.user.get(FOLDER));
    object.size_bytes == 0 && beside.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

impl Shared {
    /// The marker of a directory without a slash, under the key with a slash.
    fn folder(&self, directory: &str) -> Result<Option<Object>> {
        let Some(name) = directory.strip_suffix('/').filter(|_| self.kind == StoreKind::Azure)
        else {
            return Ok(None);
        };
        let Ok(name) = self.sendable(name) else { return Ok(None) };
        match self.wait(name, self.operator.stat(name)) {
            Ok(metadata) => {
                let found = Some(self.object(directory, &metadata));
                Ok(found.filter(is_folder))
            }
            Err(BucketError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The object of a HEAD. A marker exists only under its key with a slash.
    pub(super) fn but_folders(&self, key: &str, found: Result<Object>) -> Result<Object> {
        match found {
            Ok(object) if self.kind == StoreKind::Azure && is_folder(&object) => {
                Err(BucketError::NotFound { key: key.to_owned() })
            }
            Err(BucketError::NotFound { key }) => {
                self.folder(&key)?.ok_or(BucketError::NotFound { key })
            }
            found => found,
        }
    }

    /// Deletes the marker of a directory without a slash. Whether it was the expected object: if
    /// not, the marker with a slash has to be deleted as well.
    pub(super) fn delete_folder(&self, key: &str, expected: Option<&ETag>) -> Result<bool> {
        let Some(folder) = self.folder(key)? else { return Ok(false) };
        let name = key.strip_suffix('/').unwrap_or(key);
        let options: DeleteOptions = self.kind.deleting(folder.etag.as_ref());
        self.wait(name, self.operator.delete_options(name, options))?;
        Ok(expected.is_some() && expected == folder.etag.as_ref())
    }

    /// Finds out which of some objects mark directories.
    async fn settle(&self, entries: &[Entry]) -> opendal::Result<()> {
        if self.kind != StoreKind::Azure {
            return Ok(());
        }
        let unknown: Vec<_> = {
            let known = self.folders.0.lock();
            let unknown = |entry: &Entry| match entry {
                Entry::Object(object) if object.size_bytes == 0 && !object.key.ends_with('/') => {
                    let etag = object.etag.as_ref()?;
                    known.get(etag).is_none().then(|| object.key.clone())
                }
                _ => None,
            };
            entries.iter().filter_map(unknown).collect()
        };
        let asked = unknown.into_iter().map(|key| async move {
            match self.operator.stat(&key).await {
                Ok(metadata) => Ok(Some(self.object(&key, &metadata))),
                // It was removed in the meantime.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        });
        let mut answers = stream::iter(asked).buffer_unordered(HEADS_AT_ONCE);
        while let Some(answer) = answers.next().await {
            let Some(object) = answer? else { continue };
            let Some(etag) = object.etag.clone() else { continue };
            self.folders.0.lock().insert(etag, is_folder(&object));
        }
        Ok(())
    }

    /// The entry, with the slash of a directory marker if it is one.
    fn listed(&self, entry: Entry) -> Entry {
        match entry {
            Entry::Object(object) if self.is_known_folder(&object) => {
                Entry::Object(Object { key: format!("{}/", object.key), ..object })
            }
            entry => entry,
        }
    }

    /// The next page of a listing, and whether it is the last.
    async fn page(&self, lister: &mut Lister, page: usize) -> opendal::Result<(Vec<Entry>, bool)> {
        let mut entries = Vec::new();
        while entries.len() < page
            && let Some(entry) = lister.next().await.transpose()?
        {
            let (key, metadata) = (entry.path(), entry.metadata());
            entries.push(match key.ends_with('/') && metadata.etag().is_none() {
                true => Entry::Prefix(key.to_owned()),
                // Only some stores include metadata in a listing.
                false => Entry::Object(Object { kept: None, ..self.object(key, metadata) }),
            });
        }
        self.settle(&entries).await?;
        let is_last = entries.len() < page;
        Ok((self.versions.but_deleted(&self.operator, entries).await?, is_last))
    }

    fn is_known_folder(&self, object: &Object) -> bool {
        let known = self.folders.0.lock();
        let is_folder = object.etag.as_ref().and_then(|etag| known.get(etag)) == Some(&true);
        is_folder && object.size_bytes == 0 && !object.key.ends_with('/')
    }
}

/// A listing by pages.
pub(super) struct RemotePages {
    shared: Arc<Shared>,
    prefix: String,
    delimited: bool,
    page: usize,
    /// `None` once it has ended.
    lister: Option<Lister>,
    /// The error of a listing that failed; it fails again at each call.
    failed: Option<BucketError>,
    is_empty: bool,
}

impl RemotePages {
    /// See [`crate::Bucket::pages`].
    pub(super) fn begin(shared: &Arc<Shared>, listing: &Listing<'_>) -> Result<Self> {
        let prefix = listing.prefix;
        let path = if prefix.is_empty() { "/" } else { shared.sendable(prefix)? };
        let page = listing.page.clamp(1, 1000);
        let options = ListOptions {
            limit: Some(page),
            recursive: !listing.delimited,
            ..ListOptions::default()
        };
        let lister = shared.wait(prefix, shared.operator.lister_options(path, options))?;
        Ok(Self {
            shared: Arc::clone(shared),
            prefix: prefix.to_owned(),
            delimited: listing.delimited,
            page,
            lister: Some(lister),
            failed: None,
            is_empty: true,
        })
    }
}

impl Pages for RemotePages {
    fn next(&mut self) -> Result<Vec<Entry>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (shared, page) = (&self.shared, self.page);
        let Some(lister) = &mut self.lister else { return Ok(Vec::new()) };
        // All names of a page may be deleted ones.
        let entries = async {
            loop {
                let (entries, is_last) = shared.page(lister, page).await?;
                if is_last || !entries.is_empty() {
                    return Ok((entries, is_last));
                }
            }
        };
        let (entries, is_last) = match shared.wait(&self.prefix, entries) {
            Ok(entries) => entries,
            Err(error) => {
                // The lister would report the end next.
                self.failed = Some(error.clone());
                return Err(error);
            }
        };
        let mut entries: Vec<_> = entries.into_iter().map(|entry| shared.listed(entry)).collect();
        self.is_empty &= entries.is_empty();
        if is_last {
            self.lister = None;
            // A directory with entries needs no marker in a delimited listing.
            if (self.is_empty || !self.delimited)
                && let Some(own) = shared.folder(&self.prefix)?
            {
                entries.push(Entry::Object(Object { kept: None, ..own }));
            }
        }
        Ok(entries)
    }
}
