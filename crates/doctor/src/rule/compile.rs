//! A rule with its expressions compiled.

use super::patterns;
use super::text::{Advice, LookAlikeText, RuleText, SignKind, SignText};
use crate::atlas;
use crate::expression::{Expression, ExpressionError, Template};

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// It is not TOML, or not of the format.
    #[error("{file}: {reason}")]
    Format {
        /// File of the rule.
        file: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// An expression in it is wrong.
    #[error("{file}: {place}: {source}")]
    Expression {
        /// File of the rule.
        file: String,
        /// Where in the rule.
        place: String,
        /// What is wrong.
        source: ExpressionError,
    },
    /// A pattern that it names is missing, unused or wrong.
    #[error("{file}: patterns.{name}: {reason}")]
    Pattern {
        /// File of the rule.
        file: String,
        /// Name of the pattern.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A directory of rules cannot be read.
    #[error("{path}: {reason}")]
    Read {
        /// The path.
        path: String,
        /// What the system says.
        reason: String,
    },
}

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// The rule as written, with its named patterns written out.
    pub text: RuleText,
    /// The verdict.
    pub verdict: Template,
    /// The gate.
    pub applies: Option<Expression>,
    /// The share it can be shown to take.
    pub share: Option<Expression>,
    /// The signs.
    pub signs: Vec<Sign>,
    /// The neighbours.
    pub lookalikes: Vec<LookAlike>,
    /// Where the releases with its fix are advised.
    pub fix_when: Option<Expression>,
    /// What to do.
    pub remedy: RemedyLines,
}

/// A compiled remedy.
#[derive(Debug)]
pub struct RemedyLines {
    /// At once, and to be taken back.
    pub now: Vec<RemedyLine>,
    /// For good.
    pub lasting: Vec<RemedyLine>,
    /// How to see that it worked.
    pub verify: Vec<RemedyLine>,
    /// What does not help.
    pub dont: Vec<RemedyLine>,
}

/// A compiled line of a remedy.
#[derive(Debug)]
pub struct RemedyLine {
    /// What to do.
    pub text: String,
    /// It is advised only where this holds.
    pub when: Option<Expression>,
    /// It is not advised where this holds.
    pub unless: Option<Expression>,
}

/// A compiled sign.
#[derive(Debug)]
pub struct Sign {
    /// What it stands on.
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

/// A compiled neighbour.
#[derive(Debug)]
pub struct LookAlike {
    /// Its rule.
    pub cause: String,
    /// Condition under which it is out.
    pub ruled_out: Option<Expression>,
    /// By which fact.
    pub because: Template,
    /// What to run where it is open.
    pub ask: Option<String>,
}

impl Rule {
    /// Reads and compiles a rule; `file` is for messages.
    ///
    /// # Errors
    /// [`RuleError`] says where and what.
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
            // A commit that is not known is a fault that lint names.
            text.fixed = atlas::fixed_by(&text.fix).unwrap_or_default();
        }
        Self::compile(file, text)
    }

    fn compile(file: &str, text: RuleText) -> Result<Self, RuleError> {
        let at = |place: &str| {
            let (file, place) = (file.to_owned(), place.to_owned());
            move |source| RuleError::Expression { file, place, source }
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
        let lookalike = |neighbour: &LookAlikeText| -> Result<LookAlike, RuleError> {
            Ok(LookAlike {
                cause: neighbour.cause.clone(),
                ruled_out: expression(&neighbour.ruled_out, "lookalikes.ruled_out")?,
                because: Template::parse(&neighbour.because).map_err(at("lookalikes.because"))?,
                ask: neighbour.ask.clone(),
            })
        };
        let line = |advice: &Advice| -> Result<RemedyLine, RuleError> {
            Ok(RemedyLine {
                text: advice.text.clone(),
                when: expression(&advice.when, "remedy.when")?,
                unless: expression(&advice.unless, "remedy.unless")?,
            })
        };
        let lines = |lines: &[Advice]| lines.iter().map(line).collect::<Result<Vec<_>, _>>();
        let remedy = RemedyLines {
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
            lookalikes: text.lookalikes.iter().map(lookalike).collect::<Result<_, _>>()?,
            text,
        })
    }

    /// Every expression of the rule, with the place it stands at.
    pub fn expressions(&self) -> Vec<(String, &Expression)> {
        let mut all = Vec::new();
        all.extend(self.verdict.expressions().map(|expression| ("verdict".to_owned(), expression)));
        all.extend(self.applies.iter().map(|expression| ("applies".to_owned(), expression)));
        all.extend(self.share.iter().map(|expression| ("share".to_owned(), expression)));
        all.extend(self.fix_when.iter().map(|expression| ("fix_when".to_owned(), expression)));
        let remedy = &self.remedy;
        let lines = [&remedy.now, &remedy.lasting, &remedy.verify, &remedy.dont];
        for line in lines.into_iter().flatten() {
            all.extend(line.when.iter().map(|when| ("remedy.when".to_owned(), when)));
            all.extend(line.unless.iter().map(|unless| ("remedy.unless".to_owned(), unless)));
        }
        for (at, sign) in self.signs.iter().enumerate() {
            all.push((format!("signs[{at}].when"), &sign.when));
            all.extend(
                sign.text.expressions().map(|expression| (format!("signs[{at}].text"), expression)),
            );
        }
        for (at, neighbour) in self.lookalikes.iter().enumerate() {
            all.extend(
                neighbour
                    .ruled_out
                    .iter()
                    .map(|expression| (format!("lookalikes[{at}].ruled_out"), expression)),
            );
            all.extend(
                neighbour
                    .because
                    .expressions()
                    .map(|expression| (format!("lookalikes[{at}].because"), expression)),
            );
        }
        all
    }
}
