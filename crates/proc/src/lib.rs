//! Parsers of Linux's `/proc` files, one per file.
//!
//! The functions take the bytes of a file and do no I/O. Names and paths may be any bytes, so no
//! function requires UTF-8. A kernel may be older or newer than expected, and a file may be
//! truncated. Missing fields are `None`, and no input causes a panic.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod meminfo;
pub mod mountinfo;
mod octal;
pub mod pressure;
pub mod stat;
pub mod status;

pub use octal::unescaped;
