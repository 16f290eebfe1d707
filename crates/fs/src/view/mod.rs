//! The view: every file-system operation, in terms of the origin below and the engine.
//!
//! This layer knows what a file system is and nothing of the protocol. The session translates, so
//! another transport can take its place.
//!
//! # Order of things
//!
//! Every change goes to the origin first and is answered when the origin has it. Then the view
//! invalidates what the engine holds of it. A reader that overlaps a change may see either side of
//! it. One that starts after the change was answered sees the change ([`crate::version`]).
//!
//! # Locks
//!
//! No lock is held here across a call to the origin, the engine or the kernel, and none is taken
//! while another is held. There is one exception: the parts of a large append past the page cache,
//! by one handle ([`crate::append_parts`]). They take turns, and the turn is held while a part is
//! written. No other request waits for it.

mod attributes;
mod directories;
mod files;
mod known_path;
mod load;
mod namespace;
mod passthrough;
mod read_ahead;
mod reading;
mod write_target;
mod writing;

pub(crate) use directories::OpenedDirectory;
pub(crate) use files::OpenedFile;
pub(crate) use passthrough::Passthrough;
pub(crate) use reading::Read;
pub(crate) use write_target::WriteMode;

use crate::counters::Counters;
use crate::estale_retries::EstaleRetries;
use crate::handle::{Handles, OpenDirectory, OpenFile};
use crate::held_names::HeldNames;
use crate::inode::{Inode, InodeTable, KernelName, Leaves};
use crate::inode_limit::InodeLimit;
use crate::inode_number::{Numbers, ROOT};
use crate::kernel::Kernel;
use crate::late_releases::LateReleases;
use crate::memory_bell::MemoryBell;
use crate::observers::Observers;
use crate::origin_latency::OriginLatency;
use crate::record::{Entry, Key};
use crate::renames_seen::{NameState, RenamesSeen};
use crate::second_level::SecondLevel;
use crate::version::Versions;
use crate::workers::Workers;
use hashbrown::HashMap;
use ogive_arc::Cache;
use ogive_origin::{Attributes, Errno, FileKind, Found, Needed, Origin};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// How a view behaves.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Size of a record in bytes; a power of two.
    pub(crate) record_size_bytes: u64,
    /// Reads bypass the kernel's page cache.
    pub(crate) direct_io: bool,
    /// Evicts first the records that the page cache has taken over.
    pub(crate) exclusive: bool,
    /// How long the kernel may cache names and attributes.
    pub(crate) metadata_ttl: Duration,
    /// How long the kernel may cache that a name is missing.
    pub(crate) negative_ttl: Duration,
    /// How far ahead of a sequential reader to read, in bytes.
    pub(crate) prefetch_max_bytes: u64,
    /// Nothing may be changed.
    pub(crate) read_only: bool,
    /// The origin never changes, so the kernel may cache everything for ever.
    pub(crate) immutable: bool,
    /// Which side decides what users may do.
    pub(crate) permissions: Permissions,
}

/// Which side decides what users may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Permissions {
    /// The kernel above the mount checks mode bits and access lists.
    #[default]
    Kernel,
    /// The source, for the one user that this process runs as.
    Source,
    /// The source, for each user by itself.
    SourceForEach,
}

impl Permissions {
    /// Whether the kernel above the mount checks nothing.
    pub(crate) fn are_of_source(self) -> bool {
        self != Self::Kernel
    }
}

impl Settings {
    /// How long the kernel may follow a name without asking. It may not at all where the source
    /// decides for each user, and on each step of a path. The kernel would let other users follow
    /// the path of the first.
    pub(crate) fn name_ttl(&self) -> Duration {
        if self.asks_for_each() { Duration::ZERO } else { self.metadata_ttl }
    }

    /// Whether the source decides for each user.
    pub(crate) fn asks_for_each(&self) -> bool {
        self.permissions == Permissions::SourceForEach
    }
}

/// A mount's state, shared by all its threads.
pub(crate) struct View<O: Origin> {
    pub(crate) origin: O,
    pub(crate) settings: Settings,
    pub(crate) cache: Cache<Key, Entry>,
    pub(crate) inodes: InodeTable<O>,
    pub(crate) kernel: Kernel,
    pub(crate) workers: Workers,
    pub(crate) counters: Counters,
    pub(crate) observers: Observers,
    pub(crate) passthrough: Passthrough,
    pub(crate) second_level: Option<Arc<SecondLevel>>,
    pub(crate) inode_limit: InodeLimit,
    /// Wakes the threads that can give memory back.
    pub(crate) memory_bell: MemoryBell,
    estale_retries: EstaleRetries,
    /// Counts released files, for removals that wait for one.
    late_releases: LateReleases,
    renames_seen: RenamesSeen,
    /// How fast the origin is at present.
    origin_latency: OriginLatency,
    /// How far ahead to read now, in bytes.
    prefetch_distance: AtomicU64,
    numbers: Numbers,
    /// Attributes of the root when it was last read.
    root: Mutex<Attributes>,
    versions: Versions,
    files: Handles<OpenFile<O>>,
    directories: Handles<OpenDirectory<O>>,
    /// Names that open directories hold.
    pub(crate) held_names: Arc<HeldNames>,
    /// Attributes that came with names are stale at this age.
    attributes_old: Duration,
    /// Handles of directories that show the kernel's cached names, and since when.
    shown: Mutex<HashMap<u64, Instant>>,
}

/// An inode and its attributes, as a reply gives them to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeAttributes {
    /// Its node id.
    pub(crate) number: u64,
    /// Its number in `st_ino`.
    pub(crate) shown: u64,
    pub(crate) generation: u64,
    pub(crate) attributes: Attributes,
}

impl<O: Origin> View<O> {
    /// A view of `origin`, whose root is looked up at once.
    pub(crate) fn new(
        origin: O,
        settings: Settings,
        cache: Cache<Key, Entry>,
        versions: Versions,
        workers: Workers,
        inode_limit: InodeLimit,
        second_level: Option<Arc<SecondLevel>>,
    ) -> Result<Self> {
        let root = origin.root()?;
        // For this long neither the kernel nor a client in between asks again.
        let attributes_old = origin.attribute_ttl().max(settings.metadata_ttl);
        let view = Self {
            numbers: Numbers::new((root.attributes.device, root.attributes.inode)),
            root: Mutex::new(root.attributes),
            origin,
            settings,
            cache,
            inodes: InodeTable::new(),
            inode_limit,
            memory_bell: MemoryBell::default(),
            second_level,
            estale_retries: EstaleRetries::default(),
            late_releases: LateReleases::default(),
            renames_seen: RenamesSeen::default(),
            origin_latency: OriginLatency::default(),
            prefetch_distance: AtomicU64::new(0),
            kernel: Kernel::default(),
            workers,
            counters: Counters::default(),
            observers: Observers::default(),
            passthrough: Passthrough::default(),
            versions,
            files: Handles::new(),
            directories: Handles::new(),
            held_names: Arc::default(),
            attributes_old,
            shown: Mutex::default(),
        };
        view.inodes.remember(ROOT, root);
        view.limit_prefetch();
        Ok(view)
    }

    /// The inode of this number. Only a confused kernel asks for one that no reply gave it.
    pub(crate) fn inode(&self, number: u64) -> Result<Arc<Inode<O>>> {
        self.inodes.get(number).ok_or(Errno::STALE)
    }

    /// The number of some open file.
    pub(crate) fn any_open_file(&self) -> Option<u64> {
        self.files.any().map(|open| open.inode.number)
    }

    fn file(&self, handle: u64) -> Result<Arc<OpenFile<O>>> {
        let open = self.files.get(handle).ok_or(Errno::BADF)?;
        open.is_opened();
        Ok(open)
    }

    fn directory(&self, handle: u64) -> Result<Arc<OpenDirectory<O>>> {
        self.directories.get(handle).ok_or(Errno::BADF)
    }

    /// Checks that the name by which the kernel came to this inode still leads there.
    ///
    /// The kernel caches names for a while. Meanwhile another file may have been renamed to this
    /// name. The kernel has to learn that before it opens or truncates the file. On `ESTALE` it
    /// looks the path up again and retries once, on the same thread.
    ///
    /// Some openers have no path to look up again: a fanotify watcher, an NFS server with a file
    /// handle, a stacked file system. Their program would see the error. So the error is given only
    /// where a name that the kernel may still cache was changed behind the mount.
    ///
    /// The kernel came by a name that was cached when it sent the request. That name is checked,
    /// however long the source has taken since.
    ///
    /// # Errors
    /// `ESTALE` if one of the names by which the kernel may have come leads elsewhere.
    fn check_name(&self, inode: &Inode<O>, thread: u32, arrived: Instant) -> Result<()> {
        let names = inode.kernel_names.cached(arrived, self.name_memory());
        if names.is_some_and(|names| names.iter().all(|name| self.still_leads(name, inode))) {
            return Ok(());
        }
        self.estale_retries.expect(thread, (inode.kernel_names.last(), inode.number), false);
        Err(Errno::STALE)
    }

    /// Whether a name that the kernel caches leads to the inode, or the kernel has forgotten it.
    fn still_leads(&self, name: &KernelName, inode: &Inode<O>) -> bool {
        /// A name that was changed more often is not followed further.
        const MOVES_MAX: usize = 16;
        let mut now = name.clone();
        for _ in 0..MOVES_MAX {
            // The kernel has forgotten the directory, and with it all names in it.
            let Some(parent) = self.inodes.get(now.name.parent) else { return true };
            if self.origin.leads_to(&parent.node, &now.name.name, &inode.node) == Ok(true) {
                if now != *name {
                    inode.kernel_names.changed(name, Some(now));
                }
                return true;
            }
            match self.renames_seen.since(&now) {
                NameState::Unchanged => return false,
                NameState::Removed => {
                    inode.kernel_names.changed(name, None);
                    return true;
                }
                NameState::Moved(to) => now = to,
            }
        }
        false
    }

    /// Whether a request that came by a name must check it. It need not if the kernel has just
    /// looked the name up, or if only this mount changes names.
    fn must_check_name(&self, number: u64, thread: u32) -> bool {
        self.names_may_be_old() && !self.estale_retries.is_retry(thread, number)
    }

    /// Notes that a thread gets `ESTALE`, which makes the kernel look the path up again.
    pub(crate) fn met_stale(&self, thread: u32) {
        self.estale_retries.met_stale(thread);
    }

    /// Whether the kernel may cache a name that leads elsewhere by now.
    fn names_may_be_old(&self) -> bool {
        !self.settings.name_ttl().is_zero() && !self.versions.is_sole_writer()
    }

    /// The kernel gives back `lookups` references to an inode.
    pub(crate) fn forget(&self, number: u64, lookups: u64) {
        let Some(Leaves { inode, mostly_empty }) = self.inodes.forget(number, lookups) else {
            return;
        };
        if let Some(inode) = inode {
            self.origin.forgotten(&inode.node);
        }
        if mostly_empty {
            self.inode_limit.give_memory_back();
        }
    }

    /// Adds the object to the inodes: a reply is about to give it to the kernel.
    fn remember(&self, found: Found<O::Node>) -> (Arc<Inode<O>>, NodeAttributes) {
        let attributes = found.attributes;
        let shown = self.numbers.of(attributes.device, attributes.inode);
        let (inode, again) = self.inodes.remember(shown, found);
        if let Some(again) = again {
            self.origin.met_again(&inode.node, &again);
        }
        let known = self.report(&inode, attributes);
        (inode, known)
    }

    /// Notes that a reply is about to give the kernel these attributes of this inode.
    fn report(&self, inode: &Inode<O>, attributes: Attributes) -> NodeAttributes {
        inode.report(&attributes);
        let Inode { number, shown, generation, .. } = *inode;
        NodeAttributes { number, shown, generation, attributes }
    }

    /// Reads the origin's root again. A root that has gone must not look like an empty directory,
    /// and may return with another number.
    ///
    /// # Errors
    /// `EIO` while there is no root.
    fn refresh_root(&self) -> Result<(Arc<Inode<O>>, NodeAttributes)> {
        let root = self.origin.root().map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::NOTCONN => {
                Errno::IO
            }
            other => other,
        })?;
        let attributes = root.attributes;
        if attributes.kind != FileKind::Directory {
            return Err(Errno::IO);
        }
        self.numbers.set_root((attributes.device, attributes.inode));
        *self.root.lock() = attributes;
        let (inode, _) = self.inodes.remember(ROOT, root);
        let known = self.report(&inode, attributes);
        Ok((inode, known))
    }

    /// Attributes of the root when it was last read.
    pub(crate) fn last_root(&self) -> Attributes {
        *self.root.lock()
    }

    /// Attributes of the root; the last known ones after it has gone. The kernel needs them before
    /// it lets any user into the control directory, which says what has happened. Every other
    /// request to the root is refused.
    fn root_attributes(&self) -> Result<NodeAttributes> {
        self.refresh_root().map(|(_, known)| known).or_else(|errno| {
            let attributes = *self.root.lock();
            let root = self.inode(ROOT).map_err(|_| errno)?;
            Ok(NodeAttributes {
                number: ROOT,
                shown: ROOT,
                generation: root.generation,
                attributes,
            })
        })
    }

    /// Runs an operation in a directory. If the directory is a root that had gone and is back, runs
    /// it again in the new root.
    fn in_directory<T>(&self, parent: u64, operation: impl Fn(&O::Node) -> Result<T>) -> Result<T> {
        let inode = self.inode(parent)?;
        let had_gone = parent == ROOT && self.origin.availability().gone.is_some();
        match operation(&inode.node) {
            Err(errno @ (Errno::NOENT | Errno::STALE | Errno::NOTCONN | Errno::IO))
                if parent == ROOT && (had_gone || errno != Errno::IO) =>
            {
                if errno == Errno::NOENT && !had_gone && self.has_names(&inode) {
                    return Err(errno);
                }
                let (current, _) = self.refresh_root()?;
                let is_new = had_gone || !Arc::ptr_eq(&current, &inode);
                if is_new { operation(&current.node) } else { Err(errno) }
            }
            other => other,
        }
    }

    /// Whether a directory still exists. In a removed directory every name is missing.
    fn has_names(&self, directory: &Inode<O>) -> bool {
        let asked = self.origin.attributes_needed(&directory.node, None, Needed::Links);
        asked.is_ok_and(|attributes| attributes.links > 0)
    }

    fn writable(&self) -> Result<()> {
        if self.settings.read_only { Err(Errno::ROFS) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
