//! The limit of concurrent reads: AIMD, which backs off when the store throttles.
//!
//! A throttling store answers `SlowDown`, 503 or 429. Then the limit is halved, once for all
//! requests that were sent before. It grows by one for each round of reads that succeed. Prefetch
//! waits behind demand reads and leaves them a quarter of the limit.
//!
//! # Locks
//! One, a leaf. No task is woken under it.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::sync::oneshot;

/// The initial and the largest limit.
const LIMIT_FIRST: f64 = 64.0;
const LIMIT_MAX: f64 = 256.0;
/// The smallest limit: one read always continues.
const LIMIT_MIN: f64 = 1.0;

/// The gate at which reads wait for their turn.
pub(super) struct Gate {
    state: Mutex<State>,
    slow_downs: AtomicU64,
}

struct State {
    limit: f64,
    under_way: usize,
    demanded: VecDeque<oneshot::Sender<Pass>>,
    ahead: VecDeque<oneshot::Sender<Pass>>,
    /// When the limit was halved last.
    halved: Option<Instant>,
}

/// A turn, returned by its drop.
pub(super) struct Pass(Option<Arc<Gate>>);

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.leave();
        }
    }
}

impl State {
    /// Whether one more read may start.
    fn has_room(&self, is_demanded: bool) -> bool {
        let share = if is_demanded { 1.0 } else { 0.75 };
        (self.under_way as f64) < (self.limit * share).max(LIMIT_MIN)
    }

    /// The next waiting read, if it may start.
    fn next(&mut self) -> Option<oneshot::Sender<Pass>> {
        let next = match (self.has_room(true), self.has_room(false)) {
            (true, true) => self.demanded.pop_front().or_else(|| self.ahead.pop_front()),
            (true, false) => self.demanded.pop_front(),
            _ => None,
        }?;
        self.under_way += 1;
        Some(next)
    }
}

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            limit: LIMIT_FIRST,
            under_way: 0,
            demanded: VecDeque::new(),
            ahead: VecDeque::new(),
            halved: None,
        };
        Arc::new(Self { state: Mutex::new(state), slow_downs: AtomicU64::new(0) })
    }

    /// Waits for a turn.
    pub(super) async fn enter(self: &Arc<Self>, is_demanded: bool) -> Pass {
        let turn = {
            let mut state = self.state.lock();
            if state.has_room(is_demanded) {
                state.under_way += 1;
                return Pass(Some(Arc::clone(self)));
            }
            let (give, take) = oneshot::channel();
            let queue = if is_demanded { &mut state.demanded } else { &mut state.ahead };
            queue.push_back(give);
            take
        };
        // Once the gate is gone, every read may start.
        turn.await.unwrap_or(Pass(None))
    }

    fn leave(self: Arc<Self>) {
        self.state.lock().under_way -= 1;
        self.wake();
    }

    /// Gives turns to waiting reads, as long as the limit allows.
    fn wake(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state.lock().next() else { return };
            if let Err(mut pass) = next.send(Pass(Some(Arc::clone(self)))) {
                // It no longer waits; the turn goes to the next one.
                pass.0 = None;
                self.state.lock().under_way -= 1;
            }
        }
    }

    /// Records a read that succeeded.
    pub(super) fn went_well(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();
            state.limit = (state.limit + 1.0 / state.limit).min(LIMIT_MAX);
        }
        self.wake();
    }

    /// Records that the store throttled a request that was sent at `sent`.
    pub(super) fn slow_down(&self, sent: Instant) {
        let mut state = self.state.lock();
        if state.halved.is_some_and(|halved| sent <= halved) {
            return;
        }
        state.halved = Some(Instant::now());
        state.limit = (state.limit / 2.0).max(LIMIT_MIN);
        drop(state);
        self.slow_downs.fetch_add(1, Relaxed);
    }

    /// The limit, and how often it was halved.
    pub(super) fn standing(&self) -> (u64, u64) {
        (self.state.lock().limit as u64, self.slow_downs.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn turn(gate: &Arc<Gate>, is_demanded: bool) -> Option<Pass> {
        gate.enter(is_demanded).now_or_never()
    }

    #[test]
    fn the_limit_is_halved_when_the_store_throttles_and_grows_again() {
        let gate = Gate::new();
        let sent = Instant::now();
        gate.slow_down(sent);
        gate.slow_down(sent);
        assert_eq!(gate.standing(), (32, 1), "once for all requests sent before");
        gate.slow_down(Instant::now() + std::time::Duration::from_secs(1));
        assert_eq!(gate.standing(), (16, 2));
        for _ in 0..17 {
            gate.went_well();
        }
        assert_eq!(gate.standing(), (17, 2));
        for second in 2..20 {
            gate.slow_down(Instant::now() + std::time::Duration::from_secs(second * 60));
        }
        assert_eq!(gate.standing().0, 1, "one read continues");
        (0..100_000).for_each(|_| gate.went_well());
        assert_eq!(gate.standing().0, 256);
    }

    #[test]
    fn prefetch_waits_behind_demand_reads() {
        let gate = Gate::new();
        let ahead: Vec<Pass> = std::iter::from_fn(|| turn(&gate, false)).collect();
        assert_eq!(ahead.len(), 48);
        let mut demanded: Vec<Pass> = std::iter::from_fn(|| turn(&gate, true)).collect();
        assert_eq!(demanded.len(), 16);
        let mut late_ahead = Box::pin(gate.enter(false));
        assert!(late_ahead.as_mut().now_or_never().is_none());
        let mut late = Box::pin(gate.enter(true));
        assert!(late.as_mut().now_or_never().is_none());
        drop(demanded.pop());
        assert!(late.as_mut().now_or_never().is_some(), "though it came later");
        drop(demanded);
        assert!(late_ahead.as_mut().now_or_never().is_none(), "a quarter is kept free");
        drop(ahead);
        assert!(late_ahead.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_read_that_gives_up_leaves_its_turn_to_others() {
        let gate = Gate::new();
        let all: Vec<Pass> = std::iter::from_fn(|| turn(&gate, true)).collect();
        let mut gone = Box::pin(gate.enter(true));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut patient = Box::pin(gate.enter(true));
        assert!(patient.as_mut().now_or_never().is_none());
        drop(gone);
        drop(all);
        assert!(patient.as_mut().now_or_never().is_some());
        assert_eq!(gate.state.lock().under_way, 0);
    }
}
