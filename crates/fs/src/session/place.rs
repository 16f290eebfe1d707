//! Where the control directory stands in the view.

use super::Session;
use super::convert;
use crate::number::{CONTROL_FIRST, Numbers, ROOT};
use fuser::INodeNo;
use ogive_origin::Origin;
use std::ffi::OsStr;

impl<O: Origin> Session<O> {
    /// Whether a name is the control directory's, or in it.
    pub(super) fn is_control_name(&self, parent: INodeNo, name: &OsStr) -> bool {
        Numbers::is_control(parent.0) || (parent.0 == ROOT && self.control.is_named(name))
    }

    /// Attributes of the control directory or a file in it, if this is its name.
    pub(super) fn control_entry(&self, parent: INodeNo, name: &OsStr) -> Option<fuser::FileAttr> {
        if parent.0 == CONTROL_FIRST {
            return self.control_attributes(self.control.find(name)?);
        }
        if self.is_control_name(parent, name) {
            return self.control_attributes(CONTROL_FIRST);
        }
        None
    }

    /// Attributes of the control directory or a file in it.
    pub(super) fn control_attributes(&self, number: u64) -> Option<fuser::FileAttr> {
        let permissions = self.control.permissions(number)?;
        Some(convert::control(number, permissions, self.control.owner()))
    }
}
