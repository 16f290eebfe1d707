//! Pending uploads: files that could not be uploaded at their close are retried, with growing
//! pauses.
//!
//! The thread starts with the first pending upload, and sleeps while the queue is empty. At the end
//! of the mount each upload gets its first attempt, if it had none. The first timeout ends that,
//! because each file would take the whole timeout. The journal keeps the rest.
//!
//! # Locks
//! One, of the queue; a leaf.

use super::open_object::OpenObject;
use super::{Handle, OpenMode, Writing};
use crate::BucketError;
use crate::staged::StagedError;
use ogive_origin::Errno;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The shortest and the longest pause between two attempts.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// After this many failures in a row, or one timeout, the store is considered unavailable.
const IN_VAIN_MAX: u32 = 3;

/// Objects that wait for their upload.
#[derive(Default)]
pub(super) struct PendingUploads {
    queue: Mutex<Queue>,
    wanted: Condvar,
    /// How many uploads have failed since the last success.
    in_vain: AtomicU32,
    panics: AtomicU64,
}

#[derive(Default)]
struct Queue {
    uploads: Vec<PendingUpload>,
    is_ending: bool,
    thread: Option<JoinHandle<()>>,
}

struct PendingUpload {
    object: Arc<OpenObject>,
    /// When to try next.
    due: Instant,
    /// The pause before the attempt after that; zero before the first attempt.
    pause: Duration,
}

impl Writing {
    /// Queues an object for the upload thread.
    pub(super) fn upload_later(self: &Arc<Self>, object: &Arc<OpenObject>) {
        let upload = PendingUpload {
            object: Arc::clone(object),
            due: Instant::now(),
            pause: Duration::ZERO,
        };
        let mut queue = self.pending.queue.lock();
        queue.uploads.push(upload);
        if queue.thread.is_none() && !queue.is_ending {
            let (pending, writing) = (Arc::clone(&self.pending), Arc::downgrade(self));
            let thread = std::thread::Builder::new().name("bucket_upload".into());
            match thread.spawn(move || pending.run(&writing)) {
                Ok(thread) => queue.thread = Some(thread),
                Err(error) => log::warn!("cannot start the upload thread: {error}"),
            }
        }
        drop(queue);
        self.pending.wanted.notify_all();
    }
}

impl PendingUploads {
    /// How often an upload has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Records the outcome of an upload.
    pub(super) fn note(&self, error: Option<&StagedError>) {
        match error {
            Some(StagedError::Bucket(BucketError::TimedOut { .. })) => {
                self.in_vain.store(IN_VAIN_MAX, Ordering::Relaxed);
            }
            Some(StagedError::Bucket(error)) if error.is_in_doubt() => {
                self.in_vain.fetch_add(1, Ordering::Relaxed);
            }
            // Any other error is an answer.
            _ => self.in_vain.store(0, Ordering::Relaxed),
        }
    }

    /// Ends the thread. Returns how many objects are left.
    pub(super) fn end(&self) -> usize {
        let thread = {
            let mut queue = self.queue.lock();
            queue.is_ending = true;
            // The failures so far do not count against the last attempts.
            self.in_vain.store(0, Ordering::Relaxed);
            queue.thread.take()
        };
        self.wanted.notify_all();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("the upload thread panicked");
        }
        self.queue.lock().uploads.len()
    }

    fn run(&self, writing: &Weak<Writing>) {
        while let Some(mut upload) = self.next() {
            let Some(writing) = writing.upgrade() else { return };
            // A panic is a bug in ogive. The upload stays pending, and the others continue.
            let is_done = catch_unwind(AssertUnwindSafe(|| upload.upload(&writing)));
            if is_done.is_err() {
                self.panics.fetch_add(1, Ordering::Relaxed);
                let key = Arc::clone(&upload.object.state().key);
                log::error!("the upload of {key} panicked and will be retried");
            }
            if !is_done.unwrap_or(false) {
                upload.pause = (upload.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                upload.due = Instant::now() + upload.pause;
                self.queue.lock().uploads.push(upload);
            }
        }
    }

    /// Waits for the next upload that is due.
    fn next(&self) -> Option<PendingUpload> {
        let mut queue = self.queue.lock();
        loop {
            let now = Instant::now();
            let is_ending = queue.is_ending;
            if is_ending && self.in_vain.load(Ordering::Relaxed) >= IN_VAIN_MAX {
                return None;
            }
            let is_due = |upload: &PendingUpload| match is_ending {
                true => upload.pause.is_zero(),
                false => upload.due <= now,
            };
            if let Some(at) = queue.uploads.iter().position(is_due) {
                return Some(queue.uploads.swap_remove(at));
            }
            if is_ending {
                return None;
            }
            match queue.uploads.iter().map(|upload| upload.due).min() {
                None => self.wanted.wait(&mut queue),
                Some(due) => {
                    let _ = self.wanted.wait_until(&mut queue, due);
                }
            }
        }
    }
}

impl PendingUpload {
    /// Uploads the object. Whether that is done.
    fn upload(&self, writing: &Arc<Writing>) -> bool {
        self.object.state().join(false);
        let handle = Handle::new(writing, Arc::clone(&self.object), OpenMode::default());
        let is_done = matches!(handle.upload(), Ok(()) | Err(Errno::STALE));
        if is_done {
            // Clear this before the drop of the handle, which queues the object again if it has
            // changed.
            self.object.state().is_pending = false;
        }
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::posix::Convention;

    /// The pending uploads of a mount that is ending.
    fn ending(files: usize) -> PendingUploads {
        let pending = PendingUploads::default();
        for _ in 0..files {
            let object = Arc::new(OpenObject::new("k", None, None, Convention::Off));
            let upload = PendingUpload { object, due: Instant::now(), pause: Duration::ZERO };
            pending.queue.lock().uploads.push(upload);
        }
        assert_eq!(pending.end(), files);
        pending
    }

    fn tried(pending: &PendingUploads, error: impl Fn() -> Option<BucketError>) -> usize {
        let mut tried = 0;
        while pending.next().is_some() {
            tried += 1;
            pending.note(error().map(StagedError::Bucket).as_ref());
        }
        tried
    }

    #[test]
    fn at_the_end_an_unresponsive_store_is_tried_once_and_not_for_each_file() {
        let key = || "k".to_owned();
        let failed = || BucketError::Failed { key: key(), message: "refused".to_owned() };
        let late = || BucketError::TimedOut { key: key(), seconds: 30 };
        let denied = || BucketError::Denied { key: key(), message: "no".to_owned() };
        assert_eq!(tried(&ending(1000), || None), 1000);
        assert_eq!(tried(&ending(1000), || Some(late())), 1);
        assert_eq!(tried(&ending(1000), || Some(failed())), 3);
        assert_eq!(tried(&ending(1000), || Some(denied())), 1000);
        let pending = ending(1000);
        tried(&pending, || Some(late()));
        assert_eq!(pending.queue.lock().uploads.len(), 999, "they count as left");
    }
}
