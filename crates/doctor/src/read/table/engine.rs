//! Walks through a section of a table: headings, rows, and other lines.

use std::collections::{HashMap, HashSet};

use super::clock::{self, Before};
use super::format::{Boot, Format, Percent, Rows, To};
use super::layout::Layout;
use super::{cpu, list, sink};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// A table while it is read. Formats of one name are one table; each heading decides which format
/// its rows have.
pub(crate) struct Table<'a, 'l> {
    formats: &'static [Format],
    /// Columns for rows without a heading.
    bare: Vec<Layout<'static>>,
    layouts: Vec<Layout<'a>>,
    /// The headings so far: their layout and their list.
    headings: Vec<(usize, u32)>,
    /// The text before the last heading.
    before: Before,
    rows: Vec<sink::Row<'a, 'l>>,
    /// The process whose threads come next.
    process: Option<u64>,
    omits_boot: bool,
    /// Whether the command asked for one report, which covers the time since boot.
    is_of_boot: bool,
    /// The rows so far, by heading and subject.
    shown: HashSet<(usize, Option<&'a str>)>,
}

/// Headings that are tried for one row, at most.
const MOST_HEADINGS: usize = 16;

/// Reads a section that is only a table.
pub(crate) fn read(formats: &'static [Format], section: &Section<'_>, reading: &mut Reading<'_>) {
    read_with(formats, section, reading, |_, _| false);
}

/// Reads a table, and with `other` the lines around it; `other` returns whether it took a line.
pub(crate) fn read_with(
    formats: &'static [Format],
    section: &Section<'_>,
    reading: &mut Reading<'_>,
    mut other: impl FnMut(&Line<'_>, &mut Reading<'_>) -> bool,
) {
    let mut table = Table::new(formats, section);
    let mut others = Vec::new();
    for line in section.lines {
        if !table.take(line, reading) && !other(line, reading) {
            others.push((line, table.headings.len()));
        }
    }
    for (line, below) in others {
        if !table.take_anywhere(below, line) {
            reading.leave(line);
        }
    }
    table.end(reading);
}

/// The columns for rows without a heading.
pub(crate) fn bare(format: &'static Format) -> impl Iterator<Item = Layout<'static>> {
    format.bare.iter().map(move |heading| Layout::under(format, heading))
}

/// Whether a line is a row of a list.
pub(crate) fn is_row(layout: &Layout<'_>, text: &str) -> bool {
    layout.cut(text).is_some_and(|(cells, _)| list::is_row(layout, &cells))
}

impl<'a, 'l> Table<'a, 'l> {
    /// An empty table.
    pub(crate) fn new(formats: &'static [Format], section: &Section<'_>) -> Self {
        let command = section.hint.command.as_deref();
        Self {
            formats,
            bare: formats.iter().flat_map(bare).collect(),
            layouts: Vec::new(),
            headings: Vec::new(),
            before: Before::default(),
            rows: Vec::new(),
            process: None,
            omits_boot: command.is_some_and(omits_boot),
            is_of_boot: command.is_some_and(has_no_interval),
            shown: HashSet::new(),
        }
    }

    /// Takes a line; `false` if it is not part of the table.
    pub(crate) fn take(&mut self, line: &'a Line<'l>, reading: &mut Reading<'_>) -> bool {
        let text = line.text.trim();
        if text.is_empty() {
            return true;
        }
        if let Some(format) = self.formats.iter().find(|format| format.is_heading(text)) {
            let (layout, before) = Layout::with_before(format, text);
            self.before = before;
            // `37% CPU`
            let mut shares = layout.names.iter().filter_map(|name| name.strip_suffix("% CPU"));
            if let Some(percent) = shares.find_map(number::plain) {
                let used = reading.busy(percent, line);
                reading.evidence.cpu.push(used);
            }
            self.begin(layout, reading);
            return true;
        }
        let is_silent = |format: &Format| {
            let mut begins = format.silent.iter().chain(format.above);
            begins.any(|begin| text.starts_with(begin)) || format.clocked && clock::is_moment(text)
        };
        if self.formats.iter().any(is_silent) || self.row(self.headings.last().copied(), text, line)
        {
            return true;
        }
        let begun = !self.headings.is_empty();
        let is_own = |layout: &&Layout<'static>| {
            !(begun && layout.format.percent.is_none()) && layout.cut(text).is_some()
        };
        let Some(layout) = self.bare.iter().find(is_own) else { return false };
        let names = &layout.names;
        let known = self.headings.iter().find(|(at, _)| self.layouts[*at].names == *names);
        match known.copied() {
            Some(heading) => self.headings.push(heading),
            None => self.begin(layout.clone(), reading),
        }
        self.row(self.headings.last().copied(), text, line)
    }

    /// Begins under a heading that was not printed.
    pub(crate) fn under(&mut self, heading: &'a str, reading: &mut Reading<'_>) {
        self.begin(Layout::under(&self.formats[0], heading), reading);
    }

    /// Takes a row of sorted output, whose heading may be anywhere. `below` is the number of
    /// headings above the row.
    fn take_anywhere(&mut self, below: usize, line: &'a Line<'l>) -> bool {
        let (above, below) = self.headings.split_at(below);
        let nearest = below.iter().chain(above.iter().rev()).take(MOST_HEADINGS).copied();
        nearest.collect::<Vec<_>>().into_iter().any(|heading| {
            self.layouts[heading.0].format.percent.is_some()
                && self.row(Some(heading), line.text.trim(), line)
        })
    }

    /// Begins a list under a heading.
    fn begin(&mut self, layout: Layout<'a>, reading: &mut Reading<'_>) {
        self.process = None;
        // Intervals under the same names belong together, even if the heading is repeated.
        let known = self.layouts.iter().position(|known| known.names == layout.names);
        let at = known.unwrap_or(self.layouts.len());
        if layout.format.percent.is_some() {
            reading.list += 1;
        }
        self.headings.push((at, reading.list));
        if known.is_none() {
            self.layouts.push(layout);
        }
    }

    fn row(&mut self, heading: Option<(usize, u32)>, text: &'a str, line: &'a Line<'l>) -> bool {
        let Some((at, list)) = heading else { return false };
        let layout = &self.layouts[at];
        let Some((cells, before)) = layout.cut(text) else { return false };
        let format = layout.format;
        // Some tools print the time only when it changes.
        let last = || self.rows.last().filter(|row| row.layout == at && !before.average);
        let time_s = before.time_s.or_else(|| last().and_then(|row| row.time_s));
        let since_boot = match format.boot {
            Boot::Never => false,
            Boot::First => {
                let of = sink::scope(layout, &cells);
                self.shown.insert((at, of)) && !self.omits_boot
            }
            Boot::WithHeading => {
                let of_heading = self.before.time_s;
                let is_list = format.percent.is_some();
                of_heading.is_some() && before.time_s == of_heading
                    || of_heading.is_none() && is_list && self.is_of_boot
            }
        };
        let mut is_process = false;
        if format.percent.is_some() {
            if !list::is_row(layout, &cells) {
                return false;
            }
            // Threads are drawn below their process.
            let process = list::process_of_threads(layout, &cells);
            is_process = process.is_some();
            self.process = process.or(self.process);
        } else if sink::figures(layout, &cells).is_empty() {
            return false;
        }
        let (process, average) = (self.process, before.average);
        self.rows.push(sink::Row {
            layout: at,
            cells,
            line,
            list,
            time_s,
            average,
            since_boot,
            process,
            is_process,
        });
        true
    }

    /// Adds the rows to the evidence.
    pub(crate) fn end(self, reading: &mut Reading<'_>) {
        let Self { layouts, mut rows, .. } = self;
        rows.sort_by_key(|row| row.line.number);
        // Averages count only where there is no row of an interval.
        let only_averages = |at: usize| rows.iter().all(|row| row.layout != at || row.average);
        let only: Vec<bool> = (0..layouts.len()).map(only_averages).collect();
        rows.retain(|row| only[row.layout] || !row.average);
        cpu::cpus(&layouts, &rows, reading);
        for row in &rows {
            sink::load(&layouts[row.layout], row, reading);
        }
        let list = reading.list;
        for (at, layout) in layouts.iter().enumerate() {
            let own: Vec<&sink::Row<'_, '_>> = rows.iter().filter(|row| row.layout == at).collect();
            match (layout.format.percent, layout.format.rows) {
                (Some(percent), _) => threads(layout, percent, &own, reading),
                (None, Rows::Each) => own.iter().for_each(|row| sink::table(layout, row, reading)),
                (None, _) => sink::intervals(layout, &own, reading),
            }
        }
        reading.list = list;
    }
}

/// Rows of a list under one heading, or the same heading repeated.
fn threads(
    layout: &Layout<'_>,
    percent: Percent,
    rows: &[&sink::Row<'_, '_>],
    reading: &mut Reading<'_>,
) {
    let figures = || rows.iter().flat_map(|row| layout.figures(To::Percent, &row.cells));
    // No percent of all CPUs exceeds 100, so these are of one CPU.
    let of_one = percent == Percent::AllCpus && figures().any(|percent| percent > 101.0);
    for list in rows.chunk_by(|one, other| one.list == other.list) {
        let cells: Vec<&[&str]> = list.iter().map(|row| &row.cells[..]).collect();
        let are_threads = list::are_threads(layout, &cells);
        let cut = cut_processes(layout, list);
        let is_cut = |row: &sink::Row<'_, '_>| row.process.is_some_and(|one| cut.contains(&one));
        for (row, is_thread) in list.iter().zip(are_threads) {
            if is_thread || row.is_process != is_cut(row) {
                continue;
            }
            reading.list = row.list;
            sink::thread(layout, row, of_one, reading);
        }
    }
}

/// If the threads of a process have less than this part of its figure, some were cut off.
const CUT_PART: f64 = 0.5;

/// Processes whose list of threads is incomplete.
fn cut_processes(layout: &Layout<'_>, rows: &[&sink::Row<'_, '_>]) -> HashSet<u64> {
    // For each process: its own figure, and the sum of its threads.
    let mut figures: HashMap<u64, (f64, f64)> = HashMap::new();
    for row in rows {
        let Some(process) = row.process else { continue };
        let own = layout.figures(To::Percent, &row.cells).next().unwrap_or_default();
        let (whole, threads) = figures.entry(process).or_default();
        *(if row.is_process { whole } else { threads }) += own;
    }
    let is_cut = |(_, (whole, threads)): &(u64, (f64, f64))| *threads < CUT_PART * whole;
    figures.into_iter().filter(is_cut).map(|(process, _)| process).collect()
}

/// Whether the command has no number, and so no interval.
fn has_no_interval(command: &str) -> bool {
    command.split_whitespace().all(|word| word.parse::<f64>().is_err())
}

/// Whether the command omits the report since boot (`iostat -y`).
fn omits_boot(command: &str) -> bool {
    let mut options = command.split_whitespace().filter(|word| word.starts_with('-'));
    options.any(|option| !option.starts_with("--") && option.contains('y'))
}
