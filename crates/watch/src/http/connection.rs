//! One connection: requests in, answers out, bounded in bytes and time.

use std::io::{self, Read as _, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::connections::Place;
use super::protocol::Site;
use super::request::{Malformed, Request};

/// Why a connection ends.
enum End {
    /// The peer has gone, is too slow, or never asked.
    Silent,
    /// The request is refused, and the peer gets the reason.
    Refused(Malformed),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Silent
    }
}

impl From<Malformed> for End {
    fn from(malformed: Malformed) -> Self {
        Self::Refused(malformed)
    }
}

/// Serves a connection until it ends.
pub(super) fn serve(site: &Site, mut stream: TcpStream, place: &Place) {
    // An answer is one write; waiting for more of it would only delay it.
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    loop {
        match one(site, &mut stream, &mut buffer, place) {
            Ok(true) => {}
            Ok(false) | Err(End::Silent) => break,
            Err(End::Refused(malformed)) => {
                let mut out = Timed::new(&stream, site.limits.request_time);
                let _ = out.write_all(&Site::refusal(malformed));
                break;
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads and answers one request; says whether there may be another.
fn one(
    site: &Site,
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    place: &Place,
) -> Result<bool, End> {
    let request = read(site, stream, buffer)?;
    let Some(answering) = place.answering() else { return Err(End::Silent) };
    let (answer, keep) = site.answered(&request);
    Timed::new(stream, site.limits.answer_time).write_all(&answer)?;
    drop(answering);
    Ok(keep)
}

/// Reads a whole request; what follows it stays in the buffer.
fn read(site: &Site, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Request, End> {
    let limits = &site.limits;
    if buffer.is_empty() {
        fill(stream, buffer, Instant::now() + limits.idle_time)?;
    }
    let until = Instant::now() + limits.request_time;
    loop {
        if let Some(request) = site.next(buffer)? {
            return Ok(request);
        }
        fill(stream, buffer, until)?;
    }
}

/// Waits for more bytes, until a moment at most.
fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>, until: Instant) -> Result<(), End> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(End::Silent);
    }
    stream.set_read_timeout(Some(left))?;
    let mut chunk = [0; 4096];
    match stream.read(&mut chunk) {
        Ok(0) => Err(End::Silent),
        Ok(bytes) => {
            buffer.extend_from_slice(&chunk[..bytes]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A stream whose writes end at a moment, however slowly the peer takes them.
struct Timed<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl<'s> Timed<'s> {
    fn new(stream: &'s TcpStream, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
