//! Limits of answers: how long to wait for them, and how much to read.
//!
//! Answers other than objects are read whole, so their length is bounded. Of an error, or of the
//! answer to a write, only the start is read ([`ANSWER_BYTES_MAX`]). Longer listings or credentials
//! are an error. The connection of an unread rest is dropped.

use crate::http_clients::Clients;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use opendal::raw::oio::ReadStream as _;
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;
use std::future::Future;
use std::time::Duration;

/// How much is read of an error, of the answer to a write, of credentials, and of the output of a
/// credentials program, in bytes.
pub(super) const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The longest page of a listing, in bytes: more than 1,000 keys of 1,024 bytes need.
pub(super) const PAGE_BYTES_MAX: u64 = 32 << 20;
/// The prefix of the error of a request that timed out.
pub(super) const LATE: &str = "no answer in time";

pub(super) fn late(allowed: Duration) -> Error {
    Error::new(ErrorKind::Unexpected, format!("{LATE}: nothing for {} s", allowed.as_secs()))
}

/// Waits for a request until the timeout.
pub(super) async fn in_time<T>(
    allowed: Duration,
    request: impl Future<Output = opendal::Result<T>>,
) -> opendal::Result<T> {
    tokio::time::timeout(allowed, request).await.unwrap_or_else(|_| Err(late(allowed)))
}

/// Reads the start of an answer that is not an object. The rest stays unread, and the connection is
/// dropped.
pub(super) async fn read_start(body: &mut HttpBody) -> opendal::Result<Bytes> {
    let mut start = BytesMut::new();
    while (start.len() as u64) < ANSWER_BYTES_MAX {
        let piece = body.read().await?.to_bytes();
        if piece.is_empty() {
            break;
        }
        start.extend_from_slice(&piece);
    }
    Ok(start.freeze())
}

/// The body, which fails once it exceeds a length.
pub(super) fn limited(body: HttpBody, most: u64) -> HttpBody {
    body.map_inner(|stream| {
        let mut length = 0;
        Box::new(stream.map(move |piece| {
            let piece = piece?;
            length += piece.len() as u64;
            let message = || format!("the answer is longer than {} KiB", most >> 10);
            let is_short = length <= most;
            is_short.then_some(piece).ok_or_else(|| Error::new(ErrorKind::Unexpected, message()))
        }))
    })
}

pub(super) fn whole_body(bytes: Bytes) -> HttpBody {
    let length = bytes.len() as u64;
    HttpBody::new(stream::iter([Ok(Buffer::from(bytes))]), Some(length))
}

/// The transport to services with credentials. Requests there are not billed, so not counted.
#[derive(Clone)]
pub(super) struct Tokens {
    clients: Clients,
    timeout: Duration,
}

impl Tokens {
    pub(super) fn new(clients: Clients, timeout: Duration) -> Self {
        Self { clients, timeout }
    }
}

impl HttpTransport for Tokens {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let client = self.clients.of(request.uri().host()).clone();
        let answer = in_time(self.timeout, ReqwestTransport::new(client).fetch(request)).await?;
        let (parts, body) = answer.into_parts();
        Ok(Response::from_parts(parts, limited(body, ANSWER_BYTES_MAX)))
    }
}
