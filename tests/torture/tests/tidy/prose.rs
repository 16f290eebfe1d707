//! Prose: sentences of pages and comments, and what is wrong with them.
//!
//! A page is Markdown. A comment is a block of lines with one marker, read as Markdown too; so is a
//! docstring of Python. Code, tables, headings and pictures are no prose. A sentence ends with its stop before a capital
//! letter, a digit or a mark, or with its paragraph or list item.

use std::path::Path;

/// Words of a sentence at most.
pub(crate) const SENTENCE_WORDS_MAX: usize = 25;

/// The words of a sentence; what stands in backquotes is one word, "`".
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sentence(Vec<String>);

impl Sentence {
    pub(crate) fn is_long(&self) -> bool {
        let is_word = |word: &&String| word.contains(|c: char| c.is_alphanumeric() || c == '`');
        self.0.iter().filter(is_word).count() > SENTENCE_WORDS_MAX
    }

    /// Its words in lower case, without the punctuation around them.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`');
            word.strip_suffix("'s").unwrap_or(word).to_lowercase()
        })
    }

    /// Its first words, to find it by.
    pub(crate) fn beginning(&self) -> String {
        self.0[..self.0.len().min(8)].join(" ")
    }
}

/// What a file says.
#[derive(Default)]
pub(crate) struct Prose {
    /// Of a page, or of the opening comment of a module or a script.
    pub(crate) head: Vec<Sentence>,
    /// Of all other comments.
    pub(crate) comments: Vec<Sentence>,
}

impl Prose {
    /// Of a page, a source file or a script; `None` for files of other kinds.
    pub(crate) fn of(file: &Path, text: &str) -> Option<Self> {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("md") => Some(Self { head: sentences(text.lines()), comments: Vec::new() }),
            Some("rs") => Some(of_comments(text)),
            Some("py") => Some(of_script(text, true)),
            Some("sh" | "bash" | "toml" | "yml") => Some(of_script(text, false)),
            None if text.starts_with("#!") => Some(of_script(text, false)),
            _ => None,
        }
    }
}

fn of_comments(text: &str) -> Prose {
    let marked = |marker: &'static str| {
        // Code between two comments ends a paragraph, as an empty line does.
        text.lines().map(move |line| {
            let line = line.trim_start();
            let comment = line.strip_prefix(marker).filter(|text| !text.starts_with(['/', '!']));
            comment.map_or("", |text| text.strip_prefix(' ').unwrap_or(text))
        })
    };
    let mut comments = sentences(marked("///"));
    comments.extend(sentences(marked("//")));
    Prose { head: sentences(marked("//!")), comments }
}

/// Comments that begin with `#`, and docstrings. The head ends with the first line of code. A line
/// with a gap begins a row of a list of options, and a paragraph.
fn of_script(text: &str, has_docstrings: bool) -> Prose {
    let (mut head, mut comments) = (Vec::new(), Vec::new());
    let (mut is_head, mut is_docstring) = (true, false);
    for line in text.lines().map(str::trim) {
        let docstring = line.strip_prefix("\"\"\"").filter(|_| has_docstrings && !is_docstring);
        is_docstring |= docstring.is_some();
        let prose = if is_docstring {
            let prose = docstring.unwrap_or(line);
            is_docstring = !prose.ends_with("\"\"\"");
            prose.trim_end_matches('"')
        } else if let Some(comment) = line.strip_prefix('#') {
            comment.strip_prefix(' ').unwrap_or_default()
        } else {
            is_head &= line.is_empty();
            ""
        };
        let part = if is_head { &mut head } else { &mut comments };
        if prose.trim().contains("  ") {
            part.push("");
        }
        part.push(prose);
    }
    Prose { head: sentences(head.into_iter()), comments: sentences(comments.into_iter()) }
}

fn sentences<'text>(lines: impl Iterator<Item = &'text str>) -> Vec<Sentence> {
    let (mut found, mut paragraph, mut is_code) = (Vec::new(), String::new(), false);
    for line in lines.chain([""]) {
        let text = line.trim();
        if text.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose =
            !is_code && !text.starts_with(['|', '#', '<', '!']) && !text.starts_with("```");
        let item = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).or_else(|| {
            let number = text.find(". ").filter(|&end| end < 3)?;
            text[..number].bytes().all(|byte| byte.is_ascii_digit()).then(|| &text[number + 2..])
        });
        if text.is_empty() || !is_prose || item.is_some() {
            split(&paragraph, &mut found);
            paragraph.clear();
        }
        if is_prose {
            paragraph += item.unwrap_or(text);
            paragraph.push(' ');
        }
    }
    found
}

/// Cuts a paragraph into its sentences.
fn split(paragraph: &str, found: &mut Vec<Sentence>) {
    let text = without_code(paragraph);
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.split_whitespace().peekable();
    while let Some(word) = rest.next() {
        words.push(word.to_owned());
        let bare = word.trim_end_matches(['"', ')', '*', '_', '\'']);
        let begins = |next: &&str| {
            let next = next.trim_start_matches(['"', '(', '[']);
            next.starts_with(['*', '_', '`', '-', '/'])
                || next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
        };
        let is_end = bare.ends_with(['.', '!', '?']) && rest.peek().is_none_or(begins);
        if is_end || rest.peek().is_none() {
            found.push(Sentence(std::mem::take(&mut words)));
        }
    }
}

/// A paragraph with each piece of code as one word, and links by their text.
fn without_code(paragraph: &str) -> String {
    let mut text = String::with_capacity(paragraph.len());
    for (at, part) in paragraph.split('`').enumerate() {
        text.push_str(if at % 2 == 0 { part } else { "`" });
    }
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Vec<String> {
        sentences(text.lines()).iter().map(|sentence| sentence.0.join(" ")).collect()
    }

    #[test]
    fn sentences_end_with_stops_items_and_paragraphs() {
        assert_eq!(
            page("One thing. Two\nlines of 1.5 MiB, e.g. this."),
            ["One thing.", "Two lines of 1.5 MiB, e.g. this."]
        );
        assert_eq!(
            page("- an item\n- another\n\n1. a step\n\nend"),
            ["an item", "another", "a step", "end"]
        );
        assert_eq!(page("# Head\n| a | b |\n```\nlet x. Y\n```\ntext"), ["text"]);
        assert_eq!(
            page("*Hits* are counted. *misses* too."),
            ["*Hits* are counted.", "*misses* too."]
        );
        assert_eq!(page("`fn a()`: see [the page](docs/x.md) there."), ["`: see [the page there."]);
    }

    #[test]
    fn comments_are_read_by_their_marker() {
        let text =
            "//! The idea. Its locks.\nuse x;\n/// One\n/// thing.\nfn f() {\n    // Why.\n}\n";
        let prose = of_comments(text);
        assert_eq!(prose.head.len(), 2);
        let comments: Vec<_> = prose.comments.iter().map(Sentence::beginning).collect();
        assert_eq!(comments, ["One thing.", "Why."]);
    }

    #[test]
    fn scripts_have_comments_and_docstrings() {
        let beginnings = |sentences: &[Sentence]| -> Vec<_> {
            sentences.iter().map(Sentence::beginning).collect()
        };
        let shell = "#!/bin/sh\n# The idea.\n# Its use.\nset -e\n# shellcheck x\n#x\n    # Why.\n";
        let prose = Prose::of(Path::new("setup"), shell).unwrap();
        assert_eq!(beginnings(&prose.head), ["The idea.", "Its use."]);
        assert_eq!(beginnings(&prose.comments), ["shellcheck x", "Why."]);
        let python =
            "\"\"\"The idea.\n\nIts use.\n\"\"\"\nimport x\n    \"\"\"Why.\"\"\"\nnone = 1\n";
        let prose = Prose::of(Path::new("a.py"), python).unwrap();
        assert_eq!(beginnings(&prose.head), ["The idea.", "Its use."]);
        assert_eq!(beginnings(&prose.comments), ["Why."]);
        assert!(Prose::of(Path::new("LICENSE"), "# text").is_none());
    }

    #[test]
    fn long_sentences_are_counted_by_words() {
        let of = |words| sentences(["word ".repeat(words).as_str()].into_iter());
        assert!(!of(25)[0].is_long());
        assert!(of(26)[0].is_long());
    }
}
