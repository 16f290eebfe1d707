//! Busy samples by subsystem: an answer for functions that no rule knows.
//!
//! A sample belongs to the subsystem of its leaf. If the leaf is a common helper (it copies, locks
//! or allocates), the sample belongs to the nearest caller with a subsystem of its own.

use std::collections::BTreeMap;

use super::profile_index::{Path, Place, ProfileIndex};
use super::{Facts, Known, absent};
use crate::atlas;
use crate::evidence::Frame;

/// Common helpers: their callers matter more.
const SERVES_ANYBODY: [&str; 13] = [
    "kernel/lock",
    "kernel/copy",
    "kernel/slab",
    "kernel/tables",
    "kernel/interrupt",
    "kernel/timer",
    "kernel/rcu",
    "kernel/page-allocator",
    "locks",
    "memory",
    "spl",
    "trees",
    "shared",
];

/// Callers above every thread that sleeps or begins; only the frame below them shows the place.
const WAITS: [&str; 3] = ["kernel/scheduler", "kernel/idle", "taskq"];

/// A subsystem with stacks that have no weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: &'static str,
    /// Its work.
    pub does: &'static str,
    /// Its threads.
    pub threads: u64,
    /// All threads with a stack.
    pub all: u64,
    /// Its most frequent function.
    pub function: String,
}

/// A subsystem with the CPU that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct SubsystemUse {
    /// Its name.
    pub name: &'static str,
    /// Its work: "asks file systems to drop inodes".
    pub does: &'static str,
    /// Percent of the busy samples.
    pub percent: f64,
    /// Its function with the most samples.
    pub function: String,
    /// Percent of the busy samples in that function.
    pub function_percent: f64,
}

impl Facts {
    /// Subsystems of the best profile, by their share of the busy samples, best first.
    pub fn subsystems(&self) -> Known<Vec<SubsystemUse>> {
        let usable = self.profiles.iter().find(|p| p.weighted || !p.rows.is_empty());
        let Some(profile) = usable else {
            return absent("a CPU profile (perf record -a -g -- sleep 10)");
        };
        let mut sums: BTreeMap<&'static str, BTreeMap<u32, f64>> = BTreeMap::new();
        let mut add = |place: &Place, percent: f64| {
            if let Some(subsystem) = place.subsystem {
                *sums.entry(subsystem).or_default().entry(place.symbol).or_default() += percent;
            }
        };
        if profile.stacks.is_empty() {
            for row in &profile.rows {
                add(&row.place, row.self_percent.unwrap_or(0.0));
            }
        } else {
            for path in &profile.stacks {
                if let Some(place) = owner(path) {
                    add(place, path.percent);
                }
            }
        }
        let mut uses: Vec<SubsystemUse> =
            sums.into_iter().filter_map(|(name, own)| described(profile, name, &own)).collect();
        uses.sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.name.cmp(b.name)));
        Ok(uses)
    }

    /// The subsystem with the most samples.
    pub fn top_subsystem(&self) -> Known<SubsystemUse> {
        let first = self.subsystems()?.into_iter().next();
        first.map_or_else(|| absent("a profile with functions that have names"), Ok)
    }

    /// The subsystem with most stacks that have no weight: traces of the log, `/proc/PID/stack`,
    /// folded stacks of weight one.
    pub fn top_standing(&self) -> Option<Standing> {
        let evidence = self.evidence();
        let weightless = evidence.profiles.iter().filter(|profile| !profile.weighted);
        let weightless = weightless.flat_map(|p| &p.stacks).map(|stack| (1, &stack.frames));
        let seen = evidence.kernel_stacks.iter().map(|stack| (stack.count, &stack.frames));
        let mut sums: BTreeMap<&'static str, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
        let mut all = 0;
        for (count, frames) in seen.chain(weightless) {
            all += count;
            if let Some((name, function)) = stands_in(frames) {
                let entry = sums.entry(name).or_default();
                entry.0 += count;
                *entry.1.entry(function).or_default() += count;
            }
        }
        let (name, (threads, functions)) = sums.into_iter().max_by_key(|(_, own)| own.0)?;
        let function = functions.into_iter().max_by_key(|(_, count)| *count)?.0.to_owned();
        Some(Standing { name, does: atlas::does(name)?, threads, all, function })
    }

    /// Percent of the busy samples in common helpers (locks, copies, allocations) without a caller
    /// in the best profile.
    pub fn unowned_share(&self) -> f64 {
        let usable = self.profiles.iter().find(|one| one.weighted || !one.rows.is_empty());
        let Some(profile) = usable.filter(|profile| profile.stacks.is_empty()) else { return 0.0 };
        let anybody = |own: &str| SERVES_ANYBODY.iter().any(|any| atlas::is_within(own, any));
        let rows = profile
            .rows
            .iter()
            .filter(|row| !row.has_chains && row.place.subsystem.is_some_and(anybody));
        rows.filter_map(|row| row.self_percent).sum()
    }
}

/// The nearest frame, leaf first, whose subsystem is no common helper.
fn stands_in(frames: &[Frame]) -> Option<(&'static str, &str)> {
    let general =
        |own: &str| SERVES_ANYBODY.iter().chain(&WAITS).any(|any| atlas::is_within(own, any));
    frames.iter().find_map(|frame| {
        let name = frame.symbol.as_deref()?;
        let own = atlas::subsystem_of(name, frame.module.as_deref(), frame.kernel)?;
        (!general(own)).then_some((own, name))
    })
}

/// The frame whose subsystem a sample counts for.
fn owner(path: &Path) -> Option<&Place> {
    let particular = |place: &&Place| {
        place
            .subsystem
            .is_some_and(|own| !SERVES_ANYBODY.iter().any(|any| atlas::is_within(own, any)))
    };
    let leaf = path.places.first()?;
    // A program's own time belongs to no subsystem, whatever called it.
    if leaf.kernel == Some(false) {
        return Some(leaf);
    }
    path.places.iter().find(particular).or(Some(leaf))
}

fn described(
    profile: &ProfileIndex,
    name: &'static str,
    functions: &BTreeMap<u32, f64>,
) -> Option<SubsystemUse> {
    let (symbol, function_percent) =
        functions.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(symbol, own)| (*symbol, *own))?;
    Some(SubsystemUse {
        name,
        does: atlas::does(name)?,
        percent: functions.values().sum(),
        function: profile.symbols.name(symbol).unwrap_or("?").to_owned(),
        function_percent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    #[test]
    fn a_sample_of_a_common_helper_belongs_to_its_caller() {
        let folded = "\
txg_sync;spa_sync;metaslab_vendor_trick;memcpy 60
z_rd_int;zio_execute;zio_checksum_verify;fletcher_4_avx2_native 30
java;main;memcpy_user 10
";
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "stacks.folded", folded.as_bytes());
        finish(&mut evidence);
        let uses = Facts::new(evidence).subsystems().expect("it is a profile");
        assert_eq!((uses[0].name, uses[0].percent.round()), ("metaslab", 60.0));
        assert_eq!(uses[0].function, "metaslab_vendor_trick");
        assert_eq!((uses[1].name, uses[1].percent.round()), ("checksum/fletcher/simd", 30.0));
    }
}
