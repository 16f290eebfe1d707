//! What becomes of rows that are no threads: the use of CPUs, the load, and figures in tables.

use std::collections::HashMap;
use std::rc::Rc;

use super::format::{Boot, Format, Kind, Rows as Becomes, To};
use super::layout::{self, Layout};
use super::list::List;
use super::unit::{Cell, MAX_CPUS, Unit};
use crate::evidence::{CpuUse, OneCpu, Source};
use crate::read::text::clean::Line;
use crate::read::text::columns::{interval, median};
use crate::read::text::reading::{Reading, Rows};

/// One row.
pub(super) struct Row<'a, 'l> {
    pub(super) layout: usize,
    pub(super) cells: Vec<&'a str>,
    pub(super) line: &'a Line<'l>,
    pub(super) list: u32,
    pub(super) time_s: Option<f64>,
    pub(super) average: bool,
    pub(super) since_boot: bool,
    pub(super) process: Option<u64>,
}

/// One figure of a row: the table that it goes into if that is one of its own, its name and value.
struct Figure {
    table: Option<&'static str>,
    name: String,
    value: f64,
    kind: Kind,
}

/// The figures of a row, by the order of its columns.
fn figures(layout: &Layout<'_>, others: Kind, cells: &[&str]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (at, (name, cell)) in layout.names().iter().zip(cells).enumerate() {
        let column = layout.columns().iter().find(|(_, places)| places.contains(&at));
        let unit = match column {
            None if layout.is_listed(at) => layout.unit(at),
            None => Unit::Number,
            Some(_) => layout.unit(at),
        };
        let Cell::Figure(value) = unit.read(cell) else { continue };
        let figure = match column.map(|(column, _)| (column.to, column.kind)) {
            Some((To::Figure(name), kind)) => {
                let (table, name) =
                    name.split_once('.').map_or((None, name), |(table, name)| (Some(table), name));
                let (kind, name) = match kind {
                    Kind::RateOr(_) if cell.ends_with("/s") => (Kind::Rate, name),
                    Kind::RateOr(other) => (Kind::Gauge, other),
                    kind => (kind, name),
                };
                Figure { table, name: name.to_owned(), value, kind }
            }
            Some((To::Nothing | To::Clock | To::Scope | To::Cpu, _)) => continue,
            Some((To::OwnBytes, kind)) => {
                Figure { table: None, name: format!("{name}_bytes"), value, kind }
            }
            own => {
                let kind = own.filter(|(to, _)| *to == To::Own).map_or(others, |(_, kind)| kind);
                let (name, kind) = layout::named(name, kind);
                Figure { table: None, name, value, kind }
            }
        };
        figures.push(figure);
    }
    figures
}

/// Whether a row has any figure at all.
pub(super) fn has_figures(layout: &Layout<'_>, row: &Row<'_, '_>) -> bool {
    !figures(layout, Kind::Gauge, &row.cells).is_empty()
}

fn put(table: &mut Rows, figure: &Figure, line: &Line<'_>) {
    match figure.kind {
        Kind::Gauge | Kind::RateOr(_) => table.gauge(&figure.name, Some(figure.value), line),
        Kind::Rate => table.rate(&figure.name, Some(figure.value), line),
    }
}

fn cell<'a>(layout: &Layout<'_>, row: &Row<'a, '_>, to: To) -> Option<&'a str> {
    layout.places(to).iter().find_map(|at| row.cells.get(*at).copied())
}

fn figure(layout: &Layout<'_>, row: &Row<'_, '_>, at: usize) -> Option<f64> {
    match layout.unit(at).read(row.cells.get(at)?) {
        Cell::Figure(value) => Some(value),
        _ => None,
    }
}

fn scope<'a>(layout: &Layout<'_>, row: &Row<'a, '_>) -> Option<&'a str> {
    cell(layout, row, To::Scope).or_else(|| cell(layout, row, To::Cpu))
}

/// A time of day in a column of its own, or before the row.
fn time(layout: &Layout<'_>, row: &Row<'_, '_>) -> Option<f64> {
    let cell = cell(layout, row, To::Clock);
    cell.and_then(crate::read::text::number::time_of_day).or(row.time_s)
}

/// A row as a table by itself.
pub(super) fn table(
    format: &Format,
    layout: &Layout<'_>,
    row: &Row<'_, '_>,
    reading: &mut Reading<'_>,
) {
    let figures = figures(layout, format.others, &row.cells);
    for name in format.tables {
        let mut table = reading.table(name).taken(time(layout, row));
        table.table.scope = scope(layout, row).map(str::to_owned);
        let own = figures.iter().filter(|figure| figure.table.is_none());
        own.for_each(|figure| put(&mut table, figure, row.line));
        reading.push(table);
    }
    apart(&figures, None, None, row, reading);
}

/// Figures that go into tables of their own.
fn apart(
    figures: &[Figure],
    scope: Option<&str>,
    id: Option<f64>,
    row: &Row<'_, '_>,
    reading: &mut Reading<'_>,
) {
    let mut tables: Vec<Rows> = Vec::new();
    for figure in figures {
        let Some(name) = figure.table else { continue };
        if tables.last().is_none_or(|last| last.table.name != name) {
            let mut table = reading.table(name);
            table.table.scope = scope.map(str::to_owned);
            table.gauge("id", id, row.line);
            tables.push(table);
        }
        if let Some(table) = tables.last_mut() {
            put(table, figure, row.line);
        }
    }
    tables.into_iter().for_each(|table| reading.push(table));
}

/// A row of a list: its thread, and what figures there are of it.
pub(super) fn thread(
    list: &List<'_>,
    layout: &Layout<'_>,
    row: &Row<'_, '_>,
    reading: &mut Reading<'_>,
) {
    let Some(mut thread) = list.thread(&row.cells, row.line, reading) else { return };
    thread.process = row.process.or(thread.process);
    let mut figures = figures(layout, Kind::Gauge, &row.cells);
    // pidstat prints -1 for what it may not see.
    figures.retain(|figure| figure.value >= 0.0);
    #[expect(clippy::cast_precision_loss, reason = "a number of a process")]
    let id = thread.id.map(|id| id as f64);
    apart(&figures, Some(&thread.name), id, row, reading);
    reading.evidence.threads.push(thread);
}

/// Rows that are intervals: each by itself, and the medians of all. The last row's figures are told.
pub(super) fn intervals(
    format: &Format,
    layout: &Layout<'_>,
    rows: &[&Row<'_, '_>],
    reading: &mut Reading<'_>,
) {
    let mut scopes: Vec<Option<&str>> = Vec::new();
    let mut of_scope: HashMap<Option<&str>, Vec<&Row<'_, '_>>> = HashMap::new();
    for row in rows {
        let scope = scope(layout, row);
        let known = of_scope.entry(scope).or_default();
        if known.is_empty() {
            scopes.push(scope);
        }
        known.push(row);
    }
    for scope in scopes {
        for name in format.tables {
            series(format, layout, name, scope, &of_scope[&scope], reading);
        }
    }
    for row in rows {
        apart(&figures(layout, format.others, &row.cells), None, None, row, reading);
    }
}

fn series(
    format: &Format,
    layout: &Layout<'_>,
    name: &str,
    scope: Option<&str>,
    rows: &[&Row<'_, '_>],
    reading: &mut Reading<'_>,
) {
    let mut all: HashMap<String, Vec<f64>> = HashMap::new();
    let mut last = Vec::new();
    let drops_first = format.boot == Boot::First && rows.len() > 1;
    for (at, row) in rows.iter().enumerate() {
        let mut table = reading.table(&format!("{name}_row")).taken(time(layout, row));
        table.table.scope = scope.map(str::to_owned).or_else(|| Some((at + 1).to_string()));
        let mut figures = figures(layout, format.others, &row.cells);
        figures.retain(|figure| figure.table.is_none());
        for figure in &figures {
            put(&mut table, figure, row.line);
            if at > 0 || !drops_first {
                all.entry(figure.name.clone()).or_default().push(figure.value);
            }
        }
        reading.push(table);
        last = figures;
    }
    let Some(line) = rows.last().map(|row| row.line) else { return };
    let with_most = format.rows == Becomes::IntervalsWithMost;
    let mut table = reading.table(name);
    table.table.scope = scope.map(str::to_owned);
    for mut figure in last {
        let Some(values) = all.get(&figure.name) else { continue };
        let Some(middle) = median(values) else { continue };
        figure.value = middle;
        put(&mut table, &figure, line);
        if with_most {
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            table.gauge(&format!("{}_max", figure.name), Some(most), line);
        }
    }
    if with_most {
        let times: Vec<f64> = rows.iter().filter_map(|row| time(layout, row)).collect();
        table.gauge("interval_s", interval(&times), line);
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        table.gauge("rows", Some(rows.len() as f64), line);
    }
    reading.push(table);
}

/// The load, where a row has it.
pub(super) fn load(layout: &Layout<'_>, row: &Row<'_, '_>, reading: &mut Reading<'_>) {
    let figures: Vec<f64> =
        layout.places(To::Load).iter().filter_map(|at| figure(layout, row, *at)).collect();
    if let [one, five, fifteen] = figures[..] {
        reading.evidence.host.load = Some(reading.said([one, five, fifteen], row.line));
    }
}

/// The use of CPUs: of all together a fact a row, of each as it was shown last.
///
/// A label that is no number is of another host: the busiest stands for all, because if it is idle,
/// all are.
pub(super) fn cpus(
    layouts: &[(&'static Format, Rc<Layout<'_>>)],
    rows: &[Row<'_, '_>],
    reading: &mut Reading<'_>,
) {
    let begun = reading.evidence.single_cpus.len();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut busiest: Option<(f64, Source)> = None;
    for row in rows {
        let layout = &layouts[row.layout].1;
        let Some(used) = cpu_use(layout, row, reading) else { continue };
        match cell(layout, row, To::Cpu) {
            None | Some("all" | "-") => reading.evidence.cpu.push(used),
            Some(label) if label.parse::<u16>().is_ok_and(|number| number < MAX_CPUS) => {
                let singles = &mut reading.evidence.single_cpus;
                match places.get(label) {
                    Some(at) => singles[begun + at].used = used,
                    None => {
                        places.insert(label.to_owned(), singles.len() - begun);
                        singles.push(OneCpu { name: label.to_owned(), used });
                    }
                }
            }
            Some(_) if busiest.as_ref().is_none_or(|(most, _)| used.user > *most) => {
                busiest = Some((used.user, used.source));
            }
            Some(_) => {}
        }
    }
    if let Some((share, source)) = busiest {
        let used = CpuUse { user: share, idle: 100.0 - share, ..CpuUse::none(source) };
        reading.evidence.cpu.push(used);
    }
}

/// The use that a row tells; a row of anything else is none.
fn cpu_use(layout: &Layout<'_>, row: &Row<'_, '_>, reading: &Reading<'_>) -> Option<CpuUse> {
    let part = |to: To| -> Option<f64> {
        let mut figures = layout.places(to).iter().filter_map(|at| figure(layout, row, *at));
        let first = figures.next()?;
        Some(figures.fold(first, |sum, value| sum + value))
    };
    let none = CpuUse { since_boot: row.since_boot, ..CpuUse::none(reading.at(row.line)) };
    if let Some(busy) = part(To::Busy) {
        let busy = busy.clamp(0.0, 100.0);
        return Some(CpuUse { user: busy, idle: 100.0 - busy, ..none });
    }
    let (system, idle) = (part(To::System)?, part(To::Idle)?);
    let parts = [To::User, To::Wait, To::Interrupt, To::Steal].map(|to| part(to).unwrap_or(0.0));
    let [user, iowait, interrupt, steal] = parts;
    // Some tools count all CPUs together as so many times 100.
    let sum = user + system + idle + iowait + interrupt + steal;
    let cpus = (sum / 100.0).round().max(1.0);
    Some(CpuUse {
        user: user / cpus,
        system: system / cpus,
        idle: idle / cpus,
        iowait: iowait / cpus,
        interrupt: interrupt / cpus,
        steal: steal / cpus,
        ..none
    })
}
