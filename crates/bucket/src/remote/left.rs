//! Uploads in parts that an earlier mount has left behind: found by their notes, and thrown away.
//!
//! Of one whose id was noted nothing is in doubt. Where a mount ended between the request and its
//! answer, only the address is known: what the store lists under it is ours if it was begun since
//! and has no part, because nobody sends a part of an upload whose id he does not know.
//!
//! The library speaks of uploads only to whoever began them, so these requests are made here and
//! signed with its signer.

use super::credentials::Credentials;
use super::transport::text_of;
use super::{RemoteBucket, Shared};
use crate::journal::UploadLog;
use crate::{BucketError, Result};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use opendal::Buffer;
use opendal::raw::{Timestamp, percent_decode_path, percent_encode_path};
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::{Context, OsEnv, Signer};
use std::str::FromStr as _;

/// By how many seconds the clock of a store may be behind ours.
const CLOCKS_DIFFER: u64 = 300;

/// Signs what the library has no words for.
pub(super) fn signer(region: &str, profile: Option<&str>) -> Signer<Credential> {
    Signer::new(Context::new(), Credentials::new(profile), RequestSigner::new("s3", region))
}

/// The parts of an address: the bucket's, with a slash at its end, and the key.
fn split<'a>(address: &'a str, bucket: &str) -> Option<(&'a str, String)> {
    let (scheme, rest) = address.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    // Either the host names the bucket, or the path does.
    let is_in_host = host.starts_with(&format!("{bucket}."));
    let in_path = path.strip_prefix(bucket).and_then(|rest| rest.strip_prefix('/'));
    let key = if is_in_host { path } else { in_path? };
    let base = scheme.len() + 3 + host.len() + 1 + (path.len() - key.len());
    Some((&address[..base], percent_decode_path(key)))
}

impl Shared {
    async fn ask(&self, method: Method, address: &str) -> opendal::Result<(StatusCode, Bytes)> {
        let unexpected = |error: String| opendal::Error::new(opendal::ErrorKind::Unexpected, error);
        let request = Request::builder().method(method).uri(address).body(Buffer::new());
        let (mut parts, body) = request.map_err(|e| unexpected(e.to_string()))?.into_parts();
        if let Some(signer) = &self.signer {
            let context = Context::new()
                .with_file_read(reqsign_file_read_tokio::TokioFileRead)
                .with_http_send(self.transport.clone())
                .with_env(OsEnv);
            let signed = signer.clone().with_context(context).sign(&mut parts, None).await;
            signed.map_err(|error| unexpected(format!("loading signing credential: {error}")))?;
            parts.headers.remove(http::header::HOST);
        }
        let response = self.transport.send(Request::from_parts(parts, body)).await?;
        Ok((response.status(), response.into_body().to_bytes()))
    }

    /// Throws an upload away, and tells whether there is none any more.
    fn abort_by_id(&self, address: &str, id: &str) -> Result<bool> {
        let target = format!("{address}?uploadId={}", percent_encode_path(id));
        let (status, _) = self.wait(address, self.ask(Method::DELETE, &target))?;
        Ok(status.is_success() || status == StatusCode::NOT_FOUND)
    }

    /// The ids of uploads at an address that nobody but us can have begun.
    fn nameless(&self, address: &str, began: u64) -> Result<Vec<String>> {
        let Some((base, key)) = split(address, &self.identity.bucket) else {
            return Ok(Vec::new());
        };
        let listing = format!("{base}?uploads&prefix={}", percent_encode_path(&key));
        let (status, body) = self.wait(address, self.ask(Method::GET, &listing))?;
        let text = String::from_utf8_lossy(&body);
        if !status.is_success() {
            let message = text_of(&text, "Code").unwrap_or_else(|| status.to_string());
            return Err(BucketError::Failed { key, message });
        }
        let mut found = Vec::new();
        for upload in text.split("<Upload>").skip(1) {
            let since =
                text_of(upload, "Initiated").and_then(|time| Timestamp::from_str(&time).ok());
            let is_since = since.is_some_and(|time| {
                let second = time.into_inner().as_second();
                u64::try_from(second).is_ok_and(|second| second + CLOCKS_DIFFER >= began)
            });
            let is_here = text_of(upload, "Key").is_some_and(|found| found == key);
            let Some(id) = text_of(upload, "UploadId").filter(|_| is_here && is_since) else {
                continue;
            };
            let parts = format!("{address}?uploadId={}", percent_encode_path(&id));
            let (status, body) = self.wait(address, self.ask(Method::GET, &parts))?;
            if status.is_success() && !String::from_utf8_lossy(&body).contains("<Part>") {
                found.push(id);
            }
        }
        Ok(found)
    }

    fn throw_away(&self, upload: &UploadLog) -> Result<bool> {
        if self.is_demo {
            // It was a store of a process that has ended, and forgot them with it.
            return Ok(true);
        }
        let address = upload.address();
        let ids = match upload.id() {
            Some(id) => vec![id.to_owned()],
            None => self.nameless(address, upload.began())?,
        };
        let mut are_gone = true;
        for id in ids {
            are_gone &= self.abort_by_id(address, &id)?;
        }
        Ok(are_gone)
    }
}

impl RemoteBucket {
    /// Throws away uploads in parts that an earlier mount has left behind, and tells how many there
    /// were. Those of which the store does not say that they are gone are tried by the next mount.
    pub fn throw_away(&self, uploads: Vec<UploadLog>) -> usize {
        let mut gone = 0;
        for upload in uploads {
            match self.shared.throw_away(&upload) {
                Ok(true) => match upload.end() {
                    Ok(()) => gone += 1,
                    Err(error) => log::warn!("{error}"),
                },
                Ok(false) => log::warn!("an upload to {} stays", upload.address()),
                Err(error) => log::warn!("an upload to {} stays: {error}", upload.address()),
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_bucket_in_the_host_or_in_the_path() {
        let path = ("http://h:1/b/", "d/a b".to_owned());
        assert_eq!(split("http://h:1/b/d/a%20b", "b"), Some(path));
        let host = ("https://b.s3.example/", "d/a".to_owned());
        assert_eq!(split("https://b.s3.example/d/a", "b"), Some(host));
        assert_eq!(split("http://h:1/other/d", "b"), None);
        assert_eq!(split("nonsense", "b"), None);
    }

    #[test]
    fn a_listing_is_read_as_it_is_written() {
        let text = "<Upload><Key>a &amp; b</Key><UploadId>x</UploadId></Upload>";
        assert_eq!(text_of(text, "Key").as_deref(), Some("a & b"));
        assert_eq!(text_of(text, "UploadId").as_deref(), Some("x"));
        assert_eq!(text_of(text, "Initiated"), None);
    }
}
