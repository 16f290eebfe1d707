//! The result of a replay as a table, JSON, CSV or a picture.

use std::fmt::Write as _;

use anyhow::Result;
use ogive_sim::curve::Point;
use ogive_sim::plot::{self, Series};
use ogive_sim::{Plan, Replay, Tally};
use serde_json::{Value, json};

use super::size_text;
use crate::value::Size;

/// Characters of a plot on the terminal, if its width is not known.
const PLOT_COLUMNS: usize = 80;
const PLOT_ROWS: usize = 21;

/// All parts of the result.
pub(crate) struct Answer {
    traces: Vec<String>,
    rows: Vec<Row>,
    curve: Option<Vec<Point>>,
    in_entries: bool,
    summary: Vec<(&'static str, Value, String)>,
    notes: Vec<String>,
}

struct Row {
    policy: String,
    /// The requested size: of the whole cache, even if a sample was replayed.
    size_bytes: u64,
    tally: Tally,
}

impl Answer {
    pub(crate) fn new(plan: &Plan, replay: &Replay, curve: Option<Vec<Point>>) -> Self {
        let in_entries = replay.is_in_entries();
        let footprint_bytes = replay.footprint.map_or(0, |(_, bytes, _)| bytes);
        let sizes: Vec<u64> = plan.sizes.iter().map(|size| size.bytes(footprint_bytes)).collect();
        let rows = replay.rows.iter().zip(sizes.iter().cycle());
        let rows = rows.map(|(simulation, &size_bytes)| Row {
            policy: simulation.name().to_string(),
            size_bytes,
            tally: simulation.tally(),
        });
        let mut answer = Self {
            traces: plan.traces.iter().map(|path| path.display().to_string()).collect(),
            rows: rows.collect(),
            curve,
            in_entries,
            summary: Vec::new(),
            notes: Vec::new(),
        };
        answer.summarize(plan, replay);
        answer
    }

    fn summarize(&mut self, plan: &Plan, replay: &Replay) {
        let counts = &replay.counts;
        let formats: Vec<String> = replay.formats.iter().map(ToString::to_string).collect();
        let formats = formats.join(", ");
        self.summary.push(("format", json!(formats), formats));
        let requests = counts.requests;
        self.summary.push(("requests", json!(requests), requests.to_string()));
        if let Some((keys, bytes, is_exact)) = replay.footprint {
            let about = if is_exact { "" } else { "about " };
            self.summary.push(("keys", json!(keys), format!("{about}{keys}")));
            let text = format!("{about}{}", size_text(bytes, self.in_entries));
            self.summary.push(("footprint_bytes", json!(bytes), text));
        }
        if plan.sample < 1.0 {
            let text = ogive_text::counted(
                replay.replayed,
                "request of the sample",
                "requests of the sample",
            );
            self.summary.push(("sampled_requests", json!(replay.replayed), text));
            self.notes.push("hits and evictions are those of the sample".to_owned());
        }
        for (name, count) in [
            ("bad_records_skipped", counts.bad),
            ("writes_skipped", counts.writes),
            ("prefetches_skipped", counts.prefetches),
            ("reads_dropped_when_recording", counts.dropped),
        ] {
            if count > 0 {
                self.summary.push((name, json!(count), count.to_string()));
            }
        }
        let oversize = self.rows.iter().map(|row| row.tally.oversize).max().unwrap_or(0);
        if oversize > 0 {
            self.notes.push(format!(
                "up to {oversize} requests were for keys heavier than a cache; they are misses"
            ));
        }
        if let Some(error) = self.curve_error() {
            let points = 100.0 * error;
            self.notes.push(format!(
                "the LRU curve is from a sample: within {points:.2} percentage points, with 95% \
                 confidence"
            ));
        }
    }

    /// The largest error of the curve, if it has any.
    fn curve_error(&self) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        let error = curve.iter().map(|point| point.error).fold(0.0, f64::max);
        (error > 0.0).then_some(error)
    }

    pub(crate) fn json(&self) -> Result<String> {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let summary: serde_json::Map<String, Value> = self
            .summary
            .iter()
            .map(|(name, value, _)| ((*name).to_owned(), value.clone()))
            .collect();
        let whole = json!({
            "traces": self.traces,
            "sizes_in": if self.in_entries { "entries" } else { "bytes" },
            "summary": summary,
            "results": rows,
            "lru_curve": self.curve,
            "notes": self.notes,
        });
        Ok(serde_json::to_string_pretty(&whole)? + "\n")
    }

    pub(crate) fn csv(&self) -> String {
        let mut text = String::from(
            "policy,size_bytes,requests,hits,hit_ratio,bytes,hit_bytes,byte_hit_ratio,evictions,\
             ghost_hits,oversize,cpu_ns_per_request\n",
        );
        for Row { policy, size_bytes, tally } in &self.rows {
            let ghosts = tally.counts.ghost_hits.map(|hits| hits.to_string()).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{policy},{size_bytes},{},{},{:.6},{},{},{:.6},{},{ghosts},{},{:.1}",
                tally.requests,
                tally.hits,
                tally.hit_ratio(),
                tally.bytes,
                tally.hit_bytes,
                tally.byte_hit_ratio(),
                tally.counts.evictions,
                tally.oversize,
                tally.ns_a_request(),
            );
        }
        text
    }

    /// The cells of the table, header first.
    pub(super) fn cells(&self) -> Vec<Vec<String>> {
        let header = [
            "policy",
            "size",
            "hit%",
            "byte hit%",
            "hits",
            "evictions",
            "ghost hits",
            "ns/request",
        ];
        let mut cells = vec![header.map(str::to_owned).to_vec()];
        for Row { policy, size_bytes, tally } in &self.rows {
            cells.push(vec![
                policy.clone(),
                size_text(*size_bytes, self.in_entries),
                format!("{:.2}", 100.0 * tally.hit_ratio()),
                format!("{:.2}", 100.0 * tally.byte_hit_ratio()),
                tally.hits.to_string(),
                tally.counts.evictions.to_string(),
                tally.counts.ghost_hits.map_or_else(|| "-".to_owned(), |hits| hits.to_string()),
                format!("{:.0}", tally.ns_a_request()),
            ]);
        }
        cells
    }

    /// The heading of the table.
    pub(super) fn heading(&self) -> String {
        let facts: Vec<String> = self
            .summary
            .iter()
            .filter(|(_, _, text)| !text.is_empty())
            .map(|(name, _, text)| {
                format!("{}: {text}", name.trim_end_matches("_bytes").replace('_', " "))
            })
            .collect();
        format!("{}\n{}", ogive_text::one_line(&self.traces.join(", ")), facts.join("; "))
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn table(&self, with_curve: bool) -> String {
        let mut text = format!("{}\n\n", self.heading());
        let cells = self.cells();
        let width = |column: usize| cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..cells[0].len()).map(width).collect();
        for row in cells.iter().filter(|_| cells.len() > 1) {
            let line: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| {
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                })
                .collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        if with_curve {
            let columns = rustix::termios::tcgetwinsize(std::io::stdout())
                .map_or(PLOT_COLUMNS, |size| usize::from(size.ws_col).clamp(40, 160));
            text.push('\n');
            text.push_str(&plot::terminal(&self.series(), columns, PLOT_ROWS, &self.size_text()));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        text
    }

    fn size_text(&self) -> impl Fn(u64) -> String + use<> {
        let in_entries = self.in_entries;
        move |bytes| size_text(bytes, in_entries)
    }

    /// The LRU curve, then a line through the sizes of each other policy.
    fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        if let Some(curve) = &self.curve {
            let points = curve.iter().map(|point| (point.size_bytes, point.hit_ratio)).collect();
            series.push(Series { name: "lru (curve)".to_owned(), points });
        }
        for row in &self.rows {
            let point = (row.size_bytes, row.tally.hit_ratio());
            match series.iter_mut().find(|series| series.name == row.policy) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name: row.policy.clone(), points: vec![point] }),
            }
        }
        series.iter_mut().for_each(|series| series.points.sort_by_key(|point| point.0));
        series
    }

    pub(crate) fn svg(&self) -> String {
        let title = format!("Hit ratio of {}", self.traces.join(", "));
        plot::svg(&title, &self.series(), &self.size_text())
    }
}

impl Row {
    fn json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "policy": self.policy,
            "size": Size(self.size_bytes).to_string(),
            "size_bytes": self.size_bytes,
            "requests": tally.requests,
            "hits": tally.hits,
            "hit_ratio": tally.hit_ratio(),
            "bytes": tally.bytes,
            "hit_bytes": tally.hit_bytes,
            "byte_hit_ratio": tally.byte_hit_ratio(),
            "evictions": tally.counts.evictions,
            "ghost_hits": tally.counts.ghost_hits,
            "oversize": tally.oversize,
            "cpu_ns_per_request": tally.ns_a_request(),
        })
    }
}
