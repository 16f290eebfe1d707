//! Real stores over HTTP. No other module uses the client library (OpenDAL).
//!
//! # Invariants
//! - A key reaches the store unchanged, or not at all. The library trims and joins paths, and an
//!   address drops `.` and `..`. Keys that would change are refused before a request is sent
//!   ([`KeyRules`]).
//! - The caller's thread drives its request, on the clock and sockets of the executor, until the
//!   timeout. The sink is called on that thread.
//! - A layer of the library retries requests with growing pauses and jitter, within the same
//!   timeout. The timeout of a write starts again whenever bytes move ([`transport`]).
//! - A write whose condition failed may be our own, sent twice. Its mark shows that.
//!
//! # Threads
//! One executor for each bucket, with two threads named `bucket`. They sleep in epoll_wait(2) until
//! a connection has data. Idle connections are closed after a while.

mod checksums;
mod client_copy;
mod credential_renewal;
mod credentials;
mod errors;
mod fetching;
mod head_with_bytes;
mod hedge;
mod limits;
mod listing;
mod options;
mod retry;
mod stale_uploads;
mod stores;
mod throttle;
mod transport;
mod versions;
mod window;

pub use credential_renewal::Renewal;
pub use options::RemoteOptions;
pub use stores::StoreKind;

use crate::http_clients::{Clients, Proxy};
use crate::journal::Journal;
use crate::request_counters::Counters;
use crate::{
    Bucket, BucketError, BucketIdentity, Checksum, Condition, CopyRequest, ETag, Fetch, FetchSink,
    KeyRules, Listing, Object, Pages, Promises, Requests, Result, Upload, WriteMetadata,
};
use bytes::Bytes;
use checksums::Checksums;
use client_copy::client_copy;
use credential_renewal::RenewedCredentials;
use errors::translate;
use fetching::{BackgroundReads, unwrapped};
use futures_util::StreamExt;
use limits::Tokens;
use listing::{DirectoryMarkers, RemotePages};
use ogive_origin::{ReadAhead, Time};
use opendal::layers::RetryLayer;
use opendal::options::ReadOptions;
use opendal::{HttpTransporter, Metadata, OperationContext, Operator};
use parking_lot::Mutex;
use reqsign_aws_v4::Credential;
use reqsign_core::Signer;
use std::future::Future;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use transport::{StoreAddress, Transport, UploadNotes};
use versions::Versions;

/// How often a request is repeated.
const RETRIES: usize = 4;
/// The first pause is this long, up to twice as long; each later one doubles.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The overall timeout of a write. Its requests have their own timeouts, so this only bounds
/// everything else.
const WRITE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// The largest range that a store copies in one request, in bytes.
const COPY_MAX_BYTES: u64 = 1 << 30;

/// A bucket of a real store.
pub struct RemoteBucket {
    shared: Arc<Shared>,
}

struct Shared {
    kind: StoreKind,
    operator: Operator,
    reading: BackgroundReads,
    identity: BucketIdentity,
    timeout: Duration,
    counters: Arc<Counters>,
    checksums: Arc<Checksums>,
    promises: Mutex<Promises>,
    notes: Arc<UploadNotes>,
    folders: DirectoryMarkers,
    versions: Versions,
    proxy: Proxy,
    transport: HttpTransporter,
    /// `None` if requests are not signed.
    signer: Option<Signer<Credential>>,
    renewed: Option<Arc<RenewedCredentials>>,
    /// Only [`Drop`] takes it: a runtime must not be dropped on a thread that drives a request.
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl RemoteBucket {
    /// Prepares the connection to a bucket. No request is sent, except for the bucket's region if
    /// that is unknown.
    ///
    /// # Errors
    /// Invalid options; an executor that cannot be started.
    pub fn new(options: &RemoteOptions) -> Result<Self> {
        let failed = |message: String| BucketError::Failed { key: options.bucket.clone(), message };
        opendal::install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|error| failed(format!("its threads cannot be started: {error}")))?;
        let timeout = options.timeout.unwrap_or(Duration::from_secs(30));
        let connection = options.kind.connect(options, &runtime, timeout).map_err(failed)?;
        let counters = Arc::new(Counters::default());
        let (notes, checksums) = (Arc::<UploadNotes>::default(), Arc::<Checksums>::default());
        let noted = (Arc::clone(&notes), Arc::clone(&checksums));
        let profile = options.profile.as_deref();
        let signer = connection.signer.as_ref().map(|(signer, _)| signer.clone());
        let authorities = options.kind.authorities(profile).map_err(failed)?;
        let build = || reqwest::Client::builder().tls_certs_merge(authorities.clone());
        let clients = Clients::new(build).map_err(failed)?;
        let tokens = HttpTransporter::new(Tokens::new(clients.clone(), timeout));
        let renewed =
            connection.signer.map(|found| Arc::new(RenewedCredentials::new(found, tokens)));
        let host = connection
            .endpoint
            .parse()
            .ok()
            .and_then(|uri: http::Uri| Some(uri.host()?.to_owned()));
        let at = (clients, StoreAddress { host, bucket: options.bucket.clone() });
        let transport = Transport::new(Arc::clone(&counters), noted, renewed.clone(), at, timeout);
        let transport = HttpTransporter::new(transport);
        let context = OperationContext::new().with_http_transport(transport.clone());
        let operator = connection.operator.with_context(context);
        let reading = BackgroundReads::new(options.kind, operator.clone());
        let operator = operator.layer(
            RetryLayer::new()
                .with_max_times(RETRIES)
                .with_min_delay(RETRY_AFTER)
                .with_jitter()
                .with_notify(|event: opendal::layers::RetryEvent<'_>| {
                    log::info!("repeating a request: {}", event.err.message());
                }),
        );
        // Other stores report none.
        if options.kind == StoreKind::S3 {
            checksums.ask_with(renewed.clone());
        }
        let proxy = Proxy::of(&connection.endpoint);
        let identity =
            BucketIdentity { endpoint: connection.endpoint, bucket: options.bucket.clone() };
        Ok(Self {
            shared: Arc::new(Shared {
                kind: options.kind,
                operator,
                reading,
                identity,
                timeout,
                counters,
                checksums,
                promises: Mutex::new(Promises::NONE),
                notes,
                folders: DirectoryMarkers::default(),
                versions: Versions::default(),
                proxy,
                transport,
                signer,
                renewed,
                runtime: Some(runtime),
            }),
        })
    }

    /// Sets the conditions that [`probe`](crate::probe()) has found to be honoured. Before that
    /// none is.
    pub fn believe(&self, promises: Promises) {
        *self.shared.promises.lock() = promises;
    }

    /// The handle that looks up credentials again; `None` unless this is `s3://` with signed
    /// requests.
    pub fn renewal(&self) -> Option<Renewal> {
        let (renewed, runtime) = (&self.shared.renewed, &self.shared.runtime);
        Some(Renewal::new(renewed.clone()?, runtime.as_ref()?.handle().clone()))
    }

    /// Records multipart uploads in a journal, so that the next mount finds those that a crash
    /// left.
    pub fn note_uploads(&self, journal: &Journal) {
        // Other stores discard uploads that are not completed within a week.
        if self.shared.kind == StoreKind::S3 {
            self.shared.notes.keep_in(journal);
        }
    }
}

fn variable(name: &&str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Shared {
    fn object(&self, key: &str, metadata: &Metadata) -> Object {
        let modified = metadata.last_modified().map_or(0, |time| time.into_inner().as_second());
        let (mark, kept) = self.kind.beside(metadata);
        Object {
            key: key.to_owned(),
            size_bytes: metadata.content_length(),
            etag: self.kind.etag(metadata),
            modified: Time { seconds: modified, nanoseconds: 0 },
            mark,
            kept,
        }
    }

    /// Drives a request on the caller's thread, until the timeout.
    fn wait<T>(&self, key: &str, request: impl Future<Output = opendal::Result<T>>) -> Result<T> {
        self.wait_for(self.timeout, key, request)
    }

    /// The same for a write, which may take as long as bytes move.
    fn write<T>(&self, key: &str, request: impl Future<Output = opendal::Result<T>>) -> Result<T> {
        self.wait_for(WRITE_MAX, key, request)
    }

    fn wait_for<T>(
        &self,
        allowed: Duration,
        key: &str,
        request: impl Future<Output = opendal::Result<T>>,
    ) -> Result<T> {
        let runtime = self.runtime.as_ref().expect("until the drop");
        let key = if key.is_empty() { &self.identity.bucket } else { key };
        match runtime.block_on(async { tokio::time::timeout(allowed, request).await }) {
            Ok(answer) => answer.map_err(|error| self.translated(key, &error)),
            Err(_) => {
                Err(BucketError::TimedOut { key: key.to_owned(), seconds: allowed.as_secs() })
            }
        }
    }

    /// Translates an error of the library.
    fn translated(&self, key: &str, error: &opendal::Error) -> BucketError {
        let error = self.proxy.named_in(translate(key, error));
        match &self.renewed {
            Some(renewed) => renewed.explained(error),
            None => error,
        }
    }

    /// The key, if it reaches the store unchanged.
    fn sendable<'a>(&self, key: &'a str) -> Result<&'a str> {
        self.kind.key_rules().sendable(key)
    }

    fn head(&self, key: &str) -> Result<Object> {
        let metadata = self.wait(key, self.operator.stat(self.sendable(key)?));
        self.but_folders(key, metadata.map(|metadata| self.object(key, &metadata)))
    }

    /// The result of a write. A failed one may have happened all the same, sent twice or with its
    /// answer lost: the mark shows that.
    fn written(
        &self,
        key: &str,
        size_bytes: u64,
        mark: Option<&str>,
        answer: Result<Metadata>,
    ) -> Result<Object> {
        let error = match answer {
            Ok(metadata) => {
                self.versions.look_at(self.kind, &metadata);
                let modified = Time { seconds: 0, nanoseconds: 0 };
                let mark = mark.map(str::to_owned);
                return Ok(Object { size_bytes, modified, mark, ..self.object(key, &metadata) });
            }
            Err(error) => error,
        };
        // If the answer to a completion was lost, the upload no longer exists when it is completed
        // again.
        let may_be_ours = error.is_in_doubt()
            || matches!(error, BucketError::ConditionFailed { .. } | BucketError::NotFound { .. });
        if may_be_ours
            && mark.is_some()
            && let Ok(found) = self.head(key)
            && found.mark.as_deref() == mark
        {
            return Ok(found);
        }
        Err(error)
    }
}

impl Bucket for RemoteBucket {
    fn identity(&self) -> BucketIdentity {
        self.shared.identity.clone()
    }

    fn request_counts(&self) -> Requests {
        self.shared.counters.read()
    }

    fn key_rules(&self) -> &'static KeyRules {
        self.shared.kind.key_rules()
    }

    fn promises(&self) -> Promises {
        *self.shared.promises.lock()
    }

    fn head(&self, key: &str) -> Result<Object> {
        self.shared.head(key)
    }

    fn head_with_bytes(&self, key: &str, most_bytes: u64) -> Result<(Object, Option<Bytes>)> {
        self.shared.head_with_bytes(key, most_bytes)
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: Option<&ETag>,
        sink: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
    ) -> Result<u64> {
        let shared = &self.shared;
        let options = shared.kind.reading(expected);
        let open = async {
            let reader = shared.operator.reader_options(shared.sendable(key)?, options).await;
            Ok(match reader {
                Ok(reader) => reader.into_bytes_stream(range).await,
                Err(error) => Err(error),
            })
        };
        // Check the key first: its error differs from the store's.
        let open = async {
            match open.await {
                Ok(opened) => opened.map(Ok),
                Err(bad) => Ok(Err(bad)),
            }
        };
        let mut stream = shared.wait(key, open)??;
        let mut given = 0;
        let mut next = async || stream.next().await.transpose().map_err(unwrapped);
        while let Some(piece) = shared.wait(key, next())? {
            given += piece.len() as u64;
            if sink(piece).is_break() {
                break;
            }
        }
        Ok(given)
    }

    fn fetch(&self, fetch: Fetch, taker: Box<dyn FetchSink>) {
        self.shared.spawn_fetch(fetch, taker);
    }

    fn fetches_in_background(&self) -> bool {
        true
    }

    fn read_ahead(&self) -> ReadAhead {
        self.shared.reading.window.read_ahead()
    }

    fn checksum_of(&self, object: &Object) -> Option<Checksum> {
        self.shared.checksums.of(object.etag.as_ref()?)
    }

    fn counters(&self, report: &mut dyn FnMut(&str, u64)) {
        report("origin_throttled", self.shared.counters.throttled());
        report("origin_denied", self.shared.counters.denied());
        self.shared.reading.report(report);
    }

    fn put(
        &self,
        key: &str,
        body: Bytes,
        condition: &Condition,
        beside: WriteMetadata<'_>,
    ) -> Result<Object> {
        let (shared, size_bytes) = (&self.shared, body.len() as u64);
        shared.kind.key_rules().creatable(key)?;
        let answer = if key.ends_with('/') {
            // A directory marker; all markers are equal.
            let made = shared.wait(key, shared.operator.create_dir(key));
            made.map(|()| opendal::MetadataBuilder::dir().build())
        } else {
            let mut options = shared.kind.writing(condition, beside);
            // Send one request, whatever the size.
            options.concurrent = 0;
            shared.write(key, shared.operator.write_options(key, body, options))
        };
        shared.written(key, size_bytes, beside.mark, answer)
    }

    fn upload(
        &self,
        key: &str,
        condition: &Condition,
        beside: WriteMetadata<'_>,
    ) -> Result<Box<dyn Upload>> {
        let shared = Arc::clone(&self.shared);
        let options = shared.kind.writing(condition, beside);
        let key = shared.kind.key_rules().creatable(key)?;
        let writer = shared.wait(key, shared.operator.writer_options(key, options))?;
        Ok(Box::new(RemoteUpload {
            writer: Some(writer),
            key: key.to_owned(),
            mark: beside.mark.map(str::to_owned),
            size_bytes: 0,
            shared,
        }))
    }

    fn copy(&self, copy: CopyRequest<'_>) -> Result<Object> {
        let CopyRequest { source, target, condition, beside } = copy;
        // A multipart upload of copied parts respects both conditions. The store's copy of a whole
        // object does not: stores ignore a condition on its target, and the library sends none for
        // its source.
        if source.key.ends_with('/') {
            // A directory marker; the library reports no ETag for it.
            return self.put(target, Bytes::new(), condition, beside);
        }
        if source.size_bytes == 0 {
            let found = self.shared.head(&source.key)?;
            if found.etag != source.etag {
                return Err(BucketError::ConditionFailed { key: source.key.clone() });
            }
            return self.put(target, Bytes::new(), condition, beside);
        }
        self.copy_with_retries(copy)
    }

    fn delete(&self, key: &str, expected: Option<&ETag>) -> Result<()> {
        if self.shared.delete_folder(key, expected)? {
            return Ok(());
        }
        self.delete_with_retries(key, expected)
    }

    fn purge(&self, stem: &str) -> Result<()> {
        self.purge_versions(stem)
    }

    fn pages(&self, listing: &Listing<'_>) -> Result<Box<dyn Pages>> {
        Ok(Box::new(RemotePages::begin(&self.shared, listing)?))
    }
}

struct RemoteUpload {
    shared: Arc<Shared>,
    /// `None` once it is completed or aborted.
    writer: Option<opendal::Writer>,
    key: String,
    mark: Option<String>,
    size_bytes: u64,
}

impl RemoteUpload {
    fn writer(&mut self) -> &mut opendal::Writer {
        self.writer.as_mut().expect("until it is completed or aborted, which consumes it")
    }
}

impl Drop for RemoteUpload {
    fn drop(&mut self) {
        if let Some(mut writer) = self.writer.take()
            && let Some(runtime) = &self.shared.runtime
        {
            // No caller waits for this. If it fails, the store's lifecycle rules clean up.
            runtime.spawn(async move { writer.abort().await });
        }
    }
}

impl Upload for RemoteUpload {
    fn part(&mut self, bytes: Bytes) -> Result<()> {
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        self.size_bytes += bytes.len() as u64;
        shared.write(&key, self.writer().write(bytes))
    }

    fn copy_part(&mut self, source: &Object, range: Range<u64>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        shared.sendable(&source.key)?;
        if !shared.kind.copies_inside() {
            return client_copy(&shared, self, source, range);
        }
        let mut from = range.start;
        while from < range.end {
            let until = range.end.min(from + COPY_MAX_BYTES);
            let options = ReadOptions {
                range: (from..until).into(),
                if_match: source.etag.as_ref().map(|etag| etag.as_str().to_owned()),
                ..ReadOptions::default()
            };
            shared.write(&source.key, self.writer().copy_from_options(&source.key, options))?;
            self.size_bytes += until - from;
            from = until;
        }
        Ok(())
    }

    fn complete(mut self: Box<Self>) -> Result<Object> {
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        let answer = shared.write(&key, self.writer().close());
        if answer.is_ok() {
            self.writer = None;
        }
        shared.written(&key, self.size_bytes, self.mark.as_deref(), answer)
    }

    fn abort(mut self: Box<Self>) -> Result<()> {
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        let answer = shared.write(&key, self.writer().abort());
        self.writer = None;
        answer
    }
}
