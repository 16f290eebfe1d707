//! Writes to a store over HTTP: errors that leave the outcome open, uploads that a crash leaves,
//! and error messages.

#![allow(clippy::unwrap_used, reason = "a test")]

mod blobs;
mod child;
mod credentials;
mod demands;
mod demo;
mod endless;
mod errors;
mod key_rules;
mod proxied;
mod stale_uploads;
mod store;
mod versions;
mod web;

use ogive_bucket::{RemoteBucket, RemoteOptions};
use std::time::Duration;
use store::Store;

fn bucket(store: &Store) -> RemoteBucket {
    let options = RemoteOptions { kind: store.kind(), ..options(&store.endpoint) };
    RemoteBucket::new(&options).unwrap()
}

fn bucket_at(endpoint: &str) -> RemoteBucket {
    RemoteBucket::new(&options(endpoint)).unwrap()
}

fn options(endpoint: &str) -> RemoteOptions {
    RemoteOptions {
        bucket: "bucket".to_owned(),
        endpoint_url: Some(endpoint.to_owned()),
        region: Some("here".to_owned()),
        no_sign_request: true,
        // Longer than any wait of a test, because no test here is about timeouts.
        timeout: Some(Duration::from_secs(600)),
        ..RemoteOptions::default()
    }
}
