//! What every reader stands on: bytes as clean lines, sections, figures, one spelling of
//! names, and `reading`, which facts are written to.
//!
//! Nothing here knows a format.

pub(super) mod boundary;
pub(super) mod clean;
pub(crate) mod frame;
pub(super) mod number;
pub(super) mod reading;
pub(super) mod section;
pub(super) mod word_lists;
