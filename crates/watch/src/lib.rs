//! The live view: a page that shows a host and its caches.
//!
//! [`http`] is the server with its gate, which limits which clients may ask, for which routes, and
//! how much at a time. The server takes any routes, so counters and profiles for other programs are
//! routes like any other. [`sample`] measures, and [`sampler`] does so once a second while a page
//! is open. [`history`] keeps the last hour, and [`week`] the last week in a file, if there is one.
//! [`page`] has the routes of the page itself, [`cached_files`] the route of the cached files, and
//! [`curve`] that of the miss-ratio curve. [`jobs`] has the routes that take seconds: diagnoses,
//! captures, profiles.
//!
//! Invariants: every answer is compiled in or made for the request, and no path of a request is a
//! path of a file system. A client that the gate refuses gets no further. Without requests the
//! server does not wake up.
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
