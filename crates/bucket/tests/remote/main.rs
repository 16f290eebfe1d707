//! Writing to a store over HTTP: what it leaves open, what a crash leaves in it, and what is said.

#![allow(clippy::unwrap_used, reason = "a test")]

mod answers;
mod blobs;
mod demands;
mod left;
mod proxied;
mod store;
mod versions;
mod web;

use ogive_bucket::{RemoteBucket, RemoteOptions};
use std::time::Duration;
use store::Store;

fn bucket(store: &Store) -> RemoteBucket {
    bucket_at(&store.endpoint)
}

fn bucket_at(endpoint: &str) -> RemoteBucket {
    let options = RemoteOptions {
        kind: store.kind(),
        bucket: "bucket".to_owned(),
        endpoint_url: Some(endpoint.to_owned()),
        region: Some("here".to_owned()),
        no_sign_request: true,
        // Longer than any wait of a test: no test here is about it.
        timeout: Some(Duration::from_secs(600)),
        ..RemoteOptions::default()
    };
    RemoteBucket::new(&options).unwrap()
}
