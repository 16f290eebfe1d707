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
mod place;
mod transfer;

use crate::control::Control;
use crate::view::View;
use ogive_origin::{Errno, Origin};
use std::sync::Arc;

/// What the session threads share.
pub(crate) struct Session<O: Origin> {
    pub(crate) view: Arc<View<O>>,
    pub(crate) control: Arc<Control<O>>,
    /// Device nodes may be made.
    pub(crate) device_nodes: bool,
}

impl<O: Origin> Session<O> {
    /// Runs a request here or, if too many session threads wait for the origin, elsewhere.
    fn run<Reply: Send + 'static>(
        &self,
        reply: Reply,
        request: impl FnOnce(&Arc<View<O>>, Reply) + Send + 'static,
    ) {
        match self.view.workers.try_inline() {
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
