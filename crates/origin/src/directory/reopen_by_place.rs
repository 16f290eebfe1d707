//! Opening objects by their place, when they have no descriptor.
//!
//! The walk goes up from the object to an open directory, to one with a handle, or to the top. Then
//! it goes down again by name. Each step starts in an open directory, and its result is compared
//! with the known identity. So a rename or replacement meanwhile can make a step fail, but can
//! never lead to another object.
//!
//! If a step fails, the other places of the object are tried. Then its inode number is searched in
//! the directory, where it may have been renamed behind the mount. During a rename through the
//! mount, the object has the old and the new place until the rename ends. It may move from one to
//! the other between two tries. So both are tried until its count of moves stays the same for two
//! rounds. Between two counts there is at most one rename, and the second round comes after it.
//!
//! On FAT and exFAT the kernel invents inode numbers, and invents new ones once it has dropped an
//! object from memory. There, the object at the place is accepted unless something shows that it is
//! another one ([`Object::may_be`]). A FUSE file system may identify objects by path and forget
//! them. There, the directory at the place is accepted ([`Object::may_be_forgotten`]).
//!
//! An object that is not found is `ESTALE`. A program that came by a path sees no error: the kernel
//! looks the path up again, and finds the new place. One case remains. An object was moved to
//! another directory behind the mount, and a program holds it without an open file, as its working
//! directory. It is `ESTALE` until the next lookup of its new name.
//!
//! No lock is held here across a system call.

use super::descriptor_cache::Descriptor;
use super::file_systems;
use super::identity::Seen;
use super::lookup_descriptors::Key;
use super::node::{Node, Nodes, PathDescriptor};
use super::placed_object::{Directory, Object, ObjectIdentity};
use crate::{OFlags, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, RawDir};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// How often the places are tried during renames of the object, before the caller gets an error.
/// Each try but the last two has failed because of a rename.
const TRIES: usize = 1 << 10;
/// Deepest directory.
const DEPTH_MAX: usize = 1 << 16;
/// Entries searched for an object that was renamed within its directory.
const ENTRIES_MAX: usize = 1 << 16;
/// Bytes per `getdents64(2)`.
const ENTRIES_BYTES: usize = 8 * 1024;

impl Nodes {
    /// The descriptor of an object, opened if it has none.
    pub(super) fn descriptor(&self, object: &Arc<Object>) -> Result<Arc<Descriptor>> {
        let removed = || self.unlinked.find(|| Key::Object(object.identity));
        if let Some(opened) = object.opened().or_else(removed) {
            return Ok(opened);
        }
        // Up to the first open directory, then down; each one is held until the next is open.
        let mut closed = vec![object.clone()];
        let mut held = None;
        while let Some(Directory::Object(above)) = closed.last().and_then(|last| last.directory()) {
            held = above.opened();
            if held.is_some() {
                break;
            }
            if closed.len() == DEPTH_MAX {
                return Err(Errno::STALE);
            }
            closed.push(above);
        }
        let moves = object.moves();
        while closed.len() > 1 {
            let above = closed.pop().expect("two at least");
            match self.reopen(&above) {
                Ok(opened) => held = Some(opened),
                // The object may have another place as well, or may have moved.
                Err(Errno::STALE) if object.places().len() > 1 || object.moves() != moves => {
                    closed.truncate(1);
                }
                Err(errno) => return Err(errno),
            }
        }
        let opened = self.reopen(object);
        drop(held);
        opened
    }

    /// Opens an object whose directory is open.
    fn reopen(&self, object: &Arc<Object>) -> Result<Arc<Descriptor>> {
        if object.is_root() {
            // The root is open unless the origin is gone.
            return object.opened().ok_or(Errno::IO);
        }
        let (mut places, mut tried_at) = (Vec::new(), None);
        for _ in 0..TRIES {
            if let Some(opened) = object.opened() {
                return Ok(opened);
            }
            let moves = object.moves();
            places = object.places();
            for (directory, name) in &places {
                let is_it = |seen: &Seen| ObjectIdentity::of(seen) == object.identity;
                if let Some(fd) = self.open_place(directory, name, is_it)? {
                    return Ok(self.keep(object, fd));
                }
            }
            // A rename records the second place first, so one place needs only one try.
            let tried_enough = places.len() == 1 || tried_at == Some(moves);
            if tried_enough && object.moves() == moves {
                break;
            }
            tried_at = Some(moves);
        }
        for (directory, _) in &places {
            if let Some((name, fd)) = self.search(object, directory)? {
                object.found_at(directory, &name);
                return Ok(self.keep(object, fd));
            }
        }
        // It may have another number by now, or another handle.
        let kind = self.inspector.kind(object.identity.device);
        if kind.makes_up_numbers || (kind.forgets_handles && object.is_directory()) {
            let may_be = |seen: &Seen| object.may_be(seen) || object.may_be_forgotten(seen);
            for (directory, name) in &places {
                if let Some(fd) = self.open_place(directory, name, may_be)? {
                    return Ok(self.keep(object, fd));
                }
            }
        }
        Err(Errno::STALE)
    }

    /// Notes an open descriptor of an object, and keeps it where that has no side effects.
    pub(super) fn keep(&self, object: &Object, fd: OwnedFd) -> Arc<Descriptor> {
        let hides = self.inspector.kind(object.identity.device).hides_what_is_named;
        let descriptor = if hides && !object.is_directory() {
            Descriptor::new(fd)
        } else {
            self.keep_open(object.identity, fd)
        };
        object.set_opened(&descriptor, false);
        descriptor
    }

    /// Opens the object by one of its places; `None` if it is not there.
    fn open_place(
        &self,
        directory: &Directory,
        name: &OsStr,
        is_it: impl FnOnce(&Seen) -> bool,
    ) -> Result<Option<OwnedFd>> {
        let Some(directory) = absent(self.path_of(directory))? else { return Ok(None) };
        self.open_if(directory.as_fd(), name, is_it)
    }

    /// The object of a name, if it is the expected one.
    fn open_if(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        is_it: impl FnOnce(&Seen) -> bool,
    ) -> Result<Option<OwnedFd>> {
        let Some(fd) = absent(self.find_again(directory, name))? else { return Ok(None) };
        let seen = self.look(fd.as_fd())?;
        Ok(is_it(&seen).then_some(fd))
    }

    /// Searches a directory for an object by its number, under any name.
    fn search(
        &self,
        object: &Object,
        directory: &Directory,
    ) -> Result<Option<(OsString, OwnedFd)>> {
        let Some(directory) = absent(self.path_of(directory))? else { return Ok(None) };
        let names = match self.names_of(object.identity.inode, &directory) {
            Ok(names) => names,
            // Without permission to read the directory, it cannot be searched.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        for name in names {
            let is_it = |seen: &Seen| ObjectIdentity::of(seen) == object.identity;
            if let Some(fd) = self.open_if(directory.as_fd(), &name, is_it)? {
                return Ok(Some((name, fd)));
            }
        }
        Ok(None)
    }

    /// Names in a directory that have this inode number.
    fn names_of(&self, inode: u64, directory: &PathDescriptor) -> Result<Vec<OsString>> {
        let (mut names, mut count) = (Vec::new(), 0);
        self.read_names(directory.as_fd(), OsStr::new("."), |name, found| {
            count += 1;
            if found == inode {
                names.push(OsString::from_vec(name.to_vec()));
            }
            count < ENTRIES_MAX
        })?;
        Ok(names)
    }

    /// Whether a directory is empty, or has only removed open files that its file system has hidden
    /// there. They may be gone a moment later.
    pub(super) fn has_only_hidden_files(&self, parent: &Node, name: &OsStr) -> Result<bool> {
        if !self.kind_of(parent).hides_what_is_open {
            return Ok(false);
        }
        self.within(parent, |parent| {
            let mut is_other = false;
            self.read_names(parent, name, |name, _| {
                is_other = !file_systems::is_hidden(name);
                !is_other
            })?;
            Ok(!is_other)
        })
    }

    /// Visits the names in a directory, with their numbers, until `visit` returns false.
    fn read_names(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        mut wants_more: impl FnMut(&[u8], u64) -> bool,
    ) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(parent, name, flags, Mode::empty());
        let readable = self.with_room(|| self.rights.own_first(open))?;
        let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
        let mut entries = RawDir::new(&readable, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && !wants_more(name, entry.ino()) {
                break;
            }
        }
        Ok(())
    }
}

/// `None` for an object that does not exist, or whose directory does not.
fn absent<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => Ok(None),
        Err(errno) => Err(errno),
    }
}
