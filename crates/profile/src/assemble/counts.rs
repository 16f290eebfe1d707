//! Weights of samples of counted events (`perf record -e '{a,b}:S'`): the increase of each event's
//! count since the previous sample.
//!
//! A count belongs to a CPU, to a thread, or to one of the threads that inherited the event. The
//! recording does not say which. If threads may have counts of their own, the difference that is
//! nearer to the sample's period is used.

use super::Map;

/// Counts remembered at most. Then all are dropped, and each loses the weight of one sample.
const COUNTS_MAX: usize = 4_000_000;

/// The last count of each event by number, and of each thread.
#[derive(Debug, Default)]
pub(super) struct LastCounts {
    events: Map<u64, u64>,
    threads: Map<(u64, i32), u64>,
}

/// The increase since the last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// The increase of the event's count.
    pub(super) whole: u64,
    /// The increase of the event's count in this thread, if threads may have counts of their own.
    pub(super) own: Option<u64>,
}

impl LastCounts {
    /// Records a new count of an event, and of a thread if threads may have their own.
    pub(super) fn take(&mut self, id: u64, thread: Option<i32>, count: u64) -> Counted {
        if self.events.len() + self.threads.len() >= COUNTS_MAX {
            *self = Self::default();
        }
        let whole = since(self.events.insert(id, count), count);
        let own = thread.map(|thread| since(self.threads.insert((id, thread), count), count));
        Counted { whole, own }
    }
}

impl Counted {
    /// Whether the sample's period shows that the count is the thread's own.
    pub(super) fn is_own(&self, period: u64) -> bool {
        self.own.is_some_and(|own| own.abs_diff(period) < self.whole.abs_diff(period))
    }
}

/// A count that is smaller than before belongs to a new counter.
fn since(before: Option<u64>, count: u64) -> u64 {
    count.checked_sub(before.unwrap_or(0)).unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_weighs_the_increase_since_the_previous_one() {
        let mut counts = LastCounts::default();
        let mut whole = |id, count| counts.take(id, None, count).whole;
        assert_eq!(whole(1, 100), 100);
        assert_eq!(whole(2, 7), 7);
        assert_eq!(whole(1, 130), 30);
        assert_eq!(whole(1, 130), 0);
        assert_eq!(whole(1, 10), 10, "a new counter with an old number");
    }

    #[test]
    fn the_period_distinguishes_the_count_of_a_cpu_from_that_of_a_thread() {
        let sum = |samples: &[(i32, u64)]| {
            let mut counts = LastCounts::default();
            let weights = samples.iter().map(|(thread, count)| {
                let counted = counts.take(1, Some(*thread), *count);
                if counted.is_own(10) { counted.own.unwrap_or(0) } else { counted.whole }
            });
            weights.sum::<u64>()
        };
        assert_eq!(sum(&[(1, 10), (2, 20), (1, 31), (2, 41)]), 41, "a CPU's");
        assert_eq!(sum(&[(1, 10), (2, 10), (1, 20), (2, 21), (1, 30)]), 51, "two threads'");
    }
}
