//! The open connections, and which one is closed when there are too many.
//!
//! A connection that is closed to make room leaves the table at once, and its thread ends a little
//! later. So threads are counted separately; there are at most twice as many.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

/// The table.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    max: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they began to wait; those that are being answered are not here.
    waiting: Vec<Waiting>,
    threads: usize,
    answering: usize,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    stream: TcpStream,
}

/// The place of one connection; dropping it leaves.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    connections: Connections,
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(1), state: Arc::default() }
    }

    /// A place for a new connection, which waits for its first request. `None` if all others are
    /// being answered, or their threads have not ended yet.
    pub(super) fn enter(&self, stream: &TcpStream) -> Option<Place> {
        let stream = stream.try_clone().ok()?;
        let mut state = self.state.lock();
        if state.threads >= 2 * self.max || state.answering >= self.max {
            return None;
        }
        if state.waiting.len() + state.answering >= self.max && !state.waiting.is_empty() {
            // Its thread finds the end of the stream.
            let _ = state.waiting.remove(0).stream.shutdown(Shutdown::Both);
        }
        state.threads += 1;
        state.next += 1;
        let number = state.next;
        state.waiting.push(Waiting { number, stream });
        Some(Place { number, connections: self.clone() })
    }
}

impl Place {
    /// A request has come whole. The answer counts as waiting again from its end on. `None` if the
    /// connection was closed to make room.
    pub(super) fn answering(&self) -> Option<Answering<'_>> {
        let mut state = self.connections.state.lock();
        let at = state.waiting.iter().position(|waiting| waiting.number == self.number)?;
        let waiting = state.waiting.remove(at);
        state.answering += 1;
        Some(Answering { place: self, stream: Some(waiting.stream) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.connections.state.lock();
        state.threads -= 1;
        state.waiting.retain(|waiting| waiting.number != self.number);
    }
}

/// While a request is answered, its connection is not closed to make room.
pub(super) struct Answering<'p> {
    place: &'p Place,
    stream: Option<TcpStream>,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        let mut state = self.place.connections.state.lock();
        state.answering -= 1;
        if let Some(stream) = self.stream.take() {
            state.waiting.push(Waiting { number: self.place.number, stream });
        }
    }
}
