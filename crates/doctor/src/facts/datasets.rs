//! Which data sets are read and written, from the kstats of their object sets.
//!
//! Their counters run since the data set was mounted, so that two readings are needed: what was
//! written last week says nothing about now.

use std::collections::BTreeMap;

use super::Facts;
use crate::evidence::{Number, Table};

impl Facts {
    /// Bytes that programs read and wrote between the first and the last reading, by data set, most
    /// first; those of none are left out.
    pub fn datasets_by_traffic(&self) -> Vec<(String, f64)> {
        let mut readings: BTreeMap<&str, Vec<&Table>> = BTreeMap::new();
        for table in self.evidence().tables.iter().filter(|table| table.name.starts_with("objset"))
        {
            let named = table.figures.iter().find(|figure| figure.name == "dataset_name");
            if let Some(Number::Text(name)) = named.map(|figure| &figure.value) {
                readings.entry(name).or_default().push(table);
            }
        }
        let mut all: Vec<(String, f64)> = readings
            .into_iter()
            .filter_map(|(name, mut tables)| {
                tables.sort_by_key(|table| table.taken_ns);
                let (first, last) = (tables.first()?, tables.last()?);
                let grown = bytes(last) - bytes(first);
                (grown > 0.0).then(|| (name.to_owned(), grown))
            })
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

fn bytes(table: &Table) -> f64 {
    let of = |figure: &Number| match figure {
        Number::Counter(value) | Number::Gauge(value) => *value,
        _ => 0.0,
    };
    let moved = table.figures.iter().filter(|figure| matches!(&*figure.name, "nread" | "nwritten"));
    moved.map(|figure| of(&figure.value)).sum()
}
