//! Walks through a section of a table: headings, rows, and what belongs to neither.

use std::rc::Rc;

use super::clock::{self, Before};
use super::format::{Boot, Format, Rows};
use super::layout::{Cells, Layout};
use super::list::List;
use super::sink::{self, Row};
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// A table that is being read. Formats of one name are one table: each heading says which.
pub(crate) struct Table<'a, 'l> {
    formats: &'static [Format],
    layouts: Vec<(&'static Format, Rc<Layout<'a>>)>,
    /// The layout of the last heading.
    current: Option<usize>,
    /// What stood before the last heading.
    heading: Before,
    rows: Vec<Row<'a, 'l>>,
    /// The process that the threads below it are of.
    process: Option<u64>,
    omits_boot: bool,
}

/// Reads a section that is nothing but a table.
pub(crate) fn read(formats: &'static [Format], section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = Table::new(formats, section);
    for line in section.lines {
        if !table.take(line, reading) {
            reading.leave(line);
        }
    }
    table.end(reading);
}

impl<'a, 'l> Table<'a, 'l> {
    /// Nothing of it yet.
    pub(crate) fn new(formats: &'static [Format], section: &Section<'_>) -> Self {
        let command = section.hint.command.as_deref();
        Self {
            formats,
            layouts: Vec::new(),
            current: None,
            heading: Before::default(),
            rows: Vec::new(),
            process: None,
            omits_boot: command.is_some_and(omits_boot),
        }
    }

    /// Takes a line; `false` if it is none of the table.
    pub(crate) fn take(&mut self, line: &'a Line<'l>, reading: &mut Reading<'_>) -> bool {
        self.take_text(&line.text, line, reading)
    }

    /// Takes a line whose text was mended.
    pub(crate) fn take_text(
        &mut self,
        text: &'a str,
        line: &'a Line<'l>,
        reading: &mut Reading<'_>,
    ) -> bool {
        let text = text.trim();
        if text.is_empty() {
            return true;
        }
        if let Some(format) = self.formats.iter().find(|format| format.is_heading(text)) {
            let (layout, before) = Layout::with_before(format, text);
            self.heading = before;
            self.begin(format, layout, reading);
            return true;
        }
        let is_silent = |format: &Format| {
            let mut begins = format.silent.iter().chain(format.above);
            begins.any(|begin| text.starts_with(begin)) || format.clocked && clock::is_moment(text)
        };
        if self.formats.iter().any(is_silent) {
            return true;
        }
        let cells = self.current.and_then(|at| self.layouts[at].1.cut(text));
        let cells = cells.or_else(|| {
            let bare = self.formats.iter().find(|format| !format.bare.is_empty())?;
            if self.current.is_some() && bare.percent.is_none() {
                return None;
            }
            let layout = Layout::bare(bare);
            let cells = layout.cut(text)?;
            match self.position(&layout) {
                Some(at) => self.current = Some(at),
                None => self.begin(bare, layout, reading),
            }
            Some(cells)
        });
        match cells {
            Some(cells) => self.row(cells, line, reading),
            None => false,
        }
    }

    fn position(&self, layout: &Layout<'_>) -> Option<usize> {
        self.layouts.iter().position(|(_, known)| known.names() == layout.names())
    }

    /// Begins a list under a heading.
    fn begin(&mut self, format: &'static Format, layout: Layout<'a>, reading: &mut Reading<'_>) {
        self.process = None;
        if format.percent.is_some() {
            reading.list += 1;
        }
        // Intervals under the same names belong together, wherever the heading is printed again.
        let known = self.position(&layout);
        self.current = Some(known.unwrap_or(self.layouts.len()));
        if known.is_none() {
            self.layouts.push((format, Rc::new(layout)));
        }
    }

    fn row(&mut self, cells: Cells<'a>, line: &'a Line<'l>, reading: &Reading<'_>) -> bool {
        let Some(at) = self.current else { return false };
        let (format, layout) = &self.layouts[at];
        let before = cells.before;
        // Some tools print the time only where it changes.
        let last = || self.rows.last().filter(|row| row.layout == at && !before.average);
        let time_s = before.time_s.or_else(|| last().and_then(|row| row.time_s));
        let since_boot = match format.boot {
            Boot::Never => false,
            Boot::First => !self.omits_boot && self.rows.iter().all(|row| row.layout != at),
            Boot::WithHeading => before.time_s.is_some() && before.time_s == self.heading.time_s,
        };
        let row = Row {
            layout: at,
            cells: cells.cells,
            line,
            list: reading.list,
            time_s,
            average: before.average,
            since_boot,
            process: None,
        };
        let Some(percent) = format.percent else {
            let has_figures = sink::has_figures(layout, &row);
            if has_figures {
                self.rows.push(row);
            }
            return has_figures;
        };
        let list = List::new(Rc::clone(layout), percent, format.programs);
        // Threads are drawn below the process they are of.
        if let Some(process) = list.process_of_threads(&row.cells) {
            self.process = Some(process);
            return true;
        }
        if !list.is_row(&row.cells) {
            return false;
        }
        self.rows.push(Row { process: self.process, ..row });
        true
    }

    /// Puts what was read into the evidence.
    pub(crate) fn end(mut self, reading: &mut Reading<'_>) {
        // Averages count only where no row of an interval does.
        let only_averages = |at: usize| self.rows.iter().all(|row| row.layout != at || row.average);
        let only: Vec<bool> = (0..self.layouts.len()).map(only_averages).collect();
        self.rows.retain(|row| only[row.layout] || !row.average);
        let rows = &self.rows;
        sink::cpus(&self.layouts, rows, reading);
        for row in rows {
            sink::load(&self.layouts[row.layout].1, row, reading);
        }
        let list = reading.list;
        for (at, (format, layout)) in self.layouts.iter().enumerate() {
            let own = || rows.iter().filter(|row| row.layout == at);
            if let Some(percent) = format.percent {
                let list = List::new(Rc::clone(layout), percent, format.programs);
                for row in own() {
                    reading.list = row.list;
                    sink::thread(&list, layout, row, reading);
                }
                continue;
            }
            match format.rows {
                Rows::Each => own().for_each(|row| sink::table(format, layout, row, reading)),
                Rows::Intervals | Rows::IntervalsWithMost => {
                    sink::intervals(format, layout, &own().collect::<Vec<_>>(), reading);
                }
            }
        }
        reading.list = list;
    }
}

/// Whether the command leaves out the report since boot (`iostat -y`).
fn omits_boot(command: &str) -> bool {
    let mut options = command.split_whitespace().filter(|word| word.starts_with('-'));
    options.any(|option| !option.starts_with("--") && option.contains('y'))
}
