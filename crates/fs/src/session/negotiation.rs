//! What is agreed on with the kernel before anything else.

use super::{Role, Session};
use fuser::{InitFlags, KernelConfig};
use ogive_origin::Origin;
use std::io;
use std::sync::atomic::Ordering;

/// Largest write, and largest read but for the kernel's own limit, in bytes.
const REQUEST_MAX_BYTES: u32 = 1 << 20;
/// Readahead and other asynchronous requests that the kernel may have under way.
const BACKGROUND_MAX: u16 = 64;

impl<O: Origin> Session<O> {
    /// Accepts what the kernel offers and the view can make use of.
    pub(super) fn negotiate(&self, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        if self.view.origin.has_access_control_lists() {
            // With them the origin applies the umask, or the directory's default list instead.
            wanted |= InitFlags::FUSE_POSIX_ACL | InitFlags::FUSE_DONT_MASK;
        }
        let offered = config.capabilities();
        let mut request_max_bytes = REQUEST_MAX_BYTES;
        if let Role::Device(Some(terms)) = &self.role
            && offered.contains(InitFlags::FUSE_OVER_IO_URING)
        {
            wanted |= InitFlags::FUSE_OVER_IO_URING;
            request_max_bytes = terms.payload_bytes;
            // A readahead larger than a buffer may not be asked for; one that is smaller anyway
            // cannot be enlarged, and need not be.
            let _ = config.set_max_readahead(request_max_bytes);
            terms.agreed.store(true, Ordering::Release);
        }
        config.add_capabilities(wanted & offered).map_err(|_| io::ErrorKind::Unsupported)?;
        // Values out of range come back as the nearest that will do.
        if let Err(nearest) = config.set_max_write(request_max_bytes) {
            let _ = config.set_max_write(nearest);
        }
        if let Err(nearest) = config.set_max_background(BACKGROUND_MAX) {
            let _ = config.set_max_background(nearest);
        }
        Ok(())
    }
}
