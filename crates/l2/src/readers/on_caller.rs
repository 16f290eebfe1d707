//! A read on the calling thread, which is one of those that read the second level.
//!
//! It costs no hand-over: the thread waits in the kernel for the device, for a bounded time, and
//! then unseals. It keeps the memory that it needs for that.

use super::{Readers, finish};
use crate::counters::{Stopwatch, add};
use crate::index::Slot;
use crate::store::{Store, Unsealer};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;

thread_local! {
    static UNSEALER: RefCell<Unsealer> = RefCell::default();
}

impl Readers {
    /// Reads a record here. If a read here could not be given up, a thread of the pool reads it.
    /// `None` is a miss, for whatever reason.
    pub(crate) fn read_here(
        &self,
        store: &Arc<Store>,
        key: &[u8; 16],
        slot: Slot,
    ) -> Option<Vec<u8>> {
        let counters = &self.counters;
        let plan = store.plan(slot)?;
        let (start, mut watch) = (store.now(), Stopwatch::start());
        let (mut found, mut is_late) = (None, false);
        let mut take = |read: io::Result<&[u8]>| {
            watch.lap(&counters.l2_read_cpu_ns);
            is_late = read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
            if !is_late {
                store.note_time(start, read.is_ok());
                found = UNSEALER
                    .with_borrow_mut(|unsealer| finish(store, key, slot, &plan, read, unsealer));
            }
        };
        let mut prepare = || UNSEALER.with_borrow_mut(Unsealer::prepare);
        let (offset, length) = (plan.offset, plan.length);
        let device = store.device();
        if !device.read_within(offset, length, self.patience, &mut prepare, &mut take) {
            return self.read(store, *key, slot);
        }
        if is_late {
            add(&counters.l2_timeouts, 1);
            store.note_failure();
        } else {
            counters.read_answered(store.now() - start);
        }
        found
    }
}
