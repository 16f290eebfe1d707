//! What is measured in each step, and by whom: the host, each mount of ogive, OpenZFS.
//!
//! A source keeps what it saw last and tells rates, so that a counter that starts again (a remount)
//! is a gap and not a jump. Names of series are `SOURCE.NAME`, with a unit that the page knows.

mod counters;
mod host;
mod mount;
mod mounts;
mod percentiles;
mod roles;

pub use counters::{counter_of, level_of};
pub use mounts::Wanted;

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

/// What somebody can look at more closely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The host.
    Host,
    /// A mount of ogive: where it is, and its process where that is known.
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
    /// Those of this host, with these mounts.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            host: Host::new(),
            mounts: Mounts::new(wanted),
            zfs: ogive_kstat::Source::kernel(),
            zfs_counters: None,
        }
    }

    /// Takes over which numbers mounts had before, so that their series keep their names.
    pub(crate) fn remember_mounts(&mut self, known: Vec<Option<PathBuf>>) {
        self.mounts.remember(known);
    }

    /// Mounts by their numbers; empty where a number is free.
    pub(crate) fn mount_paths(&self) -> &[PathBuf] {
        self.mounts.paths()
    }

    /// Forgets what was seen last: after a pause, a rate since then would be an average of it all.
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
                    now.tell(before, "zfs", &mut step);
                }
                self.zfs_counters = Some(now);
            }
            Err(_) => self.zfs_counters = None,
        }
        step
    }

    /// What can be looked at more closely, by the identifiers of [`Sources::describe`].
    pub fn subjects(&self) -> Vec<(String, Subject)> {
        let mut subjects = vec![("host".to_owned(), Subject::Host)];
        subjects.extend(self.mounts.subjects());
        subjects
    }

    /// What there is, for the page: an identifier, a kind, a name and a state each.
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
