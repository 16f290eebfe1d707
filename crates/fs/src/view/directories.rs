//! Reading directories.

use super::{NodeAttributes, Result, View};
use crate::handle::{DirectoryView, Names, OpenDirectory, Pass};
use crate::inode::{Inode, Sharing};
use crate::inode_number::ROOT;
use crate::listing::{Listing, read_with_attributes};
use crate::record::{Entry, Key, Version};
use ogive_arc::{Access, Kind, LoadError};
use ogive_origin::{DirectoryEntry, Errno, FileKind, Origin, Time};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::OsStr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The kernel gets this many names with attributes in one or two replies. For so few, waiting for a
/// program to ask for more attributes than the first is not worth it.
const FEW_NAMES: usize = 1024;

/// An entry on its way to the kernel.
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a OsStr,
    /// The offset after this entry.
    pub(crate) cookie: u64,
    /// Number to show for it.
    pub(crate) number: u64,
    pub(crate) kind: Option<FileKind>,
    /// Inode and attributes, if requested; the kernel counts a reference.
    pub(crate) known: Option<NodeAttributes>,
}

/// A directory that was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedDirectory {
    /// Number of the handle.
    pub(crate) handle: u64,
    /// Whether the handle shares the kernel's cached names of the directory.
    pub(crate) sharing: Option<Sharing>,
}

/// A directory that is too large for a listing, or a listing beyond the bound: an answer of the
/// loader, not an error.
#[derive(Clone, Copy)]
enum Unlisted {
    TooLarge,
    Failed(Errno),
}

impl<O: Origin> View<O> {
    /// Opens a directory for a thread.
    /// # Errors
    /// `ESTALE` makes the kernel look the path up again and retry once.
    pub(crate) fn open_directory(&self, number: u64, thread: u32) -> Result<OpenedDirectory> {
        if self.settings.immutable
            && !self.settings.asks_for_each()
            && let Some(known) = self.inodes.get(number)
            && let Some(names) = known.dir_cache.known()
        {
            // It cannot have changed since the earlier open.
            return Ok(self.add_directory(known, OnceLock::new(), (names.0, true), names.1));
        }
        let inode = match number {
            ROOT => self.refresh_root()?.0,
            number => self.inode(number)?,
        };
        if number != ROOT && self.must_check_name(number, thread) {
            self.check_name(&inode, thread, Instant::now())?;
        }
        let now = Time::now();
        let directory = self.origin.open_directory(&inode.node)?;
        let attributes = self.origin.directory_attributes(&directory)?;
        let version = self.versions.of(&attributes.identity(inode.generation), now);
        Ok(self.add_directory(inode, directory.into(), version, attributes.device))
    }

    fn add_directory(
        &self,
        inode: Arc<Inode<O>>,
        directory: OnceLock<O::Directory>,
        version: (Version, bool),
        device: u64,
    ) -> OpenedDirectory {
        let view = Mutex::new(DirectoryView::fresh(version));
        let settled = Some(version.0).filter(|_| version.1);
        let memory = self.settings.metadata_ttl;
        let sharing = settled.and_then(|version| inode.dir_cache.open((version, device), memory));
        let dir_cookies = OnceLock::new();
        let open = OpenDirectory { inode, directory, device, sharing, view, dir_cookies };
        let handle = self.directories.insert(Arc::new(open));
        if sharing.is_some() {
            self.shown.lock().insert(handle, Instant::now());
        }
        OpenedDirectory { handle, sharing }
    }

    /// The directory of a handle in the origin.
    fn origin_directory<'a>(&self, open: &'a OpenDirectory<O>) -> Result<&'a O::Directory> {
        if let Some(directory) = open.directory.get() {
            return Ok(directory);
        }
        let directory = self.origin.open_directory(&open.inode.node)?;
        Ok(open.directory.get_or_init(|| directory))
    }

    /// Lets go of a directory handle.
    pub(crate) fn release_directory(&self, handle: u64) {
        let Some(open) = self.directories.remove(handle) else { return };
        if let Some(sharing) = open.sharing {
            self.shown.lock().remove(&handle);
            open.inode.dir_cache.is_opened(sharing);
            open.inode.dir_cache.close();
        }
        drop(open);
        if self.held_names.has_shrunk() {
            self.inode_limit.give_memory_back();
        }
    }

    /// Makes the kernel drop names that it has shown for too long to programs that opened a
    /// directory long ago. A rewind would show them again. Returns whether some handles still have
    /// to be checked.
    pub(crate) fn drop_old_names(&self) -> bool {
        let memory = self.settings.metadata_ttl;
        let mut old = Vec::new();
        let mut shown = self.shown.lock();
        shown.retain(|handle, since| {
            let is_old = since.elapsed() >= memory;
            if is_old {
                old.push(*handle);
            }
            !is_old
        });
        let is_more_to_come = !shown.is_empty();
        drop(shown);
        for open in old.into_iter().filter_map(|handle| self.directories.get(handle)) {
            self.kernel.invalidate_pages(open.inode.number);
        }
        is_more_to_come
    }

    /// Closes a directory handle whose number the kernel never got.
    pub(crate) fn undo_open_directory(&self, handle: u64) {
        let Some(open) = self.directories.remove(handle) else { return };
        if open.sharing.is_some() {
            self.shown.lock().remove(&handle);
            open.inode.dir_cache.forget();
            open.inode.dir_cache.close();
        }
    }

    /// Makes a directory's entries durable.
    pub(crate) fn sync_directory(&self, handle: u64) -> Result<()> {
        let open = self.directory(handle)?;
        self.origin.sync_directory(self.origin_directory(&open)?)
    }

    /// Calls `visit` for each entry after `cookie` until it returns false, for an entry without
    /// room in the reply.
    ///
    /// With `attributes` each entry is looked up. The reference of an entry without room is given
    /// back.
    ///
    /// # Errors
    /// Only if no entry had room before it. `ESTALE` for an offset into a directory too large for a
    /// listing, if another handle gave it out, or too long ago. The program would take an end of
    /// the directory for a complete listing.
    pub(crate) fn read_directory(
        &self,
        handle: u64,
        cookie: u64,
        attributes: bool,
        visit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        let open = self.directory(handle)?;
        if let Some(sharing) = open.sharing {
            open.inode.dir_cache.is_opened(sharing);
            if cookie == 0 {
                self.shown.lock().insert(handle, Instant::now());
            }
        }
        // Where attributes come with names, asking for each entry's attributes is slow.
        let attributes_come = attributes && self.origin.lists_with_attributes(open.device);
        let names = self.names(&open, cookie, attributes_come && cookie == 0)?;
        if let Names::Listed(listing) = &names
            && attributes_come
            && cookie != 0
            && listing.count() > FEW_NAMES
            && self.drop_old_attributes(&open)
        {
            // Programs ask for all attributes, not only those that came with the first names.
            let _ =
                read_with_attributes(&self.origin, self.origin_directory(&open)?, &mut |_| true);
        }
        let mut each = |entry: DirectoryEntry<'_>| {
            let number = self.number_of(&open, &entry);
            let mut listed = Listed {
                name: entry.name,
                cookie: entry.cookie,
                number,
                kind: entry.kind,
                known: None,
            };
            if attributes && entry.name != "." && entry.name != ".." {
                let found = self
                    .origin_directory(&open)
                    .and_then(|directory| self.origin.lookup_in(directory, entry.name));
                match found {
                    Ok(found) => {
                        let known = self.found(open.inode.number, entry.name, found);
                        listed.number = known.shown;
                        // An entry that an SMB client lists as a file may be a pipe.
                        listed.kind = Some(known.attributes.kind);
                        listed.known = Some(known);
                    }
                    // It was removed after the listing was read.
                    Err(Errno::NOENT) => return true,
                    // It is listed, but the kernel has to look it up itself and get the error.
                    Err(_) => {}
                }
            }
            let known = listed.known;
            let taken = visit(listed);
            if let (false, Some(known)) = (taken, known) {
                self.forget(known.number, 1);
            }
            taken
        };
        match names {
            Names::Listed(listing) => listing.visit(cookie, &mut each),
            Names::Through => self.read_through(&open, cookie, &mut each)?,
        }
        Ok(())
    }

    /// The same in a directory that is too large for a listing. Entries that came before an error
    /// are shown, as getdents(2) does: the kernel holds references to them, and gets the error when
    /// it reads on.
    fn read_through(
        &self,
        open: &OpenDirectory<O>,
        cookie: u64,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        let (directory, cookies) =
            (self.origin_directory(open)?, open.dir_cookies(&self.held_names));
        let cookie = cookies.cookie(cookie).ok_or(Errno::STALE)?;
        let mut is_any_taken = false;
        let read = self.origin.read_directory(directory, cookie, &mut |entry| {
            let cookie = cookies.of(entry.cookie);
            let is_taken = each(DirectoryEntry { cookie, ..entry });
            is_any_taken |= is_taken;
            is_taken
        });
        if is_any_taken { Ok(()) } else { read }
    }

    /// The number of an entry before it is looked up. A directory that is mounted over has the
    /// number of the directory below the mount, as everywhere.
    fn number_of(&self, open: &OpenDirectory<O>, entry: &DirectoryEntry<'_>) -> u64 {
        if entry.name == "." {
            return open.inode.shown;
        }
        if entry.name == ".." && open.inode.number == ROOT {
            return ROOT;
        }
        self.numbers.of(open.device, entry.inode)
    }

    /// The names in which a handle reads on. A read from the start makes a new listing, as
    /// rewinding a directory must.
    fn names(&self, open: &OpenDirectory<O>, cookie: u64, attributes_come: bool) -> Result<Names> {
        let version = {
            let view = open.view.lock();
            if let Some(names) = view.read_on(cookie) {
                return Ok(names);
            }
            match view.pass {
                Pass::Fresh { version } => Some(version),
                Pass::Reads(_) => None,
            }
        };
        let (version, settled) = match version {
            Some(version) => version,
            None => {
                // This listing is newer than the open.
                if open.sharing.is_some() {
                    open.inode.dir_cache.forget();
                }
                let now = Time::now();
                let attributes = self.origin.directory_attributes(self.origin_directory(open)?)?;
                self.versions.of(&attributes.identity(open.inode.generation), now)
            }
        };
        let is_read = Cell::new(false);
        let all = || {
            if attributes_come {
                self.drop_old_attributes(open);
            }
            Listing::read(&self.origin, self.origin_directory(open)?, attributes_come)
        };
        self.held_names.set_cache_max(self.cache.max_bytes());
        let read = || {
            is_read.set(true);
            if self.held_names.is_full() {
                return Err(Unlisted::TooLarge);
            }
            match all() {
                Ok(Some(listing)) => Ok(Arc::new(listing)),
                Ok(None) => Err(Unlisted::TooLarge),
                Err(errno) => Err(Unlisted::Failed(errno)),
            }
        };
        let result =
            if settled { self.cached_listing(Key::listing(version), read) } else { read() };
        if let Ok(listing) = &result
            && attributes_come
            && !is_read.get()
        {
            // The names are complete, and their attributes are read again. If that fails, reading
            // is only slower.
            if listing.count() <= FEW_NAMES {
                self.drop_old_attributes(open);
            }
            let directory = self.origin_directory(open)?;
            let _ = read_with_attributes(&self.origin, directory, &mut |_| true);
        }
        let names = match result {
            Ok(listing) => self.held_names.hold(listing).map_or(Names::Through, Names::Listed),
            Err(Unlisted::TooLarge) => Names::Through,
            Err(Unlisted::Failed(errno)) => return Err(errno),
        };
        open.view.lock().begin(names.clone());
        Ok(names)
    }

    /// If the attributes of a directory's entries are stale, makes its next read fetch them from
    /// the source itself. Returns whether they were stale.
    fn drop_old_attributes(&self, open: &OpenDirectory<O>) -> bool {
        let Ok(directory) = self.origin_directory(open) else { return false };
        let are_old = open.inode.dir_cache.are_attributes_old(self.attributes_old);
        if are_old {
            self.origin.invalidate_names(directory);
        }
        are_old
    }

    fn cached_listing(
        &self,
        key: Key,
        read: impl FnOnce() -> std::result::Result<Arc<Listing>, Unlisted>,
    ) -> std::result::Result<Arc<Listing>, Unlisted> {
        let load = || {
            let entry = Entry::Listing(read()?);
            let weight_bytes = entry.weight_bytes();
            Ok((entry, weight_bytes))
        };
        match self.cache.get_or_load(&key, Kind::Metadata, Access::Demand, load) {
            Ok((hold, _)) => match &*hold {
                Entry::Listing(listing) => Ok(listing.clone()),
                Entry::Record(..) | Entry::Link(_) => Err(Unlisted::Failed(Errno::IO)),
            },
            Err(LoadError::Failed(unlisted)) => Err(unlisted),
            Err(LoadError::Panicked) => Err(Unlisted::Failed(Errno::IO)),
        }
    }
}
