//! A bucket as the origin of a mount.
//!
//! # Names and numbers
//! A node is a key. The key of a directory ends in a slash; the root is the mounted prefix. Inode
//! numbers are made of store, bucket and key ([`crate::keys`]), so they are the same on every
//! mount. A rename makes another object.
//!
//! # Versions
//! The version of a file is a digest of its strong ETag, size and time. An open file is *pinned*:
//! every read asks for its ETag, and fails with `ESTALE` once the object is another one. So no open
//! file mixes two objects. A file without a strong ETag has no version and is not pinned. A
//! directory has no version; each reader lists it again.
//!
//! # Requests
//! A lookup lists its directory, and the listing answers further lookups until it is too old
//! ([`listing_cache`]). In a directory of more than 1,000 names a lookup asks for what is below the
//! name, and then for the object. An opening asks once, for the object; for a small one that is not
//! cached the answer includes the bytes ([`small_object_open`]). A read asks for the range of a
//! record, or once for a run of records.
//!
//! # Changes
//! A bucket is writable only with a journal ([`writing`]); otherwise changes are refused.
//!
//! # Locks
//! None is held across a request, except the gates of files that are changed.

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
use read_run::Readers;
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
/// Room that a bucket is said to have: it has no end.
const ROOM_BYTES: u64 = 1 << 60;

/// Keys that cannot be shown that are remembered.
const NAMELESS_MAX: usize = 10_000;

/// How a bucket looks as a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginOptions {
    /// The part of the bucket to show: keys that begin so. Empty, or ending in a slash.
    pub prefix: String,
    /// How long a listing answers for the names in it.
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

/// A bucket, or what is under a prefix in it.
pub struct BucketOrigin<B> {
    bucket: Arc<B>,
    options: OriginOptions,
    identity: crate::BucketIdentity,
    device: u64,
    listings: Arc<ListingCache>,
    nodes: Nodes,
    /// How it is changed; `None` if it is not.
    writing: Option<Arc<Writing>>,
    messages: Arc<Messages>,
    /// The time of directories, which have none.
    began: Time,
    /// Keys found so far that cannot be shown; one that is found again counts again.
    hidden: AtomicU64,
    /// Which those are that the last listings came across.
    nameless: Mutex<BTreeMap<Box<str>, &'static str>>,
    /// The cost of requests, and its budget.
    cost: CostMeter,
    readers: Readers,
    /// The last answers about objects.
    objects: Arc<ObjectCache>,
    /// Compares checksums of what was read.
    verifier: Arc<ChecksumVerifier>,
    /// Small objects that come with the answer to their opening.
    small_objects: SmallObjects,
    /// Whether it answers; `None` where nothing that is old is shown.
    offline: Option<Arc<Offline>>,
}

impl<B: Bucket> BucketOrigin<B> {
    /// Shows a bucket. It is asked once, so that a mount of one that is not there, or that may not
    /// be read, fails at once.
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
            readers: Readers::default(),
            objects: Arc::new(ObjectCache::new(options.convention.is_on())),
            verifier: Arc::default(),
            small_objects: SmallObjects::default(),
            offline: None,
            bucket: Arc::new(bucket),
            options,
        })
    }

    /// The same for a bucket that is changed as well, by way of a journal. What an earlier mount
    /// has left in it is uploaded first, as far as the store takes it.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`BucketError::Unsupported`] for a store that does not keep the
    /// conditions without which somebody's object could be overwritten; what the store says to the
    /// rename of a directory that an earlier mount was at.
    pub fn open_writable(
        bucket: B,
        options: OriginOptions,
        opened: crate::journal::Opened,
        write: WriteOptions,
    ) -> std::result::Result<Self, crate::staged::StagedError> {
        let mut origin = Self::over(bucket, options)?;
        // A prefix under which there is nothing yet is where something is to be.
        if !origin.exists(&origin.options.prefix)? && !origin.options.prefix.is_empty() {
            let prefix = &origin.options.prefix;
            origin.messages.say(format_args!("there is nothing under {prefix} yet"));
        }
        let bucket = Arc::clone(&origin.bucket);
        let shared = (Arc::clone(&origin.messages), Arc::clone(&origin.listings));
        let convention = origin.options.convention;
        origin.nodes = Nodes::changing();
        origin.writing = Some(Writing::start(bucket, opened, (write, convention), shared)?);
        Ok(origin)
    }

    /// The name of a journal's source, which is the same for all mounts of it.
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

    /// Whether there is anything under a prefix.
    fn exists(&self, prefix: &str) -> crate::Result<bool> {
        // Below a name of the longest length nothing can be, nor below one that is no directory's.
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

    /// The key of a name in a directory. That of a directory may be one that no file can have: of
    /// white space at its end, a slash follows.
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
            // As file systems do that do not count directories in directories.
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

    /// The listing of a directory, as far as it is cached; otherwise one page is listed.
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

    /// Counts the keys of a listing that cannot be shown, and remembers which they are.
    fn note_nameless(&self, directory: &str, snapshot: &Snapshot) {
        self.hidden.fetch_add(snapshot.hidden, Relaxed);
        let mut nameless = self.nameless.lock();
        if nameless.is_empty() && snapshot.nameless.is_empty() {
            return;
        }
        // The earlier ones may have gone.
        let is_here = |key: &str| keys::directory_of(key) == directory;
        nameless.retain(|key, _| !is_here(key));
        let room = NAMELESS_MAX.saturating_sub(nameless.len());
        nameless.extend(snapshot.nameless.iter().take(room).cloned());
    }

    /// Looks up a key by a request of its own.
    fn look_up(&self, key: &str) -> Result<Option<Item>> {
        if self.is_offline() {
            return self.remembered(key);
        }
        let rules = self.bucket.key_rules();
        if rules.creatable(key).is_err() && rules.creatable(&format!("{key}/")).is_err() {
            // The store would refuse the question: the listing says whether it exists.
            let (directory, name) = keys::split(key);
            return Ok(self.whole_listing(directory)?.find(name).flatten().cloned());
        }
        // A directory hides an object of its name, so it is asked for first.
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

    /// A file with changes that are not uploaded yet.
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

    /// The listing of a directory, whole unless it has very many names.
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
