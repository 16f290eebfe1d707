//! Lists of words and phrases, each written as one string.

/// Whether `word` is one of `list`, which is separated by blanks.
pub(crate) fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|known| known == word)
}

/// Whether `text` is one of `phrases`, which are separated by bars.
pub(crate) fn is(phrases: &str, text: &str) -> bool {
    phrases.split('|').any(|phrase| phrase == text)
}

/// Whether `text` begins with one of `phrases`, which are separated by bars.
pub(crate) fn begins(phrases: &str, text: &str) -> bool {
    phrases.split('|').any(|phrase| text.starts_with(phrase))
}

/// Whether `text` contains one of `parts`, which are separated by bars.
pub(crate) fn contains(parts: &str, text: &str) -> bool {
    parts.split('|').any(|part| text.contains(part))
}

/// The second name of a pair `name=other` in `list`, which is separated by blanks.
pub(crate) fn other<'l>(list: &'l str, name: &str) -> Option<&'l str> {
    let mut pairs = list.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, other)| other)
}

/// Whether `text` begins with the words of one of `phrases`, which are separated by bars; `*` is
/// any word.
pub(crate) fn begin_words(phrases: &str, text: &str) -> bool {
    phrases.split('|').any(|phrase| {
        let mut words = text.split_whitespace();
        phrase
            .split(' ')
            .all(|expected| words.next().is_some_and(|word| expected == "*" || expected == word))
    })
}
