//! Text for people, written in one way by all crates: [`escape`] for pages and pictures,
//! [`one_line`] for logs and terminals, [`ShellWord`] for commands to type, [`Bytes`] for sizes,
//! [`Recurring`] for messages about what comes and goes.
//!
//! [`escape`] is for pages and pictures, [`one_line`] for logs and terminals, [`ShellWord`] for
//! commands, [`Bytes`] for sizes. [`Recurring`] limits messages about things that come and go, and
//! [`unescaped`] reads names in tables of mounts.
//!
//! All are pure functions of their arguments, and use nothing else of this project.
#![forbid(unsafe_code)]

mod bytes;
mod line;
mod markup;
mod said;
mod shell;

pub use bytes::Bytes;
pub use line::one_line;
pub use markup::escape;
pub use said::{Change, Recurring};
pub use shell::ShellWord;
