//! A rule as it is written (TOML).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::action::{self, ActionText};
use crate::facts::Requires;

/// What ZFS, or another named user, has to do with the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// ZFS (or ogive) wastes it.
    Cause,
    /// ZFS uses it for work that was asked for.
    LegitWork,
    /// ZFS is not the one.
    Innocent,
    /// It is not CPU at all.
    NotCpu,
    /// A program in user space, ZFS's own tools included, is the one, or provokes it.
    UserProcess,
    /// The kernel outside of ZFS.
    Kernel,
    /// It cannot be told.
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
    /// A few words.
    pub title: String,
    /// The verdict in a sentence (template).
    pub verdict: String,
    /// Why it happens, in two to four sentences.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// How sure the knowledge is: A maintainer or fix, B test or strong pattern, C pattern.
    pub grade: String,
    /// Log-odds before any sign.
    #[serde(default = "default_prior")]
    pub prior: f64,
    /// Gate: false puts the rule out.
    #[serde(default)]
    pub applies: Option<String>,
    /// The requirements without which it is impossible.
    #[serde(default)]
    pub requires: Requires,
    /// Percent of the busy CPU that it can be shown to take.
    #[serde(default)]
    pub share: Option<String>,
    /// Commits of OpenZFS or SPL that end it, ten digits each.
    #[serde(default)]
    pub fix: Vec<String>,
    /// Condition without which these releases are no advice: the rule is about more than they end.
    #[serde(default)]
    pub fix_when: Option<String>,
    /// First releases with the fix, one a branch; of commits the atlas knows them.
    #[serde(default)]
    pub fixed: Vec<String>,
    /// Affected versions, in words.
    #[serde(default)]
    pub affected: Option<String>,
    /// Kinds of evidence that would settle it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Probes that would settle it, best first.
    pub ask: Vec<String>,
    /// Where the knowledge is from.
    #[serde(default)]
    pub references: Vec<String>,
    /// Patterns that its expressions use by name.
    #[serde(default, skip_serializing)]
    pub patterns: BTreeMap<String, String>,
    /// Signs for and against.
    #[serde(default)]
    pub signs: Vec<SignText>,
    /// Rules that look like it: their own signs say what separates them.
    #[serde(default)]
    pub lookalikes: Vec<String>,
    /// What to do.
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
    /// Signs of one group say the same; only the strongest that holds counts.
    #[serde(default)]
    pub group: Option<String>,
    /// The line of evidence (template).
    pub text: String,
}

/// What to do, as a rule has it for any host. Of the lines of a list the first that fits the host
/// is the one that is shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemedyText {
    /// At once, and to be taken back.
    #[serde(default, deserialize_with = "action::lines")]
    pub now: Vec<ActionText>,
    /// For good.
    #[serde(default, deserialize_with = "action::lines")]
    pub lasting: Vec<ActionText>,
    /// How to see that it worked.
    #[serde(default, deserialize_with = "action::lines")]
    pub verify: Vec<ActionText>,
    /// Advice that does not help.
    #[serde(default, deserialize_with = "action::lines")]
    pub dont: Vec<ActionText>,
}

impl RemedyText {
    /// Every line of it.
    pub fn lines(&self) -> impl Iterator<Item = &ActionText> {
        [&self.now, &self.lasting, &self.verify, &self.dont].into_iter().flatten()
    }

    /// The same, to be changed.
    pub(super) fn lines_mut(&mut self) -> impl Iterator<Item = &mut ActionText> {
        [&mut self.now, &mut self.lasting, &mut self.verify, &mut self.dont].into_iter().flatten()
    }
}

/// What to do on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// At once, and to be taken back.
    pub now: Vec<String>,
    /// For good.
    pub lasting: Vec<String>,
    /// How to see that it worked.
    pub verify: Vec<String>,
    /// What does not help.
    pub dont: Vec<String>,
    /// What `now` changes, as it is run.
    pub changes: Vec<Change>,
    /// Whether what `verify` says holds by this evidence, where it can be told.
    pub worked: Option<bool>,
}

/// A command that changes the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// It.
    pub run: String,
    /// The command that takes it back.
    pub undo: Option<String>,
}

impl Change {
    /// It in a sentence, with its way back.
    pub(crate) fn in_words(&self) -> String {
        match &self.undo {
            Some(undo) => format!("`{}` (undo: `{undo}`)", self.run),
            None => format!("`{}`", self.run),
        }
    }
}

/// A test: files as people would paste them, and what must come out.
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
    /// It is reported.
    Possible,
    /// It is not reported.
    Absent,
    /// The verdict is that the evidence does not suffice.
    Insufficient,
}

fn default_prior() -> f64 {
    -3.0
}
