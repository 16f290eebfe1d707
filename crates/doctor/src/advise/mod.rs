//! The next commands and the remedy for this host.
//!
//! Probes, commands and actions are data (`probes.toml`, `actions.toml`, a rule's `[remedy]`). Here
//! they get the host's names, are checked against the host, and are written out. A command is
//! printed only if its system has it, every name in it is known, and its setting exists, fits and
//! changes something. Written text is never parsed again.
//!
//! Names from the evidence enter a command only as an [`Argument`](argument::Argument).

mod argument;
mod host_probe;
mod next_step;
mod parameter;
mod property;
mod remedy;
mod slots;

pub(crate) use host_probe::{asked, for_host};
pub use next_step::Step;
pub(crate) use next_step::{Near, step};
pub(crate) use remedy::remedy;
pub(crate) use slots::{is_of_zfs, works_in_pools};

use crate::facts::Facts;

/// Whether the evidence shows a pool.
pub(crate) fn has_pool(facts: &Facts) -> bool {
    slots::has_pool(facts) == Some(true)
}

/// The system by its name in the evidence; empty where unknown.
pub(crate) fn system(facts: &Facts) -> String {
    match facts.os_or_named().unwrap_or_default().as_str() {
        "solaris" => "illumos".to_owned(),
        name => name.to_owned(),
    }
}
