//! Text for people, in one form for all crates.
//!
//! [`escape`] is for pages and pictures, [`one_line`] for logs and terminals, [`ShellWord`] for
//! commands, [`Bytes`] for sizes. [`Recurring`] limits reports about a recurring state.
//!
//! All are pure functions of their arguments and use no other crate of this project.
#![forbid(unsafe_code)]

mod bytes;
mod line;
mod markup;
mod recurring;
mod shell;

pub use bytes::Bytes;
pub use line::one_line;
pub use markup::escape;
pub use recurring::{Change, Recurring};
pub use shell::ShellWord;
