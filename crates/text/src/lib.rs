//! Text for people, in one form for all crates.
//!
//! [`escape`] is for pages and pictures, [`one_line`] for logs and terminals, [`ShellWord`] for
//! commands, [`Bytes`] for sizes, [`counted`] for counts. [`Recurring`] limits messages about things
//! that come and go.
//!
//! All are pure functions of their arguments and use no other crate of this project.
#![forbid(unsafe_code)]

mod bytes;
mod count;
mod line;
mod markup;
mod recurring;
mod shell;

pub use bytes::Bytes;
pub use count::counted;
pub use line::one_line;
pub use markup::escape;
pub use recurring::{Change, Recurring};
pub use shell::ShellWord;
