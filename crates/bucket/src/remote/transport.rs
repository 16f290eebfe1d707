//! The transport of requests: it counts them, enforces timeouts, and records multipart uploads.
//!
//! # Timeouts A request times out when no bytes move, not when it takes long: a large part over a
//! slow link continues while the link accepts bytes. Copies of ranges and the completion of an
//! upload move no visible bytes, so they have their own timeout.
//!
//! # Notes
//! A multipart upload is recorded in the journal before it begins, with its id once that is known.
//! The note is deleted when the store has ended the upload. So the next mount finds the uploads
//! that a crash left. The time in a note follows the store's clock, taken from its answers, because
//! the store reports the start of an upload by that clock.

use super::checksums::Checksums;
use super::credential_renewal::RenewedCredentials;
use super::errors::{is_about_rate, not_final, text_of};
use super::limits::{
    ANSWER_BYTES_MAX, PAGE_BYTES_MAX, Tokens, in_time, late, limited, read_start, whole_body,
};
use crate::http_clients::Clients;
use crate::journal::{Journal, UploadLog};
use crate::object_metadata::{BLOB_TYPE, LEASE};
use crate::request_counters::{Counters, Kind};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, Response};
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

/// How many bytes of a body a connection gets at a time; each such piece counts as progress.
const PIECE_BYTES: usize = 64 << 10;
/// How many bytes a connection may buffer unsent, and the slowest link that they wait for.
const BUFFERED_BYTES: u64 = 4 << 20;
const SLOWEST_BYTES_PER_SECOND: u64 = 32 << 10;
/// How long a store may take to copy a range or to complete an upload.
const STORE_WORKS: Duration = Duration::from_secs(600);
/// The notes of multipart uploads in progress.
#[derive(Default)]
pub(super) struct UploadNotes {
    journal: OnceLock<Journal>,
    open: Mutex<HashMap<String, UploadLog>>,
    /// How many seconds the store's clock is ahead of ours.
    ahead: AtomicI64,
}

impl UploadNotes {
    /// Records uploads in this journal from now on.
    pub(super) fn keep_in(&self, journal: &Journal) {
        // The first one holds: a bucket belongs to one mount.
        let _ = self.journal.set(journal.clone());
    }

    fn begin(&self, address: &str) -> Option<UploadLog> {
        let now = seconds(SystemTime::now()).saturating_add_signed(self.ahead.load(Relaxed));
        let noted = self.journal.get()?.note_upload(address, now);
        // Only uploads can empty a full journal, so this must not stop one.
        noted.inspect_err(|error| log::warn!("cannot record an upload: {error}")).ok()
    }

    /// Sets the offset of the store's clock from an answer.
    fn set_clock(&self, headers: &HeaderMap) {
        let date = headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else { return };
        let ahead =
            seconds(date).cast_signed().wrapping_sub(seconds(SystemTime::now()).cast_signed());
        self.ahead.store(ahead, Relaxed);
    }

    fn named(&self, mut note: UploadLog, id: String) {
        if let Err(error) = note.named(&id) {
            log::warn!("cannot record an upload: {error}");
        }
        self.open.lock().insert(id, note);
    }

    fn ended(&self, id: &str) {
        let note = self.open.lock().remove(id);
        if let Some(note) = note {
            forget(note);
        }
    }
}

/// Seconds since the epoch.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn forget(note: UploadLog) {
    if let Err(error) = note.end() {
        // The next mount finds out that the upload does not exist.
        log::warn!("cannot delete the note of an upload: {error}");
    }
}

/// The transport to a store.
pub(super) struct Transport {
    clients: Clients,
    tokens: Tokens,
    store: StoreAddress,
    counters: Arc<Counters>,
    notes: Arc<UploadNotes>,
    checksums: Arc<Checksums>,
    /// `None` if requests are unsigned, or signed by another scheme.
    renewed: Option<Arc<RenewedCredentials>>,
    timeout: Duration,
}

/// The role of a request in a multipart upload.
enum Step {
    Begins,
    /// Completes or aborts the upload.
    Ends(String),
    Other,
}

impl Step {
    fn of<T>(request: &Request<T>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let mut fields = query.split('&').map(|field| field.split_once('=').unwrap_or((field, "")));
        match *request.method() {
            Method::POST if fields.clone().any(|(name, _)| name == "uploads") => Self::Begins,
            Method::POST | Method::DELETE => fields
                .find(|(name, _)| *name == "uploadId")
                .map_or(Self::Other, |(_, id)| Self::Ends(opendal::raw::percent_decode_path(id))),
            _ => Self::Other,
        }
    }
}

/// Whether the store works on the request without any visible progress.
fn is_work(request: &Request<Buffer>) -> bool {
    let is_end = *request.method() == Method::POST && matches!(Step::of(request), Step::Ends(_));
    is_end || request.headers().contains_key("x-amz-copy-source")
}

/// The host of a store, and the bucket, whose name may precede the host.
pub(super) struct StoreAddress {
    pub(super) host: Option<String>,
    pub(super) bucket: String,
}

impl StoreAddress {
    /// Whether a host is the store's. A bucket or an account may have the name of any service.
    fn is_at(&self, host: &str) -> bool {
        let is_bucket =
            || host.strip_prefix(&*self.bucket).is_some_and(|rest| rest.starts_with('.'));
        self.host.as_deref() == Some(host) || is_bucket()
    }
}

/// Whether a host is a service with credentials: the address of an instance or container, or a
/// token service. Requests there are not billed.
fn is_for_credentials(host: &str) -> bool {
    const SERVICES: [&str; 8] = [
        "169.254.",
        "iamcredentials.",
        "login.",
        "metadata.google.",
        "oauth2.",
        "oidc.",
        "portal.sso.",
        "sts.",
    ];
    SERVICES.iter().any(|service| host.starts_with(service))
}

impl Transport {
    pub(super) fn new(
        counters: Arc<Counters>,
        (notes, checksums): (Arc<UploadNotes>, Arc<Checksums>),
        renewed: Option<Arc<RenewedCredentials>>,
        (clients, store): (Clients, StoreAddress),
        timeout: Duration,
    ) -> Self {
        let tokens = Tokens::new(clients.clone(), timeout);
        Self { clients, tokens, store, counters, notes, checksums, renewed, timeout }
    }

    async fn send(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        if request.body().len() > PIECE_BYTES {
            return self.send_in_pieces(request).await;
        }
        let allowed = if is_work(&request) { STORE_WORKS.max(self.timeout) } else { self.timeout };
        in_time(allowed, self.client(&request).fetch(request)).await
    }

    fn client(&self, request: &Request<Buffer>) -> ReqwestTransport {
        ReqwestTransport::new(self.clients.of(request.uri().host()).clone())
    }

    /// Sends bytes of an object, with their checksum if the store requires it.
    async fn send_summed(
        &self,
        request: Request<Buffer>,
        kind: Kind,
    ) -> opendal::Result<Response<HttpBody>> {
        if !self.checksums.are_required() {
            let (parts, mut body) = self.send(request.clone()).await?.into_parts();
            let bytes = in_time(self.timeout, read_start(&mut body)).await?;
            if !self.checksums.learn_requirement(parts.status, &String::from_utf8_lossy(&bytes)) {
                return Ok(Response::from_parts(parts, whole_body(bytes)));
            }
            self.counters.sent(kind, request.body().len() as u64);
        }
        let summed = self.checksums.summed(&request).await;
        self.send(summed.unwrap_or(request)).await
    }

    /// Sends a request, with the header for a checksum if possible.
    async fn send_asking(
        &self,
        request: Request<Buffer>,
        kind: Kind,
    ) -> opendal::Result<Response<HttpBody>> {
        if self.checksums.may_be_required(&request) {
            return self.send_summed(request, kind).await;
        }
        let Some(asking) = self.checksums.asking(&request).await else {
            return self.send(request).await;
        };
        let response = self.send(asking).await?;
        if !Checksums::may_be_at_fault(response.status()) {
            self.checksums.keep(response.headers());
            return Ok(response);
        }
        self.counters.sent(kind, 0);
        let response = self.send(request).await?;
        if response.status().is_success() {
            self.checksums.are_refused();
        }
        Ok(response)
    }

    /// Sends a request, and again with other credentials if the first ones are rejected.
    async fn send_with_good_credentials(
        &self,
        request: Request<Buffer>,
        kind: Kind,
    ) -> opendal::Result<Response<HttpBody>> {
        let Some(renewed) = &self.renewed else { return self.send_asking(request, kind).await };
        let request = renewed.as_announced(request).await;
        let response = self.send_asking(request.clone(), kind).await?;
        if !RenewedCredentials::may_help(response.status()) {
            return Ok(response);
        }
        match renewed.sign(request).await {
            Some(request) => {
                self.counters.sent(kind, request.body().len() as u64);
                self.send_asking(request, kind).await
            }
            None => Ok(response),
        }
    }

    /// Sends a large body. Times out when no more bytes are accepted.
    async fn send_in_pieces(
        &self,
        request: Request<Buffer>,
    ) -> opendal::Result<Response<HttpBody>> {
        let (parts, body) = request.into_parts();
        let taken = Arc::new(AtomicU64::new(0));
        let left = body.to_bytes();
        let whole = left.len() as u64;
        let sending = self
            .clients
            .of(parts.uri.host())
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .version(parts.version)
            .body(reqwest::Body::wrap(Pieces { left, taken: Arc::clone(&taken) }))
            .send();
        let mut answer = pin!(async {
            let mut response = sending.await?;
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            let mut said = BytesMut::new();
            while (said.len() as u64) < ANSWER_BYTES_MAX
                && let Some(piece) = response.chunk().await?
            {
                said.extend_from_slice(&piece);
            }
            Ok::<_, reqwest::Error>((status, headers, said.freeze()))
        });
        let began = Instant::now();
        let (status, headers, bytes) = loop {
            let before = taken.load(Relaxed);
            let allowed = if before < whole {
                self.timeout
            } else {
                let buffered = whole.min(BUFFERED_BYTES) / SLOWEST_BYTES_PER_SECOND;
                self.timeout.max(began.elapsed()) + Duration::from_secs(buffered)
            };
            match tokio::time::timeout(allowed, &mut answer).await {
                Ok(answer) => break answer.map_err(broken)?,
                Err(_) if taken.load(Relaxed) > before => {}
                Err(_) => return Err(late(allowed)),
            }
        };
        let mut response = Response::new(whole_body(bytes));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response.extensions_mut().insert(parts.uri);
        Ok(response)
    }

    /// Records the outcome of a step of an upload.
    async fn record_step(
        &self,
        step: Step,
        note: Option<UploadLog>,
        response: Response<HttpBody>,
    ) -> opendal::Result<Response<HttpBody>> {
        let (parts, mut body) = response.into_parts();
        let bytes = in_time(STORE_WORKS.max(self.timeout), read_start(&mut body)).await?;
        let text = String::from_utf8_lossy(&bytes);
        // A store that works for long sends status 200 first, and the result in the body.
        let is_done = parts.status.is_success() && !text.contains("<Error>");
        match (step, note) {
            (Step::Begins, Some(note)) => match text_of(&text, "UploadId") {
                Some(id) if is_done => self.notes.named(note, id),
                _ if parts.status.is_client_error() => forget(note),
                // It may have begun: the next mount checks.
                _ => {}
            },
            (Step::Ends(id), _) if is_done || parts.status.as_u16() == 404 => self.notes.ended(&id),
            _ => {}
        }
        Ok(Response::from_parts(parts, whole_body(bytes)))
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let is_for_tokens = |host: &str| is_for_credentials(host) && !self.store.is_at(host);
        if request.uri().host().is_some_and(is_for_tokens) {
            return self.tokens.fetch(request).await;
        }
        let (method, address) = (request.method().as_str(), request.uri());
        let kind = Kind::of(method, address.path(), address.query());
        // A listing of uploads is a listing, too.
        let is_of_uploads = address.query().is_some_and(|query| query.starts_with("upload"));
        let is_object = kind == Kind::Get && !is_of_uploads;
        self.counters.sent(kind, request.body().len() as u64);
        let step = Step::of(&request);
        let note = match step {
            Step::Begins => {
                let address = request.uri().to_string();
                self.notes.begin(address.split('?').next().unwrap_or_default())
            }
            _ => None,
        };
        let (method, address) = (request.method().clone(), request.uri().clone());
        let response = self.send_with_good_credentials(request, kind).await;
        let failed = response.as_ref().map_or(true, |response| {
            response.status().is_server_error() || response.status().as_u16() == 429
        });
        if failed {
            self.counters.failed();
        }
        if response.as_ref().is_ok_and(|answer| matches!(answer.status().as_u16(), 429 | 503)) {
            self.counters.throttle();
        }
        let (mut parts, body) = response?.into_parts();
        self.notes.set_clock(&parts.headers);
        pass_on_blob_headers(&mut parts.headers);
        let counters = Arc::clone(&self.counters);
        let body = body.map_inner(|stream| {
            Box::new(stream.inspect(move |piece| {
                if let Ok(piece) = piece {
                    counters.received(piece.len() as u64);
                }
            }))
        });
        let body = if is_object { body } else { limited(body, PAGE_BYTES_MAX) };
        let mut response = Response::from_parts(parts, body);
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            let (parts, mut body) = response.into_parts();
            let bytes = in_time(self.timeout, read_start(&mut body)).await?;
            let said = String::from_utf8_lossy(&bytes);
            match status.as_u16() {
                401 | 403 if is_about_rate(&said) => self.counters.throttle(),
                401 | 403 => self.counters.deny(),
                _ => {}
            }
            let asked = (&method, address.query().unwrap_or_default());
            if let Some(error) = not_final(asked, status, &said) {
                return Err(error);
            }
            response = Response::from_parts(parts, whole_body(bytes));
        }
        match step {
            Step::Other => Ok(response),
            step => self.record_step(step, note, response).await,
        }
    }
}

/// Passes Azure's headers about a blob, which the library drops, as user metadata. They cannot
/// collide with a writer's names, which have no hyphens in Azure.
fn pass_on_blob_headers(headers: &mut HeaderMap) {
    for (name, noted, plain) in [
        (BLOB_TYPE, "x-ms-meta-x-ms-blob-type", "BlockBlob"),
        (LEASE, "x-ms-meta-x-ms-lease-status", "unlocked"),
    ] {
        if let Some(value) = headers.get(name).filter(|value| *value != plain).cloned() {
            headers.insert(noted, value);
        }
    }
}

/// The error of a connection, which may be temporary.
fn broken(error: reqwest::Error) -> Error {
    let may_pass = error.is_request() || error.is_body() || error.is_decode();
    Error::new(ErrorKind::Unexpected, "send http request")
        .with_temporary(may_pass)
        .set_source(error.without_url())
}

/// A body that counts how many of its bytes were read.
struct Pieces {
    left: Bytes,
    taken: Arc<AtomicU64>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let length = self.left.len().min(PIECE_BYTES);
        if length == 0 {
            return Poll::Ready(None);
        }
        self.taken.fetch_add(length as u64, Relaxed);
        Poll::Ready(Some(Ok(http_body::Frame::data(self.left.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.left.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_named_like_a_token_service_is_a_store() {
        let store = |host: &str, bucket: &str| StoreAddress {
            host: Some(host.to_owned()),
            bucket: bucket.to_owned(),
        };
        let azure = store("login.blob.core.windows.net", "data");
        assert!(azure.is_at("login.blob.core.windows.net"));
        assert!(!azure.is_at("login.microsoftonline.com"));
        let amazon = store("s3.amazonaws.com", "sts.logs");
        assert!(amazon.is_at("sts.logs.s3.eu-west-1.amazonaws.com"));
        assert!(!amazon.is_at("sts.eu-west-1.amazonaws.com"));
        for host in ["sts.amazonaws.com", "login.microsoftonline.com", "169.254.169.254"] {
            assert!(is_for_credentials(host), "{host}");
        }
    }
}
