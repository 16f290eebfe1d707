//! The owners that a prune can ask. The registry's lock is a leaf, and is not held while an owner
//! works. A flag says that an owner is at work, so it is asked once at a time.

use super::{Backoff, Prune, PruneResult};
use crate::counters::{Counters, Event};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

struct Owner {
    name: String,
    prune: Arc<dyn Prune>,
    busy: AtomicBool,
    backoff: Mutex<Backoff>,
}

/// All owners, in the order in which they registered.
pub(crate) struct Registry {
    owners: Arc<Mutex<Vec<Arc<Owner>>>>,
    start: Instant,
}

impl Default for Registry {
    fn default() -> Self {
        Self { owners: Arc::new(Mutex::new(Vec::new())), start: Instant::now() }
    }
}

/// Keeps an owner registered.
#[must_use = "the owner is unregistered when this is dropped"]
pub struct Registration {
    owner: Arc<Owner>,
    owners: Weak<Mutex<Vec<Arc<Owner>>>>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.owner.name).finish()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(owners) = self.owners.upgrade() {
            lock(&owners).retain(|owner| !Arc::ptr_eq(owner, &self.owner));
        }
    }
}

/// The flag that an owner is at work; lowered on return and on panic.
struct AtWork<'a>(&'a AtomicBool);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Registry {
    pub(crate) fn register(&self, name: &str, prune: Arc<dyn Prune>) -> Registration {
        let owner = Arc::new(Owner {
            name: name.to_owned(),
            prune,
            busy: AtomicBool::new(false),
            backoff: Mutex::new(Backoff::default()),
        });
        lock(&self.owners).push(Arc::clone(&owner));
        Registration { owner, owners: Arc::downgrade(&self.owners) }
    }

    /// Asks one owner after the other for the bytes that are still needed.
    pub(crate) fn prune(&self, want_bytes: u64, now: Instant, counters: &Counters) -> PruneResult {
        let mut total = PruneResult::default();
        if want_bytes == 0 {
            return total;
        }
        let owners = lock(&self.owners).clone();
        for owner in owners {
            let left_bytes = want_bytes.saturating_sub(total.freed_bytes);
            if left_bytes == 0 {
                break;
            }
            if let Some(result) = self.ask(&owner, left_bytes, now, counters) {
                total.add(&result);
            }
        }
        total
    }

    fn ask(
        &self,
        owner: &Owner,
        want_bytes: u64,
        now: Instant,
        counters: &Counters,
    ) -> Option<PruneResult> {
        let now = now.saturating_duration_since(self.start);
        if !lock(&owner.backoff).allows(now) {
            counters.count(Event::PruneBackedOff);
            return None;
        }
        if owner.busy.swap(true, Ordering::Acquire) {
            counters.count(Event::PruneBusy);
            return None;
        }
        let at_work = AtWork(&owner.busy);
        counters.count(Event::PruneRequests);
        let result = owner.prune.prune(want_bytes);
        lock(&owner.backoff).note(now, want_bytes, result.freed_bytes);
        drop(at_work);
        counters.add(Event::PruneExamined, result.examined);
        counters.add(Event::PruneFreedBytes, result.freed_bytes);
        counters.add(Event::PruneFreedObjects, result.freed_objects);
        counters.add(Event::PruneHeld, result.held);
        Some(result)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// Frees a fixed amount and remembers the requests.
    struct Fixed {
        frees_bytes: u64,
        asked: AtomicU64,
        wanted: AtomicU64,
    }

    impl Fixed {
        fn new(frees_bytes: u64) -> Arc<Self> {
            Arc::new(Self { frees_bytes, asked: AtomicU64::new(0), wanted: AtomicU64::new(0) })
        }
    }

    impl Prune for Fixed {
        fn prune(&self, want_bytes: u64) -> PruneResult {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.wanted.store(want_bytes, Ordering::Relaxed);
            let freed_bytes = self.frees_bytes.min(want_bytes);
            PruneResult { examined: 10, freed_bytes, freed_objects: freed_bytes, held: 3 }
        }
    }

    #[test]
    fn the_second_owner_is_asked_for_the_rest_only() {
        let (registry, counters) = (Registry::default(), Counters::new());
        let (first, second, third) = (Fixed::new(60), Fixed::new(1000), Fixed::new(1000));
        let _one = registry.register("one", Arc::clone(&first) as _);
        let _two = registry.register("two", Arc::clone(&second) as _);
        let _three = registry.register("three", Arc::clone(&third) as _);
        let result = registry.prune(100, Instant::now(), &counters);
        assert_eq!(
            result,
            PruneResult { examined: 20, freed_bytes: 100, freed_objects: 100, held: 6 }
        );
        assert_eq!(second.wanted.load(Ordering::Relaxed), 40);
        assert_eq!(third.asked.load(Ordering::Relaxed), 0);
        assert_eq!(counters.sum(Event::PruneRequests), 2);
    }

    #[test]
    fn an_owner_that_frees_nothing_is_hardly_asked_however_often_it_is_wanted() {
        let (registry, counters) = (Registry::default(), Counters::new());
        let owner = Fixed::new(0);
        let _registration = registry.register("pinned", Arc::clone(&owner) as _);
        let start = Instant::now();
        // All within ten seconds.
        let (requests, apart) = if cfg!(miri) {
            (10_000, Duration::from_millis(1))
        } else {
            (1_000_000, Duration::from_micros(10))
        };
        for i in 0..requests {
            registry.prune(1 << 20, start + apart * i, &counters);
        }
        let asked = owner.asked.load(Ordering::Relaxed);
        assert!((5..=12).contains(&asked), "asked {asked} times");
        assert_eq!(counters.sum(Event::PruneBackedOff), u64::from(requests) - asked);
        assert_eq!(counters.sum(Event::PruneExamined), asked * 10);
        assert_eq!(counters.sum(Event::PruneHeld), asked * 3);
    }

    #[test]
    fn a_dropped_registration_is_not_asked() {
        let (registry, counters) = (Registry::default(), Counters::new());
        let owner = Fixed::new(5);
        let registration = registry.register("gone", Arc::clone(&owner) as _);
        drop(registration);
        assert_eq!(registry.prune(5, Instant::now(), &counters), PruneResult::default());
        assert_eq!(owner.asked.load(Ordering::Relaxed), 0);
    }

    /// Waits in the middle of its work.
    struct Slow(Barrier, Barrier);

    impl Prune for Slow {
        fn prune(&self, want_bytes: u64) -> PruneResult {
            self.0.wait();
            self.1.wait();
            PruneResult { freed_bytes: want_bytes, ..PruneResult::default() }
        }
    }

    #[test]
    fn one_request_is_in_flight_per_owner() {
        let (registry, counters) = (Registry::default(), Counters::new());
        let slow = Arc::new(Slow(Barrier::new(2), Barrier::new(2)));
        let _registration = registry.register("slow", Arc::clone(&slow) as _);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| registry.prune(7, Instant::now(), &counters));
            slow.0.wait();
            assert_eq!(registry.prune(7, Instant::now(), &counters), PruneResult::default());
            assert_eq!(counters.sum(Event::PruneBusy), 1);
            slow.1.wait();
            assert_eq!(asked.join().expect("no panic").freed_bytes, 7);
        });
    }

    /// Panics the first time.
    struct Panics(AtomicBool);

    impl Prune for Panics {
        fn prune(&self, want_bytes: u64) -> PruneResult {
            assert!(self.0.swap(true, Ordering::Relaxed), "the first time");
            PruneResult { freed_bytes: want_bytes, ..PruneResult::default() }
        }
    }

    #[test]
    fn an_owner_that_panicked_can_be_asked_again() {
        let (registry, counters) = (Registry::default(), Counters::new());
        let _registration = registry.register("panics", Arc::new(Panics(AtomicBool::new(false))));
        let ask = || registry.prune(7, Instant::now(), &counters);
        let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
        assert!(first.is_err());
        assert_eq!(ask().freed_bytes, 7);
    }
}
