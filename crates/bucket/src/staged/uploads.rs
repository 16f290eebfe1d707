//! What all uploads of a mount share: the memory of their parts, and what the store has taught
//! about parts.
//!
//! # Memory
//! Bytes of an upload are in memory until the store has them. An upload takes its maximum before it
//! begins and gives all of it back at its end. So no upload waits while it holds what another one
//! needs. Uploads get memory in the order in which they ask.
//!
//! A stream goes up while its file is open, which may be forever. So it begins only where half of
//! the memory is free; otherwise the file goes up when it is closed.
//!
//! # Parts of one length
//! Some stores (Cloudflare R2 is one) take only parts of one length, with a shorter one at the end.
//! They say so when an upload completes. The upload is then repeated, and all later ones use such
//! parts.
//!
//! # Locks
//! One, of the figures; it is never held across a request.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Parts of an upload that are in memory at once: those under way, the one that waits to be sent or
/// to be the last, and the one that is read.
pub(super) const PARTS_IN_MEMORY: u64 = crate::PARTS_AT_ONCE as u64 + 2;

/// Bytes that parts take at most, where nothing else is said.
const HELD_MAX_BYTES: u64 = 256 << 20;

/// Shared by all uploads of a mount. Clones are the same.
#[derive(Clone, Debug)]
pub struct Uploads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    held_max_bytes: u64,
    figures: Mutex<Figures>,
    /// Memory was given back, or a turn has ended.
    changed: Condvar,
    are_parts_even: AtomicBool,
}

#[derive(Debug, Default)]
struct Figures {
    held_bytes: u64,
    /// Bytes among them that uploads other than streams hold.
    held_by_uploads: u64,
    /// The number that the next upload draws, and the one whose turn it is.
    next: u64,
    turn: u64,
}

/// Memory of an upload, given back with this.
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
    /// Uploads whose parts take so many bytes of memory at most; one that needs more than is left
    /// by streams goes alone.
    pub fn new(held_max_bytes: u64) -> Self {
        let shared = Shared {
            held_max_bytes,
            figures: Mutex::default(),
            changed: Condvar::new(),
            are_parts_even: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Bytes of memory that are taken for parts now.
    pub fn held_bytes(&self) -> u64 {
        self.shared.figures.lock().held_bytes
    }

    /// Whether the store takes parts of one length only.
    pub fn are_parts_even(&self) -> bool {
        self.shared.are_parts_even.load(Relaxed)
    }

    /// The store has said that it takes parts of one length only.
    pub(super) fn want_even_parts(&self) {
        if !self.shared.are_parts_even.swap(true, Relaxed) {
            log::info!("the store takes parts of one length only: uploads are cut so from now on");
        }
    }

    /// Takes memory for an upload that is going to end by itself. Waits for its turn.
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

    /// Takes memory for a stream, if there is room for one.
    pub(super) fn take_for_stream(&self, bytes: u64) -> Option<Held> {
        let mut held = Held { shared: Arc::clone(&self.shared), bytes: 0, is_stream: true };
        held.grow(bytes).then_some(held)
    }
}

impl Held {
    /// Takes as much more for a stream as makes it so many bytes, if there is room.
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
    fn uploads_get_memory_in_the_order_in_which_they_ask() {
        let uploads = Uploads::new(100);
        let first = uploads.take(60);
        let (told, hear) = mpsc::channel();
        let wait = |number: u64, bytes: u64| {
            let (own, told) = (uploads.clone(), told.clone());
            let thread = std::thread::spawn(move || {
                let held = own.take(bytes);
                told.send(number).unwrap();
                drop(held);
            });
            // It has drawn its number.
            while uploads.shared.figures.lock().next < number {
                std::thread::yield_now();
            }
            thread
        };
        let threads = [wait(2, 70), wait(3, 10)];
        assert!(hear.try_recv().is_err(), "10 would fit, and 70 came first");
        assert_eq!(uploads.held_bytes(), 60);
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // Both have room at once then, so any of them may be the first to say so.
        let mut heard: Vec<u64> = hear.try_iter().collect();
        heard.sort_unstable();
        assert_eq!(heard, [2, 3]);
        assert_eq!(uploads.held_bytes(), 0);
    }

    #[test]
    fn one_that_needs_more_than_there_is_goes_alone() {
        let uploads = Uploads::new(100);
        let stream = uploads.take_for_stream(50).unwrap();
        let large = uploads.take(1000);
        assert_eq!(uploads.held_bytes(), 1050);
        drop((stream, large));
        assert_eq!(uploads.held_bytes(), 0);
    }

    #[test]
    fn streams_leave_half_to_the_uploads_that_end() {
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
