//! Telling the threads of a mount that memory is wanted back.
//!
//! Some memory can be given back only by the thread it belongs to, and that thread sleeps: it
//! leaves a bell here and watches it. The lock is a leaf, held for a push or while bells ring.

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::{Arc, Weak};

/// The bells of those who have something to give back.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    bells: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Wanted {
    /// A bell for the calling thread; nobody rings it any more once it is dropped.
    ///
    /// # Errors
    /// If the process may open no more descriptors.
    pub(crate) fn bell(&self) -> io::Result<Arc<OwnedFd>> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        self.bells.lock().push(Arc::downgrade(&bell));
        Ok(bell)
    }

    /// Memory is wanted back.
    pub(crate) fn ring(&self) {
        self.bells.lock().retain(|bell| {
            let Some(bell) = bell.upgrade() else { return false };
            if let Err(errno) = rustix::io::write(&bell, &1u64.to_ne_bytes()) {
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
        let wanted = Wanted::default();
        let (first, second) = (wanted.bell().unwrap(), wanted.bell().unwrap());
        wanted.ring();
        drop(first);
        wanted.ring();
        let mut rung = [0; 8];
        rustix::io::read(&second, &mut rung).unwrap();
        assert_eq!(u64::from_ne_bytes(rung), 2);
        assert_eq!(wanted.bells.lock().len(), 1);
    }
}
