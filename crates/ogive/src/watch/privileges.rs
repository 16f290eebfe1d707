//! What a process that looks at a host does not need, given up before anybody can ask it anything.
//!
//! As root it keeps what sampling and naming stacks takes, and nothing else: it cannot change files
//! of others, users, networks, modules or mounts any more, and neither can a command that it runs
//! (capabilities(7); `no_new_privs` of prctl(2)). A user who is not root has nothing to give up.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Sampling all CPUs; addresses of the kernel's functions; maps of other users' programs; reading
/// the files that those maps name.
const KEPT: CapabilitySet = CapabilitySet::PERFMON
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Gives up the rest. To be called while there is one thread.
pub(super) fn give_up() -> io::Result<()> {
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
