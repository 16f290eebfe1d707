//! The base of every reader: bytes as clean lines, sections, figures, one spelling of names, and
//! `reading`, which adds facts to the evidence.
//!
//! No module here depends on a format.

pub(super) mod boundary;
pub(super) mod clean;
pub(crate) mod frame;
pub(super) mod number;
pub(super) mod reading;
pub(super) mod section;
pub(super) mod word_lists;
