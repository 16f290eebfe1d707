//! Renewal of credentials, whose keys another program may replace in a file.
//!
//! When a store rejects credentials as expired, they are looked up again. If they have changed, the
//! request is sent again with the new ones. A request without permission is rejected in the same
//! way. So the lookup happens at most once in [`PAUSE`], and its result holds for all requests
//! until then.
//!
//! A user may announce new credentials (SIGHUP). They are looked up at once, and sign all later
//! requests. If there are none, the old ones stay.
//!
//! # Locks
//! One for rejected requests, held during the lookup: all of them wait for one answer. One for the
//! signer, a leaf.

use super::credentials::{Credentials, PAUSE, sign_again};
use crate::BucketError;
use http::{HeaderMap, Request, StatusCode};
use opendal::{Buffer, HttpTransporter};
use reqsign_aws_v4::Credential;
use reqsign_core::Signer;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// Credentials that can be looked up again.
pub(super) struct RenewedCredentials {
    sources: Credentials,
    /// The transport to services with credentials.
    http: HttpTransporter,
    /// Signs requests again, with the last credentials.
    signer: parking_lot::Mutex<Signer<Credential>>,
    /// Whether a user has announced new ones.
    is_announced: AtomicBool,
    /// The signer of the last lookup after a rejection, and its time.
    found: Mutex<Option<(Signer<Credential>, Instant)>>,
}

impl RenewedCredentials {
    pub(super) fn new(
        (signer, sources): (Signer<Credential>, Credentials),
        http: HttpTransporter,
    ) -> Self {
        let (signer, found) = (parking_lot::Mutex::new(signer), Mutex::default());
        Self { sources, http, signer, is_announced: AtomicBool::new(false), found }
    }

    /// Adds to an error why there were no credentials, if that is its cause.
    pub(super) fn explained(&self, error: BucketError) -> BucketError {
        let is_of_that = matches!(
            &error,
            BucketError::Denied { message, .. } if message.contains("signing credential")
        );
        match self.sources.why().filter(|_| is_of_that) {
            Some(why) => error.with(&format!(" ({why})")),
            None => error,
        }
    }

    /// The current signer.
    pub(super) fn signer(&self) -> Signer<Credential> {
        self.signer.lock().clone()
    }

    /// Signs the head of a request again.
    pub(super) async fn sign_parts(
        &self,
        signer: &Signer<Credential>,
        parts: &mut http::request::Parts,
    ) -> reqsign_core::Result<()> {
        sign_again(signer, &self.http, parts).await
    }

    /// A signer without cached credentials.
    fn fresh(&self) -> Signer<Credential> {
        self.signer().with_credential_provider(self.sources.fresh())
    }

    /// Whether an answer may be due to expired credentials.
    pub(super) fn may_help(status: StatusCode) -> bool {
        matches!(status.as_u16(), 400 | 401 | 403)
    }

    /// The request, signed with the credentials that a user has announced.
    pub(super) async fn as_announced(&self, request: Request<Buffer>) -> Request<Buffer> {
        if !self.is_announced.load(Relaxed) {
            return request;
        }
        let (mut parts, body) = request.into_parts();
        let before = parts.headers.clone();
        if self.sign_parts(&self.signer(), &mut parts).await.is_err() {
            parts.headers = before;
        }
        Request::from_parts(parts, body)
    }

    /// The request, signed with other credentials, if there are any.
    pub(super) async fn sign(&self, request: Request<Buffer>) -> Option<Request<Buffer>> {
        let signer = {
            let mut found = self.found.lock().await;
            match &*found {
                Some((signer, since)) if since.elapsed() < PAUSE => signer.clone(),
                _ => {
                    let signer = self.fresh();
                    *found = Some((signer.clone(), Instant::now()));
                    signer
                }
            }
        };
        let (mut parts, body) = request.into_parts();
        let before = signed_by(&parts.headers);
        self.sign_parts(&signer, &mut parts).await.ok()?;
        let is_other = signed_by(&parts.headers) != before;
        is_other.then(|| {
            *self.signer.lock() = signer;
            Request::from_parts(parts, body)
        })
    }
}

/// Looks up the credentials of a bucket again.
pub struct Renewal {
    renewed: Arc<RenewedCredentials>,
    runtime: Handle,
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal").finish_non_exhaustive()
    }
}

impl Renewal {
    pub(super) fn new(renewed: Arc<RenewedCredentials>, runtime: Handle) -> Self {
        Self { renewed, runtime }
    }

    /// Looks up credentials in their sources, and signs with the new ones from now on. May block as
    /// long as the sources take to answer.
    ///
    /// # Errors
    /// The errors of the sources, if there are no credentials. Then the old ones stay.
    pub fn look(&self) -> Result<(), String> {
        let signer = self.renewed.fresh();
        // No request is sent: signing triggers the lookup.
        let request =
            Request::get("http://localhost/").body(()).map_err(|error| error.to_string())?;
        let (mut parts, ()) = request.into_parts();
        let signed = self.runtime.block_on(async {
            self.renewed.sign_parts(&signer, &mut parts).await?;
            // The earlier result must not come back.
            *self.renewed.found.lock().await = None;
            Ok::<_, reqsign_core::Error>(())
        });
        signed.map_err(|error| self.renewed.sources.why().unwrap_or_else(|| error.to_string()))?;
        *self.renewed.signer.lock() = signer;
        self.renewed.is_announced.store(true, Relaxed);
        Ok(())
    }
}

/// The key and the token with which a request is signed.
fn signed_by(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let field = |name: &str| headers.get(name)?.to_str().ok();
    let key = field("authorization").and_then(|text| {
        let (_, rest) = text.split_once("Credential=")?;
        Some(rest.split('/').next()?.to_owned())
    });
    (key, field("x-amz-security-token").map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn signatures_differ_by_key_and_token_and_not_by_time() {
        let headers = |authorization: &'static str, token: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", HeaderValue::from_static(authorization));
            headers.insert("x-amz-security-token", HeaderValue::from_static(token));
            signed_by(&headers)
        };
        let one = headers("AWS4-HMAC-SHA256 Credential=A/2026/x/s3/aws4_request, Signature=1", "t");
        let later =
            headers("AWS4-HMAC-SHA256 Credential=A/2027/x/s3/aws4_request, Signature=2", "t");
        assert_eq!(one, later);
        assert_ne!(one, headers("AWS4-HMAC-SHA256 Credential=B/2026/x/s3/aws4_request", "t"));
        assert_ne!(one, headers("AWS4-HMAC-SHA256 Credential=A/2026/x/s3/aws4_request", "u"));
    }
}
