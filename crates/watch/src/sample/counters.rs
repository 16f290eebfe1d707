//! The counters of a cache, from arcstats and ogivestats, and the series that two readings give.
//! The table in `ogive-stats` says which statistic belongs to which series.

use std::sync::LazyLock;
use std::time::Instant;

use hashbrown::HashMap;
use ogive_kstat::Kstat;
use ogive_stats::{Field, Kind};

use super::Step;
use super::percentiles::{self, Within};

/// Every charted statistic, once for each file that has it.
fn charted() -> impl Iterator<Item = (&'static str, &'static Field)> {
    let files = [ogive_stats::ARCSTATS, ogive_stats::OGIVESTATS];
    files.into_iter().flatten().filter_map(|field| Some((field.series?, field)))
}

/// Series that are rates a second: each the sum of these counters.
static RATES: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    let mut rates: Vec<(&str, Vec<&str>)> = Vec::new();
    for (series, field) in charted().filter(|(_, field)| field.kind == Kind::Counter) {
        match rates.iter_mut().find(|(known, _)| *known == series) {
            Some((_, names)) => names.push(field.name),
            None => rates.push((series, vec![field.name])),
        }
    }
    rates
});

/// Series that are the counter itself.
fn levels() -> impl Iterator<Item = (&'static str, &'static str)> {
    let levels = charted().filter(|(_, field)| field.kind == Kind::Gauge);
    levels.map(|(series, field)| (series, field.name))
}

/// The counter that a series is a rate of. A sum has none, unless it only adds hits that had to
/// wait.
pub fn counter_of(series: &str) -> Option<&'static str> {
    let (_, names) = RATES.iter().find(|(name, _)| *name == series)?;
    let (first, rest) = names.split_first()?;
    rest.iter().all(|name| name.ends_with("_iohits")).then_some(*first)
}

/// The row that a series is the level of.
pub fn level_of(series: &str) -> Option<&'static str> {
    levels().find(|(name, _)| *name == series).map(|(_, row)| row)
}

/// The counters at one moment.
#[derive(Debug, Clone)]
pub(super) struct Counters {
    at: Instant,
    created_ns: i64,
    values: HashMap<String, i128>,
    /// The latency distribution of reads of the source.
    reads_within: Within,
}

impl Counters {
    /// The counters of some kstats.
    pub(super) fn new<'k>(at: Instant, kstats: impl IntoIterator<Item = &'k Kstat>) -> Self {
        let mut values = HashMap::new();
        let mut reads_within = Within::new();
        let mut created_ns = 0;
        for kstat in kstats {
            created_ns = kstat.crtime_ns;
            for entry in &kstat.entries {
                let Some(value) = entry.value.as_integer() else { continue };
                let bound = entry.name.strip_prefix(percentiles::WITHIN);
                match bound.and_then(|bound| bound.parse::<u32>().ok()) {
                    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
                    Some(bound_us) => reads_within.push((f64::from(bound_us), value as f64)),
                    None => drop(values.insert(entry.name.clone(), value)),
                }
            }
        }
        reads_within.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { at, created_ns, values, reads_within }
    }

    fn get(&self, name: &str) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
        self.values.get(name).map(|value| *value as f64)
    }

    /// The growth of a sum of counters; `None` if all are missing or the sum went back.
    fn since(&self, before: &Self, names: &[&str]) -> Option<f64> {
        let sum = |counters: &Self| {
            let there: Vec<_> = names.iter().filter_map(|name| counters.get(name)).collect();
            (!there.is_empty()).then(|| there.iter().sum::<f64>())
        };
        let counted = sum(self)? - sum(before)?;
        (counted >= 0.0).then_some(counted)
    }

    /// Puts the levels, and the rates between two looks.
    pub(super) fn put_series(&self, before: &Self, source: &str, step: &mut Step) {
        for (series, name) in levels() {
            if let Some(value) = self.get(name) {
                step.put(source, series, value);
            }
        }
        self.put_targets(source, step);
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        if self.created_ns != before.created_ns || seconds <= 0.0 {
            // A new mount at the same place, or OpenZFS was loaded again.
            return;
        }
        for (series, names) in RATES.iter() {
            if let Some(counted) = self.since(before, names) {
                step.put(source, series, counted / seconds);
            }
        }
        let demand = [
            "demand_data_hits",
            "demand_data_iohits",
            "demand_metadata_hits",
            "demand_metadata_iohits",
        ];
        let demand_missed = ["demand_data_misses", "demand_metadata_misses"];
        let prefetch = [
            "prefetch_data_hits",
            "prefetch_data_iohits",
            "prefetch_metadata_hits",
            "prefetch_metadata_iohits",
        ];
        let prefetch_missed = ["prefetch_data_misses", "prefetch_metadata_misses"];
        for (series, hits, misses) in [
            ("demand_hit_percent", &demand[..], &demand_missed[..]),
            ("prefetch_hit_percent", &prefetch[..], &prefetch_missed[..]),
            ("l2_hit_percent", &["l2_hits"][..], &["l2_misses"][..]),
        ] {
            // Without requests there is no ratio, which differs from a ratio of zero.
            if let (Some(hits), Some(misses)) =
                (self.since(before, hits), self.since(before, misses))
                && hits + misses > 0.0
            {
                step.put(source, series, hits / (hits + misses) * 100.0);
            }
        }
        for (series, time_ns, count) in
            [("load_ms", "load_ns", "loads"), ("joined_wait_ms", "joined_wait_ns", "joined_waits")]
        {
            if let (Some(time), Some(count)) =
                (self.since(before, &[time_ns]), self.since(before, &[count]))
                && count > 0.0
            {
                step.put(source, series, time / count / 1e6);
            }
        }
        self.put_reads(before, source, step);
        for (series, time_ns) in [("evict_seconds", "evict_ns"), ("lock_seconds", "lock_wait_ns")] {
            if let Some(time) = self.since(before, &[time_ns]) {
                step.put(source, series, time / 1e9 / seconds);
            }
        }
    }

    /// Percentiles of the latency of reads of the source, if there were reads.
    fn put_reads(&self, before: &Self, source: &str, step: &mut Step) {
        let Some(within) = percentiles::since(&self.reads_within, &before.reads_within) else {
            return;
        };
        let all = self.since(before, &["origin_reads"]).unwrap_or_default();
        for (series, share) in [("origin_read_p50_ms", 0.5), ("origin_read_p99_ms", 0.99)] {
            if let Some(value) = percentiles::percentile_ms(&within, all, share) {
                step.put(source, series, value);
            }
        }
    }

    /// The target of MRU. Since OpenZFS 2.2, `pd` and `pm` are MRU's shares of data and of metadata,
    /// and `meta` is the share of metadata, all in parts of 2^32. Before, `p` was the target in bytes.
    fn put_targets(&self, source: &str, step: &mut Step) {
        const WHOLE: f64 = 4_294_967_296.0;
        if let (Some(size), Some(meta), Some(data_mru), Some(meta_mru)) =
            (self.get("c"), self.get("meta"), self.get("pd"), self.get("pm"))
        {
            let metadata = meta / WHOLE;
            let share = metadata * meta_mru / WHOLE + (1.0 - metadata) * data_mru / WHOLE;
            step.put(source, "mru_target", size * share);
        } else if let Some(target) = self.get("p") {
            step.put(source, "mru_target", target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_kstat::{Entry, Value};
    use std::time::Duration;

    fn counters(at: Instant, created_ns: i64, values: &[(&str, u64)]) -> Counters {
        let mut kstat = Kstat::new("zfs", "arcstats");
        kstat.crtime_ns = created_ns;
        kstat.entries = values
            .iter()
            .map(|(name, value)| Entry { name: (*name).to_owned(), value: Value::U64(*value) })
            .collect();
        Counters::new(at, [&kstat])
    }

    fn series(before: &Counters, after: &Counters) -> HashMap<String, f64> {
        let mut step = Step::default();
        after.put_series(before, "m", &mut step);
        step.values.into_iter().collect()
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let start = Instant::now();
        let later = start + Duration::from_secs(2);
        let before = counters(
            start,
            7,
            &[
                ("demand_data_hits", 100),
                ("demand_data_misses", 10),
                ("loads", 5),
                ("load_ns", 1_000_000),
                ("size", 4),
            ],
        );
        let after = counters(
            later,
            7,
            &[
                ("demand_data_hits", 400),
                ("demand_data_misses", 110),
                ("loads", 9),
                ("load_ns", 9_000_000),
                ("size", 5),
            ],
        );
        let found = series(&before, &after);
        assert_eq!(found["m.demand_data_hits"], 150.0);
        assert_eq!(found["m.demand_data_misses"], 50.0);
        assert_eq!(found["m.demand_hit_percent"], 75.0);
        assert_eq!(found["m.load_ms"], 2.0);
        assert_eq!(found["m.size"], 5.0);
        assert!(!found.contains_key("m.l2_hits"), "a counter that the mount lacks has no series");
    }

    #[test]
    fn a_series_knows_its_row() {
        assert_eq!(counter_of("demand_data_hits"), Some("demand_data_hits"));
        assert_eq!(counter_of("prunes"), Some("arc_prune"));
        assert_eq!(counter_of("prefetch_hits"), None, "a sum of data and metadata");
        assert_eq!(counter_of("size"), None);
        assert_eq!(level_of("target"), Some("c"));
        assert_eq!(level_of("prunes"), None);
    }

    #[test]
    fn no_request_is_no_ratio() {
        let start = Instant::now();
        let values = [("demand_data_hits", 3), ("demand_data_misses", 1)];
        let before = counters(start, 1, &values);
        let after = counters(start + Duration::from_secs(1), 1, &values);
        let found = series(&before, &after);
        assert_eq!(found["m.demand_data_hits"], 0.0);
        assert!(!found.contains_key("m.demand_hit_percent"));
    }

    #[test]
    fn reads_of_the_source_have_percentiles_while_there_are_any() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let at = |at, fast, all| {
            let within = [
                ("origin_reads_within_us_1000", all),
                ("origin_reads_within_us_100", fast),
                ("origin_reads", all),
            ];
            counters(at, 1, &within)
        };
        let found = series(&at(start, 5, 10), &at(later, 105, 110));
        assert_eq!(found["m.origin_read_p50_ms"], 0.05);
        assert_eq!(found["m.origin_read_p99_ms"], 0.099);
        assert!(!found.contains_key("m.origin_reads_within_us_100"));
        let idle = self::series(&at(start, 5, 10), &at(later, 5, 10));
        assert!(!idle.contains_key("m.origin_read_p99_ms"), "no read is no latency");
        assert_eq!(idle["m.origin_reads"], 0.0);
    }

    #[test]
    fn counters_that_started_again_are_a_gap() {
        let start = Instant::now();
        let before = counters(start, 1, &[("demand_data_hits", 1000), ("size", 9)]);
        let remounted =
            counters(start + Duration::from_secs(1), 2, &[("demand_data_hits", 2000), ("size", 1)]);
        let found = series(&before, &remounted);
        assert_eq!(found["m.size"], 1.0);
        assert!(!found.contains_key("m.demand_data_hits"));
    }

    #[test]
    fn the_target_of_mru_is_a_share_of_each_kind() {
        let now = Instant::now();
        let half = 1 << 31;
        let new = counters(now, 1, &[("c", 1000), ("meta", half), ("pd", half), ("pm", 0)]);
        assert_eq!(series(&new, &new)["m.mru_target"], 250.0);
        let old = counters(now, 1, &[("c", 1000), ("p", 400)]);
        assert_eq!(series(&old, &old)["m.mru_target"], 400.0);
    }
}
