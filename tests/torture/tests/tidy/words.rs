//! Words that this project does not use, and the field's word for each: `words.tsv`.
//!
//! A row is a place, a word, and what to say instead. The places are `code` (a name, or a part of
//! a type's name), `prose` (pages and comments), `subject` (the beginning of a sentence) and `file`
//! (the name of a source file).

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::prose::Sentence;

const TABLE: &str = include_str!("words.tsv");

/// What to say instead, by place and word.
static BETTER: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        Some(((cells.next()?, cells.next()?), cells.next()?))
    };
    TABLE.lines().filter_map(row).collect()
});

/// The words of a place with what to say instead.
pub(crate) fn of(place: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    BETTER.iter().filter_map(move |((of, word), better)| (*of == place).then_some((*word, *better)))
}

/// What to say instead of a word; nothing if it may be said there.
pub(crate) fn better(place: &str, word: &str) -> Option<&'static str> {
    BETTER.get(&(place, word)).copied()
}

/// What is wrong with the words of a sentence.
pub(crate) fn faults(sentence: &Sentence) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, word) in sentence.words().enumerate() {
        let places: &[&str] = if at == 0 { &["subject", "prose"] } else { &["prose"] };
        for better in places.iter().filter_map(|place| better(place, &word)) {
            faults.push(format!("\"{word}\": {better}: {}", sentence.beginning()));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::Prose;
    use std::path::Path;

    #[test]
    fn rows_have_a_known_place_and_a_better_word() {
        for line in TABLE.lines() {
            let cells: Vec<_> = line.split('\t').collect();
            assert!(["code", "prose", "subject", "file"].contains(&cells[0]), "{line}");
            assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
        }
    }

    #[test]
    fn unused_words_are_found_as_whole_words_and_subjects_at_the_beginning() {
        let count = |text: &str| -> usize {
            let prose = Prose::of(Path::new("x.md"), text).unwrap();
            prose.head.iter().map(|sentence| faults(sentence).len()).sum()
        };
        assert_eq!(count("The client closes his file. Whoever reads it waits."), 2);
        assert_eq!(count("This history shows who reads. The hearing."), 0);
    }
}
