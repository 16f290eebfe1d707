//! Removes set-user-id and set-group-id from a file that a program changes.
//!
//! A program that changes a file must not leave it with the privileges of its owner, unless it may
//! (`CAP_FSETID`). The kernel of the origin sees only the daemon, which may. The kernel above
//! leaves the check to us (`FUSE_HANDLE_KILLPRIV_V2`). With writes, truncations and changes of
//! owner it reports whether the program may. With allocations and copies it does not, so `/proc` is
//! read. `chown(path, -1, -1)` arrives as an empty change. On a privileged file it is no error from
//! a user that is not the owner. The rules are those of Linux (`setattr_should_drop_suidgid` of
//! `fs/attr.c`):
//!
//! - write, truncate, allocate, punch, zero, copy to:
//!   - set-user-id is lost without `CAP_FSETID`
//!   - set-group-id with group execute: like set-user-id
//!   - set-group-id without group execute: lost without `CAP_FSETID` and outside the group
//! - change of owner or group:
//!   - set-user-id is lost
//!   - set-group-id with group execute is lost
//!   - set-group-id without group execute: lost without `CAP_FSETID` and outside the group
//! - access control list, by an owner outside the group:
//!   - set-user-id is kept
//!   - set-group-id is lost without `CAP_FSETID`, with or without group execute
//!
//! A source that is asked on behalf of the program ([`ogive_origin::on_behalf_of`]) does this
//! itself for changes of owner and for truncations.
//!
//! The origin removes file capabilities at any write. A daemon of an ordinary user has no
//! `CAP_FSETID`, so its origin does all of this itself.

use super::Session;
use super::caller::{self, Credentials};
use super::request::Request;
use crate::view::Result;
use ogive_origin::{Attributes, Errno, FileKind, Origin, on_own_behalf};

const SET_USER_ID: u16 = 0o4000;
const SET_GROUP_ID: u16 = 0o2000;
const GROUP_EXECUTES: u16 = 0o0010;

/// The kind of a change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Its contents, by a program that may not leave it privileged.
    Contents,
    /// Its contents, by a program with unknown rights.
    ContentsByUnknown,
    /// Its owner or group.
    Owner,
    /// No change, or its owner and group to the present ones: the kernel sends the same request for
    /// both. It sends the first before a program copies to a file.
    SameOwner,
}

impl<O: Origin> Session<O> {
    /// Removes the privileges that a change is about to remove, from a file by number or by handle.
    pub(super) fn before(
        &self,
        request: &Request,
        change: Change,
        (number, handle): (u64, Option<u64>),
    ) -> Result<()> {
        let attributes = self.view.attributes_to_change(number, handle)?;
        let is_privileged = attributes.permissions & (SET_USER_ID | SET_GROUP_ID) != 0;
        // A change of owner removes them from everything but directories (`chown_common` of
        // `fs/open.c`).
        let is_concerned = match change {
            Change::Owner | Change::SameOwner => attributes.kind != FileKind::Directory,
            Change::Contents | Change::ContentsByUnknown => attributes.kind == FileKind::Regular,
        };
        if !is_concerned || !is_privileged {
            return Ok(());
        }
        let credentials = caller::credentials(request.thread, request.user, request.group);
        let permissions = left(&attributes, change, &credentials);
        let is_owner = credentials.owns_all || request.user == attributes.user;
        if change == Change::SameOwner && !is_owner {
            // Other users may not remove privileges from a file that they do not change.
            return Ok(());
        }
        self.set(number, handle, &attributes, permissions)
    }

    /// After a user outside the group has set an access control list.
    pub(super) fn after_access_list(&self, number: u64) -> Result<()> {
        let attributes = self.view.attributes_to_change(number, None)?;
        self.set(number, None, &attributes, attributes.permissions & !SET_GROUP_ID)
    }

    fn set(
        &self,
        number: u64,
        handle: Option<u64>,
        known: &Attributes,
        permissions: u16,
    ) -> Result<()> {
        if permissions == known.permissions {
            return Ok(());
        }
        match on_own_behalf(|| self.view.set_permissions(number, handle, permissions)) {
            // If the daemon may not change the mode, it may not leave it either: the origin drops
            // the bits.
            Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

/// The permissions that remain after a change.
fn left(attributes: &Attributes, change: Change, by: &Credentials) -> u16 {
    let permissions = attributes.permissions;
    let may_keep = match change {
        Change::Contents | Change::Owner | Change::SameOwner => false,
        Change::ContentsByUnknown => by.may_keep_privileges,
    };
    if may_keep {
        return permissions;
    }
    let is_trusted = by.may_keep_privileges || by.groups.contains(&attributes.group);
    let keeps_group = permissions & GROUP_EXECUTES == 0 && is_trusted;
    let lost = if keeps_group { SET_USER_ID } else { SET_USER_ID | SET_GROUP_ID };
    permissions & !lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_origin::{Tag, Time};

    fn attributes(permissions: u16) -> Attributes {
        Attributes {
            device: 0,
            inode: 2,
            kind: FileKind::Regular,
            permissions,
            links: 1,
            user: 1,
            group: 7,
            special_device: 0,
            size_bytes: 0,
            blocks: 0,
            block_size_bytes: 4096,
            accessed: Time::default(),
            modified: Time::default(),
            changed: Time::default(),
            tag: Tag::Times,
        }
    }

    #[test]
    fn the_rules_match_the_table() {
        let root = Credentials { may_keep_privileges: true, owns_all: true, groups: vec![0] };
        let member =
            Credentials { may_keep_privileges: false, owns_all: false, groups: vec![5, 7] };
        let stranger = Credentials { may_keep_privileges: false, owns_all: false, groups: vec![5] };
        let after = |mode, change, by| left(&attributes(mode), change, by);
        for by in [&member, &stranger] {
            assert_eq!(after(0o6777, Change::Contents, by), 0o777);
            assert_eq!(after(0o6777, Change::ContentsByUnknown, by), 0o777);
            assert_eq!(after(0o6777, Change::Owner, by), 0o777);
        }
        assert_eq!(after(0o6767, Change::Contents, &member), 0o2767);
        assert_eq!(after(0o6767, Change::Contents, &stranger), 0o767);
        assert_eq!(after(0o6767, Change::Owner, &stranger), 0o767);
        assert_eq!(after(0o6777, Change::ContentsByUnknown, &root), 0o6777);
        assert_eq!(after(0o6777, Change::Owner, &root), 0o777);
        assert_eq!(after(0o6767, Change::Owner, &root), 0o2767);
        assert_eq!(after(0o6777, Change::SameOwner, &root), 0o777);
    }
}
