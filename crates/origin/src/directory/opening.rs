//! Opening what programs read, sparing its access time, and what they execute.

use super::{DirectoryOrigin, Node};
use crate::{Access, OFlags, Origin as _, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// `__FMODE_EXEC` of the kernel's `include/linux/fs.h`, which no program can set: a file is opened
/// to be executed.
pub(super) const EXECUTES: OFlags = OFlags::from_bits_retain(0x20);

impl DirectoryOrigin {
    /// Opens a node for real, and if its access time is to be spared, so that it is.
    pub(super) fn open_sparing(
        &self,
        spares_time: bool,
        node: &Node,
        flags: OFlags,
    ) -> Result<OwnedFd> {
        if spares_time {
            match self.nodes.open(node, flags | OFlags::NOATIME) {
                // The file is somebody else's.
                Err(Errno::PERM) => {}
                other => return other,
            }
        }
        self.nodes.open(node, flags)
    }

    /// Opens a file to execute it: whoever may do that need not be allowed to read it, but then the
    /// kernel above does, in its stead.
    pub(super) fn open_to_execute(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        self.access(node, None, Access::EXEC_OK)?;
        let open = || self.open_sparing(self.spares_times.0, node, flags);
        match open() {
            Err(Errno::ACCESS) => crate::on_own_behalf(open),
            other => other,
        }
    }
}
