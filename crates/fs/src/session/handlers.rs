//! The handler of each operation, in calls of the view or of the control directory.
//!
//! The payload of a request stands at the beginning of a buffer, and the answer replaces it. A
//! handler returns the length of the answer, which is 0 without one.

use super::Session;
use super::caller;
use super::operation::{Operation, Transfer};
use super::privileges::Change;
use super::reply::{Reply, Validity, device, open_flags};
use super::request::{Request, XATTR_MAX_BYTES, flags, forgotten, name_and_value, names};
use crate::inode::Sharing;
use crate::inode_number::{Numbers, ROOT};
use crate::view::{NodeAttributes, OpenedDirectory, OpenedFile, Result, View, WriteMode};
use ogive_origin::{
    Allocation, Caller, Changes, Errno, FileKind, FlagsForm, Make, OFlags, Origin, RenameFlags,
    XattrFlags,
};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

impl<O: Origin> Session<O> {
    pub(super) fn read(&self, from: Transfer, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len().min(from.length_bytes as usize);
        self.view.read_from_origin(from.handle, from.offset, &mut buffer[..length])
    }

    pub(super) fn write(
        &self,
        request: &Request,
        (to, flags): (Transfer, OFlags),
        kills_privileges: bool,
        buffer: &mut [u8],
    ) -> Result<usize> {
        if kills_privileges && !request.is_control() {
            self.before(request, Change::Contents, (request.node, Some(to.handle)))?;
        }
        let bytes = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
        let written = self.write_bytes(request, to, flags, bytes)?;
        Ok(answer(buffer, |reply| reply.count(written)))
    }

    fn write_bytes(
        &self,
        request: &Request,
        Transfer { handle, offset, .. }: Transfer,
        flags: OFlags,
        bytes: &[u8],
    ) -> Result<usize> {
        if request.is_control() {
            return self.control.write(handle, bytes);
        }
        let mode = WriteMode {
            appends: flags.contains(OFlags::APPEND),
            is_direct: flags.contains(OFlags::DIRECT) || self.view.settings.direct_io,
            one_appends: &|| caller::one_appends(request.thread),
        };
        self.view.write(handle, offset, bytes, mode)
    }

    pub(super) fn lookup(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let [name] = named(request, buffer)?;
        let mut reply = Reply::new(buffer);
        if let Some(known) = self.control_entry(request.node, &name) {
            self.may_come_to_control(request)?;
            reply.entry(self.control_validity(request.node), &known);
            return Ok(reply.length());
        }
        if Numbers::is_control(request.node) {
            // Exporters of metrics skip a missing file, and give up at any other error.
            return Err(Errno::NOENT);
        }
        let view = &self.view;
        match view.lookup(request.node, &name, request.thread) {
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

    /// How long the kernel may follow a name of the control directory. The directory's own name
    /// stays cached. To look it up again, the kernel would wait for a thread that is making a name
    /// in the root. That thread may wait for a source that hangs.
    fn control_validity(&self, parent: u64) -> Validity {
        const FOR_LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        let is_kept = parent == ROOT && !self.view.settings.asks_for_each();
        Validity { name: if is_kept { FOR_LONG } else { Duration::ZERO }, ..Validity::NONE }
    }

    fn entry(&self, known: &NodeAttributes, mut reply: Reply<'_>) -> usize {
        reply.entry(self.validity(known), known);
        reply.length()
    }

    /// How long the kernel may follow a name without asking. The open of a file checks the name
    /// ([`View::open`]), but following a symbolic link does not.
    fn validity(&self, known: &NodeAttributes) -> Validity {
        let settings = &self.view.settings;
        let may_remember = self.view.may_remember_name(known);
        let name = if may_remember { settings.name_ttl() } else { Duration::ZERO };
        Validity { name, attributes: settings.metadata_ttl }
    }

    pub(super) fn attributes(
        &self,
        node: u64,
        handle: Option<u64>,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let mut reply = Reply::new(buffer);
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

    pub(super) fn set_attributes(
        &self,
        request: &Request,
        handle: Option<u64>,
        (changes, kills_privileges): (&Changes, bool),
        buffer: &mut [u8],
    ) -> Result<usize> {
        // An empty change is how a change to the same owner and group arrives.
        let is_same_owner = *changes == Changes::default();
        // Where the source sees the requester, it drops the bits itself, after it has checked the
        // rights.
        let kills = kills_privileges && !self.view.settings.permissions.are_of_source();
        if (kills || is_same_owner) && !request.is_control() {
            let change = if is_same_owner {
                Change::SameOwner
            } else if changes.user.or(changes.group).is_some() {
                Change::Owner
            } else {
                Change::Contents
            };
            self.before(request, change, (request.node, handle))?;
        }
        let mut reply = Reply::new(buffer);
        if request.is_control() {
            // Truncation on opening for writing; nothing else can change.
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

    pub(super) fn open(
        &self,
        request: &Request,
        flags: OFlags,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let mut reply = Reply::new(buffer);
        if request.is_control() {
            let handle = self.control.open(request.node, flags)?;
            reply.opened(handle, open_flags::DIRECT_IO);
        } else {
            let opened = self.view.open(request.node, flags, request.thread)?;
            self.opened(&opened, &mut reply);
        }
        Ok(reply.length())
    }

    /// Answers with the flags of an opened file. The kernel takes no flags about pages for a file
    /// that it reads itself.
    fn opened(&self, opened: &OpenedFile, reply: &mut Reply<'_>) {
        let when = |is_so, flag| if is_so { flag } else { 0 };
        if let Some(backing) = opened.backing {
            let flags = open_flags::PASSTHROUGH | when(!opened.writable, open_flags::NOFLUSH);
            return reply.opened_with(opened.handle, flags, backing.number());
        }
        let is_direct = self.view.settings.direct_io || !opened.size_is_reliable;
        let flags = when(is_direct, open_flags::DIRECT_IO)
            | when(opened.keep_pages, open_flags::KEEP_CACHE)
            | when(!opened.writable, open_flags::NOFLUSH);
        reply.opened(opened.handle, flags);
    }

    pub(super) fn create(
        &self,
        request: &Request,
        flags: OFlags,
        (mode, umask): (u32, u32),
        buffer: &mut [u8],
    ) -> Result<usize> {
        let [name] = named(request, buffer)?;
        if self.is_control_name(request.node, &name) {
            return Err(Errno::PERM);
        }
        let caller = caller(request, umask);
        let (known, opened) = self.view.create(request.node, &name, flags, mode, caller)?;
        let mut reply = Reply::new(buffer);
        reply.entry(self.validity(&known), &known);
        self.opened(&opened, &mut reply);
        Ok(reply.length())
    }

    pub(super) fn make_directory(
        &self,
        request: &Request,
        (mode, umask): (u32, u32),
        buffer: &mut [u8],
    ) -> Result<usize> {
        let [name] = named(request, buffer)?;
        self.make(request, &name, Make::Directory { mode }, umask, Reply::new(buffer))
    }

    pub(super) fn make_symlink(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let [name, target] = named(request, buffer)?;
        let what = Make::Symlink { target: &target };
        self.make(request, &name, what, 0, Reply::new(buffer))
    }

    pub(super) fn make_node(
        &self,
        request: &Request,
        (mode, umask): (u32, u32),
        device: u32,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let [name] = named(request, buffer)?;
        let what = Make::Special { mode, device: device::decode(device) };
        self.make(request, &name, what, umask, Reply::new(buffer))
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

    pub(super) fn link(&self, request: &Request, node: u64, buffer: &mut [u8]) -> Result<usize> {
        let [name] = named(request, buffer)?;
        if self.is_control_name(request.node, &name) || Numbers::is_control(node) {
            return Err(Errno::PERM);
        }
        let known = self.view.link(node, request.node, &name)?;
        Ok(self.entry(&known, Reply::new(buffer)))
    }

    pub(super) fn remove(&self, request: &Request, buffer: &[u8]) -> Result<()> {
        let [name] = named(request, buffer)?;
        if self.is_control_name(request.node, &name) {
            return Err(Errno::PERM);
        }
        match request.operation {
            Operation::Unlink => self.view.unlink(request.node, &name),
            _ => self.view.remove_directory(request.node, &name),
        }
    }

    pub(super) fn rename(
        &self,
        request: &Request,
        new_parent: u64,
        flags: RenameFlags,
        buffer: &[u8],
    ) -> Result<()> {
        let [name, new_name] = named(request, buffer)?;
        if self.is_control_name(request.node, &name) || self.is_control_name(new_parent, &new_name)
        {
            return Err(Errno::PERM);
        }
        self.view.rename((request.node, &name), (new_parent, &new_name), flags)
    }

    pub(super) fn open_directory(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let opened = match request.is_control() {
            true => OpenedDirectory { handle: 0, sharing: None },
            false => self.view.open_directory(request.node, request.thread)?,
        };
        let flags = match opened.sharing {
            None => 0,
            Some(Sharing { keeps: false, .. }) => open_flags::CACHE_DIR,
            Some(Sharing { keeps: true, .. }) => open_flags::CACHE_DIR | open_flags::KEEP_CACHE,
        };
        Ok(answer(buffer, |reply| reply.opened(opened.handle, flags)))
    }

    /// Names, numbers and kinds after a cookie, as many as fit.
    pub(super) fn list(&self, node: u64, wanted: Transfer, buffer: &mut [u8]) -> Result<usize> {
        let mut reply = limited(buffer, wanted);
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
            // FUSE has no "unknown" kind; programs that depend on the kind ask for it.
            let kind = entry.kind.unwrap_or(FileKind::Regular);
            reply.listed(entry.number, entry.cookie, kind, entry.name)
        })?;
        Ok(reply.length())
    }

    /// The same with attributes; the kernel counts a reference to each entry that it takes.
    pub(super) fn list_with_attributes(
        &self,
        node: u64,
        wanted: Transfer,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let mut reply = limited(buffer, wanted);
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

    pub(super) fn read_link(&self, node: u64, buffer: &mut [u8]) -> Result<usize> {
        let target = self.view.read_link(node)?;
        Ok(answer(buffer, |reply| reply.bytes(target.as_encoded_bytes())))
    }

    pub(super) fn statistics(&self, request: &Request, buffer: &mut [u8]) -> Result<usize> {
        let node = if request.is_control() { ROOT } else { request.node };
        let statistics = self.view.statistics(node)?;
        Ok(answer(buffer, |reply| reply.statistics(&statistics)))
    }

    pub(super) fn seek(
        &self,
        (handle, offset): (u64, u64),
        whence: u32,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let found = self.view.seek(handle, offset, View::<O>::whence(whence as i32)?)?;
        Ok(answer(buffer, |reply| reply.u64(found)))
    }

    pub(super) fn copy_range(
        &self,
        request: &Request,
        from: (u64, u64),
        (to_node, to): (u64, (u64, u64)),
        length_bytes: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        if Numbers::is_control(to_node) {
            return Err(Errno::XDEV);
        }
        self.before(request, Change::ContentsByUnknown, (to_node, Some(to.0)))?;
        let copied = self.view.copy_range(from, to, length_bytes)?;
        Ok(answer(buffer, |reply| reply.count(copied)))
    }

    pub(super) fn allocate(
        &self,
        request: &Request,
        handle: u64,
        allocation: Allocation,
    ) -> Result<()> {
        self.before(request, Change::ContentsByUnknown, (request.node, Some(handle)))?;
        self.view.allocate(handle, allocation)
    }

    pub(super) fn get_xattr(
        &self,
        request: &Request,
        size_bytes: u32,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let [name] = named(request, buffer)?;
        xattr(size_bytes, buffer, |into| self.view.get_xattr(request.node, &name, into))
    }

    pub(super) fn list_xattrs(
        &self,
        node: u64,
        size_bytes: u32,
        buffer: &mut [u8],
    ) -> Result<usize> {
        xattr(size_bytes, buffer, |into| self.view.list_xattrs(node, into))
    }

    pub(super) fn set_xattr(
        &self,
        request: &Request,
        (size_bytes, flags): (u32, XattrFlags),
        kills_set_group_id: bool,
        buffer: &[u8],
    ) -> Result<()> {
        let payload = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
        let (name, value) = name_and_value(payload, size_bytes).ok_or(Errno::INVAL)?;
        self.view.set_xattr(request.node, &name, value, flags)?;
        if kills_set_group_id { self.after_access_list(request.node) } else { Ok(()) }
    }

    pub(super) fn remove_xattr(&self, request: &Request, buffer: &[u8]) -> Result<()> {
        let [name] = named(request, buffer)?;
        self.view.remove_xattr(request.node, &name)
    }

    pub(super) fn flags(&self, node: u64, form: FlagsForm, buffer: &mut [u8]) -> Result<usize> {
        let flags = self.view.flags(node, form)?;
        Ok(answer(buffer, |reply| reply.flags(flags)))
    }

    pub(super) fn set_flags(
        &self,
        request: &Request,
        form: FlagsForm,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let payload = buffer.get(..request.payload_bytes).ok_or(Errno::IO)?;
        let flags = flags(payload, form).ok_or(Errno::INVAL)?;
        self.view.set_flags(request.node, flags, request.user)?;
        Ok(answer(buffer, |reply| reply.controlled()))
    }

    pub(super) fn flush(&self, request: &Request, handle: u64) -> Result<()> {
        match request.is_control() {
            true => self.control.flush(handle),
            false => self.view.flush(handle),
        }
    }

    pub(super) fn release(&self, request: &Request, handle: u64) -> Result<()> {
        match request.is_control() {
            true => self.control.release(handle),
            false => self.view.release(handle),
        }
        Ok(())
    }

    pub(super) fn release_directory(&self, handle: u64) -> Result<()> {
        self.view.release_directory(handle);
        Ok(())
    }

    pub(super) fn forget(&self, node: u64, lookups: u64) -> Result<()> {
        self.view.forget(node, lookups);
        Ok(())
    }

    pub(super) fn forget_many(&self, request: &Request, count: u32, buffer: &[u8]) -> Result<()> {
        let payload = buffer.get(..request.payload_bytes).unwrap_or(&[]);
        for (node, lookups) in forgotten(payload, count) {
            self.view.forget(node, lookups);
        }
        Ok(())
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

/// A reply that is limited to the requested length.
fn limited(buffer: &mut [u8], wanted: Transfer) -> Reply<'_> {
    let room = buffer.len().min(wanted.length_bytes as usize);
    Reply::new(&mut buffer[..room])
}

fn caller(request: &Request, umask: u32) -> Caller {
    Caller { user: request.user, group: request.group, umask }
}
