//! Reading directories.

use super::{Result, Told, View};
use crate::handle::{DirectoryView, OpenDirectory};
use crate::listing::Listing;
use crate::number::ROOT;
use crate::record::{Entry, Key};
use ogive_arc::{Access, Kind, LoadError};
use ogive_origin::{DirectoryEntry, Errno, FileKind, Origin, Time};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::Arc;

/// An entry on its way to the kernel.
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a OsStr,
    /// Where to go on after this entry.
    pub(crate) cookie: u64,
    /// Number to show for it.
    pub(crate) number: u64,
    pub(crate) kind: Option<FileKind>,
    /// Inode and attributes, where they were asked for; the kernel counts a reference.
    pub(crate) told: Option<Told>,
}

/// A directory too large for a listing: an answer of the loader, not an error.
#[derive(Clone, Copy)]
enum Unlisted {
    TooLarge,
    Failed(Errno),
}

impl<O: Origin> View<O> {
    /// Opens a directory for a thread.
    ///
    /// # Errors
    /// `ESTALE` makes the kernel look the path up again and come back, once.
    pub(crate) fn open_directory(&self, number: u64, thread: u32) -> Result<u64> {
        let inode = match number {
            ROOT => self.refresh_root()?.0,
            number => self.inode(number)?,
        };
        if number != ROOT && self.must_check_name(thread) {
            self.check_name(&inode, || 1, thread)?;
        }
        let now = Time::now();
        let directory = self.origin.open_directory(&inode.node)?;
        let attributes = self.origin.directory_attributes(&directory)?;
        let version = self.versions.of(&attributes.identity(inode.generation), now);
        let view = Mutex::new(DirectoryView::Fresh { version });
        let device = attributes.device;
        Ok(self.directories.insert(Arc::new(OpenDirectory { inode, directory, device, view })))
    }

    /// Lets go of a directory handle.
    pub(crate) fn release_directory(&self, handle: u64) {
        self.directories.remove(handle);
    }

    /// Makes a directory's entries durable.
    pub(crate) fn sync_directory(&self, handle: u64) -> Result<()> {
        self.origin.sync_directory(&self.directory(handle)?.directory)
    }

    /// Calls `visit` for each entry after `cookie` until it returns false: it does so for an
    /// entry that has no room left in the reply.
    ///
    /// With `attributes` each entry is looked up, and for an entry that found no room the
    /// reference is given back.
    pub(crate) fn read_directory(
        &self,
        handle: u64,
        cookie: u64,
        attributes: bool,
        visit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        let open = self.directory(handle)?;
        let listing = self.listing(&open, cookie)?;
        let mut each = |entry: DirectoryEntry<'_>| {
            let number = self.number_of(&open, &entry);
            let mut listed = Listed {
                name: entry.name,
                cookie: entry.cookie,
                number,
                kind: entry.kind,
                told: None,
            };
            if attributes && entry.name != "." && entry.name != ".." {
                match self.origin.lookup_in(&open.directory, entry.name) {
                    Ok(found) => {
                        let told = self.found(open.inode.number, entry.name, found);
                        listed.number = told.number;
                        listed.told = Some(told);
                    }
                    // It is gone since the listing was read.
                    Err(Errno::NOENT) => return true,
                    // Listed, but the kernel has to look it up itself and see the error.
                    Err(_) => {}
                }
            }
            let told = listed.told;
            let taken = visit(listed);
            if let (false, Some(told)) = (taken, told) {
                self.forget(told.number, 1);
            }
            taken
        };
        match listing {
            Some(listing) => listing.visit(cookie, &mut each),
            None => self.origin.read_directory(&open.directory, cookie, &mut each)?,
        }
        Ok(())
    }

    /// The number an entry is shown with, before it is looked up. A mounted-over directory shows
    /// the number of what lies below, as it does everywhere.
    fn number_of(&self, open: &OpenDirectory<O>, entry: &DirectoryEntry<'_>) -> u64 {
        if entry.name == "." {
            return open.inode.number;
        }
        if entry.name == ".." && open.inode.number == ROOT {
            return ROOT;
        }
        self.numbers.of(open.device, entry.inode)
    }

    /// The listing that a handle reads from, `None` if the directory is too large for one. A read
    /// from the start makes a new one, as rewinding a directory must.
    fn listing(&self, open: &OpenDirectory<O>, cookie: u64) -> Result<Option<Arc<Listing>>> {
        let version = match &*open.view.lock() {
            DirectoryView::Listing(listing) if cookie > 0 => return Ok(Some(listing.clone())),
            DirectoryView::Through if cookie > 0 => return Ok(None),
            DirectoryView::Fresh { version } => Some(*version),
            DirectoryView::Listing(_) | DirectoryView::Through => None,
        };
        let (version, settled) = match version {
            Some(version) => version,
            None => {
                let now = Time::now();
                let attributes = self.origin.directory_attributes(&open.directory)?;
                self.versions.of(&attributes.identity(open.inode.generation), now)
            }
        };
        let read = || match Listing::read(&self.origin, &open.directory) {
            Ok(Some(listing)) => Ok(Arc::new(listing)),
            Ok(None) => Err(Unlisted::TooLarge),
            Err(errno) => Err(Unlisted::Failed(errno)),
        };
        let result =
            if settled { self.cached_listing(Key::listing(version), read) } else { read() };
        let listing = match result {
            Ok(listing) => Some(listing),
            Err(Unlisted::TooLarge) => None,
            Err(Unlisted::Failed(errno)) => return Err(errno),
        };
        *open.view.lock() = match &listing {
            Some(listing) => DirectoryView::Listing(listing.clone()),
            None => DirectoryView::Through,
        };
        Ok(listing)
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
