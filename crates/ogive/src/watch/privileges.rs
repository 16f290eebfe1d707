//! Privileges that the live view does not need, dropped before it answers any request.
//!
//! As root it keeps only the privileges for sampling stacks and naming their functions. After that,
//! neither the process nor its commands can change other users' files, users, networks, modules or
//! mounts (capabilities(7); `no_new_privs` of prctl(2)). Without root there is nothing to drop.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Sampling all CPUs; addresses of the kernel's functions; maps of other users' programs; reading
/// the files that those maps name.
const KEPT: CapabilitySet = CapabilitySet::PERFMON
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Drops the other privileges. To be called while there is one thread.
pub(super) fn drop_unneeded() -> io::Result<()> {
    let own = capabilities(None)?;
    let mut capabilities = own.permitted & KEPT;
    if !capabilities.contains(CapabilitySet::PERFMON) {
        // Before Linux 5.8 this is what sampling takes.
        capabilities |= own.permitted & CapabilitySet::SYS_ADMIN;
    }
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}
