//! Promise: with many threads doing everything at once, no value is of another key, or older than
//! the last invalidation that its reader knows of. In the end all counts agree.

use crate::common::Sequence;
use ogive_arc::{Access, Cache, Kind, LoadError, Policy, Prune, PruneResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: u64 = 300;

/// The origin. It has for each key its version, and the oldest version that may still be read. In
/// between lies the invalidation.
struct Origin {
    written: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
}

impl Origin {
    fn new() -> Self {
        let ones = || (0..KEYS).map(|_| AtomicU64::new(1)).collect();
        Self { written: ones(), acknowledged: ones() }
    }

    fn version(&self, key: u64) -> u64 {
        self.written[key as usize].load(Ordering::SeqCst)
    }

    fn acknowledged(&self, key: u64) -> u64 {
        self.acknowledged[key as usize].load(Ordering::SeqCst)
    }

    fn write(&self, cache: &Cache<u64, (u64, u64)>, key: u64) {
        let version = self.written[key as usize].fetch_add(1, Ordering::SeqCst) + 1;
        cache.invalidate(&key);
        self.acknowledged[key as usize].fetch_max(version, Ordering::SeqCst);
    }
}

struct Nothing;

impl Prune for Nothing {
    fn prune(&self, _: u64) -> PruneResult {
        PruneResult { examined: 1, held: 1, ..PruneResult::default() }
    }
}

fn read(cache: &Cache<u64, (u64, u64)>, origin: &Origin, next: &mut Sequence) {
    let key = next.below(KEYS).min(next.below(KEYS));
    let at_least = origin.acknowledged(key);
    let kind = if key.is_multiple_of(4) { Kind::Metadata } else { Kind::Data };
    let by = if next.below(5) == 0 { Access::Prefetch } else { Access::Demand };
    let luck = next.below(100);
    let load = || match luck {
        0 => Err("no luck"),
        _ => {
            let version = origin.version(key);
            if luck < 20 {
                std::thread::yield_now();
            }
            Ok(((key, version), 1 + key * 7 % 60))
        }
    };
    match cache.get_or_load(&key, kind, by, load) {
        Ok((hold, _)) => {
            assert_eq!(hold.0, key);
            assert!(hold.1 >= at_least, "key {key}: {} read, {at_least} written", hold.1);
            if luck < 10 {
                let again = hold.clone();
                drop(hold);
                assert_eq!(again.0, key);
            }
        }
        Err(LoadError::Failed(error)) => assert_eq!(error, "no luck"),
        Err(LoadError::Panicked) => panic!("no loader panics here"),
    }
}

fn work(cache: &Cache<u64, (u64, u64)>, origin: &Origin, mut next: Sequence, steps: u64) {
    for _ in 0..steps {
        let key = next.below(KEYS);
        match next.below(200) {
            0..=9 => origin.write(cache, key),
            10..=14 => drop(cache.demote(&key)),
            15..=17 => drop(cache.reclaim(next.below(500))),
            18 => cache.resize(1500 + next.below(1500)),
            19 => cache.clear(),
            20..=29 => {
                if let Some(claim) = cache.try_claim(&key, Kind::Data, Access::Prefetch) {
                    match next.below(4) {
                        0 => drop(claim),
                        1 => claim.fail("no luck"),
                        _ => drop(claim.fill((key, origin.version(key)), 20)),
                    }
                }
            }
            30..=32 => drop(cache.stats()),
            _ => read(cache, origin, &mut next),
        }
    }
}

#[test]
fn everything_counts_up_after_everything_at_once() {
    let steps = match crate::skipped::is_nightly() {
        _ if cfg!(miri) => 60,
        true => 30_000,
        false => 10_000,
    };
    let first_seed = crate::seed::seed().wrapping_mul(8);
    for (sublists, policy) in
        [(1, Policy::Arc), (8, Policy::Duel), (1, Policy::Duel), (8, Policy::Arc)]
    {
        let evicted = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&evicted);
        let cache = Cache::<u64, (u64, u64)>::builder(3000)
            .sublists(sublists)
            .policy(policy)
            .on_evict(move |eviction| {
                assert_eq!(eviction.key, eviction.value.0);
                count.fetch_add(1, Ordering::Relaxed);
            })
            .build();
        let _registration = cache.register_prune("nothing", Arc::new(Nothing));
        let origin = Origin::new();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|seed| {
                    let (cache, origin) = (&cache, &origin);
                    scope.spawn(move || {
                        work(cache, origin, Sequence(first_seed.wrapping_add(seed)), steps)
                    })
                })
                .collect();
            // One thread recounts while the others work: a sublist is right under its lock.
            let watcher = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(cache.stats().entries <= KEYS);
                    std::thread::yield_now();
                }
            });
            let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(results.iter().all(Result::is_ok));
            watcher.join().unwrap();
        });
        let census = cache.validate().unwrap();
        assert_eq!((census.holds, census.loading), (0, 0));
        let level = cache.level();
        assert!(level.size_bytes <= level.target_bytes, "{level:?}");
        let stats = cache.stats();
        assert_eq!(stats.anon_size, 0);
        assert!(stats.hits > 0 && stats.misses > 0);
        assert!(cfg!(miri) || evicted.load(Ordering::Relaxed) > 1000);
        cache.clear();
        assert_eq!(cache.validate().unwrap(), Default::default());
    }
}
