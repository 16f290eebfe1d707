//! An answer, and the header fields that restrict what a browser does with it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The rights of a page of the server: only files of the server itself. No inline script or style,
/// nothing from elsewhere, no frame around it.
pub const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; frame-src 'self'; manifest-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Answers from this size on are compressed if the peer can take it. Smaller ones go out faster as
/// they are: the peer is near.
const COMPRESSED_BYTES_MIN: usize = 32 << 10;

/// Fields of every answer.
const FIELDS: &str = "X-Content-Type-Options: nosniff\r\n\
     Referrer-Policy: no-referrer\r\n\
     Cross-Origin-Resource-Policy: same-origin\r\n\
     Cross-Origin-Opener-Policy: same-origin\r\n\
     Permissions-Policy: camera=(), geolocation=(), microphone=()\r\n";

/// A file that is compiled in.
#[derive(Debug)]
pub struct Asset {
    /// Its path on the server.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
    compressed: OnceLock<Vec<u8>>,
}

impl Asset {
    /// A file.
    pub const fn new(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, media_type, bytes, compressed: OnceLock::new() }
    }

    /// Its bytes as gzip has them, made once.
    pub fn compressed(&self) -> &[u8] {
        self.compressed.get_or_init(|| gzip(self.bytes, Compression::best()))
    }
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    status: u16,
    media_type: &'static str,
    policy: &'static str,
    fields: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Bytes(Cow<'static, [u8]>),
    Asset(&'static Asset),
}

impl Response {
    /// Bytes of a media type.
    pub fn new(media_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            media_type,
            policy: PAGE_POLICY,
            fields: Vec::new(),
            body: Body::Bytes(Cow::Owned(body.into())),
        }
    }

    /// A file that is compiled in.
    pub fn asset(asset: &'static Asset) -> Self {
        Self { body: Body::Asset(asset), ..Self::new(asset.media_type, Vec::new()) }
    }

    /// JSON.
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self::new("application/json", text)
    }

    /// A refusal or failure, in words for people.
    pub fn error(status: u16, text: &str) -> Self {
        let body = format!("{text}\n");
        Self { status, ..Self::new("text/plain; charset=utf-8", body) }
    }

    /// Another content security policy than [`PAGE_POLICY`].
    #[must_use]
    pub fn policy(mut self, policy: &'static str) -> Self {
        self.policy = policy;
        self
    }

    /// Offers the body as a file to be kept. Characters that a name does not need are replaced.
    #[must_use]
    pub fn download(self, name: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        self.header("Content-Disposition", format!("attachment; filename=\"{name}\""))
    }

    /// Another header field. Characters that would end the line are replaced.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into().replace(|c: char| c.is_control(), " ");
        self.fields.push((name, value));
        self
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body as it is before compression.
    pub fn body(&self) -> &[u8] {
        match &self.body {
            Body::Bytes(bytes) => bytes,
            Body::Asset(asset) => asset.bytes,
        }
    }

    /// The bytes of the answer.
    pub(super) fn message(&self, gzip_taken: bool, with_body: bool, keep: bool) -> Vec<u8> {
        let made;
        let (body, encoded): (&[u8], bool) = match &self.body {
            Body::Asset(asset) if gzip_taken => (asset.compressed(), true),
            Body::Asset(asset) => (asset.bytes, false),
            Body::Bytes(bytes) if gzip_taken && self.shrinks(bytes.len()) => {
                made = gzip(bytes, Compression::fast());
                (&made, true)
            }
            Body::Bytes(bytes) => (bytes, false),
        };
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nVary: Accept-Encoding\r\n\
             Content-Security-Policy: {}\r\n{FIELDS}Connection: {}\r\n",
            self.status,
            reason(self.status),
            self.media_type,
            body.len(),
            self.policy,
            if keep { "keep-alive" } else { "close" },
        );
        // An asset may be kept as long as the server says that it is the same; nothing else may.
        let kept = if matches!(self.body, Body::Asset(_)) { "no-cache" } else { "no-store" };
        let _ = write!(head, "Cache-Control: {kept}\r\n");
        if encoded {
            head.push_str("Content-Encoding: gzip\r\n");
        }
        for (name, value) in &self.fields {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        let mut message = head.into_bytes();
        if with_body {
            message.extend_from_slice(body);
        }
        message
    }

    fn shrinks(&self, bytes: usize) -> bool {
        let compressible = ["text/", "application/json", "image/svg", "application/openmetrics"];
        bytes >= COMPRESSED_BYTES_MIN
            && compressible.iter().any(|kind| self.media_type.starts_with(kind))
    }
}

fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_ends_a_header_line() {
        let response = Response::json("{}")
            .header("X-Name", "a\r\nSet-Cookie: b")
            .download("../<script>\"\r\n.svg");
        let text = String::from_utf8(response.message(false, true, false)).unwrap();
        assert!(!text.contains("\nSet-Cookie"), "{text}");
        assert!(text.contains("filename=\"..__script____.svg\"\r\n"), "{text}");
    }
}
