//! A bucket as the origin of a mount.
//!
//! # Names and numbers
//! A node is a key. The key of a directory ends in a slash; the root is the mounted prefix. Inode
//! numbers are hashes of store, bucket and key ([`crate::keys`]), so they are the same on every
//! mount. A rename creates another object.
//!
//! # Versions
//! The version of a file is a digest of its strong ETag, size and time. An open file is *pinned*:
//! every read requires its ETag, and fails with `ESTALE` once the key holds another object. So an
//! open file never mixes two objects. A file without a strong ETag has no version and is not
//! pinned. A directory has no version; each reader lists it again.
//!
//! # Requests
//! A lookup lists its directory, and the listing answers further lookups until its TTL ends
//! ([`listing_cache`]). In a directory of more than 1,000 names a lookup makes two requests: one
//! for keys below the name, one for the object. An open makes one request, for the object. For a
//! small object that is not cached, the answer includes the bytes ([`small_object_open`]). A read
//! requests the range of one record, or of a run of records at once.
//!
//! # Changes
//! A bucket is writable only with a journal ([`writing`]); otherwise changes are refused.
//!
//! # Locks
//! No lock is held across a request, except the gates of files that are being changed.

#[cfg(test)]
mod bounds_tests;
mod changes;
mod checksum_verify;
mod cost;
mod directory;
mod directory_reader;
mod links;
mod listing_cache;
mod messages;
mod metadata;
mod name_budget;
mod nodes;
mod object_cache;
mod offline;
#[cfg(test)]
mod offline_tests;
mod open_directory;
mod open_file;
mod operations;
mod posix;
mod read_run;
mod small_object_open;
#[cfg(test)]
mod tests;
mod writing;

pub use nodes::Node;
pub use open_file::File;
pub use posix::Convention;
pub use writing::{Chmod, WriteOptions};

use crate::keys::{self, Numbers};
use crate::{Bucket, BucketError, Listing, Object};
use checksum_verify::ChecksumVerifier;
use cost::CostMeter;
use directory::{Item, Snapshot};
use listing_cache::ListingCache;
use messages::Messages;
use nodes::Nodes;
use object_cache::ObjectCache;
use offline::Offline;
use ogive_origin::{Attributes, DirectoryEntry, Errno, FileKind, Found, Result, Tag, Time};
pub use open_directory::Directory;
use parking_lot::Mutex;
use read_run::ReadThreads;
use small_object_open::SmallObjects;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use writing::Writing;

/// The size of a read or write that suits programs, in bytes.
const BLOCK_BYTES: u32 = 128 << 10;
/// The free space that a mount reports: a bucket has no limit.
const ROOM_BYTES: u64 = 1 << 60;

/// How many keys that cannot be shown are remembered.
const NAMELESS_MAX: usize = 10_000;

/// How a bucket looks as a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginOptions {
    /// Only keys with this prefix are shown. Empty, or ending in a slash.
    pub prefix: String,
    /// The TTL of a listing.
    pub metadata_ttl: Duration,
    /// Owner of all files.
    pub user: u32,
    /// Group of all files.
    pub group: u32,
    /// Permission bits of files.
    pub file_mode: u16,
    /// Permission bits of directories.
    pub directory_mode: u16,
    /// The convention for modes, owners and times in the metadata of objects.
    pub convention: Convention,
}

/// A bucket, or the keys under a prefix in it, as an origin.
pub struct BucketOrigin<B> {
    bucket: Arc<B>,
    options: OriginOptions,
    identity: crate::BucketIdentity,
    device: u64,
    listings: Arc<ListingCache>,
    nodes: Nodes,
    /// How the bucket is changed; `None` on a read-only mount.
    writing: Option<Arc<Writing>>,
    messages: Arc<Messages>,
    /// The time shown for directories, which have none: the start of the mount.
    began: Time,
    /// How often a listing met a key that cannot be shown. A key met twice counts twice.
    hidden: AtomicU64,
    /// The keys that cannot be shown in the last listings, with the reason of each.
    nameless: Mutex<BTreeMap<Box<str>, &'static str>>,
    /// The cost of requests, and its budget.
    cost: CostMeter,
    read_threads: ReadThreads,
    /// The store's last answers about objects.
    objects: Arc<ObjectCache>,
    /// Verifies the checksums of the bytes that are read.
    verifier: Arc<ChecksumVerifier>,
    /// Small objects that arrive with the answer to their open.
    small_objects: SmallObjects,
    /// Whether the store answers; `None` without `--offline stale`.
    offline: Option<Arc<Offline>>,
}

impl<B: Bucket> BucketOrigin<B> {
    /// Shows a bucket. One request checks it, so that a mount of a missing or unreadable bucket
    /// fails at once.
    ///
    /// # Errors
    /// Those of the store; [`BucketError::NotFound`] if nothing is under the prefix.
    pub fn open(bucket: B, options: OriginOptions) -> crate::Result<Self> {
        let origin = Self::over(bucket, options)?;
        if !origin.exists(&origin.options.prefix)? && !origin.options.prefix.is_empty() {
            return Err(BucketError::NotFound { key: origin.options.prefix.clone() });
        }
        Ok(origin)
    }

    fn over(bucket: B, options: OriginOptions) -> crate::Result<Self> {
        if !options.prefix.is_empty() {
            bucket.key_rules().sendable(&options.prefix)?;
        }
        let identity = bucket.identity();
        Ok(Self {
            device: keys::device(&identity),
            messages: Arc::new(Messages::new(identity.clone())),
            identity,
            listings: Arc::new(ListingCache::new(options.metadata_ttl)),
            nodes: Nodes::default(),
            writing: None,
            began: Time { nanoseconds: 0, ..Time::now() },
            hidden: AtomicU64::new(0),
            nameless: Mutex::default(),
            cost: CostMeter::default(),
            read_threads: ReadThreads::default(),
            objects: Arc::new(ObjectCache::new(options.convention.is_on())),
            verifier: Arc::default(),
            small_objects: SmallObjects::default(),
            offline: None,
            bucket: Arc::new(bucket),
            options,
        })
    }

    /// Like [`Self::open`], for a bucket that is also changed through a journal. Files that an
    /// earlier mount left in the journal are uploaded first, as far as the store accepts them.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`BucketError::Unsupported`] if the store ignores a condition that
    /// protects other clients' objects from being overwritten; the store's error if the directory
    /// rename of an earlier mount cannot be completed.
    pub fn open_writable(
        bucket: B,
        options: OriginOptions,
        opened: crate::journal::Opened,
        write: WriteOptions,
    ) -> std::result::Result<Self, crate::staged::StagedError> {
        let mut origin = Self::over(bucket, options)?;
        // A prefix that is empty today may be where files are written.
        if !origin.exists(&origin.options.prefix)? && !origin.options.prefix.is_empty() {
            let prefix = &origin.options.prefix;
            origin.messages.warn(format_args!("there are no objects under {prefix} yet"));
        }
        let bucket = Arc::clone(&origin.bucket);
        let shared = (Arc::clone(&origin.messages), Arc::clone(&origin.listings));
        let convention = origin.options.convention;
        origin.nodes = Nodes::changing();
        origin.writing = Some(Writing::start(bucket, opened, (write, convention), shared)?);
        Ok(origin)
    }

    /// The name of the source in a journal: the same for all mounts of this prefix.
    pub fn source(identity: &crate::BucketIdentity, prefix: &str) -> String {
        format!("{}/{}/{prefix}", identity.endpoint, identity.bucket)
    }

    fn writing(&self) -> Result<&Arc<Writing>> {
        self.writing.as_ref().ok_or(Errno::ROFS)
    }

    /// The bucket itself.
    pub fn bucket(&self) -> &B {
        &self.bucket
    }

    fn numbers(&self, key: &str) -> Numbers {
        keys::numbers(&self.identity, key)
    }

    /// Whether any key has this prefix.
    fn exists(&self, prefix: &str) -> crate::Result<bool> {
        // A store cannot hold keys below a key of the maximal length, or below one that is not a
        // directory's.
        if !prefix.is_empty() && self.bucket.key_rules().sendable(prefix).is_err() {
            return Ok(false);
        }
        let mut exists = false;
        self.bucket.list(&Listing { prefix, delimited: false, page: 1 }, &mut |_| {
            exists = true;
            ControlFlow::Break(())
        })?;
        Ok(exists)
    }

    fn errno(&self, error: &BucketError) -> Errno {
        self.messages.errno(error)
    }

    fn or_errno<T>(&self, result: crate::Result<T>) -> Result<T> {
        self.note_answer(&result);
        result.map_err(|error| self.errno(&error))
    }

    /// The key of a name in a directory. A name may be valid for a directory only: white space at
    /// its end is followed by the slash.
    fn key(&self, directory: &str, name: &OsStr) -> Result<String> {
        let name = name.to_str().ok_or(Errno::NOENT)?;
        let (rules, key) = (self.bucket.key_rules(), format!("{directory}{name}"));
        let is_name = |key: &str| rules.name_in(directory, key).is_some();
        if is_name(&key) || is_name(&format!("{key}/")) {
            return Ok(key);
        }
        let is_long = matches!(rules.sendable(&key), Err(BucketError::KeyTooLong { .. }));
        Err(if name.len() > 255 || is_long { Errno::NAMETOOLONG } else { Errno::NOENT })
    }

    fn found(&self, key: &str, item: &Item) -> Result<Found<Node>> {
        let (key, attributes) = match item {
            Item::Directory => {
                let key = format!("{key}/");
                let attributes = self.directory_attributes_of(&key);
                (key, attributes)
            }
            Item::File(object) => {
                (key.to_owned(), self.file_attributes(&self.with_metadata(object)?))
            }
        };
        Ok(self.found_as(&key, attributes))
    }

    fn found_as(&self, key: &str, attributes: Attributes) -> Found<Node> {
        let node = self.nodes.node(key);
        let generation = self.generation(&node);
        Found { node, attributes, generation }
    }

    fn generation(&self, node: &Node) -> u64 {
        self.numbers(node.key()).generation.wrapping_add(node.incarnation())
    }

    fn file_attributes(&self, object: &Object) -> Attributes {
        let Numbers { inode, .. } = self.numbers(&object.key);
        let plain = Attributes {
            device: self.device,
            inode,
            kind: FileKind::Regular,
            permissions: self.options.file_mode,
            links: 1,
            user: self.options.user,
            group: self.options.group,
            special_device: 0,
            size_bytes: object.size_bytes,
            blocks: object.size_bytes.div_ceil(512),
            block_size_bytes: BLOCK_BYTES,
            accessed: object.modified,
            modified: object.modified,
            changed: object.modified,
            tag: keys::tag(object),
        };
        self.overlaid(object, plain)
    }

    fn directory_attributes_of(&self, key: &str) -> Attributes {
        let Numbers { inode, .. } = self.numbers(key);
        Attributes {
            device: self.device,
            inode,
            kind: FileKind::Directory,
            permissions: self.options.directory_mode,
            // As on file systems that do not count subdirectories.
            links: 1,
            user: self.options.user,
            group: self.options.group,
            special_device: 0,
            size_bytes: 0,
            blocks: 0,
            block_size_bytes: BLOCK_BYTES,
            accessed: self.began,
            modified: self.began,
            changed: self.began,
            tag: Tag::Nothing,
        }
    }

    /// The cached listing of a directory; otherwise its first page is listed.
    fn cached_listing(&self, directory: &str) -> Result<Option<Arc<Snapshot>>> {
        if let Some(snapshot) = self.listings.get(directory) {
            return Ok(Some(snapshot));
        }
        if self.is_offline() {
            return Ok(self.listings.last(directory));
        }
        if !self.listings.is_enabled() {
            return Ok(None);
        }
        let mark = self.listings.mark();
        let answer = Snapshot::take(&*self.bucket, directory, 1, self.listings.held());
        if self.note_answer(&answer) {
            return Ok(self.listings.last(directory));
        }
        let snapshot = Arc::new(self.or_errno(answer)?);
        self.note_nameless(directory, &snapshot);
        self.listings.keep(directory, &snapshot, mark);
        Ok(Some(snapshot))
    }

    /// Counts the keys of a listing that cannot be shown, and remembers them.
    fn note_nameless(&self, directory: &str, snapshot: &Snapshot) {
        self.hidden.fetch_add(snapshot.hidden, Relaxed);
        let mut nameless = self.nameless.lock();
        if nameless.is_empty() && snapshot.nameless.is_empty() {
            return;
        }
        // The directory's earlier keys may be gone.
        let is_here = |key: &str| keys::directory_of(key) == directory;
        nameless.retain(|key, _| !is_here(key));
        let room = NAMELESS_MAX.saturating_sub(nameless.len());
        nameless.extend(snapshot.nameless.iter().take(room).cloned());
    }

    /// Looks up a key with a request of its own.
    fn look_up(&self, key: &str) -> Result<Option<Item>> {
        if self.is_offline() {
            return self.remembered(key);
        }
        let rules = self.bucket.key_rules();
        if rules.creatable(key).is_err() && rules.creatable(&format!("{key}/")).is_err() {
            // The store would reject a request for this key: the listing says whether it exists.
            let (directory, name) = keys::split(key);
            return Ok(self.whole_listing(directory)?.find(name).flatten().cloned());
        }
        // A directory hides an object of its name, so it is looked up first.
        let answer = self.exists(&format!("{key}/"));
        if self.note_answer(&answer) {
            return self.remembered(key);
        }
        if self.or_errno(answer)? {
            self.remember(key, Item::Directory);
            return Ok(Some(Item::Directory));
        }
        self.look_up_object(key)
    }

    fn look_up_object(&self, key: &str) -> Result<Option<Item>> {
        if self.bucket.key_rules().sendable(key).is_err() {
            return Ok(None);
        }
        let answer = self.bucket.head(key);
        if self.note_answer(&answer) {
            return self.remembered(key);
        }
        match answer {
            Ok(object) => {
                self.objects.insert_object(&object);
                Ok(Some(Item::File(object)))
            }
            Err(BucketError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.errno(&error)),
        }
    }

    /// A file whose changes are not uploaded yet.
    fn staged_at(&self, key: &str) -> Option<Object> {
        self.writing.as_ref().and_then(|writing| writing.staged_at(key))
    }

    fn find(&self, directory: &str, name: &OsStr) -> Result<Found<Node>> {
        let key = self.key(directory, name)?;
        if let Some(staged) = self.staged_at(&key) {
            return self.found(&key, &Item::File(staged));
        }
        let name = &key[directory.len()..];
        let snapshot = self.cached_listing(directory)?;
        let known = snapshot.as_ref().and_then(|snapshot| snapshot.find(name));
        let asked;
        let item = match known {
            Some(item) => item,
            None => {
                asked = self.look_up(&key)?;
                asked.as_ref()
            }
        };
        item.map_or(Err(Errno::NOENT), |item| self.found(&key, item))
    }

    /// The listing of a directory: whole, unless the directory has very many names.
    fn whole_listing(&self, directory: &str) -> Result<Arc<Snapshot>> {
        if let Some(snapshot) = self.listings.get(directory).filter(|listing| listing.is_whole()) {
            return Ok(snapshot);
        }
        let last = || self.listings.last(directory).filter(|last| last.is_whole()).ok_or(Errno::IO);
        if self.is_offline() {
            return last();
        }
        let mark = self.listings.mark();
        let answer = Snapshot::take_most(&*self.bucket, directory, self.listings.held());
        if self.note_answer(&answer) {
            return last();
        }
        let snapshot = Arc::new(self.or_errno(answer)?);
        self.note_nameless(directory, &snapshot);
        if !snapshot.exists() && directory != self.options.prefix {
            return Err(Errno::NOENT);
        }
        if snapshot.is_whole() {
            self.listings.keep(directory, &snapshot, mark);
        }
        Ok(snapshot)
    }

    fn node_attributes(&self, node: &Node) -> Result<Attributes> {
        if *node.key() == *self.options.prefix {
            return Ok(self.directory_attributes_of(node.key()));
        }
        if node.is_gone() {
            return Err(Errno::STALE);
        }
        if let Some(staged) = self.staged_at(node.key()) {
            return Ok(self.file_attributes(&staged));
        }
        let key = node.key().strip_suffix('/').unwrap_or(node.key());
        let (parent, name) = keys::split(key);
        let listing = self.listings.get(parent);
        let known = listing.as_ref().and_then(|snapshot| snapshot.find(name));
        let asked;
        let item = match known {
            Some(item) => item,
            None if self.is_offline() => {
                asked = self.remembered(key)?;
                asked.as_ref()
            }
            None if node.is_directory() => {
                asked = self.or_errno(self.exists(node.key()))?.then_some(Item::Directory);
                asked.as_ref()
            }
            None => {
                asked = self.look_up_object(key)?;
                asked.as_ref()
            }
        };
        match (item, node.is_directory()) {
            (Some(Item::Directory), true) => Ok(self.directory_attributes_of(node.key())),
            (Some(Item::File(object)), false) => {
                Ok(self.file_attributes(&self.with_metadata(object)?))
            }
            _ => Err(Errno::STALE),
        }
    }
}

impl<B> Drop for BucketOrigin<B> {
    fn drop(&mut self) {
        if let Some(writing) = &self.writing {
            writing.end();
        }
    }
}
