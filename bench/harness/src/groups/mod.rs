//! The groups: each answers one question.

pub mod arc;
pub mod caching;
mod dropped;
pub mod idle;
pub mod metadata;
pub mod sequential;
pub mod workloads;

use crate::error::Result;
use crate::session::Session;

/// Runs a group and writes its results.
pub type Group = fn(&Session) -> Result<()>;

/// All groups by name, in the order they run.
pub const GROUPS: [(&str, Group); 6] = [
    ("arc", arc::run),
    ("sequential", sequential::run),
    ("metadata", metadata::run),
    ("idle", idle::run),
    ("caching", caching::run),
    ("workloads", workloads::run),
];
