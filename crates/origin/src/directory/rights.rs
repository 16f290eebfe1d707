//! The user that the source sees.
//!
//! If the kernel of this machine decides about permissions, the kernel above the mount has done so
//! before a request arrives. The request then runs with the rights of this process. On other
//! sources the mode bits may not decide: a server has its own access lists, does not know our root,
//! or another program decides. There, a system call that needs a permission runs on a thread
//! without capabilities. The thread has the file-system user, group and supplementary groups of the
//! requester ([`crate::on_behalf_of`]). The answer of the source is final.
//!
//! This process itself opens objects by handle (`open_by_handle_at(2)` needs a capability), but
//! only with `O_PATH`, which grants nothing. Through that descriptor the requester then opens or
//! changes the object. A server that does not know root may refuse this process even its own calls,
//! such as the attributes of a found object. Then the requester makes that call too
//! ([`Rights::own_first`]).
//!
//! # Invariants
//!
//! A thread returns to its former rights before anything else runs on it, even after a panic. If it
//! cannot, the process ends: a thread with the rights of one user must not serve another.

use super::credentials::{as_creator, as_spender, masking};
use crate::{Caller, Result, impersonation};
use nix::unistd::{setfsgid, setfsuid};
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, Uid};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups,
};
use std::cell::{Cell, OnceCell};

/// The rights that count in an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rights {
    /// Those of this process, after the kernel above the mount has checked permissions.
    #[default]
    Own,
    /// Those of this process, for its only user: no kernel has checked anything.
    Sole,
    /// Those of each request's user.
    Requesters,
}

/// The rights of a thread without a requester.
struct Own {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
    capabilities: CapabilitySets,
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
    static IS_SWITCHED: Cell<bool> = const { Cell::new(false) };
}

impl Rights {
    /// Whether the source decides on permissions.
    pub(super) fn are_decided_by_source(self) -> bool {
        self != Self::Own
    }

    /// Makes a call that needs a permission.
    ///
    /// # Errors
    /// Those of the call; `EACCES` on a thread without a requester.
    pub(super) fn run<T>(self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.run_keeping(CapabilitySet::empty(), call)
    }

    /// The same for a call that is made on behalf of the requester but needs a capability.
    pub(super) fn run_keeping<T>(
        self,
        kept: CapabilitySet,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self != Self::Requesters || IS_SWITCHED.get() {
            return call();
        }
        let Some((user, group)) = impersonation::requester()? else { return call() };
        OWN.with(|own| {
            let own = own.get_or_init(Own::of_this_thread);
            // Root keeps its rights, without a system call.
            if user == own.user.as_raw() {
                return call();
            }
            let _switched = own.switch((user, group), &impersonation::groups(), kept)?;
            call()
        })
    }

    /// Makes a call with this process's rights, and as the requester if it is refused.
    pub(super) fn own_first<T>(self, call: impl Fn() -> Result<T>) -> Result<T> {
        match call() {
            Err(Errno::ACCESS | Errno::PERM) if self == Self::Requesters => self.run(call),
            other => other,
        }
    }

    /// Makes a call that allocates space for a file opened by a requester. That user counts even
    /// if root itself asks, because the kernel writes mapped pages as root.
    pub(super) fn spend<T>(
        self,
        opened_for: Option<(u32, u32)>,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let asks = impersonation::requester().ok().flatten().filter(|(user, _)| *user != 0);
        match asks.or(opened_for) {
            Some(spender) if self == Self::Own => as_spender(spender, call),
            _ => call(),
        }
    }

    /// Makes an object that belongs to the caller.
    pub(super) fn create<T>(
        self,
        caller: Caller,
        mode: u32,
        make: impl FnOnce(Mode) -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::Own => as_creator(caller, mode, make),
            Self::Sole | Self::Requesters => self.run(masking(caller.umask, mode, make)),
        }
    }
}

impl Own {
    fn of_this_thread() -> Self {
        Self {
            user: geteuid(),
            group: getegid(),
            groups: getgroups().unwrap_or_default(),
            // Without capabilities, nothing can be restored or switched.
            capabilities: capabilities(None).unwrap_or(CapabilitySets {
                effective: CapabilitySet::empty(),
                permitted: CapabilitySet::empty(),
                inheritable: CapabilitySet::empty(),
            }),
        }
    }

    /// Makes the thread act as a user until the returned value is dropped.
    fn switch(
        &self,
        (user, group): (u32, u32),
        groups: &[u32],
        kept: CapabilitySet,
    ) -> Result<Switched<'_>> {
        let switched = Switched(self);
        IS_SWITCHED.set(true);
        let groups: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups)?;
        set_ids(user, group)?;
        set_capabilities(None, CapabilitySets { effective: kept, ..self.capabilities })?;
        Ok(switched)
    }

    fn go_back(&self) -> Result<()> {
        set_capabilities(None, self.capabilities)?;
        set_ids(self.user.as_raw(), self.group.as_raw())?;
        set_thread_groups(&self.groups)
    }
}

/// The calls do not report success. A second call returns the present ids.
fn set_ids(user: u32, group: u32) -> Result<()> {
    let (user, group) = (nix::unistd::Uid::from_raw(user), nix::unistd::Gid::from_raw(group));
    setfsgid(group);
    setfsuid(user);
    if setfsgid(group) == group && setfsuid(user) == user { Ok(()) } else { Err(Errno::PERM) }
}

struct Switched<'a>(&'a Own);

impl Drop for Switched<'_> {
    fn drop(&mut self) {
        if let Err(errno) = self.0.go_back() {
            log::error!("a thread cannot take back the rights of its process: {errno}");
            std::process::abort();
        }
        IS_SWITCHED.set(false);
    }
}

/// Whether this process can act on behalf of other users.
///
/// # Errors
/// The missing privilege.
pub(super) fn can_switch() -> std::result::Result<(), &'static str> {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    if !geteuid().is_root() || !capabilities(None).is_ok_and(|own| own.effective.contains(needed)) {
        return Err("only root can ask on behalf of other users");
    }
    // Without the second flag, the library would emulate the call where the kernel lacks it.
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::accessat(CWD, c"/", Access::EXISTS, flags)
        .map_err(|_| "the kernel cannot check the rights of another user (faccessat2, Linux 5.8)")
}

#[cfg(test)]
mod tests;
