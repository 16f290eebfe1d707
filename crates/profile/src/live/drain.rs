//! Takes records out of the rings on a thread of its own. Reading files for names and unwind tables
//! may take long or hang, and must not lose samples.
//!
//! Batches go through a queue of bounded length. When the queue is full, the rings fill up, and the
//! kernel counts the lost records. No lock is held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use perf_event::Sampler;

use crate::read::perf_data::Record;

/// Batches that wait at most.
const BATCHES_MAX: usize = 8;
/// Bytes of a batch, without its last record.
const BATCH_BYTES: usize = 4 << 20;

/// Records of some rings, one after another.
#[derive(Debug, Default)]
pub(super) struct Batch {
    heads: Vec<Head>,
    bytes: Vec<u8>,
    /// Whether all rings were drained since the last batch with this flag.
    pub(super) is_round: bool,
}

#[derive(Debug)]
struct Head {
    kind: u32,
    misc: u16,
    len: usize,
}

impl Batch {
    /// Passes each record to `take`.
    pub(super) fn each(&self, mut take: impl FnMut(Record<'_>)) {
        let mut rest = &self.bytes[..];
        for Head { kind, misc, len } in &self.heads {
            let (body, behind) = rest.split_at(*len);
            take(Record { kind: *kind, misc: *misc, event: 0, body });
            rest = behind;
        }
    }
}

/// The two ends of the queue.
pub(super) fn queue() -> (SyncSender<Batch>, Receiver<Batch>) {
    sync_channel(BATCHES_MAX)
}

/// Drains the rings every `pause` until `done` is set or the receiver is gone. At the end it stops
/// the events and drains the rest.
pub(super) fn run(
    mut samplers: Vec<Sampler>,
    pause: Duration,
    done: &AtomicBool,
    queue: &SyncSender<Batch>,
) {
    let mut goes_on = true;
    while goes_on {
        std::thread::park_timeout(pause);
        goes_on = !done.load(Ordering::Acquire);
        if !goes_on {
            for sampler in &mut samplers {
                // The rings stay readable, and closing them stops them anyway.
                let _ = sampler.disable();
            }
        }
        if !drain(&mut samplers, queue) {
            return;
        }
    }
}

/// Drains each ring once; false when the receiver is gone.
fn drain(samplers: &mut [Sampler], queue: &SyncSender<Batch>) -> bool {
    let mut batch = Batch::default();
    for sampler in samplers {
        while let Some(record) = sampler.next_record() {
            let body = record.to_contiguous();
            batch.heads.push(Head { kind: record.ty(), misc: record.misc(), len: body.len() });
            batch.bytes.extend_from_slice(&body);
            if batch.bytes.len() >= BATCH_BYTES && queue.send(std::mem::take(&mut batch)).is_err() {
                return false;
            }
        }
    }
    batch.is_round = true;
    queue.send(batch).is_ok()
}
