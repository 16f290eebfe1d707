//! On whose behalf a thread acts.
//!
//! Credentials are state of a thread in Linux, and so is this: whoever carries out a request for
//! somebody says so around it ([`on_behalf_of`]), and an origin that asks its source in that
//! somebody's name finds here in whose. It switches for its final system calls alone.
//!
//! # Invariants
//!
//! A thread of which nobody has said anything acts for nobody, and such an origin refuses it
//! whatever needs a permission. So a way to the origin that forgets to say is an error that a
//! test meets, and never an operation with the rights of this process.

use crate::{Errno, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// Somebody who has asked for something.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    /// User whose files they are to be.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The thread that waits, by which more can be known; 0 if that is not known.
    pub thread: u32,
    /// The supplementary groups: asked for once, and only if they matter.
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

/// Does some work on behalf of somebody.
pub fn on_behalf_of<T>(requester: Requester, work: impl FnOnce() -> T) -> T {
    within(Acting::For(requester, None), work)
}

/// Does some work with the rights of this process: what follows from an operation that somebody
/// was allowed.
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

/// User, group and supplementary groups in whose name this thread acts; `None` for its own.
///
/// # Errors
/// `EACCES` if nobody has said.
pub(crate) fn requester() -> Result<Option<(u32, u32)>> {
    ACTING.with_borrow(|acting| match acting {
        Acting::ForNobody => Err(Errno::ACCESS),
        Acting::ForItself => Ok(None),
        Acting::For(requester, _) => Ok(Some((requester.user, requester.group))),
    })
}

/// The supplementary groups of whom this thread acts for.
pub(crate) fn groups() -> Rc<[u32]> {
    ACTING.with_borrow_mut(|acting| match acting {
        Acting::For(requester, known) => {
            known.get_or_insert_with(|| (requester.groups)(requester).into()).clone()
        }
        Acting::ForNobody | Acting::ForItself => Rc::default(),
    })
}

/// The thread of a program that this thread acts for.
pub(crate) fn asker() -> Option<Asker> {
    ACTING.with_borrow(|acting| match acting {
        Acting::ForNobody | Acting::ForItself => None,
        Acting::For(Requester { user, group, thread, .. }, _) => {
            Some(Asker { user: *user, group: *group, thread: *thread })
        }
    })
}

/// A thread of a program, and in whose name it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    user: u32,
    group: u32,
    thread: u32,
}

impl Asker {
    /// Whether it asks in the name of this user.
    pub(crate) fn is(&self, user: u32) -> bool {
        self.user == user
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_thread_acts_for_nobody_but_while_it_was_said_for_whom() {
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
            assert_eq!(asker(), Some(Asker { user: 5, group: 6, thread: 0 }));
            on_own_behalf(|| assert_eq!(asker(), None));
            let panicked = std::panic::catch_unwind(|| {
                on_behalf_of(Requester { user: 9, ..somebody }, || panic!("on purpose"));
            });
            assert!(panicked.is_err());
            assert_eq!(requester(), Ok(Some((5, 6))), "as before it");
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(requester(), Err(Errno::ACCESS), "another thread"));
            });
        });
        assert_eq!(requester(), Err(Errno::ACCESS));
        assert_eq!(ASKED.load(Ordering::Relaxed), 1, "groups are asked for once");
    }
}
