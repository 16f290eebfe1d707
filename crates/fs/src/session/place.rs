//! Where the control directory stands in the view.

use super::Session;
use crate::number::{CONTROL_FIRST, Numbers, ROOT};
use crate::view::NodeAttributes;
use ogive_origin::{Attributes, FileKind, Origin, Tag, Time};
use std::ffi::OsStr;

impl<O: Origin> Session<O> {
    /// Whether a name is the control directory's, or in it.
    pub(super) fn is_control_name(&self, parent: u64, name: &OsStr) -> bool {
        Numbers::is_control(parent) || (parent == ROOT && self.control.is_named(name))
    }

    /// The control directory or a file in it, if this is its name.
    pub(super) fn control_entry(&self, parent: u64, name: &OsStr) -> Option<NodeAttributes> {
        if Numbers::is_control(parent) {
            return self.control_attributes(self.control.find(parent, name)?);
        }
        if self.is_control_name(parent, name) {
            return self.control_attributes(CONTROL_FIRST);
        }
        None
    }

    /// Attributes of the control directory or a file in it: of what size is not known before it is
    /// opened.
    pub(super) fn control_attributes(&self, number: u64) -> Option<NodeAttributes> {
        let permissions = self.control.permissions(number)?;
        let is_directory = self.control.is_directory(number);
        let (user, group) = self.control.owner();
        let now = Time::now();
        let attributes = Attributes {
            device: 0,
            inode: number,
            kind: if is_directory { FileKind::Directory } else { FileKind::Regular },
            permissions,
            links: if is_directory { 2 } else { 1 },
            user,
            group,
            special_device: 0,
            size_bytes: 0,
            blocks: 0,
            block_size_bytes: 4096,
            accessed: now,
            modified: now,
            changed: now,
            tag: Tag::Nothing,
        };
        Some(NodeAttributes { number, shown: number, generation: 0, attributes })
    }
}
