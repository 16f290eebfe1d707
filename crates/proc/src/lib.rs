//! Files of Linux's `/proc`, each parsed in one place.
//!
//! The functions take the bytes of a file and do no I/O. Names and paths may hold any bytes, so
//! nothing here wants UTF-8. A kernel may be older or newer than we know and a file may be
//! truncated: what is there is read, and what is missing is `None`. Nothing panics on any input.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod meminfo;
pub mod mountinfo;
mod octal;
pub mod pressure;
pub mod stat;
pub mod status;

pub use octal::unescaped;
