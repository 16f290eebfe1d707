//! Creating objects that belong to the caller, and allocating space in the caller's name.
//!
//! A daemon that runs as root has to create files for the calling user, with that process's umask.
//! The origin's own kernel does both, without a later `chown`. So a file never exists with the
//! wrong owner, and set-group-id directories and default access control lists work as they do
//! without the mount.
//!
//! In Linux, the file-system user and group id belong to a thread. The thread keeps its
//! capabilities while they are switched (`SECBIT_NO_SETUID_FIXUP`). The kernel above the mount has
//! already checked the permission, with the supplementary groups of the caller. This holds for
//! sources whose mode bits decide. For all other sources only the umask comes from here, and
//! [`super::rights`] acts as the caller without capabilities.
//!
//! `unshare(CLONE_FS)` gives each thread its own umask.

use crate::Caller;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, capabilities};
use std::cell::OnceCell;

/// The mapping of all users to themselves (`user_namespaces(7)`).
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

thread_local! {
    static THREAD: OnceCell<Abilities> = const { OnceCell::new() };
}

/// The privileges of this thread, determined once.
#[derive(Clone, Copy)]
struct Abilities {
    /// The umask is this thread's own.
    own_umask: bool,
    /// File-system ids can be switched without losing capabilities.
    switch_ids: bool,
}

impl Abilities {
    fn probe() -> Self {
        let own_umask = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).is_ok();
        let switch_ids = nix::unistd::geteuid().is_root()
            && rustix::thread::capabilities_secure_bits()
                .and_then(|bits| {
                    rustix::thread::set_capabilities_secure_bits(
                        bits | CapabilitiesSecureBits::NO_SETUID_FIXUP,
                    )
                })
                .is_ok();
        Self { own_umask, switch_ids }
    }
}

/// Runs a call that allocates space as a user, if this process is root. Space that a file system
/// reserves for root must not go to other users.
pub(super) fn as_spender<T>((user, group): (u32, u32), spend: impl FnOnce() -> T) -> T {
    let switches = user != 0 && abilities().switch_ids;
    let _ids = switches.then(|| Ids::switch(user, group));
    spend()
}

/// Runs `make` with the caller's umask and, if this process is root, with its user and group.
///
/// The mode handed to `make` is the one to create with: see [`masking`].
pub(super) fn as_creator<T>(caller: Caller, mode: u32, make: impl FnOnce(Mode) -> T) -> T {
    let make = masking(caller.umask, mode, make);
    let ids = abilities().switch_ids.then(|| Ids::switch(caller.user, caller.group));
    let result = make();
    drop(ids);
    result
}

/// Runs `make` with a umask. If the thread shares its umask with others, it cannot set it, and
/// then the mode is already masked. This decides which of the two holds, with the present rights
/// of the thread.
pub(super) fn masking<T>(mask: u32, mode: u32, make: impl FnOnce(Mode) -> T) -> impl FnOnce() -> T {
    let (own_umask, mask) = (abilities().own_umask, mask & 0o777);
    move || {
        if !own_umask {
            return make(Mode::from_raw_mode(mode & !mask));
        }
        umask(Mode::from_raw_mode(mask));
        make(Mode::from_raw_mode(mode))
    }
}

fn abilities() -> Abilities {
    THREAD.with(|thread| *thread.get_or_init(Abilities::probe))
}

/// The ids to restore when this is dropped, also after a panic.
struct Ids {
    user: Uid,
    group: Gid,
}

impl Ids {
    fn switch(user: u32, group: u32) -> Self {
        // The group first: once the user is not root any more, it could not be changed if the
        // capabilities were lost after all.
        let group = setfsgid(Gid::from_raw(group));
        let user = setfsuid(Uid::from_raw(user));
        Self { user, group }
    }
}

impl Drop for Ids {
    fn drop(&mut self) {
        setfsuid(self.user);
        setfsgid(self.group);
    }
}

/// Whether this process may open any file of a file system of this machine, whatever its mode.
pub(super) fn overrides_permissions() -> bool {
    let has_all_users = || {
        let map = std::fs::read_to_string("/proc/self/uid_map");
        map.is_ok_and(|map| map.split_whitespace().eq(ALL_USERS))
    };
    let effective = capabilities(None).map(|all| all.effective);
    effective.is_ok_and(|own| own.contains(CapabilitySet::DAC_OVERRIDE)) && has_all_users()
}
