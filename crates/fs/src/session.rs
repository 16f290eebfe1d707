//! The session: FUSE's requests in, answers out.
//!
//! This is the only module that knows the protocol's library. It turns each request into a call of
//! the [view](crate::view) or of the [control directory](crate::control) and the result into a
//! reply; what it decides itself is on which thread. A read that the cache can answer is answered
//! where it arrived. Whatever has to ask the origin is done there too while enough session
//! threads are left, and by another thread otherwise ([`crate::workers`]).
//!
//! No file locks are implemented here: the kernel keeps `flock(2)` and `fcntl(2)` locks of a mount
//! itself if the file system does not ask for them.

mod answer;
mod convert;
mod filesystem;
mod listing;
mod negotiation;
mod place;
mod transfer;
pub(crate) mod uring;

use crate::control::Control;
use crate::view::View;
use crate::workers::Leave;
use ogive_origin::{Errno, Origin};
use std::sync::Arc;

/// What the session threads share.
pub(crate) struct Session<O: Origin> {
    pub(crate) view: Arc<View<O>>,
    pub(crate) control: Arc<Control<O>>,
    /// Device nodes may be made.
    pub(crate) device_nodes: bool,
    /// Which of its threads may wait for the origin.
    pub(crate) leave: Arc<Leave>,
    pub(crate) role: Role,
}

/// Whom a session speaks with.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// The kernel, by the device; with terms, it accepts the kernel's offer of rings.
    Device(Option<Arc<uring::Terms>>),
    /// A ring, which has taken its requests from the kernel.
    Bridged,
}

impl<O: Origin> Clone for Session<O> {
    fn clone(&self) -> Self {
        Self {
            view: self.view.clone(),
            control: self.control.clone(),
            device_nodes: self.device_nodes,
            leave: self.leave.clone(),
            role: self.role.clone(),
        }
    }
}

impl<O: Origin> Session<O> {
    /// The same for requests that come by way of a ring.
    fn bridged(&self, leave: Arc<Leave>) -> Self {
        Self { leave, role: Role::Bridged, ..self.clone() }
    }

    /// Runs a request here or, if too many session threads wait for the origin, elsewhere.
    fn run<Reply: Send + 'static>(
        &self,
        reply: Reply,
        request: impl FnOnce(&Arc<View<O>>, Reply) + Send + 'static,
    ) {
        match self.leave.try_take() {
            Some(_leave) => request(&self.view, reply),
            None => {
                let view = self.view.clone();
                self.view.workers.request(Box::new(move || request(&view, reply)));
            }
        }
    }
}

/// An error as the library wants it. What a dead network or FUSE file system says of itself would
/// read as if this mount had died; to a program above it the origin is a device that fails.
fn refuse(errno: Errno) -> fuser::Errno {
    match errno {
        Errno::NOTCONN | Errno::CONNABORTED | Errno::SHUTDOWN | Errno::HOSTDOWN => {
            fuser::Errno::EIO
        }
        errno => fuser::Errno::from_i32(errno.raw_os_error()),
    }
}
