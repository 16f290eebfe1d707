//! The cost of requests, and how much of a budget prefetch may spend.
//!
//! A budget never slows a demand read. It answers one question: may prefetch make another request?
//!
//! - *Requests a second*: a token bucket that holds one second's worth. Every request takes a
//!   token, demand reads too. Prefetch continues while a token is left.
//! - *Dollars a day*: days begin with the mount. Prefetch may spend half of the day's budget at any
//!   time, and the other half in proportion to the time of day. So it slows down before it stops.
//!
//! This module does no I/O: the caller passes totals and the time.

use crate::Requests;
use std::time::{Duration, Instant};

/// The length of a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest debt of the token bucket, in seconds. Demand reads may exceed the rate; this bounds
/// how long prefetch waits after a burst of them.
const EARLY_MAX_SECONDS: f64 = 10.0;

/// A price list, in nanodollars a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A GET of an object.
    pub get_nanodollars: u64,
    /// A HEAD.
    pub head_nanodollars: u64,
    /// A page of a listing.
    pub list_nanodollars: u64,
    /// A write of any kind.
    pub put_nanodollars: u64,
    /// A DELETE.
    pub delete_nanodollars: u64,
    /// 10⁹ received bytes, in nanodollars; zero within a region.
    pub received_gb_nanodollars: u64,
}

impl Prices {
    /// A price list without any price, as the basis of a custom one.
    pub const NONE: Self = Self::new(0, 0);
    /// Amazon S3 Standard in us-east-1, 2026.
    pub const AMAZON: Self = Self::new(400, 5_000);
    /// Google Cloud Storage Standard in a region, 2026: operations of class B and A.
    pub const GOOGLE: Self = Self::new(400, 5_000);
    /// Azure Blob Storage, hot tier, locally redundant, 2026.
    pub const AZURE: Self = Self::new(440, 5_500);
    /// Cloudflare R2 Standard, 2026: operations of class B and A.
    pub const CLOUDFLARE: Self = Self::new(360, 4_500);

    const fn new(read: u64, write: u64) -> Self {
        Self {
            get_nanodollars: read,
            head_nanodollars: read,
            list_nanodollars: write,
            put_nanodollars: write,
            delete_nanodollars: 0,
            received_gb_nanodollars: 0,
        }
    }

    /// The public prices of the store at this address; `None` for a private store.
    pub fn of(endpoint: &str) -> Option<Self> {
        let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        let has = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        let lists = [
            ("amazonaws.com", Self::AMAZON),
            ("amazonaws.com.cn", Self::AMAZON),
            ("r2.cloudflarestorage.com", Self::CLOUDFLARE),
            ("googleapis.com", Self::GOOGLE),
            ("blob.core.windows.net", Self::AZURE),
        ];
        lists.into_iter().find_map(|(domain, list)| has(domain).then_some(list))
    }

    /// The cost of requests.
    pub fn microdollars(&self, asked: &Requests) -> u64 {
        let of = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let requests = of(asked.get, self.get_nanodollars)
            + of(asked.head, self.head_nanodollars)
            + of(asked.list, self.list_nanodollars)
            + of(asked.put, self.put_nanodollars)
            + of(asked.delete, self.delete_nanodollars);
        let traffic = of(asked.received_bytes, self.received_gb_nanodollars) / 1_000_000_000;
        u64::try_from((requests + traffic) / 1000).unwrap_or(u64::MAX)
    }
}

/// The budget; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Requests of any kind a second.
    pub requests_a_second: Option<u32>,
    /// Microdollars a day.
    pub microdollars_a_day: Option<u64>,
}

/// Why prefetch is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// The limit of requests a second.
    Requests,
    /// The budget of the day.
    Money,
}

/// How much of a budget is spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    budget: Budget,
    /// Requests that may still be made; below zero the debt of a burst.
    tokens: f64,
    /// The total of requests at the last check, and its time.
    seen: u64,
    at: Instant,
    /// The start of the day, and what had been spent by then.
    day: Instant,
    spent_before: u64,
}

impl Meter {
    pub(crate) fn new(budget: Budget, now: Instant) -> Self {
        let tokens = budget.requests_a_second.map_or(0.0, f64::from);
        Self { budget, tokens, seen: 0, at: now, day: now, spent_before: 0 }
    }

    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.budget != Budget::default()
    }

    /// Microdollars spent today, given the total since the mount began.
    pub(crate) fn spent_today(&mut self, microdollars: u64, now: Instant) -> u64 {
        while now.saturating_duration_since(self.day) >= DAY {
            self.day += DAY;
            self.spent_before = microdollars;
        }
        microdollars.saturating_sub(self.spent_before)
    }

    /// Whether prefetch may continue, given the totals of requests and microdollars.
    pub(crate) fn check(
        &mut self,
        requests: u64,
        microdollars: u64,
        now: Instant,
    ) -> Result<(), HeldBack> {
        if let Some(budget) = self.budget.microdollars_a_day {
            let spent = self.spent_today(microdollars, now);
            let passed = now.saturating_duration_since(self.day).as_secs_f64() / DAY.as_secs_f64();
            if spent as f64 >= budget as f64 * (0.5 + 0.5 * passed) {
                return Err(HeldBack::Money);
            }
        }
        if let Some(rate) = self.budget.requests_a_second.map(f64::from) {
            let passed = now.saturating_duration_since(self.at).as_secs_f64();
            let made = requests.saturating_sub(self.seen) as f64;
            let tokens = (self.tokens + passed * rate).min(rate.max(1.0)) - made;
            self.tokens = tokens.max(-EARLY_MAX_SECONDS * rate);
            (self.seen, self.at) = (requests, now);
            if self.tokens < 1.0 {
                return Err(HeldBack::Requests);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_million_requests_cost_what_the_price_list_says() {
        let million = 1_000_000;
        let prices = Prices::AMAZON;
        let gets = Requests { get: million, ..Requests::default() };
        assert_eq!(prices.microdollars(&gets), 400_000);
        let lists = Requests { list: million, ..Requests::default() };
        assert_eq!(prices.microdollars(&lists), 5 * million);
        let deletes = Requests { delete: million, ..Requests::default() };
        assert_eq!(prices.microdollars(&deletes), 0);
        let far = Prices { received_gb_nanodollars: 90_000_000, ..prices };
        let terabyte = Requests { received_bytes: 1_000_000_000_000, ..Requests::default() };
        assert_eq!(
            (far.microdollars(&terabyte), prices.microdollars(&terabyte)),
            (90 * million, 0)
        );
        let endless = Requests { put: u64::MAX, ..Requests::default() };
        assert_eq!(prices.microdollars(&endless), u64::MAX);
    }

    #[test]
    fn the_price_list_is_that_of_the_store() {
        for (endpoint, prices) in [
            ("https://s3.amazonaws.com", Some(Prices::AMAZON)),
            ("https://b.s3.eu-west-1.amazonaws.com", Some(Prices::AMAZON)),
            ("https://storage.googleapis.com", Some(Prices::GOOGLE)),
            ("https://account.blob.core.windows.net:443/x", Some(Prices::AZURE)),
            ("https://id.r2.cloudflarestorage.com", Some(Prices::CLOUDFLARE)),
            ("https://r2.cloudflarestorage.com.evil.example", None),
            ("http://127.0.0.1:9000", None),
        ] {
            assert_eq!(Prices::of(endpoint), prices, "{endpoint}");
        }
    }

    #[test]
    fn without_a_budget_nothing_is_held_back() {
        let now = Instant::now();
        let mut meter = Meter::new(Budget::default(), now);
        assert!(!meter.is_limited());
        assert_eq!(meter.check(u64::MAX, u64::MAX, now), Ok(()));
    }

    #[test]
    fn all_requests_count_for_the_limit_a_second() {
        let start = Instant::now();
        let budget = Budget { requests_a_second: Some(10), ..Budget::default() };
        let mut meter = Meter::new(budget, start);
        assert_eq!(meter.check(9, 0, start), Ok(()));
        assert_eq!(meter.check(10, 0, start), Err(HeldBack::Requests));
        assert_eq!(meter.check(10, 0, start + SECOND / 5), Ok(()), "two more by now");
        // Prefetch makes up for a burst of demand reads, for ten seconds at most.
        assert_eq!(meter.check(100_000, 0, start + SECOND), Err(HeldBack::Requests));
        assert_eq!(meter.check(100_000, 0, start + 10 * SECOND), Err(HeldBack::Requests));
        assert_eq!(meter.check(100_000, 0, start + 12 * SECOND), Ok(()));
        // A day without requests leaves one second's worth of tokens.
        let tomorrow = start + DAY;
        assert_eq!(meter.check(100_009, 0, tomorrow), Ok(()));
        assert_eq!(meter.check(100_010, 0, tomorrow), Err(HeldBack::Requests));
    }

    #[test]
    fn half_of_a_days_budget_is_free_and_half_follows_the_time_of_day() {
        let start = Instant::now();
        let budget = Budget { microdollars_a_day: Some(1_000_000), ..Budget::default() };
        let mut meter = Meter::new(budget, start);
        assert_eq!(meter.check(0, 499_999, start), Ok(()));
        assert_eq!(meter.check(0, 500_000, start), Err(HeldBack::Money));
        assert_eq!(meter.check(0, 700_000, start + DAY / 4), Err(HeldBack::Money));
        assert_eq!(meter.check(0, 700_000, start + DAY / 2), Ok(()));
        assert_eq!(meter.check(0, 1_000_000, start + DAY - SECOND), Err(HeldBack::Money));
        // The next day begins with nothing spent, even if no check was made for a day.
        assert_eq!(meter.check(0, 1_400_000, start + 3 * DAY), Ok(()));
        assert_eq!(meter.check(0, 1_900_000, start + 3 * DAY), Err(HeldBack::Money));
        assert_eq!(meter.spent_today(1_900_000, start + 3 * DAY), 500_000);
    }
}
