//! Admission: which evicted records are written. An SSD wears, and most evicted records are never
//! asked for again.
//!
//! Rules, in this order (OpenZFS: `l2arc_noprefetch`, `l2arc_mfuonly`; bcache: `sequential_cutoff`;
//! CacheLib: dynamic random admission):
//!
//! 1. A record that is there already is not written again.
//! 2. A record that was prefetched and never used is not written.
//! 3. Neither is a part of a long sequential run, unless it was used again.
//! 4. A record of the MFU list is written: it was used again, or came back after eviction.
//! 5. The rest is written by chance, with the share of the budget that is left.
//! 6. Nothing is written beyond the budget.

use crate::format::WearAccount;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that may be written at once after a pause, in seconds of the rate.
const BURST: Duration = Duration::from_secs(8);
/// Smallest burst: a few segments' worth of records.
const BURST_MIN_BYTES: f64 = (16 << 20) as f64;
/// A budget with more than this share left admits everything.
const EASY_SHARE: f64 = 0.5;

/// A record as the first level used it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// It was on the MFU list.
    pub frequent: bool,
    /// A prefetch brought it, and no demand has asked for it.
    pub unused_prefetch: bool,
    /// It was read as part of a long sequential run.
    pub sequential: bool,
}

/// Which records are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// By the rules above.
    #[default]
    Careful,
    /// All for which there is budget: for benchmarks, and for SSDs that may be worn.
    All,
}

/// The verdict of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    UnusedPrefetch,
    Sequential,
    Chance,
    Budget,
}

/// Limits of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteLimits {
    /// Most bytes a second; `None`: any.
    pub bytes_per_second: Option<u64>,
    /// Most times the whole device may be written in a day, after it has been filled once;
    /// `None`: any.
    pub drive_writes_per_day: Option<f64>,
}

/// Decides for one device.
#[derive(Debug)]
pub(crate) struct Gate {
    admission: Admission,
    /// Leaf locks, each held for a few additions.
    rate: Option<Mutex<Bucket>>,
    wear: Option<Mutex<Wear>>,
    random: Mutex<u64>,
    /// Bytes sent to the device since it was formatted.
    sent_bytes: AtomicU64,
}

/// Wear that is limited.
#[derive(Debug)]
struct Wear {
    /// Bytes that are free of charge: the first fill.
    free_bytes: f64,
    bucket: Bucket,
    /// The account of earlier writes is read; until then nothing may be written.
    is_known: bool,
}

/// A token bucket of bytes.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    most: f64,
    level: f64,
    filled: Instant,
}

impl Bucket {
    fn new(per_second: f64, burst: Duration, now: Instant) -> Self {
        let most = (per_second * burst.as_secs_f64()).max(BURST_MIN_BYTES);
        Self { per_second, most, level: most, filled: now }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.most);
        self.filled = now;
    }

    /// Share that is left after this much more is taken, from 0 to 1.
    fn share(&self, pending_bytes: f64) -> f64 {
        ((self.level - pending_bytes) / self.most).clamp(0.0, 1.0)
    }
}

impl Gate {
    /// For a device of `device_bytes`.
    pub(crate) fn new(
        admission: Admission,
        limits: WriteLimits,
        device_bytes: u64,
        now: Instant,
    ) -> Self {
        let rate = limits.bytes_per_second.map(|rate| Bucket::new(rate as f64, BURST, now));
        let wear = limits.drive_writes_per_day.map(|writes| {
            let per_second = writes * device_bytes as f64 / 86_400.0;
            // An hour's unused allowance may be written at once.
            let bucket = Bucket::new(per_second, Duration::from_secs(3600), now);
            Wear { free_bytes: device_bytes as f64, bucket, is_known: false }
        });
        Self {
            admission,
            rate: rate.map(Mutex::new),
            wear: wear.map(Mutex::new),
            random: Mutex::new(0x9e37_79b9_7f4a_7c15),
            sent_bytes: AtomicU64::new(0),
        }
    }

    /// Continues the account on the device, and adds the bytes that were sent after it was written.
    /// Without an account the device is new. Until this is called, a limit of wear lets nothing
    /// through. `clock_seconds` are since 1970.
    pub(crate) fn found(
        &self,
        account: Option<(WearAccount, u64)>,
        now: Instant,
        clock_seconds: u64,
    ) {
        let (account, since) = match account {
            Some((account, since)) => (Some(account), since),
            None => (None, 0),
        };
        let sent_bytes = account.map_or(0, |account| account.sent_bytes).saturating_add(since);
        self.sent_bytes.store(sent_bytes, Ordering::Relaxed);
        let Some(wear) = &self.wear else { return };
        let mut wear = wear.lock();
        wear.is_known = true;
        let free = (wear.free_bytes - sent_bytes as f64).max(0.0);
        // Bytes that were free of charge since then did not count against the allowance.
        let charged =
            (since as f64 - (wear.free_bytes - (sent_bytes - since) as f64).max(0.0)).max(0.0);
        wear.free_bytes = free;
        if let Some(account) = account.filter(|account| account.allowance_bytes != i64::MAX) {
            // A clock that was put back gives nothing.
            let passed = clock_seconds.saturating_sub(account.clock_seconds) as f64;
            let saved = passed * wear.bucket.per_second;
            let level = account.allowance_bytes as f64 - charged + saved;
            wear.bucket.level = level.min(wear.bucket.most);
            wear.bucket.filled = now;
        }
    }

    /// The present account, to be kept on the device.
    pub(crate) fn account(&self, now: Instant, clock_seconds: u64) -> WearAccount {
        let allowance_bytes = self.wear.as_ref().map_or(i64::MAX, |wear| {
            let mut wear = wear.lock();
            wear.bucket.fill(now);
            wear.bucket.level as i64
        });
        let sent_bytes = self.sent_bytes.load(Ordering::Relaxed);
        WearAccount { sent_bytes, clock_seconds, allowance_bytes }
    }

    /// Whether to take a record, with `pending_bytes` waiting to be written. [`Gate::charge`]
    /// charges the bytes that are written for it.
    pub(crate) fn judge(&self, offered: Offered, pending_bytes: u64, now: Instant) -> Verdict {
        if self.admission == Admission::Careful && offered.unused_prefetch {
            return Verdict::UnusedPrefetch;
        }
        let must_draw = self.admission == Admission::Careful && !offered.frequent;
        if must_draw && offered.sequential {
            return Verdict::Sequential;
        }
        let share = self.share(pending_bytes as f64, now);
        if share <= 0.0 {
            return Verdict::Budget;
        }
        if must_draw && share < EASY_SHARE && !self.draw(share / EASY_SHARE) {
            return Verdict::Chance;
        }
        Verdict::Yes
    }

    /// Notes bytes that were sent to the device, of any kind.
    pub(crate) fn charge(&self, bytes: u64, now: Instant) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let bytes = bytes as f64;
        if let Some(rate) = &self.rate {
            let mut rate = rate.lock();
            rate.fill(now);
            rate.level -= bytes;
        }
        if let Some(wear) = &self.wear {
            let mut wear = wear.lock();
            let free = wear.free_bytes.min(bytes);
            wear.free_bytes -= free;
            wear.bucket.fill(now);
            wear.bucket.level -= bytes - free;
        }
    }

    fn share(&self, pending_bytes: f64, now: Instant) -> f64 {
        let rate = self.rate.as_ref().map_or(1.0, |rate| {
            let mut rate = rate.lock();
            rate.fill(now);
            rate.share(pending_bytes)
        });
        let wear = self.wear.as_ref().map_or(1.0, |wear| {
            let mut wear = wear.lock();
            if !wear.is_known {
                return 0.0;
            }
            wear.bucket.fill(now);
            let free = wear.free_bytes;
            if free > pending_bytes { 1.0 } else { wear.bucket.share(pending_bytes - free) }
        });
        rate.min(wear)
    }

    fn draw(&self, chance: f64) -> bool {
        // xorshift64 (Marsaglia, 2003): predicting it gains nothing.
        let mut random = self.random.lock();
        let mut x = *random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *random = x;
        ((x >> 11) as f64) / ((1u64 << 53) as f64) < chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    /// Some day.
    const TODAY: u64 = 1_700_000_000;

    #[test]
    fn the_rules_hold_in_their_order() {
        let now = Instant::now();
        let gate = Gate::new(Admission::Careful, WriteLimits::default(), 1 << 30, now);
        let once = Offered::default();
        assert_eq!(gate.judge(once, 0, now), Verdict::Yes);
        let prefetched = Offered { unused_prefetch: true, frequent: true, ..once };
        assert_eq!(gate.judge(prefetched, 0, now), Verdict::UnusedPrefetch);
        assert_eq!(gate.judge(Offered { sequential: true, ..once }, 0, now), Verdict::Sequential);
        let again = Offered { sequential: true, frequent: true, ..once };
        assert_eq!(gate.judge(again, 0, now), Verdict::Yes);
        let all = Gate::new(Admission::All, WriteLimits::default(), 1 << 30, now);
        assert_eq!(all.judge(prefetched, 0, now), Verdict::Yes);
    }

    /// A simulated day with more to write than may be.
    #[test]
    fn write_budget_is_kept() {
        let start = Instant::now();
        let capacity = 10 << 30;
        let limits = WriteLimits { bytes_per_second: None, drive_writes_per_day: Some(2.0) };
        let gate = Gate::new(Admission::Careful, limits, capacity, start);
        assert_eq!(
            gate.judge(Offered::default(), 0, start),
            Verdict::Budget,
            "no account was read"
        );
        gate.found(None, start, TODAY);
        let (mut written, mut frequent) = (0, 0);
        for second in 0..86_400_u64 {
            let now = start + Duration::from_secs(second);
            for number in 0..4 {
                let offered = Offered { frequent: number == 0, ..Offered::default() };
                if gate.judge(offered, 0, now) == Verdict::Yes {
                    gate.charge(MIB, now);
                    written += MIB;
                    frequent += u64::from(offered.frequent) * MIB;
                }
            }
        }
        // The first fill is free; an hour may be saved up.
        let allowed = capacity + 2 * capacity + 2 * capacity / 24 + 4 * MIB;
        assert!(written <= allowed, "{written} of {allowed}");
        assert!(written >= allowed * 8 / 10, "{written} of {allowed}: the budget is for use");
        assert!(frequent * 3 > written, "what was used again goes first");
    }

    /// Writes all it may, and returns how much that was.
    fn write_all(gate: &Gate, now: Instant) -> u64 {
        let mut written = 0;
        while gate.judge(Offered::default(), 0, now) == Verdict::Yes {
            gate.charge(MIB, now);
            written += MIB;
        }
        written
    }

    #[test]
    fn the_first_fill_is_free_once_and_not_with_every_mount() {
        let now = Instant::now();
        let capacity = 10 << 30;
        let limits = WriteLimits { bytes_per_second: None, drive_writes_per_day: Some(0.5) };
        let gate = Gate::new(Admission::All, limits, capacity, now);
        let account = WearAccount {
            sent_bytes: capacity - 100 * MIB,
            clock_seconds: TODAY,
            allowance_bytes: i64::MAX,
        };
        gate.found(Some((account, 0)), now, TODAY);
        let written = write_all(&gate, now);
        // The rest of the first fill, and an hour's worth of the budget.
        let allowed = 100 * MIB + capacity / 48 + 2 * MIB;
        assert!(written > 100 * MIB && written <= allowed, "{written} of {allowed}");
    }

    #[test]
    fn the_daily_budget_is_one_over_all_mounts() {
        let now = Instant::now();
        let capacity = 256 * MIB;
        let limits = WriteLimits { bytes_per_second: None, drive_writes_per_day: Some(1.0) };
        let (mut written, mut account, mut since) = (0, None, 0);
        for _ in 0..12 {
            let gate = Gate::new(Admission::All, limits, capacity, now);
            gate.found(account.map(|account| (account, since)), now, TODAY);
            // A header is written, and behind it what there is allowance for.
            account = Some(gate.account(now, TODAY));
            since = write_all(&gate, now);
            written += since;
            assert_eq!(gate.account(now, TODAY).sent_bytes, written);
        }
        // The first fill, and the least burst, once.
        assert!(written >= capacity && written <= capacity + 20 * MIB, "{written}");
        // An allowance that was left for an hour is given again, and a clock that is set back gives
        // nothing.
        for (seconds, most) in [(-3600, MIB), (0, MIB), (3600, 12 * MIB)] {
            let gate = Gate::new(Admission::All, limits, capacity, now);
            let mut earlier = account.unwrap();
            earlier.clock_seconds = earlier.clock_seconds.saturating_add_signed(-seconds);
            gate.found(Some((earlier, since)), now, TODAY);
            let written = write_all(&gate, now);
            assert!(written <= most && (seconds <= 0 || written > 0), "{seconds}: {written}");
        }
    }

    #[test]
    fn waiting_records_count_as_written() {
        let now = Instant::now();
        let limits = WriteLimits { bytes_per_second: Some(8 * MIB), drive_writes_per_day: None };
        let gate = Gate::new(Admission::All, limits, 1 << 30, now);
        assert_eq!(gate.judge(Offered::default(), 63 * MIB, now), Verdict::Yes);
        assert_eq!(gate.judge(Offered::default(), 64 * MIB, now), Verdict::Budget);
    }

    #[test]
    fn the_rate_is_kept() {
        let start = Instant::now();
        let limits = WriteLimits { bytes_per_second: Some(8 * MIB), drive_writes_per_day: None };
        let gate = Gate::new(Admission::All, limits, 1 << 30, start);
        let mut written = 0;
        for tick in 0..100_000 {
            let now = start + Duration::from_millis(tick);
            if gate.judge(Offered::default(), 0, now) == Verdict::Yes {
                gate.charge(MIB, now);
                written += MIB;
            }
        }
        let allowed = 100 * 8 * MIB..=(100 + 8) * 8 * MIB + MIB;
        assert!(allowed.contains(&written), "{written}");
    }
}
