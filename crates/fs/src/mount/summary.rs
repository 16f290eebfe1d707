//! The summary at the end of a mount.

use crate::counters::Counts;
use ogive_arc::Stats;
use ogive_text::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The totals of a mount from start to end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Where it was mounted.
    pub mount_point: PathBuf,
    /// How long it was mounted.
    pub duration: Duration,
    /// Bytes in answers to reads, without those that the page cache answered alone.
    pub read_bytes: u64,
    /// Bytes read from the origin.
    pub origin_bytes: u64,
    /// Bytes read from the second level; `None` without one.
    pub second_level_bytes: Option<u64>,
    /// Bytes written through.
    pub written_bytes: u64,
    /// Demand accesses that found their record in memory or being loaded.
    pub hits: u64,
    /// Demand accesses that did not.
    pub misses: u64,
}

impl Summary {
    pub(super) fn new(
        mount_point: PathBuf,
        duration: Duration,
        stats: &Stats,
        counts: &Counts,
        has_second_level: bool,
    ) -> Self {
        Self {
            mount_point,
            duration,
            read_bytes: counts.read_bytes,
            origin_bytes: counts.origin_bytes,
            second_level_bytes: has_second_level.then_some(counts.second_level_bytes),
            written_bytes: counts.written_bytes,
            hits: stats.demand_data_hits + stats.demand_data_iohits,
            misses: stats.demand_data_misses,
        }
    }

    /// Share of the demanded records that were in memory, in percent; `None` without any.
    pub fn hit_percent(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| 100.0 * self.hits as f64 / all as f64)
    }
}

impl Summary {
    /// The sources of the bytes that were read. Records are loaded whole and ahead of time, so more
    /// may have been loaded than was read; memory has the rest.
    fn write_shares(&self, f: &mut fmt::Formatter<'_>, second_level_bytes: u64) -> fmt::Result {
        let brought = second_level_bytes.saturating_add(self.origin_bytes);
        let memory = self.read_bytes.saturating_sub(brought);
        let all = memory.saturating_add(brought);
        if all == 0 {
            return Ok(());
        }
        let percent = |bytes: u64| 100.0 * bytes as f64 / all as f64;
        write!(
            f,
            ": {:.0}% memory, {:.0}% L2, {:.0}% source",
            percent(memory),
            percent(second_level_bytes),
            percent(self.origin_bytes)
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: read {}", self.mount_point.display(), Bytes(self.read_bytes))?;
        if let Some(second_level_bytes) = self.second_level_bytes {
            self.write_shares(f, second_level_bytes)?;
            return write!(f, ", wrote {}, in {}", Bytes(self.written_bytes), Span(self.duration));
        }
        if let Some(percent) = self.hit_percent() {
            write!(f, " ({percent:.1}% of records from memory)")?;
        }
        write!(
            f,
            ", {} from the source, wrote {}, in {}",
            Bytes(self.origin_bytes),
            Bytes(self.written_bytes),
            Span(self.duration)
        )
    }
}

/// A duration in readable units.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0..60 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            _ => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_has_units_and_shares() {
        let summary = Summary {
            mount_point: "/mnt".into(),
            duration: Duration::from_secs(3 * 3600 + 125),
            read_bytes: 81 << 30,
            origin_bytes: 1536,
            second_level_bytes: None,
            written_bytes: 7,
            hits: 93,
            misses: 7,
        };
        assert_eq!(
            summary.to_string(),
            "/mnt: read 81.0 GiB (93.0% of records from memory), 1.5 KiB from the source, \
             wrote 7 B, in 3 h 2 min"
        );
        assert_eq!(Bytes(u64::MAX).to_string(), "16.0 EiB");
        let three = Summary {
            second_level_bytes: Some(25 << 30),
            origin_bytes: 6 << 30,
            ..summary.clone()
        };
        assert_eq!(
            three.to_string(),
            "/mnt: read 81.0 GiB: 62% memory, 31% L2, 7% source, wrote 7 B, in 3 h 2 min"
        );
        let idle = Summary { hits: 0, misses: 0, duration: Duration::from_millis(1500), ..summary };
        assert!(idle.to_string().contains("read 81.0 GiB, 1.5 KiB"));
        assert!(idle.to_string().ends_with("in 1.5 s"));
    }
}
