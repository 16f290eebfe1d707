//! Files that the kernel reads and writes itself (`FUSE_DEV_IOC_BACKING_OPEN` and `_CLOSE` of
//! `include/uapi/linux/fuse.h`, since Linux 6.9).
//!
//! A file that is registered with a connection has a number there. If the reply to an open names
//! that number, the kernel opens the file once more, with the program's flags. It then asks the
//! daemon for none of its bytes.

#![allow(unsafe_code)]

use ogive_origin::Errno;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl, opcode};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::ffi::c_void;

/// `FUSE_DEV_IOC_BACKING_OPEN`.
const OPEN: Opcode = opcode::write::<Map>(229, 1);
/// `FUSE_DEV_IOC_BACKING_CLOSE`.
const CLOSE: Opcode = opcode::write::<u32>(229, 2);

/// `struct fuse_backing_map`.
#[repr(C)]
struct Map {
    fd: i32,
    flags: u32,
    padding: u64,
}

/// A file that is registered with a connection, until it is closed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backing(u32);

impl Backing {
    /// Its number in a reply.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Registers a regular file, however it was opened.
    ///
    /// The kernel writes to it with the rights of the thread that calls this. That thread gives up
    /// the right to keep set-id bits meanwhile. So the file's own file system drops them at a
    /// write, as for any user but root.
    ///
    /// # Errors
    /// - `EPERM` without `CAP_SYS_ADMIN` in the initial user namespace
    /// - `ELOOP` if the file's file system is stacked too deep
    /// - `ENOTTY` or `EINVAL` if the kernel lacks this feature
    pub(super) fn open(device: &OwnedFd, file: BorrowedFd<'_>) -> Result<Self, Errno> {
        let _without = WithoutSetId::new()?;
        // SAFETY: the operation reads a `struct fuse_backing_map`. That is the layout of `Map`,
        // which lives during the call. It writes nothing, and returns the number
        // (`fuse_dev_ioctl_backing_open` of the kernel's `fs/fuse/dev.c`).
        unsafe { ioctl(device, Register(Map { fd: file.as_raw_fd(), flags: 0, padding: 0 })) }
            .map(Self)
    }

    /// Unregisters it. Files that are open through it stay open.
    pub(super) fn close(self, device: &OwnedFd) -> Result<(), Errno> {
        // SAFETY: the operation reads a 32-bit number (`fuse_dev_ioctl_backing_close`).
        unsafe { ioctl(device, Setter::<CLOSE, u32>::new(self.0)) }
    }
}

struct Register(Map);

// SAFETY: the operation of this opcode reads a `Map`, to which the pointer leads, and returns a
// number.
unsafe impl Ioctl for Register {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        OPEN
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    // SAFETY: the pointer is not read.
    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<u32, Errno> {
        u32::try_from(output).map_err(|_| Errno::INVAL)
    }
}

/// The calling thread lacks `CAP_FSETID` until this is dropped.
struct WithoutSetId(CapabilitySets);

impl WithoutSetId {
    fn new() -> Result<Self, Errno> {
        let all = capabilities(None)?;
        let effective = all.effective - CapabilitySet::FSETID;
        set_capabilities(None, CapabilitySets { effective, ..all })?;
        Ok(Self(all))
    }
}

impl Drop for WithoutSetId {
    fn drop(&mut self) {
        if let Err(errno) = set_capabilities(None, self.0) {
            // A permitted capability can always be raised again, so this does not happen.
            log::error!("a thread has lost a capability: {errno}");
        }
    }
}
