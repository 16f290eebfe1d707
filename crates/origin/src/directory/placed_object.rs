//! An object without a handle, found by its place.
//!
//! Its identity is device, inode number and generation. A *place* is a directory and a name in it;
//! the directory is such an object too, or one with a handle. A place is only a hint: after an open
//! by place, the identity is compared before the object is used. A file has a place for each name
//! it was found by, up to a limit. A directory has one, except during a rename.
//!
//! A mount keeps one of these for each inode it knows, so it is small. It has no descriptor of its
//! own, but points to one in the ring or of an open file ([`super::descriptor_cache`]).
//!
//! # Invariants
//!
//! The directories of an object's places never lead back to it: places keep their directories, so a
//! circle would never be freed. The lock is a leaf. The check for circles holds no lock while it
//! goes up.

use super::descriptor_cache::{Descriptor, Descriptors};
use super::handle::FileHandle;
use super::identity::Seen;
use crate::{Attributes, FileKind};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// Most places remembered of a file with many names.
const PLACES_MAX: usize = 8;
/// Deepest directory; the kernel's own limit on paths does not bound it.
const DEPTH_MAX: usize = 1 << 16;

/// The key of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Of the inode number, where the file system has one.
    pub(super) generation: u64,
}

impl ObjectIdentity {
    /// The key of a looked-up object.
    pub(super) fn of(seen: &Seen) -> Self {
        let Attributes { device, inode, .. } = seen.attributes;
        Self { device, inode, generation: seen.generation }
    }
}

/// An object below the origin's directory.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) identity: ObjectIdentity,
    is_directory: bool,
    /// How often it was moved, or was about to be.
    moves: AtomicU32,
    state: Mutex<State>,
    descriptors: Arc<Descriptors>,
}

#[derive(Debug)]
struct State {
    opened: Weak<Descriptor>,
    known: Known,
}

#[derive(Debug)]
enum Known {
    /// The root, which stays open.
    Root(Arc<Top>),
    /// Its latest place, and earlier ones.
    At(Place),
    /// The object is being dropped.
    Nowhere,
}

#[derive(Debug)]
struct Place {
    directory: Directory,
    name: Box<OsStr>,
    next: Option<Box<Place>>,
}

/// The root's descriptor; none while the origin is gone.
#[derive(Debug, Default)]
pub(super) struct Top(Mutex<Option<Arc<Descriptor>>>);

impl Top {
    pub(super) fn descriptor(&self) -> Option<Arc<Descriptor>> {
        self.0.lock().clone()
    }

    pub(super) fn replace(&self, descriptor: Option<Arc<Descriptor>>) {
        let replaced = std::mem::replace(&mut *self.0.lock(), descriptor);
        drop(replaced);
    }
}

/// The directory of a place.
#[derive(Clone, Debug)]
pub(super) enum Directory {
    /// A directory that is opened by handle.
    Handle(Arc<(u16, FileHandle)>),
    /// A directory with a place of its own.
    Object(Arc<Object>),
}

impl PartialEq for Directory {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Handle(one), Self::Handle(other)) => one == other,
            (Self::Object(one), Self::Object(other)) => one.identity == other.identity,
            _ => false,
        }
    }
}

impl Object {
    /// The root of the origin.
    pub(super) fn root(
        identity: ObjectIdentity,
        top: &Arc<Top>,
        descriptors: &Arc<Descriptors>,
    ) -> Arc<Self> {
        let state = Mutex::new(State { opened: Weak::new(), known: Known::Root(top.clone()) });
        Arc::new(Self {
            identity,
            is_directory: true,
            moves: AtomicU32::new(0),
            state,
            descriptors: descriptors.clone(),
        })
    }

    /// The object that a name in a directory led to.
    pub(super) fn at(
        identity: ObjectIdentity,
        is_directory: bool,
        (directory, name): (Directory, &OsStr),
        descriptors: &Arc<Descriptors>,
    ) -> Arc<Self> {
        let known = Known::At(Place { directory, name: name.into(), next: None });
        let state = Mutex::new(State { opened: Weak::new(), known });
        let (moves, descriptors) = (AtomicU32::new(0), descriptors.clone());
        Arc::new(Self { identity, is_directory, moves, state, descriptors })
    }

    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Whether an object at one of its places may be this one: nothing proves another. Where the
    /// kernel invents numbers, a new number proves nothing, but a time of birth may.
    pub(super) fn may_be(&self, seen: &Seen) -> bool {
        let found = ObjectIdentity::of(seen);
        let is_directory = seen.attributes.kind == FileKind::Directory;
        let is_like_it = seen.kind.makes_up_numbers && is_directory == self.is_directory;
        let inode = if is_like_it { found.inode } else { self.identity.inode };
        ObjectIdentity { inode, ..self.identity } == found
    }

    /// Whether a file system that has forgotten this directory identifies the object at its place
    /// with it. Such a file system knows only the path.
    pub(super) fn may_be_forgotten(&self, seen: &Seen) -> bool {
        let Attributes { device, kind, .. } = seen.attributes;
        let are_directories = self.is_directory && kind == FileKind::Directory;
        seen.kind.forgets_handles && are_directories && device == self.identity.device
    }

    /// Its present descriptor.
    pub(super) fn opened(&self) -> Option<Arc<Descriptor>> {
        let state = self.state.lock();
        let opened = match &state.known {
            Known::Root(top) => return top.descriptor(),
            Known::At(_) | Known::Nowhere => state.opened.upgrade(),
        };
        drop(state);
        if let Some(opened) = &opened {
            opened.touch();
        }
        opened
    }

    /// Whether this is the root.
    pub(super) fn is_root(&self) -> bool {
        matches!(self.state.lock().known, Known::Root(_))
    }

    /// Notes an open descriptor. An existing one stays in use, unless the new one will `stay` open
    /// longer than the ring would keep it.
    pub(super) fn set_opened(&self, descriptor: &Arc<Descriptor>, stay: bool) {
        let mut state = self.state.lock();
        let known = state.opened.upgrade();
        if known.is_some() && !stay {
            return;
        }
        let replaced = std::mem::replace(&mut state.opened, Arc::downgrade(descriptor));
        drop(state);
        drop(replaced);
        if let Some(known) = known {
            self.descriptors.release(&known);
        }
    }

    /// Takes over the descriptor of another node of the same object, if it has none. A directory
    /// takes it in any case. If only a number distinguishes objects, as on SMB, its own may be of a
    /// removed directory with the same number.
    pub(super) fn take_over(&self, other: &Object) {
        let Some(opened) = other.opened() else { return };
        if self.is_directory || self.opened().is_none() {
            self.set_opened(&opened, self.is_directory);
            // Otherwise it would be closed when the other is dropped.
            other.state.lock().opened = Weak::new();
        }
    }

    /// Its places, the latest first.
    pub(super) fn places(&self) -> Vec<(Directory, Box<OsStr>)> {
        let state = self.state.lock();
        let Known::At(place) = &state.known else { return Vec::new() };
        std::iter::successors(Some(place), |place| place.next.as_deref())
            .map(|place| (place.directory.clone(), place.name.clone()))
            .collect()
    }

    /// A count that changes before and after each rename through the mount. While it stays the
    /// same, at most one rename happens.
    pub(super) fn moves(&self) -> u32 {
        self.moves.load(Ordering::SeqCst)
    }

    /// The directory of its latest place.
    pub(super) fn directory(&self) -> Option<Directory> {
        match &self.state.lock().known {
            Known::Root(_) | Known::Nowhere => None,
            Known::At(place) => Some(place.directory.clone()),
        }
    }

    /// Notes a place where it was found; a directory has only that one then.
    pub(super) fn found_at(&self, directory: &Directory, name: &OsStr) {
        self.place(directory, name, !self.is_directory);
    }

    /// Notes a place where it may be soon; until then it is at its old one.
    pub(super) fn expect_at(&self, directory: &Directory, name: &OsStr) {
        self.place(directory, name, true);
    }

    fn place(&self, directory: &Directory, name: &OsStr, keep_others: bool) {
        let is_known = match &self.state.lock().known {
            Known::Root(_) | Known::Nowhere => true,
            Known::At(place) => place.is(directory, name) && (keep_others || place.next.is_none()),
        };
        // Counted even if the place is already noted: an object that returns to its old place has
        // moved.
        self.moves.fetch_add(1, Ordering::SeqCst);
        if is_known || self.is_above(directory) {
            return;
        }
        let new = Place { directory: directory.clone(), name: name.into(), next: None };
        let mut dropped = Vec::new();
        let mut state = self.state.lock();
        let Known::At(first) = &mut state.known else { return };
        let mut before = Some(Box::new(std::mem::replace(first, new)));
        let mut last = first;
        let mut kept = 1;
        while let Some(mut place) = before {
            before = place.next.take();
            if keep_others && kept < PLACES_MAX && !place.is(directory, name) {
                last = last.next.insert(place);
                kept += 1;
            } else {
                dropped.push(place);
            }
        }
        drop(state);
        drop(dropped);
        self.moves.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a place, unless it is the only one.
    pub(super) fn gone_from(&self, directory: &Directory, name: &OsStr) {
        let mut dropped = None;
        let mut state = self.state.lock();
        let Known::At(first) = &mut state.known else { return };
        if first.is(directory, name) {
            if let Some(next) = first.next.take() {
                dropped = Some(std::mem::replace(first, *next));
            }
        } else {
            let mut at = first;
            while let Some(mut place) = at.next.take() {
                if place.is(directory, name) {
                    at.next = place.next.take();
                    dropped = Some(*place);
                    break;
                }
                at = at.next.insert(place);
            }
        }
        drop(state);
        drop(dropped);
    }

    /// Whether this object is above a directory.
    fn is_above(&self, directory: &Directory) -> bool {
        if !self.is_directory {
            return false;
        }
        let mut above = Some(directory.clone());
        for _ in 0..DEPTH_MAX {
            let Some(Directory::Object(object)) = above else { return false };
            if object.identity == self.identity {
                return true;
            }
            above = object.directory();
        }
        true
    }

    /// Clears its places, and returns their directories for the caller to drop.
    fn leave(&mut self) -> Vec<Directory> {
        let known = std::mem::replace(&mut self.state.get_mut().known, Known::Nowhere);
        let mut directories = Vec::new();
        if let Known::At(place) = known {
            let mut next = Some(Box::new(place));
            while let Some(mut place) = next {
                next = place.next.take();
                directories.push(place.directory);
            }
        }
        directories
    }
}

impl Place {
    fn is(&self, directory: &Directory, name: &OsStr) -> bool {
        *self.name == *name && self.directory == *directory
    }
}

impl Drop for Object {
    /// An otherwise unknown chain of directories is freed link by link: if each dropped the next,
    /// a deep tree would need a deep stack.
    fn drop(&mut self) {
        if let Some(opened) = self.state.get_mut().opened.upgrade() {
            self.descriptors.release(&opened);
        }
        let mut directories = self.leave();
        while let Some(directory) = directories.pop() {
            if let Directory::Object(object) = directory
                && let Some(mut object) = Arc::into_inner(object)
            {
                directories.extend(object.leave());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64) -> ObjectIdentity {
        ObjectIdentity { device: 1, inode, generation: 0 }
    }

    fn root() -> (Arc<Object>, Arc<Descriptors>) {
        let descriptors = Arc::new(Descriptors::default());
        let top = Arc::<Top>::default();
        top.replace(Some(Descriptor::new(std::fs::File::open("/").unwrap().into())));
        (Object::root(identity(1), &top, &descriptors), descriptors)
    }

    fn below(directory: &Arc<Object>, name: &str, inode: u64, is_directory: bool) -> Arc<Object> {
        let place = (Directory::Object(directory.clone()), OsStr::new(name));
        Object::at(identity(inode), is_directory, place, &directory.descriptors)
    }

    fn names(object: &Object) -> Vec<String> {
        let name = |(_, name): (_, Box<OsStr>)| name.to_str().unwrap().to_owned();
        object.places().into_iter().map(name).collect()
    }

    #[test]
    fn a_file_has_the_places_where_it_was_found_and_a_directory_the_last() {
        let (root, _) = root();
        let at = Directory::Object(root.clone());
        let file = below(&root, "0", 2, false);
        for name in ["1", "2", "0", "3", "4", "5", "6", "7", "8"] {
            file.found_at(&at, OsStr::new(name));
        }
        assert_eq!(names(&file), ["8", "7", "6", "5", "4", "3", "0", "2"]);
        for gone in ["8", "5", "2", "absent"] {
            file.gone_from(&at, OsStr::new(gone));
        }
        assert_eq!(names(&file), ["7", "6", "4", "3", "0"]);
        let directory = below(&root, "a", 3, true);
        directory.expect_at(&at, OsStr::new("b"));
        assert_eq!(names(&directory), ["b", "a"], "during its rename");
        directory.found_at(&at, OsStr::new("b"));
        assert_eq!(names(&directory), ["b"]);
        directory.gone_from(&at, OsStr::new("b"));
        assert_eq!(names(&directory), ["b"], "its only known place is still tried");
    }

    #[test]
    fn a_directory_is_never_below_itself() {
        let (root, _) = root();
        let upper = below(&root, "upper", 2, true);
        let lower = below(&upper, "lower", 3, true);
        upper.found_at(&Directory::Object(lower.clone()), OsStr::new("upper"));
        assert_eq!(names(&upper), ["upper"]);
        assert!(upper.directory() == Some(Directory::Object(root)));
        let watched = Arc::downgrade(&upper);
        drop((upper, lower));
        assert!(watched.upgrade().is_none(), "no reference keeps them");
    }

    #[test]
    fn a_deep_tree_is_dropped_on_a_small_stack() {
        let deep = || {
            let (mut object, _) = root();
            for level in 0..200_000 {
                object = below(&object, "d", level + 2, true);
            }
        };
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(deep).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn memory_of_an_object() {
        // Plus two counts of the Arc, and the name.
        assert!(size_of::<Object>() <= 96, "{}", size_of::<Object>());
    }

    #[test]
    fn the_descriptor_of_the_latest_directory_is_used() {
        let (root, descriptors) = root();
        for is_directory in [true, false] {
            let met = || {
                let object = below(&root, "name", 2, is_directory);
                let kept = descriptors.keep(std::fs::File::open("/").unwrap().into());
                object.set_opened(&kept, false);
                (object, kept)
            };
            let ((known, first), (again, second)) = (met(), met());
            known.take_over(&again);
            drop(again);
            let (serves, other) = if is_directory { (second, first) } else { (first, second) };
            assert!(Arc::ptr_eq(&known.opened().unwrap(), &serves), "{is_directory}");
            assert_eq!(Arc::strong_count(&other), 1, "the ring dropped the other");
        }
    }

    #[test]
    fn an_open_file_lends_its_descriptor_and_takes_the_place_of_the_rings() {
        let (root, descriptors) = root();
        let file = below(&root, "file", 2, false);
        let open = || std::fs::File::open("/").unwrap().into();
        let kept = descriptors.keep(open());
        file.set_opened(&kept, false);
        let of_a_program = Descriptor::new(open());
        file.set_opened(&of_a_program, true);
        assert!(Arc::ptr_eq(&file.opened().unwrap(), &of_a_program));
        assert_eq!(Arc::strong_count(&kept), 1, "the ring dropped it");
        file.set_opened(&descriptors.keep(open()), false);
        assert!(Arc::ptr_eq(&file.opened().unwrap(), &of_a_program));
        drop(of_a_program);
        assert!(file.opened().is_none());
    }
}
