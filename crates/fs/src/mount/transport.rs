//! Which way requests are going to come, and saying so.

use super::attach::acl;
use super::{MountError, MountOptions, Transport, Unmounter};
use crate::control::Control;
use crate::session::uring::{Prepared, Rings, Unavailable};
use crate::session::{Role, Session};
use ogive_origin::Origin;
use rustix::fd::OwnedFd;

/// Makes rings, if there are to be any and they can be made, for a session that is then going to
/// accept the kernel's offer of them.
///
/// # Errors
/// If they were asked for by name and cannot be made.
pub(super) fn prepare<O: Origin>(
    session: &mut Session<O>,
    options: &MountOptions,
) -> Result<Option<Prepared<O>>, MountError> {
    if !is_wanted(options) {
        return Ok(None);
    }
    match Prepared::new(session, acl(options)) {
        Ok(prepared) => {
            session.role = Role::Device(Some(prepared.terms.clone()));
            Ok(Some(prepared))
        }
        Err(Unavailable { error, hint }) if options.transport == Transport::Uring => {
            Err(MountError::Fuse { error, hint })
        }
        Err(Unavailable { error, hint }) => {
            log::info!("requests come by the device: {error}; {hint}");
            Ok(None)
        }
    }
}

fn is_wanted(options: &MountOptions) -> bool {
    match options.transport {
        Transport::Device => false,
        Transport::Uring => true,
        // Below a page cache it is metadata and whole records that come to the daemon.
        Transport::Auto => options.direct_io,
    }
}

/// Begins to serve by the rings if the kernel has agreed to them, and notes the outcome.
///
/// # Errors
/// If rings were asked for by name and the kernel does not take them; it is unmounted then.
pub(super) fn start<O: Origin>(
    prepared: Option<Prepared<O>>,
    device: &OwnedFd,
    options: &MountOptions,
    control: &Control<O>,
    unmounter: &Unmounter,
) -> Result<Option<Rings<O>>, MountError> {
    let Some(prepared) = prepared else {
        control.set_transport("device");
        return Ok(None);
    };
    let refused = |error: std::io::Error| {
        if options.transport != Transport::Uring {
            log::warn!("requests come by the device: the kernel refused io_uring: {error}");
            return Ok(());
        }
        if let Err(error) = unmounter.unmount() {
            log::warn!("cannot undo the mount: {error}");
        }
        Err(MountError::Fuse { error, hint: "mount with --transport device" })
    };
    if !prepared.is_agreed() {
        refused(std::io::Error::other("the kernel does not offer FUSE over io_uring"))?;
        control.set_transport("device");
        return Ok(None);
    }
    let (rings, started) = prepared.start(device);
    match started {
        Ok(()) => {
            control.set_transport("uring");
            log::info!("requests come through io_uring");
        }
        Err(error) => {
            refused(error)?;
            control.set_transport("device");
        }
    }
    Ok(Some(rings))
}
