//! Checksums that a store reports for its objects, and those that it requires of uploads.
//!
//! # Reported S3 reports a checksum in the answer to a HEAD, or to a GET of the whole object, that
//! requests it (`x-amz-checksum-mode: ENABLED`). The open of a file makes one of these requests
//! anyway. The library cannot send the header, so it is added in the transport, and the request is
//! signed again. The checksum is remembered by ETag. If a store fails such a request, but not the
//! same one without the header, no further request has the header.
//!
//! # Required A bucket with Object Lock and a default retention rejects bodies without a checksum.
//! After the first rejection the request is sent again with `Content-MD5`, and so are all later
//! ones. Amazon also accepts a CRC. But a multipart upload would have to announce it at its start,
//! and list that of each part at its end. Copied parts have none. MD5 is a header of one request,
//! and every store with locked objects accepts it.
//!
//! # Locks
//! One, a leaf.

use super::credential_renewal::RenewedCredentials;
use crate::{Algorithm, Checksum, ETag};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use md5::{Digest as _, Md5};
use opendal::Buffer;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

const MODE: &str = "x-amz-checksum-mode";
const CONTENT_MD5: &str = "content-md5";
/// How many checksums are remembered.
const KEPT_MAX: usize = 100_000;

/// The checksums reported so far, and how to request them.
#[derive(Default)]
pub(super) struct Checksums {
    /// The signer, or `None` if requests are not signed. Unset for stores that report no checksums.
    signer: OnceLock<Option<Arc<RenewedCredentials>>>,
    is_refused: AtomicBool,
    is_required: AtomicBool,
    /// By ETag: objects of one bucket with equal strong ETags have equal bytes.
    kept: Mutex<HashMap<Box<str>, Checksum>>,
}

/// The checksum of the whole object in an answer.
fn reported(headers: &HeaderMap) -> Option<Checksum> {
    let field = |name: &str| headers.get(name)?.to_str().ok();
    if field("x-amz-checksum-type").is_some_and(|kind| kind != "FULL_OBJECT") {
        // A checksum of the parts' checksums; the lengths of the parts are unknown.
        return None;
    }
    let value = |name: &str, length: usize| {
        let bytes = BASE64_STANDARD.decode(field(name)?).ok()?;
        let is_right = bytes.len() == length;
        is_right.then(|| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    if let Some(value) = value("x-amz-checksum-crc64nvme", 8) {
        return Some(Checksum { algorithm: Algorithm::Crc64Nvme, value });
    }
    let value = value("x-amz-checksum-crc32c", 4)?;
    Some(Checksum { algorithm: Algorithm::Crc32c, value })
}

/// The request with another header, signed again; `None` if signing fails.
async fn with_field(
    request: &Request<Buffer>,
    (name, value): (&'static str, HeaderValue),
    signer: Option<&RenewedCredentials>,
) -> Option<Request<Buffer>> {
    let (mut parts, body) = request.clone().into_parts();
    parts.headers.insert(name, value);
    if let Some(signer) = signer {
        signer.sign_parts(&signer.signer(), &mut parts).await.ok()?;
    }
    Some(Request::from_parts(parts, body))
}

impl Checksums {
    /// Requests checksums from now on, with this signer.
    pub(super) fn ask_with(&self, signer: Option<Arc<RenewedCredentials>>) {
        // A bucket has one signer.
        let _ = self.signer.set(signer);
    }

    /// The request with the header for the checksum, if the answer to it can have one.
    pub(super) async fn asking(&self, request: &Request<Buffer>) -> Option<Request<Buffer>> {
        let (method, uri) = (request.method(), request.uri());
        let is_whole = *method == Method::GET
            && uri.query().is_none()
            && !request.headers().contains_key(http::header::RANGE);
        let is_for_object = (*method == Method::HEAD || is_whole) && uri.path().len() > 1;
        let signer =
            self.signer.get().filter(|_| is_for_object && !self.is_refused.load(Relaxed))?;
        with_field(request, (MODE, HeaderValue::from_static("ENABLED")), signer.as_deref()).await
    }

    /// Whether a request has a body for which the store may require a checksum.
    pub(super) fn may_be_required(&self, request: &Request<Buffer>) -> bool {
        *request.method() == Method::PUT
            && !request.headers().contains_key("x-amz-copy-source")
            && self.signer.get().is_some()
    }

    /// Whether the store has required a checksum before.
    pub(super) fn are_required(&self) -> bool {
        self.is_required.load(Relaxed)
    }

    /// Whether an answer to a body without a checksum requires one. If so, all later bodies get
    /// one.
    pub(super) fn learn_requirement(&self, status: StatusCode, said: &str) -> bool {
        let said = said.to_ascii_lowercase();
        let is_of_it = said.contains(CONTENT_MD5) || said.contains("contentmd5");
        let is_required = status == StatusCode::BAD_REQUEST && is_of_it;
        self.is_required.fetch_or(is_required, Relaxed);
        is_required
    }

    /// The request with the checksum of its body.
    pub(super) async fn summed(&self, request: &Request<Buffer>) -> Option<Request<Buffer>> {
        let mut sum = Md5::new();
        request.body().clone().for_each(|piece| sum.update(&piece));
        let value = HeaderValue::try_from(BASE64_STANDARD.encode(sum.finalize())).ok()?;
        with_field(request, (CONTENT_MD5, value), self.signer.get()?.as_deref()).await
    }

    /// Whether an answer may be due to the header for the checksum.
    pub(super) fn may_be_at_fault(status: StatusCode) -> bool {
        matches!(status.as_u16(), 400 | 401 | 403 | 405 | 501)
    }

    /// Stops requesting checksums: the same request succeeded without the header.
    pub(super) fn are_refused(&self) {
        self.is_refused.store(true, Relaxed);
    }

    /// Remembers the checksum in an answer.
    pub(super) fn keep(&self, headers: &HeaderMap) {
        let etag = headers.get(http::header::ETAG).and_then(|etag| etag.to_str().ok());
        let Some((etag, checksum)) = etag.zip(reported(headers)) else { return };
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(etag.into(), checksum);
    }

    /// The checksum of the object with this ETag.
    pub(super) fn of(&self, etag: &ETag) -> Option<Checksum> {
        self.kept.lock().get(etag.as_str()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn only_a_checksum_of_the_whole_object_is_read() {
        let crc64 = ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=");
        let crc32 = ("x-amz-checksum-crc32c", "4waSgw==");
        let full = ("x-amz-checksum-type", "FULL_OBJECT");
        let nvme = Checksum { algorithm: Algorithm::Crc64Nvme, value: 0xae8b_1486_0a79_9888 };
        let c = Checksum { algorithm: Algorithm::Crc32c, value: 0xe306_9283 };
        assert_eq!(reported(&headers(&[crc64, crc32, full])), Some(nvme));
        assert_eq!(reported(&headers(&[crc32])), Some(c));
        for fields in [
            &[crc32, ("x-amz-checksum-type", "COMPOSITE")][..],
            &[("x-amz-checksum-crc64nvme", "rosUhgp5")],
            &[("x-amz-checksum-crc32c", "?")],
            &[],
        ] {
            assert_eq!(reported(&headers(fields)), None);
        }
    }
}
