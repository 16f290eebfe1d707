//! The differences, each with the weight of its explanation.

use super::describe::{self, Setting, Stated};
use super::side::Side;
use super::{Difference, Kind, work_and_cost};
use crate::diagnose::{Finding, POSSIBLE};
use crate::evidence::Source;

/// A smaller part of the additional CPU is left out, percent.
const WORTH_PERCENT: f64 = 5.0;
/// A rate must differ by this factor, and by so much a second.
const WORTH_FACTOR: f64 = 3.0;
const WORTH_PER_SECOND: f64 = 1.0;
/// A load or its cost that differs by less than this factor is the same.
const SAME: f64 = 1.2;
/// The most rates without a cause that are listed.
const RATES: usize = 10;
/// Parameters that differ between all hosts by design.
const NO_SETTINGS: [&str; 2] = ["spl_hostid", "kern.hostid"];

/// All differences, in no order.
pub(super) fn differences(healthy: &Side, sick: &Side, extra: Option<f64>) -> Vec<Difference> {
    let mut all = causes(healthy, sick);
    let subsystems = |side: &Side| {
        side.subsystems.iter().map(|(name, cpus)| ((*name).to_owned(), *cpus)).collect()
    };
    let threads =
        |side: &Side| side.threads.iter().map(|(name, (cpus, _))| (name.clone(), *cpus)).collect();
    all.extend(cpus(Kind::Subsystem, &subsystems(healthy), &subsystems(sick), extra));
    all.extend(cpus(Kind::Thread, &threads(healthy), &threads(sick), extra));
    all.extend(settings(healthy, sick));
    all.extend(stated(healthy, sick));
    all.extend(load(healthy, sick));
    all.extend(rates(healthy, sick));
    all
}

/// The best finding that has one of the lines as evidence.
fn cited_by<'a>(sick: &'a Side, sources: &[Source]) -> Option<&'a Finding> {
    let stands = |finding: &&Finding| {
        finding
            .evidence
            .iter()
            .flat_map(|line| &line.sources)
            .any(|at| at.line.is_some() && sources.contains(at))
    };
    sick.diagnosis.findings.iter().find(stands)
}

fn causes(healthy: &Side, sick: &Side) -> Vec<Difference> {
    let words = |finding: &Finding| {
        let share = finding
            .share_percent
            .map(|share| format!(", {share:.0}% of its busy CPU"))
            .unwrap_or_default();
        format!("{} ({:.0}%){share}", finding.word, finding.confidence * 100.0)
    };
    let known = |side: &Side, id: &str| {
        let found = side.diagnosis.findings.iter().find(|one| one.id == id);
        found.filter(|one| one.confidence >= POSSIBLE).map(words)
    };
    let of_sick = sick.diagnosis.findings.iter().map(|finding| (finding, 1000.0));
    let only_healthy = |one: &&Finding| known(sick, &one.id).is_none();
    let of_healthy =
        healthy.diagnosis.findings.iter().filter(only_healthy).map(|finding| (finding, 0.0));
    of_sick
        .chain(of_healthy)
        .filter(|(finding, _)| finding.confidence >= POSSIBLE)
        .map(|(finding, base)| {
            let both = [known(healthy, &finding.id), known(sick, &finding.id)];
            Difference::new(Kind::Cause, &finding.id, both, base + 100.0 * finding.confidence)
        })
        // A value that both hosts share is no difference.
        .filter(|one| one.healthy != one.sick)
        .collect()
}

type Cpus = std::collections::BTreeMap<String, f64>;

fn cpus(kind: Kind, healthy: &Cpus, sick: &Cpus, extra: Option<f64>) -> Vec<Difference> {
    let Some(extra) = extra else { return Vec::new() };
    let worth = |(name, after): (&String, &f64)| {
        let before = healthy.get(name).copied().unwrap_or(0.0);
        let explains = (after - before) * 100.0 / extra;
        let explains_percent = Some(explains.min(100.0));
        let both = [before, *after].map(|cpus| Some(format!("{cpus:.2} CPUs")));
        (explains >= WORTH_PERCENT).then(|| Difference {
            factor: (before >= 0.01).then(|| after / before),
            explains_percent,
            ..Difference::new(kind, name, both, 200.0 + explains.min(100.0))
        })
    };
    sick.iter().filter_map(worth).collect()
}

fn settings(healthy: &Side, sick: &Side) -> Vec<Difference> {
    let differs = |(name, own): (&String, &Setting)| {
        // A setting that the other host does not show may still be set there.
        let other = healthy.settings.get(name)?;
        if own.values.keys().eq(other.values.keys()) || NO_SETTINGS.contains(&name.as_str()) {
            return None;
        }
        let sources = own.own_sources(other);
        let finding = cited_by(sick, &sources);
        let both = [other.words(own), own.words(other)].map(Some);
        Some(Difference::new(Kind::Setting, name, both, 50.0).cited(finding, sources))
    };
    sick.settings.iter().filter_map(differs).collect()
}

fn stated(healthy: &Side, sick: &Side) -> Vec<Difference> {
    let differs = |(name, own): (&&'static str, &Stated)| {
        let other = healthy.stated.get(name)?;
        if other.value == own.value {
            return None;
        }
        let (kind, weight) = match describe::is_release(name) {
            true => (Kind::Version, 60.0),
            false => (Kind::Hardware, 40.0),
        };
        let sources = vec![own.source.clone()];
        // A release that lacks the fix of a finding is part of it, cited or not.
        let lacks =
            |one: &&Finding| *name == "version of ZFS" && one.versions.has_fix == Some(false);
        let finding =
            cited_by(sick, &sources).or_else(|| sick.diagnosis.findings.iter().find(lacks));
        let both = [&other.value, &own.value].map(|value| Some(value.clone()));
        Some(Difference::new(kind, name, both, weight).cited(finding, sources))
    };
    sick.stated.iter().filter_map(differs).collect()
}

fn load(healthy: &Side, sick: &Side) -> Vec<Difference> {
    let Some((unit, times, cost)) = work_and_cost(healthy, sick) else { return Vec::new() };
    let work = |side: &Side| side.work.iter().find(|work| work.unit == unit).map(|work| work.rate);
    let each = |side: &Side| {
        let cpus = side.zfs_cpus.zip(work(side)).map(|(cpus, rate)| cpus * 1000.0 / rate);
        cpus.map(|cpus| format!("{cpus:.3} ms"))
    };
    let rate = |side: &Side| work(side).map(|rate| format!("{rate:.1}"));
    let costs_more = cost.is_some_and(|cost| cost >= super::SAME_COST);
    let name = format!("ZFS's CPU for one of {unit}").replace("/s", "");
    let all = [
        (unit, Some(times), [rate(healthy), rate(sick)], 55.0),
        (name.as_str(), cost, [each(healthy), each(sick)], if costs_more { 190.0 } else { 54.0 }),
    ];
    let differs = |factor: f64| !(1.0 / SAME..=SAME).contains(&factor);
    let all = all.into_iter().filter_map(|(name, factor, both, weight)| {
        let factor = factor.filter(|factor| differs(*factor));
        Some(Difference {
            factor: Some(factor?),
            ..Difference::new(Kind::Load, name, both, weight)
        })
    });
    all.collect()
}

/// Rates that differ by more than the load.
fn rates(healthy: &Side, sick: &Side) -> Vec<Difference> {
    let times = work_and_cost(healthy, sick).map_or(1.0, |(_, times, _)| times);
    let floor = WORTH_PER_SECOND;
    let mut all: Vec<Difference> = Vec::new();
    for (path, (after, sources)) in &sick.rates {
        let Some((before, _)) = healthy.rates.get(path) else { continue };
        let factor = (after + floor) / (before + floor);
        let beyond_load = (factor / times).max(times / factor);
        let plain = factor.max(1.0 / factor);
        if plain < WORTH_FACTOR || beyond_load < WORTH_FACTOR || (after - before).abs() < floor {
            continue;
        }
        let finding = cited_by(sick, sources);
        let both = [*before, *after].map(|rate| Some(format!("{rate:.1}/s")));
        // The last reading was taken at the end.
        let last = sources.last().cloned().into_iter().collect();
        let weight = 30.0 + plain.ln().min(9.0);
        let found = Difference::new(Kind::Counter, path, both, weight).cited(finding, last);
        // Cited settings stand before counters.
        let weight = found.weight - if finding.is_some() { 1.0 } else { 0.0 };
        let factor = (*before > 0.0).then(|| after / before);
        all.push(Difference { factor, weight, ..found });
    }
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    let mut uncited = 0;
    all.retain(|one| {
        uncited += usize::from(one.cited_by.is_none());
        one.cited_by.is_some() || uncited <= RATES
    });
    all
}
