//! Requests through io_uring instead of the device (Linux 6.14 and later,
//! `Documentation/filesystems/fuse/fuse-io-uring.rst`).
//!
//! Through the device a request costs a read and a write, and the wake-up of a thread. Through a
//! ring its answer and the next request are one system call. When many programs ask, one call
//! carries several requests, on the processor of those programs. A round trip takes about half the
//! processor time.
//!
//! ```text
//!                ┌─ threads of each processor ─► cached records, and requests to the origin
//! kernel ────────┤           └─ when all but one wait ─► threads that wait for the origin ─┐
//!                │                                                   inbox ◄───────────────┘
//!                └─ device: FORGET, INTERRUPT; notifications the other way
//! ```
//!
//! Rings are negotiated once, in the answer to the kernel's first request. From then on the kernel
//! holds back every other request until each queue has a slot. So everything that can fail is done
//! before ([`Prepared::new`]), and only the slots are handed over later ([`Prepared::start`]). If
//! the kernel refuses a slot, it falls back to the device.
//!
//! | module | idea |
//! |---|---|
//! | `head` | the layout of a request in a slot |
//! | `layout` | how many rings a mount begins with |
//! | `ring` | one io_uring and its slots; all unsafe code |
//! | `serve` | what a ring's thread does with a request |
//! | `queue_threads` | which of a processor's threads may wait for the origin |
//! | `ring_threads` | the threads, from start to end |
//! | `pinning` | which threads stay on their processor |
//! | `queue_wakeup` | makes the kernel serve a queue that got a slot |
//! | `answer` | a request in its slot, and its answer |
//! | `ring_inbox` | answers of other threads |
//! | `rescue` | answers for a thread that hangs in the origin |

mod answer;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzzing;
mod head;
mod layout;
mod pinning;
mod queue_threads;
mod queue_wakeup;
mod rescue;
mod ring;
mod ring_inbox;
mod ring_threads;
mod serve;

#[cfg(test)]
pub(super) use answer::TestRing;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) use fuzzing::{any_head, put_arguments, put_lengths, read_head};

use super::Session;
use layout::{Layout, RingLayout};
use ogive_origin::Origin;
use queue_threads::QueueThreads;
use ring_threads::{NewThread, RingThreads};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;

/// The kernel's switch for FUSE over io_uring.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// Why there are no rings, and a hint for the user.
#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) error: io::Error,
    pub(crate) hint: &'static str,
}

/// Rings that wait for a connection to serve. They end when this is dropped.
pub(crate) struct Prepared<O: Origin> {
    /// Largest request, in bytes.
    pub(crate) payload_bytes: u32,
    threads: Arc<RingThreads<O>>,
    new_threads: Vec<NewThread>,
}

/// Rings that serve a connection.
pub(crate) struct Rings<O: Origin>(Arc<RingThreads<O>>);

impl<O: Origin> Prepared<O> {
    /// Makes rings for the requests that `session` will answer.
    pub(crate) fn new(session: &Arc<Session<O>>) -> Result<Self, Unavailable> {
        check_switch()?;
        let unavailable = |error| Unavailable {
            error,
            hint: "io_uring must be allowed to this process (sysctl kernel.io_uring_disabled, \
                   seccomp filters of containers)",
        };
        let layout = Layout::of_this_machine().map_err(unavailable)?;
        let payload_bytes = layout.payload_bytes;
        let processors = layout.rings.iter().filter(|ring| ring.has_queue_threads).count();
        let threads = RingThreads::new(session.clone(), payload_bytes as usize, processors);
        let rescuer = RingLayout { queues: Vec::new(), has_queue_threads: false };
        let new_threads: io::Result<Vec<_>> = (layout.rings.into_iter().chain([rescuer]))
            .map(|ring| {
                let queue_threads = ring.has_queue_threads.then(|| Arc::new(QueueThreads::new()));
                threads.new_thread(queue_threads, ring)
            })
            .collect();
        let new_threads = new_threads.map_err(unavailable)?;
        Ok(Self { payload_bytes, threads, new_threads })
    }

    /// Hands the slots over to the connection of `device`. The second value is an error if the
    /// kernel refused some slots, and uses the device instead; the rings must be joined all the
    /// same.
    pub(crate) fn start(self, device: &Arc<OwnedFd>) -> (Rings<O>, io::Result<()>) {
        let started = {
            let mut result = Ok(());
            for new_thread in &self.new_threads {
                result = result.and(new_thread.serve(device.clone()));
            }
            result
        };
        (Rings(self.threads), started)
    }
}

impl<O: Origin> Rings<O> {
    /// Waits for the rings after the connection has ended, within the time limit. Returns how many
    /// of their threads still wait for the origin.
    pub(crate) fn join(self) -> usize {
        self.0.join()
    }
}

fn check_switch() -> Result<(), Unavailable> {
    match std::fs::read_to_string(SWITCH) {
        Ok(value) if value.trim() == "Y" => Ok(()),
        Ok(_) => Err(Unavailable {
            error: io::Error::other("FUSE over io_uring is switched off"),
            hint: "as root, `echo Y > /sys/module/fuse/parameters/enable_uring`, or boot with \
                   fuse.enable_uring=1",
        }),
        Err(error) => Err(Unavailable {
            error: io::Error::new(error.kind(), format!("cannot read {SWITCH}: {error}")),
            hint: "FUSE over io_uring needs Linux 6.14 or later, built with CONFIG_FUSE_IO_URING",
        }),
    }
}
