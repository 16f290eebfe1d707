//! `perf report --stdio` and `perf top`: flat, with children, with call graphs, by thread, old and
//! new; also rows without their heading, as people quote them.
//!
//! Columns vary; a row is told by its percentages in front and by `[k]`/`[.]` before the symbol.

use std::sync::LazyLock;

use regex::Regex;

use super::call_graph::Graph;
use crate::evidence::{Frame, Profile, SymbolRow};
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([-+]?)\s*(\d{1,3}(?:[.,]\d+)?)%\s+(?:(\d{1,3}(?:[.,]\d+)?)%\s+)?(\S.*)$")
        .expect("a constant pattern")
});
static OLD_TOP_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\d+\.\d\d\s+(\d+[.,]\d+)%\s+(\S+)\s+(\S+)$").expect("a constant pattern")
});
static SAMPLES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^#?\s*Samples:\s+(\d[\d.,]*[KMG]?)\s+of event\s+'?([^',]+)")
        .expect("a constant pattern")
});

static PERF_TOP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^PerfTop:\s+(\d+) irqs/sec\s+kernel:\s*([\d.,]+)%(?:.*\(all, (\d+) CPUs?\))?")
        .expect("a constant pattern")
});

static SURE_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?\s*\d{1,3}[.,]\d+%\s+(?:\d{1,3}[.,]\d+%\s+)?.*\[[k.gu]\]\s+\S")
        .expect("a constant pattern")
});

/// Whether a line is a row of the table by itself: percentages in front, `[k]` or `[.]` inside.
pub(crate) fn is_row(text: &str) -> bool {
    SURE_ROW.is_match(text.trim())
}

/// Whether a line is a row of a table whose heading was seen.
pub(crate) fn is_data(text: &str) -> bool {
    ROW.is_match(text.trim())
}

/// What the heading says about the columns.
#[derive(Debug, Default, Clone)]
struct Heading {
    children: bool,
    thread: bool,
    object: bool,
    symbol: bool,
    /// Number columns (`Samples`, `Period`) between percentages and names.
    counts: usize,
    /// Percentages beside the first (`sys`, `usr`).
    extra_percents: usize,
    /// The columns of names in the order of `--sort`.
    order: Vec<Column>,
    seen: bool,
}

/// A column of names.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    Thread,
    Object,
    Symbol,
}

/// The columns of names by their places in a heading.
fn order(text: &str) -> Vec<Column> {
    let mut places = Vec::new();
    for (name, column) in [
        ("Command", Column::Thread),
        ("Shared Object", Column::Object),
        ("DSO", Column::Object),
        ("Symbol", Column::Symbol),
    ] {
        if let Some(at) = text.find(name) {
            places.push((at, column));
        }
    }
    places.sort_by_key(|(at, _)| *at);
    places.into_iter().map(|(_, column)| column).collect()
}

fn heading(text: &str) -> Option<Heading> {
    let text = text.trim_start_matches('#').trim();
    let text = text.trim_start_matches(['-', '+', ' ']);
    let children = text.starts_with("Children") && text.contains("Self");
    if !(children || text.starts_with("Overhead")) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(Heading {
        children,
        thread: words.contains(&"Command") || words.iter().any(|word| word.ends_with(":Command")),
        object: text.contains("Shared Object") || words.contains(&"DSO"),
        symbol: words.contains(&"Symbol"),
        counts: words.iter().filter(|word| matches!(**word, "Samples" | "Period")).count(),
        extra_percents: words.iter().filter(|word| matches!(**word, "sys" | "usr")).count(),
        order: order(text),
        seen: true,
    })
}

/// Reads the table and the graphs below its rows.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut profile = Profile { weighted: true, ..Profile::default() };
    let mut columns = Heading { thread: false, object: true, symbol: true, ..Heading::default() };
    let mut graphs: Vec<(usize, Graph)> = Vec::new();
    let mut graph: Option<Graph> = None;
    for line in section.lines {
        let text = line.text.trim();
        if let Some(found) = SAMPLES.captures(text) {
            if !profile.rows.is_empty() {
                close(&mut graphs, &mut graph, profile.rows.len());
                finish(std::mem::take(&mut profile), std::mem::take(&mut graphs), reading, line);
                profile.weighted = true;
            }
            profile.samples = number::count(&found[1]).map(|samples| samples as u64);
            profile.off_cpu = ["sched:", "lock:"].iter().any(|mark| found[2].starts_with(mark));
            continue;
        }
        if let Some(found) = heading(text) {
            columns = found;
            continue;
        }
        if let Some(found) = PERF_TOP.captures(text) {
            top_header(&found, line, reading);
            continue;
        }
        if is_decoration(text) {
            continue;
        }
        let indent = line.text.len() - line.text.trim_start().len();
        let row = if graph_line(
            &line.text,
            indent,
            !profile.rows.is_empty() && (columns.symbol || !columns.seen),
        ) {
            None
        } else {
            row(text, &columns, line, reading)
        };
        if let Some(row) = row {
            close(&mut graphs, &mut graph, profile.rows.len());
            profile.rows.push(row);
            continue;
        }
        let taken = !profile.rows.is_empty()
            && graph.get_or_insert_with(Graph::default).take(&line.text, line.number);
        if !taken {
            wrapped_or_left(line, &mut profile, reading);
        }
    }
    close(&mut graphs, &mut graph, profile.rows.len());
    if let Some(line) = section.lines.first() {
        finish(profile, graphs, reading, line);
    }
}

/// What `perf top` says above its rows: how much of the samples is in the kernel, on how many CPUs.
fn top_header(found: &regex::Captures<'_>, line: &Line<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("perf_top");
    table.rate("irqs", number::plain(&found[1]), line);
    table.gauge("kernel_percent", number::percent(&found[2]), line);
    reading.push(table);
    if let Some(cpus) = found.get(3).and_then(|cpus| cpus.as_str().parse().ok()) {
        let cpus = reading.said(cpus, line);
        reading.evidence.host.cpus.get_or_insert(cpus);
    }
}

fn close(graphs: &mut Vec<(usize, Graph)>, graph: &mut Option<Graph>, rows: usize) {
    if let Some(graph) = graph.take().filter(|graph| !graph.is_empty()) {
        graphs.push((rows.saturating_sub(1), graph));
    }
}

/// Percentages that belong to a graph stand behind bars, or, in the browser's drawing, name nothing
/// but a function.
fn graph_line(text: &str, indent: usize, has_rows: bool) -> bool {
    if !has_rows {
        return false;
    }
    let bare = text.trim_start();
    bare.starts_with('|')
        || bare.starts_with("--")
        || indent >= 2
            && ROW.captures(bare.trim()).is_some_and(|found| {
                let rest = &found[4];
                found.get(3).is_none()
                    && !rest.contains("[k]")
                    && !rest.contains("[.]")
                    && rest.split("  ").count() == 1
                    && !rest.contains(' ')
            })
}

fn is_decoration(text: &str) -> bool {
    text.is_empty()
        || text == "#"
        || text.starts_with('#') && heading(text).is_none()
        || text.starts_with("PerfTop:")
        || text.starts_with("samples  pcnt")
        || text.starts_with("Event count (approx.)")
        || text.starts_with("no symbols found")
        || text.starts_with("Press ")
        || text.starts_with("For a higher level overview")
        || text.starts_with("Tip:")
        || text.starts_with("Cannot load tips")
        || text.bytes().all(|byte| b"-_. ".contains(&byte))
}

/// One row of the table.
fn row(text: &str, columns: &Heading, line: &Line<'_>, reading: &Reading<'_>) -> Option<SymbolRow> {
    let source = reading.at(line);
    if let Some(found) = OLD_TOP_ROW.captures(text) {
        return Some(SymbolRow {
            thread: None,
            frame: frame::frame(&found[2], Some(&found[3])),
            self_percent: number::percent(&found[1]),
            total_percent: None,
            chains: Vec::new(),
            source,
        });
    }
    let found = ROW.captures(text)?;
    let first = number::percent(&found[2])?;
    let second = found.get(3).and_then(|cell| number::percent(cell.as_str()));
    let mut rest = &found[4];
    for _ in 1..columns.extra_percents {
        rest = rest.split_once(char::is_whitespace).map_or(rest, |(_, rest)| rest.trim_start());
    }
    for _ in 0..columns.counts {
        let (cell, after) = rest.split_once(char::is_whitespace)?;
        number::plain(cell)?;
        rest = after.trim_start();
    }
    let children = second.is_some() && (columns.children || !columns.seen);
    let (thread, frame) = names(rest, columns)?;
    Some(SymbolRow {
        thread,
        frame,
        self_percent: if children { second } else { Some(first) },
        total_percent: children.then_some(first),
        chains: Vec::new(),
        source,
    })
}

/// Thread and function by the order of the columns, which two blanks or more divide. `None` where
/// the symbol stands last as usual, or the cells are not those of the heading.
fn names_by_order(rest: &str, columns: &Heading) -> Option<(Option<String>, Frame)> {
    let at = columns.order.iter().position(|column| *column == Column::Symbol)?;
    if at + 1 == columns.order.len() && columns.order.first() != Some(&Column::Object) {
        return None;
    }
    let cells: Vec<&str> =
        rest.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    if cells.len() != columns.order.len() {
        return None;
    }
    let cell = |wanted: Column| {
        let at = columns.order.iter().position(|column| *column == wanted)?;
        cells.get(at).copied()
    };
    let symbol = cell(Column::Symbol)?;
    let mut frame = frame::frame(symbol, cell(Column::Object));
    if symbol.starts_with('[') {
        frame.kernel = Some(symbol.starts_with("[k]") || symbol.starts_with("[g]"));
    }
    Some((cell(Column::Thread).map(thread_name), frame))
}

/// The name in a cell for threads; `--sort pid` prints `1234:name`.
fn thread_name(cell: &str) -> String {
    let bare = match cell.split_once(':') {
        Some((id, name)) if id.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => {
            name
        }
        _ => cell,
    };
    frame::thread(bare).0
}

/// Thread and function of the text behind the figures.
fn names(rest: &str, columns: &Heading) -> Option<(Option<String>, Frame)> {
    if let Some(found) = names_by_order(rest, columns) {
        return Some(found);
    }
    let mark = ["[k]", "[.]", "[g]", "[u]", "[H]"]
        .iter()
        .filter_map(|mark| rest.find(mark).map(|at| (at, *mark)))
        .min();
    if let Some((at, mark)) = mark {
        let (before, symbol) = (rest[..at].trim(), &rest[at + mark.len()..]);
        let symbol = symbol.trim_start().split("  ").next().unwrap_or_default();
        let (thread, object) = thread_and_object(before, columns);
        let mut frame = frame::frame(symbol, object);
        frame.kernel = Some(mark == "[k]" || mark == "[g]");
        return Some((thread.map(thread_name), frame));
    }
    if columns.seen && columns.thread && !columns.symbol && !columns.object {
        return Some((Some(thread_name(rest)), Frame::default()));
    }
    // Without the mark only a table whose heading was seen can be trusted.
    let cells: Vec<&str> = rest.split_whitespace().collect();
    if !columns.seen || cells.is_empty() {
        return None;
    }
    if columns.object && !columns.symbol {
        let (thread, object) = thread_and_object(rest, columns);
        let frame = Frame { module: object.and_then(frame::module), ..Frame::default() };
        return Some((thread.map(thread_name), frame));
    }
    let symbol = cells.last().copied()?;
    let before = rest.trim_end().strip_suffix(symbol)?.trim_end();
    let (thread, object) = thread_and_object(before, columns);
    Some((thread.map(thread_name), frame::frame(symbol, object)))
}

/// The cells in front of the symbol: the object is the last, a thread's name may hold blanks.
fn thread_and_object<'t>(before: &'t str, columns: &Heading) -> (Option<&'t str>, Option<&'t str>) {
    if before.is_empty() {
        return (None, None);
    }
    let by_columns = before.rsplit_once("  ");
    let split = by_columns.or_else(|| before.rsplit_once(char::is_whitespace));
    match split {
        Some((thread, object)) if columns.thread || !columns.seen => {
            (Some(thread.trim()), Some(object.trim()))
        }
        _ if columns.seen && columns.thread && !columns.object => (Some(before), None),
        _ => (None, Some(before)),
    }
}

/// A symbol that a terminal put on a line of its own belongs to the row above; other lines go back.
fn wrapped_or_left(line: &Line<'_>, profile: &mut Profile, reading: &mut Reading<'_>) {
    let text = line.text.trim();
    let single =
        !text.contains(char::is_whitespace) || text.starts_with("[k] ") || text.starts_with("[.] ");
    match profile.rows.last_mut() {
        Some(row) if single && row.frame.symbol.is_none() => {
            let symbol = frame::frame(text, None);
            row.frame.symbol = symbol.symbol;
            row.frame.kernel = row.frame.kernel.or(symbol.kernel);
        }
        _ => reading.leave(line),
    }
}

fn finish(
    mut profile: Profile,
    graphs: Vec<(usize, Graph)>,
    reading: &mut Reading<'_>,
    line: &Line<'_>,
) {
    if profile.rows.is_empty() {
        return;
    }
    let percent_of = |row: &SymbolRow| row.total_percent.or(row.self_percent).unwrap_or(0.0);
    // One report has one kind of percentages.
    let relative =
        graphs.iter().any(|(at, graph)| graph.is_relative(percent_of(&profile.rows[*at])));
    let source = reading.at(line);
    for (at, graph) in &graphs {
        let row = &mut profile.rows[*at];
        let own = if row.total_percent.is_some() { row.self_percent } else { None };
        row.chains = graph.chains(&row.frame, percent_of(row), own, relative, &source);
    }
    reading.evidence.profiles.push(profile);
}
