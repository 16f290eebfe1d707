//! The live view: a page with the figures of a host and its caches.
//!
//! [`http`] is the server with its gate, which decides on each request. It serves any routes, so
//! counters and profiles for other programs are routes like the others. [`sample`] measures, and
//! [`sampler`] does so once a second while a page is open. [`history`] keeps the last hour, and
//! [`week`] keeps the last week in a file, if one is named. [`hour_comparison`] compares two minutes.
//!
//! The routes: [`page`] is the page itself, [`cached_files`] the files in a cache, [`curve`] the
//! miss-ratio curve, [`scrape`] `/metrics`. [`jobs`] are diagnoses, captures and profiles, which
//! take seconds.
//!
//! Invariants: a response is compiled in or made for its request, and no path of a request is ever
//! a path of a file system. A request that the gate refuses reaches nothing else. A server without
//! requests does not wake up.
#![forbid(unsafe_code)]

pub mod cached_files;
pub mod curve;
pub mod history;
pub mod hour_comparison;
pub mod http;
pub mod jobs;
mod openzfs;
pub mod page;
mod profile_store;
pub mod sample;
pub mod sampler;
pub mod scrape;
pub mod week;
