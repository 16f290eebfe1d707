//! The destination of rows: threads, the load, and figures in tables.

use std::collections::HashMap;

use super::format::{Boot, Rows as Becomes, To};
use super::layout::Layout;
use super::list;
use crate::read::text::clean::Line;
use crate::read::text::number::{interval, median, time_of_day};
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
    /// The row is the process itself; its threads come next.
    pub(super) is_process: bool,
}

/// One figure of a row: its table if that is not the format's, its name and its value.
pub(super) struct Figure {
    table: Option<&'static str>,
    name: String,
    value: f64,
    is_rate: bool,
}

/// The figures of a row, in the order of its columns.
pub(super) fn figures(layout: &Layout<'_>, cells: &[&str]) -> Vec<Figure> {
    let figure = |(at, (name, cell)): (usize, (&&str, &&str))| {
        let value = layout.unit_of_figures(at).figure(cell)?;
        let to = layout.column(at).map_or(layout.format.others, |column| column.to);
        let listed = match to {
            To::Nothing | To::Clock | To::Scope | To::Cpu => return None,
            To::Gauge(name) => Some((name, false)),
            To::Rate(name) => Some((name, true)),
            To::RateOr(name, _) if cell.ends_with("/s") => Some((name, true)),
            To::RateOr(_, name) => Some((name, false)),
            _ => None,
        };
        if let Some((name, is_rate)) = listed {
            let (table, name) =
                name.split_once('.').map_or((None, name), |(of, name)| (Some(of), name));
            return Some(Figure { table, name: name.to_owned(), value, is_rate });
        }
        let to = if matches!(to, To::Own | To::OwnRate | To::OwnBytes) {
            to
        } else {
            layout.format.others
        };
        let percent = name.strip_prefix('%').or_else(|| name.strip_suffix('%'));
        let (name, is_rate) = match (to, percent, name.strip_suffix("/s")) {
            (To::OwnBytes, ..) => (format!("{name}_bytes"), false),
            (_, Some(name), _) => (format!("{name}_percent"), false),
            (To::OwnRate, _, Some(name)) => (name.to_owned(), true),
            (_, _, Some(name)) => (format!("{name}_per_s"), true),
            _ => ((*name).to_owned(), to == To::OwnRate),
        };
        Some(Figure { table: None, name, value, is_rate })
    };
    layout.names.iter().zip(cells).enumerate().filter_map(figure).collect()
}

fn put(table: &mut Rows, figure: &Figure, line: &Line<'_>) {
    if figure.is_rate {
        table.rate(&figure.name, Some(figure.value), line);
    } else {
        table.gauge(&figure.name, Some(figure.value), line);
    }
}

/// The subject of a row: a device, or a CPU.
pub(super) fn scope<'a>(layout: &Layout<'_>, cells: &[&'a str]) -> Option<&'a str> {
    layout.cell(To::Scope, cells).or_else(|| layout.cell(To::Cpu, cells))
}

/// The time of day, from a column or from the text before the row.
fn time(layout: &Layout<'_>, row: &Row<'_, '_>) -> Option<f64> {
    layout.cell(To::Clock, &row.cells).and_then(time_of_day).or(row.time_s)
}

/// A row as a table of its own.
pub(super) fn table(layout: &Layout<'_>, row: &Row<'_, '_>, reading: &mut Reading<'_>) {
    let figures = figures(layout, &row.cells);
    for name in layout.format.tables {
        let mut table = reading.table(name).taken(time(layout, row));
        table.table.scope = scope(layout, &row.cells).map(str::to_owned);
        let own = figures.iter().filter(|figure| figure.table.is_none());
        own.for_each(|figure| put(&mut table, figure, row.line));
        reading.push(table);
    }
    apart(&figures, None, None, row, reading);
}

/// Adds figures that have tables of their own.
fn apart(
    figures: &[Figure],
    scope: Option<&str>,
    id: Option<f64>,
    row: &Row<'_, '_>,
    reading: &mut Reading<'_>,
) {
    let of_tables: Vec<&Figure> = figures.iter().filter(|figure| figure.table.is_some()).collect();
    for figures in of_tables.chunk_by(|one, other| one.table == other.table) {
        let Some(name) = figures[0].table else { continue };
        let mut table = reading.table(name);
        table.table.scope = scope.map(str::to_owned);
        table.gauge("id", id, row.line);
        figures.iter().for_each(|figure| put(&mut table, figure, row.line));
        reading.push(table);
    }
}

/// A row of a list: its thread and its figures. `of_one` means that the percents are of one CPU,
/// although the tool's are usually of all.
pub(super) fn thread(
    layout: &Layout<'_>,
    row: &Row<'_, '_>,
    of_one: bool,
    reading: &mut Reading<'_>,
) {
    let Some(mut thread) = list::thread(layout, &row.cells, row.line, reading) else { return };
    if layout.format.programs && list::is_idle(&thread.name) {
        let used = thread.machine_percent.map(|idle| reading.busy(100.0 - idle, row.line));
        return reading.evidence.cpu.extend(used);
    }
    if of_one {
        thread.cpu_percent = thread.machine_percent.take();
    }
    if row.since_boot {
        thread.life_percent = thread.cpu_percent.take();
    }
    if row.is_process {
        thread.id = row.process;
    } else {
        thread.process = row.process.or(thread.process);
    }
    let mut figures = figures(layout, &row.cells);
    // pidstat prints -1 for what it may not read.
    figures.retain(|figure| figure.value >= 0.0);
    #[expect(clippy::cast_precision_loss, reason = "a number of a process")]
    let id = thread.id.map(|id| id as f64);
    apart(&figures, Some(&thread.name), id, row, reading);
    if let Some(channel) = layout.cell(To::Waits, &row.cells) {
        list::note_wait(&thread, channel, reading);
    }
    reading.evidence.threads.push(thread);
}

/// Rows that are intervals: each as its own table, and the medians of all. The columns are those of
/// the last row.
pub(super) fn intervals(layout: &Layout<'_>, rows: &[&Row<'_, '_>], reading: &mut Reading<'_>) {
    let mut scopes: Vec<Option<&str>> = Vec::new();
    let mut of_scope: HashMap<Option<&str>, Vec<&Row<'_, '_>>> = HashMap::new();
    for row in rows {
        let scope = scope(layout, &row.cells);
        let known = of_scope.entry(scope).or_default();
        if known.is_empty() {
            scopes.push(scope);
        }
        known.push(row);
    }
    for scope in scopes {
        for name in layout.format.tables {
            series(layout, name, scope, &of_scope[&scope], reading);
        }
    }
    for row in rows {
        apart(&figures(layout, &row.cells), None, None, row, reading);
    }
}

fn series(
    layout: &Layout<'_>,
    name: &str,
    scope: Option<&str>,
    rows: &[&Row<'_, '_>],
    reading: &mut Reading<'_>,
) {
    let format = layout.format;
    let mut all: HashMap<String, Vec<f64>> = HashMap::new();
    let mut last = Vec::new();
    let drops_first = format.boot == Boot::First && rows.len() > 1;
    for (at, row) in rows.iter().enumerate() {
        let mut table = reading.table(&format!("{name}_row")).taken(time(layout, row));
        table.table.scope = scope.map(str::to_owned).or_else(|| Some((at + 1).to_string()));
        last = figures(layout, &row.cells);
        last.retain(|figure| figure.table.is_none());
        for figure in &last {
            put(&mut table, figure, row.line);
            if at > 0 || !drops_first {
                all.entry(figure.name.clone()).or_default().push(figure.value);
            }
        }
        reading.push(table);
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

/// The load, if a row has it.
pub(super) fn load(layout: &Layout<'_>, row: &Row<'_, '_>, reading: &mut Reading<'_>) {
    let figures: Vec<f64> = layout.figures(To::Load, &row.cells).collect();
    if let [one, five, fifteen] = figures[..] {
        reading.evidence.host.load = Some(reading.statement([one, five, fifteen], row.line));
    }
}
