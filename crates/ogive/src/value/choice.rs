//! Options that take one of a few words.
//!
//! A table has a row for each word: the word, the value that it stands for, and its help. The value
//! is the library's own, so nothing converts between two enums.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The words of an option.
pub(crate) type Choices<T> = [(&'static str, T, &'static str)];

/// The parser of these words.
pub(crate) fn parser<T: Copy + Send + Sync + 'static>(
    choices: &'static Choices<T>,
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).map(|word| {
        let choice = choices.iter().find(|(known, ..)| *known == word);
        choice.map(|(_, value, _)| *value).expect("a possible value is in the table")
    })
}

/// The word for a value, such as a default.
pub(crate) fn word<T: PartialEq>(choices: &Choices<T>, value: &T) -> &'static str {
    let choice = choices.iter().find(|(_, known, _)| known == value);
    choice.map(|(word, ..)| *word).expect("a default is in the table")
}
