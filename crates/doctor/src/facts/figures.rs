//! Gauges, rates and ratios from tables.
//!
//! A counter is always divided by time: between two readings, by the age of its table, or by the
//! uptime of the host. The uptime gives a lower bound, because no counter is older than the host.

use std::collections::BTreeMap;

use super::{Facts, Known, Missing, absent};
use crate::evidence::{Figure, Number, Table};

/// Readings of one figure of one scope, oldest first.
type Readings<'a> = Vec<(&'a Table, &'a Figure)>;

fn split(path: &str) -> Known<(&str, &str)> {
    path.split_once('.').ok_or_else(|| Missing::Wrong(format!("{path} is not table.figure")))
}

/// Nanoseconds as seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "a difference of times in seconds needs no nanoseconds"
)]
pub(super) fn seconds(ns: i128) -> f64 {
    ns as f64 / 1e9
}

impl Facts {
    fn readings(&self, path: &str) -> Known<BTreeMap<Option<&str>, Readings<'_>>> {
        let (name, figure) = split(path)?;
        let mut scopes: BTreeMap<Option<&str>, Readings<'_>> = BTreeMap::new();
        for table in self.evidence().tables.iter().filter(|table| table.name == name) {
            if let Some(found) = table.figures.iter().find(|known| known.name == figure) {
                scopes.entry(table.scope.as_deref()).or_default().push((table, found));
            }
        }
        for readings in scopes.values_mut() {
            readings.sort_by_key(|(table, _)| table.taken_ns);
        }
        if scopes.is_empty() { absent(path) } else { Ok(scopes) }
    }

    /// The latest gauge; the largest where there are several scopes.
    pub fn gauge(&self, path: &str) -> Known<f64> {
        let mut best: Option<(f64, &Figure)> = None;
        for readings in self.readings(path)?.values() {
            let latest = readings.iter().rev().find_map(|(_, figure)| match figure.value {
                Number::Gauge(value) => Some((value, *figure)),
                _ => None,
            });
            if let Some(found) = latest
                && best.is_none_or(|(known, _)| known < found.0)
            {
                best = Some(found);
            }
        }
        match best {
            Some((value, figure)) => {
                self.used(&figure.source);
                Ok(value)
            }
            None => absent(format!("{path} as a value of now")),
        }
    }

    /// A size of the ARC, bytes (`size`, `c`, `c_min`, `c_max`, ...), from the kstat, arcstat or
    /// FreeBSD's top. Limits also come from the parameter that sets them.
    pub fn arc(&self, name: &str) -> Known<f64> {
        let shown = self
            .gauge(&format!("arcstats.{name}"))
            .or_else(|_| self.gauge(&format!("arcstat.{name}_bytes")));
        if let Ok(bytes) = shown {
            return Ok(bytes);
        }
        let set = |names: [&str; 3]| {
            let fixed =
                names.iter().filter_map(|name| self.param(name).ok()).find(|set| *set > 0.0);
            fixed.map_or_else(|| absent(format!("{name} of the ARC (arcstats)")), Ok)
        };
        match name {
            "size" => self.gauge("top.arc_total_bytes"),
            "c_max" => set(["zfs_arc_max", "vfs.zfs.arc_max", "vfs.zfs.arc.max"]),
            "c_min" => set(["zfs_arc_min", "vfs.zfs.arc_min", "vfs.zfs.arc.min"]),
            _ => absent(format!("{name} of the ARC (arcstats)")),
        }
    }

    /// The gauge of each scope that matches, latest reading.
    fn gauges_of(&self, table: &str, scope: &str, figure: &str) -> Known<Vec<f64>> {
        let pattern = self.pattern(scope)?;
        let path = format!("{table}.{figure}");
        let mut values = Vec::new();
        for (scope, readings) in self.readings(&path)? {
            if !pattern.is_match(scope.unwrap_or("")) {
                continue;
            }
            if let Some((_, found)) = readings.last()
                && let Number::Gauge(value) | Number::Rate(value) = found.value
            {
                self.used(&found.source);
                values.push(value);
            }
        }
        if values.is_empty() { absent(format!("{path} of {scope}")) } else { Ok(values) }
    }

    /// The largest gauge among matching scopes.
    pub fn gauge_of(&self, table: &str, scope: &str, figure: &str) -> Known<f64> {
        Ok(self.gauges_of(table, scope, figure)?.into_iter().fold(f64::MIN, f64::max))
    }

    /// Sum of a gauge over matching scopes.
    pub fn gauge_sum(&self, table: &str, scope: &str, figure: &str) -> Known<f64> {
        Ok(self.gauges_of(table, scope, figure)?.into_iter().sum())
    }

    /// Growth a second, summed over scopes.
    pub fn rate(&self, path: &str) -> Known<f64> {
        let mut sum = None;
        for readings in self.readings(path)?.values() {
            if let Some((rate, figure)) = self.rate_of(readings) {
                self.used(&figure.source);
                sum = Some(sum.unwrap_or(0.0) + rate);
            }
        }
        sum.map_or_else(|| absent(format!("{path} per second (two readings)")), Ok)
    }

    fn rate_of<'a>(&self, readings: &Readings<'a>) -> Option<(f64, &'a Figure)> {
        let stated: Vec<(f64, &'a Figure)> = readings
            .iter()
            .filter_map(|(_, figure)| match figure.value {
                Number::Rate(rate) => Some((rate, *figure)),
                _ => None,
            })
            .collect();
        if let Some((_, figure)) = stated.last() {
            #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
            return Some((
                stated.iter().map(|(rate, _)| rate).sum::<f64>() / stated.len() as f64,
                *figure,
            ));
        }
        if let Some((grown, interval_s, figure)) = growth(readings) {
            return Some((grown / interval_s?, figure));
        }
        let (table, figure) = readings.last()?;
        let Number::Counter(value) = figure.value else { return None };
        let age_s = table
            .age_s
            .or_else(|| self.evidence().host.uptime_s.as_ref().map(|uptime| uptime.value))?;
        (age_s > 0.0).then(|| (value / age_s, *figure))
    }

    /// Growth of a counter between the first and the last reading, summed over scopes.
    pub fn delta(&self, path: &str) -> Known<f64> {
        let mut sum = None;
        for readings in self.readings(path)?.values() {
            if let Some((grown, _, figure)) = growth(readings) {
                self.used(&figure.source);
                sum = Some(sum.unwrap_or(0.0) + grown);
            }
        }
        sum.map_or_else(|| absent(format!("{path} read twice")), Ok)
    }

    /// Quotient of two gauges, or of two rates.
    pub fn ratio(&self, above: &str, below: &str) -> Known<f64> {
        let (above, below) = match (self.gauge(above), self.gauge(below)) {
            (Ok(above), Ok(below)) => (above, below),
            _ => (self.rate(above)?, self.rate(below)?),
        };
        if below == 0.0 { absent("a quotient by zero") } else { Ok(above / below) }
    }

    /// Quotient of the growth of two counters, between two readings or since their start.
    pub fn counter_share(&self, above: &str, below: &str) -> Known<f64> {
        let (a, b) = match (self.delta(above), self.delta(below)) {
            (Ok(above), Ok(below)) => (above, below),
            _ => match (self.rate(above), self.rate(below)) {
                (Ok(above), Ok(below)) => (above, below),
                _ => (self.raw(above)?, self.raw(below)?),
            },
        };
        if b == 0.0 { absent(format!("{below} other than zero")) } else { Ok(a / b) }
    }

    /// Names of all figures that match, as table.figure.
    fn paths_like(&self, path: &str) -> Known<Vec<String>> {
        let pattern = self.pattern(path)?;
        let mut paths = std::collections::BTreeSet::new();
        for table in &self.evidence().tables {
            for figure in &table.figures {
                let path = format!("{}.{}", table.name, figure.name);
                if pattern.is_match(&path) {
                    paths.insert(path);
                }
            }
        }
        if paths.is_empty() {
            absent(format!("figures like {path}"))
        } else {
            Ok(paths.into_iter().collect())
        }
    }

    /// Quotient of the growth of all counters that match, between two readings or since their
    /// start.
    pub fn counter_share_like(&self, above: &str, below: &str) -> Known<f64> {
        let (above, below) = (self.paths_like(above)?, self.paths_like(below)?);
        let sum = |paths: &[String], ask: &dyn Fn(&str) -> Known<f64>| -> Option<f64> {
            let known: Vec<f64> = paths.iter().filter_map(|path| ask(path).ok()).collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        let grown = |path: &str| self.delta(path);
        let since_start = |path: &str| self.raw(path);
        let pair = match (sum(&above, &grown), sum(&below, &grown)) {
            (Some(above), Some(below)) => Some((above, below)),
            _ => sum(&above, &since_start).zip(sum(&below, &since_start)),
        };
        match pair {
            Some((above, below)) if below != 0.0 => Ok(above / below),
            _ => absent("counters to divide"),
        }
    }

    /// A counter since its start; only for quotients.
    fn raw(&self, path: &str) -> Known<f64> {
        let mut sum = None;
        for readings in self.readings(path)?.values() {
            if let Some((_, figure)) = readings.last()
                && let Number::Counter(value) = figure.value
            {
                self.used(&figure.source);
                sum = Some(sum.unwrap_or(0.0) + value);
            }
        }
        sum.map_or_else(|| absent(path), Ok)
    }

    /// A text in a table.
    pub fn word(&self, path: &str) -> Known<String> {
        for readings in self.readings(path)?.values() {
            if let Some((_, figure)) = readings.last()
                && let Number::Text(word) = &figure.value
            {
                self.used(&figure.source);
                return Ok(word.clone());
            }
        }
        absent(path)
    }

    /// Whether a figure, property or parameter of this name is given.
    pub fn is_shown(&self, name: &str) -> bool {
        let figure = name.contains('.') && self.readings(name).is_ok();
        figure
            || self.evidence().properties.iter().any(|property| property.name == name)
            || self.evidence().parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Whether a table of this name is given.
    pub fn has_table(&self, name: &str) -> bool {
        self.evidence().tables.iter().any(|table| table.name == name)
    }

    /// How many scopes of a table match.
    pub fn scope_count(&self, table: &str, scope: &str) -> Known<f64> {
        let pattern = self.pattern(scope)?;
        if !self.has_table(table) {
            return absent(table);
        }
        let hits: std::collections::BTreeSet<&str> = self
            .evidence()
            .tables
            .iter()
            .filter(|known| known.name == table)
            .filter_map(|known| known.scope.as_deref())
            .filter(|scope| pattern.is_match(scope))
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "a number of tables")]
        Ok(hits.len() as f64)
    }
}

/// Growth between the first and last reading of a counter that was not reset, and the seconds
/// between them where known.
fn growth<'a>(readings: &Readings<'a>) -> Option<(f64, Option<f64>, &'a Figure)> {
    let (first_table, first) = readings.first()?;
    let (last_table, last) = readings.last()?;
    if readings.len() < 2 || first_table.taken_ns == last_table.taken_ns {
        return None;
    }
    let (Number::Counter(before), Number::Counter(after)) = (&first.value, &last.value) else {
        return None;
    };
    let interval_s = match (first_table.taken_ns, last_table.taken_ns) {
        (Some(before), Some(after)) if after > before => Some(seconds(after - before)),
        _ => None,
    };
    (after >= before).then_some((after - before, interval_s, *last))
}
