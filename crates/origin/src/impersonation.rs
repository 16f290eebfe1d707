//! The requester on whose behalf a thread acts.
//!
//! In Linux, credentials belong to a thread, and so does this. Code that carries out a request
//! names the requester around it ([`on_behalf_of`]). An origin that asks its source as that
//! requester finds it here. It switches credentials only for its final system calls.
//!
//! # Invariants
//!
//! A thread without a requester acts for no user, and such an origin refuses every call that needs
//! a permission. So a path to the origin that forgets the requester is an error that a test finds.
//! It is never an operation with the rights of this process.

use crate::{Errno, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// The user and thread of a request.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    /// User that owns the files it makes.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The thread that waits, for look-ups of more facts; 0 if unknown.
    pub thread: u32,
    /// Looks up the supplementary groups, once, and only if they matter.
    pub groups: fn(&Requester) -> Vec<u32>,
}

#[derive(Clone, Debug)]
enum Acting {
    ForNobody,
    ForItself,
    For(Requester, Option<Rc<[u32]>>),
}

thread_local! {
    static ACTING: RefCell<Acting> = const { RefCell::new(Acting::ForNobody) };
}

/// Does some work on behalf of a requester.
pub fn on_behalf_of<T>(requester: Requester, work: impl FnOnce() -> T) -> T {
    within(Acting::For(requester, None), work)
}

/// Does some work with the rights of this process: the consequences of a permitted operation.
pub fn on_own_behalf<T>(work: impl FnOnce() -> T) -> T {
    within(Acting::ForItself, work)
}

fn within<T>(acting: Acting, work: impl FnOnce() -> T) -> T {
    /// Goes back when dropped, also after a panic.
    struct Before(Acting);
    impl Drop for Before {
        fn drop(&mut self) {
            let before = std::mem::replace(&mut self.0, Acting::ForNobody);
            ACTING.with_borrow_mut(|acting| *acting = before);
        }
    }
    let _before = Before(ACTING.replace(acting));
    work()
}

/// User, group and supplementary groups of the requester; `None` for the process itself.
///
/// # Errors
/// `EACCES` without a requester.
pub(crate) fn requester() -> Result<Option<(u32, u32)>> {
    ACTING.with_borrow(|acting| match acting {
        Acting::ForNobody => Err(Errno::ACCESS),
        Acting::ForItself => Ok(None),
        Acting::For(requester, _) => Ok(Some((requester.user, requester.group))),
    })
}

/// The supplementary groups of this thread's requester.
pub(crate) fn groups() -> Rc<[u32]> {
    ACTING.with_borrow_mut(|acting| match acting {
        Acting::For(requester, known) => {
            known.get_or_insert_with(|| (requester.groups)(requester).into()).clone()
        }
        Acting::ForNobody | Acting::ForItself => Rc::default(),
    })
}

/// The thread of a program that this thread acts for.
pub(crate) fn requester_thread() -> Option<RequesterThread> {
    ACTING.with_borrow(|acting| match acting {
        Acting::ForNobody | Acting::ForItself => None,
        Acting::For(Requester { user, group, thread, .. }, _) => {
            Some(RequesterThread { user: *user, group: *group, thread: *thread })
        }
    })
}

/// A thread of a program, and the user that it acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequesterThread {
    user: u32,
    group: u32,
    thread: u32,
}

impl RequesterThread {
    /// Whether it acts for this user.
    pub(crate) fn is(&self, user: u32) -> bool {
        self.user == user
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_thread_acts_for_a_requester_only_while_one_is_set() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let groups = |_: &Requester| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            vec![7, 8]
        };
        let somebody = Requester { user: 5, group: 6, thread: 0, groups };
        assert_eq!(requester(), Err(Errno::ACCESS));
        on_behalf_of(somebody, || {
            assert_eq!(requester(), Ok(Some((5, 6))));
            assert_eq!((&*super::groups(), &*super::groups()), (&[7, 8][..], &[7, 8][..]));
            on_own_behalf(|| assert_eq!(requester(), Ok(None)));
            assert_eq!(requester_thread(), Some(RequesterThread { user: 5, group: 6, thread: 0 }));
            on_own_behalf(|| assert_eq!(requester_thread(), None));
            let panicked = std::panic::catch_unwind(|| {
                on_behalf_of(Requester { user: 9, ..somebody }, || panic!("on purpose"));
            });
            assert!(panicked.is_err());
            assert_eq!(requester(), Ok(Some((5, 6))), "restored");
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(requester(), Err(Errno::ACCESS), "another thread"));
            });
        });
        assert_eq!(requester(), Err(Errno::ACCESS));
        assert_eq!(ASKED.load(Ordering::Relaxed), 1, "groups are looked up once");
    }
}
