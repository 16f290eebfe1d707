//! Patterns that a rule names once (`[patterns]`) and its expressions use by name.
//!
//! A name stands where a text could stand: `prop("primarycache", uncached)`. It is replaced in the
//! rule's text before compilation, so the rest of the program knows no names. `--explain` prints
//! the pattern, and the key of a sign changes with the pattern.
//!
//! Expressions have no variables, so every lone word is such a name or a mistake.

use std::collections::{BTreeMap, BTreeSet};

use super::text::RuleText;
use crate::expression::{FUNCTIONS, Template};
use crate::facts::pattern_of;

/// Help for a lone word that is not a name.
const HINT: &str = "a function has its brackets behind it";
/// Words that may stand alone in CEL.
const RESERVED: [&str; 4] = ["true", "false", "null", "in"];
/// The longest text of a rule with its patterns expanded.
const MAX_WRITTEN_OUT_BYTES: usize = 64 * 1024;

/// A name that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The name.
    pub(super) name: String,
    /// Its fault.
    pub(super) reason: String,
}

/// Expands the patterns of a rule in all its expressions.
pub(super) fn write_out(rule: &mut RuleText) -> Result<(), Fault> {
    let mut names = Names { patterns: &rule.patterns, used: BTreeSet::new() };
    names.check()?;
    names.template("verdict", &mut rule.verdict)?;
    names.optional("applies", &mut rule.applies)?;
    names.optional("share", &mut rule.share)?;
    names.optional("fix_when", &mut rule.fix_when)?;
    for line in rule.remedy.lines_mut() {
        for (place, text) in line.expressions_mut() {
            names.optional(place, text)?;
        }
    }
    for (at, sign) in rule.signs.iter_mut().enumerate() {
        names.expression(&format!("signs[{at}].when"), &mut sign.when)?;
        names.template(&format!("signs[{at}].text"), &mut sign.text)?;
    }
    match rule.patterns.keys().find(|name| !names.used.contains(name.as_str())) {
        Some(name) => Err(fault(name, "is used in no expression of the rule: remove it")),
        None => Ok(()),
    }
}

fn fault(name: &str, reason: impl Into<String>) -> Fault {
    Fault { name: name.to_owned(), reason: reason.into() }
}

/// The patterns of one rule, and those that were used.
struct Names<'a> {
    patterns: &'a BTreeMap<String, String>,
    used: BTreeSet<&'a str>,
}

impl Names<'_> {
    fn check(&self) -> Result<(), Fault> {
        for (name, pattern) in self.patterns {
            let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_word {
                return Err(fault(name, "a name is a-z, 0-9 and _, and begins with a letter"));
            }
            if RESERVED.contains(&name.as_str()) || FUNCTIONS.iter().any(|f| f.name == name) {
                return Err(fault(name, "is a word of the language: choose another name"));
            }
            if let Err(error) = regex::Regex::new(&pattern_of(pattern)) {
                return Err(fault(name, format!("is no regular expression: {error}")));
            }
        }
        Ok(())
    }

    fn optional(&mut self, place: &str, text: &mut Option<String>) -> Result<(), Fault> {
        text.as_mut().map_or(Ok(()), |text| self.expression(place, text))
    }

    fn expression(&mut self, place: &str, text: &mut String) -> Result<(), Fault> {
        *text = self.written_out(place, text)?;
        Ok(())
    }

    fn template(&mut self, place: &str, text: &mut String) -> Result<(), Fault> {
        *text = Template::with_expressions(text, |inner| self.written_out(place, inner))?;
        Ok(())
    }

    /// An expression with patterns in place of names. Texts in quotes, numbers, functions and
    /// methods stay.
    fn written_out(&mut self, place: &str, text: &str) -> Result<String, Fault> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = match first {
                '"' | '\'' => quoted(rest, false),
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            rest = after;
            if !first.is_ascii_alphabetic() && first != '_' {
                out.push_str(token);
            } else if matches!(token, "r" | "R") && after.starts_with(['"', '\'']) {
                let (literal, after) = after.split_at(quoted(after, true));
                out.push_str(token);
                out.push_str(literal);
                rest = after;
            } else if RESERVED.contains(&token)
                || after.trim_start().starts_with('(')
                || out.trim_end().ends_with('.')
            {
                out.push_str(token);
            } else {
                let Some((name, pattern)) = self.patterns.get_key_value(token) else {
                    let reason = format!("there is no such pattern, used in {place}; {HINT}");
                    return Err(fault(token, reason));
                };
                self.used.insert(name);
                out.push_str(&literal(pattern));
            }
            if out.len() > MAX_WRITTEN_OUT_BYTES {
                let reason = format!("{place} with it is over {MAX_WRITTEN_OUT_BYTES} bytes");
                return Err(fault(token, reason));
            }
        }
        Ok(out)
    }
}

/// The length of the quoted text at the beginning of `text`, quotes included.
fn quoted(text: &str, raw: bool) -> usize {
    let quote = text.chars().next();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if !raw => escaped = true,
            c if Some(c) == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The pattern as a text of CEL, as a person would write it.
fn literal(pattern: &str) -> String {
    match pattern {
        plain if !plain.contains(['\\', '"', '\n']) => format!("\"{plain}\""),
        raw if !raw.contains(['"', '\n']) => format!("r\"{raw}\""),
        any => {
            let escaped = any.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("\"{escaped}\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Answer, Environment, Expression};
    use crate::facts::Facts;

    fn written_out(text: &str) -> Result<String, Fault> {
        let patterns = [("cold", "^(none|off)$"), ("zfs", r"(^|\s)zfs\s")];
        let patterns = patterns.map(|(name, pattern)| (name.to_owned(), pattern.to_owned())).into();
        Names { patterns: &patterns, used: BTreeSet::new() }.written_out("here", text)
    }

    #[test]
    fn a_name_becomes_its_pattern_and_nothing_else_changes() {
        for (text, expected) in [
            (r#"prop("a", cold) && shown("x")"#, r#"prop("a", "^(none|off)$") && shown("x")"#),
            (r"timed_real(zfs) > 4.0", r#"timed_real(r"(^|\s)zfs\s") > 4.0"#),
            (r#"said("cold \" cold") || said('cold')"#, r#"said("cold \" cold") || said('cold')"#),
            (r#"said(r"cold\") == false"#, r#"said(r"cold\") == false"#),
            ("cold (1e5) > 0x1f", "cold (1e5) > 0x1f"),
            (r#""a".matches(cold)"#, r#""a".matches("^(none|off)$")"#),
            (r#"said("über cold"#, r#"said("über cold"#),
        ] {
            assert_eq!(written_out(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_word_that_stands_alone_and_is_no_name_is_a_fault() {
        let reason = format!("there is no such pattern, used in here; {HINT}");
        assert_eq!(written_out("prop(\"a\", cool)"), Err(Fault { name: "cool".into(), reason }));
    }

    #[test]
    fn a_text_does_not_grow_without_bound() {
        let patterns = [("p".to_owned(), "a".repeat(4000))].into();
        let mut names = Names { patterns: &patterns, used: BTreeSet::new() };
        let fault = names.written_out("here", &"said(p) && ".repeat(20)).unwrap_err();
        assert!(fault.reason.contains("over 65536 bytes"), "{fault:?}");
    }

    #[test]
    fn a_pattern_means_the_same_as_a_text_of_the_language() {
        let environment = Environment::new(Facts::new(Default::default()));
        for pattern in ["a|b", r"\bzfs\s", "say \"x\"", "\\d \"x\"", "a\nb"] {
            let expression = Expression::compile(&literal(pattern)).unwrap();
            let answer = environment.evaluate(&expression).unwrap().0;
            assert_eq!(answer, Answer::Text(pattern.to_owned()));
        }
    }
}
