//! Counters of requests by kind, and of bytes. [`crate::Prices`] has the cost of each.
//!
//! Requests are counted where they are sent, so retries, parts and pages of listings are included.
//! There are no locks, only atomic counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A kind of request, as stores bill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Head,
    List,
    /// Writes of any kind: PUT, POST, COPY, parts, the start and end of an upload.
    Put,
    Delete,
}

impl Kind {
    /// The kind of a request, from its method, path and query.
    pub(crate) fn of(method: &str, path: &str, query: Option<&str>) -> Self {
        let has = |field: &str| query.is_some_and(|query| query.split('&').any(|it| it == field));
        // In Google's JSON API an object's description is fetched by GET, like its bytes.
        let of_google = path.strip_prefix("/storage/v1/b/").filter(|_| !has("alt=media"));
        match (method, of_google) {
            ("GET", Some(rest)) if rest.ends_with("/o") => return Self::List,
            ("GET", Some(_)) => return Self::Head,
            _ => {}
        }
        match method {
            "GET" if has("list-type=2") || has("comp=list") || has("versions") => Self::List,
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "DELETE" => Self::Delete,
            _ => Self::Put,
        }
    }
}

/// Counters of a bucket, shared by all its users.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    get: AtomicU64,
    head: AtomicU64,
    list: AtomicU64,
    put: AtomicU64,
    delete: AtomicU64,
    failed: AtomicU64,
    throttled: AtomicU64,
    denied: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn sent(&self, kind: Kind, body_bytes: u64) {
        let counter = match kind {
            Kind::Get => &self.get,
            Kind::Head => &self.head,
            Kind::List => &self.list,
            Kind::Put => &self.put,
            Kind::Delete => &self.delete,
        };
        counter.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(body_bytes, Relaxed);
    }

    /// Counts an answer of 5xx or 429, or a missing answer.
    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Counts an answer that throttles.
    pub(crate) fn throttle(&self) {
        self.throttled.fetch_add(1, Relaxed);
    }

    /// Counts an answer of 401 or 403.
    pub(crate) fn deny(&self) {
        self.denied.fetch_add(1, Relaxed);
    }

    /// How many answers were 401 or 403.
    pub(crate) fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
    }

    /// How many answers throttled.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled.load(Relaxed)
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> Requests {
        Requests {
            get: self.get.load(Relaxed),
            head: self.head.load(Relaxed),
            list: self.list.load(Relaxed),
            put: self.put.load(Relaxed),
            delete: self.delete.load(Relaxed),
            failed: self.failed.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
        }
    }
}

/// The requests to a store since the mount began, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// GETs of objects.
    pub get: u64,
    /// HEADs.
    pub head: u64,
    /// Pages of listings.
    pub list: u64,
    /// Writes: PUT, POST, COPY, each part of an upload, its start and its end.
    pub put: u64,
    /// DELETEs and aborted uploads.
    pub delete: u64,
    /// How many of them failed: 429, 5xx, or no answer.
    pub failed: u64,
    /// Bytes of received bodies.
    pub received_bytes: u64,
    /// Bytes of sent bodies.
    pub sent_bytes: u64,
}

impl Requests {
    /// Requests of all kinds.
    pub fn all(&self) -> u64 {
        [self.get, self.head, self.list, self.put, self.delete]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_as_they_are_billed() {
        let counters = Counters::default();
        for (method, query) in [
            ("GET", Some("list-type=2&prefix=a/")),
            ("GET", None),
            ("GET", Some("versionId=1")),
            ("HEAD", None),
            ("PUT", None),
            ("PUT", Some("partNumber=1&uploadId=2")),
            ("POST", Some("uploads")),
            ("DELETE", None),
        ] {
            counters.sent(Kind::of(method, "/b/k", query), 10);
        }
        let read = counters.read();
        assert_eq!((read.list, read.get, read.head, read.put, read.delete), (1, 2, 1, 3, 1));
        assert_eq!(read.sent_bytes, 80);
    }

    #[test]
    fn requests_of_azure_and_google_have_their_kind() {
        let blobs = Some("restype=container&comp=list&prefix=a");
        assert_eq!(Kind::of("GET", "/c", blobs), Kind::List);
        let objects = "/storage/v1/b/b/o";
        assert_eq!(Kind::of("GET", objects, Some("prefix=a")), Kind::List);
        assert_eq!(Kind::of("GET", &format!("{objects}/a"), None), Kind::Head);
        assert_eq!(Kind::of("GET", &format!("{objects}/a"), Some("alt=media")), Kind::Get);
        assert_eq!(Kind::of("GET", "/b/o", None), Kind::Get);
    }
}
