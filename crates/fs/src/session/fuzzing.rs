//! Arbitrary bytes as requests, for the fuzz target. They go through the device's codec and that of
//! the rings, to the same dispatcher, over an origin that changes nothing.
//!
//! Each request must be answered once or refused, or be one without an answer. A panic fails the
//! fuzz target, although a session would survive it.

use super::device::Server;
use super::exchange::{Exchange, Work};
use super::in_flight::InFlight;
use super::in_flight::{Pending, ReplyRoute};
use super::opcodes::Wait;
use super::operation::Operation;
use super::protocol::{ANSWER_HEADER_BYTES, Header, REQUEST_HEADER_BYTES, u32_at, u64_at};
use super::request::{Dialect, Request};
use super::{Agreed, Session, uring};
use crate::control::Control;
use crate::inode_limit::InodeLimit;
use crate::statistics::Statistics;
use crate::testing::FakeOrigin;
use crate::version::Versions;
use crate::view::{Permissions, Result, Settings, View};
use crate::workers::{Permits, Workers};
use ogive_arc::Cache;
use ogive_origin::{Errno, Origin, VersionSecret};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes before each request: its codec, and its length.
const CHUNK_HEADER_BYTES: usize = 3;
/// It comes through a ring and not through the device.
const BY_RING: u8 = 1;
/// Its lengths are corrected to agree.
const IS_WHOLE: u8 = 1 << 1;
/// The negotiated form of requests ([`Dialect`]).
const LONG_SET_XATTR: u8 = 1 << 2;
const CHECKED_FLAGS: u8 = 1 << 3;
/// Payload buffer of a slot.
const SLOT_BYTES: usize = 8192;
/// An answer and its header.
const ANSWER_MAX_BYTES: usize = 2 << 20;

/// Carries out consecutive requests. For each, one byte selects the codec, two give the length, and
/// the request follows.
///
/// # Panics
/// If a request is not answered as it should be.
#[cfg_attr(not(feature = "fuzzing"), allow(unreachable_pub))] // Tests use it without the feature.
pub fn requests(bytes: &[u8]) {
    let session = session_over(FakeOrigin::default(), Duration::from_secs(1), true);
    let mut rest = bytes;
    while let [how, low, high, tail @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let (message, after) = tail.split_at(length);
        match how & BY_RING == 0 {
            true => by_device(&session, *how, message.to_vec()),
            false => by_ring(&session, *how, message),
        }
        rest = after;
        debug_assert!(rest.len() + CHUNK_HEADER_BYTES <= bytes.len());
    }
}

/// A session over a live origin, with names and attributes cached for `ttl`.
pub(super) fn session_over<O: Origin>(
    origin: O,
    ttl: Duration,
    device_nodes: bool,
) -> Arc<Session<O>> {
    let settings = Settings {
        record_size_bytes: 4096,
        direct_io: true,
        exclusive: false,
        metadata_ttl: ttl,
        negative_ttl: ttl,
        prefetch_max_bytes: 0,
        read_only: false,
        immutable: false,
        permissions: Permissions::Kernel,
    };
    let view = View::new(
        origin,
        settings,
        Cache::new(1 << 20),
        Versions::new(Duration::ZERO, false, 1, VersionSecret::new([1; 32])),
        Workers::new(1),
        InodeLimit::new(100, || {}),
        None,
    );
    let view = Arc::new(view.expect("the origin has a root"));
    let statistics = Statistics::new(None);
    let control = Control::new(&view, ".ogive".into(), statistics, serde_json::json!({}), || {});
    Arc::new(Session {
        view,
        control: Arc::new(control),
        in_flight: Arc::new(InFlight::new(None)),
        device_nodes,
        permits: Permits::new(2),
        owner: None,
    })
}

/// Completes all reads of the origin.
fn bring_all(session: &Session<FakeOrigin>) {
    loop {
        let runs = std::mem::take(&mut *session.view.origin.runs.lock());
        if runs.is_empty() {
            return;
        }
        runs.into_iter().for_each(|run| run.end(Err(Errno::IO)));
    }
}

/// Whether a request has an answer.
fn has_answer(request: &Request) -> bool {
    request.rules.wait != Wait::OneWay
}

fn by_device(session: &Arc<Session<FakeOrigin>>, how: u8, mut message: Vec<u8>) {
    let dialect = Dialect {
        long_set_xattr: how & LONG_SET_XATTR != 0,
        checked_flags: how & CHECKED_FLAGS != 0,
    };
    if how & IS_WHOLE != 0 && message.len() >= 4 {
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
    }
    let wanted = Request::parse(&message, dialect)
        .filter(|(request, _)| has_answer(request))
        .map(|(request, _)| request.unique);
    // Sockets that preserve message boundaries stand in for the device.
    let (flags, kind) = (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, SocketType::SEQPACKET);
    let (kernel, device) =
        rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).expect("there are sockets");
    let agreed = Agreed { rings: false, passthrough: false, request_max_bytes: 1 << 16, dialect };
    let server = Server { session: session.clone(), device: Arc::new(device), agreed };
    server.handle(message);
    bring_all(session);
    drop(server);
    assert_eq!(answers(&kernel), Vec::from_iter(wanted), "one answer, to that request");
}

/// The numbers of the answered requests.
fn answers(kernel: &OwnedFd) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut bytes = vec![0; ANSWER_MAX_BYTES];
    while let Ok(length @ 1..) = rustix::io::read(kernel, &mut bytes[..]) {
        assert!(length >= ANSWER_HEADER_BYTES && u32_at(&bytes, 0) as usize == length);
        numbers.push(u64_at(&bytes, 8));
    }
    numbers
}

/// A ring's view of a request, and how often it was answered.
struct Slot {
    payload: Vec<u8>,
    answered: Arc<AtomicUsize>,
    pending: Option<Pending>,
}

impl Exchange for Slot {
    fn buffer(&mut self, _answer_max_bytes: usize) -> &mut [u8] {
        &mut self.payload
    }

    fn wait(&mut self, pending: Pending) {
        self.pending = Some(pending);
    }

    fn claim(&mut self) -> bool {
        self.pending.take().is_none_or(Pending::claim)
    }

    fn finish(&mut self, result: Result<usize>) -> bool {
        assert!(result.is_err() || result.is_ok_and(|length| length <= self.payload.len()));
        self.answered.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn finish_with(&mut self, _pieces: &[&[u8]]) -> bool {
        self.answered.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn give_up(&mut self) {}

    fn send(self) {}
}

/// Fails if another thread answers.
struct NoLateReply;

impl ReplyRoute for NoLateReply {
    fn answer(self: Box<Self>, _unique: u64, _result: Result<&[u8]>) {
        panic!("answered in its stead");
    }
}

fn by_ring(session: &Arc<Session<FakeOrigin>>, how: u8, message: &[u8]) {
    let Some(mut head) = uring::any_head(message) else { return };
    let arguments_bytes = usize::from(message.get(REQUEST_HEADER_BYTES).copied().unwrap_or(0));
    let after = message.get(REQUEST_HEADER_BYTES + 1..).unwrap_or(&[]);
    let (arguments, payload) = after.split_at(arguments_bytes.min(after.len()));
    uring::put_arguments(&mut head, arguments);
    if how & IS_WHOLE != 0 {
        uring::put_lengths(&mut head, arguments.len(), payload.len());
    }
    let Some(request) = uring::read_head(&head, SLOT_BYTES) else { return };
    assert!(request.payload_bytes <= SLOT_BYTES && Header::parse(&head).is_some());
    if matches!(request.operation, Operation::Interrupt { .. }) {
        // These come through the device only.
        return;
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let mut buffer = payload[..payload.len().min(SLOT_BYTES)].to_vec();
    buffer.resize(SLOT_BYTES, 0);
    let mut slot = Slot { payload: buffer, answered: answered.clone(), pending: None };
    if let Some(work) = session.at_once(&request, &mut slot) {
        slot.wait(session.in_flight.begin(&request, Box::new(NoLateReply)));
        match work {
            Work::Read(read) => match session.complete_elsewhere(read, slot) {
                None => bring_all(session),
                Some((read, mut slot)) => {
                    session.carry_out(&request, Work::Read(read), &mut slot);
                }
            },
            Work::Request => session.carry_out(&request, Work::Request, &mut slot),
        }
    }
    let wanted = usize::from(has_answer(&request));
    assert_eq!(answered.load(Ordering::SeqCst), wanted, "{:?}", request.operation);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fuzzer's seeds, and the same with changed bytes.
    #[test]
    fn seeds_and_their_mutations_are_answered_or_refused() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/requests");
        let mut paths: Vec<_> =
            std::fs::read_dir(seeds).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(paths.len() >= 10);
        let mut state = 1_u64;
        // Knuth's linear congruential generator; its upper bits are good enough here.
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for path in paths {
            let seed = std::fs::read(&path).unwrap();
            requests(&seed);
            for _ in 0..40 {
                let mut bytes = seed.clone();
                for _ in 0..=random(4) {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
                requests(&bytes[..random(seed.len()) + 1]);
            }
        }
    }
}
