//! The session: FUSE's requests in, answers out.
//!
//! Nothing else knows the protocol. A request is read from the kernel in one of two ways, by the
//! device or through a ring; from there on there is one way for it:
//!
//! ```text
//! device ─┐                  ┌─ hit, control directory ─► answered where it arrived
//!         ├─► request ─► exchange ─┤
//! ring ───┘                  └─ may wait ─► in flight ─► dispatch ─► view ─► origin
//!                                             ▲
//!                    interrupt, watch ────────┘ answer in its stead
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `protocol` | numbers of the protocol, and headers |
//! | `opcodes` | the table of opcodes: what holds for each |
//! | `operation`, `arguments` | what can be asked for, and how it is read |
//! | `request`, `reply` | a request as it came, and what an answer looks like |
//! | `dispatch`, `handlers` | which handler carries a request out, and what each does |
//! | `control_attributes` | where the control directory stands |
//! | `privileges` | what a change takes away from a file |
//! | `exchange` | the way of a request that is the same for both ways in |
//! | `in_flight` | what waits, and who answers it |
//! | `caller` | what is known of a thread that waits |
//! | `lost_answers` | taking back what was done for nobody |
//! | `negotiation` | what is agreed on first |
//! | `device` | requests by the device |
//! | `uring` | requests through io_uring |
//!
//! No file locks are implemented here: the kernel keeps `flock(2)` and `fcntl(2)` locks of a mount
//! itself if the file system does not ask for them.

mod arguments;
mod caller;
mod control_attributes;
pub(crate) mod device;
mod dispatch;
mod exchange;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handlers;
pub(crate) mod in_flight;
mod lost_answers;
mod negotiation;
mod opcodes;
mod operation;
#[cfg(test)]
mod panics;
mod privileges;
mod protocol;
mod reply;
mod request;
#[cfg(test)]
mod tests;
pub(crate) mod uring;

use crate::control::Control;
use crate::view::View;
use crate::workers::Permits;
use in_flight::InFlight;
use ogive_origin::{Errno, Origin};
use std::sync::Arc;

pub(crate) use negotiation::{Agreed, RequestedFeatures, negotiate};

/// What all threads that answer requests share.
pub(crate) struct Session<O: Origin> {
    pub(crate) view: Arc<View<O>>,
    pub(crate) control: Arc<Control<O>>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Device nodes may be made.
    pub(crate) device_nodes: bool,
    /// Which of the device's threads may wait for the origin.
    pub(crate) permits: Arc<Permits>,
    /// The one user whose requests are answered; with `None` everybody's are.
    pub(crate) owner: Option<u32>,
}

/// An error as the kernel is told it. What a dead network or FUSE file system says of itself would
/// read as if this mount had died; to a program above it the origin is a device that fails.
fn refuse(errno: Errno) -> i32 {
    match errno {
        Errno::NOTCONN | Errno::CONNABORTED | Errno::SHUTDOWN | Errno::HOSTDOWN => {
            Errno::IO.raw_os_error()
        }
        errno => errno.raw_os_error(),
    }
}
