//! Text for people, written in one way by all crates: [`escape`] for pages and pictures, [`Bytes`]
//! for sizes, [`Recurring`] for messages about what comes and goes.
//!
//! All are pure functions of their arguments, and know of nothing else here.
#![forbid(unsafe_code)]

mod bytes;
mod markup;
mod said;

pub use bytes::Bytes;
pub use markup::escape;
pub use said::{Change, Recurring};
