//! Draws a view as a frame of any size; a pure function.
//!
//! Everything is rows of text ([`rows`]), and bars have letters, so the screen reads the same
//! without colours. On a wide screen the host is at the left and the mount at the right; otherwise
//! the host is above the mount.

mod cached_files;
mod host;
mod paint;
mod place;
mod rows;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Clear, Paragraph};

use self::paint::Paint;
use self::rows::{Row, fit};
use super::format;
use super::view::View;

/// The identifier of the host's series.
const HOST: &str = "host";
/// Steps that a line over time has at most.
const LINE_MAX: usize = 60;
/// The smallest screen that is drawn on.
const COLUMNS_MIN: u16 = 48;
const ROWS_MIN: u16 = 12;
/// From so many columns on there are two halves.
const COLUMNS_OF_HALVES: u16 = 150;

/// Draws the view.
pub(super) fn draw(view: &View, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        too_small(frame, area);
        return;
    }
    let paint = Paint::new(view.has_colour);
    let columns = usize::from(area.width);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    frame.render_widget(Paragraph::new(head(view, columns, paint)), Rect { height: 1, ..area });
    if view.history.sequence() == 0 {
        frame.render_widget(Paragraph::new("Measuring: the first figures take one step."), body);
    } else if area.width >= COLUMNS_OF_HALVES {
        let half = area.width / 2;
        let left = Rect { width: half - 1, ..body };
        let right = Rect { x: area.x + half + 1, width: area.width - half - 1, ..body };
        column(frame, left, host::rows(view, usize::from(left.width), paint));
        column(frame, right, part(view, usize::from(right.width), paint));
    } else {
        let mut rows = host::rows(view, columns, paint);
        rows.extend(part(view, columns, paint));
        column(frame, body, rows);
    }
    let foot_area = Rect { y: area.y + area.height - 1, height: 1, ..area };
    frame.render_widget(Paragraph::new(foot(view, columns, paint)), foot_area);
    if view.shows_help {
        help(frame, body, paint);
    }
}

/// The chosen place: its figures, or the files in its cache.
fn part(view: &View, columns: usize, paint: Paint) -> Vec<rows::Ranked> {
    if view.shows_objects() && view.chosen().is_some() {
        return cached_files::rows(view, columns, paint);
    }
    place::rows(view, columns, paint)
}

fn column(frame: &mut Frame<'_>, area: Rect, rows: Vec<rows::Ranked>) {
    let lines = fit(rows, usize::from(area.height));
    frame.render_widget(Paragraph::new(Text::from(lines)), area);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let lines = [
        "Too small.".to_owned(),
        format!("Here: {}x{}", area.width, area.height),
        format!("Needed: {COLUMNS_MIN}x{ROWS_MIN}"),
        "q ends".to_owned(),
    ];
    frame.render_widget(Paragraph::new(lines.map(Line::from).to_vec()), area);
}

fn head(view: &View, columns: usize, paint: Paint) -> Line<'static> {
    let step = format::seconds(view.interval.as_secs());
    let state = if view.is_paused {
        "  PAUSED, nothing is measured".to_owned()
    } else {
        format!("  step {step}")
    };
    let own = match view.last(HOST, "own_cpu") {
        Some(own) => format!("  watching costs {own:.1}% of a CPU"),
        None => String::new(),
    };
    let name = format::cut(&view.host, 30);
    let row = Row::new(columns)
        .piece(&[(" ogive top  ", paint.edge()), (&name, paint.edge())])
        .piece(&[(&state, paint.edge())])
        .piece(&[(&own, paint.edge())]);
    filled(row, paint)
}

fn foot(view: &View, columns: usize, paint: Paint) -> Line<'static> {
    let pause = if view.is_paused { "p go on" } else { "p pause" };
    let row = Row::new(columns)
        .piece(&[(" q quit  ? help  ", paint.edge()), (pause, paint.edge())])
        .piece(&[("  o files", paint.edge())])
        .piece(&[(if view.shows_objects() { "  s order" } else { "" }, paint.edge())])
        .piece(&[("  + - step", paint.edge())])
        .piece(&[("  Tab, arrows: next mount", paint.edge())]);
    filled(row, paint)
}

fn filled(row: Row, paint: Paint) -> Line<'static> {
    let rest = " ".repeat(row.left());
    row.piece(&[(&rest, paint.edge())]).line()
}

const HELP: [&str; 17] = [
    "q, Ctrl-C     quit",
    "p, Space      pause, go on; nothing is measured meanwhile",
    "Tab, Right, Down    next mount     Shift-Tab, Left, Up    mount before",
    "o             files in the cache, directories, figures again",
    "s             order of files: bytes, reads, misses, bytes from the source",
    "+  -          longer or shorter steps (1 s to 1 min); lines start again",
    "?, Esc        close this",
    "",
    "u usr: programs   s sys: kernel   q irq: interrupts   w iowait: idle",
    "while a thread waits for I/O   t steal: taken by the hypervisor",
    "Pressure: share of the time in which a thread waited for the resource.",
    "Threads: CPU by role of threads; 100% is one CPU.",
    "MRU, MFU: used once lately, used several times; | marks the target.",
    "Window: new records on trial. Ghosts: keys of evicted records.",
    "Load: one read from the source or the second level. -: not measured.",
    "\"ogive watch\" shows the last hour in a browser; \"ogive doctor\" says",
    "where the CPU goes, and why.",
];

fn help(frame: &mut Frame<'_>, body: Rect, paint: Paint) {
    let columns = usize::from(body.width);
    let mut lines = vec![Row::new(columns).piece(&[("Help", paint.title())]).line()];
    lines.extend(HELP.map(|line| Line::from(line.to_owned())));
    frame.render_widget(Clear, body);
    frame.render_widget(Paragraph::new(lines).wrap(ratatui::widgets::Wrap { trim: true }), body);
}

/// Adds the values of the last steps as a line, with the value at its top and its length in time.
fn line_of_time(
    row: Row,
    view: &View,
    values: &[Option<f64>],
    top: Option<f64>,
    show: &dyn Fn(Option<f64>) -> String,
    paint: Paint,
) -> Row {
    let highest = values.iter().flatten().fold(0.0_f64, |top, value| top.max(*value));
    let legend = |steps: usize| {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let span = view.interval.checked_mul(steps).unwrap_or(Duration::MAX);
        let span = format::seconds(span.as_secs());
        match top {
            Some(_) => format!(" {span}"),
            None => format!(" {span}, top {}", show(Some(highest))),
        }
    };
    let room = row.left().saturating_sub(format::columns_of(&legend(LINE_MAX))).min(LINE_MAX);
    let skipped = values.len().saturating_sub(room);
    let line = format::sparkline(&values[skipped..], top.unwrap_or(highest));
    // The newest at the right, however few there are.
    row.piece(&[(&format!("{line:>room$}"), paint.first())])
        .piece(&[(&legend(room), paint.faint())])
}
