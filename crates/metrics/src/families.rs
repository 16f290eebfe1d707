//! Which row of which kstat is told under which name.
//!
//! The table (`table.rs`) is the whole of it: a family is told of every mount that has its rows,
//! and rows of a second level only where there is one. A family's samples stand together, as both
//! formats want it, so it is the outer loop and the mounts are the inner one.

pub mod openzfs;
mod table;

use ogive_kstat::{Kstat, exponential};

use crate::exposition::{self, Exponential, Exposition, Kind, Label};
use table::FAMILIES;

/// What is known of a mount at a moment.
#[derive(Debug)]
pub struct Figures {
    /// The mount point, the value of the label `mount`.
    pub mount: String,
    /// Its `arcstats`.
    pub arcstats: Kstat,
    /// Its `zfetchstats`.
    pub zfetchstats: Kstat,
    /// Its `ogivestats`.
    pub ogivestats: Kstat,
}

/// Which kstat a row is in.
#[derive(Debug, Clone, Copy)]
enum From {
    Arcstats,
    Zfetchstats,
    Ogivestats,
}

/// What becomes of a row's number.
#[derive(Debug, Clone, Copy)]
enum Scale {
    One,
    /// Nanoseconds are told in seconds.
    Nanoseconds,
    /// 2³² is told as 1.
    Fraction32,
    /// 1 if it is this number, or else 0.
    Is(i128),
}

#[derive(Debug)]
struct Row {
    from: From,
    name: &'static str,
    scale: Scale,
    labels: &'static [Label<'static>],
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    rows: &'static [Row],
}

/// Rows of `ogivestats` with the distribution of how long a read of the source took begin so; the
/// rest of the name is an upper bound in microseconds, and the number how many were within it.
const WITHIN: &str = "origin_reads_within_us_";

/// Tells everything of some mounts.
pub fn tell(exposition: &mut Exposition, mounts: &[Figures]) {
    for family in FAMILIES {
        if mounts.iter().any(|figures| family.rows.iter().any(|row| figures.has(row))) {
            let samples = exposition.family(family.name, family.kind, family.help);
            for (figures, row) in
                mounts.iter().flat_map(|f| family.rows.iter().map(move |r| (f, r)))
            {
                let Some(number) = figures.number(row) else { continue };
                let mut labels = vec![("mount", figures.mount.as_str())];
                labels.extend_from_slice(row.labels);
                sample(samples, &labels, row.scale, number);
            }
        }
    }
    let times = exposition.family(
        "ogive_origin_read_duration_seconds",
        Kind::Histogram,
        "How long reads of the source took",
    );
    for figures in mounts {
        let (buckets, sum) = figures.origin_reads();
        let classes = figures.exponential();
        times.histogram(&[("mount", &figures.mount)], &buckets, sum, classes);
    }
}

/// Adds a row's number as its scale wants it.
fn sample(samples: &mut exposition::Family, labels: &[Label<'_>], scale: Scale, number: i128) {
    match scale {
        Scale::One => samples.sample(labels, number),
        Scale::Nanoseconds => samples.sample(labels, number as f64 / 1e9),
        Scale::Fraction32 => samples.sample(labels, number as f64 / 2_f64.powi(32)),
        Scale::Is(this) => samples.sample(labels, i32::from(number == this)),
    }
}

impl Figures {
    fn kstat(&self, from: From) -> &Kstat {
        match from {
            From::Arcstats => &self.arcstats,
            From::Zfetchstats => &self.zfetchstats,
            From::Ogivestats => &self.ogivestats,
        }
    }

    /// Whether a row is to be told: one of a second level only where there is one.
    fn has(&self, row: &Row) -> bool {
        let integer = |name| self.arcstats.get(name).and_then(ogive_kstat::Value::as_integer);
        !row.name.starts_with("l2_") || integer("l2_ndev").is_some_and(|devices| devices > 0)
    }

    fn number(&self, row: &Row) -> Option<i128> {
        self.has(row).then(|| self.kstat(row.from).get(row.name)?.as_integer())?
    }

    /// Upper bounds in seconds and how many were within each, the last of them all; and the sum.
    fn origin_reads(&self) -> (Vec<(f64, u64)>, f64) {
        let rows = self.ogivestats.entries.iter();
        let number = |value: &ogive_kstat::Value| u64::try_from(value.as_integer()?).ok();
        let mut buckets: Vec<(f64, u64)> = rows
            .filter_map(|row| {
                let bound: u64 = row.name.strip_prefix(WITHIN)?.parse().ok()?;
                Some((bound as f64 / 1e6, number(&row.value)?))
            })
            .collect();
        let of = |name| self.ogivestats.get(name).and_then(number).unwrap_or(0);
        // The count is read after the parts of it, and what is within a bound is no more than all.
        let most = buckets.last().map_or(0, |(_, within)| *within);
        buckets.push((f64::INFINITY, of("origin_reads").max(most)));
        (buckets, of("origin_read_ns") as f64 / 1e9)
    }

    /// The same in exponential classes. A daemon of an earlier version tells none, which looks like
    /// one that has read nothing.
    fn exponential(&self) -> Option<Exponential> {
        let mut counts: Vec<(i32, u64)> = self
            .ogivestats
            .entries
            .iter()
            .filter_map(|row| {
                let class = exponential::class_of_row(&row.name)?;
                Some((class, u64::try_from(row.value.as_integer()?).ok()?))
            })
            .collect();
        counts.sort_unstable();
        counts.dedup_by_key(|(class, _)| *class);
        let has_read = self.ogivestats.get("origin_reads")?.as_integer()? > 0;
        if counts.is_empty() && has_read {
            return None;
        }
        let shortest = counts.iter().position(|(class, _)| *class == exponential::FIRST);
        Some(Exponential {
            schema: exponential::SCHEMA,
            zero_threshold: exponential::upper_bound(exponential::FIRST),
            zero_count: shortest.map_or(0, |at| counts.remove(at).1),
            counts,
        })
    }
}

impl Row {
    const fn new(
        from: From,
        name: &'static str,
        scale: Scale,
        labels: &'static [Label<'static>],
    ) -> Self {
        Self { from, name, scale, labels }
    }

    /// A row that is told as it is, without a label.
    const fn plain(from: From, name: &'static str) -> Self {
        Self::new(from, name, Scale::One, &[])
    }
}

const fn counter(name: &'static str, help: &'static str, rows: &'static [Row]) -> Family {
    Family { name, kind: Kind::Counter, help, rows }
}

const fn gauge(name: &'static str, help: &'static str, rows: &'static [Row]) -> Family {
    Family { name, kind: Kind::Gauge, help, rows }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::Format;
    use ogive_kstat::{Entry, Value, arcstats::ARCSTATS, tables::ZFETCHSTATS};
    use std::collections::HashSet;

    fn figures(mount: &str, set: &[(&str, u64)]) -> Figures {
        let mut arcstats = ARCSTATS.rows(0, 0);
        let mut ogivestats = Kstat::new("ogive", "ogivestats");
        for (name, value) in set {
            if arcstats.set(name, *value).is_err() {
                let value = Value::U64(*value);
                ogivestats.entries.push(Entry { name: (*name).to_owned(), value });
            }
        }
        let zfetchstats = ZFETCHSTATS.rows(0, 0).to_kstat();
        Figures { mount: mount.to_owned(), arcstats: arcstats.to_kstat(), zfetchstats, ogivestats }
    }

    fn text(mounts: &[Figures]) -> String {
        let mut exposition = Exposition::new(Format::Text);
        tell(&mut exposition, mounts);
        String::from_utf8(exposition.finish()).unwrap()
    }

    #[test]
    fn rows_are_told_in_base_units_with_one_label_a_mount() {
        let set = [
            ("size", 4096),
            ("pd", 1 << 31),
            ("demand_data_hits", 7),
            ("evict_ns", 1_500_000_000),
            ("rule_data", 2),
        ];
        let text = text(&[figures("/a", &set), figures("/b", &[("size", 1)])]);
        for line in [
            "ogive_cache_size_bytes{mount=\"/a\"} 4096\nogive_cache_size_bytes{mount=\"/b\"} 1\n",
            "ogive_cache_mru_target_ratio{mount=\"/a\",content=\"data\"} 0.5\n",
            "_accesses_total{mount=\"/a\",access=\"demand\",content=\"data\",result=\"hit\"} 7\n",
            "ogive_cache_eviction_seconds_total{mount=\"/a\"} 1.5\n",
            "ogive_cache_rule{mount=\"/a\",content=\"data\",rule=\"2q\"} 1\n",
            "ogive_cache_rule{mount=\"/a\",content=\"data\",rule=\"arc\"} 0\n",
        ] {
            assert!(text.contains(line), "no {line}: {text}");
        }
        assert!(!text.contains("ogive_l2_"), "there is no second level: {text}");
    }

    #[test]
    fn a_second_level_is_told_where_there_is_one() {
        let text = text(&[figures("/a", &[("l2_ndev", 1), ("l2_hits", 3)]), figures("/b", &[])]);
        assert!(text.contains("ogive_l2_lookups_total{mount=\"/a\",result=\"hit\"} 3\n"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("ogive_l2") && line.contains("/b")));
    }

    #[test]
    fn a_distribution_never_has_fewer_in_all_than_within_a_bound() {
        let set = [
            ("origin_reads", 4),
            ("origin_read_ns", 2_000_000_000),
            ("origin_reads_within_us_50", 1),
            ("origin_reads_within_us_1000", 5),
        ];
        let text = text(&[figures("/a", &set)]);
        let name = "ogive_origin_read_duration_seconds";
        let expected = format!(
            "{name}_bucket{{mount=\"/a\",le=\"5e-5\"}} 1\n\
             {name}_bucket{{mount=\"/a\",le=\"0.001\"}} 5\n\
             {name}_bucket{{mount=\"/a\",le=\"+Inf\"}} 5\n\
             {name}_sum{{mount=\"/a\"}} 2\n{name}_count{{mount=\"/a\"}} 5\n"
        );
        assert!(text.ends_with(&expected), "{text}");
    }

    #[test]
    fn classes_are_those_of_the_rows_and_an_earlier_daemon_has_none() {
        let set = [
            ("origin_reads", 9),
            ("origin_reads_exponential_-8", 5),
            ("origin_reads_exponential_-96", 3),
            ("origin_reads_exponential_-12", 1),
        ];
        let told = figures("/a", &set).exponential().unwrap();
        assert_eq!((told.schema, told.zero_count), (2, 3));
        assert_eq!(told.counts, [(-12, 1), (-8, 5)]);
        assert_eq!(figures("/a", &set[..1]).exponential(), None);
        let nothing = figures("/a", &[("origin_reads", 0)]).exponential().unwrap();
        assert_eq!((nothing.zero_count, nothing.counts), (0, vec![]));
    }

    #[test]
    fn names_are_unique_and_every_row_of_arcstats_is_one() {
        let names: HashSet<_> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for row in FAMILIES.iter().flat_map(|family| family.rows) {
            let known = match row.from {
                From::Arcstats => ARCSTATS.field(row.name).is_some(),
                From::Zfetchstats => ZFETCHSTATS.field(row.name).is_some(),
                // Whether the mount has these is tested on a mount.
                From::Ogivestats => ARCSTATS.field(row.name).is_none(),
            };
            assert!(known, "{}", row.name);
        }
    }

    #[test]
    fn the_number_of_series_of_a_mount_is_bounded() {
        let set = [("l2_ndev", 1)];
        let lines = text(&[figures("/a", &set)]).lines().filter(|l| !l.starts_with('#')).count();
        assert!(lines < 200, "{lines}");
    }
}
