//! Reads lines by the shapes of their format.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use regex::{Captures, Regex};

use super::host;
use super::timing::Run;
use crate::evidence::{CpuUse, Number, Table};
use crate::read::table::cpu;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::{Hint, Section};
use crate::read::text::word_lists;

/// A format as data; [`FORMAT`] has the defaults.
pub(crate) struct Format {
    /// Its usual name.
    pub(crate) name: &'static str,
    /// First words of its heading, as phrases separated by bars. If empty, each line can begin the
    /// format.
    pub(crate) heading: &'static str,
    /// Each line that begins it has one of these words; empty if there are no such words.
    pub(crate) words: &'static str,
    /// These shapes identify a line.
    pub(crate) shapes: &'static [&'static str],
    /// Lines of these shapes belong to it once it has begun.
    pub(crate) more: &'static [&'static str],
    /// The table of its figures.
    pub(crate) table: &'static str,
    /// Whether each line is a table; otherwise a table ends where the next one begins.
    pub(crate) each: bool,
    /// Whether all shapes that fit read a line, and not only the first one.
    pub(crate) is_joint: bool,
    /// The figure that counts the lines of a scope; empty if lines are not counted.
    pub(crate) count: &'static str,
    /// Whether the first line of each scope goes to the log.
    pub(crate) is_logged: bool,
    /// Whether rows are recognised without their heading.
    pub(crate) bare: bool,
    /// Factors for figures without a unit.
    pub(crate) scales: &'static [(&'static str, f64)],
    /// Names of files that serve as the scope if no line has one.
    pub(crate) files: &'static str,
    /// Adds figures that combine others of the table.
    pub(crate) then: Option<fn(&mut Table)>,
    /// The compiled patterns. They live as long as the program.
    pub(crate) compiled: ManuallyDrop<OnceLock<Shapes>>,
}

/// The defaults of a format.
#[expect(clippy::declare_interior_mutable_const, reason = "each format takes its own")]
pub(crate) const FORMAT: Format = Format {
    name: "",
    heading: "",
    words: "",
    shapes: &[],
    more: &[],
    table: "",
    each: false,
    is_joint: false,
    count: "",
    is_logged: false,
    bare: false,
    scales: &[],
    files: "",
    then: None,
    compiled: ManuallyDrop::new(OnceLock::new()),
};

/// Patterns, with the names of their groups.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// This many of the first patterns identify a line alone.
    known: usize,
    all: Vec<Regex>,
}

impl Format {
    fn compiled(&self) -> &Shapes {
        self.compiled.get_or_init(|| {
            let all = self.shapes.iter().chain(self.more);
            let all = all.map(|shape| Regex::new(shape).expect("a constant pattern")).collect();
            Shapes { known: self.shapes.len(), all }
        })
    }

    /// Whether a line alone identifies the format.
    pub(crate) fn is_row(&self, text: &str) -> bool {
        let Shapes { known, all } = self.compiled();
        all[..*known].iter().any(|shape| shape.is_match(text.trim()))
    }

    /// Whether a line has the first shape.
    pub(crate) fn is_first(&self, text: &str) -> bool {
        self.compiled().all.first().is_some_and(|shape| shape.is_match(text.trim()))
    }

    /// Whether a line belongs to the format once it has begun.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        !self.more.is_empty() && self.compiled().all.iter().any(|shape| shape.is_match(text.trim()))
    }

    fn is_heading(&self, text: &str) -> bool {
        !self.heading.is_empty() && word_lists::begin_words(self.heading, text)
    }
}

/// Kinds of lines that are counted, at most.
const MAX_COUNTED: usize = 10_000;

/// The format while it is read.
struct Open<'f> {
    format: &'f Format,
    taken_s: Option<f64>,
    scope: Option<&'static str>,
    tables: Vec<Rows>,
    used: Option<CpuUse>,
    run: Run,
    /// Positions of the counting tables, by scope.
    counted: HashMap<String, usize>,
}

/// Reads a line with all the shapes that fit it; for readers that also take other lines.
pub(crate) fn note(format: &Format, line: &Line<'_>, reading: &mut Reading<'_>) {
    let section = Section { lines: &[], hint: Hint::default() };
    let mut open = Open::of(format, &section);
    for shape in &format.compiled().all {
        open.put_all(shape, line, reading);
    }
    open.end(reading);
}

/// Reads a section.
pub(crate) fn read(format: &Format, section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut open = Open::of(format, section);
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || format.is_heading(text) {
            continue;
        }
        let shapes = format.compiled().all.iter().filter(|shape| shape.is_match(text));
        let mut shapes = shapes.take(if format.is_joint { usize::MAX } else { 1 }).peekable();
        if shapes.peek().is_none() {
            reading.leave(line);
        }
        shapes.for_each(|shape| open.put_all(shape, line, reading));
        if format.each {
            open.end(reading);
        }
    }
    open.end(reading);
    reading.evidence.cpu.extend(open.used.map(in_percent));
}

impl<'f> Open<'f> {
    fn of(format: &'f Format, section: &Section<'_>) -> Self {
        Self {
            format,
            taken_s: section.hint.time_s,
            scope: file_of(format.files, section),
            tables: Vec::new(),
            used: None,
            run: Run::of(section.hint.command.as_deref().unwrap_or_default()),
            counted: HashMap::new(),
        }
    }

    /// Puts each match of a shape where its group's name says.
    fn put_all(&mut self, shape: &Regex, line: &Line<'_>, reading: &mut Reading<'_>) {
        for found in shape.captures_iter(line.text.trim()) {
            // A scope begins the table, even if it is not first in the line.
            for scopes in [true, false] {
                let names = shape.capture_names().flatten();
                names
                    .filter(|name| name.ends_with("scope") == scopes)
                    .for_each(|name| self.put(name, &found, line, reading));
            }
        }
    }

    /// Puts the match of a group where the group's name says.
    fn put(
        &mut self,
        name: &str,
        found: &Captures<'_>,
        line: &Line<'_>,
        reading: &mut Reading<'_>,
    ) {
        let Some(cell) = found.name(name).map(|cell| cell.as_str().trim()) else { return };
        let (table, name) = name.split_once('.').unwrap_or((self.format.table, name));
        match name.split_once('_').unwrap_or(("", name)) {
            ("", "key" | "unit" | "error") => {}
            ("", "scope") if !self.format.count.is_empty() => {
                let error = found.name("error").map_or("", |error| error.as_str());
                self.count(&format!("{cell} {error}"), line, reading);
            }
            ("", "scope") => {
                let rows = reading.table(table).scope(cell).taken(self.taken_s);
                self.tables.push(rows);
            }
            ("", "message") => reading.log(cell, line),
            ("", "log") => reading.log(&format!("{} {cell}", self.format.name), line),
            ("host", fact) => host::note_fact(fact, cell, line, reading),
            ("run", part) => self.run.take(part, cell, line, reading),
            ("parameter", _) => {
                let key = found.name("key").map_or(name, |key| key.as_str());
                reading.parameter(key, cell, line);
            }
            ("", "parameters") => cell.split_whitespace().for_each(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                let of_module = key.strip_prefix("zfs.").or_else(|| key.strip_prefix("spl."));
                reading.parameter(of_module.unwrap_or(key), value, line);
            }),
            ("cpu", part) => self.use_of_cpus(part, cell, line, reading),
            ("text", name) => self.table(table, reading).text(name, cell, line),
            ("counter", name) => {
                let (name, value) = self.figure(name, cell, found);
                self.table(table, reading).counter(&name, value, line);
            }
            _ => {
                let (name, value) = self.figure(name, cell, found);
                self.table(table, reading).gauge(&name, value, line);
            }
        }
    }

    /// Counts a line of a scope; the first one goes to the log.
    fn count(&mut self, scope: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
        let scope = scope.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(at) = self.counted.get(&scope) {
            if let Some(Number::Gauge(count)) =
                self.tables[*at].table.figures.first_mut().map(|figure| &mut figure.value)
            {
                *count += 1.0;
            }
        } else if self.tables.len() < MAX_COUNTED {
            let mut rows = reading.table(self.format.table).scope(scope.clone());
            rows.gauge(self.format.count, Some(1.0), line);
            self.counted.insert(scope, self.tables.len());
            self.tables.push(rows);
            if self.format.is_logged {
                reading.log(&format!("{} {}", self.format.name, line.text.trim()), line);
            }
        }
    }

    fn end(&mut self, reading: &mut Reading<'_>) {
        for mut rows in self.tables.drain(..) {
            if let Some(then) = self.format.then {
                then(&mut rows.table);
            }
            reading.push(rows);
        }
    }

    /// A figure and its name; name and unit may be groups of the line.
    fn figure(&self, name: &str, cell: &str, found: &Captures<'_>) -> (String, Option<f64>) {
        let part = |name: &str| found.name(name).map(|part| part.as_str());
        let key = if name == "value" { part("key").unwrap_or(name) } else { name };
        let unit = part("unit").and_then(|unit| number::bytes(&format!("1{unit}")));
        let name = if unit.is_some() { format!("{key}_bytes") } else { key.to_owned() };
        let scale = self.format.scales.iter().find(|(scaled, _)| *scaled == name);
        let scale = unit.or(scale.map(|(_, scale)| *scale)).unwrap_or(1.0);
        let plain = number::plain(cell).or_else(|| number::percent(cell));
        let suffixed = || match name.ends_with("_bytes") {
            true => number::bytes(cell),
            false => number::count(cell),
        };
        let value = plain.map(|value| value * scale).or_else(suffixed);
        (name, value)
    }

    /// The last table of a name, or a new one.
    fn table(&mut self, name: &str, reading: &Reading<'_>) -> &mut Rows {
        let known = self.tables.iter().rposition(|rows| rows.table.name == name);
        let at = known.unwrap_or_else(|| {
            let mut rows = reading.table(name).taken(self.taken_s);
            rows.table.scope = self.scope.map(str::to_owned);
            self.tables.push(rows);
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    fn use_of_cpus(&mut self, part: &str, cell: &str, line: &Line<'_>, reading: &Reading<'_>) {
        let none = || CpuUse { since_boot: true, ..CpuUse::none(reading.at(line)) };
        let used = self.used.get_or_insert_with(none);
        if let Some(slot) = cpu::part(used, part) {
            *slot += number::plain(cell).unwrap_or(0.0);
        }
    }
}

/// Largest sum of the percents of all CPUs, with some rounding.
const WHOLE_PERCENT: f64 = 112.0;

/// Ticks as percent.
fn in_percent(mut used: CpuUse) -> CpuUse {
    let all = cpu::sum(used.clone());
    if all > WHOLE_PERCENT {
        cpu::parts(&mut used).into_iter().for_each(|part| *part *= 100.0 / all);
    }
    used
}

/// Which of `files` the section shows. The command decides before the path, which may come from an
/// earlier banner.
fn file_of(files: &'static str, section: &Section<'_>) -> Option<&'static str> {
    let of_path = |path: &str| {
        let file = path.rsplit('/').next()?.split('.').next()?;
        files.split(' ').find(|name| !name.is_empty() && file.ends_with(name))
    };
    let typed = section.hint.command.as_deref();
    let typed = typed.and_then(|command| command.split_whitespace().rev().find_map(of_path));
    typed.or_else(|| section.hint.path.as_deref().and_then(of_path))
}
