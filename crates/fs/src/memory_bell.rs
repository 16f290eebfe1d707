//! Wakes the threads of a mount that can give memory back.
//!
//! Some memory can be given back only by its own thread, which sleeps. Such a thread registers an
//! eventfd here and polls it. The lock is a leaf, held for a push or while the eventfds are
//! written.

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::{Arc, Weak};

/// The eventfds of the threads that can give memory back.
#[derive(Debug, Default)]
pub(crate) struct MemoryBell {
    event_fds: Mutex<Vec<Weak<OwnedFd>>>,
}

impl MemoryBell {
    /// An eventfd for the calling thread, which is written to until it is dropped.
    ///
    /// # Errors
    /// If the process may open no more descriptors.
    pub(crate) fn event_fd(&self) -> io::Result<Arc<OwnedFd>> {
        let event_fd = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        self.event_fds.lock().push(Arc::downgrade(&event_fd));
        Ok(event_fd)
    }

    /// Asks for memory.
    pub(crate) fn ring(&self) {
        self.event_fds.lock().retain(|event_fd| {
            let Some(event_fd) = event_fd.upgrade() else { return false };
            if let Err(errno) = rustix::io::write(&event_fd, &1u64.to_ne_bytes()) {
                log::debug!("cannot ring for memory: {errno}");
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bell_rings_until_it_is_dropped() {
        let bell = MemoryBell::default();
        let (first, second) = (bell.event_fd().unwrap(), bell.event_fd().unwrap());
        bell.ring();
        drop(first);
        bell.ring();
        let mut rung = [0; 8];
        rustix::io::read(&second, &mut rung).unwrap();
        assert_eq!(u64::from_ne_bytes(rung), 2);
        assert_eq!(bell.event_fds.lock().len(), 1);
    }
}
