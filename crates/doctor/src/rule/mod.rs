//! Rules: one file a cause, written by people who know ZFS and need know no Rust.
//!
//! [`format`](RuleText) is the text as serde reads it; [`Rule`] is the same with its expressions
//! compiled; [`RuleSet`] is all of them. The rules of this crate are compiled in, and a directory
//! of further ones can be read. The format is taught in `docs/rules.md`.

mod action;
mod compile;
mod lint;
mod patterns;
mod probe;
mod set;
mod text;
mod weights;

pub use action::{Action, ActionText, Direction};
pub use compile::{Actions, Rule, RuleError, Sign};
pub use lint::lint;
pub use probe::{Command, Probe, Question, command, commands, probe, probes};
pub use set::RuleSet;
pub use text::{
    Change, Expectation, Remedy, RemedyText, Role, RuleText, SignKind, SignText, TestText,
};
pub use weights::sign_key;
