//! How much to give back, and when to grow again: a pure state machine after OpenZFS
//! (`arc_reap_cb_check`, `arc_reap_cb`, `arc_reduce_target_size`).
//!
//! - *Short*: less memory is available than the reserve, or the system stalls for memory. The
//!   target shrinks from the cache's present size. It shrinks by the bytes that are lacking, or by
//!   1/128 of the bytes above the floor if that is more. Growth is denied for five seconds. If
//!   memory is lacking again within a tenth of a second, a program takes it without waiting. Then
//!   the target shrinks by twice as much as the last time. So the cache is asked at most ten times
//!   a second. It gives back too much by at most what a tenth of a second takes.
//! - *Tight*: enough, but less than 1/32 of the target beyond the reserve. Growth is denied,
//!   nothing shrinks.
//! - *Ample*: growth is allowed once it has been denied long enough.
//!
//! The governor asks for a wake-up only after a shrink that freed memory and left the cache above
//! its floor. The system may still be short then. In every other state the next move comes from
//! outside: an event of pressure, or an entry that needs room.

use crate::cache::Level;
use std::time::Duration;

/// Shortage shrinks by at least `(target - min) >> SHRINK_SHIFT` (OpenZFS:
/// `arc_shrink_shift`).
const SHRINK_SHIFT: u32 = 7;

/// Growth is denied with less than `target >> NO_GROW_SHIFT` to spare (OpenZFS:
/// `zfs_arc_no_grow_shift`).
const NO_GROW_SHIFT: u32 = 5;

/// A shortage that comes back before this has passed takes twice as much as the last.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The settings of the governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GovernorConfig {
    /// Bytes of the system's available memory to leave alone (OpenZFS: `arc_sys_free`).
    pub reserve_bytes: u64,
    /// Bytes below the cgroup's limit to leave alone.
    pub headroom_reserve_bytes: u64,
    /// How long growth is denied after a shortage (OpenZFS: `arc_grow_retry`, 5 s).
    pub grow_retry: Duration,
    /// How long after a shrink to look again (OpenZFS: `arc_kmem_cache_reap_retry_ms`, 1 s).
    pub recheck: Duration,
}

impl Default for GovernorConfig {
    fn default() -> Self {
        Self {
            reserve_bytes: 256 << 20,
            headroom_reserve_bytes: 16 << 20,
            grow_retry: Duration::from_secs(5),
            recheck: Duration::from_secs(1),
        }
    }
}

/// A reading of the system's memory. A figure that the system does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Memory available without swapping, in bytes (Linux: `MemAvailable`).
    pub available_bytes: Option<u64>,
    /// The cgroup's limit minus its usage, in bytes: the least over `memory.high` and
    /// `memory.max` of the group and those above it. Negative above the limit.
    pub headroom_bytes: Option<i64>,
    /// Tasks stall for memory now (Linux: a PSI trigger has fired).
    pub stalled: bool,
}

/// The governor's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// How much memory to give back, in bytes; 0 if there is no shortage.
    pub give_bytes: u64,
    /// Lower the target to this many bytes.
    pub shrink_to_bytes: Option<u64>,
    /// Whether the target may not grow, and if so until when it is not worth asking again.
    pub no_grow_until: Option<Duration>,
    /// When to look again if nothing happens before; `None`: never.
    pub next_check: Option<Duration>,
}

/// The state machine. Times are since any one moment.
#[derive(Clone, Copy, Debug)]
pub struct Governor {
    config: GovernorConfig,
    no_grow_until: Option<Duration>,
    shrunk_from_bytes: Option<u64>,
    /// When memory was last short, and how much was given back then.
    gave: Option<(Duration, u64)>,
}

impl Governor {
    /// A governor that has seen no shortage.
    #[must_use]
    pub const fn new(config: GovernorConfig) -> Self {
        Self { config, no_grow_until: None, shrunk_from_bytes: None, gave: None }
    }

    /// The decision for a reading at `now`, with the cache at `level`.
    pub fn decide(&mut self, now: Duration, reading: &Reading, level: &Level) -> Decision {
        let spare_bytes = self.spare_bytes(reading);
        let deficit_bytes = match spare_bytes {
            Some(spare) if spare < 0 => spare.unsigned_abs(),
            _ => 0,
        };
        if deficit_bytes > 0 || reading.stalled {
            self.no_grow_until = Some(now + self.config.grow_retry);
            return self.shrink(now, deficit_bytes, level);
        }
        self.shrunk_from_bytes = None;
        let ample = level.target_bytes >> NO_GROW_SHIFT;
        if spare_bytes.is_some_and(|spare| spare.unsigned_abs() < ample) {
            self.no_grow_until = Some(now + self.config.grow_retry);
        } else if self.no_grow_until.is_some_and(|until| now >= until) {
            self.no_grow_until = None;
        }
        Decision {
            give_bytes: 0,
            shrink_to_bytes: None,
            no_grow_until: self.no_grow_until,
            next_check: None,
        }
    }

    /// Bytes that can still be taken; negative if too many are taken already. The scarcer of
    /// the system's and the cgroup's; `None` if neither is known.
    fn spare_bytes(&self, reading: &Reading) -> Option<i64> {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let available = reading
            .available_bytes
            .map(|bytes| signed(bytes).saturating_sub(signed(self.config.reserve_bytes)));
        let headroom = reading
            .headroom_bytes
            .map(|bytes| bytes.saturating_sub(signed(self.config.headroom_reserve_bytes)));
        match (available, headroom) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn shrink(&mut self, now: Duration, deficit_bytes: u64, level: &Level) -> Decision {
        let &Level { size_bytes, target_bytes, min_bytes, .. } = level;
        let least = target_bytes.saturating_sub(min_bytes) >> SHRINK_SHIFT;
        let mut give_bytes = deficit_bytes.max(least);
        if deficit_bytes > 0 {
            let again = self.gave.filter(|(at, _)| now < *at + AT_ONCE);
            give_bytes =
                again.map_or(give_bytes, |(_, gave)| give_bytes.max(gave.saturating_mul(2)));
            // At most what there is: otherwise the doubling would outgrow every later shortage.
            give_bytes = give_bytes.min(deficit_bytes.max(size_bytes.saturating_sub(min_bytes)));
            self.gave = Some((now, give_bytes));
        }
        // A target far above the size would give nothing back until it comes down to it.
        let from_bytes = target_bytes.min(size_bytes.max(min_bytes));
        let to_bytes = from_bytes.saturating_sub(give_bytes).max(min_bytes);
        // The last shrink freed nothing, because all is held. Another look by the clock would free
        // nothing either.
        let futile = self.shrunk_from_bytes.is_some_and(|before| size_bytes >= before);
        let shrinks = to_bytes < target_bytes;
        self.shrunk_from_bytes = shrinks.then_some(size_bytes);
        let look_again = shrinks && to_bytes > min_bytes && !futile;
        Decision {
            give_bytes,
            shrink_to_bytes: shrinks.then_some(to_bytes),
            no_grow_until: self.no_grow_until,
            next_check: look_again.then(|| now + self.config.recheck),
        }
    }
}
