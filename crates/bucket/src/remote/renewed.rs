//! Credentials that something else renews: keys in a file that is replaced.
//!
//! A store refuses those that have ended. Then they are looked for once more, and if they are others
//! the same request is sent again with them. Who may not do something is refused with each request,
//! so that is done once in [`PAUSE`], and what was found holds for all requests in the meantime.
//!
//! # Locks
//! One, held while credentials are looked for: all who were refused wait for one answer.

use super::credentials::{Credentials, PAUSE, sign_again};
use http::{HeaderMap, Request, StatusCode};
use opendal::Buffer;
use reqsign_aws_v4::Credential;
use reqsign_core::Signer;
use std::time::Instant;
use tokio::sync::Mutex;

/// Looks for credentials anew.
pub(super) struct Renewed {
    signer: Signer<Credential>,
    profile: Option<String>,
    /// Who signs with what was found last, and since when.
    found: Mutex<Option<(Signer<Credential>, Instant)>>,
}

impl Renewed {
    pub(super) fn new(signer: Signer<Credential>, profile: Option<&str>) -> Self {
        Self { signer, profile: profile.map(str::to_owned), found: Mutex::default() }
    }

    /// Whether an answer may be because of credentials that have ended.
    pub(super) fn may_help(status: StatusCode) -> bool {
        matches!(status.as_u16(), 400 | 401 | 403)
    }

    /// The same request signed with other credentials, if there are any.
    pub(super) async fn sign(&self, request: Request<Buffer>) -> Option<Request<Buffer>> {
        let signer = {
            let mut found = self.found.lock().await;
            match &*found {
                Some((signer, since)) if since.elapsed() < PAUSE => signer.clone(),
                _ => {
                    let places = Credentials::new(self.profile.as_deref());
                    let signer = self.signer.clone().with_credential_provider(places);
                    *found = Some((signer.clone(), Instant::now()));
                    signer
                }
            }
        };
        let (mut parts, body) = request.into_parts();
        let before = signed_by(&parts.headers);
        sign_again(&signer, &mut parts).await.ok()?;
        (signed_by(&parts.headers) != before).then(|| Request::from_parts(parts, body))
    }
}

/// Which key and token a request is signed with.
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
    fn requests_are_told_apart_by_key_and_token_and_not_by_time() {
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
