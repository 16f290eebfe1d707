//! What could not be uploaded when it was closed: a thread tries again, with growing pauses.
//!
//! There is no thread before something is owed, and while nothing is it sleeps without an end. At
//! the end of the mount what was never tried is tried once; what is left is in the journal.
//!
//! # Locks
//! One, of the queue; nothing is called under it.

use super::object::OpenObject;
use super::{Handle, Wants, Writing};
use ogive_origin::Errno;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait before the second attempt, and at most before any other.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Objects that are to be uploaded.
#[derive(Default)]
pub(super) struct Owed {
    queue: Mutex<Queue>,
    wanted: Condvar,
    panics: AtomicU64,
}

#[derive(Default)]
struct Queue {
    debts: Vec<Debt>,
    is_ending: bool,
    thread: Option<JoinHandle<()>>,
}

struct Debt {
    object: Arc<OpenObject>,
    /// When to try.
    due: Instant,
    /// How long to wait after that; zero before the first attempt.
    pause: Duration,
}

impl Writing {
    /// Has an object uploaded some time.
    pub(super) fn owe(self: &Arc<Self>, object: &Arc<OpenObject>) {
        let debt = Debt { object: Arc::clone(object), due: Instant::now(), pause: Duration::ZERO };
        let mut queue = self.owed.queue.lock();
        queue.debts.push(debt);
        if queue.thread.is_none() && !queue.is_ending {
            let (owed, writing) = (Arc::clone(&self.owed), Arc::downgrade(self));
            let thread = std::thread::Builder::new().name("bucket_upload".into());
            match thread.spawn(move || owed.pay(&writing)) {
                Ok(thread) => queue.thread = Some(thread),
                Err(error) => log::warn!("no thread to upload what is left: {error}"),
            }
        }
        drop(queue);
        self.owed.wanted.notify_all();
    }
}

impl Owed {
    /// How often an upload has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Ends the thread, and tells how many objects are left.
    pub(super) fn end(&self) -> usize {
        let thread = {
            let mut queue = self.queue.lock();
            queue.is_ending = true;
            queue.thread.take()
        };
        self.wanted.notify_all();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("the thread that uploads panicked");
        }
        self.queue.lock().debts.len()
    }

    fn pay(&self, writing: &Weak<Writing>) {
        while let Some(mut debt) = self.next() {
            let Some(writing) = writing.upgrade() else { return };
            // A panic is a bug of ours. What is owed is owed all the same, and so are the others.
            let is_paid = catch_unwind(AssertUnwindSafe(|| debt.pay(&writing)));
            if is_paid.is_err() {
                self.panics.fetch_add(1, Ordering::Relaxed);
                let key = Arc::clone(&debt.object.state().key);
                log::error!("the upload of {key} panicked; it is tried again");
            }
            if !is_paid.unwrap_or(false) {
                debt.pause = (debt.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                debt.due = Instant::now() + debt.pause;
                self.queue.lock().debts.push(debt);
            }
        }
    }

    /// The next that is due.
    fn next(&self) -> Option<Debt> {
        let mut queue = self.queue.lock();
        loop {
            let now = Instant::now();
            let is_ending = queue.is_ending;
            let is_due = |debt: &Debt| match is_ending {
                true => debt.pause.is_zero(),
                false => debt.due <= now,
            };
            if let Some(at) = queue.debts.iter().position(is_due) {
                return Some(queue.debts.swap_remove(at));
            }
            if is_ending {
                return None;
            }
            match queue.debts.iter().map(|debt| debt.due).min() {
                None => self.wanted.wait(&mut queue),
                Some(due) => {
                    let _ = self.wanted.wait_until(&mut queue, due);
                }
            }
        }
    }
}

impl Debt {
    /// Uploads it, and tells whether it is owed no more.
    fn pay(&self, writing: &Arc<Writing>) -> bool {
        self.object.state().join(false);
        let handle = Handle::new(writing, Arc::clone(&self.object), Wants::default());
        let is_paid = matches!(handle.upload(), Ok(()) | Err(Errno::STALE));
        if is_paid {
            // Before the handle is dropped, which comes to owe it again if it was changed since.
            self.object.state().is_owed = false;
        }
        is_paid
    }
}
