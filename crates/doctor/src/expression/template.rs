//! Texts that contain expressions: `{self_share("^aes_")|percent} of the samples`.

use super::{Answer, Environment, Expression, ExpressionError};
use crate::evidence::Source;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As its type suggests.
    Plain,
    /// `12.3%`
    Percent,
    /// `1.5 GiB`
    Bytes,
    /// `38/s`
    Rate,
    /// `1,234`
    Count,
    /// `3.14`
    Number,
    /// `1.5 s`, `12 days`
    Seconds,
}

impl Format {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "percent" => Self::Percent,
            "bytes" => Self::Bytes,
            "rate" => Self::Rate,
            "count" => Self::Count,
            "number" => Self::Number,
            "seconds" => Self::Seconds,
            "text" => Self::Plain,
            _ => return None,
        })
    }

    /// Writes a number.
    pub fn write(self, value: f64) -> String {
        // Avoids "-0".
        let value = if value.abs() < 1e-9 { 0.0 } else { value };
        match self {
            Self::Percent if value.abs() < 1.0 && value != 0.0 => format!("{value:.1}%"),
            Self::Percent if value.abs() < 9.95 => format!("{}%", trimmed(value, 1)),
            Self::Percent => format!("{value:.0}%"),
            Self::Bytes => bytes(value),
            Self::Rate => format!("{}/s", grouped(value)),
            Self::Count => grouped(value),
            Self::Number | Self::Plain => trimmed(value, 2),
            Self::Seconds => seconds(value),
        }
    }
}

#[derive(Debug)]
enum Part {
    Words(String),
    Value(Expression, Format),
}

/// The text written from a template.
#[derive(Debug)]
pub struct Written {
    /// Its text.
    pub text: String,
    /// The sources of its figures.
    pub sources: Vec<Source>,
    /// Whether all of its figures are known.
    pub is_whole: bool,
}

/// A text that contains expressions.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] for an expression that does not parse, or an open brace.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Words(rest[..open].to_owned()));
            }
            let inner = &rest[open + 1..];
            let close = closing(inner).ok_or_else(|| ExpressionError::Syntax {
                expression: text.to_owned(),
                reason: "a brace is not closed".to_owned(),
            })?;
            let (expression, format) = split_format(&inner[..close]);
            parts.push(Part::Value(Expression::compile(expression.trim())?, format));
            rest = &inner[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Words(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The text with each of its expressions changed by `change`. The rest after an open brace
    /// stays, so that [`parse`](Self::parse) reports the brace.
    ///
    /// # Errors
    /// Those of `change`.
    pub(crate) fn with_expressions<E>(
        text: &str,
        mut change: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<String, E> {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((words, inner)) = rest.split_once('{') {
            let Some(close) = closing(inner) else { break };
            let (expression, _) = split_format(&inner[..close]);
            out.push_str(words);
            out.push('{');
            out.push_str(&change(expression)?);
            out.push_str(&inner[expression.len()..=close]);
            rest = &inner[close + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The expressions in it.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Value(expression, _) => Some(expression),
        })
    }

    /// Writes the text; unknown figures become "?".
    ///
    /// # Errors
    /// [`ExpressionError::Evaluation`] for an expression that is wrong.
    pub fn write(&self, environment: &Environment) -> Result<Written, ExpressionError> {
        let (mut text, mut sources, mut is_whole) = (String::new(), Vec::new(), true);
        for part in &self.parts {
            match part {
                Part::Words(words) => text.push_str(words),
                Part::Value(expression, format) => {
                    let (answer, trace) = environment.evaluate(expression)?;
                    match answer {
                        Answer::Number(number) => text.push_str(&format.write(number)),
                        Answer::Text(words) => text.push_str(&words),
                        Answer::Truth(truth) => text.push_str(if truth { "yes" } else { "no" }),
                        Answer::NotKnown => {
                            is_whole = false;
                            text.push('?');
                        }
                    }
                    for source in trace.sources {
                        if !sources.contains(&source) {
                            sources.push(source);
                        }
                    }
                }
            }
        }
        Ok(Written { text, sources, is_whole })
    }

    /// The text without its clauses that have an unknown figure; `None` if no clause remains. A
    /// clause ends at a comma, a semicolon, a colon, or an "and" after a figure.
    ///
    /// # Errors
    /// [`ExpressionError::Evaluation`] for an expression that is wrong.
    pub fn write_known(
        &self,
        environment: &Environment,
    ) -> Result<Option<String>, ExpressionError> {
        // The text of each clause, and whether all of it is known.
        let mut clauses: Vec<(String, bool)> = vec![(String::new(), true)];
        for part in &self.parts {
            let open = clauses.len() - 1;
            match part {
                Part::Words(words) => {
                    let mut pieces = words.split_inclusive([',', ';', ':']);
                    clauses[open].0.push_str(pieces.next().unwrap_or(""));
                    clauses.extend(pieces.map(|piece| (piece.to_owned(), true)));
                }
                Part::Value(expression, format) => match environment.evaluate(expression)?.0 {
                    Answer::Number(number) => clauses[open].0.push_str(&format.write(number)),
                    Answer::Text(words) => clauses[open].0.push_str(&words),
                    Answer::Truth(truth) => {
                        clauses[open].0.push_str(if truth { "yes" } else { "no" });
                    }
                    Answer::NotKnown => clauses[open].1 = false,
                },
            }
        }
        let known: String =
            clauses.iter().filter(|(_, known)| *known).map(|(text, _)| text.as_str()).collect();
        let known = known.trim().trim_end_matches([',', ';', ':']).to_owned();
        Ok((known.split_whitespace().count() > 1).then_some(known))
    }

    /// The text with a description in place of each figure, for figures that are still unknown.
    /// `None` if it names a value instead of an amount.
    pub fn sought(&self) -> Option<String> {
        let mut text = String::new();
        for (at, part) in self.parts.iter().enumerate() {
            text.push_str(match part {
                Part::Words(words) => words,
                Part::Value(_, Format::Percent) => "a large part",
                Part::Value(_, Format::Bytes) => "much",
                Part::Value(_, Format::Count) => "many",
                Part::Value(_, Format::Rate) => match self.parts.get(at + 1) {
                    Some(Part::Words(words)) if words.starts_with(' ') => "many",
                    _ => "many times a second",
                },
                Part::Value(_, Format::Plain | Format::Number | Format::Seconds) => return None,
            });
        }
        Some(text)
    }

    /// The text as the rule has it, with `…` for each expression.
    pub fn outline(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Words(words) => words.as_str(),
            Part::Value(..) => "…",
        });
        parts.collect()
    }
}

/// Position of the closing brace, outside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '}' => return Some(at),
            None => {}
        }
    }
    None
}

/// The expression and its format: the word after the last bar, if that is a format.
fn split_format(text: &str) -> (&str, Format) {
    match text.rsplit_once('|') {
        Some((expression, name)) => match Format::named(name.trim()) {
            Some(format) => (expression, format),
            None => (text, Format::Plain),
        },
        None => (text, Format::Plain),
    }
}

/// A number without trailing zeros.
fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with commas between thousands; small numbers keep a decimal.
pub(crate) fn grouped(value: f64) -> String {
    if value.abs() < 9.95 {
        return trimmed(value, 1);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Bytes with a binary unit.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(value, if value.abs() < 99.5 { 1 } else { 0 }), UNITS[unit])
}

fn seconds(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{} ms", trimmed(v * 1000.0, 1)),
        v if v < 120.0 => format!("{} s", trimmed(v, 1)),
        v if v < 7200.0 => format!("{} min", trimmed(v / 60.0, 0)),
        v if v < 172_800.0 => format!("{} h", trimmed(v / 3600.0, 1)),
        v => format!("{} days", trimmed(v / 86_400.0, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::facts::Facts;

    #[test]
    fn figures_are_written_with_their_units() {
        assert_eq!(Format::Percent.write(37.64), "38%");
        assert_eq!(Format::Percent.write(4.25), "4.2%");
        assert_eq!(Format::Bytes.write(1_610_612_736.0), "1.5 GiB");
        assert_eq!(Format::Rate.write(12_345.6), "12,346/s");
        assert_eq!(Format::Count.write(963.0), "963");
        assert_eq!(Format::Seconds.write(200.0), "3 min");
    }

    #[test]
    fn a_brace_or_bar_in_quotes_is_text() {
        let template = Template::parse(r#"a {said("x|y}")} b {1.5|percent}"#).unwrap();
        let environment = Environment::new(Facts::new(Evidence::default()));
        assert_eq!(template.write(&environment).unwrap().text, "a ? b 1.5%");
        assert!(Template::parse("open {1").is_err());
    }

    #[test]
    fn expressions_are_changed_and_words_and_formats_are_not() {
        let changed = |text: &str| {
            let change = |expression: &str| Ok::<_, ()>(expression.to_uppercase());
            Template::with_expressions(text, change).unwrap()
        };
        assert_eq!(
            changed(r#"a {b("}")|percent} c {d || e} f"#),
            r#"a {B("}")|percent} c {D || E} f"#
        );
        assert_eq!(changed("a {b} and {c"), "a {B} and {c");
    }
}
