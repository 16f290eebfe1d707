//! The bucket over a web server.

use super::index::{self, IndexEntry};
use super::validator::{Validator, is_the_servers};
use crate::error::in_words;
use crate::http_clients::{Proxy, is_here};
use crate::keys;
use crate::request_counters::{Counters, Kind};
use crate::{
    Bucket, BucketError, BucketIdentity, ETag, Entry, KeyRules, Listing, Object, Pages, Requests,
    Result,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{DATE, HeaderValue, IF_MATCH, RANGE};
use http::{Method, StatusCode};
use ogive_origin::Time;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Response, redirect};
use std::future::Future;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Runtime;
use url::Url;

/// The longest listing, in bytes.
const LISTING_BYTES_MAX: usize = 32 << 20;
/// How many objects are requested at once, if a listing has only names.
const HEADS_AT_ONCE: usize = 16;
/// How often a request is repeated, and the first pause.
const RETRIES: u32 = 4;
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// How many redirects one request may follow.
const REDIRECTS_MAX: usize = 5;
/// The body of a PROPFIND.
const PROPERTIES: &str = "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/>\
     <getcontentlength/><getlastmodified/><getetag/></prop></propfind>";

/// The characters of a key that are percent-encoded in an address: all except slashes and those
/// that RFC 3986 calls unreserved.
const QUOTED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A web server as a read-only bucket, below an address.
#[derive(Debug)]
pub struct WebBucket {
    /// The directory, with its slash.
    base: Url,
    /// The only name in it, if the address is that of a file.
    only: Option<String>,
    client: Client,
    proxy: Proxy,
    timeout: Duration,
    counters: Counters,
    /// Whether the server supports WebDAV.
    lists: AtomicBool,
    /// Whether it was logged that the server ignores ranges.
    is_logged: AtomicBool,
    /// Only [`Drop`] takes it.
    runtime: Option<Runtime>,
}

impl Drop for WebBucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn refuse(what: &'static str) -> BucketError {
    BucketError::Unsupported { what }
}

/// The error for an HTTP status.
fn answer(key: &str, status: StatusCode) -> BucketError {
    let (key, message) = (key.to_owned(), status.to_string());
    match status.as_u16() {
        404 | 410 => BucketError::NotFound { key },
        405 | 501 => BucketError::Unsupported { what: "do this: it does not support the method" },
        401 | 403 | 407 => BucketError::Denied { key, message },
        304 | 412 => BucketError::ConditionFailed { key },
        416 => BucketError::OutOfRange { key },
        429 | 503 => BucketError::Busy { key, message },
        400..=499 => BucketError::Refused { key, message },
        _ => BucketError::Failed { key, message },
    }
}

/// The error of a connection, without the address, which the key replaces.
fn broken(key: &str, error: reqwest::Error) -> BucketError {
    let error = error.without_url();
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        // Some causes have an empty message.
        let inner_text = inner.to_string();
        if !inner_text.is_empty() {
            message = format!("{message}: {inner_text}");
        }
        cause = inner.source();
    }
    BucketError::Failed { key: key.to_owned(), message: in_words(message) }
}

impl WebBucket {
    /// Opens an address: a directory, if it ends in a slash or the server adds one, or a file.
    ///
    /// # Errors
    /// An invalid address, or one with a password; the server's error; [`BucketError::Unsupported`]
    /// for a directory that the server does not list.
    pub fn open(address: &str, timeout: Option<Duration>) -> Result<Self> {
        let failed = |message: String| BucketError::Failed { key: address.to_owned(), message };
        let mut base = Url::parse(address).map_err(|error| failed(error.to_string()))?;
        if !base.username().is_empty() || base.password().is_some() {
            base.set_username("").and(base.set_password(None)).unwrap_or_default();
            let message = "an address must not contain a password, because other users can see \
                           it; servers that require one are not supported"
                .to_owned();
            return Err(BucketError::Failed { key: base.to_string(), message });
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(failed("remove the part after ? or #".to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|error| failed(format!("its threads cannot be started: {error}")))?;
        let policy = redirect::Policy::custom(|attempt| {
            let was_safe = attempt.previous().iter().any(|url| url.scheme() == "https");
            if attempt.previous().len() > REDIRECTS_MAX {
                attempt.error("too many redirects")
            } else if was_safe && attempt.url().scheme() != "https" {
                attempt.error("redirected from https to http")
            } else {
                attempt.follow()
            }
        });
        let mut builder = Client::builder();
        if base.host_str().is_some_and(is_here) {
            builder = builder.no_proxy();
        }
        let client = builder
            .redirect(policy)
            .user_agent(concat!("ogive/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let mut bucket = Self {
            proxy: Proxy::of(base.as_str()),
            base,
            only: None,
            client,
            timeout: timeout.unwrap_or(Duration::from_secs(30)),
            counters: Counters::default(),
            lists: AtomicBool::new(true),
            is_logged: AtomicBool::new(false),
            runtime: Some(runtime),
        };
        bucket.settle()?;
        Ok(bucket)
    }

    /// Finds out whether the address is that of a directory.
    fn settle(&mut self) -> Result<()> {
        if !self.base.path().ends_with('/') {
            let address = self.base.clone();
            let key = address.to_string();
            let found = self.wait(&key, self.ask(Method::HEAD, &address, &key, &[]))?;
            if found.url().path() != format!("{}/", address.path()) {
                let (_, part) = keys::split(address.path());
                let name = percent_encoding::percent_decode_str(part).decode_utf8_lossy();
                let is_name = KeyRules::WEB.name_in("", &name).is_some();
                let name = is_name.then(|| name.into_owned());
                self.only = Some(name.ok_or_else(|| refuse("give a file this name"))?);
                self.base = address.join(".").map_err(|_| refuse("give a file this name"))?;
                return Ok(());
            }
            self.base = found.url().clone();
        }
        let base = self.base.to_string();
        self.names("").map(drop).map_err(|error| match error {
            BucketError::NotFound { .. } => BucketError::NotFound { key: base },
            error => error,
        })
    }

    fn wait<T>(&self, key: &str, request: impl Future<Output = Result<T>>) -> Result<T> {
        let runtime = self.runtime.as_ref().expect("until the drop");
        let timeout = self.timeout;
        let late = BucketError::TimedOut { key: key.to_owned(), seconds: timeout.as_secs() };
        let done = runtime.block_on(async { tokio::time::timeout(timeout, request).await });
        done.unwrap_or(Err(late)).map_err(|error| self.proxy.named_in(error))
    }

    /// The address of a key.
    fn address(&self, key: &str) -> Result<Url> {
        match key {
            "" => Ok(self.base.clone()),
            key => Ok(below(&self.base, KeyRules::WEB.sendable(key)?)),
        }
    }

    /// Sends a request, and repeats it while the server is busy or the connection fails.
    async fn ask(
        &self,
        method: Method,
        address: &Url,
        key: &str,
        fields: &[(http::HeaderName, HeaderValue)],
    ) -> Result<Response> {
        let is_listing = method.as_str() == "PROPFIND";
        let mut tried = 0;
        loop {
            let kind = if is_listing { Kind::List } else { Kind::of(method.as_str(), "", None) };
            self.counters.sent(kind, 0);
            let mut request = self.client.request(method.clone(), address.clone());
            for (name, value) in fields {
                request = request.header(name, value);
            }
            if is_listing {
                request = request.header("depth", "1").body(PROPERTIES);
                request = request.header(http::header::CONTENT_TYPE, "application/xml");
            }
            let error = match request.send().await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => answer(key, response.status()),
                Err(error) => broken(key, error),
            };
            let may_pass = matches!(error, BucketError::Busy { .. } | BucketError::Failed { .. });
            if may_pass {
                self.counters.failed();
            }
            if !may_pass || tried == RETRIES {
                return Err(error);
            }
            tokio::time::sleep(RETRY_AFTER * 2_u32.pow(tried)).await;
            tried += 1;
        }
    }

    async fn validator(&self, key: &str) -> Result<Validator> {
        let address = self.address(key)?;
        let response = self.ask(Method::HEAD, &address, key, &[]).await?;
        if response.url().path().ends_with('/') && !address.path().ends_with('/') {
            // The server adds a slash to the address of a directory.
            return Err(BucketError::NotFound { key: key.to_owned() });
        }
        Ok(Validator::of(response.headers()))
    }

    fn object(key: &str, validator: &Validator) -> Result<Object> {
        let unknown = || BucketError::Refused {
            key: key.to_owned(),
            message: "the server does not report its length".to_owned(),
        };
        Ok(Object {
            key: key.to_owned(),
            size_bytes: validator.size_bytes.ok_or_else(unknown)?,
            etag: validator.tag(),
            modified: Time { seconds: validator.modified_seconds(), nanoseconds: 0 },
            mark: None,
            kept: None,
        })
    }

    /// The text of a listing, of bounded length.
    async fn text(&self, key: &str, response: Response) -> Result<String> {
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| broken(key, error))?;
            self.counters.received(piece.len() as u64);
            if body.len() + piece.len() > LISTING_BYTES_MAX {
                let message = format!("its listing is over {} MiB", LISTING_BYTES_MAX >> 20);
                return Err(BucketError::Refused { key: key.to_owned(), message });
            }
            body.extend_from_slice(&piece);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// The names in a directory, and the time by the server's clock.
    fn names(&self, key: &str) -> Result<(index::Names, Option<std::time::SystemTime>)> {
        let address = self.address(key)?;
        let bad = |error: index::BadListing| {
            let key = address.to_string();
            BucketError::Refused { key, message: error.to_string() }
        };
        self.wait(key, async {
            let propfind = Method::from_bytes(b"PROPFIND").expect("a word");
            let mut is_refused = false;
            if self.lists.load(Relaxed) {
                match self.ask(propfind, &address, key, &[]).await {
                    Ok(response) if response.status() == StatusCode::MULTI_STATUS => {
                        let now = clock(&response);
                        let text = self.text(key, response).await?;
                        return Ok((index::of_propfind(&address, &text).map_err(bad)?, now));
                    }
                    // The server does not support the method, for any directory.
                    Ok(_) | Err(BucketError::Unsupported { .. }) => {
                        self.lists.store(false, Relaxed);
                    }
                    Err(error @ BucketError::NotFound { .. }) if !key.is_empty() => {
                        return Err(error);
                    }
                    // No answer says nothing about the method.
                    Err(error) if error.is_in_doubt() => return Err(error),
                    // It may refuse the method, or this directory: the page shows which.
                    Err(_) => is_refused = true,
                }
            }
            let response = self.ask(Method::GET, &address, key, &[]).await?;
            let kind = response.headers().get(http::header::CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            if !kind.starts_with("text/html") && !kind.starts_with("application/xhtml") {
                // Below the mounted directory it is a file whose address got a slash.
                return Err(match key {
                    "" => refuse("list this directory, neither by WebDAV nor as HTML"),
                    key => BucketError::NotFound { key: key.to_owned() },
                });
            }
            // The server may redirect a directory: links are relative to the final address.
            let (now, address) = (clock(&response), response.url().clone());
            if address.origin() != self.base.origin() {
                return Err(refuse("list this directory without a redirect to another server"));
            }
            let text = self.text(key, response).await?;
            let names = index::of_html(&address, &text).map_err(bad)?;
            if is_refused && key.is_empty() {
                // The mounted directory only has a page, so all below it are read as pages.
                self.lists.store(false, Relaxed);
            }
            Ok((names, now))
        })
    }

    /// The entries of a directory, in the order of their keys.
    fn entries(&self, prefix: &str) -> Result<Vec<Entry>> {
        if let Some(only) = &self.only {
            let found = if prefix.is_empty() { vec![self.head(only)?] } else { Vec::new() };
            return Ok(found.into_iter().map(Entry::Object).collect());
        }
        let (names, now) = match self.names(prefix) {
            Err(BucketError::NotFound { .. }) => return Ok(Vec::new()),
            names => names?,
        };
        let mut found = Vec::with_capacity(names.len() + 1);
        let mut unknown = Vec::new();
        for (name, named) in &names {
            let key = format!("{prefix}{name}");
            let validator = Validator::listed(named, now);
            match named {
                IndexEntry { is_directory: true, .. } => {
                    found.push(Entry::Prefix(format!("{key}/")))
                }
                IndexEntry { size_bytes: Some(_), .. } => {
                    found.push(Entry::Object(Self::object(&key, &validator)?));
                }
                _ => unknown.push(key),
            }
        }
        found.extend(self.look_at(unknown)?.into_iter().map(Entry::Object));
        // The directory exists, even if it is empty.
        let nothing = IndexEntry { size_bytes: Some(0), ..IndexEntry::default() };
        let marker = Validator::listed(&nothing, None);
        if !prefix.is_empty() {
            found.push(Entry::Object(Self::object(prefix, &marker)?));
        }
        found.sort_by(|one, other| one.key().cmp(other.key()));
        Ok(found)
    }

    /// Requests each of many objects. Missing objects, and those that the server refuses, are left
    /// out: a page may have dead links.
    fn look_at(&self, keys: Vec<String>) -> Result<Vec<Object>> {
        let runtime = self.runtime.as_ref().expect("until the drop");
        let look = |key: String| async move {
            let late = BucketError::TimedOut { key: key.clone(), seconds: self.timeout.as_secs() };
            let validator = tokio::time::timeout(self.timeout, self.validator(&key)).await;
            match validator
                .unwrap_or(Err(late))
                .and_then(|validator| Self::object(&key, &validator))
            {
                Ok(object) => Ok(Some(object)),
                Err(error) if error.is_in_doubt() => Err(error),
                Err(error) => {
                    log::info!("{key} is listed, but not shown: {error}");
                    Ok(None)
                }
            }
        };
        let looked = runtime.block_on(async {
            let mut answers = stream::iter(keys).map(look).buffer_unordered(HEADS_AT_ONCE);
            let mut found = Vec::new();
            while let Some(answer) = answers.next().await {
                found.extend(answer?);
            }
            Ok(found)
        });
        looked.map_err(|error| self.proxy.named_in(error))
    }
}

/// The address of a key below the address of a directory.
fn below(base: &Url, key: &str) -> Url {
    let mut address = base.clone();
    // Encode the key here: the URL library would drop tabs and newlines.
    address.set_path(&format!("{}{}", base.path(), utf8_percent_encode(key, QUOTED)));
    address
}

fn clock(response: &Response) -> Option<std::time::SystemTime> {
    let date = response.headers().get(DATE)?.to_str().ok()?;
    httpdate::parse_http_date(date).ok()
}

impl Bucket for WebBucket {
    fn identity(&self) -> BucketIdentity {
        let endpoint = self.base.origin().ascii_serialization();
        BucketIdentity { endpoint, bucket: self.base.path().to_owned() }
    }

    fn key_rules(&self) -> &'static KeyRules {
        &KeyRules::WEB
    }

    fn request_counts(&self) -> Requests {
        self.counters.read()
    }

    fn head(&self, key: &str) -> Result<Object> {
        if self.only.as_ref().is_some_and(|only| only != key) {
            return Err(BucketError::NotFound { key: key.to_owned() });
        }
        let validator = self.wait(key, self.validator(key))?;
        Self::object(key, &validator)
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: Option<&ETag>,
        sink: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
    ) -> Result<u64> {
        let address = self.address(key)?;
        let mut at = range.start;
        let mut tried = 0;
        while at < range.end {
            let before = at;
            let error = match self.piecewise(key, &address, &mut at, range.end, expected, sink) {
                Ok(()) => break,
                Err(error) => error,
            };
            tried = if at > before { 0 } else { tried + 1 };
            // Only an object with a validator can be resumed.
            let may_go_on = matches!(error, BucketError::Failed { .. }) && expected.is_some();
            if !may_go_on || tried > RETRIES {
                return Err(error);
            }
        }
        Ok(at - range.start)
    }

    fn pages(&self, listing: &Listing<'_>) -> Result<Box<dyn Pages>> {
        // Callers use a listing without a delimiter only to find out whether it is empty.
        Ok(Box::new(self.entries(listing.prefix)?))
    }
}

impl WebBucket {
    /// Reads from `at`, which advances with each delivered piece, until the end or an error.
    fn piecewise(
        &self,
        key: &str,
        address: &Url,
        at: &mut u64,
        end: u64,
        expected: Option<&ETag>,
        sink: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
    ) -> Result<()> {
        let range = format!("bytes={}-{}", *at, end - 1);
        let value = |text: &str| {
            let bad = |_| BucketError::BadKey {
                key: key.to_owned(),
                why: "its tag is not a valid header",
            };
            HeaderValue::from_str(text).map_err(bad)
        };
        let mut fields = vec![(RANGE, value(&range)?)];
        if let Some(tag) = expected.filter(|tag| is_the_servers(tag)) {
            fields.push((IF_MATCH, value(tag.as_str())?));
        }
        let response = self.wait(key, self.ask(Method::GET, address, key, &fields))?;
        let validator = Validator::of(response.headers());
        if expected.is_some_and(|expected| !validator.is(expected)) {
            return Err(BucketError::ConditionFailed { key: key.to_owned() });
        }
        // The bytes before the range, if the server ignores ranges.
        let mut skipped = match response.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&response) == Some(*at) => 0,
            StatusCode::PARTIAL_CONTENT => {
                let message = "the server returned another range than was requested".to_owned();
                return Err(BucketError::Refused { key: key.to_owned(), message });
            }
            _ => *at,
        };
        if skipped > 0 && !self.is_logged.swap(true, Relaxed) {
            log::warn!("the server ignores ranges: each read fetches all bytes before it");
        }
        if validator.size_bytes.is_some_and(|size| *at >= size) {
            return Err(BucketError::OutOfRange { key: key.to_owned() });
        }
        let mut pieces = response.bytes_stream();
        while *at < end {
            let next =
                async { pieces.next().await.transpose().map_err(|error| broken(key, error)) };
            let Some(mut piece) = self.wait(key, next)? else { break };
            self.counters.received(piece.len() as u64);
            let skip = skipped.min(piece.len() as u64);
            skipped -= skip;
            let piece = piece.split_off(skip as usize);
            let piece = piece.slice(..piece.len().min((end - *at) as usize));
            *at += piece.len() as u64;
            if !piece.is_empty() && sink(piece).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The start of the range in an answer.
fn starts_at(response: &Response) -> Option<u64> {
    let range = response.headers().get(http::header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_key_decodes_to_the_key() {
        let base = Url::parse("http://host:1/a%20b/").unwrap();
        for key in
            ["x", "d/", "d/x y", "a\tb", "a\nb", "a\\b", "%2e", "a?b#c", "ü", "a;b:c@d&e=f+g"]
        {
            let address = below(&base, key);
            let (path, origin) = (address.path().to_owned(), address.origin());
            let rest = path.strip_prefix(base.path()).unwrap();
            let read = percent_encoding::percent_decode_str(rest).decode_utf8().unwrap();
            assert_eq!((&*read, origin), (key, base.origin()));
            assert!(address.query().is_none() && address.fragment().is_none());
        }
    }
}
