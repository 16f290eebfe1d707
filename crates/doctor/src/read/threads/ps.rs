//! `ps` in any choice of columns, of Linux, FreeBSD, macOS and busybox. Also rows of `ps aux`, `ps
//! -ef` and `ps -e` without a heading.
//!
//! On Linux, `%CPU` of ps is the average over the life of the process, so it goes to
//! `life_percent`. A process that began to spin an hour ago hardly shows there. FreeBSD and macOS
//! show current use.
//!
//! Sorted output may have its heading on any line. Rows are read under the heading that fits them,
//! above or below.

use crate::read::table::formats::lists::{PS, PS_OF_BSD};
use crate::read::table::{self, Format, Layout, Unit, is_row};
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// The heading of sorted output is searched this many lines below the first row.
const LINES_BEFORE_HEADING: usize = 40;

fn heading(text: &str) -> Option<&'static Format> {
    PS.iter().find(|format| format.is_heading(text))
}

/// Whether the first of `lines` belongs to ps: a heading, or a row of sorted output with a heading
/// soon after it.
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
