//! The cache's share of the system's memory, and when to give some back.

use crate::log_events::{self, EventReporter, Figures};
use crate::view::View;
use ogive_arc::Level;
use ogive_arc::reclaim::{Decision, GovernorConfig, Pressure, Reading, WakeReason, Waker};
use ogive_origin::Origin;
use ogive_pressure::{Reading as Memory, Sources, Waiter};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The least size of the cache by default, like OpenZFS's `arc_c_min`, and the largest share of its
/// maximum that this may be.
const ARC_MIN_BYTES: u64 = 32 << 20;
const ARC_MIN_SHARE: u64 = 4;
/// Memory left to other programs, as a share of all, like OpenZFS's `arc_sys_free`. A machine has
/// one least value, and a cgroup a smaller one, because it has less to run.
const RESERVE_SHARE: u64 = 32;
const RESERVE_MIN_BYTES: u64 = 64 << 20;
const HEADROOM_MIN_BYTES: u64 = 8 << 20;
/// The share of the cache to give back each time its cgroup is squeezed without being full.
const SQUEEZED_SHARE: u64 = 4;
/// With less than this many reserves left, a stall counts as this cache's fault.
const TIGHT_RESERVES: u64 = 4;

/// Bounds of the cache in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min_bytes: u64,
    pub(crate) max_bytes: u64,
}

impl Bounds {
    /// The given values. The defaults are half of the memory, and a 32nd of it.
    pub(crate) fn new(limit_bytes: u64, max_bytes: Option<u64>, min_bytes: Option<u64>) -> Self {
        let max_bytes = max_bytes.unwrap_or(limit_bytes / 2);
        let share = (limit_bytes / RESERVE_SHARE).max(ARC_MIN_BYTES);
        let min_bytes = min_bytes.unwrap_or(share.min(max_bytes / ARC_MIN_SHARE));
        Self { min_bytes: min_bytes.min(max_bytes), max_bytes }
    }
}

/// The memory to leave free on a machine with `total_bytes`, and in a cgroup limited to
/// `limit_bytes`.
pub(crate) fn governor(total_bytes: u64, limit_bytes: u64) -> GovernorConfig {
    let share = |bytes: u64, least: u64| (bytes / RESERVE_SHARE).max(least).min(bytes / 8);
    GovernorConfig {
        reserve_bytes: share(total_bytes, RESERVE_MIN_BYTES),
        headroom_reserve_bytes: share(limit_bytes, HEADROOM_MIN_BYTES),
        ..GovernorConfig::default()
    }
}

/// The growth in bytes after which to check the system's memory: rarely on a large machine, and
/// before a small cgroup is exhausted.
pub(crate) fn check_every_bytes(limit_bytes: u64) -> u64 {
    (limit_bytes / 128).clamp(1 << 20, 64 << 20)
}

/// The pressure sources of this system, for the engine's reclaim thread.
pub(crate) struct SystemPressure<O: Origin> {
    sources: Arc<Sources>,
    config: GovernorConfig,
    waiter: Waiter,
    view: Weak<View<O>>,
    release_memory: fn(),
    target_bytes: u64,
    size_bytes: u64,
    handed_bytes: u64,
    log_events: EventReporter,
}

impl<O: Origin> SystemPressure<O> {
    /// # Errors
    /// The system's error if it gives no descriptor to wait on.
    pub(crate) fn new(
        sources: Sources,
        config: GovernorConfig,
        view: &Arc<View<O>>,
        release_memory: fn(),
    ) -> std::io::Result<Self> {
        let reserve_bytes = config.headroom_reserve_bytes;
        // Several thresholds, because a neighbour that grows passes each only once.
        let waiter = sources.waiter(&[reserve_bytes, reserve_bytes / 2, reserve_bytes / 4])?;
        let target_bytes = view.cache.level().target_bytes;
        if let Some(memory) = memory(&sources) {
            limit_handed(view, &memory, &config);
        }
        let stats = view.cache.stats();
        let rules = [stats.rule_data, stats.rule_metadata];
        let view = Arc::downgrade(view);
        let sources = Arc::new(sources);
        let log_events = EventReporter::new(rules);
        Ok(Self {
            sources,
            config,
            waiter,
            view,
            release_memory,
            target_bytes,
            size_bytes: 0,
            handed_bytes: 0,
            log_events,
        })
    }

    /// Tasks also stall for memory when one of their cgroups is at its limit and the machine is
    /// not. Such a stall is not this cache's fault unless little memory is left for it, too.
    fn is_tight(&self) -> bool {
        let reading = read(&self.sources);
        let share = |reserve_bytes: u64| reserve_bytes.saturating_mul(TIGHT_RESERVES);
        let config = GovernorConfig {
            reserve_bytes: share(self.config.reserve_bytes),
            headroom_reserve_bytes: share(self.config.headroom_reserve_bytes),
            ..self.config
        };
        is_short(&reading, &config)
    }

    /// Gives back a good part of the cache at once, whatever the kernel says about the present
    /// limit.
    ///
    /// A limit of cgroup v1 cannot be lowered below the usage. The kernel refuses with `EBUSY` as
    /// soon as it finds nothing to reclaim, and the limit stays. The user can only try again, and
    /// should not have to do so a hundred times.
    fn give_way(&mut self) {
        let Some(view) = self.view.upgrade() else {
            return;
        };
        let level = view.cache.level();
        let reading = read(&self.sources);
        view.cache.reclaim(level.size_bytes / SQUEEZED_SHARE);
        self.say_short(&view, reading, view.cache.level().target_bytes);
        view.cache.deny_growth(Instant::now() + self.config.grow_retry);
        (self.release_memory)();
        view.memory_bell.ring();
    }

    /// Logs that memory is short, unless that was logged recently. The target was that of the last
    /// check, and is `target_bytes` now.
    fn say_short(&mut self, view: &View<O>, reading: Reading, target_bytes: u64) {
        let targets = (self.target_bytes.max(target_bytes), target_bytes);
        let reclaimed_bytes = || view.cache.stats().reclaim_bytes;
        let event = self.log_events.short(reading, targets, reclaimed_bytes, Instant::now());
        if let Some(event) = event {
            event.log();
        }
    }

    /// Logs changes, since this thread is awake.
    fn log_changes(&mut self, view: &View<O>) {
        let now = Instant::now();
        if !self.log_events.is_time(now) {
            return;
        }
        let stats = view.cache.stats();
        let figures = Figures {
            target_bytes: self.target_bytes,
            reclaimed_bytes: stats.reclaim_bytes,
            rules: [stats.rule_data, stats.rule_metadata],
            refused_by_budget: view.second_level.as_ref().map_or(0, |l2| l2.refused_by_budget()),
        };
        self.log_events.look(&figures, now, &mut log_events::Event::log);
    }

    /// Releases the memory of evicted records, which the allocator still has. Does so whenever the
    /// target has fallen since the last time, or copies were evicted.
    fn release_reclaimed_memory(&mut self) {
        let Some(view) = self.view.upgrade() else {
            return;
        };
        let Level { target_bytes, size_bytes, .. } = view.cache.level();
        let handed_bytes = view.cache.handed_bytes();
        // Copies that became ordinary records also lower the count, and free nothing.
        let has_let_go = handed_bytes < self.handed_bytes && size_bytes < self.size_bytes;
        if target_bytes < self.target_bytes || has_let_go {
            (self.release_memory)();
            view.memory_bell.ring();
        }
        (self.target_bytes, self.size_bytes) = (target_bytes, size_bytes);
        self.handed_bytes = handed_bytes;
        self.log_changes(&view);
    }
}

impl<O: Origin> Pressure for SystemPressure<O> {
    fn wait(&mut self, timeout: Option<Duration>) -> WakeReason {
        self.release_reclaimed_memory();
        match self.waiter.wait(timeout) {
            Ok(events) if (events.pressure || events.limit) && self.is_tight() => {
                WakeReason::Pressure
            }
            Ok(events) if events.squeezed => {
                self.give_way();
                WakeReason::Woken
            }
            Ok(events) if events.pressure || events.limit => WakeReason::Woken,
            Ok(events) if events.woken || events.threshold || events.stopped => WakeReason::Woken,
            Ok(_) => WakeReason::TimedOut,
            Err(error) => {
                // Without events, the growth of the cache is still checked. Waiting in a failing
                // loop would burn the CPU that this project exists to save.
                log::warn!("cannot wait for memory pressure: {error}");
                std::thread::park_timeout(timeout.unwrap_or(Duration::from_secs(60)));
                WakeReason::TimedOut
            }
        }
    }

    fn read(&mut self) -> Reading {
        read(&self.sources)
    }

    fn carried_out(&mut self, reading: &Reading, decision: &Decision) {
        if let (Some(view), true) = (self.view.upgrade(), decision.give_bytes > 0) {
            let target_bytes = log_events::target_after(decision, self.target_bytes);
            self.say_short(&view, *reading, target_bytes);
        }
    }

    /// The thread that loads the next record calls this each time the cache has grown by
    /// [`check_every_bytes`]. It checks the memory itself. It stops the growth if no memory can be
    /// spared, and drops copies if none is free. The reclaim thread may be too late to save a small
    /// cgroup.
    fn waker(&self) -> Waker {
        let waker = self.waiter.waker();
        let (sources, view, config) = (self.sources.clone(), self.view.clone(), self.config);
        Arc::new(move || {
            if let (Some(view), Some(memory)) = (view.upgrade(), memory(&sources)) {
                if is_short(&as_engine_reads(&memory), &config) {
                    view.cache.deny_growth(Instant::now() + config.grow_retry);
                }
                limit_handed(&view, &memory, &config);
            }
            waker.wake();
        })
    }
}

fn read(sources: &Sources) -> Reading {
    memory(sources).as_ref().map(as_engine_reads).unwrap_or_default()
}

fn memory(sources: &Sources) -> Option<Memory> {
    let warn = |error: &_| log::warn!("cannot read the state of memory: {error}");
    sources.read().inspect_err(warn).ok()
}

fn as_engine_reads(memory: &Memory) -> Reading {
    Reading {
        available_bytes: Some(memory.available_bytes),
        headroom_bytes: (memory.limit_bytes < memory.total_bytes)
            .then(|| i64::try_from(memory.headroom_bytes).unwrap_or(i64::MAX)),
        // The triggers report whether tasks stall now. The readable average fades for ten seconds
        // after the last stall.
        stalled: false,
    }
}

/// How much of the cache may be copies of the page cache, in bytes, when they are `handed_bytes`
/// now.
///
/// A copy must not push out the page that it copies. So the limit depends on unused memory, with
/// the page cache counted as used. Free memory beyond the reserve is shared: each record that comes
/// in is a copy and a page.
fn handed_limit(reading: &Memory, config: &GovernorConfig, handed_bytes: u64) -> u64 {
    let beyond = |bytes: u64, reserve_bytes: u64| {
        i64::try_from(bytes).unwrap_or(i64::MAX).saturating_sub_unsigned(reserve_bytes)
    };
    let of_machine = beyond(reading.free_bytes, config.reserve_bytes);
    let of_group = beyond(reading.unused_bytes, config.headroom_reserve_bytes);
    match of_machine.min(of_group) {
        free if free >= 0 => handed_bytes.saturating_add(free.unsigned_abs() / 2),
        lacking => handed_bytes.saturating_sub(lacking.unsigned_abs()),
    }
}

fn limit_handed<O: Origin>(view: &View<O>, memory: &Memory, config: &GovernorConfig) {
    view.cache.limit_handed(handed_limit(memory, config, view.cache.handed_bytes()));
}

/// Whether less memory is left than must stay free.
fn is_short(reading: &Reading, config: &GovernorConfig) -> bool {
    let reserve = i64::try_from(config.headroom_reserve_bytes).unwrap_or(i64::MAX);
    reading.available_bytes.is_some_and(|available| available < config.reserve_bytes)
        || reading.headroom_bytes.is_some_and(|headroom| headroom < reserve)
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
        assert_eq!(bounds, Bounds { min_bytes: gib / 4, max_bytes: gib });
        let bounds = Bounds::new(64 * gib, Some(8 * gib), Some(gib));
        assert_eq!(bounds, Bounds { min_bytes: gib, max_bytes: 8 * gib });
        assert_eq!(Bounds::new(0, None, None), Bounds { min_bytes: 0, max_bytes: 0 });
    }

    #[test]
    fn copies_take_half_of_free_memory_and_give_back_all_that_is_lacking() {
        let mib = |mib: u64| mib << 20;
        let memory = |free: u64, unused: u64| Memory {
            total_bytes: mib(1000),
            free_bytes: mib(free),
            available_bytes: mib(900),
            swap_total_bytes: 0,
            swap_free_bytes: 0,
            limit_bytes: mib(1000),
            usage_bytes: 0,
            headroom_bytes: mib(900),
            unused_bytes: mib(unused),
            stalled: false,
            stall_total_us: 0,
        };
        let config = GovernorConfig {
            reserve_bytes: mib(100),
            headroom_reserve_bytes: mib(10),
            ..GovernorConfig::default()
        };
        let limit =
            |free, unused, handed| handed_limit(&memory(free, unused), &config, mib(handed)) >> 20;
        assert_eq!(limit(500, 1000, 50), 250);
        assert_eq!(limit(500, 70, 50), 80, "the group's limit binds");
        assert_eq!(limit(100, 1000, 50), 50, "no more, no less");
        assert_eq!(limit(80, 1000, 50), 30);
        assert_eq!(limit(80, 0, 50), 30);
        assert_eq!(limit(0, 1000, 50), 0);
    }

    #[test]
    fn the_reserve_never_takes_a_small_machine_whole() {
        for bytes in [0, 1 << 20, 64 << 20, 1 << 30, 64 << 30, u64::MAX] {
            let config = governor(bytes, bytes / 2);
            assert!(config.reserve_bytes <= bytes / 8);
            assert!(config.headroom_reserve_bytes <= bytes / 16);
        }
        let config = governor(64 << 30, 512 << 20);
        assert_eq!((config.reserve_bytes, config.headroom_reserve_bytes), (2 << 30, 16 << 20));
    }
}
