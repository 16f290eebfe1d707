//! Expressions of rules: CEL (the Common Expression Language, <https://cel.dev>) over facts.
//!
//! Truth has three values. A function whose fact is missing fails inside CEL. `&&` and `||` ignore
//! that if the other side decides. Otherwise the value of the whole expression is *not known*, and
//! the trace names the missing fact. Any other failure (an unknown name, a wrong pattern) is a
//! fault of the rule.

mod functions;
mod lint;
mod template;

use std::sync::Arc;

use cel::{Context, ExecutionError, Program, Value};
use parking_lot::Mutex;

use crate::facts::{Facts, Trace};

pub use functions::{FUNCTIONS, Function};
pub use lint::{asks_for_words, faults};
pub use template::{Format, Template};

/// Longest expression that is compiled.
const MAX_EXPRESSION_BYTES: usize = 4000;
/// Beginning of the message for a missing fact.
const ABSENT: &str = "absent: ";

/// A fault of a rule's text.
#[derive(Debug, thiserror::Error)]
pub enum ExpressionError {
    /// It does not parse.
    #[error("{expression}: {reason}")]
    Syntax {
        /// The expression.
        expression: String,
        /// The message of the parser.
        reason: String,
    },
    /// It parses but cannot be evaluated, with any evidence.
    #[error("{expression}: {reason}")]
    Evaluation {
        /// The expression.
        expression: String,
        /// The fault.
        reason: String,
    },
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    source: String,
    program: Program,
}

impl Expression {
    /// Compiles.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] with the parser's words.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        let fault =
            |reason: String| ExpressionError::Syntax { expression: source.to_owned(), reason };
        if source.len() > MAX_EXPRESSION_BYTES {
            return Err(fault(format!("longer than {MAX_EXPRESSION_BYTES} bytes")));
        }
        let program = Program::compile(source).map_err(|error| fault(error.to_string()))?;
        Ok(Self { source: source.to_owned(), program })
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it uses `<` or `<=`.
    pub(crate) fn asks_for_less(&self) -> bool {
        lint::calls(self, &["_<_", "_<=_"])
    }

    /// The compiled program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// True or false.
    Truth(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A fact was missing.
    NotKnown,
}

/// The facts behind the functions of the language.
pub struct Environment {
    facts: Arc<Facts>,
    context: Context<'static>,
    share: Arc<Mutex<Option<f64>>>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Environment {
    /// The language over these facts.
    pub fn new(facts: Facts) -> Self {
        let facts = Arc::new(facts);
        let share = Arc::new(Mutex::new(None));
        let context = functions::context(&facts, &share);
        Self { facts, context, share }
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Sets the value of `share()` while the texts of one rule are written.
    pub fn set_share(&self, share: Option<f64>) {
        *self.share.lock() = share;
    }

    /// Evaluates an expression, and returns the facts that it used.
    ///
    /// # Errors
    /// [`ExpressionError::Evaluation`] if the expression itself is wrong.
    pub fn evaluate(&self, expression: &Expression) -> Result<(Answer, Trace), ExpressionError> {
        self.facts.start_trace();
        let result = expression.program.execute(&self.context);
        let trace = self.facts.take_trace();
        let fault = |reason: String| ExpressionError::Evaluation {
            expression: expression.source.clone(),
            reason,
        };
        match result {
            Ok(Value::Bool(truth)) => Ok((Answer::Truth(truth), trace)),
            Ok(Value::Float(number)) => Ok((number_or_unknown(number), trace)),
            #[expect(clippy::cast_precision_loss, reason = "a literal in a rule")]
            Ok(Value::Int(number)) => Ok((Answer::Number(number as f64), trace)),
            #[expect(clippy::cast_precision_loss, reason = "a literal in a rule")]
            Ok(Value::UInt(number)) => Ok((Answer::Number(number as f64), trace)),
            Ok(Value::String(text)) => Ok((Answer::Text(text.to_string()), trace)),
            Ok(other) => Err(fault(format!("is neither a truth, a number nor text: {other:?}"))),
            Err(ExecutionError::FunctionError { message, .. }) if message.starts_with(ABSENT) => {
                Ok((Answer::NotKnown, trace))
            }
            Err(error) => Err(fault(error.to_string())),
        }
    }

    /// Evaluates a condition; `None` means "not known".
    ///
    /// # Errors
    /// [`ExpressionError::Evaluation`] if it is not a condition.
    pub fn truth(&self, expression: &Expression) -> Result<(Option<bool>, Trace), ExpressionError> {
        match self.evaluate(expression)? {
            (Answer::Truth(truth), trace) => Ok((Some(truth), trace)),
            (Answer::NotKnown, trace) => Ok((None, trace)),
            (other, _) => Err(ExpressionError::Evaluation {
                expression: expression.source.clone(),
                reason: format!("is not a condition but {other:?}"),
            }),
        }
    }

    /// Evaluates a number; `None` means "not known".
    ///
    /// # Errors
    /// [`ExpressionError::Evaluation`] if it is not a number.
    pub fn number(&self, expression: &Expression) -> Result<Option<f64>, ExpressionError> {
        match self.evaluate(expression)?.0 {
            Answer::Number(number) => Ok(Some(number)),
            Answer::NotKnown => Ok(None),
            other => Err(ExpressionError::Evaluation {
                expression: expression.source.clone(),
                reason: format!("is not a number but {other:?}"),
            }),
        }
    }
}

fn number_or_unknown(number: f64) -> Answer {
    if number.is_finite() { Answer::Number(number) } else { Answer::NotKnown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;

    fn truth(text: &str) -> Option<bool> {
        let environment = Environment::new(Facts::new(Evidence::default()));
        environment.truth(&Expression::compile(text).unwrap()).unwrap().0
    }

    #[test]
    fn a_missing_fact_is_unknown_and_not_false() {
        assert_eq!(truth(r#"thread_cpu("arc_prune") > 50"#), None);
        assert_eq!(truth(r#"thread_cpu("arc_prune") > 50 && ogive()"#), Some(false));
        assert_eq!(truth(r#"thread_cpu("arc_prune") > 50 || !ogive()"#), Some(true));
        assert_eq!(truth(r#"shown("profile")"#), Some(false));
        assert_eq!(truth(r#"thread_cpu("a") > 1 ? true : false"#), None);
    }

    #[test]
    fn an_unknown_name_is_a_fault() {
        let environment = Environment::new(Facts::new(Evidence::default()));
        let wrong = Expression::compile("no_such_function(1)").unwrap();
        assert!(environment.evaluate(&wrong).is_err());
        assert!(Expression::compile("1 +").is_err());
    }

    #[test]
    fn the_trace_names_missing_facts() {
        let environment = Environment::new(Facts::new(Evidence::default()));
        let expression = Expression::compile(r#"gauge("arcstats.c") > 1"#).unwrap();
        let (_, trace) = environment.evaluate(&expression).unwrap();
        assert_eq!(trace.absent, ["arcstats.c"]);
    }
}
