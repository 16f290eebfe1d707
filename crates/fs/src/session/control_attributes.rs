//! Names, rights and attributes of the control directory in the view.

use super::Session;
use super::opcodes::Effect;
use super::operation::Operation;
use super::request::Request;
use crate::inode_number::{CONTROL_FIRST, Numbers, ROOT};
use crate::view::{NodeAttributes, Result};
use ogive_origin::{Access, Attributes, Errno, FileKind, OFlags, Origin, Tag, Time};
use std::ffi::OsStr;

impl<O: Origin> Session<O> {
    /// Whether a name leads to the control directory or into it.
    pub(super) fn is_control_name(&self, parent: u64, name: &OsStr) -> bool {
        Numbers::is_control(parent) || (parent == ROOT && self.control.is_named(name))
    }

    /// The control directory or a file in it, by its name.
    pub(super) fn control_entry(&self, parent: u64, name: &OsStr) -> Option<NodeAttributes> {
        if Numbers::is_control(parent) {
            return self.control_attributes(self.control.find(parent, name)?);
        }
        if self.is_control_name(parent, name) {
            return self.control_attributes(CONTROL_FIRST);
        }
        None
    }

    /// Checks that the sender of a request may enter the control directory, where the kernel does
    /// not check. It uses the last known mode of the root. It does not ask the source, which may be
    /// hanging: the control directory is there to report that.
    pub(super) fn may_come_to_control(&self, request: &Request) -> Result<()> {
        if request.node != ROOT || request.user == 0 || !self.view.settings.asks_for_each() {
            return Ok(());
        }
        let root = self.view.last_root();
        let searching = if request.user == root.user { 0o100 } else { 0o011 };
        if root.permissions & searching == 0 { Err(Errno::ACCESS) } else { Ok(()) }
    }

    /// Checks the sender's rights in the control directory by its modes. Where the source decides
    /// on rights, the kernel checks nothing.
    pub(super) fn check_control(&self, request: &Request) -> Result<()> {
        let wanted = match request.operation {
            Operation::Open { flags } => match flags & OFlags::ACCMODE {
                OFlags::RDONLY => Access::READ_OK,
                OFlags::WRONLY => Access::WRITE_OK,
                _ => Access::READ_OK | Access::WRITE_OK,
            },
            Operation::Access { wanted } => wanted,
            Operation::SetAttributes { handle: None, changes, .. }
                if changes.size_bytes.is_some() =>
            {
                Access::WRITE_OK
            }
            Operation::SetAttributes { handle: None, .. }
                if ![0, self.control.owner().0].contains(&request.user) =>
            {
                return Err(Errno::PERM);
            }
            _ if request.rules.effect == Effect::Names => Access::WRITE_OK,
            _ => return Ok(()),
        };
        let permissions = self.control.permissions(request.node).ok_or(Errno::NOENT)?;
        if may(request.user, self.control.owner().0, permissions, wanted) {
            Ok(())
        } else {
            Err(Errno::ACCESS)
        }
    }

    /// Attributes of the control directory or a file in it. The size of a file is unknown before it
    /// is opened.
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

/// Whether a user has the wanted access to a file of `owner` with these permissions. They are the
/// same for group and others.
fn may(user: u32, owner: u32, permissions: u16, wanted: Access) -> bool {
    let executable = permissions & 0o111 != 0;
    let granted = match user {
        0 if executable => 0o7,
        0 => 0o6,
        user if user == owner => permissions >> 6,
        _ => permissions,
    };
    wanted.bits() & !u32::from(granted) & 0o7 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_decide_on_rights_in_the_control_directory() {
        let (read, write) = (Access::READ_OK, Access::WRITE_OK);
        for user in [0, 5] {
            assert!(may(user, 5, 0o644, read | write), "root and the owner");
            assert!(!may(user, 5, 0o644, Access::EXEC_OK));
        }
        assert!(may(6, 5, 0o644, read) && !may(6, 5, 0o644, write));
        assert!(!may(6, 5, 0o644, read | write));
        assert!(may(0, 0, 0o400, write), "as root may anywhere");
        assert!(!may(6, 0, 0o400, read) && may(5, 5, 0o400, read) && !may(5, 5, 0o400, write));
        assert!(may(6, 0, 0o555, read | Access::EXEC_OK) && !may(6, 0, 0o555, write));
        assert!(may(6, 0, 0o400, Access::EXISTS));
    }
}
