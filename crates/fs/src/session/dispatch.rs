//! The dispatcher: which handler carries a request out, however the request came.
//!
//! The rows stand in the order of the table of opcodes ([`super::opcodes`]). That table has the
//! rules that apply before: the users that may send a request, and the answer of the control
//! directory. [`super::exchange`] decides whether a request waits, and how its answer gets back.

use super::Session;
use super::opcodes::ControlAnswer;
use super::operation::Operation;
use super::request::Request;
use crate::view::Result;
use ogive_origin::{Errno, Origin};

impl<O: Origin> Session<O> {
    /// Carries out a request. The payload stands at the beginning of `buffer`, which the answer
    /// replaces. Returns the length of the answer.
    ///
    /// # Errors
    /// The error of the operation; there is no answer then.
    pub(super) fn perform(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        if self.owner.is_some_and(|owner| !request.may_be_sent_by(request.user, owner)) {
            return Err(Errno::ACCESS);
        }
        if request.is_control() {
            if self.view.settings.permissions.are_of_source() {
                self.check_control(request)?;
            }
            match request.rules.control {
                ControlAnswer::Served => {}
                ControlAnswer::Done => return Ok(0),
                ControlAnswer::Refused(errno) => return Err(errno),
            }
        }
        self.dispatch(request, buffer)
    }

    fn dispatch(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let (view, node) = (&self.view, request.node);
        let done = |()| 0;
        match request.operation {
            Operation::Lookup => self.lookup(request, buffer),
            Operation::Forget { lookups } => self.forget(node, lookups).map(done),
            Operation::Attributes { handle } => self.attributes(node, handle, buffer),
            Operation::SetAttributes { handle, changes, kills_privileges } => {
                self.set_attributes(request, handle, (&changes, kills_privileges), buffer)
            }
            Operation::ReadLink => self.read_link(node, buffer),
            Operation::Symlink => self.make_symlink(request, buffer),
            Operation::MakeNode { mode, device, umask } => {
                self.make_node(request, (mode, umask), device, buffer)
            }
            Operation::MakeDirectory { mode, umask } => {
                self.make_directory(request, (mode, umask), buffer)
            }
            Operation::Unlink | Operation::RemoveDirectory => {
                self.remove(request, buffer).map(done)
            }
            Operation::Rename { new_parent, flags } => {
                self.rename(request, new_parent, flags, buffer).map(done)
            }
            Operation::Link { node } => self.link(request, node, buffer),
            Operation::Open { flags } => self.open(request, flags, buffer),
            Operation::Read { from, .. } => self.read(from, buffer),
            Operation::Write { to, kills_privileges, flags } => {
                self.write(request, (to, flags), kills_privileges, buffer)
            }
            Operation::Statistics => self.statistics(request, buffer),
            Operation::Release { handle } => self.release(request, handle).map(done),
            Operation::Sync { handle, data_only } => view.sync(handle, data_only).map(done),
            Operation::SetXattr { size_bytes, flags, kills_set_group_id } => {
                self.set_xattr(request, (size_bytes, flags), kills_set_group_id, buffer).map(done)
            }
            Operation::GetXattr { size_bytes } => self.get_xattr(request, size_bytes, buffer),
            Operation::ListXattrs { size_bytes } => self.list_xattrs(node, size_bytes, buffer),
            Operation::RemoveXattr => self.remove_xattr(request, buffer).map(done),
            Operation::Flush { handle } => self.flush(request, handle).map(done),
            Operation::OpenDirectory => self.open_directory(request, buffer),
            Operation::List(wanted) => self.list(node, wanted, buffer),
            Operation::ReleaseDirectory { handle } => self.release_directory(handle).map(done),
            Operation::SyncDirectory { handle } => view.sync_directory(handle).map(done),
            Operation::Access { wanted } => view.access(node, wanted).map(done),
            Operation::Create { flags, mode, umask } => {
                self.create(request, flags, (mode, umask), buffer)
            }
            Operation::Destroy | Operation::Wakeup => Ok(0),
            Operation::Flags { form } => self.flags(node, form, buffer),
            Operation::SetFlags { form } => self.set_flags(request, form, buffer),
            // No file here has an ioctl. Programs ask whether a file is a terminal.
            Operation::Control => Err(Errno::NOTTY),
            Operation::ForgetMany { count } => self.forget_many(request, count, buffer).map(done),
            Operation::Allocate { handle, allocation } => {
                self.allocate(request, handle, allocation).map(done)
            }
            Operation::ListWithAttributes(wanted) => {
                self.list_with_attributes(node, wanted, buffer)
            }
            Operation::Seek { handle, offset, whence } => {
                self.seek((handle, offset), whence, buffer)
            }
            Operation::CopyRange { from, to_node, to, length_bytes } => {
                self.copy_range(request, from, (to_node, to), length_bytes, buffer)
            }
            Operation::Malformed => Err(Errno::INVAL),
            // An interrupt comes through the device, and is no request of its own.
            Operation::Interrupt { .. } | Operation::Unknown => Err(Errno::NOSYS),
        }
    }
}
