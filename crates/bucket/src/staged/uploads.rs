//! State that all uploads of a mount share: the memory of their parts, and the store's rule for
//! part lengths.
//!
//! # Memory
//! Bytes of an upload are in memory until the store has them. An upload takes its maximum at its
//! start and releases it at its end. So no upload waits while it holds memory that another one
//! needs. Uploads get memory in the order of their requests.
//!
//! A stream lasts as long as its file is open, without a limit. So it starts only if half of the
//! memory is free; otherwise the file is uploaded at its close.
//!
//! # Parts of one length
//! Some stores (such as Cloudflare R2) require parts of one length, except for the last, and report
//! this only when an upload completes. The upload is then repeated, and all later ones use such
//! parts.
//!
//! # Locks
//! One, of the counts; it is never held across a request.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How many parts of an upload are in memory: those in flight, one that waits to be sent or to be
/// the last, and one being read.
pub(super) const PARTS_IN_MEMORY: u64 = crate::PARTS_AT_ONCE as u64 + 2;

/// The default bound of the memory for parts, in bytes.
const HELD_MAX_BYTES: u64 = 256 << 20;

/// Shared by all uploads of a mount. Clones share their state.
#[derive(Clone, Debug)]
pub struct Uploads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    held_max_bytes: u64,
    figures: Mutex<Figures>,
    /// Signals that memory was released, or that a turn has ended.
    changed: Condvar,
    are_parts_even: AtomicBool,
}

#[derive(Debug, Default)]
struct Figures {
    held_bytes: u64,
    /// How many of the bytes uploads other than streams hold.
    held_by_uploads: u64,
    /// The ticket of the next upload, and the ticket whose turn it is.
    next: u64,
    turn: u64,
}

/// The memory of an upload, released by its drop.
#[derive(Debug)]
pub(super) struct Held {
    shared: Arc<Shared>,
    bytes: u64,
    is_stream: bool,
}

impl Default for Uploads {
    fn default() -> Self {
        Self::new(HELD_MAX_BYTES)
    }
}

impl Uploads {
    /// Bounds the memory of parts. An upload that exceeds the bound runs while no other upload
    /// does.
    pub fn new(held_max_bytes: u64) -> Self {
        let shared = Shared {
            held_max_bytes,
            figures: Mutex::default(),
            changed: Condvar::new(),
            are_parts_even: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// How many bytes of memory parts take now.
    pub fn held_bytes(&self) -> u64 {
        self.shared.figures.lock().held_bytes
    }

    /// Whether the store requires parts of one length.
    pub fn are_parts_even(&self) -> bool {
        self.shared.are_parts_even.load(Relaxed)
    }

    /// Records that the store requires parts of one length.
    pub(super) fn want_even_parts(&self) {
        if !self.shared.are_parts_even.swap(true, Relaxed) {
            log::info!("the store requires parts of one length: all further uploads use them");
        }
    }

    /// Takes memory for an upload that ends without a program's help. Waits for its turn.
    pub(super) fn take(&self, bytes: u64) -> Held {
        let shared = &self.shared;
        let mut figures = shared.figures.lock();
        let number = figures.next;
        figures.next += 1;
        let has_no_turn = |figures: &mut Figures| {
            let fits = figures.held_bytes.saturating_add(bytes) <= shared.held_max_bytes;
            figures.turn != number || !(fits || figures.held_by_uploads == 0)
        };
        shared.changed.wait_while(&mut figures, has_no_turn);
        figures.turn += 1;
        figures.held_bytes += bytes;
        figures.held_by_uploads += bytes;
        drop(figures);
        shared.changed.notify_all();
        Held { shared: Arc::clone(shared), bytes, is_stream: false }
    }

    /// Takes memory for a stream, if there is room.
    pub(super) fn take_for_stream(&self, bytes: u64) -> Option<Held> {
        let mut held = Held { shared: Arc::clone(&self.shared), bytes: 0, is_stream: true };
        held.grow(bytes).then_some(held)
    }
}

impl Held {
    /// Extends the memory of a stream to this many bytes, if there is room.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else { return true };
        let mut figures = self.shared.figures.lock();
        let has_room = figures.held_bytes.saturating_add(more) <= self.shared.held_max_bytes / 2;
        if has_room {
            figures.held_bytes += more;
            self.bytes = bytes;
        }
        has_room
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        {
            let mut figures = self.shared.figures.lock();
            figures.held_bytes -= self.bytes;
            if !self.is_stream {
                figures.held_by_uploads -= self.bytes;
            }
        }
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn uploads_get_memory_in_the_order_of_their_requests() {
        let uploads = Uploads::new(100);
        let first = uploads.take(60);
        let (sender, receiver) = mpsc::channel();
        let wait = |number: u64, bytes: u64| {
            let (clone, sender) = (uploads.clone(), sender.clone());
            let thread = std::thread::spawn(move || {
                let held = clone.take(bytes);
                sender.send(number).unwrap();
                drop(held);
            });
            // It has drawn its ticket.
            while uploads.shared.figures.lock().next < number {
                std::thread::yield_now();
            }
            thread
        };
        let threads = [wait(2, 70), wait(3, 10)];
        assert!(receiver.try_recv().is_err(), "10 would fit, but 70 came first");
        assert_eq!(uploads.held_bytes(), 60);
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // Both have room then, so either may send first.
        let mut received: Vec<u64> = receiver.try_iter().collect();
        received.sort_unstable();
        assert_eq!(received, [2, 3]);
        assert_eq!(uploads.held_bytes(), 0);
    }

    #[test]
    fn an_upload_beyond_the_bound_runs_alone() {
        let uploads = Uploads::new(100);
        let stream = uploads.take_for_stream(50).unwrap();
        let large = uploads.take(1000);
        assert_eq!(uploads.held_bytes(), 1050);
        drop((stream, large));
        assert_eq!(uploads.held_bytes(), 0);
    }

    #[test]
    fn streams_leave_half_of_the_memory_to_other_uploads() {
        let uploads = Uploads::new(100);
        let mut stream = uploads.take_for_stream(30).unwrap();
        assert!(uploads.take_for_stream(30).is_none());
        assert!(stream.grow(50) && stream.grow(10), "what it has is enough");
        assert!(!stream.grow(51));
        assert_eq!(uploads.held_bytes(), 50);
        drop(uploads.take(50));
        drop(stream);
        assert!(uploads.take_for_stream(50).is_some());
    }
}
