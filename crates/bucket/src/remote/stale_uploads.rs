//! Multipart uploads that an earlier mount left: their notes identify them, and they are aborted.
//!
//! A note with an upload's id is certain. If a mount ended between the request and its answer, only
//! the address and the time are known. The store does not report the metadata of an upload, so
//! there is no mark to compare. An upload at the address is ours if all of this holds:
//! - It was initiated while our request waited for its answer, by the store's clock.
//! - It has no part: only a client with the id can send one.
//! - There are no more such uploads than notes. Otherwise some belong to other clients, and all
//!   stay; uploads without parts cost nothing.
//!
//! The library lists and aborts only uploads that it began. So these requests are made here, and
//! signed with its signer.

use super::credentials::Credentials;
use super::errors::text_of;
use super::{RemoteBucket, Shared};
use crate::journal::UploadLog;
use crate::{BucketError, Result};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use opendal::Buffer;
use opendal::raw::{Timestamp, percent_decode_path, percent_encode_path};
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::{Context, OsEnv, Signer};
use std::collections::HashMap;
use std::str::FromStr as _;

/// By how many seconds the clocks of the note and of the store may differ.
const CLOCKS_DIFFER: u64 = 10;
/// How many pages of 1,000 uploads are read.
const PAGES_MAX: usize = 100;

/// Signs requests that the library cannot make.
pub(super) fn signer(region: &str, credentials: Credentials) -> Signer<Credential> {
    Signer::new(Context::new(), credentials, RequestSigner::new("s3", region))
}

/// Splits an address into the bucket's, with a slash at its end, and the key.
fn split<'a>(address: &'a str, bucket: &str) -> Option<(&'a str, String)> {
    let (scheme, rest) = address.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    // Either the host or the path names the bucket.
    let is_in_host = host.starts_with(&format!("{bucket}."));
    let in_path = path.strip_prefix(bucket).and_then(|rest| rest.strip_prefix('/'));
    let key = if is_in_host { path } else { in_path? };
    let base = scheme.len() + 3 + host.len() + 1 + (path.len() - key.len());
    Some((&address[..base], percent_decode_path(key)))
}

impl Shared {
    /// The error for an answer, with the store's code.
    fn said(&self, key: &str, status: StatusCode, text: &str) -> BucketError {
        let message = text_of(text, "Code").unwrap_or_else(|| status.to_string());
        self.proxy.named_in(BucketError::Failed { key: key.to_owned(), message })
    }

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

    /// Aborts an upload. Whether it is gone.
    fn abort_by_id(&self, address: &str, id: &str) -> Result<bool> {
        let target = format!("{address}?uploadId={}", percent_encode_path(id));
        let (status, _) = self.wait(address, self.ask(Method::DELETE, &target))?;
        Ok(status.is_success() || status == StatusCode::NOT_FOUND)
    }

    /// All uploads in progress whose keys have this prefix, as elements of the listing.
    fn under_way(&self, base: &str, key: &str) -> Result<Vec<String>> {
        let failed = |message: String| BucketError::Failed { key: key.to_owned(), message };
        let first = format!("{base}?uploads&prefix={}", percent_encode_path(key));
        let (mut listing, mut found) = (first.clone(), Vec::new());
        for _ in 0..PAGES_MAX {
            let (status, body) = self.wait(key, self.ask(Method::GET, &listing))?;
            let text = String::from_utf8_lossy(&body);
            if !status.is_success() {
                return Err(self.said(key, status, &text));
            }
            found.extend(text.split("<Upload>").skip(1).map(str::to_owned));
            if text_of(&text, "IsTruncated").as_deref() != Some("true") {
                return Ok(found);
            }
            let marker = |name: &str| {
                let marker = text_of(&text, name).filter(|marker| !marker.is_empty());
                let marker = marker.ok_or_else(|| failed(format!("a listing without {name}")))?;
                Ok::<_, BucketError>(percent_encode_path(&marker))
            };
            let (key, id) = (marker("NextKeyMarker")?, marker("NextUploadIdMarker")?);
            listing = format!("{first}&key-marker={key}&upload-id-marker={id}");
        }
        Err(failed(format!(
            "over {PAGES_MAX} pages of uploads: check them with the store's own tools"
        )))
    }

    /// The ids of uploads at an address that have no part and were initiated when ours was.
    fn nameless(&self, address: &str, began: u64) -> Result<Vec<String>> {
        let Some((base, key)) = split(address, &self.identity.bucket) else {
            return Ok(Vec::new());
        };
        let until = began + self.timeout.as_secs() + CLOCKS_DIFFER;
        let may_be_ours = began.saturating_sub(CLOCKS_DIFFER)..=until;
        let mut found = Vec::new();
        for upload in self.under_way(base, &key)? {
            let begun =
                text_of(&upload, "Initiated").and_then(|time| Timestamp::from_str(&time).ok());
            let second = begun.and_then(|time| u64::try_from(time.into_inner().as_second()).ok());
            let is_then = second.is_some_and(|second| may_be_ours.contains(&second));
            let is_here = text_of(&upload, "Key").is_some_and(|found| found == key);
            let Some(id) = text_of(&upload, "UploadId").filter(|_| is_here && is_then) else {
                continue;
            };
            let parts = format!("{address}?uploadId={}", percent_encode_path(&id));
            let (status, body) = self.wait(address, self.ask(Method::GET, &parts))?;
            let text = String::from_utf8_lossy(&body);
            match status {
                // It has ended in the meantime.
                StatusCode::NOT_FOUND => {}
                _ if !status.is_success() => return Err(self.said(&key, status, &text)),
                _ if text.contains("<Part>") => {}
                _ => found.push(id),
            }
        }
        Ok(found)
    }

    /// Aborts an upload. `noted` uploads without an id have the same address.
    fn abort_stale(&self, upload: &UploadLog, noted: usize) -> Result<()> {
        let address = upload.address();
        let failed = |message: String| BucketError::Failed { key: String::new(), message };
        let ids = match upload.id() {
            Some(id) => vec![id.to_owned()],
            None => self.nameless(address, upload.began())?,
        };
        if upload.id().is_none() && ids.len() > noted {
            let found = ids.len();
            return Err(failed(format!(
                "{found} uploads began at the time of ours, and ours cannot be identified: \
                 abort unneeded ones with the store's own tools"
            )));
        }
        for id in ids {
            if !self.abort_by_id(address, &id)? {
                return Err(failed(format!("the store does not abort {id}")));
            }
        }
        Ok(())
    }
}

impl RemoteBucket {
    /// Aborts multipart uploads that an earlier mount left. Returns how many are gone. The next
    /// mount retries the others.
    pub fn abort_stale(&self, uploads: Vec<UploadLog>) -> usize {
        let mut noted: HashMap<String, usize> = HashMap::new();
        for upload in uploads.iter().filter(|upload| upload.id().is_none()) {
            *noted.entry(upload.address().to_owned()).or_default() += 1;
        }
        let mut gone = 0;
        for upload in uploads {
            let noted = noted.get(upload.address()).copied().unwrap_or(0);
            match self.shared.abort_stale(&upload, noted) {
                Ok(()) => match upload.end() {
                    Ok(()) => gone += 1,
                    Err(error) => log::warn!("{error}"),
                },
                Err(error) => log::warn!("cannot abort an upload to {}: {error}", upload.address()),
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_or_the_path_of_an_address_names_the_bucket() {
        let path = ("http://h:1/b/", "d/a b".to_owned());
        assert_eq!(split("http://h:1/b/d/a%20b", "b"), Some(path));
        let host = ("https://b.s3.example/", "d/a".to_owned());
        assert_eq!(split("https://b.s3.example/d/a", "b"), Some(host));
        assert_eq!(split("http://h:1/other/d", "b"), None);
        assert_eq!(split("nonsense", "b"), None);
    }

    #[test]
    fn elements_of_a_listing_are_unescaped() {
        let text = "<Upload><Key>a &amp; b</Key><UploadId>x</UploadId></Upload>";
        assert_eq!(text_of(text, "Key").as_deref(), Some("a & b"));
        assert_eq!(text_of(text, "UploadId").as_deref(), Some("x"));
        assert_eq!(text_of(text, "Initiated"), None);
    }
}
