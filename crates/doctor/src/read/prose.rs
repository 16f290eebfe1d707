//! What no tool printed: sentences and `key: value` notes of people, told from damage.
//!
//! A sentence is worth less than any figure, but it is often all there is, so it is kept as a
//! remark. Figures inside sentences that name a thread or function are taken too, as remarks only:
//! rules look at them through the words.

use std::sync::LazyLock;

use regex::Regex;

use super::telling;
use super::text::clean::Line;
use super::text::number;
use super::text::reading::Reading;
use super::zfs::commands;
use crate::evidence::{Source, Statement};

static NOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Za-z][A-Za-z0-9 _()/,-]{1,40}?):\s+(\S.*)$").expect("a constant pattern")
});

/// Words that bind sentences; tables and help texts have few.
const BINDING: [&str; 40] = [
    "the", "a", "an", "is", "are", "was", "were", "and", "or", "but", "of", "in", "on", "to",
    "with", "my", "this", "that", "it", "its", "i", "we", "at", "as", "for", "from", "by", "has",
    "have", "not", "no", "when", "while", "after", "since", "all", "than", "does", "then", "be",
];

/// Whether a line reads like a sentence of a person: it ends like one, or words bind it.
///
/// A full stop makes up for figures (`Ryzen 1700: 500 MB/s with 25-30% CPU.`); lines of a wrapped
/// mail have none, so two binding words do as well, where mostly words stand.
pub(crate) fn is_sentence(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let visible = text.chars().filter(|c| !c.is_whitespace()).count();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let wordlike = words.iter().map(|word| bare(word)).filter(|word| {
        word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '_'))
    });
    let binding = words.iter().filter(|word| BINDING.contains(&bare(word).as_str())).count();
    let ends = text.ends_with(['.', '?', '!']) && !text.ends_with("...");
    let parts = if ends { 3 } else { 7 };
    words.len() >= 3
        && (ends || binding >= 2)
        && !text.contains("   ")
        && letters * 10 >= visible * parts
        && wordlike.count() * 12 >= words.len() * parts
}

/// Takes a line that no format claimed. Notes (`key: value`) are taken only outside the output of a
/// tool: inside, such a line is the tool's and was not understood.
pub(crate) fn take(number: u32, text: &str, in_tool: bool, reading: &mut Reading<'_>) {
    let text = text.trim_start_matches(['*', '•', '-', '–']).trim();
    if text.is_empty() || text.bytes().all(|byte| b"-=_*#~.|+ ".contains(&byte)) {
        return;
    }
    if let Some(found) = NOTE
        .captures(text)
        .filter(|found| !in_tool && found[1].split(' ').count() <= 4 && !found[2].ends_with('.'))
    {
        let key = found[1].to_lowercase();
        note(&key, &found[2], number, reading);
        let line = Line { number, text: text.into() };
        telling::take_note(&key, &found[2], &line, reading);
        if let Some((name, of_pool)) = commands::noted(&key, &found[2]) {
            reading.property("", of_pool, &name, &found[2], &line);
        }
        reading.remark(Some(&found[1]), &found[2], number);
    } else if is_sentence(text) || !in_tool && telling::is_telling(text) {
        telling::take_cpus(text, &Line { number, text: text.into() }, reading);
        reading.remark(None, text, number);
    } else {
        reading.not_understood(number, text);
    }
}

fn said<T>(value: T, number: u32, reading: &Reading<'_>) -> Option<Statement<T>> {
    let source = Source { input: reading.input.clone(), line: Some(number) };
    Some(Statement { value, source })
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
        "cpu" if !value.contains('%') => host.cpu_model = host.cpu_model.take().or(words),
        "kernel" if value.starts_with(|c: char| c.is_ascii_digit()) => {
            host.kernel = host.kernel.take().or(words);
        }
        "kernel version" if value.starts_with(|c: char| c.is_ascii_digit()) => {
            host.kernel = host.kernel.take().or(words);
        }
        "distribution" | "distro" => host.distribution = host.distribution.take().or(words),
        _ => {}
    }
}
