//! Reads from `/proc` whether the thread that waits for a request is dying, its rights, and how it
//! writes.
//!
//! `FUSE_INTERRUPT` says that a waiting thread has got some signal. Most signals are no reason to
//! fail its system call: a timer of a garbage collector, a child that ended. Programs do not expect
//! `EINTR` from files. A waiting thread dies only of a signal that ends its process. Then every
//! thread of that process has `SIGKILL` pending (`complete_signal` of the kernel's
//! `kernel/signal.c`), which `/proc` shows (`proc_pid_status(5)`). A thread that closes its files
//! on its way out has no signal pending any more, but its flags show its end (`proc_pid_stat(5)`).
//!
//! A write that appends although its file does not (`RWF_APPEND` of `pwritev2(2)`) arrives like any
//! other. `/proc` shows the system call that the thread waits in, with its flags
//! (`proc_pid_syscall(5)`).

use super::request::Request;
use ogive_origin::Requester;
use ogive_proc::stat::Stat;
use ogive_proc::status::is_killed;
use std::time::Duration;

/// The state of a thread in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It ends as soon as its request is answered.
    Dying,
    /// It continues, whatever signals it may have.
    Living,
    /// It is not visible: it is in another process namespace, or hidden.
    Unknown,
}

/// The rights of a thread to files that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    /// It may leave files with the privileges of their owner or group (`CAP_FSETID`).
    pub(super) may_keep_privileges: bool,
    /// It may change the mode of other users' files (`CAP_FOWNER`).
    pub(super) owns_all: bool,
    /// Its groups.
    pub(super) groups: Vec<u32>,
}

/// `CAP_FSETID` in a mask of capabilities.
const MAY_KEEP_PRIVILEGES: u64 = 1 << 4;
/// `CAP_FOWNER` in it.
const OWNS_ALL: u64 = 1 << 3;

/// The credentials of a thread that waits for its request. If the thread is not visible, they
/// follow from its user and group.
pub(super) fn credentials(thread: u32, user: u32, group: u32) -> Credentials {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    let seen = status.ok().filter(|_| thread != 0).and_then(|status| {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let capabilities = u64::from_str_radix(field("CapEff:")?.trim(), 16).ok()?;
        let groups = field("Groups:")?.split_whitespace().filter_map(|one| one.parse().ok());
        let groups = groups.chain([group]).collect();
        let may_keep_privileges = capabilities & MAY_KEEP_PRIVILEGES != 0;
        Some(Credentials { may_keep_privileges, owns_all: capabilities & OWNS_ALL != 0, groups })
    });
    let is_root = user == 0;
    seen.unwrap_or_else(|| Credentials {
        may_keep_privileges: is_root,
        owns_all: is_root,
        groups: vec![group],
    })
}

/// The program that sent a request.
pub(super) fn requester(request: &Request) -> Requester {
    let Request { user, group, thread, .. } = *request;
    Requester { user, group, thread, groups }
}

/// The supplementary groups of the waiting thread; none if it is not visible.
fn groups(requester: &Requester) -> Vec<u32> {
    let Requester { user, group, thread, .. } = *requester;
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    let status = status.ok().filter(|_| thread != 0);
    status.and_then(|status| groups_in(&status, user, group)).unwrap_or_default()
}

/// The groups in the text of `/proc/N/status`, if its file-system user and group match. Otherwise
/// the text is of another thread, with the same number in another process namespace.
fn groups_in(status: &str, user: u32, group: u32) -> Option<Vec<u32>> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let is_its = field("Uid:")?.get(3) == Some(&user) && field("Gid:")?.get(3) == Some(&group);
    is_its.then(|| field("Groups:")).flatten()
}

/// `RWF_APPEND` of `linux/fs.h`.
const APPEND: u64 = 0x10;
/// How often to look whether a thread waits for its request, first without pauses. A thread may
/// come to wait late on a busy machine, or never (`io_submit(2)`). The bound is a count and not a
/// time: a machine that stood still gave the thread no time either.
const HASTY_LOOKS: usize = 50;
const LOOKS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Whether a waiting thread's write appends although its file does not; false if the system call is
/// not visible.
pub(super) fn one_appends(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    for look in 0..LOOKS {
        match std::fs::read_to_string(format!("/proc/{thread}/syscall")) {
            Ok(text) if text.starts_with("running") && look < HASTY_LOOKS => {
                std::thread::yield_now();
            }
            Ok(text) if text.starts_with("running") => std::thread::sleep(PAUSE),
            Ok(text) => return appends_by_itself(&text).unwrap_or(false),
            // No permission to look, or this kernel shows no system calls.
            Err(_) => return false,
        }
    }
    false
}

/// Reads the text of `/proc/N/syscall`: the number of the system call, and its six arguments in
/// hexadecimal.
fn appends_by_itself(text: &str) -> Option<bool> {
    let mut words = text.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let flags = u64::from_str_radix(words.nth(5)?.strip_prefix("0x")?, 16).ok()?;
    Some(number == libc::SYS_pwritev2 && flags & APPEND != 0)
}

/// Whether a thread is dying, by its number; 0 is no thread.
pub(super) fn fate(thread: u32) -> Fate {
    if thread == 0 {
        return Fate::Unknown;
    }
    let read = |file: &str| std::fs::read(format!("/proc/{thread}/{file}")).ok();
    let Some(is_killed) = read("status").and_then(|status| is_killed(&status)) else {
        return Fate::Unknown;
    };
    let is_exiting = || Stat::parse(&read("stat")?)?.is_exiting();
    if is_killed || is_exiting().unwrap_or(false) { Fate::Dying } else { Fate::Living }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_rwf_append_is_distinguished_from_the_others() {
        let call = |number: i64, flags: &str| {
            let rest = format!("0x3 0x7ffc 0x1 0x0 0x0 {flags} 0x7ffd 0x7f00");
            appends_by_itself(&format!("{number} {rest}\n"))
        };
        let pwritev2 = libc::SYS_pwritev2;
        assert_eq!(call(pwritev2, "0x10"), Some(true));
        assert_eq!(call(pwritev2, "0x12"), Some(true));
        assert_eq!(call(pwritev2, "0x2"), Some(false));
        assert_eq!(call(libc::SYS_write, "0x10"), Some(false), "this argument has no flags");
        assert_eq!(call(libc::SYS_io_uring_enter, "0x10"), Some(false));
        for other in ["-1 0x7ffd 0x7f00\n", "", "running\n", "328", "x 0x10"] {
            assert_eq!(appends_by_itself(other), None, "{other}");
        }
        assert!(!one_appends(0) && !one_appends(u32::MAX));
    }

    #[test]
    fn groups_are_read_only_from_a_thread_with_the_same_user_and_group() {
        let status = "Name:\tcat\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
        assert_eq!(groups_in(status, 4, 8), Some(vec![9, 10]));
        assert_eq!(groups_in(status, 1, 8), None, "the file-system user decides, not the real one");
        assert_eq!(groups_in(status, 4, 5), None);
        assert_eq!(groups_in(&status.replace("9 10", ""), 4, 8), Some(vec![]));
        assert_eq!(groups_in(&status.replace("9 10", "9 x"), 4, 8), None);
        assert_eq!(groups_in("Name:\tcat\n", 4, 8), None);
    }

    #[test]
    fn the_rights_of_an_unseen_thread_follow_from_its_user() {
        let unseen = |user| credentials(0, user, 9);
        assert_eq!(
            unseen(0),
            Credentials { may_keep_privileges: true, owns_all: true, groups: vec![9] }
        );
        assert_eq!(
            unseen(5),
            Credentials { may_keep_privileges: false, owns_all: false, groups: vec![9] }
        );
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(credentials(own, 0, 9).groups.contains(&9));
    }

    #[test]
    fn this_thread_lives_and_number_0_is_unknown() {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(fate(own), Fate::Living);
        assert_eq!(fate(0), Fate::Unknown);
        assert_eq!(fate(u32::MAX), Fate::Unknown);
    }
}
