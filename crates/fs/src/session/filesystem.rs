//! One method a request.

use super::answer::{
    answer, answer_attributes, answer_entry, answer_written, answer_xattr, opened_flags,
};
use super::convert;
use super::{Role, Session, refuse};
use crate::number::{Numbers, ROOT};
use crate::view::View;
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, FopenFlags, Generation, INodeNo, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use ogive_origin::{Allocation, Changes, Errno, FileKind, Make, Origin, RenameFlags, XattrFlags};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl<O: Origin> fuser::Filesystem for Session<O> {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        self.negotiate(config)
    }

    fn destroy(&mut self) {
        // The connection is the business of whoever speaks with the kernel.
        if matches!(self.role, Role::Bridged) {
            return;
        }
        self.view.kernel.disconnect();
        self.view.workers.stop();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if let Some(attributes) = self.control_entry(parent, name) {
            return reply.entry(&Duration::ZERO, &attributes, Generation(0));
        }
        let (name, thread) = (name.to_owned(), request.pid());
        self.run(reply, move |view, reply| match view.lookup(parent.0, &name, thread) {
            Err(Errno::NOENT) if !view.settings.negative_ttl.is_zero() => {
                let ttl = view.settings.negative_ttl;
                reply.entry_with_ttls(&ttl, &ttl, &convert::absent(), Generation(0));
            }
            result => {
                answer_entry(view, result, reply);
                view.keep_inode_limit();
            }
        });
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.view.forget(number.0, lookups);
    }

    fn getattr(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        if Numbers::is_control(number.0) {
            return match self.control_attributes(number.0) {
                Some(attributes) => reply.attr(&Duration::ZERO, &attributes),
                None => reply.error(fuser::Errno::ENOENT),
            };
        }
        self.run(reply, move |view, reply| {
            answer_attributes(view, view.attributes(number.0, handle.map(|h| h.0)), reply);
        });
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size_bytes: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _changed_time: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if Numbers::is_control(number.0) {
            // Truncation on opening for writing; there is nothing else to change.
            return match (mode.or(user).or(group), self.control_attributes(number.0)) {
                (None, Some(attributes)) => reply.attr(&Duration::ZERO, &attributes),
                _ => reply.error(fuser::Errno::EPERM),
            };
        }
        let changes = Changes {
            permissions: mode,
            user,
            group,
            size_bytes,
            accessed: accessed.map(convert::set_time),
            modified: modified.map(convert::set_time),
        };
        let thread = request.pid();
        self.run(reply, move |view, reply| {
            let result = view.set_attributes(number.0, handle.map(|h| h.0), &changes, thread);
            answer_attributes(view, result, reply);
        });
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        self.run(reply, move |view, reply| match view.read_link(number.0) {
            Ok(target) => reply.data(target.as_encoded_bytes()),
            Err(errno) => reply.error(refuse(errno)),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let caller = convert::caller(request, umask);
        let kind = FileKind::from_mode(mode);
        let is_device = matches!(kind, Some(FileKind::CharacterDevice | FileKind::BlockDevice));
        if self.is_control_name(parent, name) || (is_device && !self.device_nodes) {
            return reply.error(fuser::Errno::EPERM);
        }
        let (name, device) = (name.to_owned(), convert::decode_device(device));
        self.run(reply, move |view, reply| {
            let what = Make::Special { mode, device };
            answer_entry(view, view.make(parent.0, &name, what, caller), reply);
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        if self.is_control_name(parent, name) {
            return reply.error(fuser::Errno::EEXIST);
        }
        let (name, caller) = (name.to_owned(), convert::caller(request, umask));
        self.run(reply, move |view, reply| {
            let what = Make::Directory { mode };
            answer_entry(view, view.make(parent.0, &name, what, caller), reply);
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        if self.is_control_name(parent, name) {
            return reply.error(fuser::Errno::EEXIST);
        }
        let (name, target) = (name.to_owned(), target.to_owned());
        let caller = convert::caller(request, 0);
        self.run(reply, move |view, reply| {
            let what = Make::Symlink { target: target.as_os_str() };
            answer_entry(view, view.make(parent.0, &name, what, caller), reply);
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.is_control_name(parent, name) || Numbers::is_control(parent.0) {
            return reply.error(fuser::Errno::EPERM);
        }
        let name = name.to_owned();
        self.run(reply, move |view, reply| answer(view.unlink(parent.0, &name), reply));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.is_control_name(parent, name) || Numbers::is_control(parent.0) {
            return reply.error(fuser::Errno::EPERM);
        }
        let name = name.to_owned();
        self.run(reply, move |view, reply| answer(view.remove_directory(parent.0, &name), reply));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        if self.is_control_name(parent, name) || self.is_control_name(new_parent, new_name) {
            return reply.error(fuser::Errno::EPERM);
        }
        let flags = RenameFlags::from_bits_retain(flags.bits());
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.run(reply, move |view, reply| {
            answer(view.rename((parent.0, &name), (new_parent.0, &new_name), flags), reply);
        });
    }

    fn link(
        &self,
        _request: &Request,
        number: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        if self.is_control_name(new_parent, new_name) || Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::EPERM);
        }
        let new_name = new_name.to_owned();
        self.run(reply, move |view, reply| {
            answer_entry(view, view.link(number.0, new_parent.0, &new_name), reply);
        });
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = convert::open_flags(flags.0);
        if Numbers::is_control(number.0) {
            return match self.control.open(number.0, flags) {
                Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO),
                Err(errno) => reply.error(refuse(errno)),
            };
        }
        let thread = request.pid();
        self.run(reply, move |view, reply| match view.open(number.0, flags, thread) {
            Ok(opened) => reply.opened(FileHandle(opened.handle), opened_flags(view, &opened)),
            Err(errno) => reply.error(refuse(errno)),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        if self.is_control_name(parent, name) || Numbers::is_control(parent.0) {
            return reply.error(fuser::Errno::EPERM);
        }
        let (name, caller, flags) =
            (name.to_owned(), convert::caller(request, umask), convert::open_flags(flags));
        self.run(reply, move |view, reply| {
            match view.create(parent.0, &name, flags, mode, caller) {
                Ok((told, opened)) => reply.created(
                    &view.settings.metadata_ttl,
                    &convert::attributes(&told),
                    Generation(told.generation),
                    FileHandle(opened.handle),
                    opened_flags(view, &opened),
                ),
                Err(errno) => reply.error(refuse(errno)),
            }
        });
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length_bytes: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if Numbers::is_control(number.0) {
            return match self.control.read(handle.0, offset, length_bytes) {
                Ok(bytes) => reply.data(&bytes),
                Err(errno) => reply.error(refuse(errno)),
            };
        }
        self.read_cached(handle.0, offset, u64::from(length_bytes), reply);
    }

    fn write(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if Numbers::is_control(number.0) {
            return answer_written(self.control.write(handle.0, bytes), reply);
        }
        self.write_through(handle.0, offset, bytes, reply);
    }

    fn flush(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            return answer(self.control.flush(handle.0), reply);
        }
        self.run(reply, move |view, reply| answer(view.flush(handle.0), reply));
    }

    fn release(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            self.control.release(handle.0);
            return reply.ok();
        }
        self.run(reply, move |view, reply| {
            view.release(handle.0);
            reply.ok();
        });
    }

    fn fsync(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            return reply.ok();
        }
        self.run(reply, move |view, reply| answer(view.sync(handle.0, data_only), reply));
    }

    fn opendir(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if Numbers::is_control(number.0) {
            return reply.opened(FileHandle(0), FopenFlags::empty());
        }
        let thread = request.pid();
        self.run(reply, move |view, reply| match view.open_directory(number.0, thread) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(errno) => reply.error(refuse(errno)),
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        cookie: u64,
        reply: ReplyDirectory,
    ) {
        self.list(number.0, handle.0, cookie, reply);
    }

    fn readdirplus(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        cookie: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.list_with_attributes(number.0, handle.0, cookie, reply);
    }

    fn releasedir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        if !Numbers::is_control(number.0) {
            self.view.release_directory(handle.0);
        }
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            return reply.ok();
        }
        self.run(reply, move |view, reply| answer(view.sync_directory(handle.0), reply));
    }

    fn statfs(&self, _request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let number = if Numbers::is_control(number.0) { ROOT } else { number.0 };
        self.run(reply, move |view, reply| match view.statistics(number) {
            Ok(statistics) => reply.statfs(
                statistics.blocks,
                statistics.blocks_free,
                statistics.blocks_available,
                statistics.inodes,
                statistics.inodes_free,
                statistics.block_size_bytes,
                statistics.name_max_bytes,
                statistics.fragment_size_bytes,
            ),
            Err(errno) => reply.error(refuse(errno)),
        });
    }

    fn setxattr(
        &self,
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::ENOTSUP);
        }
        let (name, value) = (name.to_owned(), value.to_vec());
        let flags = XattrFlags::from_bits_retain(flags as u32);
        self.run(reply, move |view, reply| {
            answer(view.set_xattr(number.0, &name, &value, flags), reply);
        });
    }

    fn getxattr(
        &self,
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::ENODATA);
        }
        let name = name.to_owned();
        self.run(reply, move |view, reply| {
            let read = |into: &mut [u8]| view.get_xattr(number.0, &name, into);
            answer_xattr(size, read, reply);
        });
    }

    fn listxattr(&self, _request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::ENOTSUP);
        }
        self.run(reply, move |view, reply| {
            answer_xattr(size, |into: &mut [u8]| view.list_xattrs(number.0, into), reply);
        });
    }

    fn removexattr(&self, _request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::ENOTSUP);
        }
        let name = name.to_owned();
        self.run(reply, move |view, reply| answer(view.remove_xattr(number.0, &name), reply));
    }

    fn fallocate(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length_bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::ENOTSUP);
        }
        let allocation = Allocation { mode: mode as u32, offset, length_bytes };
        self.run(reply, move |view, reply| answer(view.allocate(handle.0, allocation), reply));
    }

    fn lseek(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        if Numbers::is_control(number.0) {
            return reply.error(fuser::Errno::EINVAL);
        }
        self.run(reply, move |view, reply| {
            let seek = || {
                let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
                let found = view.seek(handle.0, offset, View::<O>::whence(whence)?)?;
                i64::try_from(found).map_err(|_| Errno::OVERFLOW)
            };
            match seek() {
                Ok(found) => reply.offset(found),
                Err(errno) => reply.error(refuse(errno)),
            }
        });
    }

    /// There is none that a file here has. Programs ask whether a file they open is a terminal.
    fn ioctl(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _bytes: &[u8],
        _answer_bytes: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(fuser::Errno::ENOTTY);
    }

    /// Files are always ready; the kernel asks no more when it has been told that.
    fn poll(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        reply.error(fuser::Errno::ENOSYS);
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        number_in: INodeNo,
        handle_in: FileHandle,
        offset_in: u64,
        number_out: INodeNo,
        handle_out: FileHandle,
        offset_out: u64,
        length_bytes: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        if Numbers::is_control(number_in.0) || Numbers::is_control(number_out.0) {
            return reply.error(fuser::Errno::EXDEV);
        }
        self.run(reply, move |view, reply| {
            let (from, to) = ((handle_in.0, offset_in), (handle_out.0, offset_out));
            answer_written(view.copy_range(from, to, length_bytes), reply);
        });
    }
}
