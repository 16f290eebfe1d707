//! Tables of lock profilers, and stacks that show where threads are.

use super::fallback::Sought;
use super::known_names::is_spin_symbol;
use super::profile_index::Path;
use super::selector::Selector;
use super::{Facts, Known, absent};
use crate::atlas;
use crate::evidence::{Frame, KernelStack, LockUse, Stack};

const NO_STACKS: &str = "kernel stacks (cat /proc/PID/stack of the busy thread, several times)";

impl Facts {
    /// Percent of the lock table in matching locks or callers, by lost time where it is counted.
    pub fn lock_share(&self, pattern: &str) -> Known<f64> {
        let pattern = self.selector(pattern)?;
        let locks = &self.evidence().locks;
        if locks.is_empty() {
            return absent("a lock profile (perf lock contention -ab, lockstat)");
        }
        let weight = lock_weight(locks);
        let all: f64 = locks.iter().map(&weight).sum();
        let mut hit = 0.0;
        for lock in locks {
            let named = pattern.is_match(&lock.lock)
                || lock.callers.iter().any(|frame| matches(frame, &pattern));
            if named {
                self.used(&lock.source);
                hit += weight(lock);
            }
        }
        if all > 0.0 { Ok(hit * 100.0 / all) } else { absent("figures in the lock profile") }
    }

    /// Percent of spinning samples whose first function outside the lock itself matches.
    pub fn spin_caller(&self, caller: &str) -> Known<f64> {
        let pattern = self.selector(caller)?;
        let (mut all, mut hit) = (0.0, 0.0);
        for profile in &self.profiles {
            let hits = profile.functions(&pattern);
            let paths: &[Path] =
                if profile.stacks.is_empty() { &profile.chains } else { &profile.stacks };
            for path in paths.iter().filter(|path| path.leaf == super::Leaf::Spin) {
                let user = path.places.iter().find(|place| {
                    profile.symbols.name(place.symbol).is_some_and(|name| !is_lock_symbol(name))
                });
                let Some(user) = user else { continue };
                all += path.percent;
                if hits.has(user) {
                    hit += path.percent;
                    self.used(&path.source);
                }
            }
            if all > 0.0 {
                return Ok(hit);
            }
        }
        absent("callers of the spinning lock (perf record -a -g -- sleep 10)")
    }

    /// How many threads have a stack with a matching function.
    pub fn stacks_at(&self, symbol: &str) -> Known<f64> {
        let pattern = self.selector(symbol)?;
        if let Some(presence) = self.presence_of(Sought::Anywhere(&pattern)) {
            return presence;
        }
        self.count_stacks(|frames| frames.iter().any(|frame| matches(frame, &pattern)))
    }

    /// How many threads have a stack with a matching function below a matching caller.
    pub fn stacks_under(&self, caller: &str, callee: &str) -> Known<f64> {
        let (caller, callee) = (self.selector(caller)?, self.selector(callee)?);
        if let Some(presence) = self.presence_of(Sought::Below(&caller, &callee)) {
            return presence;
        }
        self.count_stacks(|frames| {
            let below = frames.iter().position(|frame| matches(frame, &callee));
            below.is_some_and(|at| frames[at + 1..].iter().any(|frame| matches(frame, &caller)))
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of threads")]
    fn count_stacks(&self, hit: impl Fn(&[Frame]) -> bool) -> Known<f64> {
        let evidence = self.evidence();
        // Stacks of a profile without weights show only where threads were.
        let weightless: Vec<&Stack> = evidence
            .profiles
            .iter()
            .filter(|profile| !profile.weighted)
            .flat_map(|profile| &profile.stacks)
            .collect();
        if evidence.kernel_stacks.is_empty() && weightless.is_empty() {
            return absent(NO_STACKS);
        }
        let mut count = 0.0;
        for stack in evidence.kernel_stacks.iter().filter(|stack: &&KernelStack| hit(&stack.frames))
        {
            self.used(&stack.source);
            count += stack.count as f64;
        }
        for stack in weightless.into_iter().filter(|stack| hit(&stack.frames)) {
            self.used(&stack.source);
            count += 1.0;
        }
        Ok(count)
    }
}

/// The weight of a lock: lost time where it is counted, otherwise percent, otherwise the number.
fn lock_weight(locks: &[LockUse]) -> impl Fn(&LockUse) -> f64 + use<> {
    let timed = locks.iter().any(|lock| lock.wait_ns.is_some_and(|ns| ns > 0.0));
    let shared = locks.iter().any(|lock| lock.percent.is_some());
    #[expect(clippy::cast_precision_loss, reason = "a number of contentions")]
    move |lock: &LockUse| match (timed, shared) {
        (true, _) => lock.wait_ns.unwrap_or(0.0),
        (false, true) => lock.percent.unwrap_or(0.0),
        (false, false) => lock.count.unwrap_or(0) as f64,
    }
}

pub(super) fn matches(frame: &Frame, selector: &Selector) -> bool {
    let Some(name) = frame.symbol.as_deref() else { return false };
    let own = || atlas::subsystem_of(name, frame.module.as_deref(), frame.kernel);
    selector.has_subsystem(own()).unwrap_or_else(|| selector.is_match(name))
}

/// Functions that belong to a lock, spinning or not.
fn is_lock_symbol(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "mutex_",
        "_mutex",
        "rwsem_",
        "spin_lock",
        "spin_unlock",
        "osq_",
        "down_read",
        "down_write",
        "_mtx_",
        "_sx_",
        "_rw_",
        "lock_delay",
    ];
    is_spin_symbol(name) || PARTS.iter().any(|part| name.contains(part))
}
