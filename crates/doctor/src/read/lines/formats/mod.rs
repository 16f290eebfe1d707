//! The formats of lines, as data.

pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod tools;
