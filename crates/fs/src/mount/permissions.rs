//! Which side checks the rights of other users: the kernel above the mount, or the source.
//!
//! On a source of this machine the kernel checks mode bits and access lists. Nothing else counts
//! there, and it costs no request. Elsewhere a server or another program has rules of its own.
//! There the kernel checks nothing, and the source is asked on behalf of each user
//! ([`ogive_origin::on_behalf_of`]).
//!
//! The file system of the source decides for all. Mounts below it are treated alike, and the log
//! says so where that is not right.

use super::{MountError, MountOptions};
use crate::view::Permissions;
use ogive_origin::DirectoryOrigin;

/// Lets the source check rights if it has rules of its own, and logs which side checks them.
///
/// # Errors
/// [`MountError::Option`] for options under which users would get rights that they do not have.
pub(super) fn decide(
    origin: DirectoryOrigin,
    options: &MountOptions,
) -> Result<(DirectoryOrigin, Permissions), MountError> {
    let Some(fstype) = origin.decides_rights_elsewhere() else {
        log::debug!("permissions: the kernel checks modes and access lists, as on the source");
        let origin = if options.allow_other { origin.letting_in_by_mode() } else { origin };
        return Ok((origin, Permissions::Kernel));
    };
    let say = |by, why: &str| log::info!(event = "permissions", by; "permissions: {why}");
    if options.trust_permissions {
        let why = format!(
            "the kernel checks the mode bits that {fstype} shows, because of --trust-permissions"
        );
        say("kernel", &why);
        return Ok((origin, Permissions::Kernel));
    }
    if !options.allow_other {
        // The only user is the one of this process.
        log::debug!("permissions: {fstype} decides what you may do");
        return Ok((origin.leaving_rights_to_source(), Permissions::Source));
    }
    if let Some(user) = origin.only_user() {
        let reason = format!(
            "cannot let other users in: {fstype} lets in user {user} alone; mount the source with \
             its own allow_other (and default_permissions, if it does not check rights itself), or \
             omit --allow-other; with --trust-permissions mode bits decide, and every user has your \
             rights"
        );
        return Err(MountError::Option { option: "allow-other", reason });
    }
    let refuse = |option, why: &str| {
        let reason = format!(
            "cannot check the rights of other users: {why}, and on {fstype} mode bits do not decide; \
             with --trust-permissions they do, and every user has your rights"
        );
        Err(MountError::Option { option, reason })
    };
    if options.passthrough {
        return refuse("passthrough", "the kernel reads and writes with the rights of one process");
    }
    match origin.asking_for_requesters() {
        Ok(origin) => {
            let why = format!(
                "{fstype} is asked in the name of each user, because its mode bits do not decide \
                 what users may do"
            );
            say("source", &why);
            Ok((origin, Permissions::SourceForEach))
        }
        Err(why) => refuse("allow-other", why),
    }
}
