//! A check with a time limit: the caller waits a moment for the answer and continues without it.
//!
//! Only one check runs at a time; while it has no answer, further ones are not started. It runs on
//! a thread of its own, which ends with the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Whether a check is running.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimedCheck(Arc<AtomicBool>);

/// Dropped after the answer, or after a panic of the check.
struct Asked(Arc<AtomicBool>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl TimedCheck {
    /// Starts the check, unless one is running, and waits for its answer up to `patience`. Returns
    /// whether it was answered.
    pub(crate) fn ask(&self, patience: Duration, ask: impl FnOnce() + Send + 'static) -> bool {
        if self.0.swap(true, Ordering::Acquire) {
            return false;
        }
        let asked = Asked(self.0.clone());
        let (answered, answer) = mpsc::channel::<()>();
        let started = std::thread::Builder::new().name("origin_asks".into()).spawn(move || {
            ask();
            drop(asked);
            drop(answered);
        });
        if let Err(error) = started {
            log::warn!("cannot start a thread to check the source: {error}");
            return false;
        }
        // Nothing is sent: the other end is dropped.
        answer.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventually::eventually;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn an_unanswered_check_delays_no_caller_and_runs_once() {
        let (check, asked) = (TimedCheck::default(), Arc::new(AtomicU32::new(0)));
        let (release, released) = mpsc::channel::<()>();
        let count = asked.clone();
        assert!(!check.ask(Duration::ZERO, move || {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = released.recv();
        }));
        let count = asked.clone();
        assert!(!check.ask(Duration::from_secs(3600), move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        drop(release);
        eventually("the question is answered", || !check.0.load(Ordering::SeqCst));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_answer_in_time_is_waited_for_even_if_the_check_panics() {
        let (check, asked) = (TimedCheck::default(), Arc::new(AtomicU32::new(0)));
        assert!(check.ask(Duration::from_secs(3600), || panic!("a bug of the origin's")));
        let count = asked.clone();
        assert!(check.ask(Duration::from_secs(3600), move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
