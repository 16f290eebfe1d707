//! Actions: the lines of a remedy as data.
//!
//! A line is plain words, or a table with one action. An action sets a parameter or a property,
//! runs a command of `actions.toml` or a probe, upgrades, or replaces a disk. No line contains a
//! command. The program writes the command for the host, checks it against the host, and knows its
//! undo.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use crate::expression::Expression;

/// A line of a remedy as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActionText {
    /// Words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// A module parameter (Linux's name), or a sysctl of Linux (`vm.vfs_cache_pressure`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// A property of data sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// A property of pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_property: Option<String>,
    /// A command of `actions.toml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Commits or releases; the advice is the first that the host lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upgrade: Vec<String>,
    /// A probe: an action by itself, or with `say` the command that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Replace the disk that is slow or failed.
    #[serde(skip_serializing_if = "is_false")]
    pub replace: bool,
    /// The value to set; `io-size` is the size of programs' reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value to set, as an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The value that undoes it, as an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Set it only if that raises (`up`) or lowers (`down`) it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Direction>,
    /// Its purpose, as words before the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It is advised only if this is shown to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// It is not advised if this is shown to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// The condition that holds after success, in a line of `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// It is advised only on these systems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<String>,
    /// It stands next to the line that was chosen before it.
    #[serde(skip_serializing_if = "is_false")]
    pub also: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Up.
    Up,
    /// Down.
    Down,
}

/// A line in one of its two forms.
struct Line(ActionText);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sentence, or a table with one thing to do")
            }

            fn visit_str<E: serde::de::Error>(self, words: &str) -> Result<Line, E> {
                Ok(Line(ActionText { say: Some(words.to_owned()), ..ActionText::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Line, A::Error> {
                let text = ActionText::deserialize(MapAccessDeserializer::new(map))?;
                match text.things() {
                    1 => Ok(Line(text)),
                    count => Err(A::Error::custom(format!(
                        "a line does one thing, not {count}: say, parameter, property, \
                         pool_property, run, upgrade, probe or replace"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Lines of a remedy, each in one of the two forms.
pub(super) fn lines<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ActionText>, D::Error> {
    let lines = Vec::<Line>::deserialize(from)?;
    Ok(lines.into_iter().map(|line| line.0).collect())
}

impl ActionText {
    /// The number of its actions.
    fn things(&self) -> usize {
        let named = [&self.say, &self.parameter, &self.property, &self.pool_property, &self.run];
        let looks = self.probe.is_some() && self.say.is_none();
        named.iter().filter(|name| name.is_some()).count()
            + usize::from(!self.upgrade.is_empty())
            + usize::from(self.replace)
            + usize::from(looks)
    }

    /// Its expressions, by their names in a rule.
    pub fn expressions(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("when", &self.when),
            ("unless", &self.unless),
            ("amount", &self.amount),
            ("old", &self.old),
            ("holds", &self.holds),
        ];
        all.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)))
    }

    /// The same, mutable.
    pub(super) fn expressions_mut(
        &mut self,
    ) -> impl Iterator<Item = (&'static str, &mut Option<String>)> {
        [
            ("remedy.when", &mut self.when),
            ("remedy.unless", &mut self.unless),
            ("remedy.amount", &mut self.amount),
            ("remedy.old", &mut self.old),
            ("remedy.holds", &mut self.holds),
        ]
        .into_iter()
    }
}

/// A compiled line of a remedy.
#[derive(Debug)]
pub struct Action {
    /// The line as written.
    pub text: ActionText,
    /// It is advised only if this holds.
    pub when: Option<Expression>,
    /// It is not advised if this holds.
    pub unless: Option<Expression>,
    /// The value to set.
    pub amount: Option<Expression>,
    /// The value that undoes it.
    pub old: Option<Expression>,
    /// The condition that holds if the remedy worked.
    pub holds: Option<Expression>,
}

impl Action {
    /// Its expressions, by their names in a rule.
    pub fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let all = [
            ("remedy.when", &self.when),
            ("remedy.unless", &self.unless),
            ("remedy.amount", &self.amount),
            ("remedy.old", &self.old),
            ("remedy.holds", &self.holds),
        ];
        all.into_iter().filter_map(|(name, expression)| Some((name, expression.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Lines {
        #[serde(deserialize_with = "lines")]
        now: Vec<ActionText>,
    }

    #[test]
    fn a_line_of_a_remedy_is_text_or_one_action() {
        let read = |text: &str| toml::from_str::<Lines>(text).map(|lines| lines.now);
        let both = read("now = ['wait', { parameter = 'a', value = '1', only = 'up' }]").unwrap();
        assert_eq!(both[0].say.as_deref(), Some("wait"));
        assert_eq!((both[1].parameter.as_deref(), both[1].only), (Some("a"), Some(Direction::Up)));
        assert!(read("now = [{ say = 'see', probe = 'x' }]").is_ok());
        for wrong in ["{ run = 'a', property = 'b' }", "{ text = 'a' }", "{ sy = 'a' }", "1"] {
            let fault = read(&format!("now = [{wrong}]")).unwrap_err().to_string();
            assert!(fault.contains("one thing") || fault.contains("unknown field"), "{fault}");
        }
    }
}
