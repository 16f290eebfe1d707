//! A format, and an index that finds the format of a first line.
//!
//! A format has the words of its beginning and a test. The words are the first words of a line, the
//! heading of a table, or words of which a line must have one. The index over these words is
//! derived from the table of formats. A line is therefore tested only by the formats that one of
//! its words names, and by those without words.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lines;
use super::table;
use super::text::clean::Line;
use super::text::reading::Reading;
use super::text::section::Section;
use super::text::word_lists;
use super::zfs::kstat;

/// A reader of sections.
type Read = fn(&Section<'_>, &mut Reading<'_>);

/// How the first line of a format is recognised.
#[derive(Clone, Copy)]
pub(super) enum Begins {
    /// By its first words: phrases separated by bars, in which `*` is any word.
    First(&'static str),
    /// By the line alone.
    Line(fn(&str) -> bool),
    /// By the line and the next few.
    Lines(fn(&[Line<'_>]) -> bool),
    /// By the words of the heading of a table.
    Heading,
    /// By the shapes of its lines.
    Shape,
    /// Only by its rows.
    Nothing,
}

/// One format.
pub(crate) struct Format {
    /// Its usual name.
    pub(crate) name: &'static str,
    begins: Begins,
    /// A line that begins it has one of these words; empty if there are no such words.
    words: &'static str,
    row: fn(&str) -> bool,
    /// Whether each of its lines is a beginning, so that neighbours belong together.
    pub(crate) each_line: bool,
    filled: fn(&str) -> bool,
    keeps: fn(&str) -> bool,
    absorbs: &'static [&'static str],
    /// The table that it is, or that it has below other lines.
    pub(super) table: &'static [table::Format],
    /// The shapes of its lines.
    lines: Option<&'static lines::Format>,
    /// Its reader; `None` if it is only a table.
    read: Option<Read>,
}

pub(super) const fn format(name: &'static str, begins: Begins, read: Read) -> Format {
    let absorbs = &[];
    Format {
        name,
        begins,
        words: "",
        row: never,
        each_line: false,
        filled: always,
        keeps: never,
        absorbs,
        table: &[],
        lines: None,
        read: Some(read),
    }
}

/// A table whose format is data.
pub(super) const fn table(formats: &'static [table::Format]) -> Format {
    Format { read: None, ..format(formats[0].name, Begins::Heading, nothing).rows(formats) }
}

/// A format of lines, as data.
pub(super) const fn lines(format: &'static lines::Format) -> Format {
    let is_headed = !format.heading.is_empty();
    let begins = if is_headed { Begins::First(format.heading) } else { Begins::Shape };
    let each_line = !is_headed;
    let words = format.words;
    Format { lines: Some(format), words, each_line, ..self::format(format.name, begins, nothing) }
}

fn nothing(_: &Section<'_>, _: &mut Reading<'_>) {}

impl Format {
    /// Sets how its first line is recognised.
    pub(super) const fn begins(self, begins: Begins) -> Self {
        Self { begins, ..self }
    }

    /// Sets words of which each first line has one.
    pub(super) const fn with(self, words: &'static str) -> Self {
        Self { words, ..self }
    }

    /// Sets the test that recognises a row without a heading.
    pub(super) const fn row(self, row: fn(&str) -> bool) -> Self {
        Self { row, ..self }
    }

    /// Sets the table of its rows.
    pub(super) const fn rows(self, table: &'static [table::Format]) -> Self {
        Self { table, ..self }
    }

    /// Declares that each of its lines is a beginning.
    pub(super) const fn each_line(self) -> Self {
        Self { each_line: true, ..self }
    }

    /// Sets the test of a row of data: headings before the first one are one beginning.
    pub(super) const fn filled(self, filled: fn(&str) -> bool) -> Self {
        Self { filled, ..self }
    }

    /// Sets the test of lines that certainly continue a section.
    pub(super) const fn keeps(self, keeps: fn(&str) -> bool) -> Self {
        Self { keeps, ..self }
    }

    /// Sets the formats whose beginnings are part of this one.
    pub(super) const fn absorbs(self, absorbs: &'static [&'static str]) -> Self {
        Self { absorbs, ..self }
    }

    /// Reads a section.
    pub(crate) fn read(&self, section: &Section<'_>, reading: &mut Reading<'_>) {
        match (self.lines, self.read) {
            (Some(format), _) => lines::read(format, section, reading),
            (None, Some(read)) => read(section, reading),
            (None, None) => table::read(self.table, section, reading),
        }
    }

    /// The columns under a heading, if this is a table of which `text` names the columns.
    pub(crate) fn layout<'h>(&self, text: &'h str) -> Option<table::Layout<'h>> {
        let format = self.table.iter().find(|format| format.is_heading(text.trim()))?;
        Some(table::Layout::under(format, text))
    }

    /// Whether `text` certainly continues a section of this format.
    pub(super) fn keeps_line(&self, text: &str) -> bool {
        (self.keeps)(text) || self.lines.is_some_and(|format| format.is_of(text))
    }

    /// Whether it is `other`.
    pub(super) fn is(&self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| std::ptr::eq(self, other))
    }

    /// Whether `text` is a row of data of this format.
    pub(crate) fn is_filled_by(&self, text: &str) -> bool {
        self.lines.map_or_else(|| (self.filled)(text), |format| format.is_row(text))
    }

    /// Whether `text` is recognised as a row without a heading.
    pub(super) fn is_row(&self, text: &str) -> bool {
        (self.row)(text) || self.lines.is_some_and(|format| format.bare && format.is_row(text))
    }

    /// Whether the beginning of `other` is part of this format.
    pub(crate) fn takes_in(&self, other: &Format) -> bool {
        let is_same = self.read.is_none() && self.name == other.name;
        is_same || self.absorbs.contains(&other.name)
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn never(_: &str) -> bool {
    false
}

pub(super) fn always(text: &str) -> bool {
    !text.trim().is_empty()
}

/// A table with the index of its words.
pub(super) struct Table {
    formats: &'static [Format],
    index: LazyLock<Index>,
}

/// Places of formats in their table, one bit each.
type Places = u128;

/// The formats that a word names.
pub(super) struct Index {
    by_word: HashMap<&'static str, Places>,
    /// Those without words.
    others: Places,
}

impl Index {
    pub(super) fn of(formats: &'static [Format]) -> Self {
        let mut index = Self { by_word: HashMap::new(), others: 0 };
        for (at, format) in formats.iter().enumerate() {
            let place = 1 << at;
            match format.naming_words() {
                Some(words) => words
                    .into_iter()
                    .for_each(|word| *index.by_word.entry(word).or_default() |= place),
                None => index.others |= place,
            }
        }
        index
    }

    /// The places of the formats that `text` can begin.
    fn places(&self, text: &str) -> Places {
        let words = text.split(table::is_gap).filter_map(|word| self.by_word.get(word));
        words.fold(self.others, |places, more| places | more)
    }
}

impl Format {
    /// Words of which each first line of the format has one; `None` if there are no such words.
    fn naming_words(&self) -> Option<Vec<&'static str>> {
        match self.begins {
            _ if !self.words.is_empty() => Some(self.words.split(' ').collect()),
            Begins::First(phrases) => phrases
                .split('|')
                .map(|phrase| phrase.split(' ').find(|word| *word != "*"))
                .collect(),
            Begins::Heading => {
                let each = self.table.iter().map(table::Format::naming_words);
                Some(each.collect::<Option<Vec<_>>>()?.concat())
            }
            _ => None,
        }
    }

    /// Whether the format begins at the first of `lines`, which is `text`.
    fn is_begun_by(&self, text: &str, lines: &[Line<'_>]) -> bool {
        match self.begins {
            Begins::Shape => self.lines.is_some_and(|format| format.is_row(text)),
            Begins::First(phrases) => word_lists::begin_words(phrases, text),
            Begins::Line(test) => test(text),
            Begins::Lines(test) => test(lines),
            Begins::Heading => self.table.iter().any(|table| table.begins(text)),
            Begins::Nothing => false,
        }
    }
}

impl Table {
    pub(super) const fn of(formats: &'static [Format], index: fn() -> Index) -> Self {
        assert!(formats.len() <= Places::BITS as usize, "a bit a format");
        Self { formats, index: LazyLock::new(index) }
    }

    /// The first format that begins at the first of `lines`.
    pub(super) fn begins(&self, lines: &[Line<'_>]) -> Option<&'static Format> {
        // The seven numbers above a kstat do not identify it.
        let is_blank = |line: &Line<'_>| line.text.trim().is_empty();
        let above = usize::from(kstat::is_header(lines.first()?.text.trim()));
        let blank = lines[above..].iter().take(3).take_while(|line| is_blank(line)).count();
        let lines = if above > 0 { &lines[above + blank..] } else { lines };
        let text = lines.first()?.text.trim();
        // Longer lines are data, and their format was recognised by its first line.
        if text.is_empty() || text.len() > 8192 {
            return None;
        }
        let places = self.index.places(text);
        let mut formats = self.formats.iter().enumerate();
        let found =
            formats.find(|(at, format)| places & (1 << at) != 0 && format.is_begun_by(text, lines));
        found.map(|(_, format)| format)
    }
}
