//! A small HTTP/1.1 server: blocking, a thread a connection, few connections, strict limits.
//!
//! It serves a person's browser and a scraper or two, not the internet. So each connection has a
//! thread, which sleeps in read(2) between requests. Without a connection the only thread sleeps in
//! accept(2). `httparse`, the parser of hyper, parses requests. One place, the [`Gate`], decides
//! which requests are allowed.
//!
//! [`Limits`] hold for every peer: bytes and time of a request, time to accept an answer, and the
//! number of connections. When there are too many, the one that has been idle longest is closed, so
//! thousands of idle connections keep no other client out.
//!
//! Locks: that of the table of connections, a leaf, held only for access to the table.

mod connection;
mod connections;
mod gate;
mod protocol;
mod request;
mod response;
mod routes;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use gate::{Gate, Refused, TOKEN_CHARACTERS_MIN, Token};
pub use protocol::Site;
pub use request::{Method, Request};
pub use response::{Asset, PAGE_POLICY, Response};
pub use routes::{Access, Routes};

use connections::Connections;

/// How much is taken from a peer.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of a request before its body.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// From the first byte of a request to its last.
    pub request_time: Duration,
    /// From an answer to the next request's first byte.
    pub idle_time: Duration,
    /// For an answer to be taken.
    pub answer_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_bytes: 16 << 10,
            body_bytes: 64 << 10,
            request_time: Duration::from_secs(5),
            idle_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(30),
        }
    }
}

/// A server that is bound to an address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
    connections: Connections,
}

impl Server {
    /// Binds an address. From then on connections queue in the kernel until [`Server::serve`].
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn bind(
        address: SocketAddr,
        gate: Gate,
        routes: Routes,
        limits: Limits,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let connections = Connections::new(limits.connections);
        Ok(Self { listener, site: Arc::new(Site::new(gate, routes, limits)), connections })
    }

    /// The bound address, with the port that the system chose.
    ///
    /// # Errors
    ///
    /// The socket does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves for as long as the process lives.
    pub fn serve(self) -> ! {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => {
                    // A peer that has gone already is no reason to wait; without descriptors there
                    // is nothing to do before some are closed.
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        log::warn!("cannot accept a connection: {error}");
                        thread::sleep(Duration::from_millis(200));
                    }
                }
            }
        }
    }

    /// Gives a connection a thread, if there is room.
    fn admit(&self, stream: std::net::TcpStream) {
        let Some(place) = self.connections.enter(&stream) else { return };
        let site = Arc::clone(&self.site);
        let started = thread::Builder::new()
            .name("watch_http".into())
            .spawn(move || connection::serve(&site, stream, &place));
        if let Err(error) = started {
            log::warn!("cannot start a thread for a connection: {error}");
        }
    }
}
