//! One of the two hosts in comparable figures: CPUs instead of shares, rates instead of counters,
//! settings by name.

use std::collections::BTreeMap;

use super::describe::{self, Setting, Stated};
use crate::diagnose::{Diagnosis, diagnose};
use crate::evidence::{Evidence, Number, Source};
use crate::facts::{Facts, without_number};
use crate::rule::RuleSet;

/// Tables of counters that show the work of a host.
const TABLES: &str = "abdstats arcstats brtstats dbufstats ddtstats dmu_tx dnodestats fm \
     ogivestats proc_vmstat vdev_raidz zfetchstats zil";
/// The work of the host, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// Unit.
    pub(super) unit: &'static str,
    /// Units a second.
    pub(super) rate: f64,
}

/// A host.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: String,
    pub(super) diagnosis: Diagnosis,
    /// Busy CPUs, on average.
    pub(super) busy_cpus: Option<f64>,
    /// CPUs that ZFS used.
    pub(super) zfs_cpus: Option<f64>,
    pub(super) work: Vec<Work>,
    /// CPUs by subsystem.
    pub(super) subsystems: BTreeMap<&'static str, f64>,
    /// CPUs by thread or program, and whether it belongs to the kernel.
    pub(super) threads: BTreeMap<String, (f64, bool)>,
    pub(super) settings: BTreeMap<String, Setting>,
    /// Versions, processor, memory.
    pub(super) stated: BTreeMap<&'static str, Stated>,
    /// Rates by table and figure, with the lines of their readings.
    pub(super) rates: BTreeMap<String, (f64, Vec<Source>)>,
}

impl Side {
    pub(super) fn new(rules: &RuleSet, name: &str, evidence: Evidence) -> Self {
        let (settings, stated) = (describe::settings(&evidence), describe::stated(&evidence));
        let facts = Facts::new(evidence.clone());
        let diagnosis = diagnose(rules, evidence);
        let busy_cpus = facts
            .cpu("busy")
            .ok()
            .zip(facts.ncpu().ok())
            .map(|(percent, cpus)| percent * cpus / 100.0);
        let cpus = |percent: f64| busy_cpus.map(|busy| busy * percent / 100.0);
        let uses = facts.subsystems().unwrap_or_default();
        let subsystems =
            uses.iter().filter_map(|one| Some((one.name, cpus(one.percent)?))).collect();
        let mut threads: BTreeMap<String, (f64, bool)> = BTreeMap::new();
        for user in facts.consumers() {
            let Some(used) = user.share_percent.and_then(cpus) else { continue };
            let name = without_number(&user.name).to_owned();
            let entry = threads.entry(name).or_insert((0.0, user.is_kernel));
            entry.0 += used;
        }
        Self {
            name: name.to_owned(),
            busy_cpus,
            zfs_cpus: facts.zfs_share_with_consumers().and_then(cpus),
            work: work(&facts),
            subsystems,
            threads,
            settings,
            stated,
            rates: rates(&facts),
            diagnosis,
        }
    }
}

fn work(facts: &Facts) -> Vec<Work> {
    let sum = |paths: [&str; 2]| {
        let known: Vec<f64> = paths.iter().filter_map(|path| facts.rate(path).ok()).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    let mebibytes = sum(["objset.nread", "objset.nwritten"]).map(|bytes| bytes / 1_048_576.0);
    let accesses = sum(["arcstats.hits", "arcstats.misses"]);
    let units = [("MiB/s read and written", mebibytes), ("ARC accesses/s", accesses)];
    units.into_iter().filter_map(|(unit, rate)| Some(Work { unit, rate: rate? })).collect()
}

/// Rates between two readings, or printed as rates. An average since boot proves nothing about now
/// and cannot be compared with one.
fn rates(facts: &Facts) -> BTreeMap<String, (f64, Vec<Source>)> {
    let mut paths: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    let tables = &facts.evidence().tables;
    for table in tables.iter().filter(|table| TABLES.split(' ').any(|known| known == table.name)) {
        for figure in &table.figures {
            if matches!(figure.value, Number::Counter(_) | Number::Rate(_)) {
                let path = format!("{}.{}", table.name, figure.name);
                paths.entry(path).or_default().push(figure.source.clone());
            }
        }
    }
    let of_now = |path: &str| facts.delta(path).ok().and_then(|_| facts.rate(path).ok());
    paths
        .into_iter()
        .filter_map(|(path, sources)| Some((of_now(&path)?, path, sources)))
        .map(|(rate, path, sources)| (path, (rate, sources)))
        .collect()
}
