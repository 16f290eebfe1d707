//! The live view: a page that shows what a host and its caches do.
//!
//! [`http`] is the server with its gate: who may ask, for what, and how much of it at a time. It
//! serves any routes, so counters and profiles for other programs are routes like the others.
//! [`sample`] measures, and [`sampler`] does so once a second while somebody looks. [`history`]
//! keeps the last hour, and [`week`] the last week in a file, if one is named. [`hour_comparison`]
//! compares.
//!
//! The routes: [`page`] is the page itself, [`cached_files`] the files in a cache,
//! [`curve`] what more memory would buy, [`scrape`] `/metrics`, and [`jobs`] what takes
//! seconds: diagnoses, captures, profiles.
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
