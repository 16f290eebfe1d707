//! `perf report --stdio` and `perf top`: flat, with children, with call graphs, by thread, old and
//! new. Also rows without their heading, as people quote them.
//!
//! Columns vary. A row is recognised by the percentages in front and by `[k]`/`[.]` before the
//! symbol.

use super::call_graph::Graph;
use crate::evidence::{Frame, Profile, Source, SymbolRow};
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

static ROW: Pattern =
    Pattern::new(r"^([-+]?)\s*(\d{1,3}(?:[.,]\d+)?)%\s+(?:(\d{1,3}(?:[.,]\d+)?)%\s+)?(\S.*)$");
static OLD_TOP_ROW: Pattern = Pattern::new(r"^\d+\.\d\d\s+(\d+[.,]\d+)%\s+(\S+)\s+(\S+)$");
static SAMPLES: Pattern =
    Pattern::new(r"^#?\s*Samples:\s+(\d[\d.,]*[KMG]?)\s+of event\s+'?([^',]+)");

static PERF_TOP: Pattern =
    Pattern::new(r"^PerfTop:\s+(\d+) irqs/sec\s+kernel:\s*([\d.,]+)%(?:.*\(all, (\d+) CPUs?\))?");

static SURE_ROW: Pattern =
    Pattern::new(r"^[-+]?\s*\d{1,3}[.,]\d+%\s+(?:\d{1,3}[.,]\d+%\s+)?.*\[[k.gu]\]\s+\S");

/// Whether a line alone is a row of the table: percentages in front, `[k]` or `[.]` inside.
pub(crate) fn is_row(text: &str) -> bool {
    SURE_ROW.is_match(text.trim())
}

/// Whether a line is a row of a table with a heading.
pub(crate) fn is_data(text: &str) -> bool {
    ROW.is_match(text.trim())
}

/// The columns that the heading names.
#[derive(Debug, Default)]
struct Heading {
    children: bool,
    /// Number columns (`Samples`, `Period`) between percentages and names.
    counts: usize,
    /// Percentages after the first (`sys`, `usr`).
    extra_percents: usize,
    /// The columns of names, in the order of `--sort`.
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

/// Headings of the columns of names.
const NAMES: [(&str, Column); 4] = [
    ("Command", Column::Thread),
    ("Shared Object", Column::Object),
    ("DSO", Column::Object),
    ("Symbol", Column::Symbol),
];

impl Heading {
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(['#', ' ', '-', '+']);
        let children = text.starts_with("Children") && text.contains("Self");
        if !(children || text.starts_with("Overhead")) {
            return None;
        }
        let count = |names: &str| {
            text.split_whitespace().filter(|word| word_lists::has(names, word)).count()
        };
        let places = NAMES.iter().filter_map(|(name, column)| Some((text.find(name)?, *column)));
        let mut places: Vec<(usize, Column)> = places.collect();
        places.sort_by_key(|(at, _)| *at);
        Some(Self {
            children,
            counts: count("Samples Period"),
            extra_percents: count("sys usr"),
            order: places.into_iter().map(|(_, column)| column).collect(),
            seen: true,
        })
    }

    /// Whether the table has a column. Rows without a heading are assumed to have all but threads.
    fn has(&self, column: Column) -> bool {
        if self.seen { self.order.contains(&column) } else { column != Column::Thread }
    }
}

/// Reads the table and the graphs below its rows.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut profile = Profile { weighted: true, ..Profile::default() };
    let mut columns = Heading::default();
    let mut graphs: Vec<(usize, Graph)> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if let Some(found) = SAMPLES.captures(text) {
            finish(std::mem::take(&mut profile), std::mem::take(&mut graphs), reading, line);
            profile.weighted = true;
            profile.samples = number::count(&found[1]).map(|samples| samples as u64);
            profile.off_cpu = word_lists::begins("sched:|lock:", &found[2]);
        } else if let Some(found) = Heading::of(text) {
            columns = found;
        } else if let Some(found) = PERF_TOP.captures(text) {
            top_header(&found, line, reading);
        } else if word_lists::begins(DECORATION, text)
            || text.bytes().all(|byte| b"-_. ".contains(&byte))
        {
        } else if let Some(row) = (!is_of_graph(&line.text, &profile, &columns))
            .then(|| row(text, &columns, reading.at(line)))
            .flatten()
        {
            profile.rows.push(row);
        } else if !take_branch(&mut graphs, profile.rows.len(), line) {
            wrapped_or_left(line, &mut profile, reading);
        }
    }
    if let Some(line) = section.lines.first() {
        finish(profile, graphs, reading, line);
    }
}

/// Beginnings of lines without information.
const DECORATION: &str = "#|PerfTop:|samples  pcnt|Event count (approx.)|no symbols found|Press \
                          |For a higher level overview|Tip:|Cannot load tips";

/// Adds a line to the graph of the last row; `false` if it is not part of one.
fn take_branch(graphs: &mut Vec<(usize, Graph)>, rows: usize, line: &Line<'_>) -> bool {
    let Some(at) = rows.checked_sub(1) else { return false };
    if graphs.last().is_none_or(|(of, _)| *of != at) {
        graphs.push((at, Graph::default()));
    }
    graphs.last_mut().is_some_and(|(_, graph)| graph.take(&line.text, line.number))
}

/// The header of `perf top`: the kernel's share of the samples, and the number of CPUs.
fn top_header(found: &regex::Captures<'_>, line: &Line<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("perf_top");
    table.rate("irqs", number::plain(&found[1]), line);
    table.gauge("kernel_percent", number::percent(&found[2]), line);
    reading.push(table);
    if let Some(cpus) = found.get(3).and_then(|cpus| cpus.as_str().parse().ok()) {
        let cpus = reading.statement(cpus, line);
        reading.evidence.host.cpus.get_or_insert(cpus);
    }
}

/// Whether a percentage belongs to a graph: it stands behind bars, or, in the browser's drawing,
/// before a lone function.
fn is_of_graph(text: &str, profile: &Profile, columns: &Heading) -> bool {
    if profile.rows.is_empty() || !columns.has(Column::Symbol) {
        return false;
    }
    let bare = text.trim();
    let names_function = || {
        ROW.captures(bare).is_some_and(|found| found.get(3).is_none() && !found[4].contains(' '))
    };
    bare.starts_with('|') || bare.starts_with("--") || text.starts_with("  ") && names_function()
}

/// One row of the table.
fn row(text: &str, columns: &Heading, source: Source) -> Option<SymbolRow> {
    if let Some(found) = OLD_TOP_ROW.captures(text) {
        let frame = frame::frame(&found[2], Some(&found[3]));
        let self_percent = number::percent(&found[1]);
        return Some(SymbolRow { frame, self_percent, source, ..SymbolRow::default() });
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
    let (thread, frame) = names_by_order(rest, columns).or_else(|| names(rest, columns))?;
    Some(SymbolRow {
        thread: thread.map(thread_name),
        frame,
        self_percent: if children { second } else { Some(first) },
        total_percent: children.then_some(first),
        chains: Vec::new(),
        source,
    })
}

/// The cell of a thread and the function of a row.
type Names<'t> = (Option<&'t str>, Frame);

/// Thread and function by the order of the columns, which are separated by two blanks or more.
/// `None` where the symbol stands last as usual, or the cells do not match the heading.
fn names_by_order<'t>(rest: &'t str, columns: &Heading) -> Option<Names<'t>> {
    let order = &columns.order;
    if order.last() == Some(&Column::Symbol) && order.first() != Some(&Column::Object) {
        return None;
    }
    let cells: Vec<&str> =
        rest.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let cell = |column: Column| cells.get(order.iter().position(|one| *one == column)?);
    let symbol = cell(Column::Symbol).filter(|_| cells.len() == order.len())?;
    let mut frame = frame::frame(symbol, cell(Column::Object).copied());
    if symbol.starts_with('[') {
        frame.kernel = Some(symbol.starts_with("[k]") || symbol.starts_with("[g]"));
    }
    Some((cell(Column::Thread).copied(), frame))
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

/// Thread and function in the text after the figures.
fn names<'t>(rest: &'t str, columns: &Heading) -> Option<Names<'t>> {
    let marks = ["[k]", "[.]", "[g]", "[u]", "[H]"].iter();
    if let Some((at, mark)) = marks.filter_map(|mark| Some((rest.find(mark)?, *mark))).min() {
        let (before, symbol) = (rest[..at].trim(), &rest[at + mark.len()..]);
        let symbol = symbol.trim_start().split("  ").next().unwrap_or_default();
        let (thread, object) = thread_and_object(before, columns);
        let kernel = Some(mark == "[k]" || mark == "[g]");
        return Some((thread, Frame { kernel, ..frame::frame(symbol, object) }));
    }
    // Without a mark, only a table with a heading is reliable.
    if !columns.seen {
        return None;
    }
    if columns.has(Column::Symbol) {
        let symbol = rest.split_whitespace().next_back()?;
        let before = rest.trim_end().strip_suffix(symbol)?.trim_end();
        let (thread, object) = thread_and_object(before, columns);
        return Some((thread, frame::frame(symbol, object)));
    }
    let (thread, object) = thread_and_object(rest, columns);
    let frame = Frame { module: object.and_then(frame::module), ..Frame::default() };
    Some((thread, frame))
}

/// The cells before the symbol: the object is the last one, because a thread's name may contain
/// blanks.
fn thread_and_object<'t>(before: &'t str, columns: &Heading) -> (Option<&'t str>, Option<&'t str>) {
    let has_thread = columns.has(Column::Thread);
    if before.is_empty() {
        return (None, None);
    }
    if has_thread && !columns.has(Column::Object) {
        return (Some(before), None);
    }
    let split = before.rsplit_once("  ").or_else(|| before.rsplit_once(char::is_whitespace));
    match split.filter(|_| has_thread || !columns.seen) {
        Some((thread, object)) => (Some(thread.trim()), Some(object.trim())),
        None => (None, Some(before)),
    }
}

/// A symbol on a line of its own was wrapped by a terminal and belongs to the row above. Other
/// lines are left over.
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
    // All percentages of a report are of one kind.
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
