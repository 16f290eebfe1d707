//! The metric families of a mount, made from the rows of its kstats.
//!
//! A row of the table in `ogive-stats` names its family. Rows of a second level are left out if the
//! mount has none. Every format requires the samples of a family together, so families are the
//! outer loop and mounts the inner one.

pub mod openzfs;

use std::sync::LazyLock;

use ogive_kstat::Kstat;
use ogive_stats::{Field, Unit};

use crate::exposition::{self, Exposition, Kind, Label};

/// The kstats of a mount at one moment.
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

/// The kstat of a row.
#[derive(Debug, Clone, Copy)]
enum From {
    Arcstats,
    Zfetchstats,
    Ogivestats,
}

/// A family: its name, its meaning and its rows.
struct Family {
    name: &'static str,
    help: &'static str,
    rows: Vec<(From, &'static Field)>,
}

/// The families in their order, each with its rows.
static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let files = [
        (From::Arcstats, ogive_stats::ARCSTATS),
        (From::Zfetchstats, ogive_stats::ZFETCHSTATS),
        (From::Ogivestats, ogive_stats::OGIVESTATS),
    ];
    let rows =
        || files.into_iter().flat_map(|(from, file)| file.iter().map(move |row| (from, row)));
    let family = |&(name, help)| Family {
        name,
        help,
        rows: rows().filter(|(_, row)| row.family == Some(name)).collect(),
    };
    ogive_stats::FAMILIES.iter().map(family).collect()
});

impl Family {
    /// All rows have the same kind.
    fn kind(&self) -> Kind {
        self.rows.first().map_or(Kind::Gauge, |(_, row)| kind_of(row))
    }
}

fn kind_of(row: &Field) -> Kind {
    match row.kind {
        ogive_stats::Kind::Counter => Kind::Counter,
        ogive_stats::Kind::Gauge => Kind::Gauge,
    }
}

/// Prefix of the rows of `ogivestats` with the distribution of read latency. The rest of the name
/// is an upper bound in microseconds, and the number is that of the reads within it.
const WITHIN: &str = "origin_reads_within_us_";

/// Adds all families of some mounts.
pub fn tell(exposition: &mut Exposition, mounts: &[Figures]) {
    for family in FAMILIES.iter() {
        if mounts.iter().any(|figures| family.rows.iter().any(|(_, row)| figures.has(row))) {
            let samples = exposition.family(family.name, family.kind(), family.help);
            for (figures, (from, row)) in
                mounts.iter().flat_map(|f| family.rows.iter().map(move |row| (f, row)))
            {
                let Some(number) = figures.number(*from, row) else { continue };
                sample(samples, &[("mount", &figures.mount)], row, number);
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
        times.histogram(&[("mount", &figures.mount)], &buckets, sum);
    }
}

/// Adds a row's number in the base unit, with the row's own labels after `labels`.
fn sample(samples: &mut exposition::Family, labels: &[Label<'_>], row: &Field, number: i128) {
    let mut labels = [labels, row.labels].concat();
    match row.unit {
        Unit::Count | Unit::Bytes | Unit::Flag => samples.sample(&labels, number),
        Unit::Nanoseconds => samples.sample(&labels, number as f64 / 1e9),
        Unit::Fraction32 => samples.sample(&labels, number as f64 / 2_f64.powi(32)),
        Unit::Rule => {
            for (rule, name) in (0..).zip(ogive_stats::RULES) {
                labels.push(("rule", name));
                samples.sample(&labels, i32::from(number == rule));
                labels.pop();
            }
        }
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

    /// Whether a row is shown: those of a second level only if the mount has one.
    fn has(&self, row: &Field) -> bool {
        let integer = |name| self.arcstats.get(name).and_then(ogive_kstat::Value::as_integer);
        !row.name.starts_with("l2_") || integer("l2_ndev").is_some_and(|devices| devices > 0)
    }

    fn number(&self, from: From, row: &Field) -> Option<i128> {
        self.has(row).then(|| self.kstat(from).get(row.name)?.as_integer())?
    }

    /// Upper bounds in seconds with the number of reads within each, the last bound infinite; and
    /// the sum.
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
        // The total is read after the buckets and must not be less than the largest of them.
        let most = buckets.last().map_or(0, |(_, within)| *within);
        buckets.push((f64::INFINITY, of("origin_reads").max(most)));
        (buckets, of("origin_read_ns") as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::Format;
    use ogive_kstat::{Entry, Value, arcstats::ARCSTATS, files::ZFETCHSTATS};

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
    fn rows_are_shown_in_base_units_with_a_label_for_each_mount() {
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
        assert!(!text.contains("ogive_l2_"), "the mount has no second level: {text}");
    }

    #[test]
    fn a_second_level_is_shown_if_the_mount_has_one() {
        let text = text(&[figures("/a", &[("l2_ndev", 1), ("l2_hits", 3)]), figures("/b", &[])]);
        assert!(text.contains("ogive_l2_lookups_total{mount=\"/a\",result=\"hit\"} 3\n"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("ogive_l2") && line.contains("/b")));
    }

    #[test]
    fn the_total_of_a_distribution_is_never_less_than_a_bucket() {
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
    fn the_number_of_series_of_a_mount_is_bounded() {
        let set = [("l2_ndev", 1)];
        let lines = text(&[figures("/a", &set)]).lines().filter(|l| !l.starts_with('#')).count();
        assert!(lines < 200, "{lines}");
    }
}
