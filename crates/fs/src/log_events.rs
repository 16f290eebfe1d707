//! The events that a mount logs: memory is short and the ARC shrinks, the ARC's rule has changed,
//! the second level's write budget is spent.
//!
//! The reclaim thread checks whenever it is awake: after some megabytes have come in, or when
//! memory is short. No thread wakes up for a line in the log, so the end of an event may be logged
//! late. Each kind of line is logged at once, and then at most as often as the constants below
//! allow. An hour of the worst storm has 120 lines about memory, 12 about rules, and 12 about the
//! second level's budget.

use ogive_arc::policy::duel::Rule;
use ogive_arc::reclaim::{Decision, Reading};
use ogive_text::{Bytes, Change, Recurring};
use std::time::{Duration, Instant};

/// The shortest time between two lines about short memory. Memory must be ample for this long
/// before that is logged.
const MEMORY_PAUSE: Duration = Duration::from_secs(60);
/// The same for the second level's budget, and between two lines about the rule of each kind.
const SLOW_PAUSE: Duration = Duration::from_secs(600);
/// The shortest time between two checks of the counters.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Kinds of content, by their names in statistics.
const CONTENTS: [&str; 2] = ["data", "metadata"];

/// The figures that are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// The target size of the ARC.
    pub(crate) target_bytes: u64,
    /// Bytes that it had to give back, since the mount.
    pub(crate) reclaimed_bytes: u64,
    /// The rules of data and metadata, as numbers of [`Rule`].
    pub(crate) rules: [u64; 2],
    /// Records that the second level refused for lack of budget, since the mount.
    pub(crate) refused_by_budget: u64,
}

/// A line in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    MemoryShort { reading: Reading, from_bytes: u64, target_bytes: u64 },
    MemoryAmple { seconds: u64, shrinks: u64, reclaimed_bytes: u64, target_bytes: u64 },
    RuleChanged { content: &'static str, from: &'static str, to: &'static str },
    BudgetReached,
    BudgetBack { seconds: u64, refused_records: u64 },
}

/// The state of the last lines.
#[derive(Debug)]
pub(crate) struct EventReporter {
    memory: Recurring,
    /// Shrinks since short memory was last logged, and the bytes given back until then.
    shrinks: u64,
    reclaimed_before: u64,
    rules: [ReportedRule; 2],
    budget: Recurring,
    refused: u64,
    refused_before: u64,
    looked: Option<Instant>,
}

/// The rule that was last logged.
#[derive(Clone, Copy, Debug)]
struct ReportedRule {
    rule: u64,
    /// When; `None` at the start.
    at: Option<Instant>,
}

impl EventReporter {
    /// For a mount that starts with these rules: a change before the first check counts.
    pub(crate) fn new(rules: [u64; 2]) -> Self {
        Self {
            memory: Recurring::new(MEMORY_PAUSE, MEMORY_PAUSE),
            shrinks: 0,
            reclaimed_before: 0,
            rules: rules.map(|rule| ReportedRule { rule, at: None }),
            budget: Recurring::new(SLOW_PAUSE, SLOW_PAUSE),
            refused: 0,
            refused_before: 0,
            looked: None,
        }
    }

    /// Memory is short, and the ARC gives some back. `from_bytes` was its target before, and
    /// `reclaimed_bytes` the total that it had given back until then.
    pub(crate) fn short(
        &mut self,
        reading: Reading,
        (from_bytes, target_bytes): (u64, u64),
        reclaimed_bytes: impl FnOnce() -> u64,
        now: Instant,
    ) -> Option<Event> {
        let change = self.memory.say(true, now);
        if change == Some(Change::Came) {
            self.shrinks = 0;
            self.reclaimed_before = reclaimed_bytes();
        }
        self.shrinks += u64::from(target_bytes < from_bytes);
        change.map(|_| Event::MemoryShort { reading, from_bytes, target_bytes })
    }

    /// Whether the next check is due.
    pub(crate) fn is_time(&self, now: Instant) -> bool {
        self.looked.is_none_or(|at| now.saturating_duration_since(at) >= LOOK_EVERY)
    }

    /// Checks the figures, and logs changes.
    pub(crate) fn look(&mut self, figures: &Figures, now: Instant, say: &mut impl FnMut(Event)) {
        self.looked = Some(now);
        if let Some(Change::Went(after)) = self.memory.say(false, now) {
            say(Event::MemoryAmple {
                seconds: after.as_secs(),
                shrinks: self.shrinks,
                reclaimed_bytes: figures.reclaimed_bytes.saturating_sub(self.reclaimed_before),
                target_bytes: figures.target_bytes,
            });
        }
        for ((said, rule), content) in self.rules.iter_mut().zip(figures.rules).zip(CONTENTS) {
            let before = *said;
            let is_time =
                before.at.is_none_or(|at| now.saturating_duration_since(at) >= SLOW_PAUSE);
            if before.rule != rule && is_time {
                *said = ReportedRule { rule, at: Some(now) };
                say(Event::RuleChanged { content, from: name(before.rule), to: name(rule) });
            }
        }
        let refuses = figures.refused_by_budget > self.refused;
        match self.budget.say(refuses, now) {
            Some(Change::Came) => {
                self.refused_before = self.refused;
                say(Event::BudgetReached);
            }
            Some(Change::Went(after)) => say(Event::BudgetBack {
                seconds: after.as_secs(),
                refused_records: figures.refused_by_budget - self.refused_before,
            }),
            None => {}
        }
        self.refused = figures.refused_by_budget;
    }
}

fn name(rule: u64) -> &'static str {
    usize::try_from(rule).ok().and_then(|rule| Rule::ALL.get(rule)).map_or("?", |rule| rule.name())
}

/// The target that the reclaim thread decided on, whether it could lower it or not.
pub(crate) fn target_after(decision: &Decision, from_bytes: u64) -> u64 {
    decision.shrink_to_bytes.unwrap_or(from_bytes).min(from_bytes)
}

impl Event {
    /// Writes the line: a sentence, and its figures as separate fields.
    pub(crate) fn log(self) {
        match self {
            Self::MemoryShort { reading, from_bytes, target_bytes } => log::info!(
                event = "memory_short",
                target_before_bytes = from_bytes,
                target_bytes,
                available_bytes = reading.available_bytes,
                headroom_bytes = reading.headroom_bytes,
                stalled = reading.stalled;
                "memory is short: the ARC, which aimed at {}, now aims at {}",
                Bytes(from_bytes),
                Bytes(target_bytes)
            ),
            Self::MemoryAmple { seconds, shrinks, reclaimed_bytes, target_bytes } => log::info!(
                event = "memory_ample",
                seconds,
                shrinks,
                reclaimed_bytes,
                target_bytes;
                "memory is short no longer: in {seconds} s the ARC gave back {} in {shrinks} \
                 shrinks; it aims at {} and may grow",
                Bytes(reclaimed_bytes),
                Bytes(target_bytes)
            ),
            Self::RuleChanged { content, from, to } => log::info!(
                event = "rule_changed",
                content,
                from,
                to;
                "the rule for {content} is now {to}, and was {from}"
            ),
            Self::BudgetReached => log::info!(
                event = "l2_budget_reached";
                "the second level has written what it may for now; records are refused"
            ),
            Self::BudgetBack { seconds, refused_records } => log::info!(
                event = "l2_budget_back",
                seconds,
                refused_records;
                "the second level may write again: {refused_records} records were refused in \
                 {seconds} s"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Figures =
        Figures { target_bytes: 100, reclaimed_bytes: 0, rules: [0, 3], refused_by_budget: 0 };

    /// Checks figures by second, and returns the lines with their times.
    fn events(figures: impl IntoIterator<Item = (u64, Figures)>) -> Vec<(u64, Event)> {
        let (start, mut reporter, mut events) =
            (Instant::now(), EventReporter::new(QUIET.rules), Vec::new());
        for (second, figures) in figures {
            let now = start + Duration::from_secs(second);
            assert!(reporter.is_time(now));
            reporter.look(&figures, now, &mut |event| events.push((second, event)));
            assert!(!reporter.is_time(now));
        }
        events
    }

    #[test]
    fn a_change_of_rule_is_logged_and_in_a_storm_once_in_ten_minutes() {
        let once = [0, 0, 3, 3].into_iter().zip(0..);
        let once = once.map(|(rule, second)| (second, Figures { rules: [rule, 3], ..QUIET }));
        let changed = |from, to| Event::RuleChanged { content: "data", from, to };
        assert_eq!(events(once), [(2, changed("lirs", "arc"))]);
        // Also if it happened before the first check.
        let late = [(5, Figures { rules: [3, 3], ..QUIET })];
        assert_eq!(events(late), [(5, changed("lirs", "arc"))]);
        let storm = (0..3600_u64).map(|at| (at, Figures { rules: [at % 2, 3], ..QUIET }));
        let events = events(storm);
        assert_eq!(events.len(), 6, "{events:?}");
        assert_eq!(events[..2], [(1, changed("lirs", "lru")), (602, changed("lru", "lirs"))]);
    }

    #[test]
    fn a_used_up_budget_is_logged_and_its_return_once_nothing_was_refused_for_long() {
        let refused = |at: u64| Figures { refused_by_budget: at.clamp(5, 50) - 5, ..QUIET };
        let events = events((0..2000).map(|at| (at, refused(at))));
        let back = Event::BudgetBack { seconds: 644, refused_records: 45 };
        assert_eq!(events, [(6, Event::BudgetReached), (650, back)]);
    }

    #[test]
    fn a_storm_of_shortage_is_two_lines() {
        let (start, mut reporter, mut events) =
            (Instant::now(), EventReporter::new(QUIET.rules), Vec::new());
        let reading = Reading { available_bytes: Some(7), ..Reading::default() };
        for second in 0..1000 {
            let now = start + Duration::from_secs(second);
            if second < 800 && second % 20 == 0 {
                events.extend(reporter.short(reading, (100, 100 - second / 20), || 1000, now));
            }
            let figures = Figures { target_bytes: 61, reclaimed_bytes: 5000, ..QUIET };
            reporter.look(&figures, now, &mut |event| events.push(event));
        }
        let first = Event::MemoryShort { reading, from_bytes: 100, target_bytes: 100 };
        let last = Event::MemoryAmple {
            seconds: 840,
            shrinks: 39,
            reclaimed_bytes: 4000,
            target_bytes: 61,
        };
        assert_eq!(events, [first, last]);
    }
}
