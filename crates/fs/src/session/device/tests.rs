//! Tests of the device over a pair of sockets that preserve message boundaries.

use super::*;
use crate::eventually::BOUND;
use crate::session::protocol::{u32_at, u64_at};
use crate::session::request::Dialect;
use ogive_origin::DirectoryOrigin;
use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

struct Kernel(OwnedFd);

impl Kernel {
    /// The kernel's end, and a server at the other end.
    fn new(directory: &std::path::Path) -> (Self, Server<DirectoryOrigin>) {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .unwrap();
        // A missing answer fails the test instead of hanging it.
        rustix::net::sockopt::set_socket_timeout(&ours, Timeout::Recv, Some(BOUND)).unwrap();
        let session = crate::session::tests::session(directory);
        let dialect = Dialect { long_set_xattr: true, checked_flags: true };
        let agreed =
            Agreed { rings: false, passthrough: false, request_max_bytes: 1 << 16, dialect };
        (Self(ours), Server { session, device: Arc::new(theirs), agreed })
    }

    fn message(opcode: u32, unique: u64, node: u64, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[..4].copy_from_slice(&((40 + rest.len()) as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
        bytes[8..16].copy_from_slice(&unique.to_ne_bytes());
        bytes[16..24].copy_from_slice(&node.to_ne_bytes());
        bytes.extend_from_slice(rest);
        bytes
    }

    /// The answer to the next request: its error number, and its bytes.
    fn answer(&self, unique: u64) -> (i32, Vec<u8>) {
        let mut bytes = vec![0; 4096];
        // With a timeout, a read does not restart by itself after the process was stopped.
        let read = || rustix::io::read(&self.0, &mut bytes[..]);
        let length = rustix::io::retry_on_intr(read).unwrap();
        assert_eq!((u32_at(&bytes, 0) as usize, u64_at(&bytes, 8)), (length, unique));
        (u32_at(&bytes, 4) as i32, bytes[16..length].to_vec())
    }
}

#[test]
fn requests_are_answered_from_their_own_buffer_and_it_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "bytes").unwrap();
    let (kernel, server) = Kernel::new(directory.path());
    let handle = |message| server.handle(message);
    assert!(handle(Kernel::message(1, 2, 1, b"file\0")).is_some());
    let (error, entry) = kernel.answer(2);
    let node = u64_at(&entry, 0);
    assert_eq!((error, entry.len()), (0, 128));
    assert!(handle(Kernel::message(1, 4, 1, b"missing\0")).is_some());
    assert_eq!(kernel.answer(4), (-Errno::NOENT.raw_os_error(), vec![]));
    assert!(handle(Kernel::message(14, 6, node, &[0; 8])).is_some());
    let opened = u64_at(&kernel.answer(6).1, 0);
    let mut read = opened.to_ne_bytes().to_vec();
    read.resize(40, 0);
    read[16..20].copy_from_slice(&100u32.to_ne_bytes());
    for unique in [8, 10] {
        assert!(handle(Kernel::message(15, unique, node, &read)).is_some());
        assert_eq!(kernel.answer(unique), (0, b"bytes".to_vec()), "a miss, and a hit");
    }
    // A request that is too short for its header is not answered, and has no other effect.
    assert!(handle(vec![0; 10]).is_some());
    assert!(handle(Kernel::message(9999, 12, 1, &[])).is_some());
    assert_eq!(kernel.answer(12).0, -Errno::NOSYS.raw_os_error());
    assert!(!server.session.in_flight.end(8), "nothing is left in flight");
}

#[test]
fn when_too_many_wait_a_request_goes_to_another_thread() {
    let directory = tempfile::tempdir().unwrap();
    let (kernel, server) = Kernel::new(directory.path());
    let _waiting = server.session.permits.try_take().unwrap();
    assert!(server.handle(Kernel::message(6, 2, 1, b"link\0target\0")).is_some());
    assert_eq!(kernel.answer(2).1.len(), 128);
    let target = std::fs::read_link(directory.path().join("link")).unwrap();
    assert_eq!(target.as_os_str(), "target");
    assert_eq!(server.session.view.workers.statistics().queued, 1);
}

#[test]
fn a_file_opened_for_a_dead_program_is_closed_again() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "bytes").unwrap();
    let (kernel, server) = Kernel::new(directory.path());
    server.handle(Kernel::message(1, 2, 1, b"file\0"));
    let node = u64_at(&kernel.answer(2).1, 0);
    let message = Kernel::message(14, 4, node, &[0; 8]);
    let (request, payload_at) = Request::parse(&message, server.agreed.dialect).unwrap();
    let (device, unique) = (server.device.clone(), request.unique);
    let mut answer =
        Answer { device, unique, bytes: message, payload_at, is_due: true, pending: None };
    let late = Box::new(LateReply(server.device.clone()));
    answer.wait(server.session.in_flight.begin(&request, late));
    // Another thread has answered: the request is no longer in flight.
    assert!(server.session.in_flight.end(unique));
    server.session.carry_out(&request, Work::Request, &mut answer);
    drop(answer);
    assert_eq!(server.session.view.any_open_file(), None);
    server.handle(Kernel::message(14, 6, node, &[0; 8]));
    assert_eq!(kernel.answer(6).0, 0, "and nothing else was answered");
    assert_eq!(server.session.view.any_open_file(), Some(node));
}

#[test]
fn a_queued_request_of_a_dead_program_is_answered_at_once_and_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (kernel, server) = Kernel::new(directory.path());
    let _waiting = server.session.permits.try_take().unwrap();
    let workers = &server.session.view.workers;
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    workers.request(Box::new(move || held.recv().unwrap_or(())));
    // A program that has ended, and that its parent has not waited for.
    let mut program = std::process::Command::new("true").spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&program);
    let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).unwrap();
    let make = |unique, name: &[u8], thread: u32| {
        let mut message = Kernel::message(6, unique, 1, &[name, b"\0target\0"].concat());
        message[32..36].copy_from_slice(&thread.to_ne_bytes());
        message
    };
    server.handle(make(2, b"of the dead", program.id()));
    server.handle(make(4, b"of the living", std::process::id()));
    server.handle(Kernel::message(36, 6, 0, &2u64.to_ne_bytes()));
    assert_eq!(kernel.answer(2), (-Errno::INTR.raw_os_error(), vec![]), "no thread was free");
    drop(let_go);
    assert_eq!(kernel.answer(4).0, 0);
    assert_eq!(server.session.view.workers.stop(BOUND), 0);
    let made = |name: &str| directory.path().join(name).symlink_metadata().is_ok();
    assert!(made("of the living") && !made("of the dead"));
    assert!(!server.session.in_flight.end(2), "nothing is left in flight");
    program.wait().unwrap();
}
