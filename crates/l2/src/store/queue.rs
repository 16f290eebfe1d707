//! The queue of records that wait to be written, or are being written. They stay readable.
//!
//! Bytes count from the push until the device has them. So the bound holds for all evicted records
//! that the second level keeps in memory.

use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a record, wherever they are kept.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A record that waits to be written.
pub(crate) struct WaitingRecord {
    pub(crate) key: [u8; 16],
    pub(crate) bytes: SharedBytes,
    pub(crate) provenance: u8,
}

/// The queue's answer to the writer.
pub(crate) enum Popped {
    /// A record to write.
    Record(WaitingRecord),
    /// No record came within the time limit.
    Idle,
    /// It is to end.
    Stop,
}

pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// The writer rests, or has ended.
    changed: Condvar,
    /// Records in flight: with none, no reader takes the lock.
    count: AtomicUsize,
    /// Bytes of them.
    bytes: AtomicU64,
    bytes_max: u64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<WaitingRecord>,
    in_flight: HashMap<[u8; 16], SharedBytes>,
    write_soon: bool,
    stopped: bool,
    /// The writer waits for something to do.
    resting: bool,
    ended: bool,
}

impl Queue {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            changed: Condvar::new(),
            count: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Most bytes in flight.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Bytes in flight; they change under the lock only.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// False if it is full, or the key is in flight already.
    pub(crate) fn try_push(&self, record: WaitingRecord) -> bool {
        let length = (*record.bytes).as_ref().len() as u64;
        {
            let mut state = self.state.lock();
            if state.stopped
                || self.bytes() + length > self.bytes_max
                || state.in_flight.contains_key(&record.key)
            {
                drop(state);
                return false;
            }
            self.bytes.fetch_add(length, Ordering::Relaxed);
            state.in_flight.insert(record.key, record.bytes.clone());
            state.waiting.push_back(record);
            self.count.fetch_add(1, Ordering::Release);
        }
        self.wake.notify_one();
        true
    }

    /// The bytes of a key in flight.
    pub(crate) fn in_flight(&self, key: &[u8; 16]) -> Option<SharedBytes> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.state.lock().in_flight.get(key).cloned()
    }

    fn take(&self, state: &mut State, key: &[u8; 16]) -> Option<SharedBytes> {
        let bytes = state.in_flight.remove(key)?;
        self.bytes.fetch_sub((*bytes).as_ref().len() as u64, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Release);
        Some(bytes)
    }

    /// The next record. With nothing to do it waits, `patience` at most.
    pub(crate) fn pop(&self, patience: Option<Duration>) -> Popped {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut state = self.state.lock();
        loop {
            if let Some(record) = state.waiting.pop_front() {
                return Popped::Record(record);
            }
            if state.stopped {
                return Popped::Stop;
            }
            if std::mem::take(&mut state.write_soon) {
                return Popped::Idle;
            }
            state.resting = true;
            self.changed.notify_all();
            let is_late = match deadline {
                None => {
                    self.wake.wait(&mut state);
                    false
                }
                Some(deadline) => self.wake.wait_until(&mut state, deadline).timed_out(),
            };
            state.resting = false;
            if is_late && state.waiting.is_empty() && !state.stopped {
                return Popped::Idle;
            }
        }
    }

    /// These keys are on the device, or were given up.
    pub(crate) fn done(&self, keys: impl Iterator<Item = [u8; 16]>) {
        let mut gone = Vec::new();
        {
            let mut state = self.state.lock();
            for key in keys {
                gone.extend(self.take(&mut state, &key));
            }
            // Or the next record would be hurried for the sake of these.
            state.write_soon &= !state.in_flight.is_empty();
        }
        drop(gone);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// The writer does not wait for more to be written with what there is now, if anything.
    pub(crate) fn write_soon(&self) {
        {
            let mut state = self.state.lock();
            state.write_soon = !state.in_flight.is_empty();
        }
        self.wake.notify_one();
    }

    /// Whether before the deadline the writer has taken all there is and waits for more.
    pub(crate) fn wait_taken(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !(state.resting && state.waiting.is_empty()) {
            if state.ended || self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.resting && state.waiting.is_empty();
            }
        }
        true
    }

    /// Accepts no more records; the writer must write the queued ones.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.wake.notify_one();
    }

    /// The writer has ended.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Whether the writer ends before the deadline.
    pub(crate) fn wait_ended(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.ended {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.ended;
            }
        }
        true
    }
}
