//! Tests that a panic ends only its own request, over an origin that panics at every call.

use super::device::Server;
use super::exchange::{Exchange, Work};
use super::fuzzing::session_over;
use super::in_flight::ReplyRoute;
use super::negotiation::Agreed;
use super::protocol::{Header, u32_at, u64_at};
use super::request::{Dialect, Request};
use super::{Session, uring};
use crate::eventually::BOUND;
use crate::view::Result;
use ogive_origin::{
    Allocation, Attributes, Caller, Changes, DirectoryEntry, DirectoryOrigin, Errno, FileFlags,
    FileSystemStatistics, FlagsForm, Found, Make, Needed, Node, OFlags, OpenDirectory, OpenFile,
    Origin, RenameFlags, Run, RunSink, Whence, XattrFlags,
};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A directory that panics at every operation while `is_on` is set.
struct Panicking {
    origin: DirectoryOrigin,
    is_on: AtomicBool,
    /// The origin claims to read in the background, and reads on the threads that answer requests.
    in_background: bool,
}

impl Panicking {
    fn meet(&self) -> &DirectoryOrigin {
        assert!(!self.is_on.load(Ordering::SeqCst), "on purpose");
        &self.origin
    }
}

macro_rules! handed_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result { self.meet().$name($($argument),*) })*
    };
}

impl Origin for Panicking {
    type Node = Node;
    type File = OpenFile;
    type Directory = OpenDirectory;

    fn read_run<S: RunSink>(&self, file: &OpenFile, run: Run, sink: S) {
        self.meet().read_run(file, run, sink);
    }

    fn reads_in_background(&self) -> bool {
        self.in_background
    }

    handed_on! {
        root() -> Result<Found<Node>>;
        check_health() -> Result<()>;
        lookup(parent: &Node, name: &OsStr) -> Result<Found<Node>>;
        lookup_in(parent: &OpenDirectory, name: &OsStr) -> Result<Found<Node>>;
        leads_to(parent: &Node, name: &OsStr, node: &Node) -> Result<bool>;
        attributes(node: &Node, file: Option<&OpenFile>) -> Result<Attributes>;
        attributes_needed(node: &Node, file: Option<&OpenFile>, needed: Needed)
            -> Result<Attributes>;
        set_attributes(node: &Node, file: Option<&OpenFile>, changes: &Changes)
            -> Result<Attributes>;
        read_link(node: &Node) -> Result<OsString>;
        make(parent: &Node, name: &OsStr, what: Make<'_>, caller: Caller) -> Result<Found<Node>>;
        create(parent: &Node, name: &OsStr, flags: OFlags, mode: u32, caller: Caller)
            -> Result<(Found<Node>, OpenFile)>;
        link(node: &Node, file: Option<&OpenFile>, parent: &Node, name: &OsStr)
            -> Result<Found<Node>>;
        unlink(parent: &Node, name: &OsStr) -> Result<()>;
        remove_directory(parent: &Node, name: &OsStr) -> Result<()>;
        rename(from: (&Node, &OsStr), to: (&Node, &OsStr), flags: RenameFlags) -> Result<()>;
        open(node: &Node, flags: OFlags) -> Result<OpenFile>;
        read_at(file: &OpenFile, offset: u64, length_bytes: usize, into: &mut Vec<u8>)
            -> Result<()>;
        write_at(file: &OpenFile, offset: u64, bytes: &[u8]) -> Result<usize>;
        append(file: &OpenFile, bytes: &[u8]) -> Result<usize>;
        local_size(file: &OpenFile) -> Option<u64>;
        flush(file: &OpenFile) -> Result<()>;
        sync(file: &OpenFile, data_only: bool) -> Result<()>;
        allocate(file: &OpenFile, allocation: Allocation) -> Result<()>;
        seek(file: &OpenFile, offset: u64, whence: Whence) -> Result<u64>;
        copy_range(from: (&OpenFile, u64), to: (&OpenFile, u64), length_bytes: usize)
            -> Result<usize>;
        open_directory(node: &Node) -> Result<OpenDirectory>;
        read_directory(
            directory: &OpenDirectory,
            cookie: u64,
            visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool
        ) -> Result<()>;
        directory_attributes(directory: &OpenDirectory) -> Result<Attributes>;
        sync_directory(directory: &OpenDirectory) -> Result<()>;
        get_xattr(node: &Node, name: &OsStr, into: &mut [u8]) -> Result<usize>;
        set_xattr(node: &Node, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()>;
        list_xattrs(node: &Node, into: &mut [u8]) -> Result<usize>;
        remove_xattr(node: &Node, name: &OsStr) -> Result<()>;
        flags(node: &Node, form: FlagsForm) -> Result<FileFlags>;
        set_flags(node: &Node, flags: FileFlags) -> Result<()>;
        statistics(node: &Node) -> Result<FileSystemStatistics>;
        has_access_control_lists() -> bool;
    }
}

/// A session over such a directory, with an open file and an open directory.
struct Fixture {
    _directory: tempfile::TempDir,
    kernel: OwnedFd,
    server: Server<Panicking>,
    file: u64,
    file_handle: u64,
    directory_handle: u64,
    unique: u64,
}

impl Fixture {
    fn new(in_background: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), vec![7; 3 * 4096]).unwrap();
        let origin = DirectoryOrigin::open(directory.path()).unwrap();
        let origin = Panicking { origin, is_on: AtomicBool::new(false), in_background };
        let session = session_over(origin, Duration::ZERO, true);
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (kernel, device) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        // A missing answer fails the test instead of hanging it.
        set_socket_timeout(&kernel, Timeout::Recv, Some(BOUND)).unwrap();
        let dialect = Dialect { long_set_xattr: true, checked_flags: true };
        let agreed =
            Agreed { rings: false, passthrough: false, request_max_bytes: 1 << 16, dialect };
        let server = Server { session, device: Arc::new(device), agreed };
        let mut fixture = Self {
            _directory: directory,
            kernel,
            server,
            file: 0,
            file_handle: 0,
            directory_handle: 0,
            unique: 0,
        };
        fixture.file = u64_at(&fixture.ask(1, 1, b"file\0").1, 0);
        let read_and_write = OFlags::RDWR.bits().to_ne_bytes();
        let opened = fixture.ask(14, fixture.file, &[read_and_write, [0; 4]].concat());
        fixture.file_handle = u64_at(&opened.1, 0);
        fixture.directory_handle = u64_at(&fixture.ask(27, 1, &[0; 8]).1, 0);
        fixture
    }

    fn session(&self) -> &Arc<Session<Panicking>> {
        &self.server.session
    }

    fn panics(&self, is_on: bool) {
        self.session().view.origin.is_on.store(is_on, Ordering::SeqCst);
    }

    fn counted(&self) -> u64 {
        let view = &self.session().view;
        view.counters.counts().panics + view.workers.statistics().panics
    }

    fn message(&mut self, opcode: u32, node: u64, rest: &[u8]) -> Vec<u8> {
        self.unique += 2;
        let mut bytes = vec![0; 40];
        bytes[..4].copy_from_slice(&((40 + rest.len()) as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.unique.to_ne_bytes());
        bytes[16..24].copy_from_slice(&node.to_ne_bytes());
        bytes.extend_from_slice(rest);
        bytes
    }

    /// The device's answer: its error number, and its bytes.
    fn ask(&mut self, opcode: u32, node: u64, rest: &[u8]) -> (i32, Vec<u8>) {
        let message = self.message(opcode, node, rest);
        self.server.handle(message);
        self.answer()
    }

    fn answer(&self) -> (i32, Vec<u8>) {
        let mut bytes = vec![0; 1 << 17];
        let read = || rustix::io::read(&self.kernel, &mut bytes[..]);
        let length = rustix::io::retry_on_intr(read).unwrap();
        assert_eq!((u32_at(&bytes, 0) as usize, u64_at(&bytes, 8)), (length, self.unique));
        (u32_at(&bytes, 4) as i32, bytes[16..length].to_vec())
    }

    /// Each operation that asks the origin: its opcode, the node, and the bytes after the header.
    fn operations(&self) -> Vec<(u32, u64, Vec<u8>)> {
        let (file, handle, directory) = (self.file, self.file_handle, self.directory_handle);
        let fixed = |bytes: usize, numbers: &[(usize, u64)]| {
            let mut fixed = vec![0; bytes];
            for (at, number) in numbers {
                fixed[*at..at + 8].copy_from_slice(&number.to_ne_bytes());
            }
            fixed
        };
        let named = |fixed: Vec<u8>, names: &[u8]| [&fixed[..], names].concat();
        let transfer = |handle: u64, length: u64| fixed(40, &[(0, handle), (16, length)]);
        let append = u64::from(OFlags::APPEND.bits());
        let get_flags = 2 << 30 | 8 << 16 | u64::from(b'f') << 8 | 1;
        let set_flags = 1 << 30 | 8 << 16 | u64::from(b'f') << 8 | 2;
        vec![
            (1, 1, named(fixed(0, &[]), b"file\0")),
            (3, file, fixed(16, &[])),
            (4, file, fixed(88, &[(0, 1 | 8 | 16 | 32 | 1 << 6), (8, handle)])),
            (5, file, fixed(0, &[])),
            (6, 1, b"link\0target\0".to_vec()),
            (8, 1, named(fixed(16, &[(0, 0o010_644)]), b"pipe\0")),
            (9, 1, named(fixed(8, &[(0, 0o755)]), b"made\0")),
            (10, 1, b"file\0".to_vec()),
            (11, 1, b"made\0".to_vec()),
            (12, 1, named(fixed(8, &[(0, 1)]), b"file\0other\0")),
            (13, 1, named(fixed(8, &[(0, file)]), b"linked\0")),
            (14, file, fixed(8, &[])),
            (15, file, transfer(handle, 3 * 4096)),
            (16, file, named(transfer(handle, 5), b"bytes")),
            (16, file, named(fixed(40, &[(0, handle), (16, 5), (32, append)]), b"bytes")),
            (17, 1, fixed(0, &[])),
            (20, file, fixed(16, &[(0, handle)])),
            (21, file, named(fixed(16, &[(0, 1)]), b"user.name\0x")),
            (22, file, named(fixed(8, &[(0, 100)]), b"user.name\0")),
            (23, file, fixed(8, &[(0, 100)])),
            (24, file, b"user.name\0".to_vec()),
            (25, file, fixed(24, &[(0, handle)])),
            (27, 1, fixed(8, &[])),
            (28, 1, transfer(directory, 4096)),
            (30, 1, fixed(16, &[(0, directory)])),
            (35, 1, named(fixed(16, &[(0, u64::from(OFlags::RDWR.bits()))]), b"new\0")),
            (39, file, fixed(32, &[(8, get_flags << 32), (24, 4 << 32)])),
            (39, file, named(fixed(32, &[(8, set_flags << 32), (24, 4)]), &[0; 4])),
            (43, file, fixed(32, &[(0, handle), (16, 4096)])),
            (44, 1, transfer(directory, 4096)),
            (45, 1, named(fixed(16, &[(0, 1)]), b"file\0other\0")),
            (46, file, fixed(24, &[(0, handle), (16, 4)])),
            (47, file, fixed(56, &[(0, handle), (16, file), (24, handle), (40, 5)])),
        ]
    }

    /// Checks that the last request has ended and the session still answers.
    fn is_well(&mut self) {
        self.panics(false);
        assert!(!self.session().in_flight.waits_since(std::time::Instant::now()));
        assert_eq!(self.ask(3, self.file, &[0; 16]).0, 0, "the next request is answered");
    }
}

const FAILED: i32 = -5;

#[test]
fn a_request_of_the_device_that_panics_is_an_error_and_the_next_one_is_served() {
    for in_background in [false, true] {
        let mut fixture = Fixture::new(in_background);
        for (opcode, node, rest) in fixture.operations() {
            let counted = fixture.counted();
            fixture.panics(true);
            let (error, bytes) = fixture.ask(opcode, node, &rest);
            assert_eq!((error, bytes.len()), (FAILED, 0), "operation {opcode}");
            assert!(fixture.counted() > counted, "operation {opcode} is not counted");
            fixture.is_well();
        }
        // Read-ahead may panic only now, and then a waiting reader gets the error. Each of these
        // few reads ends with that.
        let read = fixture.operations()[12].2.clone();
        let mut answers = (0..100).map(|_| fixture.ask(15, fixture.file, &read));
        let reads = answers.find(|(error, _)| *error != FAILED).unwrap();
        assert_eq!((reads.0, reads.1.len()), (0, 3 * 4096), "no record is left claimed");
        assert_eq!(fixture.session().view.workers.stop(BOUND), 0, "nothing hangs at the end");
    }
}

#[test]
fn a_request_that_panics_on_a_thread_for_requests_is_an_error_too() {
    let mut fixture = Fixture::new(false);
    for (opcode, node, rest) in fixture.operations() {
        let counted = fixture.counted();
        fixture.panics(true);
        let session = fixture.session().clone();
        // No thread that takes requests may wait.
        let permit = session.permits.try_take().unwrap();
        assert_eq!(fixture.ask(opcode, node, &rest).0, FAILED, "operation {opcode}");
        drop(permit);
        assert!(fixture.counted() > counted, "operation {opcode} is not counted");
        fixture.is_well();
    }
    assert_eq!(fixture.session().view.workers.stop(BOUND), 0, "nothing hangs at the end");
}

/// A late reply that must never be sent.
struct NoLateReply;

impl ReplyRoute for NoLateReply {
    fn answer(self: Box<Self>, _unique: u64, _result: Result<&[u8]>) {
        panic!("answered in its stead");
    }
}

#[test]
fn a_request_of_a_ring_that_panics_is_an_error_and_its_slot_comes_back_once() {
    for in_background in [false, true] {
        let mut fixture = Fixture::new(in_background);
        for (opcode, node, rest) in fixture.operations() {
            let message = fixture.message(opcode, node, &rest);
            let dialect = fixture.server.agreed.dialect;
            let (request, payload_at) = Request::parse(&message, dialect).unwrap();
            assert_eq!(Header::parse(&message).unwrap().unique, request.unique);
            let ring = uring::TestRing::new();
            let mut answer = ring.answer(&message[payload_at..]);
            fixture.panics(true);
            let session = fixture.session().clone();
            let done = session.guarded(|| {
                if let Some(work) = session.at_once(&request, &mut answer) {
                    answer.wait(session.in_flight.begin(&request, Box::new(NoLateReply)));
                    let work = match work {
                        Work::Read(read) => {
                            let Some((read, back)) = session.complete_elsewhere(read, answer)
                            else {
                                return Ok(());
                            };
                            answer = back;
                            Work::Read(read)
                        }
                        work => work,
                    };
                    session.carry_out(&request, work, &mut answer);
                }
                answer.send();
                Ok(())
            });
            assert!(matches!(done, Ok(()) | Err(Errno::IO)));
            assert_eq!(ring.answered(), [FAILED], "operation {opcode}");
            fixture.is_well();
        }
        assert_eq!(fixture.session().view.workers.stop(BOUND), 0, "nothing hangs at the end");
    }
}
