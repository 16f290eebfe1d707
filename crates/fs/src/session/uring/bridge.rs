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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::pruning::InodeLimit;
    use crate::session::Role;
    use crate::statistics::Statistics;
    use crate::version::Versions;
    use crate::view::{Settings, View};
    use crate::workers::{Leave, Workers};
    use ogive_arc::Cache;
    use ogive_origin::DirectoryOrigin;
    use std::sync::Arc;
    use std::time::Duration;

    fn session(directory: &std::path::Path) -> Session<DirectoryOrigin> {
        let settings = Settings {
            record_size_bytes: 4096,
            direct_io: true,
            exclusive: false,
            metadata_ttl: Duration::ZERO,
            negative_ttl: Duration::ZERO,
            prefetch_max_bytes: 0,
            read_only: false,
        };
        let view = View::new(
            DirectoryOrigin::open(directory).unwrap(),
            settings,
            Cache::new(1 << 20),
            Versions::new(Duration::ZERO, false, 1),
            Workers::new(1),
            InodeLimit::new(100, || {}),
            None,
        );
        let view = Arc::new(view.unwrap());
        let statistics = Statistics::new(None);
        let control =
            Control::new(&view, ".ogive".into(), statistics, serde_json::json!({}), || {});
        Session {
            view,
            control: Arc::new(control),
            device_nodes: false,
            leave: Leave::new(2),
            role: Role::Bridged,
        }
    }

    /// `FUSE_LOOKUP` of a name in the root.
    fn lookup(unique: u64, name: &str) -> Vec<u8> {
        let mut message = vec![0; 40];
        message[..4].copy_from_slice(&(40 + name.len() as u32 + 1).to_ne_bytes());
        message[4..8].copy_from_slice(&1u32.to_ne_bytes());
        message[8..16].copy_from_slice(&unique.to_ne_bytes());
        message[16..24].copy_from_slice(&1u64.to_ne_bytes());
        message.extend_from_slice(name.as_bytes());
        message.push(0);
        message
    }

    #[test]
    fn requests_are_answered_and_the_end_is_clean() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("there"), b"bytes").unwrap();
        let session = session(directory.path());
        let view = session.view.clone();
        let bridge = Bridge::open(session, SessionACL::All, 2).unwrap();
        let mut buffer = vec![0; ANSWER_MAX_BYTES];
        assert_eq!(bridge.receive(&mut buffer), Ok(None), "the first request is not ours");
        for unique in 1..=20 {
            let name = if unique % 2 == 0 { "there" } else { "missing" };
            let message = lookup(unique, name);
            let (header, rest) = message.split_at(40);
            assert_eq!(bridge.try_send(&[header, rest]), Ok(true));
        }
        let mut answered = std::collections::BTreeMap::new();
        while answered.len() < 20 {
            match bridge.receive(&mut buffer).unwrap() {
                Some(message) => {
                    let (unique, result) = protocol::parse_answer(message).unwrap();
                    answered.insert(unique, result.map(<[u8]>::len));
                }
                None => std::thread::yield_now(),
            }
        }
        assert!(answered.iter().all(|(unique, result)| match unique % 2 {
            // `struct fuse_entry_out`
            0 => *result == Ok(128),
            _ => *result == Err(Errno::NOENT.raw_os_error()),
        }));
        bridge.close();
        assert_eq!(Arc::strong_count(&view), 1, "the session behind the bridge lives on");
        // The end of one bridge is not the end of the mount.
        let (send, receive) = std::sync::mpsc::channel();
        view.workers.request(Box::new(move || send.send(std::thread::current().id()).unwrap()));
        assert_ne!(receive.recv().unwrap(), std::thread::current().id());
    }
}
