//! Operations on names: look up, make, link, rename and remove.

use super::{NodeAttributes, Result, View};
use crate::inode::{Inode, Name};
use crate::late_releases;
use crate::record::{Entry, Key};
use ogive_arc::Access;
use ogive_origin::{Caller, Errno, FileKind, Found, Make, Needed, Origin, RenameFlags, Time};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl<O: Origin> View<O> {
    /// Finds a name for a thread. The kernel counts a reference for each success.
    pub(crate) fn lookup(&self, parent: u64, name: &OsStr, thread: u32) -> Result<NodeAttributes> {
        let revalidates = self.estale_retries.revalidates(thread);
        let found = self.in_directory(parent, |node| match revalidates {
            true => self.origin.revalidate_name(node, name),
            false => self.origin.lookup(node, name),
        });
        match found {
            Ok(found) => {
                let known = self.found(parent, name, found);
                self.estale_retries.found(thread, (parent, name), known.number);
                Ok(known)
            }
            Err(errno) => {
                self.estale_retries.give_up(thread);
                Err(errno)
            }
        }
    }

    /// Whether the kernel may cache that a name in a directory is missing. It may not where names
    /// fold case: a create under another spelling would not clear the entry.
    pub(crate) fn may_remember_absence(&self, parent: u64) -> bool {
        let folds = |inode: Arc<Inode<O>>| self.origin.folds_case_in(&inode.node);
        !self.settings.negative_ttl.is_zero()
            && !self.settings.asks_for_each()
            && (self.settings.immutable || !self.inodes.get(parent).is_some_and(folds))
    }

    /// Whether the kernel may follow a name for a while without asking. It may not where names fold
    /// case: the object may be removed or renamed by another spelling.
    pub(crate) fn may_remember_name(&self, known: &NodeAttributes) -> bool {
        self.settings.immutable
            || (known.attributes.kind != FileKind::Symlink
                && !self.origin.folds_case(known.attributes.device))
    }

    /// How long the kernel may cache a name after the reply was sent, with time for the reply to
    /// arrive.
    pub(super) fn name_memory(&self) -> Duration {
        self.settings.name_ttl() * 2 + Duration::from_secs(1)
    }

    /// Adds the object that a name led to.
    pub(super) fn found(&self, parent: u64, name: &OsStr, found: Found<O::Node>) -> NodeAttributes {
        let (inode, known) = self.remember(found);
        inode.kernel_names.report(parent, name, Instant::now(), self.name_memory());
        known
    }

    /// Notes that an object was moved away from a name through the mount, or removed. A reply sent
    /// since `begun` may already have given the kernel the new name, so the change counts from
    /// `begun`.
    fn has_left(&self, (parent, name): (u64, &OsStr), to: Option<(u64, &OsStr)>, begun: Instant) {
        if self.names_may_be_old() {
            let to = to.map(|(parent, name)| Name::of(parent, name));
            self.renames_seen.note(Name::of(parent, name), to, begun, self.name_memory());
        }
    }

    /// Makes a directory, symbolic link or special file.
    pub(crate) fn make(
        &self,
        parent: u64,
        name: &OsStr,
        what: Make<'_>,
        caller: Caller,
    ) -> Result<NodeAttributes> {
        self.writable()?;
        let found = self.in_directory(parent, |node| self.origin.make(node, name, what, caller))?;
        Ok(self.found(parent, name, found))
    }

    /// Gives an inode another name.
    pub(crate) fn link(&self, number: u64, parent: u64, name: &OsStr) -> Result<NodeAttributes> {
        self.writable()?;
        let inode = self.inode(number)?;
        let found = self.in_directory(parent, |parent| {
            match self.origin.link(&inode.node, None, parent, name) {
                // Only a program that has it open can reach an object without a name.
                Err(errno @ (Errno::STALE | Errno::NOENT)) => match inode.any_file() {
                    Some(open) => self.origin.link(&inode.node, Some(&open.file), parent, name),
                    None => Err(errno),
                },
                other => other,
            }
        })?;
        Ok(self.found(parent, name, found))
    }

    /// Removes the name of anything but a directory.
    pub(crate) fn unlink(&self, parent: u64, name: &OsStr) -> Result<()> {
        self.writable()?;
        let begun = Instant::now();
        self.in_directory(parent, |node| self.origin.unlink(node, name))?;
        self.has_left((parent, name), None, begun);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&self, parent: u64, name: &OsStr) -> Result<()> {
        self.writable()?;
        let begun = Instant::now();
        let remove = || self.in_directory(parent, |node| self.origin.remove_directory(node, name));
        match remove() {
            // Programs may have closed the hidden files, and the kernel has yet to send the
            // releases.
            Err(Errno::NOTEMPTY)
                if self.origin.has_only_hidden_files(&self.inode(parent)?.node, name) =>
            {
                self.late_releases.retry(late_releases::PATIENCE, remove)?;
            }
            other => other?,
        }
        self.has_left((parent, name), None, begun);
        Ok(())
    }

    /// Renames.
    pub(crate) fn rename(
        &self,
        (from, old_name): (u64, &OsStr),
        (to, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        self.writable()?;
        let (old, new) = ((from, old_name), (to, new_name));
        let to = self.inode(to)?;
        let moving = self.expect_move(old, new);
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        let back = if is_exchange { self.expect_move(new, old) } else { None };
        let begun = Instant::now();
        let result = self.in_directory(from, |from| {
            self.origin.rename((from, old_name), (&to.node, new_name), flags)
        });
        for (inode, old, new) in [(moving, old, new), (back, new, old)] {
            let Some(inode) = inode else { continue };
            match result {
                Ok(()) => self.has_moved(&inode, old, new),
                Err(_) => self.has_moved(&inode, new, old),
            }
        }
        if result.is_ok() {
            self.has_left(new, is_exchange.then_some(old), begun);
            self.has_left(old, Some(new), begun);
        }
        result
    }

    /// Gives an origin that keeps places the object that a rename through the mount is about to
    /// move, and returns it. The kernel has looked the object up. If it is not in the table, no
    /// request for it will come.
    fn expect_move(&self, old: (u64, &OsStr), new: (u64, &OsStr)) -> Option<Arc<Inode<O>>> {
        if !self.origin.keeps_places() {
            return None;
        }
        let (from, to) = (self.inodes.get(old.0)?, self.inodes.get(new.0)?);
        let found = self.origin.lookup(&from.node, old.1).ok()?;
        let shown = self.numbers.of(found.attributes.device, found.attributes.inode);
        let inode = self.inodes.shown_as(shown).filter(|known| known.node == found.node)?;
        self.origin.expect_at(&inode.node, (&to.node, new.1));
        Some(inode)
    }

    fn has_moved(&self, inode: &Inode<O>, old: (u64, &OsStr), new: (u64, &OsStr)) {
        if let (Some(from), Some(to)) = (self.inodes.get(old.0), self.inodes.get(new.0)) {
            self.origin.has_moved(&inode.node, (&from.node, old.1), (&to.node, new.1));
        }
    }

    /// Target of a symbolic link, cached as long as the link is unchanged.
    pub(crate) fn read_link(&self, number: u64) -> Result<OsString> {
        let inode = self.inode(number)?;
        let now = Time::now();
        let attributes = self.origin.attributes_needed(&inode.node, None, Needed::Version)?;
        let (version, settled) = self.versions.of(&attributes.identity(inode.generation), now);
        if !settled {
            return self.origin.read_link(&inode.node);
        }
        let load = || self.origin.read_link(&inode.node).map(Entry::Link);
        let entry = self.load_metadata(Key::link(version), load)?;
        match &*entry {
            Entry::Link(target) => Ok(target.clone()),
            Entry::Record(..) | Entry::Listing(_) => self.origin.read_link(&inode.node),
        }
    }

    /// A piece of metadata from the cache, or from the origin through it.
    pub(super) fn load_metadata(
        &self,
        key: Key,
        load: impl FnOnce() -> Result<Entry>,
    ) -> Result<ogive_arc::Hold<Key, Entry>> {
        let load = || {
            let entry = load()?;
            let weight_bytes = entry.weight_bytes();
            Ok((entry, weight_bytes))
        };
        self.cache
            .get_or_load(&key, ogive_arc::Kind::Metadata, Access::Demand, load)
            .map(|(hold, _)| hold)
            .map_err(super::reading::errno)
    }

    /// Makes and opens a regular file.
    pub(crate) fn create_node(
        &self,
        parent: u64,
        name: &OsStr,
        flags: ogive_origin::OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(Arc<Inode<O>>, NodeAttributes, O::File)> {
        self.writable()?;
        let (found, file) =
            self.in_directory(parent, |node| self.origin.create(node, name, flags, mode, caller))?;
        let (inode, known) = self.remember(found);
        inode.kernel_names.report(parent, name, Instant::now(), self.name_memory());
        Ok((inode, known, file))
    }
}
