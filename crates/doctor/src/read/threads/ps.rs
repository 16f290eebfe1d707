//! `ps` in any choice of columns, of Linux, FreeBSD, macOS and busybox, and rows of `ps aux`,
//! `ps -ef` and `ps -e` without their heading.
//!
//! On Linux `%CPU` of ps is an average over the life of the process, so it goes to `life_percent`;
//! a process that began to spin an hour ago hardly shows there. FreeBSD and macOS show what it uses
//! now. Sorted output has its heading anywhere: rows are read under the heading that fits them,
//! whether it stands above or below.

use crate::read::table::formats::lists::{PS, PS_OF_BSD};
use crate::read::table::{self, Format, Layout, Unit, is_row};
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// How far below its first row the heading of sorted output is looked for.
const LINES_BEFORE_HEADING: usize = 40;

fn heading(text: &str) -> Option<&'static Format> {
    PS.iter().find(|format| format.is_heading(text))
}

/// Whether the first of `lines` is of ps: a heading, or a row of sorted output whose heading comes
/// soon.
pub(crate) fn begins(lines: &[Line<'_>]) -> bool {
    let Some(first) = lines.first().map(|line| line.text.trim()) else { return false };
    if heading(first).is_some() {
        return true;
    }
    // A row has a percent or a time among its first words.
    let is_figure = |word: &str| {
        Unit::Share.fits(word) && word != "-" || word.contains(':') && Unit::Time.fits(word)
    };
    if !first.split_whitespace().take(7).any(is_figure) {
        return false;
    }
    let near = lines.iter().take(LINES_BEFORE_HEADING).map(|line| line.text.trim());
    let mut near = near.take_while(|text| !text.is_empty());
    let found = near.find_map(|text| Some(Layout::under(heading(text)?, text)));
    found.is_some_and(|layout| is_row(&layout, first))
}

/// Reads the list.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let seen = &reading.evidence.host.os_seen;
    let is_bsd = |name: &str| matches!(name, "macos" | "freebsd");
    let is_bsd = !seen.is_empty() && seen.iter().all(|system| is_bsd(&system.value));
    table::read(if is_bsd { &PS_OF_BSD } else { &PS }, section, reading);
}
