//! The protocol on a connection, without the connection: bytes of a peer in, answers out.
//!
//! A connection only adds the waiting. So the code that parses outside bytes runs without a socket,
//! and `fuzz/` tests it with any bytes.
//!
//! Invariant: the answers depend on the bytes, and not on how they were split on arrival.

use super::Limits;
use super::gate::Gate;
use super::request::{Head, Malformed, Method, Request};
use super::response::Response;
use super::routes::{Access, Routes};

/// The routes of a server, its gate, and its limits.
#[derive(Debug)]
pub struct Site {
    gate: Gate,
    routes: Routes,
    pub(super) limits: Limits,
}

impl Site {
    /// These routes behind this gate.
    pub fn new(gate: Gate, routes: Routes, limits: Limits) -> Self {
        Self { gate, routes, limits }
    }

    /// Takes the first request out of what a peer has sent; what follows it stays. `None` if more
    /// bytes are needed.
    pub(super) fn next(&self, buffer: &mut Vec<u8>) -> Result<Option<Request>, Malformed> {
        let head_bytes_max = self.limits.head_bytes.min(buffer.len());
        let (request, head_bytes, body_bytes) = match Request::parse(&buffer[..head_bytes_max])? {
            Head::Whole(request, head_bytes, body_bytes) => (request, head_bytes, body_bytes),
            Head::Partial if buffer.len() >= self.limits.head_bytes => return Err(Malformed(431)),
            Head::Partial => return Ok(None),
        };
        if body_bytes > self.limits.body_bytes {
            return Err(Malformed(413));
        }
        let whole = head_bytes + body_bytes;
        if buffer.len() < whole {
            return Ok(None);
        }
        let body = buffer[head_bytes..whole].to_vec();
        buffer.drain(..whole);
        Ok(Some(request.with_body(body)))
    }

    /// Answers a request, or refuses to.
    pub(super) fn answer(&self, request: &Request) -> Response {
        let found = self.routes.find(request);
        // A refused client does not learn which routes exist.
        let access = found.as_ref().map_or(Access::Look, |route| route.access);
        if let Err(refused) = self.gate.admit(request, access) {
            return refused.response();
        }
        match found {
            Ok(route) => (route.handler)(request),
            Err(response) => response,
        }
    }

    /// The bytes of an answer, and whether there may be another request.
    pub(super) fn answered(&self, request: &Request) -> (Vec<u8>, bool) {
        let keep = request.keeps_connection();
        let with_body = request.method() != Method::Head;
        (self.answer(request).message(request.takes_gzip(), with_body, keep), keep)
    }

    /// The answer to a client that sends no request.
    pub(super) fn refusal(Malformed(status): Malformed) -> Vec<u8> {
        Response::error(status, "the request cannot be read").message(false, true, false)
    }

    /// All that a connection would answer to bytes that come in these parts.
    pub fn answers(&self, parts: &[&[u8]]) -> Vec<u8> {
        let (mut buffer, mut answers) = (Vec::new(), Vec::new());
        for part in parts {
            buffer.extend_from_slice(part);
            loop {
                match self.next(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some(request)) => {
                        let (answer, keep) = self.answered(&request);
                        answers.extend(answer);
                        if !keep {
                            return answers;
                        }
                    }
                    Err(malformed) => {
                        answers.extend(Self::refusal(malformed));
                        return answers;
                    }
                }
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::gate::Token;
    use super::*;

    fn site() -> Site {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let gate = Gate::new(address, Token::chosen("0123456789abcdef").unwrap());
        let routes = Routes::new()
            .get("/", Access::Page, |_| Response::json("{}"))
            .post("/act", |request| Response::json(request.body().to_vec()));
        let limits = Limits { head_bytes: 200, body_bytes: 50, ..Limits::default() };
        Site::new(gate, routes, limits)
    }

    fn statuses(answers: &[u8]) -> Vec<u16> {
        let text = String::from_utf8_lossy(answers);
        let heads = text.split("HTTP/1.1 ").skip(1);
        heads.map(|head| head.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn answers_do_not_depend_on_how_the_bytes_come() {
        let fields = "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n";
        let act = format!("POST /act HTTP/1.1\r\n{fields}Content-Length: 5\r\n\r\nhello");
        let page = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let large = "POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 51\r\n\r\n";
        let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(200));
        // The fault is after the part that is too long.
        let long_and_wrong = format!("GET / HTTP/1.1\r\nX: {}\r\nY: \0\r\n\r\n", "x".repeat(200));
        for (text, expected) in [
            (format!("{page}{act}{page}"), vec![200, 200, 200]),
            (
                format!("{page}GET /none HTTP/1.1\r\nHost: evil.example\r\n\r\n{page}"),
                vec![200, 421, 200],
            ),
            (format!("{page}{large}{page}"), vec![200, 413]),
            (format!("{page}{long}{page}"), vec![200, 431]),
            (format!("{page}{long_and_wrong}{page}"), vec![200, 431]),
            (format!("{page}nonsense\r\n\r\n{page}"), vec![200, 400]),
            ("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n".repeat(2), vec![200]),
            (page[..20].to_owned(), vec![]),
        ] {
            let whole = site().answers(&[text.as_bytes()]);
            assert_eq!(statuses(&whole), expected, "{text}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(site().answers(&bytes), whole, "{text}");
        }
    }
}
