//! How large should the cache be, and would a second level help?
//!
//! For a trace, the shipping engine is replayed at some sizes, and with a device below it. Arcstats
//! alone have only the figures of ghosts: a cache larger by the ghosts would have turned each ghost
//! hit into a hit. So the counters give one more point of the curve, and no others.

use std::path::PathBuf;
use std::sync::Arc;

use ogive_kstat::Kstat;
use serde::Serialize;

use crate::curve::curve_sizes;
use crate::policy::PolicyName;
use crate::replay::{CurvePlan, OnProgress, Plan, Progress, ReplayError, replay};
use crate::simulation::{Simulation, ratio};
use crate::tiered::Tiered;
use crate::trace::{ReadOptions, Traces};

/// Requests that are processed at a time.
const CHUNK: usize = 1 << 16;
/// A size suffices if it reaches this share of the best hit ratio of all sizes.
const ENOUGH: f64 = 0.95;
/// The default size of a second level, as a multiple of memory.
const DEVICE_FACTOR: u64 = 8;

/// The questions to a trace.
#[derive(Clone, Debug)]
pub struct SizingPlan {
    /// Trace files.
    pub traces: Vec<PathBuf>,
    /// How to read them.
    pub read: ReadOptions,
    /// Sizes of memory in bytes; empty to choose them from the LRU curve.
    pub memory_bytes: Vec<u64>,
    /// Size of the second level in bytes; `None` to choose it.
    pub device_bytes: Option<u64>,
}

/// A size of memory and the engine's hit ratio at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryPoint {
    /// Size in bytes.
    pub bytes: u64,
    /// Share of the requests that hit.
    pub hit_ratio: f64,
}

/// The answers of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceAnswer {
    /// Requests of the trace.
    pub requests: u64,
    /// Weight of all keys, in bytes.
    pub footprint_bytes: u64,
    /// Every key weighs 1: sizes are in entries.
    pub in_entries: bool,
    /// The engine at each size.
    pub memory: Vec<MemoryPoint>,
    /// Size of the second level, in bytes.
    pub device_bytes: u64,
    /// Share of the first size's misses that the second level would serve.
    pub device_share: f64,
    /// Share of the requests that miss at any size, because they are first uses.
    pub first_use_ratio: f64,
}

/// Computes sizes from a trace.
///
/// # Errors
/// As [`replay`].
pub fn from_trace(
    plan: &SizingPlan,
    on_progress: OnProgress<'_>,
) -> Result<TraceAnswer, ReplayError> {
    let survey = Plan {
        traces: plan.traces.clone(),
        read: plan.read.clone(),
        policies: Vec::new(),
        sizes: Vec::new(),
        curve: CurvePlan::Sampled(crate::curve::SAMPLE_KEYS_DEFAULT),
        sample: 1.0,
        threads: 1,
    };
    let survey = replay(&survey, on_progress)?;
    let (keys, footprint_bytes, _) = survey.footprint.unwrap_or((1, 1, true));
    let curve = survey.curve.as_ref().map(|curve| curve.points(&curve_sizes(footprint_bytes, 200)));
    let curve = curve.unwrap_or_default();
    let most = curve.last().map_or(0.0, |point| point.hit_ratio);
    let sizes = if plan.memory_bytes.is_empty() {
        let enough = curve.iter().find(|point| point.hit_ratio >= ENOUGH * most);
        let enough = enough.map_or(footprint_bytes, |point| point.size_bytes);
        let first = round_up(enough, survey.is_in_entries());
        vec![first, first.saturating_mul(2)]
    } else {
        plan.memory_bytes.clone()
    };
    let device_bytes = plan.device_bytes.unwrap_or_else(|| sizes[0].saturating_mul(DEVICE_FACTOR));
    let entry_bytes = (footprint_bytes / keys.max(1)).max(1);
    let mut caches: Vec<Simulation> = sizes
        .iter()
        .map(|&size| Simulation::new(PolicyName::Engine(0), size, entry_bytes))
        .collect();
    let mut tiered = Tiered::new(sizes[0], device_bytes, entry_bytes);
    let bytes = Arc::default();
    let mut traces = Traces::new(&plan.traces, &plan.read, Arc::clone(&bytes));
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        traces.read(&mut chunk, CHUNK)?;
        if chunk.is_empty() {
            break;
        }
        caches.iter_mut().for_each(|cache| cache.run(&chunk));
        chunk.iter().for_each(|request| tiered.access(request));
        let bytes = bytes.load(std::sync::atomic::Ordering::Relaxed);
        if !on_progress(Progress { pass: 2, bytes, requests: traces.counts().requests }) {
            return Err(ReplayError::Interrupted);
        }
    }
    let point = |cache: &Simulation| MemoryPoint {
        bytes: cache.capacity_bytes(),
        hit_ratio: cache.tally().hit_ratio(),
    };
    Ok(TraceAnswer {
        requests: survey.counts.requests,
        footprint_bytes,
        in_entries: survey.is_in_entries(),
        memory: caches.iter().map(point).collect(),
        device_bytes,
        device_share: ratio(tiered.device_hits, tiered.requests - tiered.hits),
        first_use_ratio: ratio(keys, survey.counts.requests).min(1.0),
    })
}

/// The next power of two for bytes, and two digits for entries.
fn round_up(size: u64, in_entries: bool) -> u64 {
    if !in_entries {
        return size.checked_next_power_of_two().unwrap_or(size);
    }
    let unit = 10_u64.pow(size.max(1).ilog10().saturating_sub(1));
    size.max(1).div_ceil(unit) * unit
}

impl TraceAnswer {
    /// The answer in a sentence; `size_text` formats a size.
    #[must_use]
    pub fn sentence(&self, size_text: &dyn Fn(u64) -> String) -> String {
        let mut parts = Vec::new();
        for (number, point) in self.memory.iter().enumerate() {
            let verb = if number == 0 { "gives" } else { "would give" };
            let size = size_text(point.bytes);
            parts.push(format!("{size} {verb} {}", percent(point.hit_ratio)));
        }
        parts.push(format!(
            "an L2 of {} would turn {} of the misses of {} into SSD reads",
            size_text(self.device_bytes),
            percent(self.device_share),
            size_text(self.memory.first().map_or(0, |point| point.bytes))
        ));
        parts.join("; ")
    }
}

/// A share for people: whole percents, with one more digit near the ends.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if (10.0..=99.0).contains(&percent) || percent == 0.0 {
        format!("{percent:.0}%")
    } else {
        format!("{percent:.1}%")
    }
}

/// The answers of arcstats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArcstatsAnswer {
    /// Seconds that the counters cover, if the source has times.
    pub seconds: Option<f64>,
    /// Whether the counters cover the time between two readings instead of the time since their
    /// start.
    pub between_readings: bool,
    /// Accesses.
    pub accesses: u64,
    /// The hits among them, also on loads in flight.
    pub hits: u64,
    /// The misses whose key had a ghost.
    pub ghost_hits: u64,
    /// Size of the cache now, in bytes.
    pub size_bytes: u64,
    /// Bytes of the entries that had the present ghosts.
    pub ghost_bytes: u64,
    /// The misses that an L2 served; `None` without an L2.
    pub l2_hits: Option<u64>,
    /// Size of the L2 now, in bytes.
    pub l2_bytes: u64,
}

/// Computes the answer from arcstats: two readings, or one since the counters began.
///
/// # Errors
/// A row is missing, or the readings do not belong together; the text is the reason.
pub fn from_arcstats(before: Option<&Kstat>, now: &Kstat) -> Result<ArcstatsAnswer, String> {
    let row = |kstat: &Kstat, name: &str| -> Option<u64> {
        kstat.integer(name).and_then(|number| u64::try_from(number).ok())
    };
    let need =
        |name: &str| row(now, name).ok_or_else(|| format!("arcstats have no row \"{name}\""));
    let count =
        |name: &str| -> Result<u64, String> {
            let later = row(now, name).unwrap_or(0);
            match before {
            None => Ok(later),
            Some(before) => later.checked_sub(row(before, name).unwrap_or(0)).ok_or_else(|| {
                format!("\"{name}\" went down between the readings: they are not of one boot, or \
                    in the wrong order")
            }),
        }
        };
    need("hits")?;
    need("misses")?;
    need("mru_ghost_hits")?;
    let hits = count("hits")? + count("iohits")?;
    let misses = count("misses")?;
    let has_l2 = row(now, "l2_size").unwrap_or(0) > 0;
    let begin_ns = before.map_or(now.crtime_ns, |before| before.snaptime_ns);
    let seconds = (now.snaptime_ns > begin_ns && begin_ns > 0)
        .then(|| (now.snaptime_ns - begin_ns) as f64 / 1e9);
    Ok(ArcstatsAnswer {
        seconds,
        between_readings: before.is_some(),
        accesses: hits + misses,
        hits,
        ghost_hits: (count("mru_ghost_hits")? + count("mfu_ghost_hits")?).min(misses),
        size_bytes: need("size")?,
        ghost_bytes: row(now, "mru_ghost_size").unwrap_or(0)
            + row(now, "mfu_ghost_size").unwrap_or(0),
        l2_hits: if has_l2 { Some(count("l2_hits")?.min(misses)) } else { None },
        l2_bytes: row(now, "l2_size").unwrap_or(0),
    })
}

impl ArcstatsAnswer {
    /// Statements that the figures allow, and the limits of the figures, one sentence each.
    #[must_use]
    pub fn sentences(&self, size_text: &dyn Fn(u64) -> String) -> Vec<String> {
        let misses = self.accesses - self.hits;
        let when = match (self.between_readings, self.seconds) {
            (true, Some(seconds)) => format!("In {}", span(seconds)),
            (true, None) => "Between the two readings".to_owned(),
            (false, Some(seconds)) => format!("Since the counters began {} ago", span(seconds)),
            (false, None) => "Since the counters began".to_owned(),
        };
        if self.accesses == 0 {
            return vec![format!("{when} the cache got no requests, so no answer is possible.")];
        }
        let size = size_text(self.size_bytes);
        let mut sentences = vec![format!(
            "{when}, {size} gave {} ({} accesses).",
            percent(ratio(self.hits, self.accesses)),
            self.accesses
        )];
        let larger = self.size_bytes.saturating_add(self.ghost_bytes);
        let share = percent(ratio(self.ghost_hits, misses));
        if self.ghost_bytes == 0 {
            sentences.push(format!(
                "There are no ghosts now: either nothing was evicted for lack of room, or the ghosts \
                 have been forgotten. Earlier, {} of the misses found a ghost. The effect of more \
                 memory is unknown.",
                self.ghost_hits
            ));
        } else {
            sentences.push(format!(
                "{} would have given at most {}: {share} of the misses were of entries that had \
                 been evicted last, within the {} that the ghosts remember.",
                size_text(larger),
                percent(ratio(self.hits + self.ghost_hits, self.accesses)),
                size_text(self.ghost_bytes)
            ));
        }
        match self.l2_hits {
            Some(hits) => sentences.push(format!(
                "The L2 of {} turned {} of the misses into SSD reads.",
                size_text(self.l2_bytes),
                percent(ratio(hits, misses))
            )),
            None if self.ghost_bytes > 0 => sentences.push(format!(
                "An L2 of {} would have turned at most {share} of the misses into SSD reads.",
                size_text(self.ghost_bytes)
            )),
            None => {}
        }
        let known = match larger > self.size_bytes {
            true => format!("sizes below {size} or above {}", size_text(larger)),
            false => "other sizes".to_owned(),
        };
        sentences.push(format!("arcstats say nothing about {known}: for that, replay a trace."));
        if !self.between_readings {
            sentences.push(
                "These are averages since the beginning, with the warm-up; for another time, give \
                 two readings."
                    .to_owned(),
            );
        }
        sentences
    }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        s if s >= 2.0 * 3600.0 => format!("{:.0} hours", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{s:.0} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arcstats(rows: &[(&'static str, u64)], snaptime_ns: i64) -> Kstat {
        let text = ogive_kstat::arcstats::file(1, snaptime_ns, rows.iter().copied()).unwrap();
        ogive_kstat::named::parse("zfs", "arcstats", text.as_bytes()).unwrap()
    }

    const GIB: u64 = 1 << 30;

    fn gib(bytes: u64) -> String {
        format!("{} GiB", bytes / GIB)
    }

    #[test]
    fn arcstats_answer_only_for_the_size_with_ghosts() {
        let now = arcstats(
            &[
                ("hits", 900),
                ("iohits", 10),
                ("misses", 90),
                ("mru_ghost_hits", 20),
                ("mfu_ghost_hits", 10),
                ("mru_ghost_size", 4 * GIB),
                ("mfu_ghost_size", 4 * GIB),
                ("size", 8 * GIB),
            ],
            3_600_000_000_001,
        );
        let answer = from_arcstats(None, &now).unwrap();
        let text = answer.sentences(&gib).join(" ");
        assert!(text.contains("Since the counters began 60 minutes ago, 8 GiB gave 91%"), "{text}");
        assert!(text.contains("16 GiB would have given at most 94%: 33% of the misses"), "{text}");
        assert!(text.contains("An L2 of 8 GiB would have turned at most 33%"), "{text}");
        assert!(text.contains("say nothing about sizes below 8 GiB or above 16 GiB"), "{text}");
    }

    #[test]
    fn two_readings_cover_the_time_between_them() {
        let rows = |hits, misses| [("hits", hits), ("misses", misses), ("size", GIB)];
        let (before, now) =
            (arcstats(&rows(100, 100), 10), arcstats(&rows(190, 110), 5_000_000_010));
        let answer = from_arcstats(Some(&before), &now).unwrap();
        assert_eq!((answer.accesses, answer.hits), (100, 90));
        assert!(answer.sentences(&gib)[0].starts_with("In 5 seconds, 1 GiB gave 90%"));
        assert!(from_arcstats(Some(&now), &before).unwrap_err().contains("went down"));
        assert!(from_arcstats(None, &Kstat::new("zfs", "dmu_tx")).unwrap_err().contains("hits"));
    }

    #[test]
    fn sizes_are_rounded_for_people() {
        assert_eq!(round_up((5 << 30) + 1, false), 8 << 30);
        assert_eq!((round_up(1234, true), round_up(7, true), round_up(0, true)), (1300, 7, 1));
        assert_eq!(
            (percent(0.914), percent(0.995), percent(0.0)),
            ("91%".into(), "99.5%".into(), "0%".into())
        );
    }
}
