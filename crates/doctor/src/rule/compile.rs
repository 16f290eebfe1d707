//! A rule with its expressions compiled.

use super::action::{Action, ActionText};
use super::patterns;
use super::text::{RuleText, SignKind, SignText};
use crate::atlas;
use crate::expression::{Expression, ExpressionError, Template};

/// The reason why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// It is not TOML, or not in the format.
    #[error("{file}: {reason}")]
    Format {
        /// File of the rule.
        file: String,
        /// The fault, with line and column.
        reason: String,
    },
    /// An expression in it is wrong.
    #[error("{file}: {place}: {error}")]
    Expression {
        /// File of the rule.
        file: String,
        /// The place in the rule.
        place: String,
        /// The fault.
        error: ExpressionError,
    },
    /// A pattern that it names is missing, unused or wrong.
    #[error("{file}: patterns.{name}: {reason}")]
    Pattern {
        /// File of the rule.
        file: String,
        /// Name of the pattern.
        name: String,
        /// The fault.
        reason: String,
    },
    /// A directory of rules cannot be read.
    #[error("{path}: {reason}")]
    Read {
        /// The path.
        path: String,
        /// The message of the system.
        reason: String,
    },
}

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// The rule as written, with its named patterns expanded.
    pub text: RuleText,
    /// The verdict.
    pub verdict: Template,
    /// The gate.
    pub applies: Option<Expression>,
    /// The percent of the busy CPU that it takes.
    pub share: Option<Expression>,
    /// The signs.
    pub signs: Vec<Sign>,
    /// The condition for advising the releases with its fix.
    pub fix_when: Option<Expression>,
    /// The remedy.
    pub remedy: Actions,
}

/// A compiled remedy.
#[derive(Debug)]
pub struct Actions {
    /// Done at once, and undone later.
    pub now: Vec<Action>,
    /// Permanent.
    pub lasting: Vec<Action>,
    /// The signs of success.
    pub verify: Vec<Action>,
    /// The actions that do not help.
    pub dont: Vec<Action>,
}

impl Actions {
    /// All its lines.
    pub fn all(&self) -> impl Iterator<Item = &Action> {
        [&self.now, &self.lasting, &self.verify, &self.dont].into_iter().flatten()
    }
}

/// A compiled sign.
#[derive(Debug)]
pub struct Sign {
    /// Its kind.
    pub kind: SignKind,
    /// Its condition.
    pub when: Expression,
    /// Log-odds when true.
    pub weight: f64,
    /// Log-odds when false.
    pub otherwise: f64,
    /// Its group.
    pub group: Option<String>,
    /// Its line of evidence.
    pub text: Template,
}

impl Sign {
    /// Its text for figures that are not known yet. `None` if it names a value, or asks for a low
    /// figure.
    pub(crate) fn sought(&self) -> Option<String> {
        let is_plain = self.text.expressions().next().is_none();
        if !is_plain && self.when.asks_for_less() {
            return None;
        }
        self.text.sought()
    }
}

impl Rule {
    /// Reads and compiles a rule; `file` is for messages.
    ///
    /// # Errors
    /// [`RuleError`] with the place and the fault.
    pub fn parse(file: &str, content: &str) -> Result<Self, RuleError> {
        let mut text: RuleText = toml::from_str(content).map_err(|error| RuleError::Format {
            file: file.to_owned(),
            reason: error.to_string(),
        })?;
        patterns::write_out(&mut text).map_err(|fault| RuleError::Pattern {
            file: file.to_owned(),
            name: fault.name,
            reason: fault.reason,
        })?;
        if !text.fix.is_empty() && text.fixed.is_empty() {
            // An unknown commit is a fault that lint reports.
            text.fixed = atlas::fixed_by(&text.fix).unwrap_or_default();
        }
        Self::compile(file, text)
    }

    fn compile(file: &str, text: RuleText) -> Result<Self, RuleError> {
        let at = |place: &str| {
            let (file, place) = (file.to_owned(), place.to_owned());
            move |error| RuleError::Expression { file, place, error }
        };
        let expression = |source: &Option<String>, place: &str| {
            source.as_deref().map(Expression::compile).transpose().map_err(at(place))
        };
        let sign = |sign: &SignText| -> Result<Sign, RuleError> {
            Ok(Sign {
                kind: sign.kind,
                when: Expression::compile(&sign.when).map_err(at("signs.when"))?,
                weight: sign.weight,
                otherwise: sign.otherwise,
                group: sign.group.clone(),
                text: Template::parse(&sign.text).map_err(at("signs.text"))?,
            })
        };
        let line = |text: &ActionText| -> Result<Action, RuleError> {
            Ok(Action {
                when: expression(&text.when, "remedy.when")?,
                unless: expression(&text.unless, "remedy.unless")?,
                amount: expression(&text.amount, "remedy.amount")?,
                old: expression(&text.old, "remedy.old")?,
                holds: expression(&text.holds, "remedy.holds")?,
                text: text.clone(),
            })
        };
        let lines = |lines: &[ActionText]| lines.iter().map(line).collect::<Result<Vec<_>, _>>();
        let remedy = Actions {
            now: lines(&text.remedy.now)?,
            lasting: lines(&text.remedy.lasting)?,
            verify: lines(&text.remedy.verify)?,
            dont: lines(&text.remedy.dont)?,
        };
        Ok(Self {
            remedy,
            fix_when: expression(&text.fix_when, "fix_when")?,
            verdict: Template::parse(&text.verdict).map_err(at("verdict"))?,
            applies: expression(&text.applies, "applies")?,
            share: expression(&text.share, "share")?,
            signs: text.signs.iter().map(sign).collect::<Result<_, _>>()?,
            text,
        })
    }

    /// Every expression of the rule, with its place.
    pub fn expressions(&self) -> Vec<(String, &Expression)> {
        let mut all = Vec::new();
        all.extend(self.verdict.expressions().map(|expression| ("verdict".to_owned(), expression)));
        all.extend(self.applies.iter().map(|expression| ("applies".to_owned(), expression)));
        all.extend(self.share.iter().map(|expression| ("share".to_owned(), expression)));
        all.extend(self.fix_when.iter().map(|expression| ("fix_when".to_owned(), expression)));
        for line in self.remedy.all() {
            all.extend(line.expressions().map(|(place, one)| (place.to_owned(), one)));
        }
        for (at, sign) in self.signs.iter().enumerate() {
            all.push((format!("signs[{at}].when"), &sign.when));
            all.extend(
                sign.text.expressions().map(|expression| (format!("signs[{at}].text"), expression)),
            );
        }
        all
    }
}
