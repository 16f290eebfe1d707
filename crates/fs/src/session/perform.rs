//! The one dispatcher: what each operation means, whichever way its request came.
//!
//! A request stands in a buffer that its answer is put into: the payload comes first, and of the
//! answer the length is returned. One function an operation, each a call of the view or of the
//! control directory. Where a request may wait, and how its answer gets back, is the business of
//! [`super::exchange`].

use super::Session;
use super::caller;
use super::privileges::Change;
use super::reply::{Reply, Validity, device, open_flags};
use super::request::{
    Operation, Request, Transfer, XATTR_MAX_BYTES, flags, forgotten, name_and_value, names,
};
use crate::inode::Sharing;
use crate::number::{Numbers, ROOT};
use crate::view::{NodeAttributes, OpenedDirectory, OpenedFile, Result, View, WriteMode};
use ogive_origin::{Caller, Changes, Errno, FileKind, Make, OFlags, Origin, RenameFlags};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

impl<O: Origin> Session<O> {
    /// Carries out a request, the payload of which stands at the beginning of `buffer`, and puts
    /// the answer there; returns its length.
    ///
    /// # Errors
    /// What the operation fails with; there is no answer then.
    pub(super) fn perform(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        if self.must_refuse(request) {
            return Err(Errno::ACCESS);
        }
        if self.view.settings.permissions.are_of_source() {
            self.check_control(request)?;
        }
        let node = request.node;
        match request.operation {
            Operation::Write { to, kills_privileges, flags } => {
                if kills_privileges && !request.is_control() {
                    self.before(request, Change::Contents, (node, Some(to.handle)))?;
                }
                let given = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
                let written = self.write(request, to, flags, given)?;
                Ok(answer(buffer, |reply| reply.count(written)))
            }
            Operation::Read { from, .. } => self.read_from_origin(from, buffer),
            Operation::Lookup => {
                let [name] = named(request, buffer)?;
                self.lookup(request, &name, Reply::new(buffer))
            }
            Operation::Attributes { handle } => self.attributes(node, handle, Reply::new(buffer)),
            Operation::SetAttributes { handle, changes, kills_privileges } => {
                // Nothing to be changed: that is how a change to the same owner and group arrives.
                let is_same_owner = changes == Changes::default();
                // The source does so itself where it sees who asks, and first whether they may.
                let kills = kills_privileges && !self.view.settings.permissions.are_of_source();
                if (kills || is_same_owner) && !request.is_control() {
                    let change = if is_same_owner {
                        Change::SameOwner
                    } else if changes.user.or(changes.group).is_some() {
                        Change::Owner
                    } else {
                        Change::Contents
                    };
                    self.before(request, change, (node, handle))?;
                }
                self.set_attributes(request, handle, &changes, Reply::new(buffer))
            }
            Operation::ReadLink => {
                let target = self.view.read_link(node)?;
                Ok(answer(buffer, |reply| reply.bytes(target.as_encoded_bytes())))
            }
            Operation::Open { flags } => self.open(request, flags, Reply::new(buffer)),
            Operation::Create { flags, mode, umask } => {
                let [name] = named(request, buffer)?;
                self.create(request, &name, flags, (mode, umask), Reply::new(buffer))
            }
            Operation::List(wanted) => self.list(node, wanted, limited(buffer, wanted)),
            Operation::ListWithAttributes(wanted) => {
                self.list_with_attributes(node, wanted, limited(buffer, wanted))
            }
            Operation::OpenDirectory => self.open_directory(request, Reply::new(buffer)),
            Operation::Statistics => {
                let node = if request.is_control() { ROOT } else { node };
                let statistics = self.view.statistics(node)?;
                Ok(answer(buffer, |reply| reply.statistics(&statistics)))
            }
            Operation::Seek { handle, offset, whence } => {
                if request.is_control() {
                    return Err(Errno::INVAL);
                }
                let found = self.view.seek(handle, offset, View::<O>::whence(whence as i32)?)?;
                Ok(answer(buffer, |reply| reply.u64(found)))
            }
            Operation::CopyRange { from, to_node, to, length_bytes } => {
                if request.is_control() || Numbers::is_control(to_node) {
                    return Err(Errno::XDEV);
                }
                let to_file = (to_node, Some(to.0));
                self.before(request, Change::ContentsByAnybody, to_file)?;
                let copied = self.view.copy_range(from, to, length_bytes)?;
                Ok(answer(buffer, |reply| reply.count(copied)))
            }
            _ => self.change_names(request, buffer),
        }
    }

    /// Operations that make or change names.
    fn change_names(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        match request.operation {
            Operation::MakeDirectory { mode, umask } => {
                let [name] = named(request, buffer)?;
                let what = Make::Directory { mode };
                self.make(request, &name, what, umask, Reply::new(buffer))
            }
            Operation::Symlink => {
                let [name, target] = named(request, buffer)?;
                let what = Make::Symlink { target: &target };
                self.make(request, &name, what, 0, Reply::new(buffer))
            }
            Operation::MakeNode { mode, device, umask } => {
                let [name] = named(request, buffer)?;
                let what = Make::Special { mode, device: device::decode(device) };
                self.make(request, &name, what, umask, Reply::new(buffer))
            }
            Operation::Link { node } => {
                let [name] = named(request, buffer)?;
                if self.is_control_name(request.node, &name) || Numbers::is_control(node) {
                    return Err(Errno::PERM);
                }
                let known = self.view.link(node, request.node, &name)?;
                Ok(self.entry(&known, Reply::new(buffer)))
            }
            Operation::Unlink | Operation::RemoveDirectory => {
                let [name] = named(request, buffer)?;
                self.remove(request, &name).map(|()| 0)
            }
            Operation::Rename { new_parent, flags } => {
                let [name, new_name] = named(request, buffer)?;
                self.rename((request.node, &name), (new_parent, &new_name), flags).map(|()| 0)
            }
            _ => self.change_extended_attributes(request, buffer),
        }
    }

    /// Operations on extended attributes and on flags of files.
    fn change_extended_attributes(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let (node, is_control) = (request.node, request.is_control());
        match request.operation {
            Operation::GetXattr { .. } if is_control => Err(Errno::NODATA),
            Operation::GetXattr { size_bytes } => {
                let [name] = named(request, buffer)?;
                xattr(size_bytes, buffer, |into| self.view.get_xattr(node, &name, into))
            }
            Operation::ListXattrs { .. } | Operation::SetXattr { .. } | Operation::RemoveXattr
                if is_control =>
            {
                Err(Errno::NOTSUP)
            }
            Operation::ListXattrs { size_bytes } => {
                xattr(size_bytes, buffer, |into| self.view.list_xattrs(node, into))
            }
            Operation::SetXattr { size_bytes, flags, kills_set_group_id } => {
                let payload = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
                let (name, value) = name_and_value(payload, size_bytes).ok_or(Errno::INVAL)?;
                self.view.set_xattr(node, &name, value, flags)?;
                if kills_set_group_id {
                    self.after_access_list(node)?;
                }
                Ok(0)
            }
            Operation::RemoveXattr => {
                let [name] = named(request, buffer)?;
                self.view.remove_xattr(node, &name).map(|()| 0)
            }
            Operation::Flags { .. } | Operation::SetFlags { .. } if is_control => Err(Errno::NOTTY),
            Operation::Flags { form } => {
                let flags = self.view.flags(node, form)?;
                Ok(answer(buffer, |reply| reply.flags(flags)))
            }
            Operation::SetFlags { form } => {
                let payload = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
                let flags = flags(payload, form).ok_or(Errno::INVAL)?;
                self.view.set_flags(node, flags, request.user)?;
                Ok(answer(buffer, |reply| reply.controlled()))
            }
            _ => self.with_handle(request, buffer).map(|()| 0),
        }
    }

    fn read_from_origin(&self, from: Transfer, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len().min(from.length_bytes as usize);
        self.view.read_from_origin(from.handle, from.offset, &mut buffer[..length])
    }

    /// Operations that are answered with success alone.
    fn with_handle(&self, request: &Request, buffer: &mut [u8]) -> Result<()> {
        let Self { view, control, .. } = self;
        let is_control = request.is_control();
        match request.operation {
            Operation::Access { .. } if is_control => Ok(()),
            Operation::Access { wanted } => view.access(request.node, wanted),
            Operation::Flush { handle } if is_control => control.flush(handle),
            Operation::Flush { handle } => view.flush(handle),
            Operation::Sync { .. } | Operation::SyncDirectory { .. } if is_control => Ok(()),
            Operation::Sync { handle, data_only } => view.sync(handle, data_only),
            Operation::SyncDirectory { handle } => view.sync_directory(handle),
            Operation::Release { handle } => {
                if is_control {
                    control.release(handle);
                } else {
                    view.release(handle);
                }
                Ok(())
            }
            Operation::ReleaseDirectory { handle } => {
                if !is_control {
                    view.release_directory(handle);
                }
                Ok(())
            }
            Operation::Allocate { .. } if is_control => Err(Errno::NOTSUP),
            Operation::Allocate { handle, allocation } => {
                self.before(request, Change::ContentsByAnybody, (request.node, Some(handle)))?;
                view.allocate(handle, allocation)
            }
            Operation::Forget { lookups } => {
                view.forget(request.node, lookups);
                Ok(())
            }
            Operation::ForgetMany { count } => {
                let payload = buffer.get(..request.payload_bytes).unwrap_or(&[]);
                for (node, lookups) in forgotten(payload, count) {
                    view.forget(node, lookups);
                }
                Ok(())
            }
            // There is none that a file here has. Programs ask whether it is a terminal.
            Operation::Control => Err(Errno::NOTTY),
            Operation::Nudge | Operation::Destroy => Ok(()),
            Operation::Malformed => Err(Errno::INVAL),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Whether a request is of another user than the one of the mount, and not of a file that is
    /// open: the kernel asks for those in the name of whoever has been handed the descriptor.
    fn must_refuse(&self, request: &Request) -> bool {
        let is_another = self.owner.is_some_and(|owner| owner != request.user);
        is_another && !request.operation.is_of_open_file()
    }

    fn write(&self, request: &Request, to: Transfer, flags: OFlags, bytes: &[u8]) -> Result<usize> {
        let Transfer { handle, offset, .. } = to;
        if request.is_control() {
            return self.control.write(handle, bytes);
        }
        let mode = WriteMode {
            appends: flags.contains(OFlags::APPEND),
            is_direct: flags.contains(OFlags::DIRECT) || self.view.settings.direct_io,
            one_write: &|| caller::one_write(request.thread),
        };
        self.view.write(handle, offset, bytes, mode)
    }

    fn lookup(&self, request: &Request, name: &OsStr, mut reply: Reply<'_>) -> Result<usize> {
        if let Some(known) = self.control_entry(request.node, name) {
            self.may_come_to_control(request)?;
            reply.entry(self.control_validity(request.node), &known);
            return Ok(reply.length());
        }
        if Numbers::is_control(request.node) {
            // Exporters of metrics leave out what is not there, and give up at any other error.
            return Err(Errno::NOENT);
        }
        let view = &self.view;
        match view.lookup(request.node, name, request.thread) {
            Err(Errno::NOENT) if view.may_remember_absence(request.node) => {
                reply.absent(view.settings.negative_ttl);
                Ok(reply.length())
            }
            result => {
                let answered = result.map(|known| self.entry(&known, reply));
                view.keep_inode_limit();
                answered
            }
        }
    }

    /// How long the kernel may follow a name of the control directory. Its own name is kept: to ask
    /// for it the kernel waits for whoever is making a name in the root, and that one may be waiting
    /// for a source that does not answer.
    fn control_validity(&self, parent: u64) -> Validity {
        const FOR_LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        let is_kept = parent == ROOT && !self.view.settings.asks_for_each();
        Validity { name: if is_kept { FOR_LONG } else { Duration::ZERO }, ..Validity::NONE }
    }

    fn entry(&self, known: &NodeAttributes, mut reply: Reply<'_>) -> usize {
        reply.entry(self.validity(known), known);
        reply.length()
    }

    /// How long the kernel may follow a name without asking. Opening a file is checked
    /// ([`View::open`]), but nobody is asked when a symbolic link is followed.
    fn validity(&self, known: &NodeAttributes) -> Validity {
        let settings = &self.view.settings;
        let may_remember = self.view.may_remember_name(known);
        let name = if may_remember { settings.name_ttl() } else { Duration::ZERO };
        Validity { name, attributes: settings.metadata_ttl }
    }

    fn attributes(&self, node: u64, handle: Option<u64>, mut reply: Reply<'_>) -> Result<usize> {
        if Numbers::is_control(node) {
            let known = self.control_attributes(node).ok_or(Errno::NOENT)?;
            reply.attributes(Duration::ZERO, &known);
        } else {
            let (known, lasting) = match self.view.attributes_for_size(node, handle) {
                Some(known) => (known?, Duration::ZERO),
                None => (self.view.attributes(node, handle)?, self.view.settings.metadata_ttl),
            };
            if node == ROOT {
                self.in_flight.remember_root(&known);
            }
            reply.attributes(lasting, &known);
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
        if request.is_control() {
            // Truncation on opening for writing; there is nothing else to change.
            if changes.permissions.or(changes.user).or(changes.group).is_some() {
                return Err(Errno::PERM);
            }
            let known = self.control_attributes(request.node).ok_or(Errno::PERM)?;
            reply.attributes(Duration::ZERO, &known);
        } else {
            let view = &self.view;
            let known = view.set_attributes(request.node, handle, changes, request.thread)?;
            reply.attributes(view.settings.metadata_ttl, &known);
        }
        Ok(reply.length())
    }

    fn open(&self, request: &Request, flags: OFlags, mut reply: Reply<'_>) -> Result<usize> {
        if request.is_control() {
            let handle = self.control.open(request.node, flags)?;
            reply.opened(handle, open_flags::DIRECT_IO);
        } else {
            let opened = self.view.open(request.node, flags, request.thread)?;
            self.opened(&opened, &mut reply);
        }
        Ok(reply.length())
    }

    /// What the kernel should know of a file that was opened. It takes no word about pages of one
    /// that it reads itself.
    fn opened(&self, opened: &OpenedFile, reply: &mut Reply<'_>) {
        let when = |is_so, flag| if is_so { flag } else { 0 };
        if let Some(backing) = opened.backing {
            let flags = open_flags::PASSTHROUGH | when(!opened.writable, open_flags::NOFLUSH);
            return reply.opened_with(opened.handle, flags, backing.number());
        }
        let is_direct = self.view.settings.direct_io || !opened.size_tells;
        let flags = when(is_direct, open_flags::DIRECT_IO)
            | when(opened.keep_pages, open_flags::KEEP_CACHE)
            | when(!opened.writable, open_flags::NOFLUSH);
        reply.opened(opened.handle, flags);
    }

    fn create(
        &self,
        request: &Request,
        name: &OsStr,
        flags: OFlags,
        (mode, umask): (u32, u32),
        mut reply: Reply<'_>,
    ) -> Result<usize> {
        if self.is_control_name(request.node, name) {
            return Err(Errno::PERM);
        }
        let caller = caller(request, umask);
        let (known, opened) = self.view.create(request.node, name, flags, mode, caller)?;
        reply.entry(self.validity(&known), &known);
        self.opened(&opened, &mut reply);
        Ok(reply.length())
    }

    fn make(
        &self,
        request: &Request,
        name: &OsStr,
        what: Make<'_>,
        umask: u32,
        reply: Reply<'_>,
    ) -> Result<usize> {
        let is_control = self.is_control_name(request.node, name);
        match what {
            Make::Special { mode, .. } => {
                let kind = FileKind::from_mode(mode);
                let is_device =
                    matches!(kind, Some(FileKind::CharacterDevice | FileKind::BlockDevice));
                if is_control || (is_device && !self.device_nodes) {
                    return Err(Errno::PERM);
                }
            }
            Make::Directory { .. } | Make::Symlink { .. } if is_control => {
                return Err(Errno::EXIST);
            }
            Make::Directory { .. } | Make::Symlink { .. } => {}
        }
        let known = self.view.make(request.node, name, what, caller(request, umask))?;
        Ok(self.entry(&known, reply))
    }

    fn remove(&self, request: &Request, name: &OsStr) -> Result<()> {
        if self.is_control_name(request.node, name) {
            return Err(Errno::PERM);
        }
        match request.operation {
            Operation::Unlink => self.view.unlink(request.node, name),
            _ => self.view.remove_directory(request.node, name),
        }
    }

    fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        if self.is_control_name(parent, name) || self.is_control_name(new_parent, new_name) {
            return Err(Errno::PERM);
        }
        self.view.rename((parent, name), (new_parent, new_name), flags)
    }

    fn open_directory(&self, request: &Request, mut reply: Reply<'_>) -> Result<usize> {
        let opened = match request.is_control() {
            true => OpenedDirectory { handle: 0, sharing: None },
            false => self.view.open_directory(request.node, request.thread)?,
        };
        let flags = match opened.sharing {
            None => 0,
            Some(Sharing { keeps: false, .. }) => open_flags::CACHE_DIR,
            Some(Sharing { keeps: true, .. }) => open_flags::CACHE_DIR | open_flags::KEEP_CACHE,
        };
        reply.opened(opened.handle, flags);
        Ok(reply.length())
    }

    /// Names, numbers and kinds from a cookie on, as many as there is room for.
    fn list(&self, node: u64, wanted: Transfer, mut reply: Reply<'_>) -> Result<usize> {
        if Numbers::is_control(node) {
            let entries = self.control.entries(node).into_iter().zip(1..);
            for ((name, number, kind), next) in entries.skip(wanted.offset as usize) {
                if !reply.listed(number, next, kind, OsStr::new(name)) {
                    break;
                }
            }
            return Ok(reply.length());
        }
        self.view.read_directory(wanted.handle, wanted.offset, false, &mut |entry| {
            // Without a kind the kernel's protocol has no "unknown"; programs that care ask.
            let kind = entry.kind.unwrap_or(FileKind::Regular);
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
            let entries = self.control.entries(node).into_iter().zip(1..);
            for ((name, number, _), next) in entries.skip(wanted.offset as usize) {
                let Some(known) = self.control_attributes(number) else { continue };
                let name = OsStr::new(name);
                if !reply.listed_with_attributes(Validity::NONE, next, &known, name) {
                    break;
                }
            }
            return Ok(reply.length());
        }
        let view = &self.view;
        let listed = view.read_directory(wanted.handle, wanted.offset, true, &mut |entry| {
            let (name, next) = (entry.name, entry.cookie);
            match entry.known {
                Some(known) => {
                    reply.listed_with_attributes(self.validity(&known), next, &known, name)
                }
                None => {
                    let kind = entry.kind.unwrap_or(FileKind::Regular);
                    reply.listed_without_attributes(entry.number, next, kind, name)
                }
            }
        });
        view.keep_inode_limit();
        listed.map(|()| reply.length())
    }
}

/// The length of an answer that cannot fail.
fn answer(buffer: &mut [u8], fill: impl FnOnce(&mut Reply<'_>)) -> usize {
    let mut reply = Reply::new(buffer);
    fill(&mut reply);
    reply.length()
}

/// Answers with a length, or with as many bytes as there is room for.
fn xattr(
    size_bytes: u32,
    buffer: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<usize> {
    let room = (size_bytes as usize).min(XATTR_MAX_BYTES).min(buffer.len());
    let length = read(&mut buffer[..room])?;
    match size_bytes {
        0 => Ok(answer(buffer, |reply| reply.count(length))),
        _ => Ok(length.min(room)),
    }
}

/// The names in the payload of a request.
fn named<const N: usize>(request: &Request, buffer: &[u8]) -> Result<[OsString; N]> {
    buffer.get(..request.payload_bytes).and_then(names).ok_or(Errno::INVAL)
}

/// A reply with as much room as was asked for.
fn limited(buffer: &mut [u8], wanted: Transfer) -> Reply<'_> {
    let room = buffer.len().min(wanted.length_bytes as usize);
    Reply::new(&mut buffer[..room])
}

fn caller(request: &Request, umask: u32) -> Caller {
    Caller { user: request.user, group: request.group, umask }
}
