//! Results: every sample at once as a line of JSON, and at the end a page for people.
//!
//! A line is written when its sample is there, so an interrupted run keeps what it had measured.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::{Context, Result};
use crate::machine;
use crate::session::Session;
use crate::spread::{Spread, number};

/// The results of one group.
pub struct Report {
    group: &'static str,
    lines: File,
    page: PathBuf,
    header: Value,
    samples: Vec<Value>,
    body: String,
    notes: Vec<String>,
}

impl Report {
    /// Begins the result files of `group`.
    pub fn begin(session: &Session, group: &'static str) -> Result<Self> {
        eprintln!("{group} ({})", session.mode.name());
        let path = session.results.join(format!("{group}.jsonl"));
        let lines = File::create(&path).context(|| format!("cannot make {}", path.display()))?;
        let header = machine::describe(session, group);
        let page = session.results.join(format!("{group}.md"));
        let mut report = Self {
            group,
            lines,
            page,
            header: header.clone(),
            samples: Vec::new(),
            body: String::new(),
            notes: Vec::new(),
        };
        report.line(&json!({ "header": header }))?;
        Ok(report)
    }

    /// Keeps one sample; `where_from` and `figures` are objects, put together in one.
    pub fn sample(&mut self, where_from: Value, figures: Value) -> Result<()> {
        let mut sample = where_from;
        if let (Some(into), Value::Object(figures)) = (sample.as_object_mut(), figures) {
            into.extend(figures);
        }
        self.line(&sample)?;
        self.samples.push(sample);
        Ok(())
    }

    /// A note for the reader of the page.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        eprintln!("  note: {text}");
        self.notes.push(text);
    }

    /// The values of `metric` in the samples that agree with `key`, in the order they came.
    pub fn values(&self, key: &Value, metric: &str) -> Vec<f64> {
        let agrees = |sample: &&Value| {
            key.as_object()
                .is_some_and(|key| key.iter().all(|(name, value)| sample[name] == *value))
        };
        let chosen = self.samples.iter().filter(agrees);
        chosen.filter_map(|sample| sample[metric].as_f64()).collect()
    }

    /// Names of everything in the samples that agree with `key`.
    pub fn metrics(&self, key: &Value) -> Vec<String> {
        let agrees = |sample: &&Value| {
            key.as_object()
                .is_some_and(|key| key.iter().all(|(name, value)| sample[name] == *value))
        };
        let chosen = self.samples.iter().filter(agrees).filter_map(Value::as_object);
        let mut names: Vec<String> = chosen.flat_map(|sample| sample.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Median and spread of `metric`, or a dash.
    pub fn cell(&self, key: &Value, metric: &str) -> String {
        Spread::of(self.values(key, metric)).map_or("-".into(), |spread| spread.render())
    }

    /// Ratios of `metric`, `upper` to `lower`, round by round. The two runs of a round follow each
    /// other, so other load of the machine affects both.
    pub fn ratio(&self, upper: &Value, lower: &Value, metric: &str) -> Option<Spread> {
        let by_round = |key: &Value| {
            let mut rounds = Vec::new();
            for round in 0.. {
                let mut key = key.clone();
                key["round"] = json!(round);
                match self.values(&key, metric).first() {
                    Some(&value) => rounds.push(value),
                    None => return rounds,
                }
            }
            rounds
        };
        let pairs = by_round(upper).into_iter().zip(by_round(lower));
        Spread::of(pairs.map(|(upper, lower)| upper / lower))
    }

    /// Adds a table to the page.
    pub fn table(&mut self, title: &str, columns: &[&str], rows: &[Vec<String>]) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.body, "\n## {title}\n\n| {} |", columns.join(" | "));
        let _ = writeln!(self.body, "|{}", "---|".repeat(columns.len()));
        for row in rows {
            let _ = writeln!(self.body, "| {} |", row.join(" | "));
        }
    }

    /// Writes the page.
    pub fn finish(mut self) -> Result<()> {
        self.header["load_after"] = json!(machine::load());
        let header = self.header.clone();
        let text = |name: &str| match &header[name] {
            Value::String(text) => text.clone(),
            Value::Number(value) => number(value.as_f64().unwrap_or(f64::NAN)),
            _ => "unknown".into(),
        };
        let mut page = format!("# {} ({})\n\n", self.group, text("mode"));
        let _ = writeln!(
            page,
            "`{}`, {}. {}, {}, {} GiB, {}; load {} before, {} after.",
            text("command"),
            text("date"),
            text("kernel"),
            text("cpu"),
            text("memory_gib"),
            text("file_system"),
            text("load_before"),
            text("load_after"),
        );
        let versions = header["versions"].as_object().into_iter().flatten();
        let versions: Vec<String> = versions
            .map(|(name, version)| format!("{name}: {}", version.as_str().unwrap_or("unknown")))
            .collect();
        let _ = writeln!(page, "Versions: {}.", versions.join("; "));
        let _ = writeln!(page, "Medians, with least and greatest of all rounds in parentheses.");
        page.push_str(&self.body);
        if !self.notes.is_empty() {
            page.push_str("\n## Notes\n\n");
            for note in &self.notes {
                let _ = writeln!(page, "- {note}");
            }
        }
        fs::write(&self.page, &page).context(|| format!("cannot write {}", self.page.display()))?;
        println!("{page}");
        Ok(())
    }

    fn line(&mut self, value: &Value) -> Result<()> {
        writeln!(self.lines, "{value}").context(|| "cannot write results".into())
    }
}

/// A ratio against what it should be.
pub fn verdict(ratio: Option<Spread>, at_least: f64) -> String {
    match ratio {
        None => "not run".into(),
        Some(ratio) if ratio.median >= at_least => format!("met (at least {at_least})"),
        Some(_) => format!("MISSED (at least {at_least})"),
    }
}
