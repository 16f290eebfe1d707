//! Requests through io_uring instead of the device (Linux 6.14 and later,
//! `Documentation/filesystems/fuse/fuse-io-uring.rst`).
//!
//! Through the device a request costs a read and a write, and a thread that wakes up for it.
//! Through a ring its answer and the next request are one system call, several at once when many
//! programs ask, on the processor they ask from: about half the processor time of a round trip.
//!
//! ```text
//!                ┌─ ring of each processor ─► hit: answered there
//! kernel ────────┤        │  └─ read that misses, write ─► threads that wait for the origin ─┐
//!                │        │                                          outbox ◄────────────────┘
//!                │        └─ everything else ─► bridge ─► session of the library
//!                └─ device ─► session of the library: FORGET, INTERRUPT; notifications the other way
//! ```
//!
//! Whether rings are used is agreed on once, in the answer to the kernel's first request, and from
//! then on it holds every other request back until each queue has a slot. So everything that could
//! fail is done before ([`Prepared::new`]), and what is left is to hand over the slots
//! ([`Prepared::start`]). If the kernel refuses those it goes on by the device.
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | how a request lies in a slot |
//! | `layout` | how many rings and slots |
//! | `ring` | one io_uring and its slots; all unsafe code |
//! | `serve` | what a ring's thread does with a request |
//! | `outbox` | answers of other threads |
//! | `bridge` | requests for the library's session |

mod bridge;
mod layout;
mod outbox;
mod protocol;
mod ring;
mod serve;

use super::Session;
use crate::workers::Leave;
use bridge::Bridge;
use fuser::SessionACL;
use layout::{Layout, RingLayout};
use ogive_origin::Origin;
use ring::Ring;
use rustix::fd::OwnedFd;
use rustix::thread::CpuSet;
use serve::Server;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Says whether the kernel offers rings.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
/// Threads of the session behind a ring: one may wait for the origin.
const BRIDGE_THREADS: usize = 2;

/// Why there are no rings, and what to do about it.
#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) error: io::Error,
    pub(crate) hint: &'static str,
}

/// What is negotiated with the kernel if there are rings.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Largest request, in bytes.
    pub(crate) payload_bytes: u32,
    /// The kernel has offered rings, and they were accepted.
    pub(crate) agreed: AtomicBool,
}

/// Rings that wait for a connection to serve. If this is dropped they end.
pub(crate) struct Prepared {
    pub(crate) terms: Arc<Terms>,
    buffers_bytes: u64,
    rings: Vec<PreparedRing>,
}

struct PreparedRing {
    thread: JoinHandle<()>,
    connection: mpsc::Sender<OwnedFd>,
    ready: mpsc::Receiver<io::Result<()>>,
}

/// Rings that serve a connection.
pub(crate) struct Rings(Vec<JoinHandle<()>>);

impl Prepared {
    /// Makes rings for the requests that `session` is going to answer.
    pub(crate) fn new<O: Origin>(
        session: &Session<O>,
        acl: SessionACL,
    ) -> Result<Self, Unavailable> {
        check_switch()?;
        let unavailable = |error| Unavailable {
            error,
            hint: "io_uring must be allowed to this process (sysctl kernel.io_uring_disabled, \
                   seccomp filters of containers)",
        };
        let layout = Layout::of_this_machine().map_err(unavailable)?;
        let payload_bytes = layout.payload_bytes;
        let rings: Result<Vec<_>, _> = (layout.rings.iter().enumerate())
            .map(|(number, ring)| {
                let session = session.bridged(Leave::new(BRIDGE_THREADS));
                PreparedRing::new(session, acl, number, ring.clone(), payload_bytes as usize)
            })
            .collect();
        let rings = rings.map_err(unavailable)?;
        for ring in &rings {
            answer_of(ring).map_err(unavailable)?;
        }
        let terms = Arc::new(Terms { payload_bytes, agreed: AtomicBool::new(false) });
        Ok(Self { terms, buffers_bytes: layout.buffers_bytes(), rings })
    }

    /// Whether the kernel has agreed.
    pub(crate) fn is_agreed(&self) -> bool {
        self.terms.agreed.load(Ordering::Acquire)
    }

    /// What the buffers may come to take, in bytes.
    pub(crate) fn buffers_bytes(&self) -> u64 {
        self.buffers_bytes
    }

    /// Hands the slots over to the connection of `device`. The rings are to be joined even if the
    /// kernel refuses some slots, which is told besides: it uses the device then.
    pub(crate) fn start(self, device: &OwnedFd) -> (Rings, io::Result<()>) {
        let mut result = Ok(());
        for ring in &self.rings {
            let handed_over = device.try_clone().map(|device| ring.connection.send(device));
            let accepted = handed_over.and_then(|_| answer_of(ring));
            result = result.and(accepted);
        }
        (Rings(self.rings.into_iter().map(|ring| ring.thread).collect()), result)
    }
}

impl Rings {
    /// Waits until all rings have ended, which they do when the connection has.
    pub(crate) fn join(self) {
        for thread in self.0 {
            if thread.join().is_err() {
                log::error!("the thread of a ring panicked");
            }
        }
    }
}

impl PreparedRing {
    fn new<O: Origin>(
        session: Session<O>,
        acl: SessionACL,
        number: usize,
        layout: RingLayout,
        payload_bytes: usize,
    ) -> io::Result<Self> {
        let bridge = Bridge::open(session.clone(), acl, BRIDGE_THREADS)?;
        let (connection, device) = mpsc::channel();
        let (report, ready) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name(format!("fuse_uring-{number}")).spawn(move || {
                stay_at(&layout.processors);
                let slots = layout.slots.len();
                match Ring::new(&layout.slots, payload_bytes) {
                    Ok(ring) => {
                        match Server::new(session, ring, bridge, slots) {
                            Ok(server) => run(server, &device, &report),
                            Err(error) => drop(report.send(Err(error))),
                        };
                    }
                    Err(error) => {
                        bridge.close();
                        // If nobody listens there is nothing left to be done either.
                        let _ = report.send(Err(error));
                    }
                }
            })?;
        Ok(Self { thread, connection, ready })
    }
}

/// What the thread of a ring does once it has one.
fn run<O: Origin>(
    mut server: Server<O>,
    device: &mpsc::Receiver<OwnedFd>,
    report: &mpsc::Sender<io::Result<()>>,
) {
    let _ = report.send(Ok(()));
    let Ok(device) = device.recv() else {
        return server.abandon();
    };
    let _ = report.send(server.register(device));
    if let Err(error) = server.serve() {
        // Requests would wait for ever in queues that nobody serves. The end of the process ends
        // the connection, and the next mount mends what is left of this one.
        log::error!("a ring does not work any more: {error}; ending the process");
        std::process::abort();
    }
}

fn answer_of(ring: &PreparedRing) -> io::Result<()> {
    let ended = || Err(io::Error::other("the thread of a ring has ended"));
    ring.ready.recv().unwrap_or_else(|_| ended())
}

/// A ring is best served on the processor its requests come from. Where that is forbidden it is
/// served elsewhere.
fn stay_at(processors: &[usize]) {
    let mut set = CpuSet::new();
    processors.iter().filter(|number| **number < CpuSet::MAX_CPU).for_each(|n| set.set(*n));
    if let Err(errno) = rustix::thread::sched_setaffinity(None, &set) {
        log::debug!("cannot keep a ring at processors {processors:?}: {errno}");
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
