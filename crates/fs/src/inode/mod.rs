//! Inodes the kernel knows: what they are, what is open, and in which order to let go of them.

mod changing;
mod table;

pub(crate) use changing::Changing;
pub(crate) use table::InodeTable;

use crate::handle::OpenFile;
use crate::version::Contents;
use ogive_origin::{Attributes, FileKind, Found, Origin};
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One object of the origin that the kernel has looked up.
///
/// A mount over millions of files keeps millions of these, so what only open files need is in a
/// box of its own. The lock is a leaf: nothing is called while it is held.
pub(crate) struct Inode<O: Origin> {
    /// Number in the view.
    pub(crate) number: u64,
    /// Tells it from earlier objects of that number.
    pub(crate) generation: u64,
    /// Name for the origin.
    pub(crate) node: O::Node,
    /// Kind of object; an object of another kind is another object.
    pub(crate) kind: FileKind,
    /// Fingerprint of the attributes that the kernel was told last.
    told: AtomicU64,
    opened: Mutex<Option<Box<OpenState<O>>>>,
    /// The name by which the kernel looked it up last.
    name: Mutex<Name>,
}

/// A name under which the kernel knows an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Number of the directory.
    pub(crate) parent: u64,
    /// Name in it; empty for the root.
    pub(crate) name: Box<OsStr>,
    /// Until when the kernel may still believe in another name as well.
    ambiguous_until: Option<Instant>,
}

impl Name {
    /// Whether this is the only name the kernel can have come by.
    pub(crate) fn is_certain(&self) -> bool {
        self.ambiguous_until.is_none_or(|until| until < Instant::now())
    }
}

/// What is kept of an inode once it has been opened.
struct OpenState<O: Origin> {
    contents: Contents,
    files: Vec<Arc<OpenFile<O>>>,
    /// Where changes through the mount are under way, in bytes.
    changing: Vec<Range<u64>>,
}

impl<O: Origin> Inode<O> {
    pub(crate) fn new(number: u64, found: Found<O::Node>) -> Self {
        Self {
            number,
            generation: found.generation,
            kind: found.attributes.kind,
            node: found.node,
            told: AtomicU64::new(0),
            opened: Mutex::new(None),
            name: Mutex::default(),
        }
    }

    /// Notes the name under which the kernel has just looked this inode up. If it was another
    /// before, the kernel may go on to believe in that one for up to `memory`.
    pub(crate) fn remember_name(&self, parent: u64, name: &OsStr, memory: Duration) {
        let mut known = self.name.lock();
        if known.parent == parent && *known.name == *name {
            return;
        }
        drop(known);
        let mut name = Name { parent, name: name.into(), ambiguous_until: None };
        known = self.name.lock();
        if known.parent != 0 {
            name.ambiguous_until = Instant::now().checked_add(memory);
        }
        let replaced = std::mem::replace(&mut *known, name);
        drop(known);
        drop(replaced);
    }

    /// The name by which it was looked up last.
    pub(crate) fn name(&self) -> Name {
        self.name.lock().clone()
    }

    /// Notes that the kernel is about to be told these attributes, and says whether it believed
    /// something else of the contents so far.
    pub(crate) fn tell(&self, attributes: &Attributes) -> bool {
        let fingerprint = attributes.identity(self.generation).digest(0) as u64 | 1;
        self.told.swap(fingerprint, Ordering::Relaxed) != fingerprint
    }

    /// Version and size of the contents, if the file has been opened.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.opened.lock().as_ref().map(|opened| opened.contents)
    }

    /// Changes what is known of the contents; `change` must not call anything that blocks.
    pub(crate) fn update_contents(&self, change: impl FnOnce(&mut Contents)) {
        if let Some(opened) = self.opened.lock().as_mut() {
            change(&mut opened.contents);
        }
    }

    /// Decides the contents on opening and returns whatever `decide` returns with them.
    pub(crate) fn open<T>(&self, decide: impl FnOnce(Option<Contents>) -> (Contents, T)) -> T {
        let mut opened = self.opened.lock();
        let (contents, result) = decide(opened.as_ref().map(|opened| opened.contents));
        match opened.as_mut() {
            Some(opened) => opened.contents = contents,
            None => {
                *opened =
                    Some(Box::new(OpenState { contents, files: Vec::new(), changing: Vec::new() }))
            }
        }
        result
    }

    /// Any open file of this inode: the only way to reach an object without a name on some
    /// origins.
    pub(crate) fn any_file(&self) -> Option<Arc<OpenFile<O>>> {
        self.opened.lock().as_ref().and_then(|opened| opened.files.first().cloned())
    }

    /// Adds an open file; true if it is the first one.
    pub(crate) fn add_file(&self, file: Arc<OpenFile<O>>) -> bool {
        let mut opened = self.opened.lock();
        let Some(opened) = opened.as_mut() else {
            return false;
        };
        opened.files.push(file);
        opened.files.len() == 1
    }

    /// Takes an open file away; true if it was the last one.
    pub(crate) fn remove_file(&self, file: &Arc<OpenFile<O>>) -> bool {
        let mut opened = self.opened.lock();
        let Some(opened) = opened.as_mut() else {
            return false;
        };
        let Some(position) = opened.files.iter().position(|other| Arc::ptr_eq(other, file)) else {
            return false;
        };
        opened.files.swap_remove(position);
        opened.files.is_empty()
    }
}
