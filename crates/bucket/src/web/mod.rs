//! A web server as a bucket that is only read: a file by its address, or a directory that the server
//! lists, by WebDAV or as HTML ([`index`]).
//!
//! # Invariants
//! - Whatever is asked for lies below the address that was mounted, on its server. A server may send
//!   us elsewhere for an object, but not from https to http.
//! - An object is told by its strong ETag. Where there is none, by what there is (a weak tag, time,
//!   size), if it was changed two seconds ago or earlier by the server's own clock: its times are of
//!   whole seconds. Such a mark is compared with each answer, because no request can be made
//!   to depend on it. Where there is neither tag nor time nothing tells an object.
//! - What a server says is bounded: the length of a listing, the names in it, the time it takes.
//!
//! # Threads
//! Two named `bucket`, as of any other store.

#[cfg_attr(not(feature = "remote"), allow(dead_code))]
pub mod index;

#[cfg(feature = "remote")]
mod server;
#[cfg(feature = "remote")]
mod validator;

#[cfg(feature = "remote")]
pub use server::WebBucket;
