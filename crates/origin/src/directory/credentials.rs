//! Making objects on behalf of the caller.
//!
//! A daemon that runs as root has to create files that belong to whoever asked, and has to apply
//! that process's umask. Both are done by the origin's own kernel rather than by a `chown`
//! afterwards: the file never exists with the wrong owner, set-group-id directories and default
//! access control lists behave as they do without a mount in between, and an NFS server sees the
//! right user.
//!
//! File-system user and group id are per thread in Linux. The thread keeps its capabilities while
//! they are switched (`SECBIT_NO_SETUID_FIXUP`), because permission was already checked by the
//! kernel above the mount, with the caller's supplementary groups, which are not known here. The
//! umask is made per thread by `unshare(CLONE_FS)`.

use crate::Caller;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, capabilities};
use std::cell::OnceCell;

/// The mapping of users where all of them are mapped to themselves (`user_namespaces(7)`).
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

thread_local! {
    static THREAD: OnceCell<Abilities> = const { OnceCell::new() };
}

/// What this thread may do, found out once.
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

/// Runs `make` with the caller's umask and, if this process is root, with its user and group.
///
/// The mode handed to `make` is the one to create with: already masked if the thread shares its
/// umask with others and so cannot set it.
pub(super) fn as_caller<T>(caller: Caller, mode: u32, make: impl FnOnce(Mode) -> T) -> T {
    let abilities = THREAD.with(|thread| *thread.get_or_init(Abilities::probe));
    let ids = abilities.switch_ids.then(|| Ids::switch(caller));
    let result = if abilities.own_umask {
        umask(Mode::from_raw_mode(caller.umask & 0o777));
        make(Mode::from_raw_mode(mode))
    } else {
        make(Mode::from_raw_mode(mode & !(caller.umask & 0o777)))
    };
    drop(ids);
    result
}

/// The ids to go back to; goes back when dropped, also if making panicked.
struct Ids {
    user: Uid,
    group: Gid,
}

impl Ids {
    fn switch(caller: Caller) -> Self {
        // The group first: once the user is not root any more it could not be changed if the
        // capabilities were lost after all.
        let group = setfsgid(Gid::from_raw(caller.group));
        let user = setfsuid(Uid::from_raw(caller.user));
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
