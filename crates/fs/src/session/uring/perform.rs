//! Carrying out a request in its slot, on a thread that may wait for the origin.
//!
//! What programs ask for often is done here, straight into the payload: one function an
//! operation, each a call of the view or of the control directory. Everything else goes to a
//! session of the protocol's library ([`super::bridge`]).

use super::bridge::Bridge;
use super::outbox::{Answer, finish};
use super::reply::{Believed, Reply};
use super::request::{Operation, Request, Transfer, names};
use super::ring::Slot;
use crate::counters::Way;
use crate::number::Numbers;
use crate::session::answer::{XATTR_MAX_BYTES, name_ttl, opened_flags};
use crate::session::{Session, convert};
use crate::view::{OpenedFile, Read, Result, Told, View};
use fuser::{FileAttr, FopenFlags, INodeNo};
use ogive_origin::{Caller, Changes, Errno, FileKind, Make, OFlags, Origin, RenameFlags};
use std::ffi::OsStr;
use std::time::Duration;

/// What is left to be done of a request that the cache cannot answer.
pub(super) enum Work<O: Origin> {
    /// A read of which records are missing.
    Read(Read<O>),
    /// A request of which nothing has been done.
    Request(Request),
}

/// Puts the bytes of a read into its slot, or the error.
pub(super) fn answer_completed<O: Origin>(
    view: &View<O>,
    read: &Read<O>,
    completed: Result<()>,
    answer: &mut Answer,
) {
    match completed {
        Ok(()) => view.finish_read(read, |bytes| answer.fill(Ok(bytes))),
        Err(errno) => answer.fill(Err(errno)),
    }
}

/// What a request is carried out with.
pub(super) struct Performer<O: Origin> {
    pub(super) session: Session<O>,
    pub(super) bridge: Bridge<O>,
    /// The one user whose requests are answered; with `None` everybody's are.
    pub(super) owner: Option<u32>,
}

impl<O: Origin> Performer<O> {
    /// Does it, and puts the answer into the slot.
    pub(super) fn perform(&self, work: Work<O>, answer: &mut Answer) {
        match work {
            Work::Read(mut read) => {
                let view = &self.session.view;
                let completed = view.complete_read(&mut read);
                answer_completed(view, &read, completed, answer);
            }
            Work::Request(request) => {
                let Some(slot) = answer.slot() else { return };
                let result = match self.must_refuse(&request) {
                    true => Err(Errno::ACCESS),
                    false => self.carry_out(&request, slot),
                };
                finish(slot.parts_mut().0, result);
            }
        }
    }

    /// Whether a request is of a user who is answered nothing but what the kernel may ask for in
    /// anybody's name, of files that are open.
    fn must_refuse(&self, request: &Request) -> bool {
        let by_handle = matches!(
            request.operation,
            Operation::Read(_)
                | Operation::Write(_)
                | Operation::Sync { .. }
                | Operation::Release { .. }
                | Operation::List(_)
                | Operation::ListWithAttributes(_)
                | Operation::ReleaseDirectory { .. }
                // The library's session has a rule of its own for each of these.
                | Operation::Other
        );
        !by_handle && self.owner.is_some_and(|owner| owner != request.user)
    }

    /// The answer's length: it stands in the payload then.
    fn carry_out(&self, request: &Request, slot: &mut Slot) -> Result<usize> {
        if request.operation == Operation::Other {
            self.session.view.counters.ring(Way::Bridged);
            return self.bridge.pass_on(request, slot);
        }
        let payload = slot.parts_mut().1;
        let given = request.payload_bytes;
        let node = request.node;
        match request.operation {
            Operation::Write(transfer) => {
                let written = self.write(node, transfer, &payload[..given])?;
                let mut reply = Reply::new(payload);
                // `struct fuse_write_out`; never more than was asked for, in 32 bits.
                reply.u32(written as u32);
                reply.u32(0);
                Ok(reply.length())
            }
            Operation::Lookup => {
                let [name] = named(payload, given)?;
                self.lookup(request, &name, Reply::new(payload))
            }
            Operation::Attributes { handle } => self.attributes(node, handle, Reply::new(payload)),
            Operation::SetAttributes { handle, changes } => {
                self.set_attributes(request, handle, &changes, Reply::new(payload))
            }
            Operation::ReadLink => {
                let target = self.session.view.read_link(node)?;
                let mut reply = Reply::new(payload);
                reply.bytes(target.as_encoded_bytes());
                Ok(reply.length())
            }
            Operation::Open { flags } => self.open(request, flags, Reply::new(payload)),
            Operation::Create { flags, mode, umask } => {
                let [name] = named(payload, given)?;
                self.create(request, &name, flags, (mode, umask), Reply::new(payload))
            }
            Operation::List(transfer) => self.list(node, transfer, limited(payload, transfer)),
            Operation::ListWithAttributes(transfer) => {
                self.list_with_attributes(node, transfer, limited(payload, transfer))
            }
            Operation::MakeDirectory { mode, umask } => {
                let [name] = named(payload, given)?;
                self.make_directory(request, &name, (mode, umask), Reply::new(payload))
            }
            Operation::GetXattr { size_bytes } => {
                let [name] = named(payload, given)?;
                if Numbers::is_control(node) {
                    return Err(Errno::NODATA);
                }
                let view = &self.session.view;
                xattr(size_bytes, payload, |into| view.get_xattr(node, &name, into))
            }
            Operation::ListXattrs { size_bytes } => {
                if Numbers::is_control(node) {
                    return Err(Errno::NOTSUP);
                }
                xattr(size_bytes, payload, |into| self.session.view.list_xattrs(node, into))
            }
            Operation::Unlink | Operation::RemoveDirectory => {
                let [name] = named(payload, given)?;
                self.remove(request, &name).map(|()| 0)
            }
            Operation::Rename { new_parent, flags } => {
                let [name, new_name] = named(payload, given)?;
                self.rename((node, &name), (new_parent, &new_name), flags).map(|()| 0)
            }
            Operation::OpenDirectory => self.open_directory(request, Reply::new(payload)),
            _ => self.with_handle(request).map(|()| 0),
        }
    }

    /// Operations on a handle that are answered with success alone.
    fn with_handle(&self, request: &Request) -> Result<()> {
        let Session { view, control, .. } = &self.session;
        let is_control = Numbers::is_control(request.node);
        match request.operation {
            Operation::Flush { handle } if is_control => control.flush(handle),
            Operation::Flush { handle } => view.flush(handle),
            Operation::Sync { handle, data_only } if !is_control => view.sync(handle, data_only),
            Operation::Release { handle } => {
                if is_control {
                    control.release(handle)
                } else {
                    view.release(handle)
                }
                Ok(())
            }
            Operation::ReleaseDirectory { handle } if !is_control => {
                view.release_directory(handle);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write(&self, node: u64, transfer: Transfer, bytes: &[u8]) -> Result<usize> {
        let Transfer { handle, offset, .. } = transfer;
        if Numbers::is_control(node) {
            return self.session.control.write(handle, bytes);
        }
        self.session.view.write(handle, offset, bytes)
    }

    fn lookup(&self, request: &Request, name: &OsStr, mut reply: Reply<'_>) -> Result<usize> {
        let session = &self.session;
        if let Some(attributes) = session.control_entry(INodeNo(request.node), name) {
            reply.entry(Believed::NONE, &attributes);
            return Ok(reply.length());
        }
        let view = &session.view;
        match view.lookup(request.node, name, request.thread) {
            Err(Errno::NOENT) if !view.settings.negative_ttl.is_zero() => {
                let ttl = view.settings.negative_ttl;
                let believed = Believed { name: ttl, attributes: ttl, generation: 0 };
                reply.entry(believed, &convert::absent());
                Ok(reply.length())
            }
            result => {
                let answered = result.map(|told| self.entry(&told, reply));
                view.keep_inode_limit();
                answered
            }
        }
    }

    fn entry(&self, told: &Told, mut reply: Reply<'_>) -> usize {
        reply.entry(self.believed(told), &convert::attributes(told));
        reply.length()
    }

    fn believed(&self, told: &Told) -> Believed {
        let view = &self.session.view;
        Believed {
            name: name_ttl(view, told),
            attributes: view.settings.metadata_ttl,
            generation: told.generation,
        }
    }

    fn attributes(&self, node: u64, handle: Option<u64>, mut reply: Reply<'_>) -> Result<usize> {
        if Numbers::is_control(node) {
            let attributes = self.session.control_attributes(node).ok_or(Errno::NOENT)?;
            reply.attributes(Duration::ZERO, &attributes);
        } else {
            let view = &self.session.view;
            let told = view.attributes(node, handle)?;
            reply.attributes(view.settings.metadata_ttl, &convert::attributes(&told));
        }
        Ok(reply.length())
    }

    fn set_attributes(
        &self,
        request: &Request,
        handle: Option<u64>,
        changes: &Changes,
        mut reply: Reply<'_>,
    ) -> Result<usize> {
        let view = &self.session.view;
        if Numbers::is_control(request.node) {
            // Truncation on opening for writing; there is nothing else to change.
            if changes.permissions.or(changes.user).or(changes.group).is_some() {
                return Err(Errno::PERM);
            }
            let attributes = self.control_attributes(request.node)?;
            reply.attributes(Duration::ZERO, &attributes);
        } else {
            let told = view.set_attributes(request.node, handle, changes, request.thread)?;
            reply.attributes(view.settings.metadata_ttl, &convert::attributes(&told));
        }
        Ok(reply.length())
    }

    fn control_attributes(&self, node: u64) -> Result<FileAttr> {
        self.session.control_attributes(node).ok_or(Errno::PERM)
    }

    fn open(&self, request: &Request, flags: OFlags, mut reply: Reply<'_>) -> Result<usize> {
        if Numbers::is_control(request.node) {
            let handle = self.session.control.open(request.node, flags)?;
            reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO);
        } else {
            let opened = self.session.view.open(request.node, flags, request.thread)?;
            self.opened(&opened, &mut reply);
        }
        Ok(reply.length())
    }

    fn opened(&self, opened: &OpenedFile, reply: &mut Reply<'_>) {
        reply.opened(opened.handle, opened_flags(&self.session.view, opened));
    }

    fn create(
        &self,
        request: &Request,
        name: &OsStr,
        flags: OFlags,
        (mode, umask): (u32, u32),
        mut reply: Reply<'_>,
    ) -> Result<usize> {
        let parent = request.node;
        if self.session.is_control_name(INodeNo(parent), name) {
            return Err(Errno::PERM);
        }
        let view = &self.session.view;
        let caller = caller(request, umask);
        let (told, opened) = view.create(parent, name, flags, mode, caller)?;
        let ttl = view.settings.metadata_ttl;
        let believed = Believed { name: ttl, attributes: ttl, generation: told.generation };
        reply.entry(believed, &convert::attributes(&told));
        self.opened(&opened, &mut reply);
        Ok(reply.length())
    }

    fn make_directory(
        &self,
        request: &Request,
        name: &OsStr,
        (mode, umask): (u32, u32),
        reply: Reply<'_>,
    ) -> Result<usize> {
        if self.session.is_control_name(INodeNo(request.node), name) {
            return Err(Errno::EXIST);
        }
        let what = Make::Directory { mode };
        let told = self.session.view.make(request.node, name, what, caller(request, umask))?;
        Ok(self.entry(&told, reply))
    }

    fn remove(&self, request: &Request, name: &OsStr) -> Result<()> {
        if self.session.is_control_name(INodeNo(request.node), name) {
            return Err(Errno::PERM);
        }
        match request.operation {
            Operation::Unlink => self.session.view.unlink(request.node, name),
            _ => self.session.view.remove_directory(request.node, name),
        }
    }

    fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        let session = &self.session;
        if session.is_control_name(INodeNo(parent), name)
            || session.is_control_name(INodeNo(new_parent), new_name)
        {
            return Err(Errno::PERM);
        }
        session.view.rename((parent, name), (new_parent, new_name), flags)
    }

    fn open_directory(&self, request: &Request, mut reply: Reply<'_>) -> Result<usize> {
        let handle = match Numbers::is_control(request.node) {
            true => 0,
            false => self.session.view.open_directory(request.node, request.thread)?,
        };
        reply.opened(handle, FopenFlags::empty());
        Ok(reply.length())
    }

    /// Names, numbers and kinds from a cookie on, as many as there is room for.
    fn list(&self, node: u64, wanted: Transfer, mut reply: Reply<'_>) -> Result<usize> {
        if Numbers::is_control(node) {
            let entries = self.session.control.entries().into_iter().zip(1..);
            for ((name, number, kind), next) in entries.skip(wanted.offset as usize) {
                if !reply.listed(number, next, convert::kind(kind), OsStr::new(name)) {
                    break;
                }
            }
            return Ok(reply.length());
        }
        let view = &self.session.view;
        view.read_directory(wanted.handle, wanted.offset, false, &mut |entry| {
            // Without a kind the kernel's protocol has no "unknown"; programs that care ask.
            let kind = convert::kind(entry.kind.unwrap_or(FileKind::Regular));
            reply.listed(entry.number, entry.cookie, kind, entry.name)
        })?;
        Ok(reply.length())
    }

    /// The same with attributes; the kernel counts a reference to each entry it takes.
    fn list_with_attributes(
        &self,
        node: u64,
        wanted: Transfer,
        mut reply: Reply<'_>,
    ) -> Result<usize> {
        if Numbers::is_control(node) {
            let entries = self.session.control.entries().into_iter().zip(1..);
            for ((name, number, _), next) in entries.skip(wanted.offset as usize) {
                let Some(attributes) = self.session.control_attributes(number) else { continue };
                let (believed, name) = (Some(Believed::NONE), OsStr::new(name));
                if !reply.listed_with_attributes(believed, next, &attributes, name) {
                    break;
                }
            }
            return Ok(reply.length());
        }
        let view = &self.session.view;
        let listed = view.read_directory(wanted.handle, wanted.offset, true, &mut |entry| {
            let (believed, attributes) = match entry.told {
                Some(told) => (Some(self.believed(&told)), convert::attributes(&told)),
                // Listed without being looked up: no attributes to believe, no reference.
                None => {
                    let kind = convert::kind(entry.kind.unwrap_or(FileKind::Regular));
                    let ino = INodeNo(entry.number);
                    (None, FileAttr { ino, kind, ..convert::absent() })
                }
            };
            reply.listed_with_attributes(believed, entry.cookie, &attributes, entry.name)
        });
        view.keep_inode_limit();
        listed.map(|()| reply.length())
    }
}

/// Answers with a length, or with as many bytes as there is room for.
fn xattr(
    size_bytes: u32,
    payload: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<usize> {
    let room = (size_bytes as usize).min(XATTR_MAX_BYTES).min(payload.len());
    let length = read(&mut payload[..room])?;
    if size_bytes > 0 {
        return Ok(length.min(room));
    }
    let mut reply = Reply::new(payload);
    // `struct fuse_getxattr_out`.
    reply.u32(u32::try_from(length).unwrap_or(u32::MAX));
    reply.u32(0);
    Ok(reply.length())
}

/// The names in a payload of this length.
fn named<const N: usize>(payload: &[u8], length_bytes: usize) -> Result<[std::ffi::OsString; N]> {
    names(&payload[..length_bytes]).ok_or(Errno::INVAL)
}

/// A reply with as much room as was asked for.
fn limited(payload: &mut [u8], wanted: Transfer) -> Reply<'_> {
    let room = payload.len().min(wanted.length_bytes as usize);
    Reply::new(&mut payload[..room])
}

fn caller(request: &Request, umask: u32) -> Caller {
    Caller { user: request.user, group: request.group, umask }
}
