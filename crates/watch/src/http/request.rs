//! A request, parsed from untrusted bytes.

use std::borrow::Cow;
use std::time::Duration;

use percent_encoding::percent_decode_str;

/// Header fields of a request at most.
const FIELDS_MAX: usize = 64;
/// Pairs of a query at most.
const PAIRS_MAX: usize = 32;

/// The method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Read the head of what `Get` answers.
    Head,
    /// Do.
    Post,
}

/// A request whose head has been read.
#[derive(Debug, Clone)]
pub struct Request {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    keep: bool,
}

/// Why bytes are no request; the status that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) u16);

/// How far the head of a request is.
#[derive(Debug)]
pub(super) enum Head {
    /// More bytes are needed.
    Partial,
    /// Whole: the request without its body, the bytes that its head took, and those of its body.
    Whole(Box<Request>, usize, usize),
}

impl Request {
    /// Reads the head of a request. Any bytes may come.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Request::new(&mut fields);
        let length = match parsed.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(Head::Partial),
            Ok(httparse::Status::Complete(length)) => length,
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed(431)),
            Err(_) => return Err(Malformed(400)),
        };
        let method = match parsed.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            _ => return Err(Malformed(405)),
        };
        let target = parsed.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if !path.starts_with('/') {
            return Err(Malformed(400));
        }
        let mut kept = Vec::with_capacity(parsed.headers.len());
        for field in parsed.headers.iter() {
            // No field that is looked at here has other characters than ASCII's.
            let value = std::str::from_utf8(field.value).map_err(|_| Malformed(400))?;
            kept.push((field.name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: pairs(query)?,
            fields: kept,
            body: Vec::new(),
            keep: false,
        };
        // A field that is given twice could mean one thing to a proxy and another here.
        for name in ["host", "origin", "authorization", "content-length", "sec-fetch-site"] {
            if request.fields.iter().filter(|(field, _)| field == name).count() > 1 {
                return Err(Malformed(400));
            }
        }
        if request.field("transfer-encoding").is_some() {
            return Err(Malformed(411));
        }
        let body_bytes = match request.field("content-length") {
            None => 0,
            Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().map_err(|_| Malformed(413))?
            }
            Some(_) => return Err(Malformed(400)),
        };
        let close = request.field("connection").is_some_and(|value| {
            value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"))
        });
        request.keep = parsed.version == Some(1) && !close;
        Ok(Head::Whole(Box::new(request), length, body_bytes))
    }

    pub(super) fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    /// Whether the peer may send another request on this connection.
    pub(super) fn keeps_connection(&self) -> bool {
        self.keep
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The path, as it was sent: nothing in it is decoded.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The first value of a name in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number of seconds in the query, between two bounds.
    ///
    /// # Errors
    ///
    /// The reason, as text.
    pub fn seconds(&self, name: &str, default: u64, max: u64) -> Result<Duration, String> {
        let Some(text) = self.query(name) else { return Ok(Duration::from_secs(default)) };
        match text.parse() {
            Ok(seconds @ 1..) if seconds <= max => Ok(Duration::from_secs(seconds)),
            _ => Err(format!("{name} is a whole number from 1 to {max}")),
        }
    }

    /// A header field, by its name in small letters.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether an answer may be compressed.
    pub(super) fn takes_gzip(&self) -> bool {
        self.field("accept-encoding").is_some_and(|value| {
            value.split(',').any(|word| {
                let mut parts = word.split(';').map(str::trim);
                parts.next() == Some("gzip") && !parts.any(|part| part == "q=0")
            })
        })
    }
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Malformed> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == PAIRS_MAX {
            return Err(Malformed(414));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decoded(name)?, decoded(value)?));
    }
    Ok(pairs)
}

/// A part of a query in plain text. A percent sign without two digits is a fault of the client.
fn decoded(text: &str) -> Result<String, Malformed> {
    let is_escape = |behind: &str| {
        behind.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(Malformed(400));
    }
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().map(Cow::into_owned).map_err(|_| Malformed(400))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(text: &str) -> Result<Request, u16> {
        match Request::parse(text.as_bytes()) {
            Ok(Head::Whole(request, ..)) => Ok(*request),
            Ok(Head::Partial) => Err(0),
            Err(Malformed(status)) => Err(status),
        }
    }

    #[test]
    fn a_request_is_read() {
        let text = "GET /a/b?x=1%202&y&z=%3Cb%3E HTTP/1.1\r\nHost: localhost\r\nX-A: b \r\n\r\n";
        let request = request(text).unwrap();
        assert_eq!((request.method(), request.path()), (Method::Get, "/a/b"));
        assert_eq!(request.query("x"), Some("1 2"));
        assert_eq!(request.query("y"), Some(""));
        assert_eq!(request.query("z"), Some("<b>"));
        assert_eq!(request.query("missing"), None);
        assert_eq!(request.field("x-a"), Some("b"));
        assert!(request.keeps_connection());
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        for (text, status) in [
            ("GET http://other/ HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            ("GET /?a=%zz HTTP/1.1\r\n\r\n", 400),
            ("GET /?a=%f HTTP/1.1\r\n\r\n", 400),
            ("GET /?a=%ff HTTP/1.1\r\n\r\n", 400),
            ("PUT / HTTP/1.1\r\n\r\n", 405),
            ("nonsense\r\n\r\n", 400),
        ] {
            assert_eq!(request(text).map(|request| request.path), Err(status), "{text:?}");
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(request(&many).map(|request| request.path), Err(431));
    }

    #[test]
    fn seconds_are_bounded() {
        let request = request("GET /?a=5&b=0&c=61&d=-1&e=x HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(request.seconds("a", 10, 60), Ok(Duration::from_secs(5)));
        assert_eq!(request.seconds("none", 10, 60), Ok(Duration::from_secs(10)));
        for name in ["b", "c", "d", "e"] {
            assert!(request.seconds(name, 10, 60).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::parse(&bytes);
        }

        #[test]
        fn no_near_requests_panic(
            target in "[ -~]{0,40}",
            fields in proptest::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,20}"), 0..6),
        ) {
            let mut text = format!("GET /{target} HTTP/1.1\r\n");
            for (name, value) in fields {
                text += &format!("{name}: {value}\r\n");
            }
            let _ = Request::parse(format!("{text}\r\n").as_bytes());
        }
    }
}
