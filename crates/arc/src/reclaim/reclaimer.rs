//! The thread that carries out what the governor decides. It sleeps in [`Pressure::wait`]. It wakes
//! for events of pressure, for each amount of new entries, for denied growth, and for the
//! governor's own next look. While the cache is idle there is no such look.

use super::governor::{Decision, Governor, GovernorConfig, Reading};
use crate::cache::{Cache, Growth, WeakCache};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When to look again after a look that panicked.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);

/// Wakes a [`Pressure::wait`] from another thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Why [`Pressure::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// The system is, or may be, short of memory.
    Pressure,
    /// The waker was called.
    Woken,
    /// The time is over.
    TimedOut,
}

/// A source of events of memory pressure.
pub trait Pressure: Send {
    /// Sleeps until pressure comes, the waker is called, or `timeout` is over; `None` is no
    /// timeout. A call of the waker since the last wait counts, too.
    fn wait(&mut self, timeout: Option<Duration>) -> WakeReason;

    /// Reads the system's memory now. The reclaimer sets `stalled` by itself when `wait` has
    /// returned [`WakeReason::Pressure`].
    fn read(&mut self) -> Reading;

    /// Called after each decision, with the reading it was made of.
    fn carried_out(&mut self, reading: &Reading, decision: &Decision) {
        let _ = (reading, decision);
    }

    /// A waker for this wait.
    fn waker(&self) -> Waker;
}

/// The settings of a [`Reclaimer`].
#[derive(Clone, Copy, Debug)]
pub struct ReclaimerConfig {
    /// The governor's.
    pub governor: GovernorConfig,
    /// Look at the system's memory each time so many bytes have come in; `None`: wait for
    /// events of pressure alone.
    pub check_every_bytes: Option<u64>,
}

impl Default for ReclaimerConfig {
    fn default() -> Self {
        Self { governor: GovernorConfig::default(), check_every_bytes: Some(64 << 20) }
    }
}

/// A thread that shrinks a cache under memory pressure and lets it grow again. It ends when
/// this is dropped, or with the cache at its next wake-up.
#[must_use = "the thread ends when this is dropped"]
pub struct Reclaimer {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").finish_non_exhaustive()
    }
}

impl Reclaimer {
    /// Starts the thread, named `arc_reclaim`, and takes the cache's growth hook.
    ///
    /// # Errors
    /// The system's error if it gives no thread.
    pub fn spawn<K, V>(
        cache: &Cache<K, V>,
        pressure: impl Pressure + 'static,
        config: ReclaimerConfig,
    ) -> io::Result<Self>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let stop = Arc::new(AtomicBool::new(false));
        let waker = pressure.waker();
        let hook_waker = Arc::clone(&waker);
        let every_bytes = config.check_every_bytes.unwrap_or(u64::MAX);
        let (weak, stopped) = (cache.weak(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("arc_reclaim".to_owned())
            .spawn(move || run(&weak, pressure, config.governor, &stopped))?;
        cache.set_growth_hook(every_bytes, move |growth| match growth {
            Growth::Added { .. } | Growth::Denied => hook_waker(),
        });
        Ok(Self { stop, waker, thread: Some(thread) })
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        (self.waker)();
        if let Some(thread) = self.thread.take() {
            // A panic of the pressure's has been reported by the panic hook already.
            drop(thread.join());
        }
    }
}

fn run<K, V>(
    weak: &WeakCache<K, V>,
    mut pressure: impl Pressure,
    config: GovernorConfig,
    stop: &AtomicBool,
) {
    let start = Instant::now();
    let mut governor = Governor::new(config);
    let mut next_check: Option<Duration> = None;
    loop {
        let timeout = next_check.map(|at| at.saturating_sub(start.elapsed()));
        let awakening = pressure.wait(timeout);
        let Some(cache) = weak.upgrade() else { return };
        if stop.load(Ordering::Acquire) {
            cache.clear_growth_hook();
            cache.allow_growth();
            return;
        }
        // Either the pressure's code panicked, or an owner that was asked for memory. The panic
        // hook has reported it. The thread goes on, because memory may be short again.
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let mut reading = pressure.read();
            reading.stalled |= awakening == WakeReason::Pressure;
            let level = cache.level();
            let decision = governor.decide(start.elapsed(), &reading, &level);
            carry_out(&cache, start, &decision);
            pressure.carried_out(&reading, &decision);
            decision.next_check
        }));
        next_check = looked.unwrap_or_else(|_| Some(start.elapsed() + PAUSE_AFTER_PANIC));
    }
}

fn carry_out<K, V>(cache: &Cache<K, V>, start: Instant, decision: &Decision) {
    match decision.no_grow_until {
        Some(until) => cache.deny_growth(start + until),
        None => cache.allow_growth(),
    }
    let freed_bytes = match decision.shrink_to_bytes {
        Some(to_bytes) => cache.reclaim_to(to_bytes),
        None => 0,
    };
    // If the cache cannot give enough, owners of other memory may.
    cache.prune(decision.give_bytes.saturating_sub(freed_bytes));
}
