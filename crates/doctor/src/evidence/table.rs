//! Named figures: kstats, /proc files, the columns of tools.
//!
//! A figure has one of three kinds, and kinds do not mix. A *gauge* is momentary, a *rate* is per
//! second, and a *counter* grew since its table was created. A single counter value has no meaning:
//! rules see it only divided by time (two readings, or the table's age).

use super::Source;

/// A table of figures read at one moment from one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name, lower case: `arcstats`, `dbufstats`, `meminfo`, `vmstat`, `sar`, `txgs`, ...
    pub name: String,
    /// Its subject if several tables have this name: pool, device, slab, NUMA node, CPU.
    pub scope: Option<String>,
    /// Time of reading, in nanoseconds of a clock that all tables of a host share.
    pub taken_ns: Option<i128>,
    /// Age of the counters at the reading, in seconds: kstat `snaptime - crtime`, or uptime.
    pub age_s: Option<f64>,
    /// The figures, in order.
    pub figures: Vec<Figure>,
}

impl Table {
    /// A table without figures.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn number(&self, name: &str) -> Option<&Number> {
        let figure = self.figures.iter().find(|figure| figure.name == name)?;
        Some(&figure.value)
    }

    /// The figure with this name, of any kind.
    pub fn value(&self, name: &str) -> Option<f64> {
        match self.number(name)? {
            Number::Counter(value) | Number::Gauge(value) | Number::Rate(value) => Some(*value),
            Number::Text(_) => None,
        }
    }

    /// The word with this name.
    pub fn word(&self, name: &str) -> Option<&str> {
        if let Number::Text(word) = self.number(name)? { Some(word) } else { None }
    }

    /// Adds a figure that is computed from earlier ones; its source is that of the last of them.
    pub fn derive(&mut self, name: &str, value: Option<f64>) {
        if let Some(source) = self.figures.last().map(|last| last.source.clone()) {
            self.add(name, value, &source);
        }
    }

    /// Adds a figure, if there is a value.
    pub fn add(&mut self, name: &str, value: Option<impl Into<Number>>, source: &Source) {
        let figure = |value: Number| Figure { name: name.into(), value, source: source.clone() };
        self.figures.extend(value.map(|value| figure(value.into())));
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name as the source prints it; a converted figure has its unit appended (`_bytes`, `_ns`).
    pub name: String,
    /// Its value.
    pub value: Number,
    /// Where it was read.
    pub source: Source,
}

/// A value with its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A momentary value, in the unit of its name.
    Gauge(f64),
    /// Growth since the table was created or the host booted.
    Counter(f64),
    /// Per second, over an interval that the source knows.
    Rate(f64),
    /// A word: state, name of the fastest implementation.
    Text(String),
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Gauge(value)
    }
}

impl From<&str> for Number {
    fn from(word: &str) -> Self {
        Self::Text(word.to_owned())
    }
}
