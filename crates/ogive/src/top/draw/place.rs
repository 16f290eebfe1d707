//! The rows of a mount, or of OpenZFS: lookups, lists and their targets, the second level, evictions
//! and prunes, the source, the daemon.

use ratatui::style::Style;

use super::super::format::{self, byte_rate, bytes, count, milliseconds, percent};
use super::super::view::{Kind, Place, State, View};
use super::paint::Paint;
use super::rows::{Ranked, Row, bar};
use super::{LINE_MAX, line_of_time};

/// Columns of a figure in the table.
const CELL: usize = 13;

/// The rows, so many columns wide.
pub(super) fn rows(view: &View, columns: usize, paint: Paint) -> Vec<Ranked> {
    let Some((number, place)) = view.chosen() else { return nothing(view, columns, paint) };
    let mut rows = vec![title(view, number, place, columns, paint).ranked(0)];
    if let Some(row) = trouble(place, columns, paint) {
        rows.push(row.ranked(0));
    }
    if place.state == State::Gone {
        return rows;
    }
    let part = Part { view, id: &place.id, columns, paint };
    if place.state != State::Answers && part.last("size").is_none() {
        // Only the kernel's figures of the daemon are left.
        part.daemon(&mut rows);
        return rows;
    }
    part.lookups(&mut rows);
    part.sizes(&mut rows);
    part.second_level(&mut rows);
    part.given_back(&mut rows);
    if place.kind == Kind::Mount {
        part.source(&mut rows);
        part.daemon(&mut rows);
    }
    rows
}

/// Advice for a host without a mount and without OpenZFS.
fn nothing(view: &View, columns: usize, paint: Paint) -> Vec<Ranked> {
    if view.host.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![Row::new(columns).text("").ranked(40)];
    let title = "No mount of ogive on this host, and no OpenZFS.";
    rows.push(Row::new(columns).piece(&[(title, paint.title())]).ranked(0));
    for (text, rank) in [
        ("  ogive mount SRC MNT   mounts a directory through the cache;", 0),
        ("                        it appears here within seconds", 0),
        ("  ogive doctor          says where this host's CPU goes", 1),
    ] {
        rows.push(Row::new(columns).text(text).ranked(rank));
    }
    rows
}

pub(super) fn title(
    view: &View,
    number: usize,
    place: &Place,
    columns: usize,
    paint: Paint,
) -> Row {
    let of = match view.places.len() {
        0 | 1 => String::new(),
        all => format!("  {number} of {all} (Tab)"),
    };
    let room = columns.saturating_sub(format::columns_of(&of) + 6);
    let name = format::cut(&place.name, room);
    let row = Row::new(columns)
        .piece(&[("── ", paint.faint()), (&name, paint.title())])
        .text(&format!("{of} "));
    let rest = "─".repeat(row.left());
    row.piece(&[(&rest, paint.faint())])
}

fn trouble(place: &Place, columns: usize, paint: Paint) -> Option<Row> {
    let why = match &place.state {
        State::Answers => return None,
        State::Troubled(why) => why,
        State::Gone => "is no longer mounted; if it comes back, it is shown again",
    };
    let text = format!("! {}", format::cut(why, columns.saturating_sub(2)));
    Some(Row::new(columns).piece(&[(&text, paint.trouble())]))
}

/// One place's figures.
struct Part<'v> {
    view: &'v View,
    id: &'v str,
    columns: usize,
    paint: Paint,
}

impl Part<'_> {
    fn last(&self, series: &str) -> Option<f64> {
        self.view.last(self.id, series)
    }

    fn titled(&self, title: &str) -> Row {
        Row::titled(self.columns, title, self.paint.title())
    }

    /// Hits, misses and hit ratios by kind.
    fn lookups(&self, rows: &mut Vec<Ranked>) {
        let kinds = [
            ("data", "demand_data_hits", "demand_data_misses"),
            ("metadata", "demand_metadata_hits", "demand_metadata_misses"),
            ("prefetch", "prefetch_hits", "prefetch_misses"),
            ("second level", "l2_hits", "l2_misses"),
        ];
        let cell = |text: &str| format!("{text:>CELL$}");
        let mut head = self.titled("Lookups/s");
        let mut hit = Row::titled(self.columns, "  hits", self.paint.first());
        let mut missed = Row::titled(self.columns, "  misses", self.paint.second());
        let mut ratio = Row::titled(self.columns, "  hit %", Style::new());
        for (word, hits, misses) in kinds {
            let (hits, misses) = (self.last(hits), self.last(misses));
            let share = match (hits, misses) {
                (Some(hits), Some(misses)) if hits + misses > 0.0 => {
                    Some(hits / (hits + misses) * 100.0)
                }
                _ => None,
            };
            head = head.piece(&[(&cell(word), self.paint.faint())]);
            hit = hit.text(&cell(&count(hits)));
            missed = missed.text(&cell(&count(misses)));
            ratio = ratio.text(&cell(&percent(share)));
        }
        rows.push(head.ranked(1));
        rows.push(hit.ranked(1));
        rows.push(missed.ranked(1));
        rows.push(ratio.ranked(1));
        let row = Row::titled(self.columns, "Demand", self.paint.title());
        let row = row.text(&format!("{:>6} ", percent(self.last("demand_hit_percent"))));
        let values = self.view.recent(self.id, "demand_hit_percent", LINE_MAX);
        rows.push(
            line_of_time(row, self.view, &values, Some(100.0), &percent, self.paint).ranked(4),
        );
    }

    /// The lists as bars, with a mark at their targets.
    fn sizes(&self, rows: &mut Vec<Ranked>) {
        let target = self.last("target");
        let mru_target = self.last("mru_target");
        let mfu_target = target.zip(mru_target).map(|(all, mru)| (all - mru).max(0.0));
        let lists = [
            ("Cache", "size", target, Style::new(), 2),
            ("  MRU", "mru_bytes", mru_target, self.paint.first(), 3),
            ("  MFU", "mfu_bytes", mfu_target, self.paint.second(), 3),
            ("  window", "window_bytes", None, self.paint.third(), 9),
            ("MRU ghost", "mru_ghost_bytes", None, self.paint.fourth(), 10),
            ("MFU ghost", "mfu_ghost_bytes", None, self.paint.fourth(), 10),
        ];
        let values = lists.map(|(_, series, ..)| self.last(series));
        // All bars have one scale, so they can be compared.
        let top =
            values.iter().chain([&target]).flatten().fold(0.0_f64, |top, value| top.max(*value));
        for ((title, _, target, style, rank), value) in lists.into_iter().zip(values) {
            let Some(value) = value else { continue };
            let title_style = if rank == 2 { self.paint.title() } else { Style::new() };
            let row = Row::titled(self.columns, title, title_style);
            let of = target.map_or(String::new(), |target| format!("/ {}", bytes(Some(target))));
            let row = row.text(&format!("{:>9} {of:<12}", bytes(Some(value))));
            let share = |value: f64| if top > 0.0 { value / top } else { 0.0 };
            let bar = bar(row.left(), share(value), target.map(share));
            rows.push(row.piece(&[(&bar, style)]).ranked(rank));
        }
    }

    fn second_level(&self, rows: &mut Vec<Ranked>) {
        // A mount without a second level counts zero bytes.
        let Some(held) = self.last("l2_bytes").filter(|held| *held > 0.0) else { return };
        let mut row = self.titled("L2").text(&format!("{} held", bytes(Some(held))));
        row = row.text(&format!(
            "  read {}  written {}",
            byte_rate(self.last("l2_read_bytes")),
            byte_rate(self.last("l2_write_bytes"))
        ));
        row = row.text(&format!("  {} uncompressed", bytes(self.last("l2_uncompressed_bytes"))));
        let errors = self.last("l2_errors").filter(|errors| *errors > 0.0);
        if errors.is_some() {
            let text = format!("  ! {} errors/s", count(errors));
            row = row.piece(&[(&text, self.paint.trouble())]);
        }
        rows.push(row.ranked(5));
    }

    fn given_back(&self, rows: &mut Vec<Ranked>) {
        let mut row = self.titled("Evicted").text(&byte_rate(self.last("evict_bytes")));
        if self.last("reclaim_bytes").is_some() {
            row = row.text(&format!("  reclaimed {}", byte_rate(self.last("reclaim_bytes"))));
        }
        row = row.text(&format!("  prunes {}/s", count(self.last("prunes"))));
        if self.last("prune_examined").is_some() {
            row = row.text(&format!(
                ": {} inodes, {} freed",
                count(self.last("prune_examined")),
                count(self.last("prune_freed"))
            ));
        }
        rows.push(row.ranked(7));
    }

    fn source(&self, rows: &mut Vec<Ranked>) {
        let reads = self.last("origin_reads");
        let [p50, p99] = ["p50", "p99"].map(|name| self.last(&format!("origin_read_{name}_ms")));
        let latency = match (p50, p99, reads) {
            (Some(_), Some(_), _) => format!("p50 {} p99 {}", milliseconds(p50), milliseconds(p99)),
            (_, _, Some(0.0)) => "no requests".to_owned(),
            // An older daemon counts the time of all loads together.
            _ => format!("mean load {}", milliseconds(self.last("load_ms"))),
        };
        let row = self
            .titled("Source")
            .text(&latency)
            .text(&format!("  {} reads/s", count(reads)))
            .text(&format!("  {}", byte_rate(self.last("origin_bytes"))))
            .text(&format!("  to programs {}", byte_rate(self.last("read_bytes"))));
        rows.push(row.ranked(6));
        for (title, series, show) in [
            ("  loads", "load_ms", &milliseconds as &dyn Fn(Option<f64>) -> String),
            ("  p99", "origin_read_p99_ms", &milliseconds),
            ("  bytes", "origin_bytes", &byte_rate),
            ("  read", "read_bytes", &byte_rate),
        ] {
            let values = self.view.recent(self.id, series, LINE_MAX);
            if values.iter().flatten().next().is_some() {
                let row = Row::titled(self.columns, title, Style::new());
                rows.push(line_of_time(row, self.view, &values, None, show, self.paint).ranked(24));
            }
        }
    }

    fn daemon(&self, rows: &mut Vec<Ranked>) {
        let Some(all) = self.last("daemon_cpu") else { return };
        let mut row = self.titled("Daemon").text(&format!("{} of a CPU", percent(Some(all))));
        let stages = self.view.ranked(self.id, "stage.");
        for (at, (stage, value)) in
            stages.into_iter().filter(|(_, value)| *value >= 0.05).enumerate()
        {
            let sign = if at == 0 { ": " } else { "  " };
            row = row.text(&format!("{sign}{stage} {}", percent(Some(value))));
        }
        rows.push(row.ranked(8));
    }
}
