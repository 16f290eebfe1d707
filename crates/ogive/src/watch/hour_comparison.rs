//! The last minute compared with the minute an hour ago, by the doctor's comparison.
//!
//! Means of series become evidence. A series that is a rate of a counter becomes two readings of
//! that counter a minute apart, and a level becomes a gauge. CPU by roles of threads is part of the
//! answer, but not of the evidence. The rules need names of threads and programs, and a role is
//! neither.

use std::sync::Arc;

use ogive_doctor::compare;
use ogive_doctor::evidence::{CpuUse, Evidence, Figure, Number, Source, Statement, Table};
use ogive_doctor::report;
use ogive_doctor::rule::RuleSet;
use ogive_kstat::arcstats::ARCSTATS;
use ogive_watch::history::Means;
use ogive_watch::hour_comparison::{Earlier, OVER};
use ogive_watch::jobs::Subject;
use ogive_watch::sample::{counter_of, level_of};
use serde_json::{Value, json};

const THEN: &str = "the minute an hour ago";
const NOW: &str = "the last minute";
/// Most roles in the answer.
const ROLES_MAX: usize = 8;
/// The least difference of a role in the answer, in percent of a CPU.
const ROLE_DIFFERENCE_MIN: f64 = 1.0;

/// The comparison of `ogive doctor --compare --json`, with an additional member `roles`: CPU by
/// roles of threads in percent of one CPU, then and now, largest difference first.
pub(super) fn compare(
    rules: &RuleSet,
    source: &str,
    subject: &Subject,
    earlier: &Earlier,
) -> Value {
    let then = evidence(source, subject, &earlier.then, THEN);
    let now = evidence(source, subject, &earlier.now, NOW);
    let comparison = compare::compare(rules, (THEN, then), (NOW, now));
    let mut answer = report::comparison_json(&comparison);
    if let Some(members) = answer.as_object_mut() {
        let roles = roles(source, subject, earlier);
        let rows = roles.into_iter().map(|(role, then, now)| json!([role, then, now]));
        members.insert("roles".to_owned(), rows.collect());
    }
    answer
}

/// The identifier of the cache that a source is about.
fn cache<'s>(source: &'s str, subject: &Subject) -> &'s str {
    match subject {
        Subject::Host => "zfs",
        Subject::Mount(..) => source,
    }
}

fn evidence(source: &str, subject: &Subject, means: &Means, name: &str) -> Evidence {
    let source_of = Source::whole(&Arc::from(name));
    let mut evidence = Evidence::default();
    let host = |series: &str| means.get(&format!("host.{series}"));
    if let (Some(user), Some(system), Some(idle)) =
        (host("cpu_usr"), host("cpu_sys"), host("cpu_idle"))
    {
        evidence.cpu.push(CpuUse {
            user,
            system,
            idle,
            iowait: host("cpu_iowait").unwrap_or(0.0),
            interrupt: host("cpu_irq").unwrap_or(0.0),
            steal: host("cpu_steal").unwrap_or(0.0),
            ..CpuUse::none(source_of.clone())
        });
    }
    let cpus = means.values.iter().filter(|(name, _)| name.starts_with("host.core_usr.")).count();
    if let Some(cpus) = u32::try_from(cpus).ok().filter(|cpus| *cpus > 0) {
        evidence.host.cpus = Some(Statement { value: cpus, source: source_of.clone() });
    }
    if let Subject::Mount(path, _) = subject {
        let value = path.to_string_lossy().into_owned();
        evidence.host.ogive_mount = Some(Statement { value, source: source_of.clone() });
    }
    evidence.tables = tables(&format!("{}.", cache(source, subject)), means, &source_of);
    evidence
}

/// The tables of a cache, read twice.
fn tables(prefix: &str, means: &Means, source: &Source) -> Vec<Table> {
    let mut tables = Vec::new();
    for (name, is_arcstats) in [("arcstats", true), ("ogivestats", false)] {
        let own = |row: &str| ARCSTATS.field(row).is_some() == is_arcstats;
        let reading = |seconds: f64| {
            let figure = |(series, mean): &(String, f64)| {
                let series = series.strip_prefix(prefix)?;
                let (row, value) = match (counter_of(series), level_of(series)) {
                    (Some(row), _) => (row, Number::Counter(mean * seconds)),
                    (None, Some(row)) => (row, Number::Gauge(*mean)),
                    (None, None) => return None,
                };
                own(row).then(|| Figure { name: row.to_owned(), value, source: source.clone() })
            };
            Table {
                name: name.to_owned(),
                scope: None,
                #[expect(clippy::cast_possible_truncation, reason = "0 or a minute")]
                taken_ns: Some((seconds * 1e9) as i128),
                age_s: None,
                figures: means.values.iter().filter_map(figure).collect(),
            }
        };
        let twice = [reading(0.0), reading(OVER.as_secs_f64())];
        tables.extend(twice.into_iter().filter(|table| !table.figures.is_empty()));
    }
    tables
}

/// CPU by roles of threads, then and now.
fn roles(source: &str, subject: &Subject, earlier: &Earlier) -> Vec<(String, f64, f64)> {
    let prefix = match subject {
        Subject::Host => "host.role.".to_owned(),
        Subject::Mount(..) => format!("{source}.stage."),
    };
    // A role that appears only in the last minute was idle before.
    let named = earlier.now.values.iter().chain(&earlier.then.values);
    let mut roles: Vec<(String, f64, f64)> = Vec::new();
    for (series, _) in named {
        let Some(role) = series.strip_prefix(&prefix) else { continue };
        if roles.iter().any(|(known, ..)| known == role) {
            continue;
        }
        let of = |means: &Means| means.get(series).unwrap_or(0.0);
        let (then, now) = (of(&earlier.then), of(&earlier.now));
        if (now - then).abs() >= ROLE_DIFFERENCE_MIN {
            roles.push((role.to_owned(), then, now));
        }
    }
    roles.sort_by(|a, b| {
        (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()).then_with(|| a.0.cmp(&b.0))
    });
    roles.truncate(ROLES_MAX);
    roles
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn means(values: &[(&str, f64)]) -> Means {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Means { steps: 60, values }
    }

    fn minute(busy: f64, misses: f64, origin: f64) -> Means {
        means(&[
            ("host.cpu_usr", busy / 2.0),
            ("host.cpu_sys", busy / 2.0),
            ("host.cpu_idle", 100.0 - busy),
            ("host.core_usr.0", busy / 2.0),
            ("host.core_usr.1", busy / 2.0),
            ("m1.demand_data_hits", 1000.0),
            ("m1.demand_data_misses", misses),
            ("m1.origin_reads", misses),
            ("m1.size", 1e9),
            ("m1.stage.origin", origin),
            ("m1.stage.requests", 5.0),
            ("m2.demand_data_misses", 7.0),
        ])
    }

    fn compared(then: Means, now: Means) -> Value {
        let rules = RuleSet::bundled().unwrap();
        let mount = Subject::Mount(PathBuf::from("/mnt/fast"), Some(1));
        compare(&rules, "m1", &mount, &Earlier { then, now })
    }

    #[test]
    fn changes_of_an_hour_are_reported_in_rates_and_roles() {
        let answer = compared(minute(10.0, 20.0, 1.0), minute(60.0, 400.0, 41.0));
        assert_eq!(answer["healthy"]["name"], THEN);
        assert_eq!(answer["sick"]["busy_cpus"], json!(1.2), "{answer}");
        let sentence = answer["sentence"].as_str().unwrap();
        assert!(sentence.starts_with(NOW), "{sentence}");
        let differences = answer["differences"].as_array().unwrap();
        let of = |name: &str| differences.iter().find(|one| one["name"] == name);
        let misses = of("arcstats.demand_data_misses").unwrap();
        assert_eq!(misses["factor"], json!(20.0), "{misses}");
        assert!(of("ogivestats.origin_reads").is_some(), "{answer}");
        assert!(of("arcstats.demand_data_hits").is_none(), "it did not change");
        assert_eq!(answer["roles"], json!([["origin", 1.0, 41.0]]));
    }

    #[test]
    fn equal_minutes_are_reported_as_equal() {
        let answer = compared(minute(10.0, 20.0, 1.0), minute(10.0, 20.0, 1.0));
        assert_eq!(answer["outcome"], "nothing explains it", "{answer}");
        assert_eq!(answer["roles"], json!([]));
    }
}
