//! A web server as a read-only bucket: a file by its address, or a directory that the server lists,
//! by WebDAV or as HTML ([`index`]).
//!
//! # Invariants
//! - All requests go below the mounted address, on its server. A server may redirect an object, but
//!   not from https to http.
//! - The validator of an object is its strong ETag. Without one it consists of the weak ETag, time
//!   and size. Times are in whole seconds, so the object must have changed at least two seconds ago
//!   by the server's clock. No request can depend on such a validator, so it is compared with each
//!   answer. An object with neither ETag nor time has no validator.
//! - All answers are bounded: the length of a listing, the number of its names, the time.
//!
//! # Threads
//! Two, named `bucket`, like for any other store.

#[cfg_attr(not(feature = "remote"), allow(dead_code))]
pub mod index;

#[cfg(feature = "remote")]
mod server;
#[cfg(feature = "remote")]
mod validator;

#[cfg(feature = "remote")]
pub use server::WebBucket;
