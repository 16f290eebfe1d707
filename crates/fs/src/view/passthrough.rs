//! Files that the kernel reads and writes itself (`--passthrough`).
//!
//! Their bytes never pass through this process. To this mount a write of a program is a change
//! behind it, and each open checks the file as usual.
//!
//! The kernel writes with the rights of this process, and does not report it. So a file with set-id
//! bits is opened for writing the ordinary way, where the right bits are dropped for the right
//! users ([`crate::session`]). If a file gets such bits while it is open, its own file system drops
//! them at the next write.
//!
//! A file that cannot be passed through is served the ordinary way, and counted.

use super::View;
use crate::inode::Inode;
use crate::kernel::Backing;
use ogive_origin::{Errno, Origin};
use rustix::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// `S_ISUID` and `S_ISGID`.
const SET_ID: u16 = 0o6000;

/// Whether the kernel reads files itself.
#[derive(Debug, Default)]
pub(crate) struct Passthrough {
    /// The kernel has agreed.
    agreed: AtomicBool,
    /// A failure was logged.
    is_logged: AtomicBool,
}

impl Passthrough {
    /// The kernel has agreed.
    pub(crate) fn begin(&self) {
        self.agreed.store(true, Ordering::Relaxed);
    }

    /// Whether the kernel has agreed.
    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed.load(Ordering::Relaxed)
    }

    /// Logs once why a file is served the ordinary way. All of them are counted.
    fn log_once(&self, errno: Errno) {
        if self.is_logged.swap(true, Ordering::Relaxed) {
            return;
        }
        let why = match errno {
            Errno::PERM => "the kernel allows this only to root of the machine, not of a container",
            Errno::LOOP => "its file system stands on too many others",
            Errno::NOTSUP => "the source has no file on this machine",
            _ => "the kernel refuses",
        };
        log::warn!(
            "the kernel cannot read a file of the source itself ({why}: {errno}); it is read \
             through the cache, as every such file is; passthrough_refused in ogivestats counts them"
        );
    }
}

impl<O: Origin> View<O> {
    /// Decides how a file that is being opened is served: returns the backing to answer with, or
    /// none if this process serves its bytes.
    pub(super) fn choose_open_mode(
        &self,
        inode: &Inode<O>,
        file: &O::File,
        permissions: u16,
        writable: bool,
    ) -> Option<Backing> {
        if !self.passthrough.is_agreed() {
            return None;
        }
        let may_be_kernels =
            inode.may_choose_open_mode() && !(writable && permissions & SET_ID != 0);
        let wish = may_be_kernels.then(|| self.register(file)).flatten();
        // Another open may have chosen a mode in the meantime.
        let backing = inode.join_open_mode(wish);
        if let Some(wish) = wish.filter(|wish| backing != Some(*wish)) {
            self.kernel.close_backing(wish);
        }
        self.counters.opened(backing.is_some());
        backing
    }

    fn register(&self, file: &O::File) -> Option<Backing> {
        let descriptor = self.origin.descriptor(file).ok_or(Errno::NOTSUP).flatten();
        let registered = descriptor.and_then(|file| self.kernel.open_backing(file.as_fd()));
        registered.inspect_err(|errno| self.passthrough.log_once(*errno)).ok()
    }

    /// A file with this mode was closed, or its open was never answered.
    pub(super) fn leave_open_mode(&self, inode: &Inode<O>) {
        if self.passthrough.is_agreed()
            && let Some(backing) = inode.leave_open_mode()
        {
            self.kernel.close_backing(backing);
        }
    }
}
