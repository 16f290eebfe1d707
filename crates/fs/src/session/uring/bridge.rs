//! Requests that a ring does not answer itself, handed to a session of the protocol's library.
//!
//! The library reads requests from a device and writes answers to it, one in each call. A pair of
//! sockets that keep messages apart is such a device: a session on one end takes what a ring puts
//! in at the other, and every kind of request is answered by the same code whichever way it came.
//! What the sessions would negotiate has been negotiated with the kernel; they are told of a
//! kernel that offers nothing.
//!
//! A ring never waits here: what does not fit at once is sent by a thread that may wait. No answer
//! is longer than [`ANSWER_MAX_BYTES`], since listings are made to ask for less and reads and
//! writes do not come this way.

use super::protocol::{self, ANSWER_HEADER_BYTES};
use crate::session::Session;
use fuser::{Config, SessionACL};
use ogive_origin::{Errno, Origin};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt,
};
use std::io::{self, IoSlice};
use std::thread::JoinHandle;

/// Longest listing to ask for; also the longest extended attribute, and list of them.
pub(super) const LISTING_MAX_BYTES: u32 = 64 << 10;
/// Longest answer.
pub(super) const ANSWER_MAX_BYTES: usize = LISTING_MAX_BYTES as usize + ANSWER_HEADER_BYTES;
/// What may be under way in one direction, if the system allows as much.
const BUFFER_BYTES: usize = 1 << 20;

/// The ring's end.
pub(super) struct Bridge {
    socket: OwnedFd,
    threads: usize,
    session: JoinHandle<io::Result<()>>,
}

impl Bridge {
    /// Starts a session with this many threads.
    ///
    /// # Errors
    /// If the system has no sockets or threads left.
    pub(super) fn open<O: Origin>(
        session: Session<O>,
        acl: SessionACL,
        threads: usize,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, far) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&socket, &far] {
            sockopt::set_socket_send_buffer_size(end, BUFFER_BYTES)?;
        }
        let mut config = Config::default();
        config.acl = acl;
        config.n_threads = Some(threads);
        rustix::net::send(&socket, &protocol::init_message(), SendFlags::NOSIGNAL)?;
        let session = fuser::Session::from_fd(session, far, acl, config)?;
        let bridge = std::thread::Builder::new()
            .name("fuse_bridge".into())
            .spawn(move || session.run())
            .map(|session| Self { socket, threads, session })?;
        // The answer to the request above: what this session would like is of no interest.
        rustix::net::recv(&bridge.socket, &mut [0u8; 256], RecvFlags::empty())?;
        Ok(bridge)
    }

    /// Hands a request over if there is room, and says whether there was.
    pub(super) fn try_send(&self, pieces: &[&[u8]]) -> Result<bool, Errno> {
        match send(self.socket.as_fd(), pieces, SendFlags::DONTWAIT) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Another handle of the ring's end, for a thread that may wait.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// The next answer that has come in, if there is one.
    pub(super) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
        loop {
            return match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::AGAIN) => Ok(None),
                Ok((length, _)) => Ok(Some(&buffer[..length])),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(errno),
            };
        }
    }

    /// Ends the session, after the requests it has taken.
    pub(super) fn close(self) {
        for _ in 0..self.threads {
            let message = protocol::destroy_message();
            if let Err(errno) = rustix::net::send(&self.socket, &message, SendFlags::NOSIGNAL) {
                log::warn!("cannot end a session behind a ring: {errno}");
            }
        }
        match self.session.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log::warn!("a session behind a ring ended badly: {error}"),
            Err(_) => log::error!("a session behind a ring panicked; see the log"),
        }
    }
}

impl AsFd for Bridge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a request, waiting until there is room unless told not to.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    pieces: &[&[u8]],
    flags: SendFlags,
) -> Result<(), Errno> {
    let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut ancillary = SendAncillaryBuffer::default();
    rustix::net::sendmsg(socket, &slices, &mut ancillary, flags | SendFlags::NOSIGNAL).map(|_| ())
}
