//! Rare requests, handed to sessions of the protocol's library.
//!
//! The library reads requests from a device and writes answers to it, one in each call. A pair of
//! sockets that keep messages apart is such a device: a session on one end takes what is put in at
//! the other. So every operation that programs seldom ask for is answered by the same code whichever
//! way it came. What the sessions would negotiate has been negotiated with the kernel; they are
//! told of a kernel that offers nothing.
//!
//! Whoever passes a request on waits for its answer, and has a session to itself meanwhile: there
//! are as many *lanes* as requests were ever passed on at the same time, and none before the first.
//! The lock guards the list of idle ones and is held for a push or a pop.

use super::protocol::{self, ANSWER_HEADER_BYTES};
use super::request::Request;
use super::ring::Slot;
use crate::session::Session;
use fuser::{Config, SessionACL};
use ogive_origin::{Errno, Origin};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags,
    SocketType, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::thread::JoinHandle;

/// What may be under way in one direction, if the system allows as much: more than the longest
/// request or answer there is here, a value of an extended attribute.
const BUFFER_BYTES: usize = 1 << 20;

/// The lanes of a mount.
pub(super) struct Bridge<O: Origin> {
    session: Session<O>,
    acl: SessionACL,
    idle: Mutex<Vec<Lane>>,
}

/// The near end of a pair of sockets, and the session at the far end.
struct Lane {
    socket: OwnedFd,
    session: JoinHandle<io::Result<()>>,
}

impl<O: Origin> Bridge<O> {
    pub(super) fn new(session: Session<O>, acl: SessionACL) -> Self {
        Self { session, acl, idle: Mutex::default() }
    }

    /// Hands over the request in a slot and waits for the answer, which stands in the payload then;
    /// returns its length.
    ///
    /// # Errors
    /// What the session answers, or `EIO` if there is none or it cannot be reached.
    pub(super) fn pass_on(&self, request: &Request, slot: &mut Slot) -> Result<usize, Errno> {
        let idle = self.idle.lock().pop();
        let lane = match idle.map_or_else(|| Lane::open(self.session.clone(), self.acl), Ok) {
            Ok(lane) => lane,
            Err(error) => {
                log::error!("cannot start a session for a request: {error}");
                return Err(Errno::IO);
            }
        };
        match lane.exchange(request, slot) {
            Ok(answered) => {
                self.idle.lock().push(lane);
                answered
            }
            Err(error) => {
                log::error!("cannot pass a request on: {error}");
                // Whatever is left in it must not be taken for the answer to another request.
                lane.close();
                Err(Errno::IO)
            }
        }
    }

    /// Ends the sessions. Nobody passes anything on any more.
    pub(super) fn close(&self) {
        let lanes = std::mem::take(&mut *self.idle.lock());
        lanes.into_iter().for_each(Lane::close);
    }
}

impl Lane {
    fn open<O: Origin>(session: Session<O>, acl: SessionACL) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, far) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&socket, &far] {
            sockopt::set_socket_send_buffer_size(end, BUFFER_BYTES)?;
        }
        let mut config = Config::default();
        config.acl = acl;
        config.n_threads = Some(1);
        rustix::net::send(&socket, &protocol::init_message(), SendFlags::NOSIGNAL)?;
        let session = fuser::Session::from_fd(session, far, acl, config)?;
        let session =
            std::thread::Builder::new().name("fuse_bridge".into()).spawn(move || session.run())?;
        let lane = Self { socket, session };
        // The answer to the request above: what this session would like is of no interest.
        rustix::net::recv(&lane.socket, &mut [0u8; 256], RecvFlags::empty())?;
        Ok(lane)
    }

    /// Sends the request and receives its answer.
    fn exchange(&self, request: &Request, slot: &mut Slot) -> io::Result<Result<usize, Errno>> {
        let [header, arguments] = request.pieces(slot.head());
        let payload = &slot.payload()[..request.payload_bytes];
        let pieces = [IoSlice::new(header), IoSlice::new(arguments), IoSlice::new(payload)];
        let unique = protocol::unique(slot.head());
        let mut none = SendAncillaryBuffer::default();
        retry(|| rustix::net::sendmsg(&self.socket, &pieces, &mut none, SendFlags::NOSIGNAL))?;
        let mut header = [0; ANSWER_HEADER_BYTES];
        let mut pieces = [IoSliceMut::new(&mut header), IoSliceMut::new(slot.parts_mut().1)];
        let received = retry(|| {
            let mut none = RecvAncillaryBuffer::default();
            rustix::net::recvmsg(&self.socket, &mut pieces, &mut none, RecvFlags::empty())
        })?;
        match protocol::parse_answer(&header, received.bytes) {
            Some((answered, result)) if answered == unique => {
                Ok(result.map_err(Errno::from_raw_os_error))
            }
            _ => Err(io::Error::other("an answer to another request, or none")),
        }
    }

    fn close(self) {
        let message = protocol::destroy_message();
        if let Err(errno) = rustix::net::send(&self.socket, &message, SendFlags::NOSIGNAL) {
            log::warn!("cannot end a session behind a ring: {errno}");
        }
        drop(self.socket);
        match self.session.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log::warn!("a session behind a ring ended badly: {error}"),
            Err(_) => log::error!("a session behind a ring panicked; see the log"),
        }
    }
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::ring::slots;
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

    pub(in super::super) fn session(directory: &std::path::Path) -> Session<DirectoryOrigin> {
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

    /// `FUSE_SYMLINK` of a name in the root, in a slot.
    fn symlink(name: &str) -> Slot {
        let payload = format!("{name}\0target\0");
        let mut slot = slots(1, 1 << 16).pop().unwrap();
        let (head, bytes) = slot.parts_mut();
        *head = protocol::tests::head(6, &[], payload.len() as u32);
        head[16..24].copy_from_slice(&1u64.to_ne_bytes());
        bytes[..payload.len()].copy_from_slice(payload.as_bytes());
        slot
    }

    fn pass_on(bridge: &Bridge<DirectoryOrigin>, slot: &mut Slot) -> Result<usize, Errno> {
        let request = Request::parse(slot.head(), slot.payload().len()).unwrap();
        bridge.pass_on(&request, slot)
    }

    #[test]
    fn requests_are_answered_and_the_end_is_clean() {
        let directory = tempfile::tempdir().unwrap();
        let session = session(directory.path());
        let view = session.view.clone();
        let bridge = Bridge::new(session, SessionACL::All);
        // `struct fuse_entry_out`
        assert_eq!(pass_on(&bridge, &mut symlink("link")), Ok(128));
        assert_eq!(pass_on(&bridge, &mut symlink("link")), Err(Errno::EXIST));
        assert_eq!(
            std::fs::read_link(directory.path().join("link")).unwrap().as_os_str(),
            "target"
        );
        assert_eq!(bridge.idle.lock().len(), 1, "one after the other they share a lane");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let bridge = &bridge;
                scope.spawn(move || {
                    for again in 0..10 {
                        let answer = pass_on(bridge, &mut symlink(&format!("{number}-{again}")));
                        assert_eq!(answer, Ok(128));
                    }
                });
            }
        });
        assert!((1..=8).contains(&bridge.idle.lock().len()));
        bridge.close();
        drop(bridge);
        assert_eq!(Arc::strong_count(&view), 1, "a session behind the bridge lives on");
        // The end of the bridge is not the end of the mount.
        let (send, receive) = std::sync::mpsc::channel();
        view.workers.request(Box::new(move || send.send(std::thread::current().id()).unwrap()));
        assert_ne!(receive.recv().unwrap(), std::thread::current().id());
    }

    #[test]
    fn a_session_that_has_ended_is_an_error_of_the_device() {
        let directory = tempfile::tempdir().unwrap();
        let bridge = Bridge::new(session(directory.path()), SessionACL::All);
        assert_eq!(pass_on(&bridge, &mut symlink("one")), Ok(128));
        {
            let idle = bridge.idle.lock();
            rustix::net::send(&idle[0].socket, &protocol::destroy_message(), SendFlags::NOSIGNAL)
                .unwrap();
            while !idle[0].session.is_finished() {
                std::thread::yield_now();
            }
        }
        assert_eq!(pass_on(&bridge, &mut symlink("two")), Err(Errno::IO));
        assert_eq!(pass_on(&bridge, &mut symlink("three")), Ok(128), "another session is started");
        bridge.close();
    }
}
