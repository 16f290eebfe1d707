//! Chooses the transport of requests, the device or io_uring, and logs it.

use super::{MountError, MountOptions, Transport};
use crate::session::device::Threads;
use crate::session::uring::{Prepared, Rings, Unavailable};
use crate::session::{Agreed, RequestedFeatures, Session, negotiate};
use ogive_origin::Origin;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// Makes rings for a session, if they are requested and possible. The session then accepts the
/// kernel's offer of rings.
///
/// # Errors
/// If the user requires rings and they cannot be made.
pub(super) fn prepare<O: Origin>(
    session: &Arc<Session<O>>,
    options: &MountOptions,
) -> Result<Option<Prepared<O>>, MountError> {
    if !is_wanted(options) {
        return Ok(None);
    }
    match Prepared::new(session) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(Unavailable { error, hint }) if options.transport == Transport::Uring => {
            Err(MountError::Fuse { error, hint })
        }
        Err(Unavailable { error, hint }) => {
            log::info!("requests come through /dev/fuse, not io_uring: {error}; {hint}");
            Ok(None)
        }
    }
}

fn is_wanted(options: &MountOptions) -> bool {
    match options.transport {
        Transport::Device => false,
        Transport::Uring => true,
        // Below a page cache, mostly metadata and whole records reach the daemon.
        Transport::Auto => options.direct_io,
    }
}

/// Answers the kernel's first request and starts to serve. Rings serve if the kernel has agreed to
/// them; the device serves the requests that rings do not carry.
///
/// # Errors
/// If the kernel speaks no protocol version that we do, or if threads cannot be created. Also if
/// the user requires rings and the kernel refuses them.
pub(super) fn start<O: Origin>(
    prepared: Option<Prepared<O>>,
    session: &Arc<Session<O>>,
    device: OwnedFd,
    options: &MountOptions,
) -> Result<(Threads, Option<Rings<O>>), MountError> {
    let device = Arc::new(device);
    let has_lists = session.view.origin.has_access_control_lists();
    let are_of_source = session.view.settings.permissions.are_of_source();
    let requested = RequestedFeatures {
        // If the kernel agrees to access lists, it checks all permissions itself.
        access_control_lists: has_lists && !are_of_source,
        // A directory may have a default list, which overrides the umask.
        umask_by_origin: has_lists || are_of_source,
        ring_payload_bytes: prepared.as_ref().map(|prepared| prepared.payload_bytes),
        passthrough_depth: options.passthrough.then(|| stacked_on(&options.source)),
    };
    let agreed = negotiate(&device, requested).map_err(MountError::session)?;
    session.view.kernel.connect(device.clone());
    if agreed.passthrough {
        session.view.passthrough.begin();
    } else if options.passthrough {
        log::warn!(
            "--passthrough has no effect: it needs Linux 6.9 and CONFIG_FUSE_PASSTHROUGH; all \
             files are read through the cache"
        );
    }
    let rings = start_rings(prepared, session, agreed, &device, options)?;
    let threads = Threads::start(session, &device, agreed, options.session_threads());
    Ok((threads.map_err(MountError::thread)?, rings))
}

/// How many file systems may be stacked below a mount whose files the kernel reads itself. The
/// kernel allows two (`FILESYSTEM_MAX_STACK_DEPTH`), and nothing can be stacked upon the second. So
/// it is one, unless the source itself stands on another file system.
fn stacked_on(source: &std::path::Path) -> u32 {
    /// Magic numbers of overlayfs, eCryptfs and FUSE, which may stand on another file system.
    const MAY_BE_UPON: [u64; 3] = [0x794c_7630, 0xf15f, 0x6573_5546];
    match rustix::fs::statfs(source) {
        Ok(statistics) if MAY_BE_UPON.contains(&(statistics.f_type as u64)) => 2,
        _ => 1,
    }
}

/// Starts the rings if the kernel has agreed to them, and notes the outcome.
fn start_rings<O: Origin>(
    prepared: Option<Prepared<O>>,
    session: &Arc<Session<O>>,
    agreed: Agreed,
    device: &Arc<OwnedFd>,
    options: &MountOptions,
) -> Result<Option<Rings<O>>, MountError> {
    let control = &session.control;
    let Some(prepared) = prepared else {
        control.set_transport("device");
        return Ok(None);
    };
    let refused = |error: std::io::Error| {
        if options.transport == Transport::Uring {
            return Err(MountError::Fuse { error, hint: "mount with --transport device" });
        }
        log::warn!("requests come through /dev/fuse: the kernel refused io_uring: {error}");
        control.set_transport("device");
        Ok(())
    };
    if !agreed.rings {
        refused(std::io::Error::other("the kernel does not offer FUSE over io_uring"))?;
        return Ok(None);
    }
    let (rings, started) = prepared.start(device);
    match started {
        Ok(()) => {
            control.set_transport("uring");
            log::info!("requests come through io_uring");
        }
        Err(error) => refused(error)?,
    }
    Ok(Some(rings))
}
