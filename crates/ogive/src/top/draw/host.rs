//! The host's rows: CPUs, memory, pressure, CPU by role of threads.

use ratatui::style::Style;

use super::super::format::{self, bytes, percent};
use super::super::view::View;
use super::paint::Paint;
use super::rows::{Ranked, Row, TITLE, bar};
use super::{HOST, line_of_time};

/// At most so many CPUs have a bar each.
const CORES_MAX: usize = 256;
/// Columns of one CPU's bar, with its number and percent.
const CORE: usize = 22;
/// Rows of roles at most.
const ROLE_ROWS: usize = 4;

/// The rows, so many columns wide.
pub(super) fn rows(view: &View, columns: usize, paint: Paint) -> Vec<Ranked> {
    let mut rows = Vec::new();
    cpu(view, columns, paint, &mut rows);
    cores(view, columns, paint, &mut rows);
    memory(view, columns, paint, &mut rows);
    pressure(view, columns, paint, &mut rows);
    roles(view, columns, paint, &mut rows);
    rows
}

/// Kinds of CPU: series, letter, word.
const KINDS: [(&str, char, &str); 5] = [
    ("cpu_usr", 'u', "usr"),
    ("cpu_sys", 's', "sys"),
    ("cpu_irq", 'q', "irq"),
    ("cpu_steal", 't', "steal"),
    ("cpu_iowait", 'w', "iowait"),
];

fn style_of(letter: char, paint: Paint) -> Style {
    match letter {
        'u' => paint.first(),
        's' => paint.second(),
        'q' => paint.fifth(),
        't' => paint.fourth(),
        _ => paint.third(),
    }
}

fn cpu(view: &View, columns: usize, paint: Paint, rows: &mut Vec<Ranked>) {
    let last = |series| view.last(HOST, series);
    let mut row = Row::titled(columns, "CPU", paint.title());
    let width = row.left().saturating_sub(2);
    let mut drawn = 0;
    row = row.text("[");
    let mut sum = 0.0;
    for (series, letter, _) in KINDS {
        sum += last(series).unwrap_or(0.0);
        // From the sum, so that rounding errors do not add up.
        let end = format::part_of(width, sum / 100.0).max(drawn);
        let part = letter.to_string().repeat(end - drawn);
        row = row.piece(&[(&part, style_of(letter, paint))]);
        drawn = end;
    }
    row = row.piece(&[(&"·".repeat(width - drawn), paint.faint())]).text("]");
    rows.push(row.ranked(0));

    let mut row = Row::new(columns).text("  ");
    for name in ["cpu_usr", "cpu_sys", "cpu_iowait", "cpu_steal", "cpu_idle", "cpu_irq"] {
        let value = percent(last(name));
        let kind = KINDS.iter().find(|(series, _, _)| *series == name);
        let (letter, word, style) = match kind {
            Some((_, letter, word)) => (*letter, *word, style_of(*letter, paint)),
            None => ('·', "idle", paint.faint()),
        };
        row = row.piece(&[
            (&letter.to_string(), style),
            (&format!(" {word} {value:>5} "), Style::new()),
        ]);
    }
    rows.push(row.ranked(0));

    let busy = |series| view.recent(HOST, series, super::LINE_MAX);
    let (usr, sys, irq) = (busy("cpu_usr"), busy("cpu_sys"), busy("cpu_irq"));
    let sums: Vec<Option<f64>> =
        usr.iter().zip(&sys).zip(&irq).map(|((a, b), c)| Some((*a)? + (*b)? + (*c)?)).collect();
    let now = percent(sums.last().copied().flatten());
    let row = Row::titled(columns, "  busy", Style::new()).text(&format!("{now:>6} "));
    rows.push(line_of_time(row, view, &sums, Some(100.0), &percent, paint).ranked(11));
}

fn cores(view: &View, columns: usize, paint: Paint, rows: &mut Vec<Ranked>) {
    let mut row = Row::new(columns).text("  ");
    let (mut in_row, a_row) = (0, (columns.saturating_sub(2) / CORE).max(1));
    for core in 0..CORES_MAX {
        let usr = view.last(HOST, &format!("core_usr.{core}"));
        let sys = view.last(HOST, &format!("core_sys.{core}"));
        let (Some(usr), Some(sys)) = (usr, sys) else { continue };
        let inner = CORE - 12;
        let user = format::part_of(inner, usr / 100.0);
        let all = format::part_of(inner, (usr + sys) / 100.0).max(user);
        row = row.piece(&[
            (&format!("{core:>3} "), Style::new()),
            (&"u".repeat(user), paint.first()),
            (&"s".repeat(all - user), paint.second()),
            (&"·".repeat(inner - all), paint.faint()),
            (&format!(" {:>4.0}%  ", usr + sys), Style::new()),
        ]);
        in_row += 1;
        if in_row == a_row {
            rows.push(row.ranked(30));
            row = Row::new(columns).text("  ");
            in_row = 0;
        }
    }
    if in_row > 0 {
        rows.push(row.ranked(30));
    }
}

fn memory(view: &View, columns: usize, paint: Paint, rows: &mut Vec<Ranked>) {
    let last = |series| view.last(HOST, series);
    let (total, available) = (last("memory_total"), last("memory_available"));
    let mut row = Row::titled(columns, "Memory", paint.title()).text(&format!(
        "{} of {} available",
        bytes(available),
        bytes(total)
    ));
    for (series, word) in [
        ("memory_programs", "programs"),
        ("memory_cache", "page cache"),
        ("memory_slab", "slab"),
        ("memory_kernel", "other kernel"),
        ("memory_shared", "shared"),
        ("swap_used", "swap"),
    ] {
        if let Some(value) = last(series) {
            row = row.text(&format!("  {word} {}", bytes(Some(value))));
        }
    }
    rows.push(row.ranked(1));
    if let (Some(total), Some(available)) = (total, available)
        && total > 0.0
    {
        let row = Row::titled(columns, "  in use", Style::new());
        let width = row.left();
        let bar = bar(width, (total - available) / total, None);
        rows.push(row.piece(&[(&bar, paint.first())]).ranked(22));
    }
}

fn pressure(view: &View, columns: usize, paint: Paint, rows: &mut Vec<Ranked>) {
    let mut row = Row::titled(columns, "Pressure", paint.title());
    let mut is_known = false;
    for (series, word) in [
        ("pressure_cpu_some", "CPU"),
        ("pressure_io_some", "I/O"),
        ("pressure_memory_some", "memory"),
        ("pressure_io_full", "all for I/O"),
        ("pressure_memory_full", "all for memory"),
    ] {
        if let Some(value) = view.last(HOST, series) {
            is_known = true;
            row = row.text(&format!("{word} {:>5}  ", percent(Some(value))));
        }
    }
    if !is_known && view.history.sequence() > 0 {
        row = row.text("not reported by this kernel (CONFIG_PSI, psi=1)");
    }
    rows.push(row.ranked(2));
}

/// CPU by role of threads, the greatest first.
fn roles(view: &View, columns: usize, paint: Paint, rows: &mut Vec<Ranked>) {
    let mut roles = view.ranked(HOST, "role.").into_iter().filter(|(_, value)| *value >= 0.05);
    let mut row = Row::titled(columns, "Threads", paint.title());
    let mut drawn = 0;
    while drawn < ROLE_ROWS {
        let Some((role, value)) = roles.next() else { break };
        let piece = format!("{} {}  ", format::cut(&role, 24), percent(Some(value)));
        if format::columns_of(&piece) > row.left() {
            rows.push(row.ranked(if drawn == 0 { 3 } else { 25 }));
            row = Row::new(columns).text(&" ".repeat(TITLE));
            drawn += 1;
        }
        row = row.text(&piece);
    }
    if drawn < ROLE_ROWS && row.left() < columns.saturating_sub(TITLE) || drawn == 0 {
        rows.push(row.ranked(if drawn == 0 { 3 } else { 25 }));
    }
}
