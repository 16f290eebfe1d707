//! Measures a step: the host, each mount of ogive, and OpenZFS. Each of these is a source here.
//!
//! A source keeps its last counters and gives rates. If a counter starts again (a remount), the
//! rate has a gap, not a jump. Names of series are `SOURCE.NAME`; the page knows their units.

mod counters;
mod host;
mod mount;
mod mounts;
mod percentiles;
mod roles;

pub use counters::{counter_of, level_of};
pub use mounts::Watched;

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use counters::Counters;
use host::Host;
use mounts::Mounts;

/// Values of one step.
#[derive(Debug, Default)]
pub struct Step {
    values: Vec<(String, f64)>,
}

impl Step {
    /// Adds a value, if it is a number.
    fn put(&mut self, source: &str, name: &str, value: f64) {
        if value.is_finite() {
            self.values.push((format!("{source}.{name}"), value));
        }
    }

    /// The values with their names.
    pub fn values(&self) -> &[(String, f64)] {
        &self.values
    }
}

/// The subject of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The host.
    Host,
    /// A mount of ogive: its mount point, and its process if known.
    Mount(PathBuf, Option<i32>),
}

/// All sources of a host.
#[derive(Debug)]
pub struct Sources {
    host: Host,
    mounts: Mounts,
    zfs: ogive_kstat::Source,
    zfs_counters: Option<Counters>,
}

impl Sources {
    /// The sources of this host, with these mounts.
    pub fn new(watched: Watched) -> Self {
        Self {
            host: Host::new(),
            mounts: Mounts::new(watched),
            zfs: ogive_kstat::Source::kernel(),
            zfs_counters: None,
        }
    }

    /// Takes over the numbers that mounts had before, so that their series keep their names.
    pub(crate) fn remember_mounts(&mut self, known: Vec<Option<PathBuf>>) {
        self.mounts.remember(known);
    }

    /// Mounts by their numbers; empty where a number is free.
    pub(crate) fn mount_paths(&self) -> &[PathBuf] {
        self.mounts.paths()
    }

    /// Forgets the last counters. After a pause, a rate since then would be an average over it.
    pub fn forget(&mut self) {
        self.host.forget();
        self.mounts.forget();
        self.zfs_counters = None;
    }

    /// Measures.
    pub fn step(&mut self) -> Step {
        let mut step = Step::default();
        self.host.step(&mut step);
        self.mounts.step(&mut step);
        match self.zfs.kstat("arcstats") {
            Ok(arcstats) => {
                let now = Counters::new(Instant::now(), [&arcstats]);
                if let Some(before) = &self.zfs_counters {
                    now.put_series(before, "zfs", &mut step);
                }
                self.zfs_counters = Some(now);
            }
            Err(_) => self.zfs_counters = None,
        }
        step
    }

    /// The subjects, by the identifiers of [`Sources::describe`].
    pub fn subjects(&self) -> Vec<(String, Subject)> {
        let mut subjects = vec![("host".to_owned(), Subject::Host)];
        subjects.extend(self.mounts.subjects());
        subjects
    }

    /// The sources for the page, each with an identifier, a kind, a name and a state.
    pub fn describe(&self) -> Value {
        let mut sources = vec![self.host.describe()];
        sources.extend(self.mounts.describe());
        if self.zfs_counters.is_some() {
            sources.push(serde_json::json!({
                "id": "zfs", "kind": "zfs", "name": "OpenZFS of this host", "state": "answers",
            }));
        }
        Value::Array(sources)
    }
}
