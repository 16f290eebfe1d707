//! Looking up a name again, after a program met an object that has gone.
//!
//! The client of a server may remember an old result for a name, so the server itself is asked. The
//! file may be gone again when the program opens it. So it is opened at once, and kept for the
//! program ([`super::lookup_descriptors`]).

use super::node::{Node, Nodes};
use crate::{Found, OFlags, Result, impersonation};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Mode, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;

impl Nodes {
    /// Looks a name up on the server itself, if there is one. A file that may be gone again when
    /// the program opens it is opened at once.
    pub(super) fn revalidate_name(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        /// Tries while another program replaces the file of that name.
        const TRIES: usize = 8;
        let hides = self.kind_of(parent).hides_what_is_open;
        let mut last = Errno::STALE;
        for _ in 0..TRIES {
            // If the directory itself is gone, the path walk has to pass through it first.
            let asked = self.within(parent, |directory| {
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
                let ask = || rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS);
                Ok(self.rights.run(ask))
            })?;
            let is_file = |statx: &Statx| {
                FileType::from_raw_mode(statx.stx_mode.into()) == FileType::RegularFile
            };
            let found = match asked {
                Ok(statx) if hides && is_file(&statx) => self.lookup_to_read(parent, name),
                Ok(_) => self.lookup(parent, name),
                Err(Errno::STALE) => Err(Errno::STALE),
                Err(errno) => return Err(errno),
            };
            match found {
                Err(Errno::STALE) => self.have_client_ask(parent, name),
                // It was there a moment ago. A FUSE daemon may have forgotten it since, and a
                // server shows a removed file until it is closed.
                Err(Errno::NOENT) => last = Errno::NOENT,
                other => return other,
            }
        }
        Err(last)
    }

    /// A client may have permission to read a file without asking (a delegation of NFSv4). Then it
    /// may still resolve the name to that file after another file has replaced it. The client
    /// returns the delegation before it opens the name for writing, and then asks the server for
    /// the name.
    fn have_client_ask(&self, parent: &Node, name: &OsStr) {
        if self.kind_of(parent).keeps_names {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = |directory: BorrowedFd<'_>| {
                self.rights.run(|| rustix::fs::openat(directory, name, flags, Mode::empty()))
            };
            // Only the side effect is needed.
            let _ = self.within(parent, open);
        }
    }

    /// Looks up a name that leads to a file by opening it, which a server does in one step.
    fn lookup_to_read(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self.within(parent, |directory| {
            let open = || rustix::fs::openat(directory, name, flags, Mode::empty());
            self.with_room(|| self.rights.run(open))
        });
        let fd = match opened {
            Ok(fd) => fd,
            Err(errno @ (Errno::NOENT | Errno::STALE)) => return Err(errno),
            // The open of the program itself checks the permission.
            Err(_) => return self.lookup(parent, name),
        };
        let found = self.found((parent, name), fd.as_fd())?;
        if let Some(requester_thread) = impersonation::requester_thread() {
            self.lookup_descriptors.keep_reader(found.node.key(), fd, requester_thread);
        }
        Ok(found)
    }
}
