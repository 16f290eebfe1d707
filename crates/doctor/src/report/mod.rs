//! The formats of an answer: for a terminal (short or whole), as JSON and as a page; and a rule for
//! people.

mod compare;
mod explain;
mod fleet;
mod html;
mod json;
mod outline;
mod reading;
mod short;
mod style;
mod text;

pub use compare::{COMPARISON_VERSION, comparison, comparison_json};
pub use explain::{explain, list};
pub use fleet::{FLEET_VERSION, fleet, fleet_html, fleet_json};
pub use html::html;
pub use json::{JSON_VERSION, json};
pub(crate) use short::headline;
pub use short::{SHORT_LINES, short};
pub use style::Style;
pub use text::text;

use crate::answers::Answers;
use crate::diagnose::Finding;
use crate::evidence::Source;
use crate::expression::Format;

/// The first three answers: the question, the answer in a sentence, and its sources.
fn three(answers: &Answers) -> [(&'static str, String, &[Source]); 3] {
    let Answers { cpu, users, zfs } = answers;
    let is_its = if zfs.name == "ogive" { "is it ogive" } else { "is it ZFS" };
    [
        ("is it CPU", cpu.sentence(), &cpu.sources),
        ("who uses it", users.sentence(), &users.sources),
        (is_its, zfs.sentence(), &zfs.sources),
    ]
}

/// The confidence in a finding, as text.
fn sure(finding: &Finding) -> String {
    let hint = if finding.is_hint { ", from words in unread lines" } else { "" };
    format!("{} ({:.0}%){hint}", finding.word, finding.confidence * 100.0)
}

/// The share that a finding explains, as text, if known.
fn share(finding: &Finding) -> Option<String> {
    Some(format!("{} of the busy CPU", Format::Percent.write(finding.share_percent?)))
}
