//! Nodes of a directory origin, and how they are opened.
//!
//! A node is the object's handle if the process may open by handle. Otherwise it is an object with
//! a place ([`super::placed_object`]), which is opened by name on demand
//! ([`super::reopen_by_place`]).

use super::credentials::overrides_permissions;
use super::descriptor_cache::{Descriptor, Descriptors};
use super::file_systems::Kind;
use super::handle::{FileHandle, MountId};
use super::identity::{Inspector, Seen};
use super::lookup_descriptors::{self, Key, LookupDescriptors};
use super::mounts::{Entrance, Mounts};
use super::placed_object::{Directory, Object, ObjectIdentity, Top};
use super::rights::Rights;
use super::unlinked::Unlinked;
use crate::{FileKind, Found, OFlags, Result, impersonation};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, StatxFlags};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An object below the origin's directory.
#[derive(Clone, Debug)]
pub struct Node(Name);

#[derive(Clone, Debug)]
enum Name {
    /// By handle: opened wherever it is.
    Handle { mount: u16, handle: FileHandle },
    /// By place and identity.
    Object(Arc<Object>),
}

impl Name {
    fn key(&self) -> Key {
        match self {
            Self::Handle { mount, handle } => Key::Handle(*mount, handle.clone()),
            Self::Object(object) => Key::Object(object.identity),
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Name::Handle { mount, handle },
                Name::Handle { mount: other_mount, handle: other_handle },
            ) => mount == other_mount && handle == other_handle,
            (Name::Object(one), Name::Object(other)) => one.identity == other.identity,
            _ => false,
        }
    }
}

impl Node {
    /// Its key.
    pub(super) fn key(&self) -> Key {
        self.0.key()
    }

    /// The node as a directory that has places.
    fn directory(&self) -> Directory {
        match &self.0 {
            Name::Handle { mount, handle } => Directory::Handle(Arc::new((*mount, handle.clone()))),
            Name::Object(object) => Directory::Object(object.clone()),
        }
    }

    /// The same object under a node that is already in use: takes over the place of the new node.
    pub(super) fn met_again(&self, found: &Node) {
        if let (Name::Object(known), Name::Object(found)) = (&self.0, &found.0) {
            for (directory, name) in found.places().into_iter().rev() {
                known.found_at(&directory, &name);
            }
            known.take_over(found);
        }
    }

    /// The node may soon be found at another place too.
    pub(super) fn expect_at(&self, directory: &Node, name: &OsStr) {
        if let Name::Object(object) = &self.0 {
            object.expect_at(&directory.directory(), name);
        }
    }

    /// The node has moved.
    pub(super) fn has_moved(&self, from: (&Node, &OsStr), to: (&Node, &OsStr)) {
        if let Name::Object(object) = &self.0 {
            object.found_at(&to.0.directory(), to.1);
            object.gone_from(&from.0.directory(), from.1);
        }
    }

    /// A program has opened it: until its close, every operation may use its descriptor.
    pub(super) fn is_open(&self, descriptor: &Arc<Descriptor>) {
        if let Name::Object(object) = &self.0 {
            object.set_opened(descriptor, true);
        }
    }
}

/// A descriptor of a node: shared, or opened for one operation.
pub(super) enum PathDescriptor {
    Shared(Arc<Descriptor>),
    Owned(OwnedFd),
}

impl AsFd for PathDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared(descriptor) => descriptor.as_fd(),
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

/// Turns descriptors and names into nodes, and nodes into descriptors.
#[derive(Debug)]
pub(super) struct Nodes {
    by_handle: bool,
    mounts: Mounts<Directory>,
    pub(super) lookup_descriptors: LookupDescriptors,
    pub(super) unlinked: Unlinked,
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) inspector: Inspector,
    top: Arc<Top>,
    /// The device of the root.
    device: AtomicU64,
    /// This process may open any file.
    pub(super) overrides_permissions: bool,
    /// The rights for operations that need a permission.
    pub(super) rights: Rights,
}

impl Nodes {
    /// Probes whether objects below `root` can be opened by handle.
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        let kind = Kind::of_object(root).unwrap_or_default();
        let by_handle = match FileHandle::of(root) {
            Ok((handle, _)) if kind.finds_by_handle() => {
                match open_real(root, OFlags::RDONLY | OFlags::DIRECTORY) {
                    Ok(mount) => handle.open(mount.as_fd(), OFlags::PATH).is_ok(),
                    Err(_) => false,
                }
            }
            _ => false,
        };
        Self::new(by_handle, Descriptors::default())
    }

    /// Makes nodes that all have a place, with at most `limit` of them open.
    #[cfg(test)]
    pub(super) fn by_place(limit: usize) -> Self {
        Self::new(false, Descriptors::new(limit))
    }

    fn new(by_handle: bool, descriptors: Descriptors) -> Self {
        let descriptors = Arc::new(descriptors);
        Self {
            by_handle,
            mounts: Mounts::new(),
            lookup_descriptors: LookupDescriptors::new(
                descriptors.limit(),
                lookup_descriptors::TIME,
            ),
            unlinked: Unlinked::new(descriptors.limit()),
            descriptors,
            inspector: Inspector::default(),
            top: Arc::default(),
            device: AtomicU64::new(0),
            overrides_permissions: overrides_permissions(),
            rights: Rights::default(),
        }
    }

    /// Whether nodes are kept by handle rather than by place.
    pub(super) fn by_handle(&self) -> bool {
        self.by_handle
    }

    /// Whether some known object can be found only by its place.
    pub(super) fn keeps_places(&self) -> bool {
        !self.by_handle || self.inspector.needs_places()
    }

    /// Keeps the descriptors of lookups for this long.
    pub(super) fn keep_lookups(&mut self, time: Duration) {
        self.lookup_descriptors.set_time(time);
    }

    /// Runs an open with room for a descriptor: see [`Descriptors::with_room`].
    pub(super) fn with_room<T>(&self, mut open: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match self.descriptors.with_room(&mut open) {
                Err(Errno::MFILE | Errno::NFILE) if self.lookup_descriptors.clear() => {}
                other => return other,
            }
        }
    }

    /// The root, of which `fd` is a descriptor.
    pub(super) fn root(&self, fd: BorrowedFd<'_>) -> Result<Found<Node>> {
        let seen = self.inspector.look(fd, OsStr::new(""))?;
        self.device.store(seen.attributes.device, Ordering::Relaxed);
        if let Some(name) = self.handle_node(&seen, fd, None) {
            return Ok(found(name, &seen));
        }
        if self.top.descriptor().is_none() {
            self.replace_top(Some(fd))?;
        }
        let root = Object::root(ObjectIdentity::of(&seen), &self.top, &self.descriptors);
        Ok(found(Name::Object(root), &seen))
    }

    fn replace_top(&self, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        let copy = |fd| self.with_room(|| rustix::io::fcntl_dupfd_cloexec(fd, 0));
        self.top.replace(fd.map(copy).transpose()?.map(Descriptor::new));
        Ok(())
    }

    /// Looks up a name whose object will probably be opened next.
    pub(super) fn lookup(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        let fd = self.within(parent, |directory| self.open_name(directory, name))?;
        let seen = self.look(fd.as_fd())?;
        if !seen.kind.is_case_known {
            self.learn_case(parent, name, &seen);
        }
        Ok(match self.handle_node(&seen, fd.as_fd(), Some((parent, name))) {
            Some(node) => {
                let is_directory = seen.attributes.kind == FileKind::Directory;
                if is_directory || !seen.kind.hides_what_is_named {
                    self.lookup_descriptors.keep(node.key(), Descriptor::new(fd));
                }
                found(node, &seen)
            }
            None => {
                let node = self.object(parent, name, &seen);
                if let Name::Object(object) = &node {
                    self.keep(object, fd);
                }
                found(node, &seen)
            }
        })
    }

    /// Looks up a name.
    pub(super) fn find(
        &self,
        (parent, directory): (&Node, BorrowedFd<'_>),
        name: &OsStr,
    ) -> Result<Found<Node>> {
        if self.by_handle || self.rights == Rights::Requesters {
            let fd = self.open_name(directory, name)?;
            return self.found((parent, name), fd.as_fd());
        }
        let seen = self.inspector.look(directory, name)?;
        Ok(found(self.object(parent, name, &seen), &seen))
    }

    /// Opens a name in a directory that the requester must be permitted to search.
    fn open_name(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd> {
        self.with_room(|| self.rights.run(|| super::open_name(directory, name)))
    }

    pub(super) fn look(&self, fd: BorrowedFd<'_>) -> Result<Seen> {
        self.rights.own_first(|| self.inspector.look(fd, OsStr::new("")))
    }

    /// The object that was opened or made by a name in a directory.
    pub(super) fn found(
        &self,
        (parent, name): (&Node, &OsStr),
        fd: BorrowedFd<'_>,
    ) -> Result<Found<Node>> {
        let seen = self.look(fd)?;
        let node = self.handle_node(&seen, fd, Some((parent, name)));
        Ok(found(node.unwrap_or_else(|| self.object(parent, name, &seen)), &seen))
    }

    /// The node of an object that can be opened by handle; `place` is where it was found.
    fn handle_node(
        &self,
        seen: &Seen,
        fd: BorrowedFd<'_>,
        place: Option<(&Node, &OsStr)>,
    ) -> Option<Name> {
        let is_good = self.by_handle && seen.kind.finds_by_handle();
        let (handle, id) = seen.handle.as_ref().filter(|_| is_good)?;
        let mount = match self.mounts.find(*id) {
            Some(mount) => mount,
            None => self.add_mount((handle, *id), seen.attributes.kind, fd, place)?,
        };
        Some(Name::Handle { mount, handle: handle.clone() })
    }

    fn object(&self, parent: &Node, name: &OsStr, seen: &Seen) -> Name {
        let is_directory = seen.attributes.kind == FileKind::Directory;
        let place = (parent.directory(), name);
        Name::Object(Object::at(ObjectIdentity::of(seen), is_directory, place, &self.descriptors))
    }

    /// The device of a node, as far as known without a system call.
    pub(super) fn device_of(&self, node: &Node) -> Option<u64> {
        match &node.0 {
            Name::Handle { mount, .. } => self.mounts.device(*mount),
            Name::Object(object) => Some(object.identity.device),
        }
    }

    /// Keeps a descriptor of an object that is found by its place. On the root's file system it is
    /// kept for long. On file systems mounted below, it is kept as briefly as that of a lookup, so
    /// that they can be unmounted.
    pub(super) fn keep_open(&self, identity: ObjectIdentity, fd: OwnedFd) -> Arc<Descriptor> {
        if identity.device == self.device.load(Ordering::Relaxed) {
            return self.descriptors.keep(fd);
        }
        let descriptor = Descriptor::new(fd);
        self.lookup_descriptors.keep(Key::Object(identity), descriptor.clone());
        descriptor
    }

    /// The kind of a node's file system.
    pub(super) fn kind_of(&self, node: &Node) -> Kind {
        self.device_of(node).map_or_else(Kind::default, |device| self.inspector.kind(device))
    }

    /// Whether a name in a directory leads to the node.
    pub(super) fn leads_to(&self, parent: &Node, name: &OsStr, node: &Node) -> Result<bool> {
        self.within(parent, |parent| match &node.0 {
            Name::Handle { mount, handle } => {
                let (found, id) = self.rights.run(|| FileHandle::at(parent, name))?;
                Ok(found == *handle && self.mounts.is(*mount, id))
            }
            Name::Object(object) if self.rights != Rights::Requesters => {
                Ok(object.may_be(&self.inspector.look(parent, name)?))
            }
            Name::Object(object) => {
                let fd = self.open_name(parent, name)?;
                Ok(object.may_be(&self.look(fd.as_fd())?))
            }
        })
    }

    /// Adds the mount of an object, which is the first one seen there; `None` if it cannot be kept
    /// open.
    fn add_mount(
        &self,
        (handle, id): (&FileHandle, MountId),
        kind: FileKind,
        fd: BorrowedFd<'_>,
        place: Option<(&Node, &OsStr)>,
    ) -> Option<u16> {
        // Only directories and regular files: opening a pipe or a device has side effects. The
        // first object on a mount is its root.
        if !matches!(kind, FileKind::Directory | FileKind::Regular) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let open = || self.rights.own_first(|| open_real(fd, flags));
        let real = self.with_room(open).ok()?;
        let entrance = place.map(|(parent, name)| Entrance {
            directory: parent.directory(),
            name: name.into(),
            found: handle.clone(),
        });
        self.mounts.add(id, real, entrance)
    }

    fn mount_descriptor(&self, mount: u16) -> Result<Arc<OwnedFd>> {
        self.mounts.descriptor(mount, |entrance| {
            let directory = self.path_of(&entrance.directory)?;
            let fd = self.find_again(directory.as_fd(), &entrance.name)?;
            let (handle, id) = FileHandle::of(fd.as_fd())?;
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let open = || self.rights.own_first(|| open_real(fd.as_fd(), flags));
            let real = self.with_room(open)?;
            Ok((handle, id, real))
        })
    }

    /// Opens a name that led to a known object: the permission was checked then.
    pub(super) fn find_again(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd> {
        self.with_room(|| self.rights.own_first(|| super::open_name(directory, name)))
    }

    /// The root has gone and was closed, or `root` replaces it. It is on the same file system, so
    /// handles mean the same objects as before.
    pub(super) fn root_replaced(&self, root: Option<BorrowedFd<'_>>) {
        self.lookup_descriptors.clear();
        self.unlinked.clear();
        if !self.by_handle {
            // Descriptors below the old root would prevent its unmount.
            let replaced = self.replace_top(root);
            self.descriptors.close_all();
            if let Err(errno) = replaced {
                self.top.replace(None);
                log::warn!("cannot keep the source's directory open: {errno}");
            }
        }
        self.mounts.root_replaced(root.and_then(|root| {
            let (_, id) = FileHandle::of(root).ok()?;
            Some((id, open_real(root, OFlags::RDONLY | OFlags::DIRECTORY).ok()?))
        }));
    }

    /// A descriptor of the node for everything but reading and writing.
    pub(super) fn path_descriptor(&self, node: &Node) -> Result<PathDescriptor> {
        match &node.0 {
            Name::Handle { mount, handle } => self.path_by_handle(*mount, handle),
            Name::Object(object) => self.descriptor(object).map(PathDescriptor::Shared),
        }
    }

    /// Runs an operation on a name in a directory, through a descriptor of it that may have been
    /// kept.
    ///
    /// A removed directory has no names, and its handle is stale, which makes the kernel look the
    /// path up again. So a kept descriptor gives the same error once its directory has no name. If
    /// the file system does not count names, this is unknown, and no descriptor is kept.
    pub(super) fn within<T>(
        &self,
        directory: &Node,
        operation: impl Fn(BorrowedFd<'_>) -> Result<T>,
    ) -> Result<T> {
        let Name::Handle { mount, handle } = &directory.0 else {
            return operation(self.path_descriptor(directory)?.as_fd());
        };
        let key = || directory.0.key();
        if let Some(removed) = self.unlinked.find(key) {
            return operation(removed.as_fd());
        }
        if let Some(kept) = self.lookup_descriptors.directory(*mount, handle) {
            return match operation(kept.as_fd()) {
                Err(Errno::NOENT) if !has_names(kept.as_fd()) => Err(Errno::STALE),
                other => other,
            };
        }
        let opened = match self.path_by_handle(*mount, handle)? {
            PathDescriptor::Shared(opened) => opened,
            PathDescriptor::Owned(opened) => Descriptor::new(opened),
        };
        let result = operation(opened.as_fd());
        if has_names(opened.as_fd()) {
            self.lookup_descriptors.keep_directory(directory.0.key(), opened);
        }
        result
    }

    /// The same for the directory of a place.
    pub(super) fn path_of(&self, directory: &Directory) -> Result<PathDescriptor> {
        match directory {
            Directory::Handle(named) => self.path_by_handle(named.0, &named.1),
            Directory::Object(object) => self.descriptor(object).map(PathDescriptor::Shared),
        }
    }

    fn path_by_handle(&self, mount: u16, handle: &FileHandle) -> Result<PathDescriptor> {
        let mount_descriptor = self.mount_descriptor(mount)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let open = || self.with_room(|| handle.open(mount_descriptor.as_fd(), flags));
        match open() {
            Err(Errno::STALE) => {}
            other => return other.map(PathDescriptor::Owned),
        }
        if self.rights == Rights::Requesters {
            // The path up from a directory may have led through one that is closed to this process.
            let needed = CapabilitySet::DAC_READ_SEARCH;
            if let Ok(fd) = self.rights.run_keeping(needed, open) {
                return Ok(PathDescriptor::Owned(fd));
            }
        }
        self.kept(&Key::Handle(mount, handle.clone())).map(PathDescriptor::Shared)
    }

    /// A kept descriptor of an object that cannot be found any more.
    fn kept(&self, key: &Key) -> Result<Arc<Descriptor>> {
        let removed = self.unlinked.find(|| key.clone());
        removed.or_else(|| self.lookup_descriptors.find(key)).ok_or(Errno::STALE)
    }

    /// Removes a name of an object, or gives it to another one. If it was the last name, the object
    /// is kept as long as it is known.
    pub(super) fn taking_name<T>(
        &self,
        (parent, directory): (&Node, BorrowedFd<'_>),
        name: &OsStr,
        take: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let kind = self.kind_of(parent);
        let is_kept = !kind.hides_what_is_open && !kind.hides_what_is_named;
        let open = || self.rights.run(|| super::open_name(directory, name)).ok();
        // Without a spare descriptor, the object will be `ESTALE`, like one that is removed behind
        // the origin.
        let named = is_kept.then(open).flatten();
        let taken = take()?;
        if let Some(fd) = named.filter(|fd| !has_names(fd.as_fd()))
            && let Some(key) = self.key_of(fd.as_fd())
        {
            self.unlinked.keep(key, Descriptor::new(fd));
        }
        Ok(taken)
    }

    /// The key of an open object.
    fn key_of(&self, fd: BorrowedFd<'_>) -> Option<Key> {
        let seen = self.look(fd).ok()?;
        let is_good = self.by_handle && seen.kind.finds_by_handle();
        match &seen.handle {
            Some((handle, id)) if is_good => {
                Some(Key::Handle(self.mounts.find(*id)?, handle.clone()))
            }
            _ => Some(Key::Object(ObjectIdentity::of(&seen))),
        }
    }

    /// The kernel has forgotten a node.
    pub(super) fn forgotten(&self, node: &Node) {
        self.unlinked.forget(|| node.0.key());
    }

    /// Opens the node to read or write.
    pub(super) fn open(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        let hides = self.kind_of(node).hides_what_is_open;
        let requester_thread = impersonation::requester_thread().filter(|_| hides);
        // Taken in any case: another open than this one has to look up the name again.
        let reader = requester_thread.and_then(|requester_thread| {
            self.lookup_descriptors.take_reader(&node.0.key(), requester_thread)
        });
        match (self.open_known(node, flags), reader) {
            // A server may open by name alone, and the name is gone.
            (Err(Errno::STALE | Errno::NOENT), Some(reader))
                if !flags.intersects(OFlags::ACCMODE | OFlags::PATH) =>
            {
                self.with_room(|| rustix::io::fcntl_dupfd_cloexec(&*reader, 0))
            }
            (opened, _) => opened,
        }
    }

    fn open_known(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        match &node.0 {
            Name::Handle { mount, handle } if self.rights != Rights::Requesters => {
                let mount_descriptor = self.mount_descriptor(*mount)?;
                match self.with_room(|| handle.open(mount_descriptor.as_fd(), flags)) {
                    Err(Errno::STALE) => {
                        let kept = self.kept(&node.0.key())?;
                        self.with_room(|| open_real(kept.as_fd(), flags))
                    }
                    other => other,
                }
            }
            _ => {
                let descriptor = self.path_descriptor(node)?;
                self.with_room(|| self.rights.run(|| open_real(descriptor.as_fd(), flags)))
            }
        }
    }
}

/// Whether a directory has a name, as far as its file system counts them.
fn has_names(directory: BorrowedFd<'_>) -> bool {
    // An NFS client might have to ask the server for all attributes.
    let names = rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK);
    names.is_ok_and(|statx| statx.stx_nlink > 0)
}

fn found(name: Name, seen: &Seen) -> Found<Node> {
    Found { node: Node(name), attributes: seen.attributes, generation: seen.generation }
}

/// Opens the object of an `O_PATH` descriptor to read or write.
pub(super) fn open_real(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::openat(
        CWD,
        super::magic_link(fd).as_c_str(),
        (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW,
        Mode::empty(),
    )
}
