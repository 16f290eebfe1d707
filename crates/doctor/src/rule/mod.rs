//! Rules: one file for each cause. Their authors know ZFS and need no Rust.
//!
//! [`format`](RuleText) is the text as serde reads it; [`Rule`] is the same with compiled
//! expressions; [`RuleSet`] is all rules. The rules of this crate are compiled in, and more can be
//! read from a directory. `docs/rules.md` teaches the format.

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
