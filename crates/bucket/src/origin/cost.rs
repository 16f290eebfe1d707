//! The cost of a mount's requests, and the budget that holds prefetch back.
//!
//! # Locks
//! One, of the meter; a leaf.

use super::BucketOrigin;
use crate::cost::{HeldBack, Meter};
use crate::{Bucket, Budget, Prices};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The prices, and how much of the budget is spent.
pub(super) struct CostMeter {
    /// `None` if the prices are unknown.
    pub(super) prices: Option<Prices>,
    meter: Mutex<Meter>,
    /// Whether there is a budget. Without one the counters are not read.
    is_limited: bool,
    /// How often prefetch was held back by the request limit, and by the cost limit.
    held_back_by_requests: AtomicU64,
    held_back_by_money: AtomicU64,
}

impl Default for CostMeter {
    fn default() -> Self {
        Self::new(None, Budget::default())
    }
}

impl CostMeter {
    fn new(prices: Option<Prices>, budget: Budget) -> Self {
        let meter = Meter::new(budget, Instant::now());
        Self {
            prices,
            is_limited: meter.is_limited(),
            meter: Mutex::new(meter),
            held_back_by_requests: AtomicU64::new(0),
            held_back_by_money: AtomicU64::new(0),
        }
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&str, u64)) {
        report("origin_held_back_by_requests", self.held_back_by_requests.load(Relaxed));
        report("origin_held_back_by_budget", self.held_back_by_money.load(Relaxed));
    }
}

impl<B: Bucket> BucketOrigin<B> {
    /// Sets the prices, if they are known, and prefetch's budget.
    pub fn set_budget(&mut self, prices: Option<Prices>, budget: Budget) {
        self.cost = CostMeter::new(prices, budget);
    }

    /// Whether prefetch may make another request.
    pub(super) fn may_prefetch(&self) -> bool {
        let money = &self.cost;
        if !money.is_limited {
            return true;
        }
        let asked = self.bucket.request_counts();
        let microdollars = money.prices.map_or(0, |prices| prices.microdollars(&asked));
        let checked = money.meter.lock().check(asked.all(), microdollars, Instant::now());
        match checked {
            Ok(()) => return true,
            Err(HeldBack::Requests) => money.held_back_by_requests.fetch_add(1, Relaxed),
            Err(HeldBack::Money) => {
                let before = money.held_back_by_money.fetch_add(1, Relaxed);
                if before == 0 {
                    self.messages.warn(format_args!(
                        "the budget is used up for now ({microdollars} microdollars since the \
                         mount began): prefetch is paused, other reads continue"
                    ));
                }
                before
            }
        };
        false
    }
}
