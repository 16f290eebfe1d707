//! The live view: what a host and its caches do, shown on a page of its own.
//!
//! [`http`] is the server with its gate: who may ask, for what, and how much of it at a time. It
//! serves whatever routes it is given, so that counters and profiles for other programs are routes
//! like any other. [`sample`] measures, [`sampler`] does so once a second while somebody looks, and
//! [`history`] keeps the last hour, and [`week`] the last week in a file, if one is named. [`page`]
//! are the routes of the page itself, [`cached_files`] the one of what is in a cache, [`curve`] of what
//! more memory would buy, and [`jobs`] those of what takes seconds: diagnoses, captures, profiles.
//!
//! Invariants: what is served is compiled in or made for the request, no path of a request is ever
//! one of a file system; nobody who is not at the gate's liking gets further than its refusal; and a
//! server that nobody asks does not wake up.
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
