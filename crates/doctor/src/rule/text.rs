//! A rule as written (TOML).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::action::{self, ActionText};
use crate::facts::Requires;

/// The relation of ZFS, or of another named user, to the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// ZFS (or ogive) wastes CPU.
    Cause,
    /// ZFS uses CPU for work that was requested.
    LegitWork,
    /// ZFS is innocent.
    Innocent,
    /// The CPU is not the problem.
    NotCpu,
    /// A program in user space, including ZFS's own tools, uses the CPU or provokes its use.
    UserProcess,
    /// The kernel outside ZFS uses the CPU.
    Kernel,
    /// The cause is unknown.
    Unknown,
}

/// Kinds of signs, strong to weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignKind {
    /// Functions of a profile or of stacks.
    Symbol,
    /// A lock and its caller.
    Lock,
    /// A relation of figures.
    Counter,
    /// Lines of a log.
    Log,
    /// CPU or state of threads, by name.
    Thread,
    /// Properties and parameters.
    Config,
    /// Facts about the host.
    Host,
    /// Versions.
    Version,
    /// Words that a person wrote.
    Words,
}

/// A rule.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// Name of the cause, and of the file.
    pub id: String,
    /// Family of causes.
    pub family: String,
    /// The role of the cause.
    pub role: Role,
    /// A short title.
    pub title: String,
    /// The verdict as a sentence (template).
    pub verdict: String,
    /// The mechanism, in two to four sentences.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// The grade of the knowledge: A maintainer or fix, B test or strong pattern, C pattern.
    pub grade: String,
    /// Log-odds before any sign.
    #[serde(default = "default_prior")]
    pub prior: f64,
    /// Gate: the rule is out if it is false.
    #[serde(default)]
    pub applies: Option<String>,
    /// The facts without which the cause is impossible.
    #[serde(default)]
    pub requires: Requires,
    /// The percent of the busy CPU that it takes.
    #[serde(default)]
    pub share: Option<String>,
    /// Commits of OpenZFS or SPL that end it, ten digits each.
    #[serde(default)]
    pub fix: Vec<String>,
    /// Condition for advising these releases, if the rule covers more than they fix.
    #[serde(default)]
    pub fix_when: Option<String>,
    /// First releases with the fix, one a branch; the atlas knows those of commits.
    #[serde(default)]
    pub fixed: Vec<String>,
    /// Affected versions, as text.
    #[serde(default)]
    pub affected: Option<String>,
    /// Kinds of evidence that would decide it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Probes that would decide it, best first.
    pub ask: Vec<String>,
    /// The sources of the knowledge.
    #[serde(default)]
    pub references: Vec<String>,
    /// Patterns that its expressions use by name.
    #[serde(default, skip_serializing)]
    pub patterns: BTreeMap<String, String>,
    /// Signs for and against.
    #[serde(default)]
    pub signs: Vec<SignText>,
    /// Rules that look like it; their own signs separate them.
    #[serde(default)]
    pub lookalikes: Vec<String>,
    /// The remedy.
    pub remedy: RemedyText,
    /// Its own tests.
    #[serde(default)]
    pub tests: Vec<TestText>,
}

/// A sign.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SignText {
    /// Its kind.
    pub kind: SignKind,
    /// Condition.
    pub when: String,
    /// Log-odds added when true.
    pub weight: f64,
    /// Log-odds added when false.
    #[serde(default)]
    pub otherwise: f64,
    /// The signs of one group repeat one observation; only the strongest that holds counts.
    #[serde(default)]
    pub group: Option<String>,
    /// The line of evidence (template).
    pub text: String,
}

/// The remedy as a rule has it, for any host. Of each list, the first line that fits the host is
/// shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemedyText {
    /// Done at once, and undone later.
    #[serde(default, deserialize_with = "action::lines")]
    pub now: Vec<ActionText>,
    /// Permanent.
    #[serde(default, deserialize_with = "action::lines")]
    pub lasting: Vec<ActionText>,
    /// The signs of success.
    #[serde(default, deserialize_with = "action::lines")]
    pub verify: Vec<ActionText>,
    /// Advice that does not help.
    #[serde(default, deserialize_with = "action::lines")]
    pub dont: Vec<ActionText>,
}

impl RemedyText {
    /// All its lines.
    pub fn lines(&self) -> impl Iterator<Item = &ActionText> {
        [&self.now, &self.lasting, &self.verify, &self.dont].into_iter().flatten()
    }

    /// The same, mutable.
    pub(super) fn lines_mut(&mut self) -> impl Iterator<Item = &mut ActionText> {
        [&mut self.now, &mut self.lasting, &mut self.verify, &mut self.dont].into_iter().flatten()
    }
}

/// The remedy for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Done at once, and undone later.
    pub now: Vec<String>,
    /// Permanent.
    pub lasting: Vec<String>,
    /// The signs of success.
    pub verify: Vec<String>,
    /// Advice that does not help.
    pub dont: Vec<String>,
    /// The commands of `now`.
    pub changes: Vec<Change>,
    /// Whether `verify` holds by this evidence, if it can be checked.
    pub worked: Option<bool>,
}

/// A command that changes the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The command.
    pub run: String,
    /// The command that undoes it.
    pub undo: Option<String>,
}

impl Change {
    /// The change as a sentence, with its undo.
    pub(crate) fn in_words(&self) -> String {
        match &self.undo {
            Some(undo) => format!("`{}` (undo: `{undo}`)", self.run),
            None => format!("`{}`", self.run),
        }
    }
}

/// A test: files as people would paste them, and the expected result.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TestText {
    /// Its name, for people.
    pub name: String,
    /// The expected result.
    pub expect: Expectation,
    /// File name and content.
    pub files: BTreeMap<String, String>,
}

/// The expected result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// It is the first finding.
    First,
    /// It is reported as certain.
    Certain,
    /// It is reported as likely or better.
    Likely,
    /// It is reported as possible or better.
    Possible,
    /// It is not reported.
    Absent,
    /// The verdict is that the evidence does not suffice.
    Insufficient,
}

fn default_prior() -> f64 {
    -3.0
}
