//! The system's memory: how much of it the cache may take, and when to give some back.

use crate::view::View;
use ogive_arc::reclaim::{Awakening, GovernorConfig, Pressure, Reading, Waker};
use ogive_origin::Origin;
use ogive_pressure::{Sources, Waiter};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The least that the cache keeps by default, as OpenZFS's `arc_c_min`.
const ARC_MIN_BYTES: u64 = 32 << 20;
/// Memory left to others: a share of all, as OpenZFS's `arc_sys_free`, within these bounds.
const RESERVE_SHARE: u64 = 32;
const RESERVE_MIN_BYTES: u64 = 64 << 20;

/// Bounds of the cache in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min_bytes: u64,
    pub(crate) max_bytes: u64,
}

impl Bounds {
    /// What was asked for, or half of the memory there is and a thirty-second part of it. A
    /// minimum above the maximum is the maximum.
    pub(crate) fn new(limit_bytes: u64, max_bytes: Option<u64>, min_bytes: Option<u64>) -> Self {
        let max_bytes = max_bytes.unwrap_or(limit_bytes / 2);
        let min_bytes = min_bytes.unwrap_or((limit_bytes / RESERVE_SHARE).max(ARC_MIN_BYTES));
        Self { min_bytes: min_bytes.min(max_bytes), max_bytes }
    }
}

/// What to leave free on a machine, or in a group, of this size.
pub(crate) fn governor(limit_bytes: u64) -> GovernorConfig {
    let reserve_bytes = (limit_bytes / RESERVE_SHARE).max(RESERVE_MIN_BYTES).min(limit_bytes / 8);
    GovernorConfig {
        reserve_bytes,
        headroom_reserve_bytes: reserve_bytes,
        ..GovernorConfig::default()
    }
}

/// The pressure sources of this system, for the engine's reclaim thread.
pub(crate) struct SystemPressure<O: Origin> {
    sources: Sources,
    waiter: Waiter,
    view: Weak<View<O>>,
    release_memory: fn(),
    target_bytes: u64,
}

impl<O: Origin> SystemPressure<O> {
    /// # Errors
    /// What the system says if it gives no descriptor to wait with.
    pub(crate) fn new(
        sources: Sources,
        view: &Arc<View<O>>,
        release_memory: fn(),
    ) -> std::io::Result<Self> {
        let waiter = sources.waiter()?;
        let target_bytes = view.cache.level().target_bytes;
        Ok(Self { sources, waiter, view: Arc::downgrade(view), release_memory, target_bytes })
    }

    /// What the cache gave back is still the allocator's. Whenever the target has sunk since the
    /// last time, that is changed.
    fn release_what_was_reclaimed(&mut self) {
        let Some(view) = self.view.upgrade() else {
            return;
        };
        let target_bytes = view.cache.level().target_bytes;
        if target_bytes < self.target_bytes {
            (self.release_memory)();
        }
        self.target_bytes = target_bytes;
    }
}

impl<O: Origin> Pressure for SystemPressure<O> {
    fn wait(&mut self, timeout: Option<Duration>) -> Awakening {
        self.release_what_was_reclaimed();
        match self.waiter.wait(timeout) {
            Ok(events) if events.pressure || events.limit => Awakening::Pressure,
            Ok(events) if events.woken || events.stopped => Awakening::Woken,
            Ok(_) => Awakening::TimedOut,
            Err(error) => {
                // Without events the growth of the cache is still followed; waiting in a loop
                // that fails would burn the CPU that this project exists to save.
                log::warn!("cannot wait for memory pressure: {error}");
                std::thread::park_timeout(timeout.unwrap_or(Duration::from_secs(60)));
                Awakening::TimedOut
            }
        }
    }

    fn read(&mut self) -> Reading {
        match self.sources.read() {
            Ok(reading) => Reading {
                available_bytes: Some(reading.available_bytes),
                headroom_bytes: reading
                    .limit_bytes
                    .lt(&reading.total_bytes)
                    .then(|| i64::try_from(reading.headroom_bytes).unwrap_or(i64::MAX)),
                stalled: reading.stalled,
            },
            Err(error) => {
                log::warn!("cannot read the state of memory: {error}");
                Reading::default()
            }
        }
    }

    fn waker(&self) -> Waker {
        let waker = self.waiter.waker();
        Arc::new(move || waker.wake())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_follow_the_memory_unless_they_are_given() {
        let gib = 1u64 << 30;
        let bounds = Bounds::new(64 * gib, None, None);
        assert_eq!(bounds, Bounds { min_bytes: 2 * gib, max_bytes: 32 * gib });
        let bounds = Bounds::new(64 * gib, Some(gib), None);
        assert_eq!(bounds, Bounds { min_bytes: gib, max_bytes: gib });
        let bounds = Bounds::new(64 * gib, Some(8 * gib), Some(gib));
        assert_eq!(bounds, Bounds { min_bytes: gib, max_bytes: 8 * gib });
        assert_eq!(Bounds::new(0, None, None), Bounds { min_bytes: 0, max_bytes: 0 });
    }

    #[test]
    fn the_reserve_never_takes_a_small_machine_whole() {
        for limit_bytes in [0, 1 << 20, 64 << 20, 1 << 30, 64 << 30, u64::MAX] {
            assert!(governor(limit_bytes).reserve_bytes <= limit_bytes / 8);
        }
        assert_eq!(governor(64 << 30).reserve_bytes, 2 << 30);
    }
}
