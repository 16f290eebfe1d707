//! What no tool printed: sentences and `key: value` notes of people, told from damage.
//!
//! A sentence is worth less than any figure, but it is often all there is, so it is kept as a
//! remark. Figures inside sentences that name a thread or function are taken too, as remarks only:
//! rules look at them through the words.

use std::sync::LazyLock;

use regex::Regex;

use super::number;
use super::reading::Reading;
use crate::evidence::{Said, Source};

static NOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Za-z][A-Za-z0-9 _()/,-]{1,40}?):\s+(\S.*)$").expect("a constant pattern")
});

/// Whether a line reads like a sentence of a person.
fn is_sentence(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let visible = text.chars().filter(|c| !c.is_whitespace()).count();
    let wordlike = words.iter().filter(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '_'))
    });
    let plain = |word: &&str| word.chars().all(|c| c.is_alphabetic() || ",.:;!?'".contains(c));
    if visible > 0 && words.len() <= 4 && words.iter().all(plain) {
        return true;
    }
    // A full stop makes up for figures: `Ryzen 1700: 500 MB/s with 25-30% CPU.`
    let parts = if text.ends_with('.') { 3 } else { 6 };
    visible > 0
        && words.len() >= 3
        && letters * 10 >= visible * parts
        && wordlike.count() * 12 >= words.len() * parts
}

/// Takes a line that no format claimed.
pub(crate) fn take(number: u32, text: &str, reading: &mut Reading<'_>) {
    let text = text.trim_start_matches(['*', '•', '-', '–']).trim();
    if text.is_empty() || text.bytes().all(|byte| b"-=_*#~.|+ ".contains(&byte)) {
        return;
    }
    if let Some(found) = NOTE
        .captures(text)
        .filter(|found| found[1].split(' ').count() <= 4 && !found[2].ends_with('.'))
    {
        note(&found[1].to_lowercase(), &found[2], number, reading);
        reading.remark(Some(&found[1]), &found[2], number);
    } else if is_sentence(text) {
        reading.remark(None, text, number);
    } else {
        reading.not_understood(number, text);
    }
}

fn said<T>(value: T, number: u32, reading: &Reading<'_>) -> Option<Said<T>> {
    let source = Source { input: reading.input.clone(), line: Some(number) };
    Some(Said { value, source })
}

/// Notes about the host that no tool printed; what a tool printed stands.
fn note(key: &str, value: &str, number: u32, reading: &mut Reading<'_>) {
    let words = said(value.to_owned(), number, reading);
    let loaded = said(!value.contains("not loaded"), number, reading);
    let bytes = number::bytes(value).and_then(|bytes| said(bytes as u64, number, reading));
    let host = &mut reading.evidence.host;
    match key {
        "zfs module" => host.zfs_loaded = loaded,
        "zfs version" | "zfs" | "openzfs" => host.zfs_version = host.zfs_version.take().or(words),
        "memory" | "ram" => host.ram_bytes = host.ram_bytes.take().or(bytes),
        "cpu" => host.cpu_model = host.cpu_model.take().or(words),
        "kernel" if value.starts_with(|c: char| c.is_ascii_digit()) => {
            host.kernel = host.kernel.take().or(words);
        }
        "distribution" | "distro" => host.distribution = host.distribution.take().or(words),
        _ => {}
    }
}
