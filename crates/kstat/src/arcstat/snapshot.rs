//! One reading of the counters.

use std::collections::HashMap;

use crate::kstat::Kstat;

/// The row of `ogivestats` that the column of costs uses.
const COST: &str = "origin_microdollars";

/// The numbers of one reading: those of `arcstats`, those of `zfetchstats` with the prefix
/// `zfetch_`, and the cost of requests to a bucket.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    numbers: HashMap<String, i128>,
    crtime_ns: i64,
    snaptime_ns: i64,
}

impl Snapshot {
    /// Collects the kstats of one reading. Other kstats and rows of text are skipped; the times are
    /// those of `arcstats`.
    pub fn from_kstats<'a>(kstats: impl IntoIterator<Item = &'a Kstat>) -> Self {
        let mut snapshot = Self::default();
        for kstat in kstats {
            let prefix = match kstat.name.as_str() {
                "arcstats" => {
                    snapshot.crtime_ns = kstat.crtime_ns;
                    snapshot.snaptime_ns = kstat.snaptime_ns;
                    ""
                }
                "zfetchstats" => "zfetch_",
                "ogivestats" => "",
                _ => continue,
            };
            let is_own = kstat.name == "ogivestats";
            let is_wanted = |name: &str| !is_own || name == COST;
            let entries = kstat.entries.iter().filter(|entry| is_wanted(&entry.name));
            snapshot.numbers.extend(entries.filter_map(|entry| {
                Some((format!("{prefix}{}", entry.name), entry.value.as_integer()?))
            }));
        }
        snapshot
    }

    /// Collects names and numbers from a caller that has the counters in memory.
    pub fn from_numbers<Name: Into<String>, Number: Into<i128>>(
        crtime_ns: i64,
        snaptime_ns: i64,
        numbers: impl IntoIterator<Item = (Name, Number)>,
    ) -> Self {
        let numbers =
            numbers.into_iter().map(|(name, number)| (name.into(), number.into())).collect();
        Self { numbers, crtime_ns, snaptime_ns }
    }

    /// The number with this name, if the source has it.
    pub fn get(&self, name: &str) -> Option<i128> {
        self.numbers.get(name).copied()
    }

    /// Whether there is an L2: it has content or a device.
    pub fn has_l2(&self) -> bool {
        ["l2_size", "l2_ndev"].iter().any(|name| self.get(name).is_some_and(|number| number > 0))
    }

    /// Whether the source has the cost of requests, which means that it is a bucket.
    pub fn has_costs(&self) -> bool {
        self.get(COST).is_some()
    }

    /// Seconds from the start of the counters to this reading; `None` if the source has no times
    /// (FreeBSD) or invalid ones.
    pub fn age_seconds(&self) -> Option<f64> {
        let age_ns = self.snaptime_ns.checked_sub(self.crtime_ns)?;
        (self.snaptime_ns > 0 && age_ns > 0).then_some(age_ns as f64 / 1e9)
    }

    /// Seconds from `earlier` to this reading by the source's clock; `None` if it has none or the
    /// counters were reset in between.
    pub fn seconds_since(&self, earlier: &Self) -> Option<f64> {
        let elapsed_ns = self.snaptime_ns.checked_sub(earlier.snaptime_ns)?;
        let same = self.crtime_ns == earlier.crtime_ns && earlier.snaptime_ns > 0;
        (same && elapsed_ns > 0).then_some(elapsed_ns as f64 / 1e9)
    }

    pub(super) fn same_counters(&self, earlier: &Self) -> bool {
        self.crtime_ns == earlier.crtime_ns
    }
}
