//! Requests through io_uring instead of the device (Linux 6.14 and later,
//! `Documentation/filesystems/fuse/fuse-io-uring.rst`).
//!
//! Through the device a request costs a read and a write, and a thread that wakes up for it.
//! Through a ring its answer and the next request are one system call, several at once when many
//! programs ask, on the processor they ask from: about half the processor time of a round trip.
//!
//! ```text
//!                ┌─ threads of each processor ─► what the cache has, and what the origin is asked for
//! kernel ────────┤        │  └─ when all but one wait ─► threads that wait for the origin ─┐
//!                │        │                                          outbox ◄────────────────┘
//!                │        └─ rare operations ─► bridge ─► sessions of the library
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
//! | `request`, `reply` | what it asks for, and what an answer looks like |
//! | `layout` | how many rings a mount begins with |
//! | `ring` | one io_uring and its slots; all unsafe code |
//! | `serve` | what a ring's thread does with a request |
//! | `crew` | which of a processor's threads may wait for the origin |
//! | `members` | the threads, from start to end |
//! | `placement` | which of them stay at their processor |
//! | `nudge` | makes the kernel look at a queue that got a slot |
//! | `perform` | one operation after the other, in its slot |
//! | `outbox` | answers of other threads |
//! | `bridge` | requests for the library's sessions |

mod bridge;
mod crew;
mod layout;
mod members;
mod nudge;
mod outbox;
mod perform;
mod placement;
mod protocol;
mod reply;
mod request;
mod ring;
mod serve;

use super::Session;
use crate::workers::Leave;
use bridge::Bridge;
use crew::Crew;
use fuser::SessionACL;
use layout::{Layout, RingLayout};
use members::{Members, Recruit};
use ogive_origin::Origin;
use perform::Performer;
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether the kernel offers rings.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

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
pub(crate) struct Prepared<O: Origin> {
    pub(crate) terms: Arc<Terms>,
    members: Arc<Members<O>>,
    recruits: Vec<Recruit>,
}

/// Rings that serve a connection.
pub(crate) struct Rings<O: Origin>(Arc<Members<O>>);

impl<O: Origin> Prepared<O> {
    /// Makes rings for the requests that `session` is going to answer.
    pub(crate) fn new(session: &Session<O>, acl: SessionACL) -> Result<Self, Unavailable> {
        check_switch()?;
        let unavailable = |error| Unavailable {
            error,
            hint: "io_uring must be allowed to this process (sysctl kernel.io_uring_disabled, \
                   seccomp filters of containers)",
        };
        let layout = Layout::of_this_machine().map_err(unavailable)?;
        let payload_bytes = layout.payload_bytes;
        // Whoever passes a request on waits, so the session at the other end may wait as well.
        let session = session.bridged(Leave::new(usize::MAX));
        let owner = (acl != SessionACL::All).then(|| rustix::process::geteuid().as_raw());
        let bridge = Bridge::new(session.clone(), acl);
        let performer = Performer { session, bridge, owner };
        let processors = layout.rings.iter().filter(|ring| ring.has_crew).count();
        let members = Members::new(performer, payload_bytes as usize, processors);
        let recruits: io::Result<Vec<_>> = (layout.rings.into_iter())
            .map(|ring| {
                let crew = ring.has_crew.then(|| Arc::new(Crew::new()));
                members.recruit(crew, ring)
            })
            .collect();
        let recruits = recruits.map_err(unavailable)?;
        let terms = Arc::new(Terms { payload_bytes, agreed: AtomicBool::new(false) });
        Ok(Self { terms, members, recruits })
    }

    /// Whether the kernel has agreed.
    pub(crate) fn is_agreed(&self) -> bool {
        self.terms.agreed.load(Ordering::Acquire)
    }

    /// Hands the slots over to the connection of `device`. The rings are to be joined even if the
    /// kernel refuses some slots, which is told besides: it uses the device then.
    pub(crate) fn start(self, device: &OwnedFd) -> (Rings<O>, io::Result<()>) {
        let started = device.try_clone().map(Arc::new).and_then(|device| {
            let mut result = Ok(());
            for recruit in &self.recruits {
                result = result.and(recruit.serve(device.clone()));
            }
            result
        });
        (Rings(self.members), started)
    }
}

impl<O: Origin> Rings<O> {
    /// Waits until all rings have ended, which they do when the connection has.
    pub(crate) fn join(self) {
        self.0.join();
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
