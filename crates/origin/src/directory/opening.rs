//! Opening files: for reading without a change of the access time, and for execution.

use super::{DirectoryOrigin, Node};
use crate::{Access, OFlags, Origin as _, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// `__FMODE_EXEC` of the kernel's `include/linux/fs.h`, which no program can set: the kernel opens
/// a file to execute it.
pub(super) const EXECUTES: OFlags = OFlags::from_bits_retain(0x20);

impl DirectoryOrigin {
    /// Opens a node to read or write, and leaves its access time unchanged if configured.
    pub(super) fn open_sparing(
        &self,
        spares_time: bool,
        node: &Node,
        flags: OFlags,
    ) -> Result<OwnedFd> {
        if spares_time {
            match self.nodes.open(node, flags | OFlags::NOATIME) {
                // The file belongs to another user.
                Err(Errno::PERM) => {}
                other => return other,
            }
        }
        self.nodes.open(node, flags)
    }

    /// Opens a file to execute it. A user may execute a file without permission to read it; then
    /// the kernel above reads it instead.
    pub(super) fn open_to_execute(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        self.access(node, None, Access::EXEC_OK)?;
        let open = || self.open_sparing(self.spares_times.0, node, flags);
        match open() {
            Err(Errno::ACCESS) => crate::on_own_behalf(open),
            other => other,
        }
    }
}
